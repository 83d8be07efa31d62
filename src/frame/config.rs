//! Configuration of several benchmarks: access to files, page cache, binding of ranks, and repetitions.

use crate::frame::backends;
use crate::frame::units;
use beff_backends::Direct;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Direct I/O policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectPolicy {
    /// Default of the backend: auto for uring, off for posix.
    ByBackend,
    /// Direct transfers only; anything else is not run.
    Required,
    /// Direct where the alignment allows it.
    Auto,
    /// Never.
    Off,
}

impl DirectPolicy {
    /// The policy in force for a backend.
    #[must_use]
    pub fn of(self, backend: &str) -> Self {
        match (self, backend) {
            (Self::ByBackend, name) if backends::supports(name, |row| row.is_direct_by_default) => Self::Auto,
            (Self::ByBackend, _) => Self::Off,
            (policy, _) => policy,
        }
    }

    /// The first of these contestants whose transfers may be direct; `of`: the policy in force for a contestant.
    #[must_use]
    pub fn first_direct(contestants: &[String], of: impl Fn(&str) -> Self) -> Option<&str> {
        let may_be = |name: &&String| of(name) != Self::Off && backends::supports(name, |row| row.can_direct);
        contestants.iter().find(may_be).map(String::as_str)
    }
}

/// Stripes of new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stripe {
    /// Number of targets; -1: all (Lustre).
    pub count: i64,
    /// Bytes on a target before the next one.
    pub size_bytes: u64,
}

/// Treatment of the page cache, so that reads measure the storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CachePolicy {
    /// Cached pages are dropped before every rewrite and read pattern, outside the clock.
    Drop,
    /// Buffered transfers of posix and uring drop their pages (RWF_DONTCACHE).
    Dontcache,
    /// Ranks read what a rank of another host has written.
    RankShift,
    /// The page cache is left as it is.
    #[default]
    Keep,
}

/// Binding of ranks that may run on several CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BindPolicy {
    /// Unbound ranks that share a host get a CPU each, if there are enough.
    Auto,
    /// Every rank gets a CPU of its own, or the run is refused.
    Core,
    /// Ranks are left as they are.
    #[default]
    None,
}

impl BindPolicy {
    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Core => "core",
            Self::None => "none",
        }
    }
}

impl CachePolicy {
    /// True if pages may be dropped where data is compared.
    #[must_use]
    pub fn drops_pages(self) -> bool {
        matches!(self, Self::Drop | Self::Dontcache)
    }
}

impl From<DirectPolicy> for Direct {
    /// The policy in force, as the drivers know it.
    fn from(policy: DirectPolicy) -> Self {
        match policy {
            DirectPolicy::Required => Self::Required,
            DirectPolicy::Auto => Self::Auto,
            DirectPolicy::Off | DirectPolicy::ByBackend => Self::Off,
        }
    }
}

/// Requested time limit of a run: `auto`, or a time in seconds such as `120s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^(auto|[0-9.e+]+s)$"))]
pub enum TimeLimit {
    /// The end of the batch job, as its scheduler reports it.
    Auto,
    /// Seconds since the start of the program.
    Seconds(f64),
}

impl TryFrom<String> for TimeLimit {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match word.as_str() {
            "auto" => Ok(Self::Auto),
            time => match units::parse_seconds(time) {
                Ok(seconds) if seconds > 0.0 => Ok(Self::Seconds(seconds)),
                Ok(_) => Err("the limit must be above zero".into()),
                Err(error) => Err(format!("{error}; or give auto, for the end of the batch job")),
            },
        }
    }
}

impl From<TimeLimit> for String {
    fn from(limit: TimeLimit) -> Self {
        match limit {
            TimeLimit::Auto => "auto".into(),
            TimeLimit::Seconds(seconds) => format!("{seconds}s"),
        }
    }
}

/// Repetitions after everything was measured once, for confidence intervals: `off`, `auto` (as many as the time allows), or a maximum
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^(off|auto|[1-9][0-9]*)$"))]
pub enum RepetitionPolicy {
    /// No repetitions.
    #[default]
    Off,
    /// As many as the time allows.
    Auto,
    /// At most this many.
    Times(u64),
}

impl TryFrom<String> for RepetitionPolicy {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match word.as_str() {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            number => match number.parse() {
                Ok(times) if (1..=Self::MAX).contains(&times) => Ok(Self::Times(times)),
                _ => Err(format!("give auto, off, or a number of repetitions, 1 to {}", Self::MAX)),
            },
        }
    }
}

impl From<RepetitionPolicy> for String {
    fn from(policy: RepetitionPolicy) -> Self {
        match policy {
            RepetitionPolicy::Off => "off".into(),
            RepetitionPolicy::Auto => "auto".into(),
            RepetitionPolicy::Times(times) => times.to_string(),
        }
    }
}

impl RepetitionPolicy {
    /// Maximum number of repetitions.
    pub const MAX: u64 = 10_000;

    /// True if another repetition follows after this many.
    #[must_use]
    pub fn allows_another(self, times: u64) -> bool {
        match self {
            Self::Off => false,
            Self::Auto => true,
            Self::Times(most) => times < most,
        }
    }
}
