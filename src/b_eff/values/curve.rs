//! Bandwidth of one pattern over the message size.

use schemars::JsonSchema;
use serde::Serialize;

use super::estimates::{self, RateEstimate};
use super::rate::bytes_per_second;
use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::{CommPatternRecord, CommResult, MessageMethod, SizeRecord};
use crate::frame::values::interference::is_disturbed;

/// Results of one method at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MethodPoint {
    /// Method.
    pub method: MessageMethod,
    /// Number of repetitions.
    pub repetitions: u64,
    /// Best repetition, all ranks together.
    pub bytes_per_second: f64,
    /// Worst repetition.
    pub worst_bytes_per_second: f64,
    /// Time of an iteration in the best repetition.
    pub seconds_per_iteration: f64,
}

/// Results of one size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizePoint {
    /// Message size L.
    pub message_bytes: u64,
    /// Best method.
    pub best_method: MessageMethod,
    /// Its best repetition, all ranks together.
    pub bytes_per_second: f64,
    /// Time of an iteration in it.
    pub seconds_per_iteration: f64,
    /// Measured methods.
    pub methods: Vec<MethodPoint>,
}

impl SizePoint {
    /// Results of one method.
    #[must_use]
    pub fn method(&self, method: MessageMethod) -> Option<&MethodPoint> {
        self.methods.iter().find(|m| m.method == method)
    }
}

/// Results of one pattern.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PatternCurve {
    /// Name.
    pub pattern: String,
    /// Family.
    pub family: PatternFamily,
    /// Its shape.
    pub shape: String,
    /// S: mean over the sizes of the best bandwidth; None if not all sizes were measured.
    pub mean_bytes_per_second: Option<f64>,
    /// Best bandwidth at Lmax.
    pub at_lmax_bytes_per_second: Option<f64>,
    /// Time per message and process with the smallest messages: ranks * seconds / (messages * iterations). Ping-pong:
    /// half of the round-trip time.
    pub latency_seconds: Option<f64>,
    /// S of single repetitions with its interval; None if no repetition has all sizes.
    pub repeated: Option<RateEstimate>,
    /// True if interference exceeded 5 % of the CPU time.
    pub is_disturbed: bool,
    /// Measured sizes.
    pub points: Vec<SizePoint>,
}

impl PatternCurve {
    /// S by one method, or by the best; None if not measured at every size.
    pub(super) fn mean(&self, method: Option<MessageMethod>, sizes: &[u64]) -> Option<f64> {
        let values: Option<Vec<f64>> = (0..sizes.len()).map(|i| self.at(i, sizes, method)).collect();
        let values = values.filter(|v| !v.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Bandwidth at the size with this index (sizes may be equal where memory is tiny).
    pub(super) fn at(&self, index: usize, sizes: &[u64], method: Option<MessageMethod>) -> Option<f64> {
        let point = self.points.get(index).filter(|p| sizes.get(index) == Some(&p.message_bytes))?;
        match method {
            None => Some(point.bytes_per_second),
            Some(method) => point.method(method).map(|m| m.bytes_per_second),
        }
    }
}

pub(super) fn averaged_curves(curves: &[PatternCurve]) -> impl Iterator<Item = &PatternCurve> {
    curves.iter().filter(|c| [PatternFamily::Ring, PatternFamily::Random].contains(&c.family))
}

pub(super) fn derive_curve(record: &CommPatternRecord, result: &CommResult) -> PatternCurve {
    let sizes = &result.setup.sizes_bytes;
    // A size without any usable loop ends the curve: later points would be assigned to wrong sizes.
    let points: Vec<SizePoint> = record.sizes.iter().map_while(|size| derive_point(size, record.messages)).collect();
    let latency = points.first().filter(|_| record.messages > 0).map(|first| {
        // All ranks send at the same time, except in the ping-pong, whose messages are sequential.
        let at_once = if record.family == PatternFamily::PingPong { 1 } else { result.setup.machine.ranks };
        at_once as f64 * first.seconds_per_iteration / record.messages as f64
    });
    let mut curve = PatternCurve {
        pattern: record.pattern.clone(),
        family: record.family,
        shape: record.shape.clone(),
        mean_bytes_per_second: None,
        at_lmax_bytes_per_second: None,
        latency_seconds: latency,
        repeated: estimates::pattern_estimate(record, result),
        is_disturbed: is_disturbed(&record.interference),
        points,
    };
    curve.mean_bytes_per_second = curve.mean(None, sizes);
    curve.at_lmax_bytes_per_second = sizes.len().checked_sub(1).and_then(|last| curve.at(last, sizes, None));
    curve
}

fn derive_point(size: &SizeRecord, messages: u64) -> Option<SizePoint> {
    let mut methods: Vec<MethodPoint> = Vec::new();
    for one in size.loops.iter() {
        let Some(rate) = bytes_per_second(size.message_bytes, messages, one) else { continue };
        let seconds_per_iteration = one.seconds / one.iterations as f64;
        match methods.iter_mut().find(|m| m.method == one.method) {
            None => methods.push(MethodPoint {
                method: one.method,
                repetitions: 1,
                bytes_per_second: rate,
                worst_bytes_per_second: rate,
                seconds_per_iteration,
            }),
            Some(known) => {
                known.repetitions += 1;
                known.bytes_per_second = known.bytes_per_second.max(rate);
                known.worst_bytes_per_second = known.worst_bytes_per_second.min(rate);
                known.seconds_per_iteration = known.seconds_per_iteration.min(seconds_per_iteration);
            }
        }
    }
    let best = methods.iter().copied().reduce(|a, b| if b.bytes_per_second > a.bytes_per_second { b } else { a })?;
    Some(SizePoint {
        message_bytes: size.message_bytes,
        best_method: best.method,
        bytes_per_second: best.bytes_per_second,
        seconds_per_iteration: best.seconds_per_iteration,
        methods,
    })
}

/// The pattern with the widest interval of S, and its half-width; None if no pattern has an interval.
#[must_use]
pub fn widest_interval(curves: &[PatternCurve]) -> Option<(&PatternCurve, f64)> {
    let known = curves.iter().filter_map(|c| Some((c, c.repeated?.half_width_share?)));
    known.max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::records::LoopRecord;

    #[test]
    fn the_best_method_of_a_size_is_the_fastest_and_of_equals_the_first() {
        let one = |method, repetition, seconds| LoopRecord { method, repetition, iterations: 10, seconds };
        let [first, second, third] = MessageMethod::EXCHANGES;
        let of = |loops: Vec<LoopRecord>| derive_point(&SizeRecord { message_bytes: 100, loops }, 6).unwrap();
        let equal = of(vec![one(first, 0, 2.0), one(second, 0, 2.0), one(third, 0, 2.0)]);
        assert_eq!((equal.best_method, equal.bytes_per_second, equal.seconds_per_iteration), (first, 3000.0, 0.2));
        // The best repetition counts, and the worst is recorded.
        let point = of(vec![one(first, 0, 2.0), one(second, 0, 8.0), one(first, 1, 4.0), one(second, 1, 1.0)]);
        assert_eq!((point.best_method, point.bytes_per_second, point.seconds_per_iteration), (second, 6000.0, 0.1));
        let known = point.method(first).unwrap();
        assert_eq!((known.repetitions, known.bytes_per_second, known.worst_bytes_per_second), (2, 3000.0, 1500.0));
        assert_eq!((known.seconds_per_iteration, point.method(third)), (0.2, None));
        let known = point.method(second).unwrap();
        assert_eq!((known.bytes_per_second, known.worst_bytes_per_second), (6000.0, 750.0));
    }
}
