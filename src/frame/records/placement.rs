//! Where ranks run and which way their messages take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where one rank runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Index into the hosts of the machine.
    pub host: u64,
    /// CPUs it may run on, as a list such as `0-3,8`.
    pub cpus: String,
    /// Physical cores that these are; None: not known. With more than one the kernel may move the rank.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub cores: Option<u64>,
}

/// How ranks are numbered over the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Numbering {
    /// All on one host.
    OneHost,
    /// One rank on each host: nothing to choose.
    OneEach,
    /// Neighbouring ranks share a host until it is full.
    Sequential,
    /// Rank r is on host r modulo their number.
    RoundRobin,
    /// Neither.
    Mixed,
}

/// What is known of the way messages take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transport {
    /// What the library's version text says, e.g. `ch4:ofi`; None: nothing.
    pub device: Option<String>,
    /// Components and communication libraries loaded after the start, e.g. `btl vader`, `libucp`.
    pub loaded: Vec<String>,
    /// Network interfaces of the first host that are up, loopback left out.
    pub interfaces: Vec<String>,
}
