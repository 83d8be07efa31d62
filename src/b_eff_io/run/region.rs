//! File ranges written by one pattern, for rereading: which bytes belong to which rank.

use beff_backends::AccessPattern;

use crate::b_eff_io::plan::PlanError;
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};

/// A contiguous range of a file: the bytes of one rank, or of all ranks if their chunks are interleaved.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// The file.
    pub file: &'a TypeFile,
    /// The pattern.
    pub written: &'a WrittenPattern,
    /// The owner's pattern; rank 0's if all ranks own the region.
    pattern: AccessPattern,
    /// None: all ranks, interleaved by chunks.
    owner: Option<u64>,
}

/// Part of a region that one rank has written in one generation.
#[derive(Clone, Copy, Debug)]
pub struct FilledRange {
    /// Rank of the stream.
    pub rank: u64,
    /// The first chunk of the rank.
    pub chunk: u64,
    /// Position of its beginning in the rank's stream.
    pub position: u64,
    /// Its length.
    pub bytes: u64,
}

impl<'a> Region<'a> {
    /// The region of `rank`: alone, or with those of all ranks.
    ///
    /// # Errors
    /// Offsets beyond the largest file offset.
    pub fn new(file: &'a TypeFile, written: &'a WrittenPattern, rank: u64) -> Result<Self, PlanError> {
        let owner = (!file.pattern_type.is_strided()).then_some(rank);
        let pattern = file.pattern(written, owner.unwrap_or(0), written.calls)?;
        Ok(Self { file, written, pattern, owner })
    }

    /// True if all ranks have data in it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.owner.is_none()
    }

    /// Its offset in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        if self.is_shared() {
            self.pattern.origin_bytes
        } else {
            self.pattern.base_bytes
        }
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let ranks = if self.is_shared() { self.file.ranks } else { 1 };
        self.written.calls * self.pattern.call_bytes() * ranks
    }

    /// First and last byte of `rank`'s part, relative to the region.
    #[must_use]
    pub fn ends_of(&self, rank: u64) -> [u64; 2] {
        if !self.is_shared() {
            return [0, self.bytes().saturating_sub(1)];
        }
        let chunk = self.pattern.chunk_bytes;
        let behind = (self.file.ranks - 1 - rank) * chunk;
        [rank * chunk, (self.bytes() - behind).saturating_sub(1)]
    }

    /// The filled range from `at` on, relative to the region.
    #[must_use]
    pub fn filled_range(&self, at: u64) -> FilledRange {
        let p = &self.pattern;
        if let Some(rank) = self.owner {
            // A range has one generation only.
            let chunk = at / p.chunk_bytes;
            let end = self.written.generation_end(chunk) * p.chunk_bytes;
            return FilledRange { rank, chunk, position: p.stream_bytes + at, bytes: end - at };
        }
        let (index, within) = (at / p.chunk_bytes, at % p.chunk_bytes);
        let (row, rank) = (index / self.file.ranks, index % self.file.ranks);
        FilledRange {
            rank,
            chunk: row,
            position: p.stream_bytes + row * p.chunk_bytes + within,
            bytes: p.chunk_bytes - within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::pattern_type::PatternType;
    use crate::b_eff_io::plan::patterns::patterns;
    use beff_stamp::Generation;

    const MIB: u64 = 1 << 20;

    fn file(pattern_type: PatternType) -> TypeFile {
        TypeFile {
            backend: "posix".into(),
            ranks: 3,
            pattern_type,
            segment_bytes: pattern_type.has_segments().then_some(64 * MIB),
            shared_pointer: true,
            written: Vec::new(),
            previous: Vec::new(),
        }
    }

    fn written(number: u8) -> WrittenPattern {
        let spec = patterns(2 * MIB)[usize::from(number)];
        let mut written = WrittenPattern { calls: 7, ..WrittenPattern::empty(spec, 5 * MIB, Generation::First) };
        written.rewrite(4, Generation::Second);
        written.rewrite(2, Generation::Later(1));
        written
    }

    /// The parts of a region match the patterns of its ranks, and each byte occurs once.
    #[test]
    fn a_region_is_the_union_of_the_patterns_of_its_ranks() {
        for number in [3, 4, 6, 10, 12, 18, 20, 27, 35] {
            let w = written(number);
            let file = file(w.spec.pattern_type);
            let mut seen = 0;
            for rank in 0..if file.pattern_type.is_strided() { 1 } else { 3 } {
                let region = Region::new(&file, &w, rank).unwrap();
                let mut at = 0;
                while at < region.bytes() {
                    let filled = region.filled_range(at);
                    let p = file.pattern(&w, filled.rank, w.calls).unwrap();
                    for inside in [0, filled.bytes - 8] {
                        let in_pattern = filled.position + inside - p.stream_bytes;
                        let offset = p.chunk_offset(in_pattern / p.chunk_bytes) + in_pattern % p.chunk_bytes;
                        assert_eq!(offset, region.offset() + at + inside, "pattern {number}");
                        let chunk = in_pattern / p.chunk_bytes;
                        let [own, first] = [chunk, filled.chunk].map(|chunk| w.generation(filled.rank, chunk));
                        assert_eq!(own, first, "pattern {number}");
                    }
                    at += filled.bytes;
                    seen += filled.bytes;
                }
                assert_eq!(at, region.bytes());
            }
            assert_eq!(seen, 3 * w.calls * w.spec.call_bytes);
        }
    }

    #[test]
    fn the_ends_of_a_part_are_its_first_and_last_byte() {
        for number in [4, 12, 20, 27] {
            let w = written(number);
            let file = file(w.spec.pattern_type);
            for rank in 0..3 {
                let region = Region::new(&file, &w, rank).unwrap();
                let [first, last] = region.ends_of(rank);
                let (begin, end) = (region.filled_range(first), region.filled_range(last));
                assert_eq!((begin.rank, begin.position), (rank, w.stream_bytes));
                let stream_end = w.stream_bytes + w.calls * w.spec.call_bytes;
                assert_eq!((end.rank, end.position + 1, end.bytes), (rank, stream_end, 1));
            }
        }
    }
}
