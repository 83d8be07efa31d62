//! The five pattern types of b_eff_io (Rabenseifner and Koniges, Euro-Par 2000, figure 2 and table 2): all that tells one from another
//! is in its descriptor.

use std::fmt;

use beff_backends::AccessKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::units::MIB;

/// A pattern type, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "u8", try_from = "u8")]
#[schemars(extend("maximum" = Self::COUNT - 1))]
pub enum PatternType {
    /// Type 0: each call scatters contiguous memory over chunks of a strided view, collectively.
    Scatter,
    /// Type 1: one chunk per collective call through the shared file pointer.
    Shared,
    /// Type 2: each rank has a file of its own.
    Separate,
    /// Type 3: each rank has a segment of the common file.
    Segmented,
    /// Type 4: as type 3, with collective calls.
    SegmentedCollective,
}

/// Where the chunks of the ranks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Chunks of all ranks in turn, in one file.
    Strided,
    /// A file for each rank.
    FilePerRank,
    /// One file with a segment for each rank, sized by the counts of the types without segments.
    Segments,
}

/// Which file pointer places a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePointer {
    /// That of the rank.
    Individual,
    /// The shared one, in the order of the ranks; a strided view stands in for it where it is not used.
    Shared,
}

/// A row of the pattern table. Sizes of [`M_PART`] stand for that of the partition.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Contiguous bytes on disk, l.
    pub chunk_bytes: u64,
    /// Contiguous bytes in memory per call and rank, L.
    pub call_bytes: u64,
    /// Time units, U; 0: warm-up.
    pub time_units: u32,
}

/// What makes a type this type.
#[derive(Debug)]
pub struct Descriptor {
    /// Name as releases of b_eff_io print it.
    pub name: &'static str,
    /// Name in the hints file of release 2.1.
    pub hint_word: &'static str,
    /// Name where columns are narrow.
    pub short_name: &'static str,
    /// Where the chunks lie.
    pub layout: Layout,
    /// What places a call.
    pub file_pointer: FilePointer,
    /// The ranks make their calls together.
    pub is_collective: bool,
    /// Weight in the average of an access method. Release 2.1 rewrites the types above 1 only.
    pub weight: u32,
    /// What its counts say about those of segments.
    pub segment_calls: SegmentCalls,
    /// Patterns in order of execution, without the fill-up.
    pub rows: &'static [Row],
    /// The row whose chunk size another row has: it has no place in the classic table.
    pub row_beside_table: Option<u8>,
    /// It ends with a pattern that fills the segment.
    pub has_fill_up: bool,
}

/// How many calls of a segment a call of a type without segments stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentCalls {
    /// None: the type has segments itself.
    None,
    /// One for each chunk of the call.
    Chunks,
    /// As many as this.
    Times(u64),
}

/// Stands for M_PART in the table.
pub const M_PART: u64 = 0;
const KB: u64 = 1 << 10;
const MB: u64 = MIB;

const fn row(chunk_bytes: u64, call_bytes: u64, time_units: u32) -> Row {
    Row { chunk_bytes, call_bytes, time_units }
}

const fn same(bytes: u64, time_units: u32) -> Row {
    row(bytes, bytes, time_units)
}

/// Rows with l = L, with the units of the two large sizes of types 1 to 4.
const fn same_sizes(units: [u32; 2]) -> [Row; 8] {
    [
        same(MB, 0),
        same(M_PART, units[0]),
        same(MB, units[1]),
        same(32 * KB, 1),
        same(KB, 1),
        same(32 * KB + 8, 1),
        same(KB + 8, 1),
        same(MB + 8, 2),
    ]
}

const SCATTER: [Row; 9] = [
    same(MB, 0),
    same(M_PART, 4),
    row(MB, 2 * MB, 4),
    same(MB, 4),
    row(32 * KB, MB, 2),
    row(KB, MB, 2),
    row(32 * KB + 8, MB + 256, 2),
    row(KB + 8, MB + 8 * KB, 2),
    same(MB + 8, 2),
];
const SHARED: [Row; 8] = same_sizes([4, 2]);
const OTHER: [Row; 8] = same_sizes([2, 2]);

/// One for each type, in order of their numbers.
const DESCRIPTORS: [Descriptor; PatternType::COUNT] = [
    Descriptor {
        name: "scatter",
        hint_word: "scatter",
        short_name: "scatter",
        layout: Layout::Strided,
        file_pointer: FilePointer::Individual,
        is_collective: true,
        weight: 2,
        segment_calls: SegmentCalls::Chunks,
        rows: &SCATTER,
        row_beside_table: Some(2),
        has_fill_up: false,
    },
    Descriptor {
        name: "shared",
        hint_word: "shared",
        short_name: "shared",
        layout: Layout::Strided,
        file_pointer: FilePointer::Shared,
        is_collective: true,
        weight: 1,
        segment_calls: SegmentCalls::Times(10),
        rows: &SHARED,
        row_beside_table: None,
        has_fill_up: false,
    },
    Descriptor {
        name: "separate",
        hint_word: "separated",
        short_name: "separate",
        layout: Layout::FilePerRank,
        file_pointer: FilePointer::Individual,
        is_collective: false,
        weight: 1,
        segment_calls: SegmentCalls::Times(1),
        rows: &OTHER,
        row_beside_table: None,
        has_fill_up: false,
    },
    Descriptor {
        name: "segmented",
        hint_word: "segmented",
        short_name: "segment",
        layout: Layout::Segments,
        file_pointer: FilePointer::Individual,
        is_collective: false,
        weight: 1,
        segment_calls: SegmentCalls::None,
        rows: &OTHER,
        row_beside_table: None,
        has_fill_up: true,
    },
    Descriptor {
        name: "seg-coll",
        hint_word: "seg_coll",
        short_name: "seg-coll",
        layout: Layout::Segments,
        file_pointer: FilePointer::Individual,
        is_collective: true,
        weight: 1,
        segment_calls: SegmentCalls::None,
        rows: &OTHER,
        row_beside_table: None,
        has_fill_up: true,
    },
];

impl PatternType {
    /// All of them, by number.
    pub const ALL: [Self; 5] =
        [Self::Scatter, Self::Shared, Self::Separate, Self::Segmented, Self::SegmentedCollective];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// What makes it this type.
    #[must_use]
    pub const fn descriptor(self) -> &'static Descriptor {
        &DESCRIPTORS[self as usize]
    }

    /// Its number in results and options.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its place in arrays of [`PatternType::COUNT`] elements.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name as releases of b_eff_io print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// Number and name.
    #[must_use]
    pub fn label(self) -> String {
        format!("{self} {}", self.name())
    }

    /// True if each rank has a segment of the file.
    #[must_use]
    pub fn has_segments(self) -> bool {
        self.descriptor().layout == Layout::Segments
    }

    /// True if each rank has a file of its own.
    #[must_use]
    pub fn has_private_files(self) -> bool {
        self.descriptor().layout == Layout::FilePerRank
    }

    /// True if chunks of all ranks lie between each other.
    #[must_use]
    pub fn is_strided(self) -> bool {
        self.descriptor().layout == Layout::Strided
    }

    /// True if the shared file pointer places its calls, where it is `used`.
    #[must_use]
    pub fn is_shared(self, used: bool) -> bool {
        used && self.descriptor().file_pointer == FilePointer::Shared
    }

    /// True if its ranks make their calls together.
    #[must_use]
    pub const fn is_collective(self) -> bool {
        self.descriptor().is_collective
    }

    /// How the ranks take part in its calls. Without the shared file pointer a collective call with a strided view takes its place.
    #[must_use]
    pub fn access_kind(self, shared_pointer: bool) -> AccessKind {
        match (self.is_shared(shared_pointer), self.is_collective()) {
            (true, _) => AccessKind::SharedOrdered,
            (false, true) => AccessKind::Collective,
            (false, false) => AccessKind::Independent,
        }
    }

    /// Calls of a segment that `calls` of this type with `chunks` chunks each stand for; None: it has segments itself.
    #[must_use]
    pub fn segment_calls(self, calls: u64, chunks: u64) -> Option<u64> {
        match self.descriptor().segment_calls {
            SegmentCalls::None => None,
            SegmentCalls::Chunks => Some(calls.saturating_mul(chunks)),
            SegmentCalls::Times(times) => Some(calls.saturating_mul(times)),
        }
    }

    /// How many patterns it has.
    #[must_use]
    pub const fn patterns(self) -> usize {
        self.descriptor().rows.len() + self.descriptor().has_fill_up as usize
    }
}

impl fmt::Display for PatternType {
    /// The number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl From<PatternType> for u8 {
    fn from(t: PatternType) -> Self {
        t.number()
    }
}

impl TryFrom<u8> for PatternType {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        let t = Self::ALL.get(usize::from(number)).copied();
        t.ok_or_else(|| format!("there is no pattern type {number}, only 0 to {}", Self::COUNT - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_kinds_and_names() {
        let of = |shared_pointer| PatternType::ALL.map(|t| t.access_kind(shared_pointer));
        let [strided, own] = [AccessKind::Collective, AccessKind::Independent];
        assert_eq!(of(true), [strided, AccessKind::SharedOrdered, own, own, strided]);
        assert_eq!(of(false), [strided, strided, own, own, strided]);
        assert_eq!(PatternType::ALL.map(PatternType::name).join(" "), "scatter shared separate segmented seg-coll");
        assert_eq!(PatternType::ALL.map(|t| t.descriptor().weight), [2, 1, 1, 1, 1]);
        for t in PatternType::ALL {
            assert_eq!(PatternType::try_from(t.number()), Ok(t));
            assert_eq!(serde_json::from_value::<PatternType>(serde_json::to_value(t).unwrap()).unwrap(), t);
        }
    }

    #[test]
    fn a_type_that_does_not_exist_is_refused() {
        let error = serde_json::from_str::<PatternType>("5").unwrap_err().to_string();
        assert!(error.contains("there is no pattern type 5, only 0 to 4"), "{error}");
    }

    #[test]
    fn counts_of_segments_follow_those_of_other_types() {
        let calls = PatternType::ALL.map(|t| t.segment_calls(7, 32));
        assert_eq!(calls, [Some(224), Some(70), Some(7), None, None]);
    }
}
