//! b_eff and what stands beside it.

use schemars::JsonSchema;
use serde::Serialize;

use super::average::Pair;
use super::curve::{of_average, Curve};
use super::repeated::{self, RepeatedValue};
use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, Method};
use crate::frame::values::memory_of_hosts;

/// A bandwidth of all ranks together and by the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Level {
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
    /// Ping-pong: half of the time there and back.
    pub ping_pong_seconds: Option<f64>,
}

/// The values of a run; None where something they are made of was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommValue {
    /// Ranks.
    pub processes: u64,
    /// Random rings that are in it; 30 by the definition.
    pub random_rings: u64,
    /// b_eff.
    pub b_eff: Option<Level>,
    /// Its half of the rings.
    pub rings: Option<Level>,
    /// Its half of the random rings.
    pub random: Option<Level>,
    /// The same by single repetitions, with intervals: means, and so below these, which take the best.
    pub of_repetitions: RepeatedValue,
    /// b_eff with the messages of Lmax only.
    pub at_lmax: Option<Level>,
    /// The half of the rings of that.
    pub at_lmax_rings: Option<Level>,
    /// The half of the random rings of that.
    pub at_lmax_random: Option<Level>,
    /// With the smallest messages.
    pub latency: Latencies,
    /// Ping-pong bandwidth of one direction at Lmax.
    pub ping_pong_bytes_per_second: Option<f64>,
    /// b_eff / Rmax, in bytes per floating-point operation; None without --rmax too.
    pub balance_bytes_per_flop: Option<f64>,
    /// Memory of all hosts.
    pub memory_bytes: u64,
    /// Time to communicate all of it once: memory / b_eff.
    pub memory_seconds: Option<f64>,
}

/// The values by one method alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MethodValue {
    /// Method.
    pub method: Method,
    /// b_eff.
    pub b_eff: Option<Level>,
    /// Its half of the rings.
    pub rings: Option<Level>,
    /// Its half of the random rings.
    pub random: Option<Level>,
    /// b_eff with the messages of Lmax only.
    pub at_lmax: Option<Level>,
    /// Smallest size without this method in a ring or random ring that has the size: there the best method alone was
    /// measured, to save time. None: nowhere.
    pub left_out_from_bytes: Option<u64>,
}

/// The values of a run.
pub(super) fn of(result: &CommResult, curves: &[Curve], random_rings: u64) -> CommValue {
    let setup = &result.setup;
    let level = |value| level(result, value);
    let mean = Pair::of(curves, random_rings, |c| c.mean_bytes_per_second);
    let lmax = Pair::of(curves, random_rings, |c| c.at_lmax_bytes_per_second);
    let latency = Pair::of(curves, random_rings, |c| c.latency_seconds);
    let ping_pong = curves.iter().find(|c| c.family == Family::PingPong);
    let b_eff = level(mean.both());
    let memory_bytes = memory_of_hosts(&setup.machine);
    let flops = result.config.rmax_gflops.map(|g| g * 1e9).filter(|f| *f > 0.0);
    let complete = curves.iter().filter(|c| c.family == Family::Random && c.mean_bytes_per_second.is_some());
    CommValue {
        processes: setup.machine.ranks,
        random_rings: complete.count() as u64,
        b_eff,
        rings: level(mean.rings),
        random: level(mean.random),
        of_repetitions: repeated::of_value(result, [mean.both(), mean.rings, mean.random].map(|v| v.is_some())),
        at_lmax: level(lmax.both()),
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

/// The values by each method alone.
pub(super) fn by_method(result: &CommResult, curves: &[Curve], random_rings: u64) -> Vec<MethodValue> {
    let sizes = &result.setup.sizes_bytes;
    let of = |method: Method| {
        let mean = Pair::of(curves, random_rings, |c| c.mean(Some(method), sizes));
        let last = sizes.len().checked_sub(1);
        let lmax = Pair::of(curves, random_rings, |c| c.at(last?, sizes, Some(method)));
        MethodValue {
            method,
            b_eff: level(result, mean.both()),
            rings: level(result, mean.rings),
            random: level(result, mean.random),
            at_lmax: level(result, lmax.both()),
            left_out_from_bytes: left_out_from(curves, method),
        }
    };
    Method::EXCHANGES.map(of).to_vec()
}

fn left_out_from(curves: &[Curve], method: Method) -> Option<u64> {
    let points = of_average(curves).flat_map(|c| &c.points);
    points.filter(|p| p.method(method).is_none()).map(|p| p.message_bytes).min()
}

fn level(result: &CommResult, value: Option<f64>) -> Option<Level> {
    let ranks = result.setup.machine.ranks.max(1) as f64;
    value.map(|v| Level { bytes_per_second: v, per_process_bytes_per_second: v / ranks })
}
