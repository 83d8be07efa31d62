//! The merged profile as text that can be read, edited and written as a workload. The format is in docs/profile.md.
//!
//! A profile whose name ends in `.zst` is compressed: the head and the calls of each rank are separate zstd frames, so that a rank can skip
//! those of others.

mod error;
mod fields;
mod keys;
mod lines;
mod predefined;
mod read_call;
mod read_head;
mod read_type;
mod reader;
mod section;
mod write_call;
mod write_head;
mod writer;

use std::path::Path;

pub use error::TextError;
pub use reader::CallReader;
pub use write_call::write_call;
pub use writer::ProfileWriter;

use crate::{Call, ProfileHead};

/// True if a file of this name is written compressed.
#[must_use]
pub fn is_zstd(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// Reads only the head.
///
/// # Errors
/// The first error in the head, with file, line and next step, or the read error.
pub fn read_head(path: &Path) -> Result<ProfileHead, TextError> {
    Ok(reader::open(path, None)?.0)
}

/// Reads the calls of all ranks, in the order of the file, each with its rank. Checks the whole profile.
///
/// # Errors
/// The first error before the calls. The iterator returns errors in the calls.
pub fn read_all_ranks(path: &Path) -> Result<(ProfileHead, CallReader), TextError> {
    reader::open(path, None)
}

/// The calls of one rank.
pub struct RankCallReader(CallReader);

/// Reads the calls of one rank. Those of others are skipped without parsing.
///
/// # Errors
/// The first error before the calls, or a missing rank. The iterator returns errors in the calls.
pub fn read_rank(path: &Path, rank: u32) -> Result<(ProfileHead, RankCallReader), TextError> {
    let (head, calls) = reader::open(path, Some(rank))?;
    Ok((head, RankCallReader(calls)))
}

impl RankCallReader {
    /// Line of the last call, counted from 1 over the whole text.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.0.line()
    }
}

impl Iterator for RankCallReader {
    type Item = Result<Call, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(|(_, call)| call))
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod rejections;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
