//! What the reader of the numbers of b_eff must know. At most one of a kind, with the worst case named.

use std::collections::BTreeMap;

use serde::Serialize;

use super::curve::Curve;
use super::validity::LOOP_SECONDS;
use super::{efforts, identical, RANDOM_RINGS};
use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, Method};
use crate::frame::records::{Numbering, Placement, Warning};
use crate::frame::values::machine_share;
use crate::frame::values::warning::{is_overrun, of_machine};

/// A worst repetition this many times slower than the best of the same loop is disturbed.
const DISTURBED: f64 = 2.0;

/// Disturbed loops are told if they are more than this share.
const DISTURBED_SHARE: f64 = 0.1;

/// A loop shorter than this many steps of the clock is not timed well.
const CLOCK_STEPS: f64 = 100.0;

/// CPUs that two hardware threads of one core are.
const CPUS_OF_A_CORE: u64 = 2;

/// One warning. The values are a closed set; text is made when shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum CommWarning {
    /// Ranks are not numbered host by host.
    Numbering {
        /// How they are: round-robin or mixed.
        numbering: Numbering,
        /// Over how many hosts.
        hosts: u64,
    },
    /// Ranks are not bound to cores.
    NotBound {
        /// How many.
        ranks: u64,
        /// The first of them.
        rank: u64,
        /// CPUs it may run on.
        cpus: String,
        /// Its host.
        host: String,
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
    /// Repetitions of the same loop differ a lot.
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
    /// Rings that are the same exchange differ by more than 10 %.
    IdenticalDiffer {
        /// How many patterns are the same exchange as these two.
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
    /// The measurement took longer than it may.
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
pub(super) fn warnings(result: &CommResult, curves: &[Curve]) -> Vec<CommWarning> {
    let mut found: Vec<CommWarning> = result.warnings.iter().cloned().map(CommWarning::Shared).collect();
    found.extend(of_machine(&result.setup.machine, None).map(CommWarning::Shared));
    let watched = result.patterns.iter().map(|p| (p.pattern.clone(), p.machine.as_ref()));
    found.extend(machine_share::warning("pattern", watched).map(CommWarning::Shared));
    found.extend(numbering(result));
    found.extend(not_bound(result));
    found.extend(effort_reduced(result));
    found.extend(disturbed(curves));
    found.extend(identical_differ(result, curves));
    found.extend(short_loops(result));
    found.extend(overrun(result));
    found
}

fn numbering(result: &CommResult) -> Option<CommWarning> {
    let numbering = result.setup.numbering;
    let hosts = result.setup.machine.hosts.len() as u64;
    matches!(numbering, Numbering::RoundRobin | Numbering::Mixed).then_some(CommWarning::Numbering { numbering, hosts })
}

/// A rank, its cores, and its CPUs as first and last of ranges.
type Bound = (usize, Option<u64>, Vec<(u64, u64)>);

/// A rank that may run on several cores. Where cores are not known: on several CPUs, and it shares one of them with another rank,
/// or has a whole host for itself that is more than one core.
fn not_bound(result: &CommResult) -> Option<CommWarning> {
    let (placement, hosts) = (&result.setup.placement, &result.setup.machine.hosts);
    let loose = loose_ranks(placement);
    let rank = *loose.first()?;
    let first = &placement[rank];
    let host = usize::try_from(first.host).ok().and_then(|h| hosts.get(h)).map(|h| h.name.clone());
    Some(CommWarning::NotBound {
        ranks: loose.len() as u64,
        rank: rank as u64,
        cpus: first.cpus.clone(),
        host: host.unwrap_or_default(),
    })
}

/// The ranks that are not bound to a core.
#[must_use]
pub fn loose_ranks(placement: &[Placement]) -> Vec<usize> {
    // Host by host: all pairs of ranks of a large machine would be too many.
    let mut of_host: BTreeMap<u64, Vec<Bound>> = BTreeMap::new();
    for (rank, place) in placement.iter().enumerate() {
        of_host.entry(place.host).or_default().push((rank, place.cores, ranges(&place.cpus)));
    }
    let mut loose: Vec<usize> = of_host.values().flat_map(|ranks| loose_of_host(ranks)).collect();
    loose.sort_unstable();
    loose
}

fn loose_of_host(ranks: &[Bound]) -> Vec<usize> {
    let is_loose = |(rank, cores, cpus): &&Bound| {
        if let Some(cores) = cores {
            return *cores > 1;
        }
        let number: u64 = cpus.iter().map(|(first, last)| last.saturating_sub(*first) + 1).sum();
        let shares = || ranks.iter().any(|(other, _, theirs)| other != rank && overlap(cpus, theirs));
        number > 1 && (shares() || (ranks.len() == 1 && number > CPUS_OF_A_CORE))
    };
    ranks.iter().filter(is_loose).map(|(rank, ..)| *rank).collect()
}

/// `0-3,8` as pairs of first and last; what cannot be read is left out.
fn ranges(list: &str) -> Vec<(u64, u64)> {
    let pair = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    list.split(',').filter_map(pair).collect()
}

fn overlap(a: &[(u64, u64)], b: &[(u64, u64)]) -> bool {
    a.iter().any(|(first, last)| b.iter().any(|(f, l)| first <= l && f <= last))
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
