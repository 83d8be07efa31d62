//! Rings that are the same exchange under several names: with 2 ranks, all 36. Their difference is no property of the machine,
//! but a measure of the reliability of the value.

use std::collections::{BTreeMap, BTreeSet};

use super::curve::{averaged_curves, PatternCurve};
use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::CommResult;
use crate::frame::values::Criterion;

/// Largest accepted ratio of S, the mean over the sizes, between identical exchanges.
const MAX_SPREAD: f64 = 1.1;

/// Largest number of ranks for which the shape of a random ring lists them.
const MAX_NAMED_RANKS: u64 = 8;

pub(super) struct RingSpread<'a> {
    /// Number of patterns that are the same exchange.
    pub patterns: u64,
    /// Pattern with the largest S.
    pub fastest: &'a PatternCurve,
    /// Pattern with the smallest S.
    pub slowest: &'a PatternCurve,
    /// Largest S divided by the smallest.
    pub ratio: f64,
}

impl RingSpread<'_> {
    /// True if the ratio is above the accepted one.
    pub fn is_large(&self) -> bool {
        self.ratio > MAX_SPREAD
    }
}

/// Key that is equal for rings that are the same exchange. Rings are blocks of consecutive ranks, identified by their sizes. The
/// shape of a random ring lists its ranks if they are few; with many ranks, identical random rings are negligibly improbable.
fn exchange_key(curve: &PatternCurve, ranks: u64) -> Option<String> {
    match curve.family {
        PatternFamily::Ring if ranks > MAX_NAMED_RANKS => Some(curve.shape.clone()),
        _ => neighbour_pairs(curve, ranks).map(|pairs| format!("{pairs:?}")),
    }
}

/// Pairs of neighbours, the lower rank first: the direction of a ring does not matter.
fn neighbour_pairs(curve: &PatternCurve, ranks: u64) -> Option<BTreeSet<(u64, u64)>> {
    let number = |text: &str| text.parse::<u64>().ok();
    let rings: Vec<Vec<u64>> = if curve.shape.contains('-') {
        vec![curve.shape.split('-').map(number).collect::<Option<_>>()?]
    } else if curve.family == PatternFamily::Ring {
        let mut next = 0;
        let mut rings = Vec::new();
        for part in curve.shape.split('+') {
            let (times, size) = part.split_once('x').unwrap_or(("1", part));
            for _ in 0..number(times)? {
                let size = number(size)?;
                rings.push((next..next + size).collect());
                next += size;
            }
        }
        rings
    } else {
        return None;
    };
    let covered = rings.iter().map(|ring| ring.len() as u64).sum::<u64>() == ranks;
    let neighbours = |ring: &Vec<u64>| -> Vec<(u64, u64)> {
        let pair = |n: usize| (ring[n], ring[(n + 1) % ring.len()]);
        (0..ring.len()).map(pair).map(|(a, b)| (a.min(b), a.max(b))).collect()
    };
    covered.then(|| rings.iter().flat_map(neighbours).collect())
}

/// Largest difference; None if no two measured rings are the same exchange.
pub(super) fn largest_spread<'a>(result: &CommResult, curves: &'a [PatternCurve]) -> Option<RingSpread<'a>> {
    let mut groups: BTreeMap<String, Vec<(&PatternCurve, f64)>> = BTreeMap::new();
    for curve in averaged_curves(curves) {
        if let (Some(s), Some(same)) = (curve.mean_bytes_per_second, exchange_key(curve, result.setup.machine.ranks)) {
            groups.entry(same).or_default().push((curve, s));
        }
    }
    let difference = |group: &Vec<(&'a PatternCurve, f64)>| {
        let (fastest, most) = *group.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let (slowest, least) = *group.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(RingSpread { patterns: group.len() as u64, fastest, slowest, ratio: most / least })
    };
    let several = groups.values().filter(|group| group.len() > 1).filter_map(difference);
    several.reduce(|a, b| if b.ratio > a.ratio { b } else { a })
}

pub(super) fn criterion(result: &CommResult, curves: &[PatternCurve]) -> Criterion {
    let found = largest_spread(result, curves);
    let how = found.as_ref().map_or_else(
        || "none measured".to_owned(),
        |d| {
            let percent = 100.0 * (d.ratio - 1.0);
            format!("{} and {} of {} by {percent:.1} %", d.fastest.pattern, d.slowest.pattern, d.patterns)
        },
    );
    let met = found.is_none_or(|d| !d.is_large());
    Criterion::new(format!("rings that are the same exchange differ by at most 10 % in S ({how})"), met)
        .with_lack(format!("rings that are the same exchange differ: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::values::fixture::run;
    use crate::b_eff::values::{derive, kinds};
    use crate::frame::records::Warning;

    /// Two ranks: all rings are one exchange. The third random ring is slower by `factor`.
    fn slower(factor: f64, shapes: [&str; 2], ranks: u64) -> (bool, Option<Warning>) {
        let speed = |name: &str, _: PatternFamily, _: u64, _: crate::b_eff::records::MessageMethod, _: u32| {
            if name == "random-3" {
                4e9 / factor
            } else {
                4e9
            }
        };
        let mut result = run(ranks / 2, &speed);
        for p in &mut result.patterns {
            match p.family {
                PatternFamily::Ring => p.shape = shapes[0].into(),
                PatternFamily::Random => p.shape = shapes[1].into(),
                _ => {}
            }
        }
        let d = derive(&result);
        let warning = d.warnings.iter().find(|w| w.is_kind(&kinds::IDENTICAL_DIFFER)).cloned();
        let text = "rings that are the same exchange";
        assert_eq!(d.valid, d.criteria.iter().find(|c| c.text.starts_with(text)).unwrap().met);
        (d.valid, warning)
    }

    #[test]
    fn identical_exchanges_that_differ_raise_a_warning_and_are_not_valid() {
        assert_eq!(slower(1.09, ["2", "1-0"], 2), (true, None));
        let (valid, warning) = slower(1.12, ["2", "1-0"], 2);
        let warning = warning.unwrap();
        assert!(!valid && warning.number("patterns") == Some(36.0) && warning.text("slowest") == "random-3");
        assert!((warning.number("ratio").unwrap() - 1.12).abs() < 1e-9, "{warning:?}");
        // A cycle of four in reverse, and a different cycle.
        assert!(!slower(1.12, ["2x2", "0-3-2-1"], 4).0);
        assert!(!slower(1.12, ["4", "0-3-2-1"], 4).0);
        assert!(!slower(1.12, ["4", "0-2-1-3"], 4).0, "random rings among each other");
    }

    #[test]
    fn shapes_name_pairs() {
        let of = |family: PatternFamily, shape: &str, ranks: u64| {
            let mut result = run(ranks / 2, &|_, _, _, _, _| 1e9);
            result.patterns.retain(|p| p.pattern == "ring-1");
            let mut curve = derive(&result).curves.remove(0);
            (curve.family, curve.shape) = (family, shape.into());
            exchange_key(&curve, ranks)
        };
        assert_eq!(of(PatternFamily::Ring, "4", 4), of(PatternFamily::Random, "3-2-1-0", 4));
        assert_ne!(of(PatternFamily::Ring, "2x2", 4), of(PatternFamily::Random, "3-2-1-0", 4));
        assert_eq!(of(PatternFamily::Ring, "2", 2), of(PatternFamily::Random, "1-0", 2));
        assert_eq!(of(PatternFamily::Random, "100 ranks", 100), None);
        assert_eq!(of(PatternFamily::Ring, "2x50", 100).as_deref(), Some("2x50"));
        assert_eq!(of(PatternFamily::Ring, "3", 4), None);
    }
}
