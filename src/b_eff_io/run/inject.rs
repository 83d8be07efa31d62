//! Damage on purpose, to prove that the verification finds it. Only with the options --inject and --inject-at of a build
//! with test hooks.
//!
//! What follows is equal on all ranks: it comes from the seed. One rank does it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use beff_backends::{Pattern, Ring};
use beff_ffi::MpiError;
use nix::fcntl::{fallocate, FallocateFlags};

use crate::b_eff_io::config::{Inject, InjectAt};
use crate::b_eff_io::records::{DamageRecord, JournalLine};
use crate::b_eff_io::run::files::{TypeFile, Written};
use crate::b_eff_io::run::place::{Open, Place};
use crate::b_eff_io::run::region::Region;
use crate::b_eff_io::run::state::Run;
use crate::b_eff_io::run::verify::Data;
use crate::frame::records::{Access, ErrorRecord};
use crate::frame::run::run_dir::RunDir;
use beff_stamp::{mix, Generation, Stream};

/// A damage is no longer than this, one bit apart.
const LONGEST_BYTES: u64 = 4096;
/// How far misplaced data is from its place in the stream.
const MISPLACED_BYTES: u64 = 4096;

/// Whose data is put where: position in the stream, and the writing.
#[derive(Clone, Copy, Debug)]
struct Spot {
    rank: u64,
    ranks: u64,
    generation: Generation,
    position: u64,
}

/// The bytes that take the place of the right ones, which `bytes` holds. None: there is no such damage.
fn replace(bytes: &mut [u8], how: Inject, data: &Data, spot: &Spot) -> Option<()> {
    let mut lay_out = |seed, generation, rank, position: u64| {
        let stream = Stream::new(seed, generation, rank, data.period_bytes);
        for (n, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&stream.word(position + 8 * n as u64).to_le_bytes());
        }
    };
    let Spot { rank, ranks, generation, position } = *spot;
    match how {
        Inject::Flip => {
            let middle = bytes.len() / 2;
            *bytes.get_mut(middle)? ^= 0x10;
        }
        Inject::OtherRank if ranks == 1 => return None,
        Inject::OtherRank => lay_out(data.seed, generation, (rank + 1) % ranks, position),
        // Before the rewrite that is what another run has left.
        Inject::Stale if generation == Generation::First => lay_out(!data.seed, generation, rank, position),
        Inject::Stale => lay_out(data.seed, Generation::First, rank, position),
        Inject::Zero | Inject::Hole => bytes.fill(0),
        Inject::Misplaced => lay_out(data.seed, generation, rank, position + MISPLACED_BYTES),
        Inject::Swap => return None,
    }
    Some(())
}

/// A number from 0 to `below` - 1 for these facts.
fn choose(data: &Data, file: &TypeFile, written: &Written, at: InjectAt, salt: u64, below: u64) -> u64 {
    let facts = [file.ranks, u64::from(written.spec.number), at as u64, salt];
    let backend = file.backend.bytes().fold(0, |sum: u64, byte| mix(sum ^ u64::from(byte)));
    facts.into_iter().fold(mix(data.seed ^ backend), |key, fact| mix(key ^ fact)) % below.max(1)
}

/// Damages the last call of the last pattern of `file` that can show it, in the data of its last rank.
///
/// # Errors
/// What opening or writing reports, and damage that would be none: data of another rank where there is one rank, stale
/// data where nothing was rewritten.
pub fn damage_once(run_dir: &RunDir, file: &TypeFile, how: Inject, data: &Data) -> io::Result<()> {
    let rank = file.ranks - 1;
    let calls = |w: &Written| if how == Inject::Stale { w.rewritten_calls() } else { w.calls };
    let Some(written) = file.written.iter().rev().find(|w| calls(w) > 0) else {
        return Err(io::Error::other("nothing in this file can be damaged in this way"));
    };
    if how == Inject::OtherRank && file.ranks == 1 {
        return Err(io::Error::other("there is no other rank whose data could be put there"));
    }
    let call = calls(written) - 1;
    let p = file.pattern(written, rank, written.calls).map_err(io::Error::other)?;
    let offset = p.chunk_offset(call * p.chunks_per_call);
    let spot =
        Spot { rank, ranks: file.ranks, generation: written.generation(call), position: p.stream_position(call) };
    let data = &data.of(written.spec.call_bytes);
    overwrite(&open(run_dir, file, rank)?, how, data, &spot, offset, p.chunk_bytes.min(1 << 20))
}

fn open(run_dir: &RunDir, file: &TypeFile, rank: u64) -> io::Result<File> {
    run_dir.file(&file.name(rank)).open_to_update()
}

fn overwrite(target: &File, how: Inject, data: &Data, spot: &Spot, offset: u64, len: u64) -> io::Result<()> {
    if how == Inject::Hole {
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

/// Damages one place of what a pattern has in its file, as the seed says. None: there is no such damage.
///
/// # Errors
/// What opening, reading or writing reports.
pub fn damage_file(
    run_dir: &RunDir,
    file: &TypeFile,
    written: &Written,
    (how, at): (Inject, InjectAt),
    data: &Data,
) -> io::Result<Option<DamageRecord>> {
    let number = |salt, below| choose(data, file, written, at, salt, below);
    let region = Region::of(file, written, number(0, file.ranks)).map_err(io::Error::other)?;
    if region.bytes() == 0 || (how == Inject::OtherRank && file.ranks == 1) {
        return Ok(None);
    }
    let mut place = number(1, region.bytes() / 8) * 8;
    let other = number(2, region.bytes() / 8) * 8;
    let swapped = place.max(other);
    if how == Inject::Swap {
        // Told by the first of the two.
        place = place.min(other);
    }
    let filled = region.filled(place);
    let mut len = if how == Inject::Flip { 8 } else { filled.bytes.min(LONGEST_BYTES) };
    let target = open(run_dir, file, filled.rank)?;
    let generation = written.generation(filled.call);
    let spot = Spot { rank: filled.rank, ranks: file.ranks, generation, position: filled.position };
    if how == Inject::Swap {
        len = len.min(region.filled(swapped).bytes).min(swapped - place);
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
        overwrite(&target, how, &data.of(written.spec.call_bytes), &spot, region.offset() + place, len)?;
    }
    Ok(Some(record(file, written, at, filled.rank, (region.offset() + place, len))))
}

fn record(
    file: &TypeFile,
    written: &Written,
    at: InjectAt,
    rank: u64,
    (offset_bytes, bytes): (u64, u64),
) -> DamageRecord {
    DamageRecord {
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

/// Damage to what one read of one rank leaves in memory.
#[derive(Clone, Debug)]
pub struct OnTheWay {
    how: Inject,
    /// The call.
    call: u64,
    /// Where in its bytes, and how many.
    inside: Range<u64>,
    spot: Spot,
    /// What is told of it.
    pub record: DamageRecord,
}

impl OnTheWay {
    /// What the seed says for the reads of a pattern; None: there is no such damage.
    #[must_use]
    pub fn choose(file: &TypeFile, written: &Written, how: Inject, data: &Data) -> Option<Self> {
        let at = InjectAt::Read;
        let number = |salt, below| choose(data, file, written, at, salt, below);
        if written.calls == 0 || (how == Inject::OtherRank && file.ranks == 1) {
            return None;
        }
        let (rank, call) = (number(0, file.ranks), number(1, written.calls));
        let p = file.pattern(written, rank, written.calls).ok()?;
        let begin = number(2, p.call_bytes() / 8) * 8;
        let left = p.chunk_bytes - begin % p.chunk_bytes;
        let len = match how {
            Inject::Flip => 8,
            // With the words behind it.
            Inject::Swap => left.min(LONGEST_BYTES) / 16 * 16,
            _ => left.min(LONGEST_BYTES),
        };
        let position = p.stream_position(call) + begin;
        let in_pattern = position - p.stream_bytes;
        let offset = p.chunk_offset(in_pattern / p.chunk_bytes) + in_pattern % p.chunk_bytes;
        let spot = Spot { rank, ranks: file.ranks, generation: written.generation(call), position };
        let record = record(file, written, at, rank, (offset, len));
        (len > 0).then_some(Self { how, call, inside: begin..begin + len, spot, record })
    }

    /// True if the call is one of these.
    #[must_use]
    pub fn is_in(&self, calls: &Range<u64>) -> bool {
        calls.contains(&self.call)
    }

    /// Does it to what the last of `calls` have left in the ring of `rank`.
    pub fn apply(&self, ring: &mut Ring, pattern: &Pattern, rank: u64, calls: &Range<u64>, data: &Data) {
        let kept = calls.end.saturating_sub(Data::calls_kept(ring, pattern));
        if rank != self.spot.rank || !self.is_in(calls) || self.call < kept {
            return;
        }
        let begin = ring.index(pattern.stream_position(self.call)) + self.inside.start as usize;
        let bytes = &mut ring.bytes_mut()[begin..begin + (self.inside.end - self.inside.start) as usize];
        if self.how == Inject::Swap {
            let middle = bytes.len() / 2;
            bytes.rotate_left(middle);
        } else {
            // Chosen so that it is one.
            let _ = replace(bytes, self.how, &data.of(pattern.call_bytes()), &self.spot);
        }
    }
}

/// Damage to what the reads of a pattern leave in memory, if that was asked for.
#[must_use]
pub fn on_the_way(run: &Run<'_>, place: Place<'_>, open: &Open, index: usize) -> Option<OnTheWay> {
    let how = run.config.inject.filter(|_| run.config.inject_at == Some(InjectAt::Read))?;
    let reads = place.access == Access::Read && run.backends[open.backend].moves_data && place.repeat.is_none();
    let file = &run.files[open.file];
    reads.then(|| OnTheWay::choose(file, &file.written[index], how, &run.data)).flatten()
}

/// Damages the files at rest before the partitions begin this access, if that was asked for, to see whether it is found.
pub fn at_rest(run: &mut Run<'_>, access: Access) {
    let (Some(how), None) = (run.config.inject, run.stop) else { return };
    // All ranks have closed the files: the agreement at the end of the partition was a barrier.
    if !run.world.is_root() {
        return;
    }
    let at = run.config.inject_at;
    let moves = |f: &&TypeFile| run.backends.iter().any(|b| b.name == f.backend && b.moves_data);
    let files: Vec<TypeFile> = run.files.iter().filter(moves).cloned().collect();
    for file in files {
        match (access, at) {
            (Access::Read, None) => {
                let done = damage_once(run.run_dir, &file, how, &run.data);
                told_damage(run, &file, done.map(|()| None));
            }
            (Access::Rewrite, Some(at @ InjectAt::AfterWrite)) | (Access::Read, Some(at @ InjectAt::AfterRewrite)) => {
                for written in &file.written {
                    let done = damage_file(run.run_dir, &file, written, (how, at), &run.data);
                    told_damage(run, &file, done);
                }
            }
            _ => {}
        }
    }
}

/// Damages what a pattern has in its file behind this access, if that was asked for. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn behind(run: &mut Run<'_>, place: Place<'_>, open: &Open, index: usize) -> Result<(), MpiError> {
    let at = match place.access {
        Access::Write => InjectAt::Write,
        Access::Rewrite => InjectAt::Rewrite,
        Access::Read => InjectAt::AfterRead,
    };
    let asked = place.repeat.is_none()
        && run.config.inject_at == Some(at)
        && run.backends[open.backend].moves_data
        && run.stop.is_none();
    let (Some(how), true) = (run.config.inject, asked) else { return Ok(()) };
    place.comm.barrier()?;
    if place.comm.is_root() {
        let file = run.files[open.file].clone();
        if let Some(written) = file.written.get(index).filter(|written| written.calls > 0) {
            let done = damage_file(run.run_dir, &file, written, (how, at), &run.data);
            told_damage(run, &file, done);
        }
    }
    place.comm.barrier()
}

/// Records damage that was done, or why it could not be.
fn told_damage(run: &mut Run<'_>, file: &TypeFile, done: io::Result<Option<DamageRecord>>) {
    match done {
        Ok(Some(damage)) => run.observer.record(JournalLine::Damage(damage)),
        Ok(None) => {}
        Err(e) => {
            let message = format!("{}: {e}", file.name(0).display());
            let next_step = "the damage could not be made; nothing was proved";
            run.observer.record(JournalLine::Error(ErrorRecord::of_rank(0, "--inject", message, next_step)));
        }
    }
}
