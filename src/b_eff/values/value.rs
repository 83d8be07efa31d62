//! b_eff and the other values of a run.

use schemars::JsonSchema;
use serde::Serialize;

use super::average::FamilyAverages;
use super::curve::{averaged_curves, PatternCurve};
use super::estimates::{self, ValueEstimates};
use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::{CommResult, MessageMethod};
use crate::frame::values::memory_of_hosts;

/// A bandwidth of all ranks together and per rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AggregateBandwidth {
    /// All ranks together.
    pub bytes_per_second: f64,
    /// Divided by the number of ranks.
    pub per_process_bytes_per_second: f64,
}

/// Times with the smallest messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latencies {
    /// Time per message and process (ranks * seconds / (messages * iterations) of the best loop), logavg over the rings.
    pub rings_seconds: Option<f64>,
    /// The same over the random rings.
    pub random_seconds: Option<f64>,
    /// Ping-pong: half of the round-trip time.
    pub ping_pong_seconds: Option<f64>,
}

/// Values of a run; None if a required measurement is missing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommValue {
    /// Ranks.
    pub processes: u64,
    /// Number of random rings in the value; 30 by the definition.
    pub random_rings: u64,
    /// b_eff.
    pub b_eff: Option<AggregateBandwidth>,
    /// The half of the rings.
    pub rings: Option<AggregateBandwidth>,
    /// The half of the random rings.
    pub random: Option<AggregateBandwidth>,
    /// Values by single repetitions, with intervals: means, hence below the values, which are of the best repetition.
    pub of_repetitions: ValueEstimates,
    /// b_eff with the messages of Lmax only.
    pub at_lmax: Option<AggregateBandwidth>,
    /// The half of the rings at Lmax.
    pub at_lmax_rings: Option<AggregateBandwidth>,
    /// The half of the random rings at Lmax.
    pub at_lmax_random: Option<AggregateBandwidth>,
    /// Latencies with the smallest messages.
    pub latency: Latencies,
    /// Ping-pong bandwidth in one direction at Lmax.
    pub ping_pong_bytes_per_second: Option<f64>,
    /// b_eff / Rmax, in bytes per floating-point operation; None without --rmax.
    pub balance_bytes_per_flop: Option<f64>,
    /// Memory of all hosts.
    pub memory_bytes: u64,
    /// Time to communicate all of it once: memory / b_eff.
    pub memory_seconds: Option<f64>,
}

/// Values by one method alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MethodValue {
    /// Method.
    pub method: MessageMethod,
    /// b_eff.
    pub b_eff: Option<AggregateBandwidth>,
    /// The half of the rings.
    pub rings: Option<AggregateBandwidth>,
    /// The half of the random rings.
    pub random: Option<AggregateBandwidth>,
    /// b_eff with the messages of Lmax only.
    pub at_lmax: Option<AggregateBandwidth>,
    /// Smallest size that a ring or random ring has without this method: the best method alone was measured to save time.
    /// None if there is no such size.
    pub omitted_from_bytes: Option<u64>,
}

pub(super) fn derive_value(result: &CommResult, curves: &[PatternCurve], random_rings: u64) -> CommValue {
    let setup = &result.setup;
    let level = |value| aggregate_bandwidth(result, value);
    let mean = FamilyAverages::of(curves, random_rings, |c| c.mean_bytes_per_second);
    let lmax = FamilyAverages::of(curves, random_rings, |c| c.at_lmax_bytes_per_second);
    let latency = FamilyAverages::of(curves, random_rings, |c| c.latency_seconds);
    let ping_pong = curves.iter().find(|c| c.family == PatternFamily::PingPong);
    let b_eff = level(mean.combined());
    let memory_bytes = memory_of_hosts(&setup.machine);
    let flops = result.config.rmax_gflops.map(|g| g * 1e9).filter(|f| *f > 0.0);
    let complete = curves.iter().filter(|c| c.family == PatternFamily::Random && c.mean_bytes_per_second.is_some());
    CommValue {
        processes: setup.machine.ranks,
        random_rings: complete.count() as u64,
        b_eff,
        rings: level(mean.rings),
        random: level(mean.random),
        of_repetitions: estimates::value_estimates(
            result,
            [mean.combined(), mean.rings, mean.random].map(|v| v.is_some()),
        ),
        at_lmax: level(lmax.combined()),
        at_lmax_rings: level(lmax.rings),
        at_lmax_random: level(lmax.random),
        latency: Latencies {
            rings_seconds: latency.rings,
            random_seconds: latency.random,
            ping_pong_seconds: ping_pong.and_then(|c| c.latency_seconds),
        },
        ping_pong_bytes_per_second: ping_pong.and_then(|c| c.at_lmax_bytes_per_second),
        balance_bytes_per_flop: b_eff.zip(flops).map(|(b, flops)| b.bytes_per_second / flops),
        memory_bytes,
        memory_seconds: b_eff.map(|b| memory_bytes as f64 / b.bytes_per_second),
    }
}

pub(super) fn values_by_method(result: &CommResult, curves: &[PatternCurve], random_rings: u64) -> Vec<MethodValue> {
    let sizes = &result.setup.sizes_bytes;
    let of = |method: MessageMethod| {
        let mean = FamilyAverages::of(curves, random_rings, |c| c.mean(Some(method), sizes));
        let last = sizes.len().checked_sub(1);
        let lmax = FamilyAverages::of(curves, random_rings, |c| c.at(last?, sizes, Some(method)));
        MethodValue {
            method,
            b_eff: aggregate_bandwidth(result, mean.combined()),
            rings: aggregate_bandwidth(result, mean.rings),
            random: aggregate_bandwidth(result, mean.random),
            at_lmax: aggregate_bandwidth(result, lmax.combined()),
            omitted_from_bytes: omitted_from_bytes(curves, method),
        }
    };
    MessageMethod::EXCHANGES.map(of).to_vec()
}

fn omitted_from_bytes(curves: &[PatternCurve], method: MessageMethod) -> Option<u64> {
    let points = averaged_curves(curves).flat_map(|c| &c.points);
    points.filter(|p| p.method(method).is_none()).map(|p| p.message_bytes).min()
}

fn aggregate_bandwidth(result: &CommResult, value: Option<f64>) -> Option<AggregateBandwidth> {
    let ranks = result.setup.machine.ranks.max(1) as f64;
    value.map(|v| AggregateBandwidth { bytes_per_second: v, per_process_bytes_per_second: v / ranks })
}
