//! The 43 patterns of b_eff_io (Rabenseifner and Koniges, Euro-Par 2000, table 2; numbered as in release 2.1).
//!
//! Their order matters: the offset of a pattern, and so its alignment, depends on the sizes of all earlier patterns of its type.

use serde::{Deserialize, Serialize};

use super::{PlanError, Role};
use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::{PatternType, M_PART};
use crate::frame::checks::join;
use crate::frame::units::MIB;

/// Number of patterns.
pub const PATTERNS: usize = FIRST[PatternType::COUNT];

/// Smallest M_PART.
pub const MIN_M_PART_BYTES: u64 = 2 * MIB;

const MAX_M_PART_BYTES_2_1: u64 = 1 << 30;

/// Maximum deviation of M_PART from its definition, as a share of it.
pub const M_PART_DEVIATION: f64 = 0.01;

/// log2 of the element size, 8 bytes: every size is a multiple.
const ELEMENT_POWER: u32 = 3;

/// Sum of U of all types for one access method.
pub const TIME_UNITS_PER_ACCESS: u32 = time_units();

/// First pattern number of each type, and the end of the last type.
const FIRST: [usize; PatternType::COUNT + 1] = first();

const fn first() -> [usize; PatternType::COUNT + 1] {
    let mut first = [0; PatternType::COUNT + 1];
    let mut t = 0;
    while t < PatternType::COUNT {
        first[t + 1] = first[t] + PatternType::ALL[t].patterns();
        t += 1;
    }
    first
}

const fn time_units() -> u32 {
    let (mut units, mut t) = (0, 0);
    while t < PatternType::COUNT {
        let rows = PatternType::ALL[t].descriptor().rows;
        let mut row = 0;
        while row < rows.len() {
            units += rows[row].time_units;
            row += 1;
        }
        t += 1;
    }
    units
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternSpec {
    /// Pattern number, 0 to 42.
    pub number: u8,
    /// Its type.
    pub pattern_type: PatternType,
    /// Contiguous bytes on disk, l. 0 for fill-ups: their size follows from the segment
    /// ([`super::segments::Segment::spec`]).
    pub chunk_bytes: u64,
    /// Contiguous bytes in memory per call and rank, L; a multiple of l.
    pub call_bytes: u64,
    /// Time units, U.
    pub time_units: u32,
    /// Its role.
    pub role: Role,
}

/// The table for a given M_PART, by pattern number.
#[must_use]
pub fn patterns(m_part_bytes: u64) -> [PatternSpec; PATTERNS] {
    let size = |bytes: u64| if bytes == M_PART { m_part_bytes } else { bytes };
    std::array::from_fn(|number| {
        let pattern_type = type_of(number as u8);
        let row = pattern_type.descriptor().rows.get(number - FIRST[pattern_type.index()]);
        let role = match row {
            None => Role::FillUp,
            Some(row) if row.time_units == 0 => Role::WarmUp,
            Some(_) => Role::Timed,
        };
        PatternSpec {
            number: number as u8,
            pattern_type,
            chunk_bytes: row.map_or(0, |row| size(row.chunk_bytes)),
            call_bytes: row.map_or(0, |row| size(row.call_bytes)),
            time_units: row.map_or(0, |row| row.time_units),
            role,
        }
    })
}

/// Type of a pattern; numbers above the last count as the last type.
#[must_use]
pub fn type_of(number: u8) -> PatternType {
    let is_of = |t: &PatternType| usize::from(number) >= FIRST[t.index()];
    PatternType::ALL.into_iter().rev().find(is_of).unwrap_or(PatternType::Scatter)
}

/// The patterns of type `t` in order of execution.
#[must_use]
pub fn of_type(specs: &[PatternSpec; PATTERNS], t: PatternType) -> &[PatternSpec] {
    &specs[FIRST[t.index()]..FIRST[t.index() + 1]]
}

/// Pattern of type `t` with the chunk size that all types have at `position` (0 warm-up, 1 to 7 timed, 8 fill-up). A second pattern of the
/// same chunk size has no position and is skipped.
#[must_use]
pub fn number_at(t: PatternType, position: usize) -> Option<u8> {
    let beside = t.descriptor().row_outside_table.map_or(usize::MAX, usize::from);
    let place = position + usize::from(position >= beside);
    (place < t.patterns()).then(|| (FIRST[t.index()] + place) as u8)
}

/// M_PART of the definition: memory of the unit one rank runs on / 128, at least 2 MB; release 2.1 also limits it to 1 GiB.
#[must_use]
pub fn m_part_defined_bytes(memory_per_rank_bytes: u64, release: Release) -> u64 {
    let most = if release == Release::R2_1 { MAX_M_PART_BYTES_2_1 } else { u64::MAX };
    (memory_per_rank_bytes / 128).clamp(MIN_M_PART_BYTES, most)
}

/// M_PART as measured: within [`M_PART_DEVIATION`] of the definition, with the largest possible alignment, from 32 KiB to 1 MiB.
///
/// Memory sizes are odd numbers, and all patterns after the M_PART pattern would inherit that alignment: two machines of the same kind
/// would run differently aligned patterns.
#[must_use]
pub fn m_part_bytes(memory_per_rank_bytes: u64, release: Release) -> u64 {
    let defined = m_part_defined_bytes(memory_per_rank_bytes, release);
    let nearest = |power: u32| (defined + (1 << power) / 2) >> power << power;
    // The exact definition, a fraction, may be up to one byte more.
    let close = |bytes: &u64| ((bytes.abs_diff(defined) + 1) as f64) < M_PART_DEVIATION * defined as f64;
    (ELEMENT_POWER..=MIB.ilog2()).rev().map(nearest).find(close).unwrap_or(defined)
}

/// Checks a list of pattern types: ascending, without repetition, not empty.
///
/// # Errors
/// [`PlanError::Argument`] with the list.
pub fn check_types(types: &[PatternType]) -> Result<(), PlanError> {
    if types.is_empty() || !types.is_sorted_by(|a, b| a < b) {
        let numbers: Vec<u8> = types.iter().map(|t| t.number()).collect();
        return Err(PlanError::argument(format!(
            "pattern types {numbers:?}; give some of {} in this order, each once",
            join(PatternType::ALL)
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
        let units: Vec<u32> =
            PatternType::ALL.into_iter().map(|t| of_type(&specs, t).iter().map(|s| s.time_units).sum()).collect();
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
    }

    #[test]
    fn positions_name_patterns_of_the_same_chunk_size() {
        let specs = patterns(4 * MIB);
        for position in 0..8 {
            let sizes: Vec<u64> = PatternType::ALL
                .into_iter()
                .map(|t| specs[usize::from(number_at(t, position).unwrap())].chunk_bytes)
                .collect();
            assert!(sizes.iter().all(|&s| s == sizes[0]), "{position}: {sizes:?}");
        }
        let last: Vec<Option<u8>> = PatternType::ALL.into_iter().map(|t| number_at(t, 8)).collect();
        assert_eq!(last, [None, None, None, Some(33), Some(42)]);
        assert_eq!(number_at(PatternType::Segmented, 9), None);
        assert_eq!(number_at(PatternType::Segmented, 300), None);
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
        // Uniform in size, and uniform in magnitude.
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
                // Whole MiB if close enough.
                prop_assert!(defined < 51.0 * 1_048_576.0 || used.is_multiple_of(MIB));
            }
        }
    }

    #[test]
    fn lists_of_types() {
        use PatternType::{Scatter, Separate, Shared};
        assert!(check_types(&PatternType::ALL).is_ok());
        assert!(check_types(&[PatternType::Segmented]).is_ok());
        for bad in [&[][..], &[Shared, Shared], &[Separate, Scatter]] {
            assert!(check_types(bad).unwrap_err().to_string().contains("pattern types"));
        }
    }
}
