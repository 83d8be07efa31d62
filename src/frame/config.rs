//! What several benchmarks can be told: how files are accessed, what is done about the page cache, and where ranks run.

use crate::frame::backends;
use beff_backends::Direct;
use serde::{Deserialize, Serialize};

/// Direct I/O policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CachePolicy {
    /// Cached pages are dropped before every rewrite and read pattern, outside the clock.
    Drop,
    /// Buffered transfers drop their pages themselves (RWF_DONTCACHE).
    Dontcache,
    /// Ranks read what a rank of another host has written.
    RankShift,
    /// Nothing. What a result without this field was measured with.
    #[default]
    Keep,
}

/// What is done about ranks that may run on several CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindPolicy {
    /// Ranks that share a host and were not bound get a CPU each, if there is one for each.
    Auto,
    /// Every rank gets a CPU of its own, or the run is refused.
    Core,
    /// Nothing. What a result without this field was measured with.
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
