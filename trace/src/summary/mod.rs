//! Summary of a profile: counts, bytes, times, sizes, patterns, hints, and a description of the largest costs.

mod advice;
mod analysis;
mod build;
mod charts;
mod collect;
mod costs;
mod extents;
mod findings;
mod groups;
mod layer;
mod marks;
mod model;
mod names;
mod pattern;
mod render;
mod reuse;
mod sizes;
mod units;
mod waits;

use std::path::Path;

pub use charts::{AccessGrids, Grid, ProfileCharts, MAX_ROWS, TIME_BINS};
pub use model::{
    FileSummary, FunctionSummary, Hint, IncompleteProcess, IoCost, PatternCounts, ProfileSummary, SizeDistribution,
};

use crate::layout::TypeLayouts;
use crate::text::{self, TextError};
use crate::workload::ResultCompletion;

/// Reads a profile once and summarizes it. Memory does not grow with the calls.
///
/// # Errors
/// The first error in the profile.
pub fn summarize(path: &Path) -> Result<ProfileSummary, TextError> {
    Ok(read(path, false)?.0)
}

/// The same, with charts. Offsets are shown for the first 64 used files.
///
/// # Errors
/// The first error in the profile.
pub fn summarize_with_charts(path: &Path) -> Result<(ProfileSummary, ProfileCharts), TextError> {
    read(path, true)
}

fn read(path: &Path, has_charts: bool) -> Result<(ProfileSummary, ProfileCharts), TextError> {
    let (head, mut calls) = text::read_all_ranks(path)?;
    let layouts = TypeLayouts::for_library(&head.types, &head.library);
    let mut collector = collect::SummaryCollector::new(&head, layouts.as_ref().ok(), has_charts);
    let derives = layouts.as_ref().ok().filter(|_| head.is_handwritten());
    let mut completion = (0, derives.map(|layouts| ResultCompletion::new(layouts, true)));
    calls.try_for_each(|call| {
        let (rank, mut call) = call?;
        if completion.0 != rank {
            completion = (rank, derives.map(|layouts| ResultCompletion::new(layouts, true)));
        }
        if let Some(completion) = &mut completion.1 {
            completion.complete(&mut call);
        }
        collector.call(rank, &call);
        Ok(())
    })?;
    let mut charts = collector.take_charts();
    charts.finish(&head);
    let mut summary = build::build(path, &head, collector.finish());
    summary.no_places = layouts.err().map(|e| e.to_string());
    Ok((summary, charts))
}

#[cfg(test)]
mod tests;
