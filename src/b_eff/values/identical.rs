//! Rings that are the same exchange under several names: with 2 ranks all 36 of them. What they differ by is no property of the
//! machine, and says how far the value of this run can be trusted.

use std::collections::{BTreeMap, BTreeSet};

use super::curve::{of_average, Curve};
use crate::b_eff::plan::Family;
use crate::b_eff::records::CommResult;
use crate::frame::values::Criterion;

/// Identical exchanges may differ by this in S, the mean over the sizes that the value is made of.
const MOST: f64 = 1.1;

/// Up to so many ranks the shape of a random ring names them.
const NAMED_RANKS: u64 = 8;

/// The largest difference between identical exchanges.
pub(super) struct Difference<'a> {
    /// Patterns that are the same exchange.
    pub patterns: u64,
    /// The one with the largest S.
    pub fastest: &'a Curve,
    /// The one with the smallest.
    pub slowest: &'a Curve,
    /// S of the one divided by S of the other.
    pub ratio: f64,
}

impl Difference<'_> {
    /// More than the same thing measured twice may differ by.
    pub fn is_large(&self) -> bool {
        self.ratio > MOST
    }
}

/// What is equal for rings that are the same exchange. Rings are blocks of consecutive ranks, known by their sizes. The shape of
/// a random ring names its ranks where they are few; those of many are the same by a chance that need not be thought of.
fn exchange(curve: &Curve, ranks: u64) -> Option<String> {
    match curve.family {
        Family::Ring if ranks > NAMED_RANKS => Some(curve.shape.clone()),
        _ => pairs(curve, ranks).map(|pairs| format!("{pairs:?}")),
    }
}

/// Pairs of neighbours, the lower rank first: which way round a ring goes makes no difference.
fn pairs(curve: &Curve, ranks: u64) -> Option<BTreeSet<(u64, u64)>> {
    let number = |text: &str| text.parse::<u64>().ok();
    let rings: Vec<Vec<u64>> = if curve.shape.contains('-') {
        vec![curve.shape.split('-').map(number).collect::<Option<_>>()?]
    } else if curve.family == Family::Ring {
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

/// None: no two of the rings that were measured are the same.
pub(super) fn largest<'a>(result: &CommResult, curves: &'a [Curve]) -> Option<Difference<'a>> {
    let mut groups: BTreeMap<String, Vec<(&Curve, f64)>> = BTreeMap::new();
    for curve in of_average(curves) {
        if let (Some(s), Some(same)) = (curve.mean_bytes_per_second, exchange(curve, result.setup.machine.ranks)) {
            groups.entry(same).or_default().push((curve, s));
        }
    }
    let difference = |group: &Vec<(&'a Curve, f64)>| {
        let (fastest, most) = *group.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let (slowest, least) = *group.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Difference { patterns: group.len() as u64, fastest, slowest, ratio: most / least })
    };
    let several = groups.values().filter(|group| group.len() > 1).filter_map(difference);
    several.reduce(|a, b| if b.ratio > a.ratio { b } else { a })
}

pub(super) fn criterion(result: &CommResult, curves: &[Curve]) -> Criterion {
    let found = largest(result, curves);
    let how = found.as_ref().map_or_else(
        || "none measured".to_owned(),
        |d| {
            let percent = 100.0 * (d.ratio - 1.0);
            format!("{} and {} of {} by {percent:.1} %", d.fastest.pattern, d.slowest.pattern, d.patterns)
        },
    );
    let met = found.is_none_or(|d| !d.is_large());
    Criterion::new(format!("rings that are the same exchange differ by at most 10 % in S ({how})"), met)
        .or(format!("rings that are the same exchange differ: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::values::fixture::run;
    use crate::b_eff::values::{derive, kinds};
    use crate::frame::records::Warning;

    /// Two ranks: all rings are one exchange. The third random ring is so much slower.
    fn slower(factor: f64, shapes: [&str; 2], ranks: u64) -> (bool, Option<Warning>) {
        let speed = |name: &str, _: Family, _: u64, _: crate::b_eff::records::Method, _: u32| {
            if name == "random-3" {
                4e9 / factor
            } else {
                4e9
            }
        };
        let mut result = run(ranks / 2, &speed);
        for p in &mut result.patterns {
            match p.family {
                Family::Ring => p.shape = shapes[0].into(),
                Family::Random => p.shape = shapes[1].into(),
                _ => {}
            }
        }
        let d = derive(&result);
        let warning = d.warnings.iter().find(|w| w.is(&kinds::IDENTICAL_DIFFER)).cloned();
        let text = "rings that are the same exchange";
        assert_eq!(d.valid, d.criteria.iter().find(|c| c.text.starts_with(text)).unwrap().met);
        (d.valid, warning)
    }

    #[test]
    fn the_same_exchange_that_differs_is_warned_of_and_costs_valid() {
        assert_eq!(slower(1.09, ["2", "1-0"], 2), (true, None));
        let (valid, warning) = slower(1.12, ["2", "1-0"], 2);
        let warning = warning.unwrap();
        assert!(!valid && warning.number("patterns") == Some(36.0) && warning.text("slowest") == "random-3");
        assert!((warning.number("ratio").unwrap() - 1.12).abs() < 1e-9, "{warning:?}");
        // A cycle of four the other way round, and one that is another cycle.
        assert!(!slower(1.12, ["2x2", "0-3-2-1"], 4).0);
        assert!(!slower(1.12, ["4", "0-3-2-1"], 4).0);
        assert!(!slower(1.12, ["4", "0-2-1-3"], 4).0, "random rings among each other");
    }

    #[test]
    fn shapes_name_pairs() {
        let of = |family: Family, shape: &str, ranks: u64| {
            let mut result = run(ranks / 2, &|_, _, _, _, _| 1e9);
            result.patterns.retain(|p| p.pattern == "ring-1");
            let mut curve = derive(&result).curves.remove(0);
            (curve.family, curve.shape) = (family, shape.into());
            exchange(&curve, ranks)
        };
        assert_eq!(of(Family::Ring, "4", 4), of(Family::Random, "3-2-1-0", 4));
        assert_ne!(of(Family::Ring, "2x2", 4), of(Family::Random, "3-2-1-0", 4));
        assert_eq!(of(Family::Ring, "2", 2), of(Family::Random, "1-0", 2));
        assert_eq!(of(Family::Random, "100 ranks", 100), None);
        assert_eq!(of(Family::Ring, "2x50", 100).as_deref(), Some("2x50"));
        assert_eq!(of(Family::Ring, "3", 4), None);
    }
}
