//! Sizes of the partitions.

use super::PlanError;
use crate::b_eff_io::config::Partitions;

/// Partition sizes, ascending, each once.
///
/// # Errors
/// [`PlanError::Partition`] if a size is not in 1..=`world_ranks`, [`PlanError::Argument`] for an empty list or world.
pub fn sizes(partitions: &Partitions, world_ranks: u64) -> Result<Vec<u64>, PlanError> {
    if world_ranks == 0 {
        return Err(PlanError::argument("a world of 0 ranks"));
    }
    let mut sizes = match partitions {
        Partitions::All => vec![world_ranks],
        Partitions::SmallMediumAll => small_medium_all(world_ranks),
        Partitions::List(list) if list.is_empty() => {
            return Err(PlanError::argument("the list of partitions is empty; give at least one number of ranks"))
        }
        Partitions::List(list) => list.clone(),
    };
    sizes.sort_unstable();
    sizes.dedup();
    match sizes.iter().find(|&&ranks| ranks == 0 || ranks > world_ranks) {
        Some(&ranks) => Err(PlanError::Partition { ranks, world_ranks }),
        None => Ok(sizes),
    }
}

/// The default of release 2.1: 2^round(0.35 log2 N), 2^round(0.70 log2 N) and N, with its exceptions for small N.
fn small_medium_all(n: u64) -> Vec<u64> {
    if n <= 2 {
        return (1..=n).collect();
    }
    let log2 = (n as f64).log2();
    // The constant of the release: exact halves are rounded up whatever the rounding of log2.
    let power = |share: f64| 1_u64 << (share * log2 + 0.500_000_1) as u32;
    let small = if n == 3 { 1 } else { power(0.35) };
    let medium = if n == 4 { 3 } else { power(0.70) };
    vec![small, medium, n]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn default(n: u64) -> Vec<u64> {
        sizes(&Partitions::SmallMediumAll, n).unwrap()
    }

    #[test]
    fn check_values_of_release_2_1() {
        assert_eq!(default(1), [1]);
        assert_eq!(default(2), [1, 2]);
        for (n, small, medium) in
            [(3, 1, 2), (4, 2, 3), (5, 2, 4), (12, 2, 8), (20, 4, 8), (32, 4, 16), (142, 8, 32), (1024, 16, 128)]
        {
            assert_eq!(default(n), [small, medium, n], "{n}");
        }
    }

    #[test]
    fn lists_are_sorted_and_checked() {
        let list = |l: &[u64]| sizes(&Partitions::List(l.to_vec()), 8);
        assert_eq!(list(&[8, 2, 2, 4]).unwrap(), [2, 4, 8]);
        assert_eq!(list(&[9]).unwrap_err(), PlanError::Partition { ranks: 9, world_ranks: 8 });
        let text = list(&[0, 3]).unwrap_err().to_string();
        assert!(text.contains("partition of 0 ranks") && text.contains("8 rank"), "{text}");
        assert!(list(&[]).is_err());
        assert_eq!(sizes(&Partitions::All, 7).unwrap(), [7]);
        assert!(sizes(&Partitions::All, 0).is_err());
    }

    proptest! {
        #[test]
        fn default_partitions_lie_in_the_world(n in 1_u64..=10_000_000) {
            let sizes = default(n);
            prop_assert!(sizes.windows(2).all(|w| w[0] < w[1]));
            prop_assert!(sizes[0] >= 1);
            prop_assert_eq!(*sizes.last().unwrap(), n);
        }
    }
}
