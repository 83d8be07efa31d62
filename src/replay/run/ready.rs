//! Before the run: which rank makes which files ready before which openings, and who of the others has to do with it.

use std::collections::BTreeMap;
use std::path::Path;

use beff_ffi::{Comm, MpiError};
use beff_trace::layout::Layouts;
use beff_trace::text::rank_reader;
use beff_trace::{After, Direction};
use serde::de::DeserializeOwned;
use serde::Serialize;

use super::order::Awaited;
use super::places::Finder;
use super::scan::Scan;
use crate::frame::run::agree;
use crate::replay::plan::ready::{Answer, Preparation, Ready, Uses};

/// Of all ranks together; inner error: rank and message.
type Exchanged = Result<(Ready, Vec<Awaited>), (u64, String)>;

/// What all ranks have to do with each other, and calls of this rank that others wait for so. Inner: rank and message. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn exchange(
    comm: &Comm,
    profile: &Path,
    layouts: &Layouts,
    comms: &[Vec<u32>],
    scan: &Scan,
) -> Result<Exchanged, MpiError> {
    let own = comm.rank() as u32;
    if agree::total(comm, scan.preparations.len() as u64)? == 0 {
        return Ok(Ok(Default::default()));
    }
    let is_of_mine = |one: &Preparation| scan.used.contains(&one.file);
    let known: Vec<Preparation> = of_all(comm, &scan.preparations, is_of_mine)?;
    let found = match agree::all(comm, answers(profile, own, layouts, comms, (&known, scan.cut)))? {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let (answers, waits) = found;
    let told = answers.iter().filter(|(one, _)| one.rank != own);
    let awaited = told.filter_map(|(one, answer)| Some((answer.last_ns?, one.rank))).collect();
    let tagged: Vec<_> = answers.into_iter().map(|(one, answer)| (own, one, answer)).collect();
    let mut ready = Ready { waits, ..Ready::default() };
    for (rank, one, answer) in of_all(comm, &tagged, |(_, one, _)| one.rank == own)? {
        if let Some(begin_ns) = answer.last_ns {
            let after = After { rank, begin_ns };
            ready.quiet.entry(one.begin_ns).or_default().push(after);
            ready.again.insert(after);
        }
        let reach = ready.under_way_bytes.entry(one.begin_ns).or_default();
        *reach = answer.under_way_bytes.max(*reach);
        if answer.waits {
            ready.tells.entry(one.begin_ns).or_default().insert(rank);
        }
    }
    Ok(Ok((ready, awaited)))
}

/// What concerns this rank of the lists of all. Collective.
fn of_all<T: Serialize + DeserializeOwned>(
    comm: &Comm,
    mine: &[T],
    concerns: impl Fn(&T) -> bool,
) -> Result<Vec<T>, MpiError> {
    let mut kept = Vec::new();
    for rank in 0..comm.size() {
        // Plain records of this program are always written and read.
        let bytes = if rank == comm.rank() { serde_json::to_vec(mine).unwrap_or_default() } else { Vec::new() };
        let all: Vec<T> = serde_json::from_slice(&comm.bcast_bytes(bytes, rank)?).unwrap_or_default();
        kept.extend(all.into_iter().filter(|one| concerns(one)));
    }
    Ok(kept)
}

type Found = (Vec<(Preparation, Answer)>, BTreeMap<u64, Vec<After>>);

/// What this rank knows of preparations.
fn answers(
    profile: &Path,
    rank: u32,
    layouts: &Layouts,
    comms: &[Vec<u32>],
    (known, cut): (&[Preparation], u64),
) -> Result<Found, String> {
    let mut uses = Uses::new(comms, rank, known);
    if known.is_empty() {
        return Ok(Default::default());
    }
    let (_, calls) = rank_reader(profile, rank).map_err(|e| e.to_string())?;
    let mut places = Finder::new(layouts);
    for call in calls.take(usize::try_from(cut).unwrap_or(usize::MAX)) {
        let call = call.map_err(|e| e.to_string())?;
        let access = places.take(&call).access.filter(|_| call.function.direction() == Some(Direction::Write));
        let reach = access.map_or(0, |access| u64::try_from(access.hull(layouts).end).unwrap_or(0));
        if !uses.take(&call, reach) {
            break;
        }
    }
    let waits = std::mem::take(&mut uses.waits);
    Ok((uses.finish(), waits))
}
