//! Files of a run: names below the run directory, and contents.

use std::path::{Path, PathBuf};

use beff_backends::AccessPattern;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::layout::{rank_pattern, RankLayout};
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::PlanError;
use beff_stamp::Generation;

/// What one pattern has written to a file.
#[derive(Clone, Debug)]
pub struct WrittenPattern {
    /// The pattern with its actual sizes (also of fill-ups).
    pub spec: PatternSpec,
    /// Bytes of each rank's stream before this pattern.
    pub stream_bytes: u64,
    /// Calls of the write that created the file.
    pub calls: u64,
    /// Generation of that write.
    pub first_generation: Generation,
    /// Calls rewritten since, counted from the first call, with their generation: the latest first, each entry with more calls than the one
    /// before it.
    pub rewrites: Vec<(u64, Generation)>,
}

impl WrittenPattern {
    /// A pattern without calls.
    #[must_use]
    pub fn empty(spec: PatternSpec, stream_bytes: u64, first_generation: Generation) -> Self {
        Self { spec, stream_bytes, calls: 0, first_generation, rewrites: Vec::new() }
    }

    /// Notes that the first `calls` calls are rewritten.
    pub fn rewrite(&mut self, calls: u64, generation: Generation) {
        self.rewrites.retain(|(before, _)| *before > calls);
        if calls > 0 {
            self.rewrites.insert(0, (calls, generation));
        }
    }

    /// Generation that call `call` holds now.
    #[must_use]
    pub fn generation(&self, call: u64) -> Generation {
        self.rewrites
            .iter()
            .find(|(calls, _)| call < *calls)
            .map_or(self.first_generation, |(_, generation)| *generation)
    }

    /// Number of calls rewritten in any generation.
    #[must_use]
    pub fn rewritten_calls(&self) -> u64 {
        self.rewrites.last().map_or(0, |(calls, _)| *calls)
    }

    /// The first call after `call` that may have another generation.
    #[must_use]
    pub fn generation_end(&self, call: u64) -> u64 {
        self.rewrites.iter().map(|(calls, _)| *calls).find(|calls| call < *calls).unwrap_or(self.calls)
    }
}

/// The file of one type, partition and backend (for type 2: the files of all ranks).
#[derive(Clone, Debug)]
pub struct TypeFile {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// Segment of one rank, types 3 and 4.
    pub segment_bytes: Option<u64>,
    /// Type 1 through the shared pointer.
    pub shared_pointer: bool,
    /// The patterns in order; empty before the first write.
    pub written: Vec<WrittenPattern>,
    /// Contents before the file is written anew.
    pub previous: Vec<WrittenPattern>,
}

impl TypeFile {
    /// True with one file per rank.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.pattern_type.has_private_files()
    }

    /// Name below the run directory, for types with private files that of this rank's.
    #[must_use]
    pub fn name(&self, rank: u64) -> PathBuf {
        file_name(&self.backend, self.ranks, self.pattern_type, rank)
    }

    /// Layout of `rank` in the file.
    #[must_use]
    pub fn rank_layout(&self, rank: u64) -> RankLayout {
        RankLayout { ranks: self.ranks, rank, shared_pointer: self.shared_pointer, segment_bytes: self.segment_bytes }
    }

    /// The pattern `written` for `rank`, with `max_calls` calls.
    ///
    /// # Errors
    /// Offsets beyond the largest file offset.
    pub fn pattern(&self, written: &WrittenPattern, rank: u64, max_calls: u64) -> Result<AccessPattern, PlanError> {
        rank_pattern(&self.rank_layout(rank), &written.spec, written.stream_bytes, max_calls)
    }
}

/// Name of the file of a type below the run directory, for types with private files that of `rank`.
#[must_use]
pub fn file_name(backend: &str, ranks: u64, pattern_type: PatternType, rank: u64) -> PathBuf {
    let stem = format!("n{ranks}-type{pattern_type}-{}", pattern_type.name());
    let directory = Path::new(backend);
    if pattern_type.has_private_files() {
        directory.join(format!("{stem}-rank{rank:07}.dat"))
    } else {
        directory.join(format!("{stem}.dat"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;

    proptest! {
        /// After any rewrites each call holds its latest generation.
        #[test]
        fn each_call_holds_its_last_generation(writings in proptest::collection::vec(0_u64..12, 0..8)) {
            let mut written = WrittenPattern::empty(patterns(2 << 20)[4], 0, Generation::First);
            written.calls = 10;
            let mut truth = [Generation::First; 10];
            for (n, calls) in writings.iter().enumerate() {
                let (calls, generation) = ((*calls).min(10), Generation::Later(n as u32 + 1));
                written.rewrite(calls, generation);
                truth[..calls as usize].fill(generation);
            }
            for call in 0..10 {
                prop_assert_eq!(written.generation(call), truth[call as usize]);
                let next = written.generation_end(call);
                prop_assert!(next > call && truth[call as usize..next as usize].iter().all(|g| *g == truth[call as usize]));
            }
            prop_assert_eq!(written.rewritten_calls(), writings.iter().copied().max().unwrap_or(0).min(10));
        }
    }
}
