//! Lists with an element for each rank, stored as runs of consecutive ranks with equal values: a result of 100 000 unbound ranks has an
//! entry for each host. For fields with `#[serde(with = "rank_runs")]` and `#[schemars(with = "Vec<RankRun<T>>")]`.

use schemars::JsonSchema;
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

/// Bound of a list that is read: more ranks than any machine has.
const MAX_RANKS: u64 = 1 << 24;

/// What a list has for a rank.
pub trait OfRank: Clone + PartialEq {
    /// The same values for the rank `ranks` behind this one.
    #[must_use]
    fn of_later_rank(&self, ranks: u64) -> Self;
}

/// Consecutive ranks with equal values.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Run")]
pub struct RankRun<T> {
    #[serde(flatten)]
    first: T,
    /// Number of consecutive ranks with these values, from this one on. Absent in older results: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    ranks: u64,
}

fn one() -> u64 {
    1
}

fn runs<T: OfRank>(all: &[T]) -> Vec<RankRun<T>> {
    let mut runs: Vec<RankRun<T>> = Vec::new();
    for one in all {
        match runs.last_mut() {
            Some(run) if run.first.of_later_rank(run.ranks) == *one => run.ranks += 1,
            _ => runs.push(RankRun { first: one.clone(), ranks: 1 }),
        }
    }
    runs
}

/// Writes the runs.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: OfRank + Serialize, S: Serializer>(all: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    runs(all).serialize(serializer)
}

/// Reads the runs: an element for each rank.
///
/// # Errors
/// Those of the deserializer; more than 2^24 ranks.
pub fn deserialize<'d, T: OfRank + Deserialize<'d>, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let runs = Vec::<RankRun<T>>::deserialize(deserializer)?;
    let ranks = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.ranks));
    if ranks > MAX_RANKS {
        return Err(de::Error::custom(format!("{ranks} ranks are listed, at most {MAX_RANKS} are possible")));
    }
    Ok(runs.iter().flat_map(|run| (0..run.ranks).map(|behind| run.first.of_later_rank(behind))).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::records::RankBinding;

    fn bound(rank: u64, cpus: &str) -> RankBinding {
        RankBinding { rank, initial_cpus: "0-3".into(), cpus: cpus.into(), cores: Some(1) }
    }

    #[derive(Serialize, Deserialize)]
    struct List(#[serde(with = "super")] Vec<RankBinding>);

    #[test]
    fn an_entry_stands_for_consecutive_ranks_with_equal_values() {
        let all = vec![bound(4, "0-3"), bound(5, "0-3"), bound(6, "0-3"), bound(8, "0-3"), bound(9, "1")];
        let text = serde_json::to_string(&List(all.clone())).unwrap();
        assert_eq!(
            text,
            r#"[{"rank":4,"initial_cpus":"0-3","cpus":"0-3","cores":1,"ranks":3},{"rank":8,"initial_cpus":"0-3","cpus":"0-3","cores":1,"ranks":1},{"rank":9,"initial_cpus":"0-3","cpus":"1","cores":1,"ranks":1}]"#
        );
        assert_eq!(serde_json::from_str::<List>(&text).unwrap().0, all);
        // 100 000 unbound ranks of one host.
        let many = (0..100_000).map(|rank| bound(rank, "0-3")).collect();
        assert!(serde_json::to_string(&List(many)).unwrap().len() < 100);
    }

    #[test]
    fn too_many_ranks_are_refused() {
        for ranks in [MAX_RANKS + 1, u64::MAX] {
            let text = format!(
                r#"[{{"rank":0,"initial_cpus":"","cpus":"","cores":null,"ranks":{ranks}}},{{"rank":1,"initial_cpus":"","cpus":"","cores":null}}]"#
            );
            let error = serde_json::from_str::<List>(&text).map(|list| list.0.len()).unwrap_err();
            assert!(error.to_string().contains("at most 16777216"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_list_reads_back(steps in proptest::collection::vec((0_u64..3, 0_u8..2), 0..40)) {
            let mut rank = 0;
            let all: Vec<RankBinding> = steps.into_iter().map(|(step, cpu)| {
                rank += step;
                bound(rank, &cpu.to_string())
            }).collect();
            let text = serde_json::to_string(&List(all.clone())).unwrap();
            prop_assert_eq!(serde_json::from_str::<List>(&text).unwrap().0, all);
        }
    }
}
