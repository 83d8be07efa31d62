//! Before the run: do the collective calls of all ranks match, by every backend?

use std::path::Path;

use beff_ffi::{Comm, MpiError};
use beff_trace::layout::Layouts;
use beff_trace::text::rank_reader;
use beff_trace::Head;

use super::places::Finder;
use super::scan::{Refusal, Scan};
use crate::frame::run::agree;
use crate::replay::plan::left_out::{Fate, Filter};
use crate::replay::plan::matching::{mismatch, Step, Steps};

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matching<'a> {
    pub profile: &'a Path,
    pub head: &'a Head,
    pub layouts: &'a Layouts,
    pub refusals: &'a [Refusal],
}

impl Matching<'_> {
    /// Of all ranks.
    ///
    /// # Errors
    /// Which calls would wait for each other for ever; a profile that has changed.
    pub fn all(&self, scans: &[Scan]) -> Result<(), String> {
        for (place, refusal) in self.refusals.iter().enumerate() {
            let digest = |scan: &Scan| scan.digests.get(place).copied();
            if scans.iter().all(|scan| digest(scan) == digest(&scans[0])) {
                continue;
            }
            let steps = scans.iter().enumerate().map(|(rank, scan)| self.steps(rank as u32, scan, refusal));
            self.judge(&steps.collect::<Result<Vec<_>, _>>()?, refusal)?;
        }
        Ok(())
    }

    /// Of all ranks, each with its own scan. Inner: rank and message, equal on all ranks. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn together(&self, comm: &Comm, scan: &Scan) -> Result<Result<(), (u64, String)>, MpiError> {
        for (place, refusal) in self.refusals.iter().enumerate() {
            let digests = comm.allgather_u64(&[scan.digests.get(place).copied().unwrap_or(0)])?;
            if digests.iter().all(|digest| *digest == digests[0]) {
                continue;
            }
            let steps = match agree::all(comm, self.steps(comm.rank() as u32, scan, refusal))? {
                Ok(steps) => steps,
                Err(error) => return Ok(Err(error)),
            };
            let all = agree::gather(comm, &steps)?;
            let judged = if comm.is_root() { self.judge(&all, refusal) } else { Ok(()) };
            if let Err(error) = agree::all(comm, judged)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn judge(&self, all: &[Vec<Step>], refusal: &Refusal) -> Result<(), String> {
        let Some(what) = mismatch(all, &self.head.comms, &self.head.files) else { return Ok(()) };
        let next = if refusal.by_offsets {
            "give these lines one order on all ranks"
        } else {
            "give these lines one order on all ranks, or choose posix or uring, whose collective accesses wait for nobody"
        };
        Err(format!(
            "{}: collective calls of the ranks do not match. A replay makes the calls of all threads of a rank one after the other, in the order of \
             their begins: {what}. To replay it, {next}",
            self.profile.display()
        ))
    }

    /// The calls of a rank that have to do with others.
    fn steps(&self, rank: u32, scan: &Scan, refusal: &Refusal) -> Result<Vec<Step>, String> {
        let (_, calls) = rank_reader(self.profile, rank).map_err(|e| e.to_string())?;
        let (mut places, mut filter) = (Finder::new(self.layouts), Filter::new(refusal.unable));
        let mut steps = Steps::new(&self.head.comms, refusal.by_offsets);
        let mut all = Vec::new();
        for call in calls.take(usize::try_from(scan.cut).unwrap_or(usize::MAX)) {
            let mut call = call.map_err(|e| e.to_string())?;
            let unknown = places.take(&call).unknown.filter(|_| refusal.by_offsets);
            let is_replayed = filter.take(&mut call, unknown) == Fate::Replayed;
            steps.take(&call, is_replayed, |step| all.push(step));
        }
        Ok(all)
    }
}
