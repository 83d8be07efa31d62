//! Numbers of ranks of a benchmark, and groups of ranks that run at the same time.

use super::benchmark::ImbBenchmark;
use crate::imb_io::plan::PlanningError;

/// Numbers of ranks, ascending: `npmin`, 2 `npmin`, 4 `npmin`, ... below `world_ranks`, and `world_ranks`. An `npmin` above
/// `world_ranks` means all ranks, as in the release: one command line serves any number.
///
/// # Errors
/// [`PlanningError::Argument`] for an `npmin` or a world of 0.
pub fn counts(npmin: u64, world_ranks: u64) -> Result<Vec<u64>, PlanningError> {
    if npmin == 0 || world_ranks == 0 {
        return Err(PlanningError::argument(format!(
            "at least {npmin} of {world_ranks} ranks: both numbers must be at least 1"
        )));
    }
    let doubled = std::iter::successors(Some(npmin), |ranks| ranks.checked_mul(2));
    Ok(doubled.take_while(|ranks| *ranks < world_ranks).chain([world_ranks]).collect())
}

/// The numbers of ranks of one benchmark: 1 for single-rank benchmarks, else `counts`.
#[must_use]
pub fn benchmark_rank_counts<'a>(benchmark: &ImbBenchmark, counts: &'a [u64]) -> &'a [u64] {
    if benchmark.is_single() {
        &[1]
    } else {
        counts
    }
}

/// Groups of consecutive ranks of the world that run the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Ranks of each group.
    pub ranks: u64,
    /// Number of groups. 1 without `-multi`, or if a second group does not fit.
    pub groups: u64,
}

/// Group and rank within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Group, from 0.
    pub group: u64,
    /// Rank in the group, from 0.
    pub rank: u64,
}

impl Groups {
    /// One group of `ranks` in a world, or with `multi` as many as fit.
    ///
    /// # Errors
    /// [`PlanningError::Partition`] if `ranks` is not in 1..=`world_ranks`.
    pub fn new(ranks: u64, world_ranks: u64, multi: bool) -> Result<Self, PlanningError> {
        if ranks == 0 || ranks > world_ranks {
            return Err(PlanningError::Partition { ranks, world_ranks });
        }
        Ok(Self { ranks, groups: if multi { world_ranks / ranks } else { 1 } })
    }

    /// The member that a rank of the world is; `None` if it waits.
    #[must_use]
    pub fn member(&self, world_rank: u64) -> Option<Member> {
        let member = Member { group: world_rank / self.ranks, rank: world_rank % self.ranks };
        (member.group < self.groups).then_some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::find;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_double_and_all_is_last() {
        for (npmin, world, expected) in [
            (1, 1, &[1][..]),
            (1, 2, &[1, 2]),
            (1, 3, &[1, 2, 3]),
            (1, 4, &[1, 2, 4]),
            (1, 11, &[1, 2, 4, 8, 11]),
            (2, 11, &[2, 4, 8, 11]),
            (3, 16, &[3, 6, 12, 16]),
            (7, 14, &[7, 14]),
            (14, 14, &[14]),
            (15, 14, &[14]),
            (u64::MAX, 3, &[3]),
        ] {
            assert_eq!(counts(npmin, world).unwrap(), expected, "{npmin} of {world}");
        }
        assert!(counts(0, 4).is_err() && counts(1, 0).is_err());
        assert_eq!(counts(1, u64::MAX).unwrap().len(), 65);
        let of = |name: &str| benchmark_rank_counts(find(name).unwrap(), &[2, 4, 5]).to_vec();
        assert_eq!((of("S_IRead_Expl"), of("P_Read_Priv"), of("Open_Close")), (vec![1], vec![2, 4, 5], vec![2, 4, 5]));
    }

    #[test]
    fn groups_are_blocks_of_ranks() {
        let member = |ranks, multi, rank| Groups::new(ranks, 11, multi).unwrap().member(rank);
        let at = |group, rank| Some(Member { group, rank });
        assert_eq!((member(4, true, 0), member(4, true, 7), member(4, true, 8)), (at(0, 0), at(1, 3), None));
        assert_eq!((member(4, false, 3), member(4, false, 4)), (at(0, 3), None));
        assert_eq!((member(1, true, 10), member(11, true, 10)), (at(10, 0), at(0, 10)));
        // More than half of the ranks: there is one group, as without `-multi`.
        assert_eq!(Groups::new(6, 11, true), Groups::new(6, 11, false));
        assert!(Groups::new(0, 11, true).is_err() && Groups::new(12, 11, true).is_err());
    }

    proptest! {
        #[test]
        fn counts_lie_in_the_world(npmin in 1_u64..100, world in 1_u64..=10_000_000) {
            let counts = counts(npmin, world).unwrap();
            prop_assert!(counts.windows(2).all(|w| w[0] < w[1] && w[1] <= 2 * w[0]));
            prop_assert_eq!((counts[0], counts[counts.len() - 1]), (npmin.min(world), world));
        }

        #[test]
        fn every_member_occurs_once(world in 1_u64..200, ranks in 1_u64..200, multi: bool) {
            let groups = Groups::new(ranks.min(world), world, multi).unwrap();
            let members: Vec<_> = (0..world).filter_map(|rank| groups.member(rank)).collect();
            let all: Vec<_> = (0..groups.groups)
                .flat_map(|group| (0..groups.ranks).map(move |rank| Member { group, rank }))
                .collect();
            prop_assert_eq!(members, all);
            prop_assert!(!multi || world - groups.groups * groups.ranks < groups.ranks);
        }
    }
}
