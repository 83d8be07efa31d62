//! Exchange before the run: preparations of files before openings, and the constraints between them and calls of other ranks.

use std::collections::BTreeMap;

use beff_ffi::{Comm, MpiError};
use beff_trace::layout::TypeLayouts;
use beff_trace::{CallId, Direction};
use serde::de::DeserializeOwned;
use serde::Serialize;

use super::call_location::LocationTracker;
use super::call_source::CallSource;
use super::order::AwaitedCall;
use super::scan::RankScan;
use crate::frame::run::agree;
use crate::replay::plan::preparation::{
    ConstraintTracker, FilePreparation, PreparationConstraints, PreparationSchedule,
};

/// Result on all ranks; inner error: rank and message.
type ExchangeResult = Result<(PreparationSchedule, Vec<AwaitedCall>), (u64, String)>;

/// The constraints of this rank, and its calls that preparations of others wait for. Inner error: rank and message. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn exchange_preparations(
    comm: &Comm,
    source: CallSource<'_>,
    layouts: &TypeLayouts,
    comms: &[Vec<u32>],
    scan: &RankScan,
) -> Result<ExchangeResult, MpiError> {
    let own = comm.rank() as u32;
    if agree::sum(comm, scan.preparations.len() as u64)? == 0 {
        return Ok(Ok(Default::default()));
    }
    let is_of_mine = |one: &FilePreparation| scan.used_files.contains(&one.file);
    let known: Vec<FilePreparation> = gather_relevant(comm, &scan.preparations, is_of_mine)?;
    let found = match agree::all_or_first_error(
        comm,
        local_constraints(source, own, layouts, comms, (&known, scan.replayed_lines)),
    )? {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let (answers, waits) = found;
    let others = answers.iter().filter(|(one, _)| one.rank != own);
    let awaited = others.filter_map(|(one, answer)| Some((answer.last_ns?, one.rank))).collect();
    let tagged: Vec<_> = answers.into_iter().map(|(one, answer)| (own, one, answer)).collect();
    let mut ready = PreparationSchedule { awaited_preparations: waits, ..PreparationSchedule::default() };
    for (rank, one, answer) in gather_relevant(comm, &tagged, |(_, one, _)| one.rank == own)? {
        if let Some(begin_ns) = answer.last_ns {
            let after = CallId { rank, begin_ns };
            ready.prior_calls.entry(one.begin_ns).or_default().push(after);
            ready.shared_waits.insert(after);
        }
        let end_bytes = ready.in_flight_end_bytes.entry(one.begin_ns).or_default();
        *end_bytes = answer.under_way_bytes.max(*end_bytes);
        if answer.is_changing {
            ready.unclear_states.insert(one.begin_ns);
        }
        if answer.waits {
            ready.notified_ranks.entry(one.begin_ns).or_default().insert(rank);
        }
    }
    Ok(Ok((ready, awaited)))
}

/// The elements of the lists of all ranks that concern this rank. Collective.
fn gather_relevant<T: Serialize + DeserializeOwned>(
    comm: &Comm,
    mine: &[T],
    concerns: impl Fn(&T) -> bool,
) -> Result<Vec<T>, MpiError> {
    let mut kept = Vec::new();
    for rank in 0..comm.size() {
        // Plain records of this program always serialize and parse.
        let bytes = if rank == comm.rank() { serde_json::to_vec(mine).unwrap_or_default() } else { Vec::new() };
        let all: Vec<T> = serde_json::from_slice(&comm.bcast_bytes(bytes, rank)?).unwrap_or_default();
        kept.extend(all.into_iter().filter(|one| concerns(one)));
    }
    Ok(kept)
}

type LocalConstraints = (Vec<(FilePreparation, PreparationConstraints)>, BTreeMap<u64, Vec<CallId>>);

fn local_constraints(
    source: CallSource<'_>,
    rank: u32,
    layouts: &TypeLayouts,
    comms: &[Vec<u32>],
    (known, cut): (&[FilePreparation], u64),
) -> Result<LocalConstraints, String> {
    let mut uses = ConstraintTracker::new(comms, rank, known);
    if known.is_empty() {
        return Ok(Default::default());
    }
    let (_, calls) = source.read_rank(rank)?;
    let mut places = LocationTracker::new(layouts);
    for call in calls.take(usize::try_from(cut).unwrap_or(usize::MAX)) {
        let call = call.map_err(|e| e.to_string())?;
        let access = places.locate(&call).access.filter(|_| call.function.direction() == Some(Direction::Write));
        let end_bytes = access.map_or(0, |access| u64::try_from(access.hull(layouts).end).unwrap_or(0));
        if !uses.observe(&call, end_bytes) {
            break;
        }
    }
    let waits = std::mem::take(&mut uses.awaited_preparations);
    Ok((uses.finish(), waits))
}
