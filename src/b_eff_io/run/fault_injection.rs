//! Fault injection, to test that verification detects corrupted data. Only with the options --inject and --inject-at of a build with test
//! hooks.
//!
//! Faults are derived from the seed, so they are the same on all ranks. One rank injects them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use beff_backends::{AccessPattern, TransferBuffer};
use beff_ffi::MpiError;
use nix::fcntl::{fallocate, FallocateFlags};

use crate::b_eff_io::config::{InjectedFault, InjectionPoint};
use crate::b_eff_io::records::{InjectedFaultRecord, JournalLine};
use crate::b_eff_io::run::context::{OpenTypeFile, TypeContext};
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
use crate::b_eff_io::run::region::Region;
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::verify::StampedData;
use crate::frame::records::{AccessMethod, ErrorRecord};
use crate::frame::run::run_dir::RunDir;
use beff_stamp::{mix, Generation, StampStream};

/// Maximum length of a fault, except a flipped bit.
const MAX_FAULT_BYTES: u64 = 4096;
/// Distance of misplaced data from its position in the stream.
const MISPLACED_BYTES: u64 = 4096;

/// Position of the injected data in a rank's stream, and its generation.
#[derive(Clone, Copy, Debug)]
struct FaultSite {
    rank: u64,
    ranks: u64,
    generation: Generation,
    position: u64,
}

/// Replaces the correct data in `bytes`. None if this fault is not possible.
fn replace(bytes: &mut [u8], how: InjectedFault, data: &StampedData, spot: &FaultSite) -> Option<()> {
    let mut lay_out = |seed, generation, rank, position: u64| {
        let stream = StampStream::new(seed, generation, rank, data.period_bytes);
        for (n, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&stream.word_at_position(position + 8 * n as u64).to_le_bytes());
        }
    };
    let FaultSite { rank, ranks, generation, position } = *spot;
    match how {
        InjectedFault::Flip => {
            let middle = bytes.len() / 2;
            *bytes.get_mut(middle)? ^= 0x10;
        }
        InjectedFault::OtherRank if ranks == 1 => return None,
        InjectedFault::OtherRank => lay_out(data.seed, generation, (rank + 1) % ranks, position),
        // Before the rewrite stale data is that of another run.
        InjectedFault::Stale if generation == Generation::First => lay_out(!data.seed, generation, rank, position),
        InjectedFault::Stale => lay_out(data.seed, Generation::First, rank, position),
        InjectedFault::Zero | InjectedFault::Hole => bytes.fill(0),
        InjectedFault::Misplaced => lay_out(data.seed, generation, rank, position + MISPLACED_BYTES),
        InjectedFault::Swap => return None,
    }
    Some(())
}

/// Pseudo-random number below `below`, derived from these facts.
fn choose(
    data: &StampedData,
    file: &TypeFile,
    written: &WrittenPattern,
    at: InjectionPoint,
    salt: u64,
    below: u64,
) -> u64 {
    let facts = [file.ranks, u64::from(written.spec.number), at as u64, salt];
    let backend = file.backend.bytes().fold(0, |sum: u64, byte| mix(sum ^ u64::from(byte)));
    facts.into_iter().fold(mix(data.seed ^ backend), |key, fact| mix(key ^ fact)) % below.max(1)
}

/// Corrupts the last applicable call of `file`, in the data of its last rank.
///
/// # Errors
/// What open or write report, and faults that have no effect: data of another rank with one rank, stale data where nothing was rewritten.
pub fn inject_once(run_dir: &RunDir, file: &TypeFile, how: InjectedFault, data: &StampedData) -> io::Result<()> {
    let rank = file.ranks - 1;
    let calls = |w: &WrittenPattern| if how == InjectedFault::Stale { w.rewritten_calls() } else { w.calls };
    let Some(written) = file.written.iter().rev().find(|w| calls(w) > 0) else {
        return Err(io::Error::other("no data in this file permits this fault"));
    };
    if how == InjectedFault::OtherRank && file.ranks == 1 {
        return Err(io::Error::other("there is no other rank whose data could be injected"));
    }
    let call = calls(written) - 1;
    let p = file.pattern(written, rank, written.calls).map_err(io::Error::other)?;
    let chunk = call * p.chunks_per_call;
    let (offset, generation) = (p.chunk_offset(chunk), written.generation(rank, chunk));
    let spot = FaultSite { rank, ranks: file.ranks, generation, position: p.stream_position(call) };
    let data = &data.for_calls(written.spec.call_bytes);
    overwrite(&open(run_dir, file, rank)?, how, data, &spot, offset, p.chunk_bytes.min(1 << 20))
}

fn open(run_dir: &RunDir, file: &TypeFile, rank: u64) -> io::Result<File> {
    run_dir.file(&file.name(rank)).open_to_update()
}

fn overwrite(
    target: &File,
    how: InjectedFault,
    data: &StampedData,
    spot: &FaultSite,
    offset: u64,
    len: u64,
) -> io::Result<()> {
    if how == InjectedFault::Hole {
        let [from, bytes] = [offset, len].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        fallocate(target, FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE, from, bytes)?;
        return target.sync_all();
    }
    let mut bytes = vec![0_u8; usize::try_from(len).map_err(io::Error::other)?];
    target.read_exact_at(&mut bytes, offset)?;
    if replace(&mut bytes, how, data, spot).is_some() {
        target.write_all_at(&bytes, offset)?;
    }
    target.sync_all()
}

/// Corrupts one location of a pattern's data in its file, chosen by the seed. None if this fault is not possible.
///
/// # Errors
/// What open, read or write report.
pub fn inject_into_file(
    run_dir: &RunDir,
    file: &TypeFile,
    written: &WrittenPattern,
    (how, at): (InjectedFault, InjectionPoint),
    data: &StampedData,
) -> io::Result<Option<InjectedFaultRecord>> {
    let number = |salt, below| choose(data, file, written, at, salt, below);
    let region = Region::new(file, written, number(0, file.ranks)).map_err(io::Error::other)?;
    if region.bytes() == 0 || (how == InjectedFault::OtherRank && file.ranks == 1) {
        return Ok(None);
    }
    let mut place = number(1, region.bytes() / 8) * 8;
    let other = number(2, region.bytes() / 8) * 8;
    let swapped = place.max(other);
    if how == InjectedFault::Swap {
        // The record is that of the first of the two.
        place = place.min(other);
    }
    let filled = region.filled_range(place);
    let mut len = if how == InjectedFault::Flip { 8 } else { filled.bytes.min(MAX_FAULT_BYTES) };
    let target = open(run_dir, file, filled.rank)?;
    let generation = written.generation(filled.rank, filled.chunk);
    let spot = FaultSite { rank: filled.rank, ranks: file.ranks, generation, position: filled.position };
    if how == InjectedFault::Swap {
        len = len.min(region.filled_range(swapped).bytes).min(swapped - place);
        if len == 0 {
            return Ok(None);
        }
        let mut both = [vec![0_u8; len as usize], vec![0_u8; len as usize]];
        for (bytes, at) in both.iter_mut().zip([place, swapped]) {
            target.read_exact_at(bytes, region.offset() + at)?;
        }
        for (bytes, at) in both.iter().zip([swapped, place]) {
            target.write_all_at(bytes, region.offset() + at)?;
        }
        target.sync_all()?;
    } else {
        overwrite(&target, how, &data.for_calls(written.spec.call_bytes), &spot, region.offset() + place, len)?;
    }
    Ok(Some(record(file, written, at, filled.rank, (region.offset() + place, len))))
}

fn record(
    file: &TypeFile,
    written: &WrittenPattern,
    at: InjectionPoint,
    rank: u64,
    (offset_bytes, bytes): (u64, u64),
) -> InjectedFaultRecord {
    InjectedFaultRecord {
        backend: file.backend.clone(),
        ranks: file.ranks,
        at,
        pattern: written.spec.number,
        rank,
        file: file.name(rank).display().to_string(),
        offset_bytes,
        bytes,
    }
}

/// A fault in the data of one read of one rank in memory.
#[derive(Clone, Debug)]
pub struct ReadFault {
    how: InjectedFault,
    call: u64,
    /// Byte range in the call.
    range: Range<u64>,
    site: FaultSite,
    /// Its record.
    pub record: InjectedFaultRecord,
}

impl ReadFault {
    /// The fault for the reads of a pattern, by the seed; None if it is not possible.
    #[must_use]
    pub fn choose(file: &TypeFile, written: &WrittenPattern, how: InjectedFault, data: &StampedData) -> Option<Self> {
        let at = InjectionPoint::Read;
        let number = |salt, below| choose(data, file, written, at, salt, below);
        if written.calls == 0 || (how == InjectedFault::OtherRank && file.ranks == 1) {
            return None;
        }
        let (rank, call) = (number(0, file.ranks), number(1, written.calls));
        let p = file.pattern(written, rank, written.calls).ok()?;
        let begin = number(2, p.call_bytes() / 8) * 8;
        let left = p.chunk_bytes - begin % p.chunk_bytes;
        let len = match how {
            InjectedFault::Flip => 8,
            // Swapped with the following words.
            InjectedFault::Swap => left.min(MAX_FAULT_BYTES) / 16 * 16,
            _ => left.min(MAX_FAULT_BYTES),
        };
        let position = p.stream_position(call) + begin;
        let in_pattern = position - p.stream_bytes;
        let chunk = in_pattern / p.chunk_bytes;
        let offset = p.chunk_offset(chunk) + in_pattern % p.chunk_bytes;
        let spot = FaultSite { rank, ranks: file.ranks, generation: written.generation(rank, chunk), position };
        let record = record(file, written, at, rank, (offset, len));
        (len > 0).then_some(Self { how, call, range: begin..begin + len, site: spot, record })
    }

    /// True if `calls` contains the call of the fault.
    #[must_use]
    pub fn is_in(&self, calls: &Range<u64>) -> bool {
        calls.contains(&self.call)
    }

    /// Applies the fault to the data of the last of `calls` in the buffer of `rank`.
    pub fn apply(
        &self,
        buffer: &mut TransferBuffer,
        pattern: &AccessPattern,
        rank: u64,
        calls: &Range<u64>,
        data: &StampedData,
    ) {
        let kept = calls.end.saturating_sub(StampedData::retained_calls(buffer, pattern));
        if rank != self.site.rank || !self.is_in(calls) || self.call < kept {
            return;
        }
        let begin = buffer.index(pattern.stream_position(self.call)) + self.range.start as usize;
        let bytes = &mut buffer.bytes_mut()[begin..begin + (self.range.end - self.range.start) as usize];
        if self.how == InjectedFault::Swap {
            let middle = bytes.len() / 2;
            bytes.rotate_left(middle);
        } else {
            // Chosen so that the fault is possible.
            let _ = replace(bytes, self.how, &data.for_calls(pattern.call_bytes()), &self.site);
        }
    }
}

/// The fault for the reads of a pattern, if requested.
#[must_use]
pub fn read_fault(run: &RunState<'_>, place: TypeContext<'_>, open: &OpenTypeFile, index: usize) -> Option<ReadFault> {
    let how = run.config.inject.filter(|_| run.config.inject_at == Some(InjectionPoint::Read))?;
    let reads =
        place.access == AccessMethod::Read && run.backends[open.backend].moves_data && place.is_first_measurement();
    let file = &run.files[open.file];
    reads.then(|| ReadFault::choose(file, &file.written[index], how, &run.data)).flatten()
}

/// Corrupts the closed files before this access method begins, if requested.
pub fn inject_at_rest(run: &mut RunState<'_>, access: AccessMethod) {
    let (Some(how), None) = (run.config.inject, run.stop) else { return };
    // All ranks have closed the files: the agreement at the end of the partition is a barrier.
    if !run.world.is_root() {
        return;
    }
    let at = run.config.inject_at;
    let moves = |f: &&TypeFile| run.backends.iter().any(|b| b.name == f.backend && b.moves_data);
    let files: Vec<TypeFile> = run.files.iter().filter(moves).cloned().collect();
    for file in files {
        match (access, at) {
            (AccessMethod::Read, None) => {
                let done = inject_once(run.run_dir, &file, how, &run.data);
                record_fault(run, &file, done.map(|()| None));
            }
            (AccessMethod::Rewrite, Some(at @ InjectionPoint::AfterWrite))
            | (AccessMethod::Read, Some(at @ InjectionPoint::AfterRewrite)) => {
                for written in &file.written {
                    let done = inject_into_file(run.run_dir, &file, written, (how, at), &run.data);
                    record_fault(run, &file, done);
                }
            }
            _ => {}
        }
    }
}

/// Corrupts a pattern's data in its file after this access, if requested. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn inject_after(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    index: usize,
) -> Result<(), MpiError> {
    let at = match place.access {
        _ if place.is_mixed() => InjectionPoint::Mixed,
        AccessMethod::Write => InjectionPoint::Write,
        AccessMethod::Rewrite => InjectionPoint::Rewrite,
        AccessMethod::Read => InjectionPoint::AfterRead,
    };
    let asked = (place.is_first_measurement() || place.is_mixed())
        && run.config.inject_at == Some(at)
        && run.backends[open.backend].moves_data
        && run.stop.is_none();
    let (Some(how), true) = (run.config.inject, asked) else { return Ok(()) };
    place.comm.barrier()?;
    if place.comm.is_root() {
        let file = run.files[open.file].clone();
        if let Some(written) = file.written.get(index).filter(|written| written.calls > 0) {
            let done = inject_into_file(run.run_dir, &file, written, (how, at), &run.data);
            record_fault(run, &file, done);
        }
    }
    place.comm.barrier()
}

fn record_fault(run: &mut RunState<'_>, file: &TypeFile, done: io::Result<Option<InjectedFaultRecord>>) {
    match done {
        Ok(Some(damage)) => {
            let file = run.run_dir.located(Path::new(&damage.file)).display().to_string();
            run.observer.record(JournalLine::InjectedFault(InjectedFaultRecord { file, ..damage }));
        }
        Ok(None) => {}
        Err(e) => {
            let message = format!("{}: {e}", file.name(0).display());
            let next_step = "the fault could not be injected; nothing was tested";
            run.observer.record(JournalLine::Error(ErrorRecord::of_rank(0, "--inject", message, next_step)));
        }
    }
}
