//! What the reader of a replay must know. At most one of a kind (for each backend), with the first or the worst case named.

use schemars::JsonSchema;
use serde::Serialize;

use super::caches;
use super::verdict::Verdict;
use crate::frame::backends;
use crate::frame::config::{BindPolicy, DirectPolicy};
use crate::frame::records::Warning;
use crate::frame::values::binding::in_each_others_way;
use crate::frame::values::machine_share;
use crate::frame::values::source::CACHE_SHARE;
use crate::frame::values::warning::{memory_taken_back, of_machine, without_repetition};
use crate::frame::values::NULL_BACKEND;
use crate::replay::config::Pace;
use crate::replay::records::{Difference, PassEnd, PassRecord, ReplayResult};

/// A call that begins later than this behind its deadline is told of.
const LATE_SECONDS: f64 = 1e-3;

/// One warning. The values are a closed set; text is made when shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ReplayWarning {
    /// The profile does not hold the whole program.
    ProfileCut {
        /// Processes whose recording ended early.
        processes: u64,
        /// Of how many.
        of: u64,
        /// Calls not replayed because others never came to a collective call.
        calls_cut: u64,
    },
    /// A backend leaves calls out.
    LeftOut {
        /// Backend name.
        backend: String,
        /// How many.
        calls: u64,
        /// Bytes they moved.
        bytes: u64,
        /// Function with the most.
        function: String,
        /// Why.
        reason: String,
    },
    /// A backend cannot work here.
    NotRun {
        /// Backend name.
        backend: String,
        /// Passes that were to be made with it.
        passes: u64,
        /// Why.
        reason: String,
    },
    /// Calls had another result than the recorded one.
    NotAsRecorded {
        /// Backend name.
        backend: String,
        /// How many in all passes.
        calls: u64,
        /// Of how many.
        of: u64,
        /// The first.
        first: Difference,
    },
    /// Calls of threads are made one behind the other.
    Threads {
        /// Most threads of a process.
        threads: u64,
    },
    /// Orderings between ranks that could not be kept.
    OrderLost {
        /// How many.
        orderings: u64,
    },
    /// Of what was read, one run has fetched more past the page cache than the other.
    CacheDiffers {
        /// Backend name.
        backend: String,
        /// Share of the bytes read that was fetched past the page cache when it was recorded, 0 to 1.
        recorded_share: f64,
        /// And now, of all passes.
        replayed_share: f64,
    },
    /// Calls began late.
    Late {
        /// Backend name.
        backend: String,
        /// Most.
        late_seconds: f64,
    },
    /// Less than all that was read was compared.
    Unchecked {
        /// Share that was not, 0 to 1.
        share: f64,
    },
    /// The program allocated memory inside the clock.
    AllocationsInClock {
        /// Backend name of the first pass with some.
        backend: String,
        /// How many times, all passes.
        allocations: u64,
    },
    /// A warning that every benchmark knows.
    #[serde(untagged)]
    Shared(Warning),
}

pub(super) fn warnings(result: &ReplayResult, verdict: &Verdict) -> Vec<ReplayWarning> {
    let mut found: Vec<ReplayWarning> = result.warnings.iter().cloned().map(ReplayWarning::Shared).collect();
    found.extend(profile_cut(result));
    let profile = &result.setup.profile;
    if profile.threads > 1 {
        found.push(ReplayWarning::Threads { threads: profile.threads });
    }
    if profile.orderings_lost > 0 {
        found.push(ReplayWarning::OrderLost { orderings: profile.orderings_lost });
    }
    for backend in &result.config.backends {
        let own: Vec<&PassRecord> = result.passes.iter().filter(|p| &p.backend == backend).collect();
        let reasons: Vec<&String> = own
            .iter()
            .filter_map(|p| if let PassEnd::NotRun(reason) = &p.ended { Some(reason) } else { None })
            .collect();
        if let Some(reason) = reasons.first() {
            let (backend, passes, reason) = (backend.clone(), reasons.len() as u64, reason.to_string());
            found.push(ReplayWarning::NotRun { backend, passes, reason });
            continue;
        }
        found.extend(left_out(result, backend));
        if backend != NULL_BACKEND {
            found.extend(not_as_recorded(backend, &own));
            found.extend(cache_differs(result, backend, &own));
        }
        found.extend(late(result, backend, &own));
    }
    found.extend(unchecked(result, verdict));
    found.extend(allocations(result));
    found.extend(of_machine(&result.setup.machine, Some(&result.setup.storage)).map(ReplayWarning::Shared));
    let is_direct =
        |name: &str| backends::can(name, |row| row.can_direct) && result.config.direct.of(name) != DirectPolicy::Off;
    if result.config.backends.iter().any(|name| name != NULL_BACKEND && !is_direct(name)) {
        found.extend(memory_taken_back(&result.setup.machine).map(ReplayWarning::Shared));
    }
    // Where the launcher put them is where the recorded program would have been, too.
    if result.config.bind != BindPolicy::None {
        found.extend(in_each_others_way(&result.setup.machine).map(ReplayWarning::Shared));
    }
    let watched = result.passes.iter().map(|p| (format!("{}, pass {}", p.backend, p.pass), p.machine.as_ref()));
    found.extend(machine_share::warning("pass", watched).map(ReplayWarning::Shared));
    without_repetition(found)
}

fn profile_cut(result: &ReplayResult) -> Option<ReplayWarning> {
    let profile = &result.setup.profile;
    let early = profile.ended.iter().filter(|e| e.end != "complete").map(|e| e.processes).fold(0, u64::saturating_add);
    (early.max(profile.calls_cut) > 0).then_some(ReplayWarning::ProfileCut {
        processes: early,
        of: profile.processes,
        calls_cut: profile.calls_cut,
    })
}

fn left_out(result: &ReplayResult, backend: &str) -> Option<ReplayWarning> {
    let list = &result.setup.leavings.iter().find(|l| l.backend == backend)?.left_out;
    let most = list.iter().max_by_key(|l| l.calls)?;
    Some(ReplayWarning::LeftOut {
        backend: backend.to_owned(),
        calls: list.iter().map(|l| l.calls).fold(0, u64::saturating_add),
        bytes: list.iter().map(|l| l.bytes).fold(0, u64::saturating_add),
        function: most.function.clone(),
        reason: most.reason.clone(),
    })
}

fn not_as_recorded(backend: &str, own: &[&PassRecord]) -> Option<ReplayWarning> {
    let first = own.iter().flat_map(|p| &p.differences).next()?;
    Some(ReplayWarning::NotAsRecorded {
        backend: backend.to_owned(),
        calls: own.iter().map(|p| p.calls.saturating_sub(p.calls_as_recorded)).fold(0, u64::saturating_add),
        of: own.iter().map(|p| p.calls).fold(0, u64::saturating_add),
        first: first.clone(),
    })
}

fn cache_differs(result: &ReplayResult, backend: &str, own: &[&PassRecord]) -> Option<ReplayWarning> {
    let profile = &result.setup.profile;
    let share = |storage: u64, read: u64| (read > 0).then(|| (storage as f64 / read as f64).min(1.0));
    let recorded_share = share(caches::recorded(result).ok()?, profile.read_bytes)?;
    let complete = || own.iter().filter(|p| p.ended == PassEnd::Complete);
    let fetched = complete().try_fold(0, |sum: u64, p| Some(sum.saturating_add(caches::replayed(result, p).ok()?)))?;
    let replayed_share = share(fetched, profile.read_bytes.saturating_mul(complete().count() as u64))?;
    ((recorded_share - replayed_share).abs() > CACHE_SHARE).then(|| ReplayWarning::CacheDiffers {
        backend: backend.to_owned(),
        recorded_share,
        replayed_share,
    })
}

fn late(result: &ReplayResult, backend: &str, own: &[&PassRecord]) -> Option<ReplayWarning> {
    let late_seconds = own.iter().filter_map(|p| p.late_seconds).reduce(f64::max)?;
    let told = result.config.pace != Pace::Fast && late_seconds > LATE_SECONDS;
    told.then(|| ReplayWarning::Late { backend: backend.to_owned(), late_seconds })
}

fn unchecked(result: &ReplayResult, verdict: &Verdict) -> Option<ReplayWarning> {
    let share = 1.0 - verdict.checked_share?;
    (result.config.verify && share > 0.0).then_some(ReplayWarning::Unchecked { share })
}

fn allocations(result: &ReplayResult) -> Option<ReplayWarning> {
    let first = result.passes.iter().find(|p| p.allocations_in_clock > 0)?;
    Some(ReplayWarning::AllocationsInClock {
        backend: first.backend.clone(),
        allocations: result.passes.iter().map(|p| p.allocations_in_clock).fold(0, u64::saturating_add),
    })
}
