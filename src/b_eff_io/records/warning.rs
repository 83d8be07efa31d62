//! Warnings of b_eff_io: what the reader of its numbers must know. At most one of a kind for each backend, with the worst
//! case named, so that a page of warnings stays readable whatever the number of patterns, partitions and hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::{Access, Warning};

/// One warning. The values are a closed set; text is made when shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum IoWarning {
    /// Part of the bytes read did not come from storage.
    ReadFromCache {
        /// Backend name.
        backend: String,
        /// In how many partitions.
        partitions: u64,
        /// Bytes the program read in these partitions.
        asked_bytes: u64,
        /// Bytes that came from storage.
        storage_bytes: u64,
    },
    /// The data of one access method is smaller than the memory: a file system cache may hold all of it.
    SmallerThanMemory {
        /// Backend name.
        backend: String,
        /// Bytes of the first write.
        written_bytes: u64,
        /// Memory of all hosts.
        memory_bytes: u64,
    },
    /// Patterns ended because their share of the space was used.
    EndedBySpace {
        /// Backend name.
        backend: String,
        /// How many.
        patterns: u64,
    },
    /// First writes of segments (types 3 and 4) were cut short, far beyond their time: the segments keep holes.
    TimeGuard {
        /// Backend name.
        backend: String,
        /// How many, over all partitions.
        patterns: u64,
        /// Number of the first of them.
        pattern: u8,
    },
    /// Pattern runs had less than 90 % of their scheduled time, because earlier ones of the access method took more than theirs.
    ShortOfTime {
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
    },
    /// Rates of patterns rest on fewer than 10 calls of a rank, or on less than 1 MiB.
    FewCalls {
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
    },
    /// M_PART had to be smaller than the definition says.
    MPartReduced {
        /// In how many partitions.
        partitions: u64,
        /// Ranks of the partition with the smallest M_PART.
        ranks: u64,
        /// M_PART there by the definition.
        wanted_bytes: u64,
        /// M_PART there in force.
        used_bytes: u64,
    },
    /// The real time of an access method went beyond its schedule.
    Overrun {
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
    },
    /// The decisions cost more than 1 % of the time of patterns.
    DecisionCost {
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
    },
    /// Patterns were not run.
    NotRun {
        /// Backend name.
        backend: String,
        /// How many.
        patterns: u64,
        /// First reason.
        reason: String,
    },
    /// The sample of `--verify ring` could not be read: no file by this name.
    NotSampled {
        /// Backend name.
        backend: String,
        /// How many patterns.
        patterns: u64,
        /// First reason.
        reason: String,
    },
    /// Transfers of a pattern were buffered although direct ones were asked for (`--direct auto`).
    Buffered {
        /// Backend name.
        backend: String,
        /// How many patterns.
        patterns: u64,
        /// First reason.
        reason: String,
    },
    /// More than 5 % of the pages stayed in the page cache before a rewrite or read although they were to be dropped (`--cache drop`).
    CacheNotDropped {
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
    },
    /// Direct I/O from transfer memory of which less than nine tenths are in huge pages.
    SmallPages {
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
    },
    /// More than half of the loads from the transfer memory of a rank came from a cache, a lap after it was used.
    WarmMemory {
        /// The rank whose memory was the warmest.
        rank: u64,
        /// Part of the loads that came from memory.
        from_memory: f64,
        /// Transfer memory that it walks through.
        memory_bytes: u64,
        /// Largest share of the caches that a rank has.
        cache_share_bytes: u64,
    },
    /// Ranks were to read what another host has written (`--cache rank-shift`), and there is only one.
    RankShiftOnOneHost {
        /// Its name.
        host: String,
        /// Ranks of the largest partition.
        ranks: u64,
    },
    /// Patterns measured again were faster or slower each time than the first time.
    RepeatsDiffer {
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
    },
    /// The interval of b_eff_io did not become as narrow as `--until` asked.
    NotNarrow {
        /// Backend name.
        backend: String,
        /// How far it was to reach at most, in percent of the value.
        wanted_percent: f64,
        /// How far it reaches; None: it is not known.
        reached_percent: Option<f64>,
    },
    /// A warning that every benchmark knows.
    #[serde(untagged)]
    Shared(Warning),
}

impl From<Warning> for IoWarning {
    fn from(warning: Warning) -> Self {
        Self::Shared(warning)
    }
}
