//! Check before the run that the collective calls of all ranks match, for every backend.

use beff_ffi::{Comm, MpiError};
use beff_trace::layout::TypeLayouts;
use beff_trace::{CallId, ProfileHead};

use super::call_location::LocationTracker;
use super::call_source::CallSource;
use super::scan::{RankScan, ReplaySupport};
use crate::frame::run::agree;
use crate::replay::plan::deadlocks::find_deadlocks;
use crate::replay::plan::matching::{SynchronizationStep, SynchronizationStepTracker};
use crate::replay::plan::omission::{CallDisposition, CallFilter};

#[derive(Clone, Copy, Debug)]
pub(super) struct CollectiveCheck<'a> {
    pub source: CallSource<'a>,
    pub head: &'a ProfileHead,
    pub layouts: &'a TypeLayouts,
    pub refusals: &'a [ReplaySupport],
}

impl CollectiveCheck<'_> {
    /// Checks all ranks.
    ///
    /// # Errors
    /// The calls that would deadlock; a profile that has changed.
    pub fn check_all(&self, scans: &[RankScan]) -> Result<(), String> {
        for (place, refusal) in self.refusals.iter().enumerate() {
            let [mut begins, mut ends] = limits_of(&scans[0], place);
            let mut may_deadlock = false;
            for scan in scans {
                let [own_begins, own_ends] = limits_of(scan, place);
                may_deadlock |= scan.steps[place].digest != scans[0].steps[place].digest;
                begins.iter_mut().zip(own_begins).for_each(|(begin, own)| *begin = own.max(*begin));
                ends.iter_mut().zip(own_ends).for_each(|(end, own)| *end = own.min(*end));
            }
            if may_deadlock || (scans.iter().any(|scan| scan.steps[place].has_other_waits) && exceeds(&begins, &ends)) {
                let steps = scans.iter().enumerate().map(|(rank, scan)| self.read_steps(rank as u32, scan, refusal));
                self.deadlocks(&steps.collect::<Result<Vec<_>, _>>()?, refusal)?;
            }
        }
        Ok(())
    }

    /// Checks all ranks, each with its own scan, from which it removes the orderings that would deadlock. Inner error: rank and message,
    /// equal on all ranks. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn check_collectively(&self, comm: &Comm, scan: &mut RankScan) -> Result<Result<(), (u64, String)>, MpiError> {
        for (place, refusal) in self.refusals.iter().enumerate() {
            if !may_deadlock(comm, scan, place)? {
                continue;
            }
            let steps = match agree::all_or_first_error(comm, self.read_steps(comm.rank() as u32, scan, refusal))? {
                Ok(steps) => steps,
                Err(error) => return Ok(Err(error)),
            };
            let all = agree::collect(comm, vec![steps])?;
            let judged = if comm.is_root() { self.deadlocks(&all, refusal) } else { Ok(Vec::new()) };
            let given_up = match agree::all_or_first_error(comm, judged)? {
                Ok(given_up) => {
                    given_up.into_iter().map(|(rank, call)| [rank as u64, u64::from(call.rank), call.begin_ns])
                }
                Err(error) => return Ok(Err(error)),
            };
            let bytes = comm.bcast_bytes(serde_json::to_vec(&given_up.collect::<Vec<_>>()).unwrap_or_default(), 0)?;
            let given_up: Vec<[u64; 3]> = serde_json::from_slice(&bytes).unwrap_or_default();
            scan.has_lost_waits |= !given_up.is_empty();
            let own = given_up.into_iter().filter(|[waiting, ..]| *waiting == comm.rank());
            scan.give_up(own.map(|[_, rank, begin_ns]| CallId { rank: rank as u32, begin_ns }).collect());
        }
        scan.steps = Vec::new();
        Ok(Ok(()))
    }

    fn deadlocks(
        &self,
        all: &[Vec<SynchronizationStep>],
        refusal: &ReplaySupport,
    ) -> Result<Vec<(usize, CallId)>, String> {
        find_deadlocks(all, &self.head.comms, &self.head.files).map_err(|what| {
            let next = if refusal.by_offsets {
                "give these lines one order on all ranks"
            } else {
                "give these lines one order on all ranks, or choose posix or uring, whose collective accesses do not synchronize"
            };
            format!(
                "{}: collective calls of the ranks do not match. A replay issues the calls of all threads of a rank one after the other, \
                 in the order of their begins: {what}. To replay it, {next}",
                self.source.path.display()
            )
        })
    }

    fn read_steps(
        &self,
        rank: u32,
        scan: &RankScan,
        refusal: &ReplaySupport,
    ) -> Result<Vec<SynchronizationStep>, String> {
        let (_, calls) = self.source.read_rank(rank)?;
        let (mut places, mut filter) = (LocationTracker::new(self.layouts), CallFilter::new(refusal.unsupported));
        let mut steps = SynchronizationStepTracker::new(&self.head.comms, refusal.by_offsets);
        let mut all = Vec::new();
        for call in calls.take(usize::try_from(scan.replayed_lines).unwrap_or(usize::MAX)) {
            let mut call = call.map_err(|e| e.to_string())?;
            let unknown = places.locate(&call).unknown_reason.filter(|_| refusal.by_offsets);
            let is_replayed = filter.classify(&mut call, unknown) == CallDisposition::Replayed;
            steps.observe(&call, is_replayed, |step| all.push(step));
        }
        Ok(all)
    }
}

/// Begins and ends of the collective calls of a rank.
fn limits_of(scan: &RankScan, place: usize) -> [Vec<u64>; 2] {
    [0, 1].map(|side| scan.steps[place].times_ns.iter().map(|times| times[side]).collect())
}

/// True if a call began on some rank after its end on another one.
fn exceeds(begins: &[u64], ends: &[u64]) -> bool {
    begins.iter().zip(ends).any(|(begin, end)| begin > end)
}

/// True if the ranks could deadlock: their collective calls differ, or a collective call did not synchronize when recorded and ranks also
/// wait otherwise. If every collective call began on all ranks before it ended on any, all waits go forward in recorded time. Collective.
fn may_deadlock(comm: &Comm, scan: &RankScan, place: usize) -> Result<bool, MpiError> {
    let steps = &scan.steps[place];
    // The digests are equal if their maximum and minimum are.
    let mut most = [steps.digest, !steps.digest, u64::from(steps.has_other_waits)];
    comm.max_u64(&mut most)?;
    if most[0] != !most[1] {
        return Ok(true);
    }
    if most[2] == 0 {
        return Ok(false);
    }
    let [mut begins, mut ends] = limits_of(scan, place);
    comm.max_u64(&mut begins)?;
    comm.min_u64(&mut ends)?;
    Ok(exceeds(&begins, &ends))
}
