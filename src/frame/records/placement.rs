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
