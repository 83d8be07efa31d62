//! The files of a run: names below the run directory, and what each of them holds.

use std::path::{Path, PathBuf};

use beff_backends::Pattern;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::layout::{place, Place};
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::PlanError;
use beff_stamp::Generation;

/// What one pattern has put into a file.
#[derive(Clone, Debug)]
pub struct Written {
    /// The pattern with the sizes in force (fill-ups have theirs).
    pub spec: PatternSpec,
    /// Bytes of each rank's stream before this pattern.
    pub stream_bytes: u64,
    /// Calls of the write that made the file.
    pub calls: u64,
    /// Which writing that was.
    pub first: Generation,
    /// Of these calls, those that were written again since, from the first on, and by which writing: the last one first, each
    /// with more calls than the one before it in the list.
    pub rewrites: Vec<(u64, Generation)>,
}

impl Written {
    /// Of a pattern that has no calls yet.
    #[must_use]
    pub fn nothing(spec: PatternSpec, stream_bytes: u64, first: Generation) -> Self {
        Self { spec, stream_bytes, calls: 0, first, rewrites: Vec::new() }
    }

    /// The first `calls` calls are written again.
    pub fn rewrite(&mut self, calls: u64, generation: Generation) {
        self.rewrites.retain(|(before, _)| *before > calls);
        if calls > 0 {
            self.rewrites.insert(0, (calls, generation));
        }
    }

    /// Which writing call `call` holds now.
    #[must_use]
    pub fn generation(&self, call: u64) -> Generation {
        self.rewrites.iter().find(|(calls, _)| call < *calls).map_or(self.first, |(_, generation)| *generation)
    }

    /// Calls that were written again, by whichever writing.
    #[must_use]
    pub fn rewritten_calls(&self) -> u64 {
        self.rewrites.last().map_or(0, |(calls, _)| *calls)
    }

    /// The first call behind `call` that may hold another writing.
    #[must_use]
    pub fn next_writing(&self, call: u64) -> u64 {
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
    /// The patterns in order; empty before the initial write.
    pub written: Vec<Written>,
    /// What was in it before it is written anew.
    pub planned: Vec<Written>,
}

impl TypeFile {
    /// One file per rank.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.pattern_type.has_private_files()
    }

    /// Name below the run directory, of this rank's file where each has its own.
    #[must_use]
    pub fn name(&self, rank: u64) -> PathBuf {
        let stem = format!("n{}-type{}-{}", self.ranks, self.pattern_type, self.pattern_type.name());
        let directory = Path::new(&self.backend);
        if self.is_private() {
            directory.join(format!("{stem}-rank{rank:07}.dat"))
        } else {
            directory.join(format!("{stem}.dat"))
        }
    }

    /// Where `rank` stands in the file.
    #[must_use]
    pub fn place(&self, rank: u64) -> Place {
        Place { ranks: self.ranks, rank, shared_pointer: self.shared_pointer, segment_bytes: self.segment_bytes }
    }

    /// The pattern `written` as `rank` sees it, for `max_calls` calls.
    ///
    /// # Errors
    /// Offsets beyond what a file can have.
    pub fn pattern(&self, written: &Written, rank: u64, max_calls: u64) -> Result<Pattern, PlanError> {
        place(&self.place(rank), &written.spec, written.stream_bytes, max_calls)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;

    proptest! {
        /// Whatever is written again and how far: each call holds what was written there last.
        #[test]
        fn each_call_holds_its_last_writing(writings in proptest::collection::vec(0_u64..12, 0..8)) {
            let mut written = Written::nothing(patterns(2 << 20)[4], 0, Generation::First);
            written.calls = 10;
            let mut truth = [Generation::First; 10];
            for (n, calls) in writings.iter().enumerate() {
                let (calls, generation) = ((*calls).min(10), Generation::Later(n as u32 + 1));
                written.rewrite(calls, generation);
                truth[..calls as usize].fill(generation);
            }
            for call in 0..10 {
                prop_assert_eq!(written.generation(call), truth[call as usize]);
                let next = written.next_writing(call);
                prop_assert!(next > call && truth[call as usize..next as usize].iter().all(|g| *g == truth[call as usize]));
            }
            prop_assert_eq!(written.rewritten_calls(), writings.iter().copied().max().unwrap_or(0).min(10));
        }
    }
}
