//! The calls that are replayed: those of a profile, with or without a change.

use std::path::Path;

use beff_trace::text::{self, RankCallReader, TextError};
use beff_trace::{Call, ProfileHead};

use crate::replay::plan::call_change::{CallChange, ChangedCalls};

/// Where the calls come from.
#[derive(Clone, Copy, Debug)]
pub struct CallSource<'a> {
    /// The profile, or its derived form ([`derived_calls`](super::derived_calls)).
    pub path: &'a Path,
    /// The change of its calls.
    pub change: Option<&'a CallChange>,
}

/// The calls of one rank.
pub struct SourceCalls<'a> {
    calls: RankCallReader,
    change: Option<ChangedCalls<'a>>,
}

impl<'a> CallSource<'a> {
    /// The profile without its calls, and the calls of one rank.
    ///
    /// # Errors
    /// The first error before the calls, in words.
    pub fn read_rank(&self, rank: u32) -> Result<(ProfileHead, SourceCalls<'a>), String> {
        let (head, calls) = text::read_rank(self.path, rank).map_err(|e| e.to_string())?;
        Ok((head, SourceCalls { calls, change: self.change.map(|change| ChangedCalls::new(change, rank)) }))
    }
}

impl Iterator for SourceCalls<'_> {
    type Item = Result<Call, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let call = match self.calls.next()? {
                Ok(call) => call,
                error => return Some(error),
            };
            match &mut self.change {
                Some(change) => {
                    if let Some(call) = change.change(call) {
                        return Some(Ok(call));
                    }
                }
                None => return Some(Ok(call)),
            }
        }
    }
}
