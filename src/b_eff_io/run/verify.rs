//! Comparing what was read with what was written, after the clock has stopped.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use beff_backends::{Pattern, Ring};
use nix::fcntl::{posix_fadvise, PosixFadviseAdvice};

use crate::b_eff_io::records::{CorruptionRecord, Verification};
use crate::b_eff_io::run::files::{TypeFile, Written};
use crate::frame::records::Access;
use crate::frame::run::pieces::pieces;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::stamp::{diagnose, to_word, Stream, Suspects, POISON_BYTE};

/// Wrong places reported in detail per rank and pattern; the count of words is always complete.
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
}

/// What a check found on this rank.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Counts.
    pub verification: Verification,
    /// First wrong places.
    pub places: Vec<CorruptionRecord>,
}

impl Findings {
    fn add(&mut self, other: Self) {
        self.verification.add(other.verification);
        let room = PLACES_KEPT.saturating_sub(self.places.len());
        self.places.extend(other.places.into_iter().take(room));
    }
}

/// Whose bytes `rank` reads again in the full pass: its neighbour's, so that nobody checks what his own caches hold.
#[must_use]
pub fn reader_of(rank: u64, ranks: u64) -> u64 {
    (rank + 1) % ranks
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
    /// Poisons the part of the ring that the reads of `calls` can touch.
    pub fn poison(&self, ring: &mut Ring, pattern: &Pattern, calls: Range<u64>) {
        let first_position = pattern.stream_position(calls.start);
        let calls = calls.end.saturating_sub(calls.start);
        let call_bytes = pattern.call_bytes() as usize;
        let reach = calls.saturating_mul(pattern.call_bytes());
        let period = self.period_bytes;
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
        let kept = (self.period_bytes / call_bytes.max(1)).max(1).min(calls.end - calls.start);
        let mut findings = Findings::default();
        for call in calls.end - kept..calls.end {
            let position = p.stream_position(call);
            let bytes = ring.window(position, call_bytes as usize);
            findings.add(self.check(file, written, p, Access::Read, &Piece { bytes, rank, call, position }));
        }
        findings
    }

    fn check(&self, file: &TypeFile, written: &Written, p: &Pattern, access: Access, piece: &Piece<'_>) -> Findings {
        let generation = written.generation(piece.call);
        let stream = Stream::new(self.seed, generation, piece.rank, self.period_bytes);
        let (wrong, first) = stream.compare(piece.bytes, piece.position);
        let mut findings = Findings {
            verification: Verification { words_checked: (piece.bytes.len() / 8) as u64, words_wrong: wrong },
            places: Vec::new(),
        };
        if let Some(first) = first {
            let position = piece.position + first as u64;
            let found = to_word(&piece.bytes[first..]);
            let suspects = Suspects {
                seed: self.seed,
                ranks: file.ranks,
                rank: piece.rank,
                generation,
                period_bytes: self.period_bytes,
                position,
            };
            let in_pattern = position - p.stream_bytes;
            let offset = p.chunk_offset(in_pattern / p.chunk_bytes) + in_pattern % p.chunk_bytes;
            findings.places.push(CorruptionRecord {
                backend: file.backend.clone(),
                ranks: file.ranks,
                access,
                pattern: written.spec.number,
                rank: piece.rank,
                file: file.name(piece.rank).display().to_string(),
                offset_bytes: offset,
                expected: stream.word(position),
                found,
                looks_like: diagnose(found, &suspects),
                words_wrong: wrong,
            });
        }
        findings
    }

    /// Reads everything that was written to `file` once more, through plain reads, and compares it. The ranks share the
    /// work so that in private files and segments nobody reads what he wrote himself.
    ///
    /// # Errors
    /// What open or read report. The end of the file before its time is no error but a finding.
    pub fn check_file(&self, run_dir: &RunDir, file: &TypeFile, access: Access, rank: u64) -> io::Result<Findings> {
        let reader = reader_of(rank, file.ranks);
        let source = run_dir.file(&file.name(reader)).open_to_read()?;
        let mut buffer = vec![0_u8; READ_BYTES as usize];
        let mut findings = Findings::default();
        for written in file.written.iter().filter(|w| w.calls > 0) {
            if file.pattern_type <= 1 {
                findings.add(self.check_rows(&source, file, written, access, reader, &mut buffer)?);
            } else {
                findings.add(self.check_segment(&source, file, written, access, reader, &mut buffer)?);
            }
        }
        // What was looked at here must not be what makes the measured reads fast. Where the kernel keeps it all the same,
        // the reads carry the mark of the cache.
        let _ = posix_fadvise(&source, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        Ok(findings)
    }

    /// Private file or segment: the pattern's bytes of one rank lie in one piece.
    fn check_segment(
        &self,
        source: &File,
        file: &TypeFile,
        written: &Written,
        access: Access,
        owner: u64,
        buffer: &mut [u8],
    ) -> io::Result<Findings> {
        let p = file.pattern(written, owner, written.calls).map_err(io::Error::other)?;
        let mut findings = Findings::default();
        let call_bytes = p.call_bytes();
        let total = written.calls * call_bytes;
        let rewritten = written.rewritten_calls * call_bytes;
        let mut done = 0;
        while done < total {
            // A block never crosses from rewritten to first-written data.
            let end = if done < rewritten { rewritten } else { total };
            let len = (end - done).min(READ_BYTES);
            let bytes = &mut buffer[..len as usize];
            read_or_zero(source, bytes, p.base_bytes + done)?;
            let piece = Piece { bytes, rank: owner, call: done / call_bytes, position: p.stream_bytes + done };
            findings.add(self.check(file, written, &p, access, &piece));
            done += len;
        }
        Ok(findings)
    }

    /// Strided over the ranks: row k holds chunk k of every rank. This rank takes a contiguous share of the rows.
    fn check_rows(
        &self,
        source: &File,
        file: &TypeFile,
        written: &Written,
        access: Access,
        share: u64,
        buffer: &mut [u8],
    ) -> io::Result<Findings> {
        let first = file.pattern(written, 0, written.calls).map_err(io::Error::other)?;
        let chunk = first.chunk_bytes;
        let row_bytes = chunk * file.ranks;
        let rows = written.calls * first.chunks_per_call;
        let bound = |n: u64| (u128::from(rows) * u128::from(n) / u128::from(file.ranks)) as u64 * row_bytes;
        let mut findings = Findings::default();
        for (at, len) in pieces(bound(share)..bound(share + 1), READ_BYTES) {
            let block = &mut buffer[..len];
            read_or_zero(source, block, first.origin_bytes + at)?;
            let len = len as u64;
            let mut inside = 0;
            while inside < len {
                let offset = at + inside;
                let (index, within) = (offset / chunk, offset % chunk);
                let (row, rank) = (index / file.ranks, index % file.ranks);
                let piece_len = (chunk - within).min(len - inside);
                let p = file.pattern(written, rank, written.calls).map_err(io::Error::other)?;
                let piece = Piece {
                    bytes: &block[inside as usize..(inside + piece_len) as usize],
                    rank,
                    call: row / first.chunks_per_call,
                    position: p.stream_bytes + row * chunk + within,
                };
                findings.add(self.check(file, written, &p, access, &piece));
                inside += piece_len;
            }
        }
        Ok(findings)
    }
}

/// Reads at `offset`; what lies beyond the end of the file counts as zeros, so that a file that is too short is found
/// as a hole with its offset.
fn read_or_zero(source: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut got = 0;
    while got < bytes.len() {
        match source.read_at(&mut bytes[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes[got..].fill(0);
    Ok(())
}
