//! Kinds of warnings common to all benchmarks.

use super::warning::kinds;
use super::{AccessMethod, BindState, OmittedPart, WarningKind};

kinds! {
    /// More ranks than cores on a host.
    OVERSUBSCRIBED = "oversubscribed", 2,
    "Start no more ranks per host than it has cores, or use more hosts." {
        /// Number of such hosts.
        hosts: u64,
        /// Host with the most ranks per core.
        host: String,
        /// Ranks on it.
        ranks: u64,
        /// Cores usable there.
        cores: u64,
    }

    /// Ranks of hosts with several ranks may run on several cores (where cores are unknown: on several CPUs, sharing one with another
    /// rank). Hosts with fewer CPUs than ranks are `oversubscribed` instead.
    NOT_BOUND = "not_bound", 30,
    "Bind each rank to a core: with Open MPI --bind-to core, with MPICH -bind-to core." {
        /// Number of such ranks.
        ranks: u64,
        /// The lowest of them.
        rank: u64,
        /// CPUs it may run on.
        cpus: String,
        /// Its host.
        host: String,
        /// Why it is not bound; None if not recorded.
        state: Option<BindState> = null,
    }

    /// Interference: more than 5 % of the CPU time was lost during measurements. Shares are 0 to 1.
    INTERFERENCE = "interference", 40,
    "Repeat the run on exclusive hosts. Numbers with mark b were measured with less CPU time." {
        /// Name of a measurement, in the singular.
        noun: String,
        /// Number of disturbed measurements.
        marked: u64,
        /// Number of observed measurements.
        of: u64,
        /// Over all observed measurements: steal time of the ranks' CPUs.
        steal_share: f64,
        /// The same: CPU time of other processes.
        other_process_share: f64,
        /// The same: run-queue wait of the rank that waited longest, as a share of the time.
        run_queue_wait_share: f64,
        /// Measurement with the largest share.
        worst: String,
        /// Largest of the three shares there.
        worst_share: f64,
    }

    /// Requested hints are not listed by the library as in force.
    HINT_NOT_GRANTED = "hint_not_granted", 41,
    "Check its spelling, and whether this MPI library and file system support it." {
        /// Backend name.
        backend: String,
        /// Number of different hints.
        hints: u64,
        /// Key of the first.
        key: String,
        /// Requested value.
        requested: String,
        /// Value in force, if any.
        granted: Option<String>,
    }

    /// Dropping the files' pages from the page cache did not succeed, so the page caches of whole hosts were dropped.
    ALL_CACHES_DROPPED = "all_caches_dropped", 70,
    "On a shared machine use --cache keep or --direct required, or do not run as root." {
        /// Backend name.
        backend: String,
    }

    /// The file system is in memory.
    MEMORY_FILE_SYSTEM = "memory_file_system", 1,
    "Set --path to a directory on the storage to be measured." {
        /// Type of the file system.
        fs_type: String,
    }

    /// Memory ballooning: data passes the page cache of virtual machines whose hypervisor reclaims free memory.
    MEMORY_BALLOONING = "memory_ballooning", 6,
    "Use --direct required with posix or uring, compare several runs, or request a machine without free page reporting." {
        /// Number of such hosts.
        hosts: u64,
        /// Host with the largest ratio of first to second touch.
        host: String,
        /// Mechanism that reclaims memory.
        mechanism: String,
        /// First touch of a page of new memory, at the start of the run.
        first_touch_ns: f64,
        /// Touch of a page of the same amount of memory, allocated again at once.
        touch_again_ns: f64,
    }

    /// Storage drift: the rate at the end of the run differs from that at the start by more than 10 %, by a probe of both.
    STORAGE_DRIFT = "storage_drift", 5,
    "Numbers from the start and the end of the run are not comparable. Repeat it on unshared storage, and compare several runs." {
        /// Direction with the largest drift: `write` or `read`.
        access: AccessMethod,
        /// At the start, 1e6 bytes/s.
        start_mb_per_second: f64,
        /// At the end.
        end_mb_per_second: f64,
        /// End divided by start.
        ratio: f64,
        /// Confidence interval of the ratio: 95 % for both directions together.
        interval: [f64; 2],
    }

    /// The time limit ended the run, or left too little time for parts of it.
    TIME_LIMIT = "time_limit", 7,
    "Give the job more time, or use a shorter --time." {
        /// `--time-limit`, or what reported the end of the batch job.
        source: String,
        /// Time from the start of the run to the limit.
        limit_seconds: Option<f64>,
        /// Omitted parts, in the order of omission.
        omitted: Vec<OmittedPart>,
        /// The limit ended the run before everything was measured.
        is_ended: bool,
        /// T that would fit; None: the given one, or none is scheduled.
        fitting_time_seconds: Option<f64>,
    }

    /// Files could not be removed.
    FILES_LEFT = "files_left", 42,
    "Inspect the directory and remove the files by hand." {
        /// Directory.
        path: String,
        /// Why.
        reason: String,
    }

    /// The journal could not be written completely; a killed run would have lost all later records.
    JOURNAL_BROKEN = "journal_broken", 3,
    "Free space in the directory of --out; use the .json of this run, not its journal, which is incomplete." {
        /// The journal.
        path: String,
        /// Why.
        reason: String,
    }

    /// The journal from which this result was read ends inside a line.
    JOURNAL_TORN = "journal_torn", 4,
    "The record of that line is lost, all earlier records are kept. Repeat the run for a complete result." {
        /// Number of the truncated line, from 1.
        line: u64,
        /// Bytes of that line in the journal.
        bytes: u64,
    }
}

/// Finds a kind by name among those of a benchmark and the common ones.
#[must_use]
pub fn find_kind(own: &[WarningKind], name: &str) -> Option<WarningKind> {
    own.iter().chain(KINDS).find(|kind| kind.name == name).copied()
}
