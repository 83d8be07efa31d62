//! The merged profile as text: one file that people read, edit and write as workloads. The format is in docs/profile.md.
//!
//! A name that ends in `.zst` is compressed: the head and the calls of each rank are zstd frames of their own, so that a rank passes
//! over the parts of others.

mod error;
mod fields;
mod keys;
mod predefined;
mod read_call;
mod read_head;
mod read_type;
mod reader;
mod section;
mod source;
mod write_call;
mod write_head;
mod writer;

use std::path::Path;

pub use error::TextError;
pub use reader::Calls;
pub use write_call::write_call;
pub use writer::Writer;

use crate::{Call, Head};

/// True if a file of this name is written compressed.
#[must_use]
pub fn is_zstd(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// What stands before the calls. Nothing behind it is read.
///
/// # Errors
/// What is wrong in it, with file, line and next step, or that it cannot be read.
pub fn read_head(path: &Path) -> Result<Head, TextError> {
    Ok(reader::open(path, None)?.0)
}

/// The calls of all ranks, in the order of the file, each with its rank. Checks the whole profile.
///
/// # Errors
/// What is wrong before the calls. The iterator gives what is wrong in them.
pub fn all_ranks(path: &Path) -> Result<(Head, Calls), TextError> {
    reader::open(path, None)
}

/// The calls of one rank.
pub struct RankCalls(Calls);

/// The calls of one rank. Those of others are passed over without a look into them.
///
/// # Errors
/// What is wrong before the calls, or that there is no such rank. The iterator gives what is wrong in the calls.
pub fn rank_reader(path: &Path, rank: u32) -> Result<(Head, RankCalls), TextError> {
    let (head, calls) = reader::open(path, Some(rank))?;
    Ok((head, RankCalls(calls)))
}

impl RankCalls {
    /// Line of the last call, counted from 1 over the whole text.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.0.line()
    }
}

impl Iterator for RankCalls {
    type Item = Result<Call, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(|(_, call)| call))
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
