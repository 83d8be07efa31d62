//! What the reader of the numbers of b_eff must know. At most one of a kind, with the worst case named.

use schemars::JsonSchema;
use serde::Serialize;

use super::curve::Curve;
use super::validity::LOOP_SECONDS;
use super::value::CommValue;
use super::{efforts, identical, RANDOM_RINGS};
use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, Method};
use crate::frame::records::{Numbering, Warning};
use crate::frame::values::warning::{is_overrun, of_machine};
use crate::frame::values::{binding, machine_share};

/// A worst repetition this many times slower than the best of the same loop is disturbed.
const DISTURBED: f64 = 2.0;

/// Disturbed loops are told if they are more than this share.
const DISTURBED_SHARE: f64 = 0.1;

/// A loop shorter than this many steps of the clock is not timed well.
const CLOCK_STEPS: f64 = 100.0;

/// One warning. The values are a closed set; text is made when shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum CommWarning {
    /// Ranks are not numbered host by host.
    Numbering {
        /// How they are: round-robin or mixed.
        numbering: Numbering,
        /// Over how many hosts.
        hosts: u64,
    },
    /// The time did not allow the whole definition. Each field is the least over the run.
    EffortReduced {
        /// Time one loop was to take.
        loop_seconds: f64,
        /// Smallest size measured by the best method alone; None: all sizes by all methods.
        single_from_bytes: Option<u64>,
        /// Smallest size measured without repetitions; None: all are repeated.
        once_from_bytes: Option<u64>,
        /// Random rings that were to be measured; None: not asked for.
        random_rings: Option<u64>,
        /// Patterns outside the average were asked for and left out.
        without_extras: bool,
        /// How often the effort was reduced after the announcement.
        reductions: u64,
    },
    /// Of more than 10 % of the loops the repetitions differ a lot.
    Disturbed {
        /// (Pattern, size, method) with a worst repetition more than twice as slow as the best one.
        loops: u64,
        /// Of how many with repetitions.
        of: u64,
        /// Pattern of the largest ratio.
        pattern: String,
        /// Its size.
        message_bytes: u64,
        /// Its method.
        method: Method,
        /// Best bandwidth divided by the worst there.
        ratio: f64,
    },
    /// Rings that are the same exchange differ by more than 10 % in S.
    IdenticalDiffer {
        /// How many patterns are the same exchange as these two.
        #[schemars(range(min = 2))]
        patterns: u64,
        /// The one with the largest S.
        fastest: String,
        /// The one with the smallest.
        slowest: String,
        /// S of the one divided by S of the other.
        ratio: f64,
    },
    /// Loops shorter than 100 steps of the clock.
    ShortLoops {
        /// How many.
        loops: u64,
        /// Of how many.
        of: u64,
        /// The shortest.
        shortest_seconds: f64,
        /// Smallest step of the clock.
        clock_resolution_ns: f64,
    },
    /// The time ended before the interval of b_eff was as narrow as asked.
    UntilNotReached {
        /// Reach that was asked for, as a share.
        until_share: f64,
        /// What it is; None: not known.
        reach_share: Option<f64>,
        /// Repetitions that it rests on.
        repetitions: u64,
    },
    /// The measurement took more than 1.1 times as long as it may.
    Overrun {
        /// Longest time allowed.
        limit_seconds: f64,
        /// Time announced.
        expected_seconds: f64,
        /// Time taken.
        real_seconds: f64,
    },
    /// A warning that every benchmark knows.
    #[serde(untagged)]
    Shared(Warning),
}

/// The warnings of the run itself and those that follow from its records.
pub(super) fn warnings(result: &CommResult, curves: &[Curve], value: &CommValue) -> Vec<CommWarning> {
    let mut found: Vec<CommWarning> = result.warnings.iter().cloned().map(CommWarning::Shared).collect();
    found.extend(of_machine(&result.setup.machine, None).map(CommWarning::Shared));
    let watched = result.measured().map(|p| (p.pattern.clone(), p.machine.as_ref()));
    found.extend(machine_share::warning("pattern", watched).map(CommWarning::Shared));
    found.extend(numbering(result));
    let setup = &result.setup;
    found.extend(binding::not_bound(&setup.machine, &setup.placement).map(CommWarning::Shared));
    found.extend(effort_reduced(result));
    found.extend(disturbed(curves));
    found.extend(identical_differ(result, curves));
    found.extend(short_loops(result));
    found.extend(until_not_reached(result, value));
    found.extend(overrun(result));
    found
}

fn until_not_reached(result: &CommResult, value: &CommValue) -> Option<CommWarning> {
    let until_share = result.config.until_share?;
    let found = value.of_repetitions.b_eff;
    let reach_share = found.and_then(|f| f.reach_share);
    let reached = reach_share.is_some_and(|reach| reach <= until_share);
    (!reached).then_some(CommWarning::UntilNotReached {
        until_share,
        reach_share,
        repetitions: found.map_or(0, |f| f.repetitions),
    })
}

fn numbering(result: &CommResult) -> Option<CommWarning> {
    let numbering = result.setup.numbering;
    let hosts = result.setup.machine.hosts.len() as u64;
    matches!(numbering, Numbering::RoundRobin | Numbering::Mixed).then_some(CommWarning::Numbering { numbering, hosts })
}

fn effort_reduced(result: &CommResult) -> Option<CommWarning> {
    let families = &result.config.families;
    let loop_seconds = efforts(result).map(|e| e.loop_seconds).reduce(f64::min)?;
    let single_from = efforts(result).map(|e| e.single_from).min()?;
    let random = efforts(result).map(|e| e.random_rings).min()?;
    let extra = [Family::WorstCycle, Family::Bisection, Family::Cartesian];
    let without_extras = efforts(result).any(|e| !e.extras) && families.iter().any(|f| extra.contains(f));
    let once_from = efforts(result).map(|e| e.once_from).min()?;
    let size = |index: u64| usize::try_from(index).ok().and_then(|i| result.setup.sizes_bytes.get(i)).copied();
    let (single_from_bytes, once_from_bytes) = (size(single_from), size(once_from));
    let random_rings = families.contains(&Family::Random).then_some(random);
    let cut = loop_seconds < LOOP_SECONDS
        || single_from_bytes.or(once_from_bytes).is_some()
        || random_rings.is_some_and(|n| n < RANDOM_RINGS)
        || without_extras;
    cut.then_some(CommWarning::EffortReduced {
        loop_seconds,
        single_from_bytes,
        once_from_bytes,
        random_rings,
        without_extras,
        reductions: result.ending.efforts.len() as u64,
    })
}

fn disturbed(curves: &[Curve]) -> Option<CommWarning> {
    let points = curves.iter().flat_map(|c| c.points.iter().map(move |p| (c, p)));
    let repeated =
        points.flat_map(|(c, p)| p.methods.iter().map(move |m| (c, p, m))).filter(|(.., m)| m.repetitions > 1);
    let all: Vec<_> =
        repeated.map(|(c, p, m)| (c, p, m.method, m.bytes_per_second / m.worst_bytes_per_second)).collect();
    let loops = all.iter().filter(|(.., ratio)| *ratio > DISTURBED).count();
    if loops as f64 <= DISTURBED_SHARE * all.len() as f64 {
        return None;
    }
    let (curve, point, method, ratio) = all.iter().max_by(|a, b| a.3.total_cmp(&b.3))?;
    Some(CommWarning::Disturbed {
        loops: loops as u64,
        of: all.len() as u64,
        pattern: curve.pattern.clone(),
        message_bytes: point.message_bytes,
        method: *method,
        ratio: *ratio,
    })
}

fn identical_differ(result: &CommResult, curves: &[Curve]) -> Option<CommWarning> {
    let found = identical::largest(result, curves).filter(identical::Difference::is_large)?;
    Some(CommWarning::IdenticalDiffer {
        patterns: found.patterns,
        fastest: found.fastest.pattern.clone(),
        slowest: found.slowest.pattern.clone(),
        ratio: found.ratio,
    })
}

fn short_loops(result: &CommResult) -> Option<CommWarning> {
    let clock_resolution_ns = result.setup.clock_resolution_ns;
    let seconds = || result.loops().map(|l| l.seconds);
    let loops = seconds().filter(|s| *s < CLOCK_STEPS * clock_resolution_ns * 1e-9).count() as u64;
    let shortest_seconds = seconds().reduce(f64::min)?;
    let of = seconds().count() as u64;
    (loops > 0).then_some(CommWarning::ShortLoops { loops, of, shortest_seconds, clock_resolution_ns })
}

fn overrun(result: &CommResult) -> Option<CommWarning> {
    let told = result.announcement.as_ref()?;
    let real_seconds = result.ending.real_seconds;
    is_overrun(real_seconds, told.limit_seconds).then_some(CommWarning::Overrun {
        limit_seconds: told.limit_seconds,
        expected_seconds: told.expected_seconds,
        real_seconds,
    })
}
