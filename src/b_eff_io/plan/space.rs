//! Space of each pattern on the storage.
//!
//! The files of all partitions and backends exist at the same time, because all first writes precede the first rewrite. The limit is
//! therefore divided before the run: one call of every pattern by every rank, which is required, then equal shares of the rest for every
//! partition and backend, divided by U over the patterns. The sum never exceeds the limit.

use super::patterns::{check_types, patterns, MIN_M_PART_BYTES};
use super::segments::check_multiple;
use super::{Obstacle, PatternSpec, PlanError, Role, PATTERNS};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::units::MIB;

/// Space of one partition for one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSpace {
    /// Ranks of the partition.
    pub ranks: u64,
    /// M_PART in force; the same for all partitions of a run.
    pub m_part_bytes: u64,
    /// M_PART of the definition.
    pub m_part_defined_bytes: u64,
    /// Maximum size of all files of the partition; `None`: unlimited.
    pub space_bytes: Option<u64>,
    /// Maximum number of calls per rank, by pattern number; 0 for types that do not run.
    pub max_calls: [u64; PATTERNS],
}

/// Divides the space.
///
/// `limit_bytes` is for all files of the run (`None`: only the 63-bit file offset limits the calls); without `backends` that write there is
/// no limit. If one call of everything does not fit, M_PART is reduced to the largest multiple of 1 MiB for which it does, not below 2 MiB.
///
/// # Errors
/// [`Obstacle::NoSpace`] if M_PART = 2 MiB does not fit either, [`PlanError::Argument`] for invalid types, partitions or multiples.
pub fn plan_space(
    limit_bytes: Option<u64>,
    partitions: &[u64],
    backends: u64,
    m_part_wanted_bytes: u64,
    types: &[PatternType],
    segment_multiple_bytes: u64,
) -> Result<Vec<PartitionSpace>, PlanError> {
    check_types(types)?;
    check_multiple(segment_multiple_bytes)?;
    if partitions.is_empty() || partitions.contains(&0) {
        return Err(PlanError::argument(format!("partitions of {partitions:?} ranks; each needs at least one")));
    }
    let request = SpaceRequest { partitions, backends, types, segment_multiple_bytes };
    let limit_bytes = limit_bytes.filter(|_| backends > 0);
    let m_part_bytes = match limit_bytes {
        Some(limit) => request.fitting_m_part_bytes(limit, m_part_wanted_bytes)?,
        None => m_part_wanted_bytes,
    };
    let specs = patterns(m_part_bytes);
    let rank_minimum = request.min_rank_bytes(m_part_bytes);
    let share = limit_bytes.map(|limit| {
        let rest = u128::from(limit).saturating_sub(rank_minimum.saturating_mul(request.all_ranks()));
        rest / (partitions.len() as u128 * u128::from(backends))
    });
    let plan = partitions.iter().map(|&ranks| {
        let minimum = rank_minimum.saturating_mul(u128::from(ranks));
        let longest = i64::MAX as u128;
        let space = share.map(|share| minimum + share);
        let share = space.unwrap_or(longest).min(longest).saturating_sub(minimum);
        PartitionSpace {
            ranks,
            m_part_bytes,
            m_part_defined_bytes: m_part_wanted_bytes,
            // At most the limit, which is a u64.
            space_bytes: space.map(|s| s as u64),
            max_calls: request.max_calls(&specs, ranks, share),
        }
    });
    Ok(plan.collect())
}

struct SpaceRequest<'a> {
    partitions: &'a [u64],
    backends: u64,
    types: &'a [PatternType],
    segment_multiple_bytes: u64,
}

impl SpaceRequest<'_> {
    /// Sum of the ranks of all partitions and backends.
    fn all_ranks(&self) -> u128 {
        let ranks: u128 = self.partitions.iter().map(|&n| u128::from(n)).sum();
        ranks * u128::from(self.backends)
    }

    /// Bytes of one rank in one partition with one call of each pattern and fill-ups of maximum length.
    fn min_rank_bytes(&self, m_part_bytes: u64) -> u128 {
        let selected = |s: &&PatternSpec| self.types.contains(&s.pattern_type);
        patterns(m_part_bytes)
            .iter()
            .filter(selected)
            .map(|s| u128::from(if s.role == Role::FillUp { self.segment_multiple_bytes } else { s.call_bytes }))
            .sum()
    }

    fn fitting_m_part_bytes(&self, limit_bytes: u64, wanted_bytes: u64) -> Result<u64, PlanError> {
        let all_ranks = self.all_ranks();
        let per_rank = u128::from(limit_bytes) / all_ranks;
        if self.min_rank_bytes(wanted_bytes) <= per_rank {
            return Ok(wanted_bytes);
        }
        let smallest = self.min_rank_bytes(MIN_M_PART_BYTES);
        let Some(left) = per_rank.checked_sub(smallest) else {
            return Err(self.no_space(limit_bytes, smallest.saturating_mul(all_ranks)).into());
        };
        // Every type has one pattern of M_PART bytes, so the minimum grows by that much for each byte of M_PART.
        let more = left / self.types.len() as u128 / u128::from(MIB) * u128::from(MIB);
        // Below the limit, so a u64; never above the defined size, which did not fit.
        Ok(MIN_M_PART_BYTES + more as u64)
    }

    fn no_space(&self, limit_bytes: u64, needed: u128) -> Obstacle {
        let saturate = |v: u128| u64::try_from(v).unwrap_or(u64::MAX);
        Obstacle::NoSpace {
            needed_bytes: saturate(needed),
            limit_bytes,
            partitions: self.partitions.len() as u64,
            ranks: saturate(self.partitions.iter().map(|&n| u128::from(n)).sum()),
            backends: self.backends,
            types: self.types.len() as u64,
        }
    }

    /// One call of everything, plus what the share of a timed pattern allows beyond that.
    fn max_calls(&self, specs: &[PatternSpec; PATTERNS], ranks: u64, share: u128) -> [u64; PATTERNS] {
        let selected = |s: &PatternSpec| self.types.contains(&s.pattern_type);
        let all_units: u32 = specs.iter().filter(|s| selected(s)).map(|s| s.time_units).sum();
        specs.map(|s| match s.role {
            _ if !selected(&s) => 0,
            Role::WarmUp | Role::FillUp => 1,
            Role::Timed => {
                let of_pattern = share * u128::from(s.time_units) / u128::from(all_units);
                let one_call = u128::from(ranks) * u128::from(s.call_bytes);
                // The share is below 2^63.
                1 + (of_pattern / one_call) as u64
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::layout::{rank_pattern, RankLayout};
    use crate::b_eff_io::plan::patterns::of_type;
    use proptest::prelude::*;

    const ALL: [PatternType; PatternType::COUNT] = PatternType::ALL;

    fn used(plan: &[PartitionSpace], backends: u64, multiple: u64) -> u128 {
        let partition = |p: &PartitionSpace| {
            let specs = patterns(p.m_part_bytes);
            let rank: u128 = specs
                .iter()
                .map(|s| {
                    let bytes = if s.role == Role::FillUp { multiple } else { s.call_bytes };
                    u128::from(bytes) * u128::from(p.max_calls[usize::from(s.number)])
                })
                .sum();
            rank * u128::from(p.ranks)
        };
        plan.iter().map(partition).sum::<u128>() * u128::from(backends)
    }

    #[test]
    fn small_and_large_storage() {
        let plan = plan_space(Some(300 * MIB), &[1, 2], 1, 128 * MIB, &ALL, MIB).unwrap();
        assert!(plan[0].m_part_bytes < 128 * MIB && plan[0].m_part_bytes >= 2 * MIB);
        assert_eq!(plan[0].m_part_defined_bytes, 128 * MIB);
        assert!(used(&plan, 1, MIB) <= u128::from(300 * MIB));
        let larger = patterns(plan[0].m_part_bytes + MIB).iter().map(|s| s.call_bytes).sum::<u64>() + 2 * MIB;
        assert!(3 * larger > 300 * MIB, "M_PART could be larger");

        let limit = 300 << 40;
        let plan = plan_space(Some(limit), &[16, 128, 1024], 3, 1 << 30, &ALL, MIB).unwrap();
        assert_eq!(plan[0].m_part_bytes, 1 << 30);
        let used = used(&plan, 3, MIB);
        assert!(used <= u128::from(limit) && used > u128::from(limit) * 9 / 10, "{used}");
    }

    #[test]
    fn too_little_space_says_how_much_and_what_to_do() {
        let error = plan_space(Some(100 * MIB), &[4, 8], 2, 2 * MIB, &ALL, MIB).unwrap_err();
        let PlanError::Specific(Obstacle::NoSpace {
            needed_bytes,
            limit_bytes,
            partitions: 2,
            ranks: 12,
            backends: 2,
            types: 5,
        }) = error
        else {
            panic!("{error}");
        };
        assert_eq!(limit_bytes, 100 * MIB);
        for word in ["--space", "fewer ranks", "partitions", "backends", "types", &needed_bytes.to_string()] {
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(plan_space(Some(needed_bytes), &[4, 8], 2, 2 * MIB, &ALL, MIB).is_ok());
        assert!(plan_space(Some(needed_bytes - 1), &[4, 8], 2, 2 * MIB, &ALL, MIB).is_err());
    }

    #[test]
    fn unlimited_space_stays_within_file_offsets() {
        for ranks in [1, 2, 10_000_000] {
            let plan = plan_space(None, &[ranks], 0, 1 << 30, &ALL, MIB).unwrap();
            assert_eq!((plan[0].space_bytes, plan[0].m_part_bytes), (None, 1 << 30));
            let specs = patterns(1 << 30);
            let last = RankLayout { ranks, rank: ranks - 1, shared_pointer: true, segment_bytes: None };
            for t in ALL.into_iter().filter(|t| !t.has_segments()) {
                let mut stream = 0;
                for spec in of_type(&specs, t) {
                    let calls = plan[0].max_calls[usize::from(spec.number)];
                    rank_pattern(&last, spec, stream, calls).unwrap();
                    stream += calls * spec.call_bytes;
                }
            }
        }
    }

    #[test]
    fn wrong_input_is_refused() {
        assert!(plan_space(None, &[], 1, 2 * MIB, &ALL, MIB).is_err());
        assert!(plan_space(None, &[0], 1, 2 * MIB, &ALL, MIB).is_err());
        assert!(plan_space(None, &[1], 1, 2 * MIB, &[], MIB).is_err());
        assert!(plan_space(None, &[1], 1, 2 * MIB, &ALL, 0).is_err());
    }

    proptest! {
        #[test]
        fn never_more_than_the_limit(
            limit in prop_oneof![300 * MIB..(300 << 40), Just(u64::MAX)],
            partitions in proptest::collection::vec(prop_oneof![1_u64..64, 1_u64..10_000_000], 1..4),
            backends in 1_u64..5,
            m_part in 2_u64..4096,
            mask in 1_u8..32,
            multiple in 1_u64..64,
        ) {
            let types: Vec<PatternType> = ALL.into_iter().filter(|t| mask >> t.number() & 1 == 1).collect();
            let multiple = multiple * MIB;
            match plan_space(Some(limit), &partitions, backends, m_part * MIB, &types, multiple) {
                Ok(plan) => {
                    prop_assert!(used(&plan, backends, multiple) <= u128::from(limit));
                    let spaces: u128 = plan.iter().map(|p| u128::from(p.space_bytes.unwrap())).sum();
                    prop_assert!(spaces * u128::from(backends) <= u128::from(limit));
                    for p in &plan {
                        prop_assert!((MIN_M_PART_BYTES..=p.m_part_defined_bytes).contains(&p.m_part_bytes));
                        for (n, calls) in p.max_calls.iter().enumerate() {
                            prop_assert_eq!(*calls > 0, types.contains(&patterns(MIB)[n].pattern_type));
                        }
                    }
                }
                Err(PlanError::Specific(Obstacle::NoSpace { needed_bytes, .. })) => prop_assert!(needed_bytes > limit),
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
        }
    }
}
