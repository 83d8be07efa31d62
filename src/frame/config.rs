//! What several benchmarks can be told: how files are accessed, what is done about the page cache, where ranks run, and what is measured
//! again.

use crate::frame::backends;
use beff_backends::Direct;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Direct I/O policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectPolicy {
    /// What suits the backend: auto for uring, off for posix.
    ByBackend,
    /// Only direct transfers; what cannot be direct is not run.
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
            (Self::ByBackend, name) if backends::can(name, |row| row.is_direct_by_default) => Self::Auto,
            (Self::ByBackend, _) => Self::Off,
            (policy, _) => policy,
        }
    }
}

/// What is done about the page cache, so that a read tells about the storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CachePolicy {
    /// Cached pages are dropped before every rewrite and read pattern, outside the clock.
    Drop,
    /// Buffered transfers of posix and uring drop their pages themselves (RWF_DONTCACHE).
    Dontcache,
    /// Ranks read what a rank of another host has written.
    RankShift,
    /// Nothing.
    #[default]
    Keep,
}

/// What is done about ranks that may run on several CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BindPolicy {
    /// Ranks that share a host and were not bound get a CPU each, if there is one for each.
    Auto,
    /// Every rank gets a CPU of its own, or the run is refused.
    Core,
    /// Nothing.
    #[default]
    None,
}

impl BindPolicy {
    /// The word of the command line.
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
    /// True if pages may be given back to the kernel where data is compared.
    #[must_use]
    pub fn gives_pages_back(self) -> bool {
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

/// What is measured again after everything was measured once, to know how sure it is: `off`, `auto` (as much as the time allows), or so
/// many times more at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^(off|auto|[1-9][0-9]*)$"))]
pub enum Repeat {
    /// Nothing.
    #[default]
    Off,
    /// As much as the time allows.
    Auto,
    /// So many times more at most.
    Times(u64),
}

impl TryFrom<String> for Repeat {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match word.as_str() {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            number => match number.parse() {
                Ok(times) if (1..=Self::MOST).contains(&times) => Ok(Self::Times(times)),
                _ => Err(format!("write auto, off, or how often, 1 to {}", Self::MOST)),
            },
        }
    }
}

impl From<Repeat> for String {
    fn from(repeat: Repeat) -> Self {
        match repeat {
            Repeat::Off => "off".into(),
            Repeat::Auto => "auto".into(),
            Repeat::Times(times) => times.to_string(),
        }
    }
}

impl Repeat {
    /// Times more at most.
    pub const MOST: u64 = 10_000;

    /// Whether anything is measured again after so many times more.
    #[must_use]
    pub fn goes_on_after(self, times: u64) -> bool {
        match self {
            Self::Off => false,
            Self::Auto => true,
            Self::Times(most) => times < most,
        }
    }
}
