//! Check before the run that the collective calls of all ranks match, for every backend.

use beff_ffi::{Comm, MpiError};
use beff_trace::layout::TypeLayouts;
use beff_trace::ProfileHead;

use super::call_location::LocationTracker;
use super::call_source::CallSource;
use super::scan::{RankScan, ReplaySupport};
use crate::frame::run::agree;
use crate::replay::plan::matching::{find_mismatch, CollectiveStep, CollectiveStepTracker};
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
            let digest = |scan: &RankScan| scan.digests.get(place).copied();
            if scans.iter().all(|scan| digest(scan) == digest(&scans[0])) {
                continue;
            }
            let steps = scans.iter().enumerate().map(|(rank, scan)| self.read_steps(rank as u32, scan, refusal));
            self.mismatch_error(&steps.collect::<Result<Vec<_>, _>>()?, refusal)?;
        }
        Ok(())
    }

    /// Checks all ranks, each with its own scan. Inner error: rank and message, equal on all ranks. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn check_collectively(&self, comm: &Comm, scan: &RankScan) -> Result<Result<(), (u64, String)>, MpiError> {
        for (place, refusal) in self.refusals.iter().enumerate() {
            let digests = comm.allgather_u64(&[scan.digests.get(place).copied().unwrap_or(0)])?;
            if digests.iter().all(|digest| *digest == digests[0]) {
                continue;
            }
            let steps = match agree::all_or_first_error(comm, self.read_steps(comm.rank() as u32, scan, refusal))? {
                Ok(steps) => steps,
                Err(error) => return Ok(Err(error)),
            };
            let all = agree::gather(comm, &steps)?;
            let judged = if comm.is_root() { self.mismatch_error(&all, refusal) } else { Ok(()) };
            if let Err(error) = agree::all_or_first_error(comm, judged)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn mismatch_error(&self, all: &[Vec<CollectiveStep>], refusal: &ReplaySupport) -> Result<(), String> {
        let Some(what) = find_mismatch(all, &self.head.comms, &self.head.files) else { return Ok(()) };
        let next = if refusal.by_offsets {
            "give these lines one order on all ranks"
        } else {
            "give these lines one order on all ranks, or choose posix or uring, whose collective accesses do not synchronize"
        };
        Err(format!(
            "{}: collective calls of the ranks do not match. A replay issues the calls of all threads of a rank one after the other, \
             in the order of their begins: {what}. To replay it, {next}",
            self.source.path.display()
        ))
    }

    fn read_steps(&self, rank: u32, scan: &RankScan, refusal: &ReplaySupport) -> Result<Vec<CollectiveStep>, String> {
        let (_, calls) = self.source.read_rank(rank)?;
        let (mut places, mut filter) = (LocationTracker::new(self.layouts), CallFilter::new(refusal.unsupported));
        let mut steps = CollectiveStepTracker::new(&self.head.comms, refusal.by_offsets);
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
