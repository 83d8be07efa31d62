//! The five pattern types of b_eff_io (Rabenseifner and Koniges, Euro-Par 2000, figure 2 and table 2): all differences between them are in
//! their descriptors.

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

/// Arrangement of the chunks of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// Chunks of all ranks in turn, in one file.
    Strided,
    /// A file for each rank.
    FilePerRank,
    /// One file with a segment for each rank, sized by the counts of the types without segments.
    Segments,
}

/// File pointer that determines the offset of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePointer {
    /// Individual file pointer.
    Individual,
    /// Shared file pointer, in rank order; a strided view replaces it where it is not used.
    Shared,
}

/// A row of the pattern table; [`M_PART`] stands for the M_PART of the partition.
#[derive(Clone, Copy, Debug)]
pub struct PatternSizes {
    /// Contiguous bytes on disk, l.
    pub chunk_bytes: u64,
    /// Contiguous bytes in memory per call and rank, L.
    pub call_bytes: u64,
    /// Time units, U; 0: warm-up.
    pub time_units: u32,
}

/// Properties of a pattern type.
#[derive(Debug)]
pub struct TypeDescriptor {
    /// Name as releases of b_eff_io print it.
    pub name: &'static str,
    /// Name in the hints file of release 2.1.
    pub hint_word: &'static str,
    /// Name where columns are narrow.
    pub short_name: &'static str,
    /// Arrangement of the chunks.
    pub layout: FileLayout,
    /// File pointer of the calls.
    pub file_pointer: FilePointer,
    /// Calls are collective.
    pub is_collective: bool,
    /// Weight in the average of an access method. Release 2.1 rewrites only types whose weight exceeds 1.
    pub weight: u32,
    /// How its counts determine those of segments.
    pub segment_calls: SegmentCalls,
    /// Patterns in order of execution, without the fill-up.
    pub rows: &'static [PatternSizes],
    /// The row whose chunk size another row has: it is not in the classic table.
    pub row_outside_table: Option<u8>,
    /// A last pattern fills the segment.
    pub has_fill_up: bool,
}

/// Number of segment calls for a call of a type without segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentCalls {
    /// None: the type has segments itself.
    None,
    /// One for each chunk of the call.
    Chunks,
    /// A fixed number.
    Times(u64),
}

/// Stands for M_PART in the table.
pub const M_PART: u64 = 0;
const KB: u64 = 1 << 10;
const MB: u64 = MIB;

const fn row(chunk_bytes: u64, call_bytes: u64, time_units: u32) -> PatternSizes {
    PatternSizes { chunk_bytes, call_bytes, time_units }
}

const fn equal_sizes(bytes: u64, time_units: u32) -> PatternSizes {
    row(bytes, bytes, time_units)
}

/// Rows with l = L, with the units of the two large sizes of types 1 to 4.
const fn same_sizes(units: [u32; 2]) -> [PatternSizes; 8] {
    [
        equal_sizes(MB, 0),
        equal_sizes(M_PART, units[0]),
        equal_sizes(MB, units[1]),
        equal_sizes(32 * KB, 1),
        equal_sizes(KB, 1),
        equal_sizes(32 * KB + 8, 1),
        equal_sizes(KB + 8, 1),
        equal_sizes(MB + 8, 2),
    ]
}

const SCATTER: [PatternSizes; 9] = [
    equal_sizes(MB, 0),
    equal_sizes(M_PART, 4),
    row(MB, 2 * MB, 4),
    equal_sizes(MB, 4),
    row(32 * KB, MB, 2),
    row(KB, MB, 2),
    row(32 * KB + 8, MB + 256, 2),
    row(KB + 8, MB + 8 * KB, 2),
    equal_sizes(MB + 8, 2),
];
const SHARED: [PatternSizes; 8] = same_sizes([4, 2]);
const OTHER: [PatternSizes; 8] = same_sizes([2, 2]);

const DESCRIPTORS: [TypeDescriptor; PatternType::COUNT] = [
    TypeDescriptor {
        name: "scatter",
        hint_word: "scatter",
        short_name: "scatter",
        layout: FileLayout::Strided,
        file_pointer: FilePointer::Individual,
        is_collective: true,
        weight: 2,
        segment_calls: SegmentCalls::Chunks,
        rows: &SCATTER,
        row_outside_table: Some(2),
        has_fill_up: false,
    },
    TypeDescriptor {
        name: "shared",
        hint_word: "shared",
        short_name: "shared",
        layout: FileLayout::Strided,
        file_pointer: FilePointer::Shared,
        is_collective: true,
        weight: 1,
        segment_calls: SegmentCalls::Times(10),
        rows: &SHARED,
        row_outside_table: None,
        has_fill_up: false,
    },
    TypeDescriptor {
        name: "separate",
        hint_word: "separated",
        short_name: "separate",
        layout: FileLayout::FilePerRank,
        file_pointer: FilePointer::Individual,
        is_collective: false,
        weight: 1,
        segment_calls: SegmentCalls::Times(1),
        rows: &OTHER,
        row_outside_table: None,
        has_fill_up: false,
    },
    TypeDescriptor {
        name: "segmented",
        hint_word: "segmented",
        short_name: "segment",
        layout: FileLayout::Segments,
        file_pointer: FilePointer::Individual,
        is_collective: false,
        weight: 1,
        segment_calls: SegmentCalls::None,
        rows: &OTHER,
        row_outside_table: None,
        has_fill_up: true,
    },
    TypeDescriptor {
        name: "seg-coll",
        hint_word: "seg_coll",
        short_name: "seg-coll",
        layout: FileLayout::Segments,
        file_pointer: FilePointer::Individual,
        is_collective: true,
        weight: 1,
        segment_calls: SegmentCalls::None,
        rows: &OTHER,
        row_outside_table: None,
        has_fill_up: true,
    },
];

impl PatternType {
    /// All of them, by number.
    pub const ALL: [Self; 5] =
        [Self::Scatter, Self::Shared, Self::Separate, Self::Segmented, Self::SegmentedCollective];
    /// Number of types.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns its properties.
    #[must_use]
    pub const fn descriptor(self) -> &'static TypeDescriptor {
        &DESCRIPTORS[self as usize]
    }

    /// Its number in results and options.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Index in arrays of [`PatternType::COUNT`] elements.
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
        self.descriptor().layout == FileLayout::Segments
    }

    /// True if its chunks can be accessed in any order: types 0, 2 and 3. Type 1 has a shared file pointer, and type 4 is the collective form of
    /// type 3.
    #[must_use]
    pub fn has_orders(self) -> bool {
        matches!(self, Self::Scatter | Self::Separate | Self::Segmented)
    }

    /// True if each rank has a file of its own.
    #[must_use]
    pub fn has_private_files(self) -> bool {
        self.descriptor().layout == FileLayout::FilePerRank
    }

    /// True if the chunks of all ranks are interleaved.
    #[must_use]
    pub fn is_strided(self) -> bool {
        self.descriptor().layout == FileLayout::Strided
    }

    /// True if its calls use the shared file pointer, given whether that is `used`.
    #[must_use]
    pub fn uses_shared_pointer(self, used: bool) -> bool {
        used && self.descriptor().file_pointer == FilePointer::Shared
    }

    /// True if its calls are collective.
    #[must_use]
    pub const fn is_collective(self) -> bool {
        self.descriptor().is_collective
    }

    /// Kind of its calls. Without the shared file pointer, collective calls with a strided view are used.
    #[must_use]
    pub fn access_kind(self, shared_pointer: bool) -> AccessKind {
        match (self.uses_shared_pointer(shared_pointer), self.is_collective()) {
            (true, _) => AccessKind::SharedOrdered,
            (false, true) => AccessKind::Collective,
            (false, false) => AccessKind::Independent,
        }
    }

    /// Number of segment calls for `calls` of this type with `chunks` chunks each; None: it has segments itself.
    #[must_use]
    pub fn segment_calls(self, calls: u64, chunks: u64) -> Option<u64> {
        match self.descriptor().segment_calls {
            SegmentCalls::None => None,
            SegmentCalls::Chunks => Some(calls.saturating_mul(chunks)),
            SegmentCalls::Times(times) => Some(calls.saturating_mul(times)),
        }
    }

    /// Number of patterns.
    #[must_use]
    pub const fn patterns(self) -> usize {
        self.descriptor().rows.len() + self.descriptor().has_fill_up as usize
    }
}

impl fmt::Display for PatternType {
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
