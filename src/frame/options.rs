//! Options common to several benchmarks: headings of the help, named values and numbers. Errors are sentences: clap puts the option's
//! name before them.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::Args;

use crate::frame::backends::nearest_name;
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, RepetitionPolicy, Stripe, TimeLimit};
use crate::frame::records::StorageKey;
use crate::frame::run::direct_trial::MAX_OPTION_BYTES;
use crate::frame::system::host::host_name;
use crate::frame::units;

/// Lustre accepts multiples of this size only.
const STRIPE_UNIT_BYTES: u64 = 64 << 10;

/// Default seed of the data: the day of the Euro-Par 2000 paper, so that two runs write the same bytes.
pub const DEFAULT_SEED: u64 = 20_000_829;

pub(crate) const HEADING_MEASUREMENT: &str = "Measurement";

pub(crate) const HEADING_FILES: &str = "Files";

pub(crate) const HEADING_RANKS: &str = "Rank binding";

pub(crate) const HEADING_ACCESS: &str = "File access";

pub(crate) const HEADING_CHECKS: &str = "Checks";

pub(crate) const HEADING_OUTPUT: &str = "Output";

/// Named values of an option; one without help is for tests alone and hidden. The configuration stays free of clap.
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
    Required = "required", "only direct; not run where impossible";
    Auto = "auto", "direct where the alignment allows it";
    Off = "off", "always through the page cache";
}
words! { CachePolicy:
    Drop = "drop", "cached pages are dropped before every rewrite and read, outside the timed region";
    Dontcache = "dontcache", "buffered transfers drop their pages (RWF_DONTCACHE; posix, uring)";
    RankShift = "rank-shift", "ranks read what a rank of another host has written";
    Keep = "keep", "cached pages are kept: reads may come from memory";
}

words! { BindPolicy:
    Auto = "auto", "a CPU for each rank, if several ranks of a host are unbound and there are enough CPUs";
    Core = "core", "a CPU for each rank, of those the launcher allows; refused where impossible";
    None = "none", "as launched";
}

/// Options of rank binding.
#[derive(Clone, Debug, Args)]
pub struct BindArgs {
    /// Bind ranks to CPUs before memory is touched. With auto, ranks that the launcher has bound keep their binding. CPUs to which busy processes of
    /// other programs are bound are avoided [default: auto; replay: none, as the application ran]
    #[arg(long, value_enum, value_name = "HOW", help_heading = HEADING_RANKS)]
    pub bind: Option<BindPolicy>,
}

impl BindArgs {
    /// The given policy, or the default.
    #[must_use]
    pub fn policy(&self, default: BindPolicy) -> BindPolicy {
        self.bind.unwrap_or(default)
    }
}

/// Option of the alignment of direct I/O.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DirectAlignArgs {
    /// Alignment of offsets and lengths of direct transfers, a power of two up to 4K, instead of that of the file system; a trial checks that it is accepted. --direct required then accepts transfers whose bypass of
    /// the page cache cannot be proven (overlay, FUSE) [default: reported by statx, else the smallest accepted in a trial]
    #[arg(long, value_name = "SIZE", value_parser = parse_align, help_heading = HEADING_ACCESS)]
    pub dio_align: Option<u64>,
}

/// Option of the storage sheet.
#[derive(Clone, Debug, Default, Args)]
pub struct StorageArgs {
    /// State a parameter of the storage that the file system does not report, for the result: block, stripe, cache (sizes), stripes (a number), servers,
    /// redundancy, targets, devices, network, version, note (texts), for example --storage stripes=4 --storage cache=64G. Given values precede those
    /// that are queried; cache also replaces the page cache of the hosts in the yardstick of 20 times the cache
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_storage, help_heading = HEADING_FILES)]
    pub storage: Vec<(StorageKey, String)>,
    /// Stripes of new files, set on the directories of the run by lfs setstripe (Lustre), beegfs-ctl --setpattern (BeeGFS) or the layout attribute of
    /// CephFS: number of targets (-1: all, on Lustre) and size, for example 8:4M. The storage sheet shows what a file has [default: as --path]
    #[arg(long, value_name = "COUNT:SIZE", value_parser = parse_stripe, allow_hyphen_values = true, help_heading = HEADING_FILES)]
    pub stripe: Option<Stripe>,
}

/// Parses `COUNT:SIZE`.
///
/// # Errors
/// How to write it.
pub(crate) fn parse_stripe(text: &str) -> Result<Stripe, String> {
    let (count, size) = text.split_once(':').ok_or("write a number and a size, for example 8:4M")?;
    let count = count.parse().ok().filter(|count: &i64| *count == -1 || *count > 0);
    let size_bytes = parse_size(size).map_err(|cause| format!("size {size}: {cause}"))?;
    if size_bytes == 0 || !size_bytes.is_multiple_of(STRIPE_UNIT_BYTES) {
        return Err(format!("size {size}: stripes are multiples of 64K"));
    }
    Ok(Stripe { count: count.ok_or("the number of targets is a positive number, or -1 for all")?, size_bytes })
}

/// Option of the time limit.
#[derive(Clone, Copy, Debug, Args)]
pub struct TimeLimitArgs {
    /// End before this limit on the wall clock, with a result, and exit code 0: TIME counts from the start of the program; auto is the end of the batch
    /// job, by SLURM_JOB_END_TIME, squeue, scontrol, qstat, PBS_WALLTIME, bjobs or flux. -T is measurement time, beside which a run opens, syncs, compares
    /// and removes files. What does not fit is announced. During the run b_eff_io omits repetitions, then rounds, then samples of the verification
    /// [default: no limit]
    #[arg(long, value_name = "TIME|auto", value_parser = parse_time_limit, help_heading = HEADING_MEASUREMENT)]
    pub time_limit: Option<TimeLimit>,
}

words! { ProgressMode:
    Auto = "auto", "a bar on a terminal, else lines";
    Bar = "bar", "a bar with the current rate and the remaining time";
    Lines = "lines", "a line for each completed type, benchmark or repetition, for logs";
    Json = "json", "one JSON object per line and event, for programs";
    Off = "off", "none";
}

/// What an inconclusive comparison or an undecided requirement means for the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InconclusivePolicy {
    /// Exit code 5.
    #[default]
    Fail,
    /// Exit code 0.
    Pass,
}

words! { InconclusivePolicy:
    Fail = "fail", "exit code 5";
    Pass = "pass", "exit code 0; the line that says so stays";
}

/// Option of the requirements of an acceptance.
#[derive(Clone, Debug, Default, Args)]
pub struct RequireArgs {
    /// Judge the run by the requirements in this text file, one in a line, such as `value >= 5 GB/s`, `type 0 write >= 3 GB/s`, `mpiio / posix >= 0.9`,
    /// `wrong words = 0`, `T >= 15 min`, `cache 20x`: each is PASS, FAIL or UNDECIDED by its 95 % interval (docs/acceptance.md). Exit code 4 if one
    /// fails, 5 if none fails and one is undecided
    #[arg(long, value_name = "FILE", help_heading = HEADING_CHECKS)]
    pub require: Option<PathBuf>,
}

/// Option of the exit code of an acceptance.
#[derive(Clone, Copy, Debug, Args)]
pub struct UndecidedArgs {
    /// Exit code where a requirement is undecided and none fails
    #[arg(long, value_name = "POLICY", value_enum, default_value = "fail", requires = "require", help_heading = HEADING_CHECKS)]
    pub inconclusive: InconclusivePolicy,
}

/// Options of fault injection.
#[derive(Clone, Copy, Debug, Args)]
pub struct InjectArgs {
    /// Flip one bit, to prove that it is detected
    #[cfg(feature = "test-hooks")]
    #[arg(long, hide = true, help_heading = HEADING_CHECKS)]
    inject: bool,
}

impl InjectArgs {
    /// True if a fault was requested, which needs a program with test hooks.
    #[must_use]
    pub fn is_requested(self) -> bool {
        #[cfg(feature = "test-hooks")]
        return self.inject;
        #[cfg(not(feature = "test-hooks"))]
        false
    }
}

/// Form of the progress reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgressMode {
    /// A bar on a terminal, else lines.
    #[default]
    Auto,
    /// A bar.
    Bar,
    /// Lines.
    Lines,
    /// JSON.
    Json,
    /// None.
    Off,
}

/// Options of progress reports.
#[derive(Clone, Debug, Args)]
pub struct ProgressArgs {
    /// Progress on stderr during the run
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto", conflicts_with = "quiet", help_heading = HEADING_OUTPUT)]
    pub progress: ProgressMode,
    /// Update a text file of Prometheus metrics, for monitoring: replaced atomically, at most once a second
    #[arg(long, value_name = "FILE", help_heading = HEADING_OUTPUT)]
    pub metrics: Option<PathBuf>,
    /// No announcement and no progress on stderr
    #[arg(long, short, help_heading = HEADING_OUTPUT)]
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

    /// True if announcements for the user are printed.
    #[must_use]
    pub fn announces(&self) -> bool {
        !matches!(self.mode(), ProgressMode::Off | ProgressMode::Json)
    }
}

/// Prefix of output files: `{date}` becomes the current time, UTC, `{host}` the name of this host. Only rank 0 creates files, so there is
/// one date.
pub(crate) fn output_prefix_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new()
        .map(|typed| expand_placeholders(&typed, &utc_now(), &host_name().unwrap_or_else(|_| "unknown-host".into())))
}

fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn expand_placeholders(typed: &Path, date: &str, host: &str) -> PathBuf {
    match typed.to_str() {
        Some(text) => text.replace("{date}", date).replace("{host}", host).into(),
        None => typed.to_owned(),
    }
}

pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| error.to_string())
}

pub(crate) fn parse_align(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes.is_power_of_two() && bytes <= MAX_OPTION_BYTES => Ok(bytes),
        bytes => Err(format!("{bytes} bytes is not a power of two from 1 to {MAX_OPTION_BYTES}")),
    }
}

pub(crate) fn parse_seconds(text: &str) -> Result<f64, String> {
    units::parse_seconds(text).map_err(|error| error.to_string())
}

pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        Ok(_) => Err("the number must be above zero".into()),
        Err(_) => Err(format!("'{text}' is not a number")),
    }
}

pub(crate) fn parse_repetitions(text: &str) -> Result<RepetitionPolicy, String> {
    text.to_owned().try_into()
}

pub(crate) fn parse_time_limit(text: &str) -> Result<TimeLimit, String> {
    text.to_owned().try_into()
}

/// Parses a percentage as a share: 5%, or 5, is 0.05.
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 100.0 => Ok(number / 100.0),
        Ok(_) => Err("the percentage must be above 0% and at most 100%".into()),
        Err(_) => Err(format!("'{text}' is not a number; write a percentage, e.g. 5%")),
    }
}

pub(crate) fn parse_key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a key and its value, e.g. romio_cb_write=enable".into()),
    }
}

/// Parses a parameter of the storage sheet.
pub(crate) fn parse_storage(text: &str) -> Result<(StorageKey, String), String> {
    let (name, value) =
        parse_key_value(text).map_err(|_| "write a parameter and its value, e.g. stripes=4".to_owned())?;
    let names = StorageKey::ALL.map(StorageKey::name);
    let Some(key) = StorageKey::ALL.into_iter().find(|key| key.name() == name) else {
        let near = nearest_name(&name, names).map_or(String::new(), |near| format!("; did you mean {near}?"));
        return Err(format!("there is no parameter '{name}', only {}{near}", names.join(", ")));
    };
    key.parse_value(&value)?;
    Ok((key, value))
}

/// Units and exit codes, common to the help of every command.
macro_rules! common_help {
    () => {
        "\
Units:
  Sizes are bytes, or a number with K, M, G or T in powers of two: 64K = 65536.
  Times are seconds, or a number with s, m or h: 90s, 15m, 2h.
  Bandwidths are shown in MB/s = 1000000 bytes per second, as in the papers.

Exit codes:
    0  done, or ended by --time-limit
    1  an I/O or MPI operation failed; earlier measurements are kept
    2  the command line, the hints file or the launcher was rejected; nothing was measured
    3  data read was not the data written
    4  compare --fail-below: slower than the limit; gate: slower than the runs before; --require: a requirement fails
    5  compare --fail-below, gate, --require: the results do not decide it (shared machine, run cut, storage drift)
  130  interrupted; earlier measurements are kept

Environment, in seconds:
  BEFF_RAW_STRANDED_SECONDS  limit for ranks that the MPI library leaves in a collective call (60)
  BEFF_RAW_FINALIZE_SECONDS  limit for MPI_Finalize, after everything is written (60; 10 where it often hangs)"
    };
}
pub(crate) use common_help;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_powers_of_two() {
        assert_eq!(["1", "512", "4K"].map(parse_align), [Ok(1), Ok(512), Ok(4096)]);
        for word in ["0", "3", "1000", "8K", "-512", "x"] {
            assert!(parse_align(word).is_err(), "{word}");
        }
    }

    #[test]
    fn parameters_of_the_storage_are_named_and_checked() {
        assert_eq!(parse_storage("cache=64G"), Ok((StorageKey::Cache, "64G".into())));
        assert_eq!(parse_storage("servers = 4 OSS, 8 OST"), Ok((StorageKey::Servers, "4 OSS, 8 OST".into())));
        assert_eq!(parse_storage("note=a=b"), Ok((StorageKey::Note, "a=b".into())));
        for (text, part) in [
            ("cache", "stripes=4"),
            ("cache=", "stripes=4"),
            ("strips=4", "did you mean stripes?"),
            ("zzz=4", "only block, stripe, stripes"),
            ("cache=big", "'big' is not a size"),
            ("stripes=2.5", "whole number"),
            ("block=0", "impossible"),
        ] {
            let error = parse_storage(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn repetitions_and_percentages_are_parsed() {
        assert_eq!(
            ["auto", "off", "3"].map(parse_repetitions),
            [Ok(RepetitionPolicy::Auto), Ok(RepetitionPolicy::Off), Ok(RepetitionPolicy::Times(3))]
        );
        for word in ["", "0", "-1", "on", "3.5", "10001"] {
            assert!(parse_repetitions(word).unwrap_err().contains("auto, off, or a number of repetitions"), "{word}");
        }
        assert_eq!(["5%", "0.5 %", "100"].map(parse_percent), [Ok(0.05), Ok(0.005), Ok(1.0)]);
        for word in ["", "%", "5%%", "0%", "101%", "nan%", "-1%"] {
            assert!(parse_percent(word).is_err(), "{word}");
        }
        for policy in [RepetitionPolicy::Off, RepetitionPolicy::Auto, RepetitionPolicy::Times(7)] {
            let text = serde_json::to_string(&policy).unwrap();
            assert_eq!(serde_json::from_str::<RepetitionPolicy>(&text).unwrap(), policy);
        }
        let goes_on = [RepetitionPolicy::Off, RepetitionPolicy::Auto, RepetitionPolicy::Times(2)]
            .map(|r| [r.allows_another(1), r.allows_another(2)]);
        assert_eq!(goes_on, [[false, false], [true, true], [true, false]]);
    }

    #[test]
    fn a_time_limit_is_a_time_or_that_of_the_job() {
        let parsed = ["auto", "90", "20s", "1.5m", "2h"].map(|text| parse_time_limit(text).unwrap());
        let seconds = [90.0, 20.0, 90.0, 7200.0].map(TimeLimit::Seconds);
        assert_eq!(parsed, [TimeLimit::Auto, seconds[0], seconds[1], seconds[2], seconds[3]]);
        for limit in parsed {
            let text = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<TimeLimit>(&text).unwrap(), limit);
        }
        for text in ["", "Auto", "job", "0", "-5s", "nan", "inf", "1:30:00"] {
            assert!(parse_time_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_prefix_may_have_the_date_and_the_host() {
        let filled = |typed: &str| expand_placeholders(Path::new(typed), "20261123T221405Z", "node17");
        assert_eq!(filled("results/{host}-{date}"), Path::new("results/node17-20261123T221405Z"));
        assert_eq!(filled("run{1}{date"), Path::new("run{1}{date"));
        let now = utc_now();
        assert!(now.len() == 16 && now.ends_with('Z') && now.as_bytes()[8] == b'T', "{now}");
    }
}
