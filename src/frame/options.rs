//! What the command lines of several benchmarks share: headings of the help, words and numbers as values. Errors are
//! sentences: clap puts the option's name before them.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::Args;

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, Repeat};
use crate::frame::system::host::host_name;
use crate::frame::units;

/// Seed of the data when none is given: the day of the Euro-Par 2000 paper, so that two runs write the same bytes.
pub const DEFAULT_SEED: u64 = 20_000_829;

pub(crate) const MEASURED: &str = "What is measured";

pub(crate) const PLACE: &str = "Where the files go";

pub(crate) const RANKS: &str = "Where the ranks run";

pub(crate) const ACCESS: &str = "How the files are accessed";

pub(crate) const TRUST: &str = "Checks";

pub(crate) const OUTPUT: &str = "Output";

/// Words of an option and what they mean; one without a meaning is for tests alone and not shown. The configuration stays free of the command line's library.
macro_rules! words {
    ($type:ident: $($(#[$when:meta])? $variant:ident = $word:literal $(or $alias:literal)?, $help:literal;)+) => {
        impl clap::ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$($(#[$when])? Self::$variant),+]
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                Some(match self {
                    $(Self::$variant => clap::builder::PossibleValue::new($word).help($help).hide($help.is_empty())$(.alias($alias))?,)+
                })
            }
        }
    };
}
pub(crate) use words;

words! { DirectPolicy:
    ByBackend = "by-backend", "auto for uring, off for posix";
    Required = "required", "what cannot be direct is not run";
    Auto = "auto", "direct where the alignment allows it";
    Off = "off", "always through the page cache";
}
words! { CachePolicy:
    Drop = "drop", "cached pages are dropped before every rewrite and read, outside the clock";
    Dontcache = "dontcache", "buffered transfers drop their pages themselves (RWF_DONTCACHE; posix, uring)";
    RankShift = "rank-shift", "ranks read what a rank of another host has written";
    Keep = "keep", "nothing: reads may come from memory";
}

words! { BindPolicy:
    Auto = "auto", "a CPU for each rank, where several ranks of a host were left unbound and there are enough CPUs";
    Core = "core", "a CPU for each rank, within what the launcher gave; refused where that cannot be";
    None = "none", "as the launcher left them";
}

/// Where ranks run on their hosts.
#[derive(Clone, Debug, Args)]
pub struct BindArgs {
    /// Bind ranks to CPUs before memory is touched. What the launcher has bound stays as it is with auto. CPUs to which busy programs
    /// of others are bound are avoided [default: auto; replay: none, as the application ran]
    #[arg(long, value_enum, value_name = "HOW", help_heading = RANKS)]
    pub bind: Option<BindPolicy>,
}

impl BindArgs {
    /// The policy in force where nothing was typed, or what was typed.
    #[must_use]
    pub fn policy(&self, default: BindPolicy) -> BindPolicy {
        self.bind.unwrap_or(default)
    }
}

words! { ProgressMode:
    Auto = "auto", "a bar on a terminal, else lines";
    Bar = "bar", "a bar that moves, with the current rate and the time left";
    Lines = "lines", "a line for each type, benchmark or pass that is over, for logs";
    Json = "json", "one JSON object in a line for each event, for programs";
    Off = "off", "nothing";
}

/// Damage on purpose, to prove that it is found.
#[derive(Clone, Copy, Debug, Args)]
pub struct InjectArgs {
    /// Turn one bit over, to prove that it is found
    #[cfg(feature = "test-hooks")]
    #[arg(long, hide = true, help_heading = TRUST)]
    inject: bool,
}

impl InjectArgs {
    /// True if it was asked for: only a program with test hooks can be.
    #[must_use]
    pub fn is_asked(self) -> bool {
        #[cfg(feature = "test-hooks")]
        return self.inject;
        #[cfg(not(feature = "test-hooks"))]
        false
    }
}

/// How a run tells where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgressMode {
    /// A bar where it can be drawn.
    #[default]
    Auto,
    /// A bar.
    Bar,
    /// Lines.
    Lines,
    /// JSON.
    Json,
    /// Not at all.
    Off,
}

/// What is told on stderr and to others while a run goes on.
#[derive(Clone, Debug, Args)]
pub struct ProgressArgs {
    /// What stderr gets while the run goes on
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto", conflicts_with = "quiet", help_heading = OUTPUT)]
    pub progress: ProgressMode,
    /// Keep a text file of Prometheus metrics up to date, for monitoring: replaced as a whole, once a second at most
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub metrics: Option<PathBuf>,
    /// No announcement and no progress on stderr
    #[arg(long, short, help_heading = OUTPUT)]
    pub quiet: bool,
}

impl ProgressArgs {
    /// The mode in force.
    #[must_use]
    pub fn mode(&self) -> ProgressMode {
        if self.quiet {
            ProgressMode::Off
        } else {
            self.progress
        }
    }

    /// True if what a user who waits wants to know is said in words.
    #[must_use]
    pub fn announces(&self) -> bool {
        !matches!(self.mode(), ProgressMode::Off | ProgressMode::Json)
    }
}

/// Beginning of the names of files: `{date}` becomes the time of now, UTC, `{host}` the name of this host. Only rank 0 makes files,
/// so there is one date.
pub(crate) fn prefix() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new()
        .map(|typed| filled_in(&typed, &now(), &host_name().unwrap_or_else(|_| "unknown-host".into())))
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn filled_in(typed: &Path, date: &str, host: &str) -> PathBuf {
    match typed.to_str() {
        Some(text) => text.replace("{date}", date).replace("{host}", host).into(),
        None => typed.to_owned(),
    }
}

/// A size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| error.to_string())
}

/// A time in seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    units::parse_seconds(text).map_err(|error| error.to_string())
}

/// A number above zero.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        Ok(_) => Err("the number must be above zero".into()),
        Err(_) => Err(format!("'{text}' is not a number")),
    }
}

/// What is measured again: auto, off, or how often.
pub(crate) fn repeat(text: &str) -> Result<Repeat, String> {
    text.to_owned().try_into()
}

/// A percentage as a share: 5%, or 5, is 0.05.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 100.0 => Ok(number / 100.0),
        Ok(_) => Err("the percentage must be above 0% and at most 100%".into()),
        Err(_) => Err(format!("'{text}' is not a number; write a percentage, e.g. 5%")),
    }
}

/// A hint.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a key and its value, e.g. romio_cb_write=enable".into()),
    }
}

/// Units and exit codes, the same under the help of every command.
macro_rules! common_help {
    () => {
        "\
Units:
  Sizes are bytes, or a number with K, M, G or T in powers of two: 64K = 65536.
  Times are seconds, or a number with s, m or h: 90s, 15m, 2h.
  Bandwidths are shown in MB/s = 1000000 bytes per second, as in the papers.

Exit codes:
    0  done
    1  an I/O or MPI operation failed; what was measured before is kept
    2  the command line, the hints file or the launcher does not fit; nothing was measured
    3  data read was not the data written
    4  compare --fail-below: slower than the limit
  130  interrupted; what was measured before is kept"
    };
}
pub(crate) use common_help;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_and_how_narrow() {
        assert_eq!(["auto", "off", "3"].map(repeat), [Ok(Repeat::Auto), Ok(Repeat::Off), Ok(Repeat::Times(3))]);
        for word in ["", "0", "-1", "on", "3.5", "10001"] {
            assert!(repeat(word).unwrap_err().contains("auto, off, or how often"), "{word}");
        }
        assert_eq!(["5%", "0.5 %", "100"].map(percent), [Ok(0.05), Ok(0.005), Ok(1.0)]);
        for word in ["", "%", "5%%", "0%", "101%", "nan%", "-1%"] {
            assert!(percent(word).is_err(), "{word}");
        }
        for repeat in [Repeat::Off, Repeat::Auto, Repeat::Times(7)] {
            let text = serde_json::to_string(&repeat).unwrap();
            assert_eq!(serde_json::from_str::<Repeat>(&text).unwrap(), repeat);
        }
        let goes_on = [Repeat::Off, Repeat::Auto, Repeat::Times(2)].map(|r| [r.goes_on_after(1), r.goes_on_after(2)]);
        assert_eq!(goes_on, [[false, false], [true, true], [true, false]]);
    }

    #[test]
    fn a_prefix_may_have_the_date_and_the_host() {
        let filled = |typed: &str| filled_in(Path::new(typed), "20261123T221405Z", "node17");
        assert_eq!(filled("results/{host}-{date}"), Path::new("results/node17-20261123T221405Z"));
        assert_eq!(filled("run{1}{date"), Path::new("run{1}{date"));
        let now = now();
        assert!(now.len() == 16 && now.ends_with('Z') && now.as_bytes()[8] == b'T', "{now}");
    }
}
