//! The kinds of warnings that every benchmark knows.

use super::warning::kinds;
use super::{Access, BindState, Kind};

kinds! {
    /// More ranks than cores on a host.
    OVERSUBSCRIBED = "oversubscribed", 2,
    "Start no more ranks per host than it has cores, or use more hosts." {
        /// How many hosts.
        hosts: u64,
        /// Name of the host with the most ranks per core.
        host: String,
        /// Ranks on it.
        ranks: u64,
        /// Cores usable there.
        cores: u64,
    }

    /// Ranks of hosts with several of them may run on several cores (where cores are not known: on several CPUs, and share one with
    /// another rank). Hosts with fewer CPUs than ranks are `oversubscribed` instead.
    NOT_BOUND = "not_bound", 30,
    "Bind each rank to a core: with Open MPI --bind-to core, with MPICH -bind-to core." {
        /// How many.
        ranks: u64,
        /// The first of them.
        rank: u64,
        /// CPUs it may run on.
        cpus: String,
        /// Its host.
        host: String,
        /// Why it is not bound; None: not recorded.
        state: Option<BindState> = null,
    }

    /// Others had more than 5 % of the machine during measurements. Shares are 0 to 1.
    MACHINE_SHARED = "machine_shared", 40,
    "Repeat it on hosts that nobody else uses. Numbers with mark b are those of a smaller machine." {
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
    }

    /// Hints were asked for and the library does not list them as in force.
    HINT_NOT_GRANTED = "hint_not_granted", 41,
    "Check its spelling, and whether this MPI library and file system know it." {
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
    }

    /// The files' pages did not leave the page cache by themselves, so the cached pages of whole hosts were dropped.
    ALL_CACHES_DROPPED = "all_caches_dropped", 70,
    "On a machine that others use, take --cache keep or --direct required, or do not run as root." {
        /// Backend name.
        backend: String,
    }

    /// The file system lives in memory.
    MEMORY_FILE_SYSTEM = "memory_file_system", 1,
    "Give --path a directory on the storage that is to be measured." {
        /// Its type.
        fs_type: String,
    }

    /// Data goes through the page cache of virtual machines whose own host takes free memory back.
    MEMORY_TAKEN_BACK = "memory_taken_back", 6,
    "Take --direct required with posix or uring, compare several runs, or ask for a machine without free page reporting." {
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
    }

    /// The storage was another one at the end of the run than at its start, by more than 10 %, by a probe of both ends.
    STORAGE_CHANGED = "storage_changed", 5,
    "Numbers of its begin and its end do not belong together. Repeat it when nobody else uses the storage, and compare several runs." {
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
    }

    /// The file could not be removed.
    FILES_LEFT = "files_left", 42,
    "Look into the directory, and remove by hand what nobody needs." {
        /// Directory.
        path: String,
        /// Why.
        reason: String,
    }

    /// The journal could not be written to its end; a killed run would have lost what came after.
    JOURNAL_BROKEN = "journal_broken", 3,
    "Free space where --out writes; use the .json of this run, not its journal, which ends early." {
        /// The journal.
        path: String,
        /// Why.
        reason: String,
    }

    /// The journal this result was read from ends inside a line.
    JOURNAL_TORN = "journal_torn", 4,
    "The record of that line is lost, all earlier ones are kept. Repeat the run for a complete result." {
        /// Number of the torn line, from 1.
        line: u64,
        /// Bytes of it that are there.
        bytes: u64,
    }
}

/// The kind of this name, of a benchmark's own or of those that every one knows.
#[must_use]
pub fn find(own: &[Kind], name: &str) -> Option<Kind> {
    own.iter().chain(KINDS).find(|kind| kind.name == name).copied()
}
