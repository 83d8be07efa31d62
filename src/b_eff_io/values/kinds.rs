//! The kinds of warnings of b_eff_io, besides those that every benchmark knows.

use crate::frame::records::{kinds, Access};

kinds! {
    /// Part of the bytes read did not come from storage.
    READ_FROM_CACHE = "read_from_cache", 20,
    "For storage figures use --direct required, or a longer --time, so that more is written than memory holds." {
        /// Backend name.
        backend: String,
        /// In how many partitions.
        partitions: u64,
        /// Bytes the program read in these partitions.
        asked_bytes: u64,
        /// Bytes that came from storage.
        storage_bytes: u64,
    }

    /// The data of one access method is smaller than the memory: a file system cache may hold all of it.
    SMALLER_THAN_MEMORY = "smaller_than_memory", 51,
    "Raise --time or --space until a first write is larger than the memory, or use --direct required." {
        /// Backend name.
        backend: String,
        /// Bytes of the first write.
        written_bytes: u64,
        /// Memory of all hosts.
        memory_bytes: u64,
    }

    /// Patterns ended because their share of the space was used.
    ENDED_BY_SPACE = "ended_by_space", 31,
    "Free space under --path, raise --space, or lower --time." {
        /// Backend name.
        backend: String,
        /// How many.
        patterns: u64,
    }

    /// First writes of segments (types 3 and 4) were cut short, far beyond their time: the segments keep holes.
    TIME_GUARD = "time_guard", 30,
    "Types 0 to 2 set the counts and were faster, perhaps into a cache: with a longer --time they show the storage \
     too." {
        /// Backend name.
        backend: String,
        /// How many, over all partitions.
        patterns: u64,
        /// Number of the first of them.
        pattern: u8,
    }

    /// Pattern runs had less than 90 % of their scheduled time, because earlier ones of the access method took more than theirs.
    SHORT_OF_TIME = "short_of_time", 50,
    "Long calls, syncs and openings are a smaller part of a longer --time; the schedule of --release 2.1 takes nothing." {
        /// Backend name.
        backend: String,
        /// How many, over all partitions.
        patterns: u64,
        /// Pattern with the smallest share of its time.
        pattern: u8,
        /// Its access method.
        access: Access,
        /// Ranks of its partition.
        ranks: u64,
        /// Its scheduled time.
        scheduled_seconds: f64,
        /// What was left of it.
        budget_seconds: f64,
    }

    /// Rates of patterns rest on fewer than 10 calls of a rank, or on less than 1 MiB.
    FEW_CALLS = "few_calls", 32,
    "Use a longer --time. Compare these cells (mark n) only by their first digit." {
        /// Backend name.
        backend: String,
        /// How many pattern runs, without warm-up and fill-up.
        patterns: u64,
        /// Of all that have a rate.
        of: u64,
        /// Pattern with the fewest calls.
        pattern: u8,
        /// Its access method.
        access: Access,
        /// Ranks of its partition.
        ranks: u64,
        /// Its calls of a rank.
        calls: u64,
        /// Its bytes of all ranks.
        moved_bytes: u64,
    }

    /// M_PART had to be smaller than the definition says.
    M_PART_REDUCED = "m_part_reduced", 35,
    "Free space under --path or raise --space; until then do not compare the M_PART rows with others." {
        /// In how many partitions.
        partitions: u64,
        /// Ranks of the partition with the smallest M_PART.
        ranks: u64,
        /// M_PART there by the definition.
        wanted_bytes: u64,
        /// M_PART there in force.
        used_bytes: u64,
    }

    /// The real time of an access method went beyond its schedule.
    OVERRUN = "overrun", 60,
    "Ask for machine time by the real time; with a longer --time the overrun is a smaller part of it." {
        /// Backend name.
        backend: String,
        /// How many access methods of partitions.
        methods: u64,
        /// Ranks of the partition with the longest overrun.
        ranks: u64,
        /// Access method with the longest overrun.
        access: Access,
        /// Its scheduled time.
        scheduled_seconds: f64,
        /// Its real time, inside the clock.
        real_seconds: f64,
        /// Of the difference: syncs.
        sync_seconds: f64,
        /// Of the difference: opening and closing.
        open_close_seconds: f64,
        /// Of the difference: patterns driven by counts.
        counted_seconds: f64,
        /// Of the difference: loops driven by time. Together the parts may be more than the overrun: other patterns
        /// ended early.
        loop_seconds: f64,
    }

    /// The decisions cost more than 1 % of the time of patterns.
    DECISION_COST = "decision_cost", 61,
    "Batches are as long as the time allows: use a longer --time, fewer ranks than cores, or an idle machine." {
        /// Backend name.
        backend: String,
        /// How many runs of patterns.
        patterns: u64,
        /// Pattern with the largest share.
        pattern: u8,
        /// Its access method.
        access: Access,
        /// Ranks of its partition.
        ranks: u64,
        /// Cost divided by the pattern's time, there.
        share: f64,
    }

    /// Patterns were not run.
    NOT_RUN = "not_run", 10,
    "Values that need these patterns are missing; use another --backend or other settings for them." {
        /// Backend name.
        backend: String,
        /// How many.
        patterns: u64,
        /// First reason.
        reason: String,
    }

    /// The sample of `--verify ring` could not be read: no file by this name.
    NOT_SAMPLED = "not_sampled", 62,
    "Only what the last reads left in memory was compared. Use a --path whose files every rank can open by their names." {
        /// Backend name.
        backend: String,
        /// How many patterns.
        patterns: u64,
        /// First reason.
        reason: String,
    }

    /// Transfers of a pattern were buffered although direct ones were asked for (`--direct auto`).
    BUFFERED = "buffered", 34,
    "Use --direct required to leave such patterns out, or --direct off to treat all patterns alike." {
        /// Backend name.
        backend: String,
        /// How many patterns.
        patterns: u64,
        /// First reason.
        reason: String,
    }

    /// More than 5 % of the pages stayed in the page cache before a rewrite or read although they were to be dropped (`--cache drop`).
    CACHE_NOT_DROPPED = "cache_not_dropped", 33,
    "Look at the marks of the reads. Close programs that map the files, run as root (vm.drop_caches), or use --direct \
     required." {
        /// Backend name.
        backend: String,
        /// Before how many runs of patterns.
        patterns: u64,
        /// Pattern before which most stayed.
        pattern: u8,
        /// Its access method.
        access: Access,
        /// Ranks of its partition.
        ranks: u64,
        /// Bytes that stayed there.
        resident_bytes: u64,
        /// Bytes of its range.
        of_bytes: u64,
    }

    /// Direct I/O from transfer memory of which less than nine tenths are in huge pages.
    SMALL_PAGES = "small_pages", 43,
    "Let the kernel have huge pages: `madvise` in /sys/kernel/mm/transparent_hugepage/enabled, anything but `deny` in shmem_enabled, \
     Linux 6.1 or later for memory that ranks share, and free memory that is not in pieces. Compare with runs that had the same." {
        /// How many ranks.
        ranks: u64,
        /// The rank with the least in huge pages.
        rank: u64,
        /// Transfer memory of a rank.
        memory_bytes: u64,
        /// Of it in huge pages, there.
        huge_page_bytes: u64,
        /// What is known of why.
        reason: String,
    }

    /// More than half of the loads from the transfer memory of a rank came from a cache, a lap after it was used.
    WARM_MEMORY = "warm_memory", 37,
    "Memory of 1/16 of a rank's at most is used for this: give a larger --memory-per-process, or leave it out. Rates through the \
     page cache are too high meanwhile." {
        /// The rank whose memory was the warmest.
        rank: u64,
        /// Part of the loads that came from memory.
        from_memory: f64,
        /// Transfer memory that it walks through.
        memory_bytes: u64,
        /// Largest share of the caches that a rank has.
        cache_share_bytes: u64,
    }

    /// Ranks were to read what another host has written (`--cache rank-shift`), and there is only one.
    RANK_SHIFT_ON_ONE_HOST = "rank_shift_on_one_host", 36,
    "Start ranks on two hosts or more, or use --cache drop." {
        /// Its name.
        host: String,
        /// Ranks of the largest partition.
        ranks: u64,
    }

    /// Patterns measured again were faster or slower each time than the first time.
    REPEATS_DIFFER = "repeats_differ", 39,
    "A cache, or the state of the disk, has changed after the first pass: look at where the reads came from, and repeat the run." {
        /// Backend name.
        backend: String,
        /// How many patterns.
        patterns: u64,
        /// Of so many that were measured again.
        of: u64,
        /// The pattern farthest off.
        pattern: u8,
        /// Its access method.
        access: Access,
        /// Ranks of its partition.
        ranks: u64,
        /// Its rate in the first pass, 1e6 bytes/s.
        first_mb_per_second: f64,
        /// Geometric mean of its repeats, 1e6 bytes/s.
        repeats_mb_per_second: f64,
    }

    /// The interval of b_eff_io did not become as narrow as `--until` asked.
    NOT_NARROW = "not_narrow", 38,
    "With a longer --time the first pass is longer too, and its value surer. Look at the patterns with wide intervals." {
        /// Backend name.
        backend: String,
        /// How far it was to reach at most, in percent of the value.
        wanted_percent: f64,
        /// How far it reaches; None: it is not known.
        reached_percent: Option<f64>,
    }
}
