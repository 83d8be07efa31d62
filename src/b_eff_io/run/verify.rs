//! Comparison of data read with data written, after the clock has stopped: data in memory after reads, whole files, and a sample of what a
//! pattern has written.

use std::io;
use std::ops::Range;
use std::time::Duration;

use beff_backends::{AccessPattern, Direction, TransferBuffer};

use crate::b_eff_io::plan::memory::window_bytes;
use crate::b_eff_io::records::{CorruptionRecord, Verification};
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
use crate::b_eff_io::run::region::Region;
use crate::b_eff_io::run::sample_blocks::{block_range, sample_blocks};
use crate::frame::records::AccessMethod;
use crate::frame::run::clock::Instant;
use crate::frame::run::file_ranges::split_range;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::verify_reader::{ReadBlock, VerifyReader};
use beff_stamp::{diagnose, mix, to_word, StampStream, WordContext, POISON_BYTE};

/// Corruptions reported in detail per rank, pattern and check; the count of words is always complete.
const CORRUPTIONS_KEPT: usize = 4;
/// Bytes per read of a full verification.
const READ_BYTES: u64 = 4 << 20;

/// Identity of the stamped data of a run.
#[derive(Clone, Copy, Debug)]
pub struct StampedData {
    /// Seed.
    pub seed: u64,
    /// Period of the streams.
    pub period_bytes: u64,
    /// The calls of a pattern share one window: their data repeats after it.
    pub reused: bool,
}

/// Result of a check on this rank.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Counts.
    pub verification: Verification,
    /// Bytes of rereads that did not come from this host's page cache.
    pub past_cache_bytes: u64,
    /// Samples that were reread.
    pub samples_read: u64,
    /// First corruptions.
    pub corruptions: Vec<CorruptionRecord>,
}

impl Findings {
    /// Adds findings of the same pattern.
    pub fn add(&mut self, mut other: Self) {
        other.corruptions.truncate(CORRUPTIONS_KEPT.saturating_sub(self.corruptions.len()));
        self.add_pattern(other);
    }

    fn add_pattern(&mut self, other: Self) {
        self.verification.add(other.verification);
        self.past_cache_bytes += other.past_cache_bytes;
        self.samples_read += other.samples_read;
        self.corruptions.extend(other.corruptions);
    }
}

/// Rank whose data `rank` rereads: its neighbour, so that no rank verifies what its own caches hold.
#[must_use]
pub fn reader_of(rank: u64, ranks: u64) -> u64 {
    (rank + 1) % ranks
}

/// What is reread, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct VerificationTarget<'a> {
    /// Directory of the files.
    pub run_dir: &'a RunDir,
    /// The file, or the files of all ranks.
    pub file: &'a TypeFile,
    /// The access method after or before which it is reread.
    pub access: AccessMethod,
    /// This rank.
    pub rank: u64,
    /// Pages cached by the reread may be dropped.
    pub drops: bool,
}

impl VerificationTarget<'_> {
    /// Rank whose file or segment this rank reads.
    fn owner(&self) -> u64 {
        reader_of(self.rank, self.file.ranks)
    }

    fn open(&self) -> io::Result<VerifyReader> {
        VerifyReader::open(&self.run_dir.file(&self.file.name(self.owner())), self.drops)
    }
}

/// Bytes that should be a slice of a rank's stream, and their position.
struct StreamSlice<'a> {
    bytes: &'a [u8],
    rank: u64,
    chunk: u64,
    position: u64,
}

impl StampedData {
    /// The data of a pattern with calls of this length.
    #[must_use]
    pub fn for_calls(&self, call_bytes: u64) -> Self {
        Self { period_bytes: if self.reused { window_bytes(call_bytes) } else { self.period_bytes }, ..*self }
    }

    /// Poisons the part of the buffer that the reads of `calls` can access.
    pub fn poison(&self, buffer: &mut TransferBuffer, pattern: &AccessPattern, calls: Range<u64>) {
        if pattern.mix.is_some() {
            let begin = buffer.landing_begin();
            let end = begin + (buffer.landing_period_bytes() + pattern.call_bytes()) as usize;
            buffer.bytes_mut()[begin..end].fill(POISON_BYTE);
            return;
        }
        let first_position = pattern.stream_position(calls.start);
        let calls = calls.end.saturating_sub(calls.start);
        let call_bytes = pattern.call_bytes() as usize;
        let span_bytes = calls.saturating_mul(pattern.call_bytes());
        let period = buffer.period_bytes();
        if span_bytes >= period {
            let end = (period as usize + call_bytes).min(buffer.bytes().len());
            buffer.bytes_mut()[..end].fill(POISON_BYTE);
            return;
        }
        let begin = buffer.index(first_position);
        let end = begin + span_bytes as usize + call_bytes;
        let len = buffer.bytes().len();
        buffer.bytes_mut()[begin..end.min(len)].fill(POISON_BYTE);
        if end > period as usize {
            // Windows that begin in the next period wrap to the front.
            buffer.bytes_mut()[..(end - period as usize).min(begin)].fill(POISON_BYTE);
        }
    }

    /// Number of consecutive calls whose data the buffer holds.
    #[must_use]
    pub fn retained_calls(buffer: &TransferBuffer, pattern: &AccessPattern) -> u64 {
        let period_bytes = if pattern.mix.is_some() { buffer.landing_period_bytes() } else { buffer.period_bytes() };
        (period_bytes / pattern.call_bytes().max(1)).max(1)
    }

    /// Compares the data of the reads `calls` of a pattern in the buffer. Every window that no later call has overwritten is compared
    /// completely.
    #[must_use]
    pub fn check_buffer(
        &self,
        buffer: &TransferBuffer,
        file: &TypeFile,
        written: &WrittenPattern,
        p: &AccessPattern,
        rank: u64,
        calls: Range<u64>,
    ) -> Findings {
        let call_bytes = p.call_bytes();
        let kept = Self::retained_calls(buffer, p).min(calls.end - calls.start);
        let access = if p.mix.is_some() { AccessMethod::Rewrite } else { AccessMethod::Read };
        let mut findings = Findings::default();
        let is_read = |call: &u64| p.call_direction(Direction::Read, *call) == Direction::Read;
        for call in (calls.end - kept..calls.end).filter(is_read) {
            let begin = p.memory_index(buffer, Direction::Read, call);
            let bytes = &buffer.bytes()[begin..begin + call_bytes as usize];
            let first_chunk = p.ordered_call(call) * p.chunks_per_call;
            let end = first_chunk + p.chunks_per_call;
            let mut chunk = first_chunk;
            // Pieces of one generation.
            while chunk < end {
                let next = written.generation_end(chunk).clamp(chunk + 1, end);
                let [from, to] = [chunk, next].map(|at| ((at - first_chunk) * p.chunk_bytes) as usize);
                let position = p.stream_bytes + chunk * p.chunk_bytes;
                let offset_of = |inside| p.chunk_offset(chunk + inside / p.chunk_bytes) + inside % p.chunk_bytes;
                let piece = StreamSlice { bytes: &bytes[from..to], rank, chunk, position };
                findings.add(self.check((file, written), access, &piece, offset_of));
                chunk = next;
            }
        }
        findings
    }

    fn check(
        &self,
        (file, written): (&TypeFile, &WrittenPattern),
        access: AccessMethod,
        piece: &StreamSlice<'_>,
        offset_of: impl Fn(u64) -> u64,
    ) -> Findings {
        let generation = written.generation(piece.rank, piece.chunk);
        let period_bytes = self.for_calls(written.spec.call_bytes).period_bytes;
        let stream = StampStream::new(self.seed, generation, piece.rank, period_bytes);
        let (wrong, first) = stream.compare(piece.bytes, piece.position);
        let words_checked = (piece.bytes.len() / 8) as u64;
        let mut findings =
            Findings { verification: Verification { words_checked, words_wrong: wrong }, ..Findings::default() };
        if let Some(first) = first {
            let position = piece.position + first as u64;
            let found = to_word(&piece.bytes[first..]);
            let suspects = WordContext {
                seed: self.seed,
                ranks: file.ranks,
                rank: piece.rank,
                generation,
                period_bytes,
                position,
            };
            findings.corruptions.push(CorruptionRecord {
                backend: file.backend.clone(),
                ranks: file.ranks,
                access,
                order: None,
                mix: None,
                pattern: written.spec.number,
                rank: piece.rank,
                file: file.name(piece.rank).display().to_string(),
                offset_bytes: offset_of(first as u64),
                expected: stream.word_at_position(position),
                actual: found,
                diagnosis: diagnose(found, &suspects),
                words_wrong: wrong,
            });
        }
        findings
    }

    /// Compares reread data of a region, from its byte `at` on.
    fn check_region_slice(
        &self,
        region: &Region<'_>,
        access: AccessMethod,
        at: u64,
        stretch: &ReadBlock<'_>,
    ) -> Findings {
        let mut findings = Findings::default();
        let len = stretch.bytes.len() as u64;
        let mut done = 0;
        while done < len {
            let filled = region.filled_range(at + done);
            let end = len.min(done + filled.bytes);
            let piece = StreamSlice {
                bytes: &stretch.bytes[done as usize..end as usize],
                rank: filled.rank,
                chunk: filled.chunk,
                position: filled.position,
            };
            let offset_of = |inside| region.offset() + at + done + inside;
            let mut of_piece = self.check((region.file, region.written), access, &piece, offset_of);
            let file_end = region.offset() + at + stretch.in_file as u64;
            for place in of_piece.corruptions.iter_mut().filter(|p| p.actual == 0 && p.offset_bytes >= file_end) {
                place.diagnosis = format!("missing: the file ends at {file_end}");
            }
            findings.add(of_piece);
            done = end;
        }
        findings
    }

    /// Rereads everything written to a file and compares it. In private files and segments no rank reads what it wrote itself.
    ///
    /// # Errors
    /// What open or read report. A file that ends early is a finding, not an error.
    pub fn check_file(&self, again: &VerificationTarget<'_>) -> io::Result<Findings> {
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
    /// As [`StampedData::check_file`].
    pub fn check_pattern(&self, again: &VerificationTarget<'_>, written: &WrittenPattern) -> io::Result<Findings> {
        let mut source = again.open()?;
        let mut findings = self.check_written(again, &mut source, written)?;
        findings.past_cache_bytes = source.past_cache_bytes();
        Ok(findings)
    }

    fn check_written(
        &self,
        again: &VerificationTarget<'_>,
        source: &mut VerifyReader,
        written: &WrittenPattern,
    ) -> io::Result<Findings> {
        let mut findings = Findings::default();
        if written.calls == 0 {
            return Ok(findings);
        }
        let region = Region::new(again.file, written, again.owner()).map_err(io::Error::other)?;
        let range = if region.is_shared() {
            let row_bytes = written.spec.chunk_bytes * again.file.ranks;
            let rows = region.bytes() / row_bytes;
            let bound = |n: u64| (u128::from(rows) * u128::from(n) / u128::from(again.file.ranks)) as u64 * row_bytes;
            bound(again.owner())..bound(again.owner() + 1)
        } else {
            0..region.bytes()
        };
        for (at, len) in split_range(range, READ_BYTES) {
            let stretch = source.read(region.offset() + at, len)?;
            findings.add(self.check_region_slice(&region, again.access, at, &stretch));
        }
        Ok(findings)
    }

    /// Rereads this rank's share of some hundred samples of a pattern, and the ends of its neighbour's part, for at most `longest`.
    ///
    /// # Errors
    /// As [`StampedData::check_file`].
    pub fn check_sample(
        &self,
        again: &VerificationTarget<'_>,
        written: &WrittenPattern,
        longest: Duration,
    ) -> io::Result<Findings> {
        let mut findings = Findings::default();
        if written.calls == 0 {
            return Ok(findings);
        }
        let begin = Instant::now();
        let mut source = again.open()?;
        let region = Region::new(again.file, written, again.owner()).map_err(io::Error::other)?;
        for block in
            sample_blocks(&region, again.owner(), again.rank, again.file.ranks, self.sample_key(again, written))
        {
            if begin.elapsed() > longest {
                break;
            }
            let (at, len) = block_range(&region, block);
            let stretch = source.read(region.offset() + at, len as usize)?;
            findings.add(self.check_region_slice(&region, again.access, at, &stretch));
            findings.samples_read += 1;
        }
        findings.past_cache_bytes = source.past_cache_bytes();
        Ok(findings)
    }

    /// Key of the samples: different for each rank, pattern, access method and partition, the same for all backends.
    fn sample_key(&self, again: &VerificationTarget<'_>, written: &WrittenPattern) -> u64 {
        let facts = [again.rank, again.file.ranks, u64::from(written.spec.number), again.access as u64];
        facts.into_iter().fold(mix(self.seed), |key, fact| mix(key ^ fact))
    }
}
