//! Averages over patterns.

use schemars::JsonSchema;
use serde::Serialize;

use super::curve::{of_average, Curve};
use super::RINGS;
use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, Method};

/// Geometric mean; None of nothing.
#[must_use]
pub fn logavg(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut number) = (0.0, 0_u64);
    for value in values {
        sum += value.ln();
        number += 1;
    }
    (number > 0).then(|| (sum / number as f64).exp())
}

/// One message size over the patterns of the average. Bandwidths of all ranks together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeAverage {
    /// Message size L.
    pub message_bytes: u64,
    /// logavg over the six rings; None: not all of them were measured.
    pub rings_bytes_per_second: Option<f64>,
    /// logavg over the random rings that were to be measured.
    pub random_bytes_per_second: Option<f64>,
    /// logavg of the two.
    pub average_bytes_per_second: Option<f64>,
    /// That, by the number of ranks.
    pub per_process_bytes_per_second: Option<f64>,
    /// Ping-pong of the first two ranks.
    pub ping_pong_bytes_per_second: Option<f64>,
    /// The method that is the best one in most of the rings and random rings.
    pub best_method: Option<Method>,
    /// In how many of them it is.
    pub best_in: u64,
    /// Of how many.
    pub of_patterns: u64,
}

/// Size by size.
pub(super) fn by_size(result: &CommResult, curves: &[Curve], random_rings: u64) -> Vec<SizeAverage> {
    let sizes = &result.setup.sizes_bytes;
    (0..sizes.len()).map(|index| at_size(result, curves, random_rings, index)).collect()
}

fn at_size(result: &CommResult, curves: &[Curve], random_rings: u64, index: usize) -> SizeAverage {
    let sizes = &result.setup.sizes_bytes;
    let value = |curve: &Curve| curve.at(index, sizes, None);
    let pair = Pair::of(curves, random_rings, value);
    let ping_pong = curves.iter().find(|c| c.family == Family::PingPong);
    let measured = of_average(curves).filter(|c| value(c).is_some());
    let bests: Vec<Method> = measured.map(|c| c.points[index].best_method).collect();
    let wins = |method: Method| bests.iter().filter(|m| **m == method).count() as u64;
    // Of equals the first in the order of the paper.
    let best = Method::EXCHANGES.into_iter().reduce(|a, b| if wins(b) > wins(a) { b } else { a });
    let best_method = best.filter(|m| wins(*m) > 0);
    SizeAverage {
        message_bytes: sizes[index],
        rings_bytes_per_second: pair.rings,
        random_bytes_per_second: pair.random,
        average_bytes_per_second: pair.both(),
        per_process_bytes_per_second: pair.both().map(|b| b / result.setup.machine.ranks.max(1) as f64),
        ping_pong_bytes_per_second: ping_pong.and_then(value),
        best_method,
        best_in: best_method.map_or(0, wins),
        of_patterns: bests.len() as u64,
    }
}

/// Something averaged over the six rings and over the random ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// None if one of the six has no value.
    pub(super) rings: Option<f64>,
    /// None if one of them has no value, or there are fewer than were to be measured.
    pub(super) random: Option<f64>,
}

impl Pair {
    pub(super) fn of(curves: &[Curve], random_rings: u64, value: impl Fn(&Curve) -> Option<f64>) -> Self {
        let family = |family: Family, wanted: u64| {
            let values: Option<Vec<f64>> = curves.iter().filter(|c| c.family == family).map(&value).collect();
            values.filter(|v| v.len() as u64 >= wanted).and_then(logavg)
        };
        Self { rings: family(Family::Ring, RINGS), random: family(Family::Random, random_rings) }
    }

    /// The two weighted alike.
    pub(super) fn both(&self) -> Option<f64> {
        logavg([self.rings?, self.random?])
    }
}
