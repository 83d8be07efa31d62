//! Warnings: what the reader of the numbers must know. At most one of a kind for each backend, with the worst case
//! named, so that a page of warnings stays readable whatever the number of patterns, partitions and hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Access, BindState};

/// Something the reader of the numbers must know. The values are a closed set; text is made when shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Warning {
    /// More ranks than cores on a host.
    Oversubscribed {
        /// How many hosts.
        hosts: u64,
        /// Name of the host with the most ranks per core.
        host: String,
        /// Ranks on it.
        ranks: u64,
        /// Cores usable there.
        cores: u64,
    },
    /// Ranks of hosts with several of them may run on several cores (where cores are not known: on several CPUs, and share one with
    /// another rank). Hosts with fewer CPUs than ranks are `oversubscribed` instead.
    NotBound {
        /// How many.
        ranks: u64,
        /// The first of them.
        rank: u64,
        /// CPUs it may run on.
        cpus: String,
        /// Its host.
        host: String,
        /// Why it is not bound; None: not recorded.
        #[serde(default)]
        state: Option<BindState>,
    },
    /// Others had more than 5 % of the machine during measurements. Shares are 0 to 1.
    MachineShared {
        /// What one of them is called, in the singular.
        noun: String,
        /// How many.
        marked: u64,
        /// Of how many that were watched.
        of: u64,
        /// Over all that were watched: taken by the hypervisor, of the CPUs of the ranks.
        steal_share: f64,
        /// The same: used by other programs.
        others_share: f64,
        /// Over all: how long the rank that waited longest was ready and had no CPU, of the time.
        waited_share: f64,
        /// Name of the one with the largest share.
        worst: String,
        /// Largest of the three shares there.
        worst_share: f64,
    },
    /// Hints were asked for and the library does not list them as in force.
    HintNotGranted {
        /// Backend name.
        backend: String,
        /// How many different ones.
        hints: u64,
        /// Key of the first.
        key: String,
        /// Value asked for.
        requested: String,
        /// Value in force, if any.
        granted: Option<String>,
    },
    /// The files' pages did not leave the page cache by themselves, so the cached pages of whole hosts were dropped.
    AllCachesDropped {
        /// Backend name.
        backend: String,
    },
    /// The file system lives in memory.
    MemoryFileSystem {
        /// Its type.
        fs_type: String,
    },
    /// Data goes through the page cache of virtual machines whose own host takes free memory back.
    MemoryTakenBack {
        /// How many hosts.
        hosts: u64,
        /// Name of the one where a first touch cost most beside the next.
        host: String,
        /// What takes it.
        by: String,
        /// A page of new memory, at the start of the run.
        first_touch_ns: f64,
        /// A page of as much memory once more.
        touch_again_ns: f64,
    },
    /// The storage was another one at the end of the run than at its start, by more than 10 %, by a probe of both ends.
    StorageChanged {
        /// The direction that moved most: `write` or `read`.
        access: Access,
        /// At the start, 1e6 bytes/s.
        start_mb_per_second: f64,
        /// At the end.
        end_mb_per_second: f64,
        /// End divided by start.
        ratio: f64,
        /// Its interval: of both directions together 95 %.
        interval: [f64; 2],
    },
    /// The file could not be removed.
    FilesLeft {
        /// Directory.
        path: String,
        /// Why.
        reason: String,
    },
    /// The journal could not be written to its end; a killed run would have lost what came after.
    JournalBroken {
        /// The journal.
        path: String,
        /// Why.
        reason: String,
    },
    /// The journal this result was read from ends inside a line.
    JournalTorn {
        /// Number of the torn line, from 1.
        line: u64,
        /// Bytes of it that are there.
        bytes: u64,
    },
}
