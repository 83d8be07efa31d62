//! The kinds of warnings of b_eff_io, in addition to those of all benchmarks.

use crate::frame::records::{kinds, AccessMethod};

kinds! {
    /// Part of the bytes read did not come from storage.
    READ_FROM_CACHE = "read_from_cache", 20,
    "For storage rates use --direct required, or a longer --time, so that more is written than fits into memory." {
        /// Backend name.
        backend: String,
        /// Number of partitions.
        partitions: u64,
        /// Bytes that the program read in these partitions.
        requested_bytes: u64,
        /// Bytes that came from storage.
        storage_bytes: u64,
    }

    /// Part of the records are those of a run that was cut.
    CONTINUED = "continued", 12,
    "For a valid value start a run that is not cut." {
        /// Journal of that run.
        journal: String,
        /// Number of its units that are kept.
        units: u64,
    }

    /// The data of one access method is smaller than the memory: a file system cache can hold all of it.
    SMALLER_THAN_MEMORY = "smaller_than_memory", 51,
    "Raise --time or --space until a first write is larger than the memory, or use --direct required." {
        /// Backend name.
        backend: String,
        /// Bytes of the first write.
        written_bytes: u64,
        /// Memory of all hosts.
        memory_bytes: u64,
    }

    /// Patterns ended because their share of the space was exhausted.
    ENDED_BY_SPACE = "ended_by_space", 31,
    "Free space under --path, raise --space, or lower --time." {
        /// Backend name.
        backend: String,
        /// Number of patterns.
        patterns: u64,
    }

    /// First writes of segments (types 3 and 4) were cut far beyond their time: the segments keep holes.
    TIME_GUARD = "time_guard", 30,
    "Types 0 to 2 determine the counts and were faster, perhaps into a cache: with a longer --time they measure the \
     storage, too." {
        /// Backend name.
        backend: String,
        /// Number of patterns, over all partitions.
        patterns: u64,
        /// First of these patterns.
        pattern: u8,
    }

    /// Pattern runs had less than 90 % of their scheduled time because of earlier overruns of the access method.
    SHORT_OF_TIME = "short_of_time", 50,
    "Long calls, syncs and opens are a smaller part of a longer --time; the schedule of --release 2.1 deducts nothing." {
        /// Backend name.
        backend: String,
        /// Number of patterns, over all partitions.
        patterns: u64,
        /// Pattern with the smallest share of its time.
        pattern: u8,
        /// Its access method.
        access: AccessMethod,
        /// Ranks of its partition.
        ranks: u64,
        /// Its scheduled time.
        scheduled_seconds: f64,
        /// Its time after the deduction.
        budget_seconds: f64,
    }

    /// Rates of patterns are based on fewer than 10 calls of a rank, or on less than 1 MiB.
    FEW_CALLS = "few_calls", 32,
    "Use a longer --time. Compare these cells (mark n) only by their first digit." {
        /// Backend name.
        backend: String,
        /// Number of pattern runs, without warm-up and fill-up.
        patterns: u64,
        /// Number of all with a rate.
        of: u64,
        /// Pattern with the fewest calls.
        pattern: u8,
        /// Its access method.
        access: AccessMethod,
        /// Ranks of its partition.
        ranks: u64,
        /// Its calls per rank.
        calls: u64,
        /// Its bytes of all ranks.
        moved_bytes: u64,
    }

    /// M_PART was smaller than defined.
    M_PART_REDUCED = "m_part_reduced", 35,
    "Free space under --path or raise --space; until then do not compare the M_PART rows with others." {
        /// Number of partitions.
        partitions: u64,
        /// Ranks of the partition with the smallest M_PART.
        ranks: u64,
        /// M_PART there by the definition.
        defined_bytes: u64,
        /// M_PART there in force.
        used_bytes: u64,
    }

    /// The real time of an access method exceeded its schedule.
    OVERRUN = "overrun", 60,
    "Request machine time by the real time; with a longer --time the overrun is a smaller part of it." {
        /// Backend name.
        backend: String,
        /// Number of access methods of partitions.
        methods: u64,
        /// Ranks of the partition with the longest overrun.
        ranks: u64,
        /// Access method with the longest overrun.
        access: AccessMethod,
        /// Its scheduled time.
        scheduled_seconds: f64,
        /// Its real time, inside the measured time.
        real_seconds: f64,
        /// Of the difference: syncs.
        sync_seconds: f64,
        /// Of the difference: opening and closing.
        open_close_seconds: f64,
        /// Of the difference: patterns driven by counts.
        counted_seconds: f64,
        /// Of the difference: loops driven by time. The sum of the parts may exceed the overrun: other patterns ended early.
        loop_seconds: f64,
    }

    /// The agreements cost more than 1 % of the time of patterns.
    DECISION_COST = "decision_cost", 61,
    "Batches are as long as the time allows: use a longer --time, fewer ranks than cores, or an idle machine." {
        /// Backend name.
        backend: String,
        /// Number of pattern runs.
        patterns: u64,
        /// Pattern with the largest share.
        pattern: u8,
        /// Its access method.
        access: AccessMethod,
        /// Ranks of its partition.
        ranks: u64,
        /// Its cost divided by its time.
        share: f64,
    }

    /// Patterns were not run.
    NOT_RUN = "not_run", 10,
    "Values that need these patterns are missing; use another --backend or other settings for them." {
        /// Backend name.
        backend: String,
        /// Number of patterns.
        patterns: u64,
        /// First reason.
        reason: String,
    }

    /// The sample of `--verify sample` could not be read: no file with this name.
    NOT_SAMPLED = "not_sampled", 62,
    "Only the buffers of the last reads were verified. Use a --path whose files every rank can open by name." {
        /// Backend name.
        backend: String,
        /// Number of patterns.
        patterns: u64,
        /// First reason.
        reason: String,
    }

    /// Transfers of a pattern were buffered although direct I/O was requested (`--direct auto`).
    BUFFERED = "buffered", 34,
    "Use --direct required to omit such patterns, or --direct off to treat all patterns alike." {
        /// Backend name.
        backend: String,
        /// Number of patterns.
        patterns: u64,
        /// First reason.
        reason: String,
    }

    /// More than 5 % of the pages remained in the page cache before a rewrite or read although they were to be dropped (`--cache drop`).
    CACHE_NOT_DROPPED = "cache_not_dropped", 33,
    "Check the marks of the reads. Close programs that map the files, run as root (vm.drop_caches), or use --direct \
     required." {
        /// Backend name.
        backend: String,
        /// Number of pattern runs affected.
        patterns: u64,
        /// Pattern before which most remained.
        pattern: u8,
        /// Its access method.
        access: AccessMethod,
        /// Ranks of its partition.
        ranks: u64,
        /// Bytes that remained.
        resident_bytes: u64,
        /// Bytes of its range.
        of_bytes: u64,
    }

    /// Direct I/O with transfer buffers of which less than nine tenths are in huge pages.
    SMALL_PAGES = "small_pages", 43,
    "Enable huge pages: `madvise` in /sys/kernel/mm/transparent_hugepage/enabled, anything but `deny` in shmem_enabled, \
     Linux 6.1 or later for memory that ranks share, and unfragmented free memory. Compare only with runs under the same conditions." {
        /// Number of ranks.
        ranks: u64,
        /// Rank with the least in huge pages.
        rank: u64,
        /// Transfer buffers of a rank.
        memory_bytes: u64,
        /// Of these in huge pages, on that rank.
        huge_page_bytes: u64,
        /// Reason, if known.
        reason: String,
    }

    /// More than half of the loads from the transfer buffers of a rank came from a CPU cache, one pass over the buffers after their last
    /// use.
    WARM_MEMORY = "warm_memory", 37,
    "Transfer buffers are at most 1/16 of the memory of a rank: give a larger --memory-per-process, or omit it. Rates through \
     the page cache are too high until then." {
        /// Rank with the smallest share of loads from memory.
        rank: u64,
        /// Share of the loads that came from memory.
        from_memory: f64,
        /// Size of its transfer buffers.
        memory_bytes: u64,
        /// Largest share of the caches of a rank.
        cache_share_bytes: u64,
    }

    /// Ranks were to read data written by another host (`--cache rank-shift`), but there is only one.
    RANK_SHIFT_ON_ONE_HOST = "rank_shift_on_one_host", 36,
    "Start ranks on two hosts or more, or use --cache drop." {
        /// Host name.
        host: String,
        /// Ranks of the largest partition.
        ranks: u64,
    }

    /// Repetitions of patterns differ systematically from the first measurement.
    REPEATS_DIFFER = "repeats_differ", 39,
    "A cache, or the state of the disk, has changed since the first measurement: check the sources of the reads, and repeat the run." {
        /// Backend name.
        backend: String,
        /// Number of patterns.
        patterns: u64,
        /// Number of repeated patterns.
        of: u64,
        /// Pattern with the largest difference.
        pattern: u8,
        /// Its access method.
        access: AccessMethod,
        /// Ranks of its partition.
        ranks: u64,
        /// Rate of its first measurement, 1e6 bytes/s.
        first_mb_per_second: f64,
        /// Geometric mean of its repetitions, 1e6 bytes/s.
        repetitions_mb_per_second: f64,
    }

    /// The confidence interval of b_eff_io is wider than requested by `--until`.
    NOT_NARROW = "not_narrow", 38,
    "With a longer --time the first measurement is longer, too, and more precise. Check the patterns with wide intervals." {
        /// Backend name.
        backend: String,
        /// Requested half-width, in percent of the value.
        requested_percent: f64,
        /// Actual half-width, in percent; None if unknown.
        half_width_percent: Option<f64>,
    }
}
