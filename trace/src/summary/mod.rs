//! What a profile comes to: counts, bytes, times, sizes, patterns, hints, and the largest costs in plain words.

mod build;
mod collect;
mod costs;
mod model;
mod names;
mod pattern;
mod show;
mod sizes;
mod units;

use std::path::Path;

pub use model::{Cost, Cut, FileSummary, FunctionSummary, Hint, Pattern, Sizes, Summary};

use crate::layout::Layouts;
use crate::text::{self, TextError};

/// Reads a profile once and sums it up. Memory does not grow with the calls.
///
/// # Errors
/// What is wrong in the profile.
pub fn summarize(path: &Path) -> Result<Summary, TextError> {
    let (head, mut calls) = text::all_ranks(path)?;
    let layouts = Layouts::of_library(&head.types, &head.library);
    let mut collector = collect::Collector::new(&head, layouts.as_ref().ok());
    calls.try_for_each(|call| call.map(|(rank, call)| collector.call(rank, &call)))?;
    let mut summary = build::build(path, &head, collector.finish());
    summary.no_places = layouts.err().map(|e| e.to_string());
    Ok(summary)
}

#[cfg(test)]
mod tests;
