//! The 43 patterns of b_eff_io (Rabenseifner and Koniges, Euro-Par 2000, table 2; numbered as in release 2.1).
//!
//! The order matters: where a pattern begins, and so its alignment, follows from everything the earlier patterns of
//! its type wrote.

use beff_backends::AccessKind;
use serde::{Deserialize, Serialize};

use super::{PlanError, Role};
use crate::b_eff_io::config::Release;
use crate::frame::units::MIB;

/// Number of patterns.
pub const PATTERNS: usize = 43;

/// Smallest M_PART.
pub const MIN_M_PART_BYTES: u64 = 2 * MIB;

/// Largest M_PART of release 2.1.
const MAX_M_PART_BYTES_2_1: u64 = 1 << 30;

/// How far M_PART may be from its definition, as a share of it.
pub const M_PART_DEVIATION: f64 = 0.01;

/// Elements have 8 bytes: every size is a multiple.
const ELEMENT_POWER: u32 = 3;

/// Sum of U of all types for one access method.
pub const TIME_UNITS_PER_ACCESS: u32 = 64;

/// First pattern number of each type, and one behind the last.
const FIRST: [u8; 6] = [0, 9, 17, 25, 34, 43];

/// Stands for M_PART in the tables.
const M_PART: u64 = 0;
const KB: u64 = 1 << 10;
const MB: u64 = MIB;

/// (l, L, U) of type 0 in order.
const SCATTER: [(u64, u64, u32); 9] = [
    (MB, MB, 0),
    (M_PART, M_PART, 4),
    (MB, 2 * MB, 4),
    (MB, MB, 4),
    (32 * KB, MB, 2),
    (KB, MB, 2),
    (32 * KB + 8, MB + 256, 2),
    (KB + 8, MB + 8 * KB, 2),
    (MB + 8, MB + 8, 2),
];

/// l = L of types 1 to 4 in order.
const CHUNKS: [u64; 8] = [MB, M_PART, MB, 32 * KB, KB, 32 * KB + 8, KB + 8, MB + 8];

/// U of type 1, and of types 2 to 4, beside [`CHUNKS`].
const SHARED_UNITS: [u32; 8] = [0, 4, 2, 1, 1, 1, 1, 2];
const OTHER_UNITS: [u32; 8] = [0, 2, 2, 1, 1, 1, 1, 2];

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternSpec {
    /// 0 to 42.
    pub number: u8,
    /// 0 to 4.
    pub pattern_type: u8,
    /// Contiguous bytes on disk, l. 0 for fill-ups: their size follows from the segment
    /// ([`super::segments::Segment::spec`]).
    pub chunk_bytes: u64,
    /// Contiguous bytes in memory per call and rank, L; a multiple of l.
    pub call_bytes: u64,
    /// Time units, U.
    pub time_units: u32,
    /// What it is there for.
    pub role: Role,
}

/// The table for a given M_PART, by pattern number.
#[must_use]
pub fn patterns(m_part_bytes: u64) -> [PatternSpec; PATTERNS] {
    let size = |bytes: u64| if bytes == M_PART { m_part_bytes } else { bytes };
    std::array::from_fn(|number| {
        let number = number as u8;
        let pattern_type = type_of(number);
        let position = usize::from(number - FIRST[usize::from(pattern_type)]);
        let row = match pattern_type {
            0 => Some(SCATTER[position]),
            1 => Some((CHUNKS[position], CHUNKS[position], SHARED_UNITS[position])),
            _ => CHUNKS.get(position).map(|&l| (l, l, OTHER_UNITS[position])),
        };
        let (chunk_bytes, call_bytes, time_units) = row.map_or((0, 0, 0), |(l, call, u)| (size(l), size(call), u));
        let role = match (row, time_units) {
            (None, _) => Role::FillUp,
            (Some(_), 0) => Role::WarmUp,
            (Some(_), _) => Role::Timed,
        };
        PatternSpec { number, pattern_type, chunk_bytes, call_bytes, time_units, role }
    })
}

/// Type of a pattern; numbers above 42 count as type 4.
#[must_use]
pub fn type_of(number: u8) -> u8 {
    (1..=4).rev().find(|&t| number >= FIRST[usize::from(t)]).unwrap_or(0)
}

/// The patterns of type `t` in order of execution; none for a type that does not exist.
#[must_use]
pub fn of_type(specs: &[PatternSpec; PATTERNS], t: u8) -> &[PatternSpec] {
    let t = usize::from(t);
    if t >= FIRST.len() - 1 {
        return &[];
    }
    &specs[usize::from(FIRST[t])..usize::from(FIRST[t + 1])]
}

/// Pattern of type `t` with the chunk size that types 1 to 4 have at `position` (0 warm-up, 1 to 7 the timed ones,
/// 8 fill-up). Type 0 has one more, number 2 (1 MB from 2 MB of memory), which stands at no position and is skipped.
#[must_use]
pub fn number_at(t: u8, position: usize) -> Option<u8> {
    let p = u8::try_from(position).ok()?;
    let first = *FIRST.get(usize::from(t)).filter(|_| t <= 4)?;
    match (t, p) {
        (0, 0..=1) => Some(p),
        (0, 2..=7) => Some(p + 1),
        (1..=4, 0..=7) | (3..=4, 8) => Some(first + p),
        _ => None,
    }
}

/// Name of a type as releases of b_eff_io print it.
#[must_use]
pub fn type_name(t: u8) -> &'static str {
    match t {
        0 => "scatter",
        1 => "shared",
        2 => "separate",
        3 => "segmented",
        4 => "seg-coll",
        _ => "unknown",
    }
}

/// How the ranks take part in the calls of a type. Type 1 without shared pointers is one chunk of a strided view per
/// collective call.
#[must_use]
pub fn access_kind(t: u8, shared_pointer: bool) -> AccessKind {
    match t {
        1 if shared_pointer => AccessKind::SharedOrdered,
        0 | 1 | 4 => AccessKind::Collective,
        _ => AccessKind::Independent,
    }
}

/// M_PART of the definition: memory of the unit one rank runs on / 128, at least 2 MB; release 2.1 also caps it at 1 GiB.
#[must_use]
pub fn m_part_defined_bytes(memory_per_rank_bytes: u64, release: Release) -> u64 {
    let most = if release == Release::R2_1 { MAX_M_PART_BYTES_2_1 } else { u64::MAX };
    (memory_per_rank_bytes / 128).clamp(MIN_M_PART_BYTES, most)
}

/// M_PART as it is measured: that of the definition to within [`M_PART_DEVIATION`], as well aligned as that allows: to 1 MiB
/// if it can be, never to less than 32 KiB.
///
/// Memory sizes are odd numbers, and everything a type writes behind its M_PART pattern would inherit that odd alignment:
/// two machines of the same kind would run differently aligned patterns.
#[must_use]
pub fn m_part_bytes(memory_per_rank_bytes: u64, release: Release) -> u64 {
    let defined = m_part_defined_bytes(memory_per_rank_bytes, release);
    let nearest = |power: u32| (defined + (1 << power) / 2) >> power << power;
    // The definition is up to one byte more: it is no whole number.
    let close = |bytes: &u64| ((bytes.abs_diff(defined) + 1) as f64) < M_PART_DEVIATION * defined as f64;
    (ELEMENT_POWER..=MIB.ilog2()).rev().map(nearest).find(close).unwrap_or(defined)
}

/// Checks a list of pattern types: ascending, without repetition, not empty, 0 to 4.
///
/// # Errors
/// [`PlanError::Argument`] with the list.
pub fn check_types(types: &[u8]) -> Result<(), PlanError> {
    let ascending = types.windows(2).all(|w| w[0] < w[1]);
    if types.is_empty() || !ascending || types.iter().any(|&t| t > 4) {
        return Err(PlanError::argument(format!(
            "pattern types {types:?}; give some of 0, 1, 2, 3, 4 in this order, each once"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_of_the_papers() {
        let specs = patterns(8 * MIB);
        let row = |n: usize| (specs[n].chunk_bytes, specs[n].call_bytes, specs[n].time_units);
        assert_eq!(row(0), (1 << 20, 1 << 20, 0));
        assert_eq!(row(1), (8 << 20, 8 << 20, 4));
        assert_eq!(row(2), (1 << 20, 2 << 20, 4));
        assert_eq!(row(6), (32776, 1_048_832, 2));
        assert_eq!(row(7), (1032, 1_056_768, 2));
        assert_eq!(row(10), (8 << 20, 8 << 20, 4));
        assert_eq!(row(12), (32768, 32768, 1));
        assert_eq!(row(16), (1_048_584, 1_048_584, 2));
        assert_eq!(row(18), (8 << 20, 8 << 20, 2));
        assert_eq!(row(24), (1_048_584, 1_048_584, 2));
        assert_eq!(row(33), (0, 0, 0));
        for n in 0..8 {
            assert_eq!(row(17 + n), row(25 + n));
            assert_eq!(row(17 + n), row(34 + n));
        }
    }

    #[test]
    fn sums_roles_and_multiples() {
        let specs = patterns(MIN_M_PART_BYTES);
        let units: Vec<u32> = (0..5).map(|t| of_type(&specs, t).iter().map(|s| s.time_units).sum()).collect();
        assert_eq!(units, [22, 12, 10, 10, 10]);
        assert_eq!(units.iter().sum::<u32>(), TIME_UNITS_PER_ACCESS);
        let with = |role| specs.iter().filter(|s| s.role == role).map(|s| s.number).collect::<Vec<_>>();
        assert_eq!(with(Role::WarmUp), [0, 9, 17, 25, 34]);
        assert_eq!(with(Role::FillUp), [33, 42]);
        assert_eq!(with(Role::Timed).len(), 36);
        for (n, s) in specs.iter().enumerate() {
            assert_eq!(usize::from(s.number), n);
            assert_eq!(s.chunk_bytes % 8, 0);
            assert_eq!(s.role == Role::Timed, s.time_units > 0);
            assert!(s.chunk_bytes == 0 || s.call_bytes % s.chunk_bytes == 0);
            assert!(of_type(&specs, s.pattern_type).contains(s));
        }
        assert!(of_type(&specs, 5).is_empty());
    }

    #[test]
    fn positions_name_patterns_of_the_same_chunk_size() {
        let specs = patterns(4 * MIB);
        for position in 0..8 {
            let sizes: Vec<u64> =
                (0..5).map(|t| specs[usize::from(number_at(t, position).unwrap())].chunk_bytes).collect();
            assert!(sizes.iter().all(|&s| s == sizes[0]), "{position}: {sizes:?}");
        }
        let last: Vec<Option<u8>> = (0..6).map(|t| number_at(t, 8)).collect();
        assert_eq!(last, [None, None, None, Some(33), Some(42), None]);
        assert_eq!(number_at(3, 9), None);
        assert_eq!(number_at(3, 300), None);
    }

    #[test]
    fn m_part_follows_memory() {
        assert_eq!(m_part_bytes(0, Release::R1), 2 * MIB);
        assert_eq!(m_part_bytes(256 * MIB, Release::R2_1), 2 * MIB);
        assert_eq!(m_part_bytes((1 << 30) + 12345, Release::R2_1), 8 * MIB);
        assert_eq!(m_part_bytes(1 << 40, Release::R2_1), 1 << 30);
        assert_eq!(m_part_bytes(1 << 40, Release::R1), 8 << 30);
        assert_eq!(m_part_bytes(1 << 40, Release::R0_5), 8 << 30);
        // A rank of a machine with 23.5 GiB, and memory sizes for which whole MiB are far from the definition.
        assert_eq!(m_part_bytes(12_638_255_104, Release::R1), 94 * MIB);
        assert_eq!(m_part_bytes(300 * MIB, Release::R1), 2400 << 10);
        assert_eq!(m_part_bytes(1000 * MIB, Release::R1), 7936 << 10);
        // A multiple of 128 KiB would be off by one percent and a hundredth of a byte.
        assert_eq!(m_part_bytes(288_093_609, Release::R1), 2208 << 10);
    }

    fn any_memory() -> impl Strategy<Value = u64> {
        // All sizes alike, and all orders of magnitude alike.
        prop_oneof![any::<u64>(), (0_u32..64, any::<u64>()).prop_map(|(shift, bytes)| bytes >> shift)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn m_part_is_within_one_percent_of_its_definition(memory in any_memory()) {
            for release in [Release::R0_5, Release::R1, Release::R2_1] {
                let most = if release == Release::R2_1 { (1 << 30) as f64 } else { f64::INFINITY };
                let defined = (memory as f64 / 128.0).max(2_097_152.0).min(most);
                let used = m_part_bytes(memory, release);
                prop_assert!((used as f64 / defined - 1.0).abs() < 0.01, "{memory}: {used} of {defined}");
                prop_assert!(used >= 2 << 20 && used as f64 <= most);
                prop_assert_eq!(used % (32 << 10), 0);
                // Whole MiB wherever they are close enough.
                prop_assert!(defined < 51.0 * 1_048_576.0 || used.is_multiple_of(MIB));
            }
        }
    }

    #[test]
    fn kinds_and_names() {
        assert_eq!(access_kind(0, true), AccessKind::Collective);
        assert_eq!(access_kind(1, true), AccessKind::SharedOrdered);
        assert_eq!(access_kind(1, false), AccessKind::Collective);
        assert_eq!(access_kind(2, true), AccessKind::Independent);
        assert_eq!(access_kind(3, true), AccessKind::Independent);
        assert_eq!(access_kind(4, true), AccessKind::Collective);
        assert_eq!((0..5).map(type_name).collect::<Vec<_>>().join(" "), "scatter shared separate segmented seg-coll");
    }

    #[test]
    fn lists_of_types() {
        assert!(check_types(&[0, 1, 2, 3, 4]).is_ok());
        assert!(check_types(&[3]).is_ok());
        for bad in [&[][..], &[5], &[1, 1], &[2, 0]] {
            assert!(check_types(bad).unwrap_err().to_string().contains("pattern types"));
        }
    }
}
