//! Averages over patterns.

use schemars::JsonSchema;
use serde::Serialize;

use super::curve::{averaged_curves, PatternCurve};
use super::DEFINED_RINGS;
use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::{CommResult, MessageMethod};

/// Geometric mean; None without values.
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
    /// logavg over the six rings; None if not all of them were measured.
    pub rings_bytes_per_second: Option<f64>,
    /// logavg over the planned random rings.
    pub random_bytes_per_second: Option<f64>,
    /// logavg of the two.
    pub average_bytes_per_second: Option<f64>,
    /// The average divided by the number of ranks.
    pub per_process_bytes_per_second: Option<f64>,
    /// Ping-pong of the first two ranks.
    pub ping_pong_bytes_per_second: Option<f64>,
    /// Method that is the best in most rings and random rings.
    pub best_method: Option<MessageMethod>,
    /// Number of rings and random rings in which it is the best.
    pub best_in: u64,
    /// Number of rings and random rings measured at this size.
    pub of_patterns: u64,
}

pub(super) fn averages_by_size(result: &CommResult, curves: &[PatternCurve], random_rings: u64) -> Vec<SizeAverage> {
    let sizes = &result.setup.sizes_bytes;
    (0..sizes.len()).map(|index| average_at_size(result, curves, random_rings, index)).collect()
}

fn average_at_size(result: &CommResult, curves: &[PatternCurve], random_rings: u64, index: usize) -> SizeAverage {
    let sizes = &result.setup.sizes_bytes;
    let value = |curve: &PatternCurve| curve.at(index, sizes, None);
    let pair = FamilyAverages::of(curves, random_rings, value);
    let ping_pong = curves.iter().find(|c| c.family == PatternFamily::PingPong);
    let measured = averaged_curves(curves).filter(|c| value(c).is_some());
    let bests: Vec<MessageMethod> = measured.map(|c| c.points[index].best_method).collect();
    let wins = |method: MessageMethod| bests.iter().filter(|m| **m == method).count() as u64;
    // Ties: the first in the order of the paper.
    let best = MessageMethod::EXCHANGES.into_iter().reduce(|a, b| if wins(b) > wins(a) { b } else { a });
    let best_method = best.filter(|m| wins(*m) > 0);
    SizeAverage {
        message_bytes: sizes[index],
        rings_bytes_per_second: pair.rings,
        random_bytes_per_second: pair.random,
        average_bytes_per_second: pair.combined(),
        per_process_bytes_per_second: pair.combined().map(|b| b / result.setup.machine.ranks.max(1) as f64),
        ping_pong_bytes_per_second: ping_pong.and_then(value),
        best_method,
        best_in: best_method.map_or(0, wins),
        of_patterns: bests.len() as u64,
    }
}

/// Averages of a quantity over the six rings and over the random rings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FamilyAverages {
    pub(super) rings: Option<f64>,
    /// None if one of them has no value, or there are fewer than planned.
    pub(super) random: Option<f64>,
}

impl FamilyAverages {
    pub(super) fn of(curves: &[PatternCurve], random_rings: u64, value: impl Fn(&PatternCurve) -> Option<f64>) -> Self {
        let family = |family: PatternFamily, wanted: u64| {
            let values: Option<Vec<f64>> = curves.iter().filter(|c| c.family == family).map(&value).collect();
            values.filter(|v| v.len() as u64 >= wanted).and_then(logavg)
        };
        Self { rings: family(PatternFamily::Ring, DEFINED_RINGS), random: family(PatternFamily::Random, random_rings) }
    }

    pub(super) fn combined(&self) -> Option<f64> {
        logavg([self.rings?, self.random?])
    }
}
