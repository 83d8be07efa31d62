//! Possible causes of a change, from the records: parts of the time, cache, calls, few calls, interference.

use serde::Serialize;

use super::comparable::MeasurementContext;

/// A part of the time explains a change if it accounts for at least this share of it.
const MIN_EXPLAINED_SHARE: f64 = 0.5;

const MIN_CACHE_CHANGE: f64 = 0.1;

/// Facts listed at most: there may be dozens of hints in force.
const MAX_FACTS: usize = 3;

/// One possible cause of the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum ChangeCause {
    /// Most of the change of time per byte is in this part. Shares of the time, 0 to 1.
    Part {
        /// Name of the part.
        part: String,
        /// Share on the first side.
        from: f64,
        /// Share on the second side.
        to: f64,
    },
    /// The share of cached reads differs. Shares of the bytes, 0 to 1.
    Cache {
        /// On the first side.
        from: f64,
        /// On the second side.
        to: f64,
    },
    /// The calls, a hint in force or another setting differs.
    Fact {
        /// Name of the fact.
        name: String,
        /// On the first side.
        from: String,
        /// On the second side.
        to: String,
    },
    /// Further differing facts that are not listed.
    MoreFacts {
        /// Number of facts.
        number: u64,
    },
    /// The number is based on few calls or few bytes.
    FewCalls {
        /// On the first side.
        first: bool,
        /// On the second side.
        second: bool,
    },
    /// The measurement was disturbed by interference.
    Busy {
        /// On the first side.
        first: bool,
        /// On the second side.
        second: bool,
    },
}

/// Pools several runs: means of shares; a fact is kept if all runs agree on it.
pub(super) fn pool_contexts(runs: &[&MeasurementContext]) -> MeasurementContext {
    let Some((first, others)) = runs.split_first() else { return MeasurementContext::default() };
    let number = runs.len() as f64;
    let share = |name: &str| {
        let of = |context: &&MeasurementContext| {
            context.shares.iter().find(|(own, _)| *own == name).map_or(0.0, |(_, share)| *share)
        };
        runs.iter().map(of).sum::<f64>() / number
    };
    let cached: Option<Vec<f64>> = runs.iter().map(|context| context.cache_share).collect();
    let is_common = |fact: &&(String, String)| others.iter().all(|context| context.facts.contains(fact));
    MeasurementContext {
        shares: first.shares.iter().map(|(name, _)| (*name, share(name))).collect(),
        cache_share: cached.map(|shares| shares.iter().sum::<f64>() / number),
        few_calls: runs.iter().any(|context| context.few_calls),
        has_interference: runs.iter().any(|context| context.has_interference),
        facts: first.facts.iter().filter(is_common).cloned().collect(),
    }
}

/// Possible causes of a change of speed by the factor `ratio`.
pub(super) fn causes(from: &MeasurementContext, to: &MeasurementContext, ratio: f64) -> Vec<ChangeCause> {
    let mut found: Vec<ChangeCause> = dominant_part(from, to, ratio).into_iter().collect();
    if let Some((from, to)) = from.cache_share.zip(to.cache_share) {
        if (from - to).abs() >= MIN_CACHE_CHANGE {
            found.push(ChangeCause::Cache { from, to });
        }
    }
    let of = |context: &MeasurementContext, name: &str| {
        context.facts.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
    };
    let changed: Vec<ChangeCause> = from
        .facts
        .iter()
        .filter_map(|(name, before)| {
            let after = of(to, name).filter(|after| after != before)?;
            Some(ChangeCause::Fact { name: name.clone(), from: before.clone(), to: after })
        })
        .collect();
    let more = changed.len().saturating_sub(MAX_FACTS) as u64;
    found.extend(changed.into_iter().take(MAX_FACTS));
    found.extend((more > 0).then_some(ChangeCause::MoreFacts { number: more }));
    if from.few_calls || to.few_calls {
        found.push(ChangeCause::FewCalls { first: from.few_calls, second: to.few_calls });
    }
    if from.has_interference || to.has_interference {
        found.push(ChangeCause::Busy { first: from.has_interference, second: to.has_interference });
    }
    found
}

/// The part whose time for the same bytes changed most, if it accounts for most of the change. The total time is 1 on the first side and
/// 1 / ratio on the second.
fn dominant_part(from: &MeasurementContext, to: &MeasurementContext, ratio: f64) -> Option<ChangeCause> {
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
    (explained.is_finite() && explained >= MIN_EXPLAINED_SHARE).then(|| ChangeCause::Part {
        part: name.to_owned(),
        from: before,
        to: after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(transfer: f64, sync: f64) -> MeasurementContext {
        MeasurementContext { shares: vec![("transfer", transfer), ("sync", sync)], ..MeasurementContext::default() }
    }

    #[test]
    fn the_part_that_grew_is_named() {
        // Twice the time, all of it more sync: 0.9 + 0.1 becomes 0.9 + 1.1.
        let found = causes(&context(0.9, 0.1), &context(0.45, 0.55), 0.5);
        assert_eq!(found, [ChangeCause::Part { part: "sync".into(), from: 0.1, to: 0.55 }]);
        // In the opposite direction the same part decreased.
        let found = causes(&context(0.45, 0.55), &context(0.9, 0.1), 2.0);
        assert_eq!(found, [ChangeCause::Part { part: "sync".into(), from: 0.55, to: 0.1 }]);
    }

    #[test]
    fn no_cause_without_a_change() {
        assert_eq!(causes(&context(0.9, 0.1), &context(0.9, 0.1), 1.0), []);
        assert_eq!(causes(&MeasurementContext::default(), &MeasurementContext::default(), 0.5), []);
        let cached = |share| MeasurementContext { cache_share: Some(share), ..MeasurementContext::default() };
        assert_eq!(causes(&cached(0.5), &cached(0.55), 0.5), []);
        assert_eq!(causes(&cached(0.0), &cached(0.9), 9.0), [ChangeCause::Cache { from: 0.0, to: 0.9 }]);
    }

    #[test]
    fn facts_count_where_all_runs_agree() {
        let with = |value: &str| MeasurementContext {
            facts: vec![("calls".into(), value.into())],
            ..MeasurementContext::default()
        };
        let (a, b) = (with("write"), with("write_all"));
        assert_eq!(pool_contexts(&[&a, &b]).facts, []);
        let expected = ChangeCause::Fact { name: "calls".into(), from: "write".into(), to: "write_all".into() };
        assert_eq!(causes(&pool_contexts(&[&a, &a]), &b, 0.5), [expected]);
        let many = |value: &str| MeasurementContext {
            facts: (0..5).map(|n| (format!("hint {n}"), value.to_owned())).collect(),
            few_calls: true,
            ..MeasurementContext::default()
        };
        let found = causes(&many("1"), &many("2"), 0.5);
        assert_eq!(found[MAX_FACTS], ChangeCause::MoreFacts { number: 2 });
        assert_eq!(found[MAX_FACTS + 1], ChangeCause::FewCalls { first: true, second: true });
    }
}
