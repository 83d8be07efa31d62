//! Comparing what was read with what was written, after the clock has stopped: what reads left in memory, whole files, and a
//! sample of what a pattern has written.

use std::io;
use std::ops::Range;
use std::time::Duration;

use beff_backends::{Pattern, Ring};

use crate::b_eff_io::plan::memory::window_bytes;
use crate::b_eff_io::records::{CorruptionRecord, Verification};
use crate::b_eff_io::run::files::{TypeFile, Written};
use crate::b_eff_io::run::places::{inside, places};
use crate::b_eff_io::run::region::Region;
use crate::frame::records::Access;
use crate::frame::run::clock::Instant;
use crate::frame::run::pieces::pieces;
use crate::frame::run::reread::{Reread, Stretch};
use crate::frame::run::run_dir::RunDir;
use beff_stamp::{diagnose, mix, to_word, Stream, Suspects, POISON_BYTE};

/// Wrong places reported in detail per rank, pattern and check; the count of words is always complete.
const PLACES_KEPT: usize = 4;
/// Bytes read at once by the full pass.
const READ_BYTES: u64 = 4 << 20;

/// Identity of the data of a run.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Seed.
    pub seed: u64,
    /// Period of the streams.
    pub period_bytes: u64,
    /// The calls of a pattern share one window: their data repeats after it.
    pub reused: bool,
}

/// What a check found on this rank.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Counts.
    pub verification: Verification,
    /// Of what was read again, bytes that did not come out of this host's page cache.
    pub past_cache_bytes: u64,
    /// Places that were read again.
    pub places_read: u64,
    /// First wrong places.
    pub places: Vec<CorruptionRecord>,
}

impl Findings {
    /// Takes in what else was found in the same pattern.
    pub fn add(&mut self, mut other: Self) {
        other.places.truncate(PLACES_KEPT.saturating_sub(self.places.len()));
        self.add_pattern(other);
    }

    /// Takes in what was found in another pattern.
    fn add_pattern(&mut self, other: Self) {
        self.verification.add(other.verification);
        self.past_cache_bytes += other.past_cache_bytes;
        self.places_read += other.places_read;
        self.places.extend(other.places);
    }
}

/// Whose bytes `rank` reads again: its neighbour's, so that nobody checks what his own caches hold.
#[must_use]
pub fn reader_of(rank: u64, ranks: u64) -> u64 {
    (rank + 1) % ranks
}

/// What is read again, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct Again<'a> {
    /// Where the files are.
    pub run_dir: &'a RunDir,
    /// The file, or the files of all ranks.
    pub file: &'a TypeFile,
    /// After or before which access.
    pub access: Access,
    /// This rank.
    pub rank: u64,
    /// Pages of this reading may be given back.
    pub drops: bool,
}

impl Again<'_> {
    /// Whose file or segment this rank reads.
    fn owner(&self) -> u64 {
        reader_of(self.rank, self.file.ranks)
    }

    fn open(&self) -> io::Result<Reread> {
        Reread::open(&self.run_dir.file(&self.file.name(self.owner())), self.drops)
    }
}

/// Some bytes that should be a piece of a rank's stream, and where they come from.
struct Piece<'a> {
    bytes: &'a [u8],
    rank: u64,
    call: u64,
    /// Position in the rank's stream of the first byte.
    position: u64,
}

impl Data {
    /// The data of a pattern with calls of this length.
    #[must_use]
    pub fn of(&self, call_bytes: u64) -> Self {
        Self { period_bytes: if self.reused { window_bytes(call_bytes) } else { self.period_bytes }, ..*self }
    }

    /// Poisons the part of the ring that the reads of `calls` can touch.
    pub fn poison(&self, ring: &mut Ring, pattern: &Pattern, calls: Range<u64>) {
        let first_position = pattern.stream_position(calls.start);
        let calls = calls.end.saturating_sub(calls.start);
        let call_bytes = pattern.call_bytes() as usize;
        let reach = calls.saturating_mul(pattern.call_bytes());
        let period = ring.period_bytes();
        if reach >= period {
            let end = (period as usize + call_bytes).min(ring.bytes().len());
            ring.bytes_mut()[..end].fill(POISON_BYTE);
            return;
        }
        let begin = ring.index(first_position);
        let end = begin + reach as usize + call_bytes;
        let len = ring.bytes().len();
        ring.bytes_mut()[begin..end.min(len)].fill(POISON_BYTE);
        if end > period as usize {
            // Windows that begin in the next period land at the front.
            ring.bytes_mut()[..(end - period as usize).min(begin)].fill(POISON_BYTE);
        }
    }

    /// Calls whose bytes the ring holds beside each other.
    #[must_use]
    pub fn calls_kept(ring: &Ring, pattern: &Pattern) -> u64 {
        (ring.period_bytes() / pattern.call_bytes().max(1)).max(1)
    }

    /// Compares what the reads `calls` of a pattern left in the ring. Every window that was not written over by a
    /// later call is compared whole.
    #[must_use]
    pub fn check_ring(
        &self,
        ring: &Ring,
        file: &TypeFile,
        written: &Written,
        p: &Pattern,
        rank: u64,
        calls: Range<u64>,
    ) -> Findings {
        let call_bytes = p.call_bytes();
        let kept = Self::calls_kept(ring, p).min(calls.end - calls.start);
        let mut findings = Findings::default();
        for call in calls.end - kept..calls.end {
            let position = p.stream_position(call);
            let bytes = ring.window(position, call_bytes as usize);
            let offset_of = |inside| {
                let in_pattern = position + inside - p.stream_bytes;
                p.chunk_offset(in_pattern / p.chunk_bytes) + in_pattern % p.chunk_bytes
            };
            let piece = Piece { bytes, rank, call, position };
            findings.add(self.check((file, written), Access::Read, &piece, offset_of));
        }
        findings
    }

    fn check(
        &self,
        (file, written): (&TypeFile, &Written),
        access: Access,
        piece: &Piece<'_>,
        offset_of: impl Fn(u64) -> u64,
    ) -> Findings {
        let generation = written.generation(piece.call);
        let period_bytes = self.of(written.spec.call_bytes).period_bytes;
        let stream = Stream::new(self.seed, generation, piece.rank, period_bytes);
        let (wrong, first) = stream.compare(piece.bytes, piece.position);
        let words_checked = (piece.bytes.len() / 8) as u64;
        let mut findings =
            Findings { verification: Verification { words_checked, words_wrong: wrong }, ..Findings::default() };
        if let Some(first) = first {
            let position = piece.position + first as u64;
            let found = to_word(&piece.bytes[first..]);
            let suspects =
                Suspects { seed: self.seed, ranks: file.ranks, rank: piece.rank, generation, period_bytes, position };
            findings.places.push(CorruptionRecord {
                backend: file.backend.clone(),
                ranks: file.ranks,
                access,
                pattern: written.spec.number,
                rank: piece.rank,
                file: file.name(piece.rank).display().to_string(),
                offset_bytes: offset_of(first as u64),
                expected: stream.word(position),
                found,
                looks_like: diagnose(found, &suspects),
                words_wrong: wrong,
            });
        }
        findings
    }

    /// Compares what was read again of a region, from its byte `at` on.
    fn check_stretch(&self, region: &Region<'_>, access: Access, at: u64, stretch: &Stretch<'_>) -> Findings {
        let mut findings = Findings::default();
        let len = stretch.bytes.len() as u64;
        let mut done = 0;
        while done < len {
            let filled = region.filled(at + done);
            let end = len.min(done + filled.bytes);
            let piece = Piece {
                bytes: &stretch.bytes[done as usize..end as usize],
                rank: filled.rank,
                call: filled.call,
                position: filled.position,
            };
            let offset_of = |inside| region.offset() + at + done + inside;
            let mut of_piece = self.check((region.file, region.written), access, &piece, offset_of);
            let file_end = region.offset() + at + stretch.in_file as u64;
            for place in of_piece.places.iter_mut().filter(|p| p.found == 0 && p.offset_bytes >= file_end) {
                place.looks_like = format!("missing: the file ends at {file_end}");
            }
            findings.add(of_piece);
            done = end;
        }
        findings
    }

    /// Reads everything that was written to a file once more and compares it. The ranks share the work so that in private
    /// files and segments nobody reads what he wrote himself.
    ///
    /// # Errors
    /// What open or read report. The end of the file before its time is no error but a finding.
    pub fn check_file(&self, again: &Again<'_>) -> io::Result<Findings> {
        let mut source = again.open()?;
        let mut findings = Findings::default();
        for written in &again.file.written {
            findings.add_pattern(self.check_written(again, &mut source, written)?);
        }
        findings.past_cache_bytes = source.past_cache_bytes();
        Ok(findings)
    }

    /// The same for one pattern.
    ///
    /// # Errors
    /// As [`Data::check_file`].
    pub fn check_pattern(&self, again: &Again<'_>, written: &Written) -> io::Result<Findings> {
        let mut source = again.open()?;
        let mut findings = self.check_written(again, &mut source, written)?;
        findings.past_cache_bytes = source.past_cache_bytes();
        Ok(findings)
    }

    fn check_written(&self, again: &Again<'_>, source: &mut Reread, written: &Written) -> io::Result<Findings> {
        let mut findings = Findings::default();
        if written.calls == 0 {
            return Ok(findings);
        }
        let region = Region::of(again.file, written, again.owner()).map_err(io::Error::other)?;
        let range = if region.is_shared() {
            // Each rank takes as many rows.
            let row_bytes = written.spec.chunk_bytes * again.file.ranks;
            let rows = region.bytes() / row_bytes;
            let bound = |n: u64| (u128::from(rows) * u128::from(n) / u128::from(again.file.ranks)) as u64 * row_bytes;
            bound(again.owner())..bound(again.owner() + 1)
        } else {
            0..region.bytes()
        };
        for (at, len) in pieces(range, READ_BYTES) {
            let stretch = source.read(region.offset() + at, len)?;
            findings.add(self.check_stretch(&region, again.access, at, &stretch));
        }
        Ok(findings)
    }

    /// Reads this rank's share of some hundred places of a pattern once more, and the ends of its neighbour's part, until
    /// `longest` is over.
    ///
    /// # Errors
    /// As [`Data::check_file`].
    pub fn check_sample(&self, again: &Again<'_>, written: &Written, longest: Duration) -> io::Result<Findings> {
        let mut findings = Findings::default();
        if written.calls == 0 {
            return Ok(findings);
        }
        let begin = Instant::now();
        let mut source = again.open()?;
        let region = Region::of(again.file, written, again.owner()).map_err(io::Error::other)?;
        for block in places(&region, again.owner(), again.rank, again.file.ranks, self.key(again, written)) {
            if begin.elapsed() > longest {
                break;
            }
            let (at, len) = inside(&region, block);
            let stretch = source.read(region.offset() + at, len as usize)?;
            findings.add(self.check_stretch(&region, again.access, at, &stretch));
            findings.places_read += 1;
        }
        findings.past_cache_bytes = source.past_cache_bytes();
        Ok(findings)
    }

    /// Chooses places: others for each rank, pattern, access method and partition, the same for all backends.
    fn key(&self, again: &Again<'_>, written: &Written) -> u64 {
        let facts = [again.rank, again.file.ranks, u64::from(written.spec.number), again.access as u64];
        facts.into_iter().fold(mix(self.seed), |key, fact| mix(key ^ fact))
    }
}
