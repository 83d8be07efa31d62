//! What the records tell about a number that changed: part of the time, cache, calls, few calls, other work.

use serde::Serialize;

use super::comparable::Told;

/// A part of the time explains a change if it makes up this share of it.
const EXPLAINS: f64 = 0.5;

/// Shares from memory that differ by this much are another measurement.
const CACHE_CHANGE: f64 = 0.1;

/// Facts told at most: hints in force come in dozens.
const MOST_FACTS: usize = 3;

/// One thing that may have made the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    /// Most of the change of time per byte is of this part. Shares of the time, 0 to 1.
    Part {
        /// Which.
        part: String,
        /// Its share on the first side.
        from: f64,
        /// Its share on the second side.
        to: f64,
    },
    /// Reads came from memory to another extent. Shares of the bytes, 0 to 1.
    Cache {
        /// On the first side.
        from: f64,
        /// On the second side.
        to: f64,
    },
    /// The calls, a hint in force or the like is another one.
    Fact {
        /// What.
        name: String,
        /// On the first side.
        from: String,
        /// On the second side.
        to: String,
    },
    /// More of these than are shown.
    MoreFacts {
        /// How many.
        number: u64,
    },
    /// The number rests on few calls or few bytes.
    FewCalls {
        /// On the first side.
        first: bool,
        /// On the second side.
        second: bool,
    },
    /// Others had a share of the CPUs.
    Busy {
        /// On the first side.
        first: bool,
        /// On the second side.
        second: bool,
    },
}

/// The means of what several runs tell. A fact counts if all of them agree on it.
pub(super) fn pooled(runs: &[&Told]) -> Told {
    let Some((first, others)) = runs.split_first() else { return Told::default() };
    let number = runs.len() as f64;
    let share = |name: &str| {
        let of = |told: &&Told| told.shares.iter().find(|(own, _)| *own == name).map_or(0.0, |(_, share)| *share);
        runs.iter().map(of).sum::<f64>() / number
    };
    let cached: Option<Vec<f64>> = runs.iter().map(|told| told.cache_share).collect();
    let is_common = |fact: &&(String, String)| others.iter().all(|told| told.facts.contains(fact));
    Told {
        shares: first.shares.iter().map(|(name, _)| (*name, share(name))).collect(),
        cache_share: cached.map(|shares| shares.iter().sum::<f64>() / number),
        few_calls: runs.iter().any(|told| told.few_calls),
        busy: runs.iter().any(|told| told.busy),
        facts: first.facts.iter().filter(is_common).cloned().collect(),
    }
}

/// What may have made a speed `ratio` times as large.
pub(super) fn causes(from: &Told, to: &Told, ratio: f64) -> Vec<Cause> {
    let mut found: Vec<Cause> = part(from, to, ratio).into_iter().collect();
    if let Some((from, to)) = from.cache_share.zip(to.cache_share) {
        if (from - to).abs() >= CACHE_CHANGE {
            found.push(Cause::Cache { from, to });
        }
    }
    let of = |told: &Told, name: &str| told.facts.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
    let changed: Vec<Cause> = from
        .facts
        .iter()
        .filter_map(|(name, before)| {
            let after = of(to, name).filter(|after| after != before)?;
            Some(Cause::Fact { name: name.clone(), from: before.clone(), to: after })
        })
        .collect();
    let more = changed.len().saturating_sub(MOST_FACTS) as u64;
    found.extend(changed.into_iter().take(MOST_FACTS));
    found.extend((more > 0).then_some(Cause::MoreFacts { number: more }));
    if from.few_calls || to.few_calls {
        found.push(Cause::FewCalls { first: from.few_calls, second: to.few_calls });
    }
    if from.busy || to.busy {
        found.push(Cause::Busy { first: from.busy, second: to.busy });
    }
    found
}

/// The part whose time for the same bytes changed most, if that is most of the change. The first side took 1 for them, the
/// second 1 / ratio.
fn part(from: &Told, to: &Told, ratio: f64) -> Option<Cause> {
    let change = 1.0 / ratio - 1.0;
    let (name, before, after) = from
        .shares
        .iter()
        .filter_map(|(name, before)| {
            let after = to.shares.iter().find(|(own, _)| own == name)?.1;
            Some((*name, *before, after))
        })
        .max_by(|a, b| {
            let explained = |(_, before, after): &(&str, f64, f64)| (after / ratio - before) * change.signum();
            explained(a).total_cmp(&explained(b))
        })?;
    let explained = (after / ratio - before) / change;
    (explained.is_finite() && explained >= EXPLAINS).then(|| Cause::Part {
        part: name.to_owned(),
        from: before,
        to: after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(transfer: f64, sync: f64) -> Told {
        Told { shares: vec![("transfer", transfer), ("sync", sync)], ..Told::default() }
    }

    #[test]
    fn the_part_that_grew_is_named() {
        // Twice the time, all of it more sync: 0.9 + 0.1 becomes 0.9 + 1.1.
        let found = causes(&told(0.9, 0.1), &told(0.45, 0.55), 0.5);
        assert_eq!(found, [Cause::Part { part: "sync".into(), from: 0.1, to: 0.55 }]);
        // The other way round it is the part that shrank.
        let found = causes(&told(0.45, 0.55), &told(0.9, 0.1), 2.0);
        assert_eq!(found, [Cause::Part { part: "sync".into(), from: 0.55, to: 0.1 }]);
    }

    #[test]
    fn nothing_is_named_for_nothing() {
        assert_eq!(causes(&told(0.9, 0.1), &told(0.9, 0.1), 1.0), []);
        assert_eq!(causes(&Told::default(), &Told::default(), 0.5), []);
        let cached = |share| Told { cache_share: Some(share), ..Told::default() };
        assert_eq!(causes(&cached(0.5), &cached(0.55), 0.5), []);
        assert_eq!(causes(&cached(0.0), &cached(0.9), 9.0), [Cause::Cache { from: 0.0, to: 0.9 }]);
    }

    #[test]
    fn facts_count_where_all_runs_agree() {
        let with = |value: &str| Told { facts: vec![("calls".into(), value.into())], ..Told::default() };
        let (a, b) = (with("write"), with("write_all"));
        assert_eq!(pooled(&[&a, &b]).facts, []);
        let expected = Cause::Fact { name: "calls".into(), from: "write".into(), to: "write_all".into() };
        assert_eq!(causes(&pooled(&[&a, &a]), &b, 0.5), [expected]);
        let many = |value: &str| Told {
            facts: (0..5).map(|n| (format!("hint {n}"), value.to_owned())).collect(),
            few_calls: true,
            ..Told::default()
        };
        let found = causes(&many("1"), &many("2"), 0.5);
        assert_eq!(found[MOST_FACTS], Cause::MoreFacts { number: 2 });
        assert_eq!(found[MOST_FACTS + 1], Cause::FewCalls { first: true, second: true });
    }
}
