//! The files of a run: names below the run directory, and what each of them holds.

use std::path::{Path, PathBuf};

use beff_backends::Pattern;

use crate::b_eff_io::plan::layout::{place, Place};
use crate::b_eff_io::plan::patterns::{type_name, PatternSpec};
use crate::b_eff_io::plan::PlanError;
use crate::frame::run::stamp::Generation;

/// What one pattern has put into a file.
#[derive(Clone, Debug)]
pub struct Written {
    /// The pattern with the sizes in force (fill-ups have theirs).
    pub spec: PatternSpec,
    /// Bytes of each rank's stream before this pattern.
    pub stream_bytes: u64,
    /// Calls of the initial write.
    pub calls: u64,
    /// Of these, calls that the rewrite has written again.
    pub rewritten_calls: u64,
}

impl Written {
    /// Which writing call `call` holds now.
    #[must_use]
    pub fn generation(&self, call: u64) -> Generation {
        if call < self.rewritten_calls {
            Generation::Second
        } else {
            Generation::First
        }
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
    pub pattern_type: u8,
    /// Segment of one rank, types 3 and 4.
    pub segment_bytes: Option<u64>,
    /// Type 1 through the shared pointer.
    pub shared_pointer: bool,
    /// The patterns in order; empty before the initial write.
    pub written: Vec<Written>,
}

impl TypeFile {
    /// One file per rank.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.pattern_type == 2
    }

    /// Name below the run directory, of this rank's file where each has its own.
    #[must_use]
    pub fn name(&self, rank: u64) -> PathBuf {
        let stem = format!("n{}-type{}-{}", self.ranks, self.pattern_type, type_name(self.pattern_type));
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
