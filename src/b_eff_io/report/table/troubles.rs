//! What went wrong or must be known: corruption, errors, warnings.

use crate::b_eff_io::records::{CorruptionRecord, RunResult};
use crate::b_eff_io::report::warnings;
use crate::b_eff_io::values::Derived;
use crate::frame::report::ending;
use crate::frame::report::text::{count, Page};

use super::closing::is_corrupt;

/// Places of corruption shown; all are in the JSON document.
const PLACES: usize = 20;

pub(super) fn corruptions(page: &mut Page, result: &RunResult) {
    if !is_corrupt(result) {
        return;
    }
    page.heading("DATA CORRUPTION");
    let ring: u64 = result.patterns.iter().map(|r| r.verification.words_wrong).sum();
    let full: u64 = result.types.iter().filter_map(|t| t.full_verification).map(|v| v.words_wrong).sum();
    page.line(format!(
        "  {} wrong in what was read back, {} in the full check",
        count(ring, "word"),
        count(full, "word")
    ));
    for corruption in result.corruptions.iter().take(PLACES) {
        page.hanging("  - ", &place(corruption));
    }
    let more = result.corruptions.len().saturating_sub(PLACES);
    if more > 0 {
        page.line(format!("  ... and {more} more places in the JSON document"));
    }
    page.hanging(
        "  -> ",
        "Do not trust this storage with these settings. Repeat with --verify full and another backend to find out \
         whether the file system, the MPI library or a cache between them is at fault.",
    );
}

fn place(c: &CorruptionRecord) -> String {
    format!(
        "{} on {}, {}, pattern {}, file {} at offset {}, data of rank {}: {} ({} wrong; first: expected {:016x}, found {:016x})",
        c.backend,
        count(c.ranks, "rank"),
        c.access.name(),
        c.pattern,
        c.file,
        c.offset_bytes,
        c.rank,
        c.looks_like,
        count(c.words_wrong, "word"),
        c.expected,
        c.found
    )
}

pub(super) fn warnings(page: &mut Page, result: &RunResult, derived: &Derived) {
    ending::warnings(page, derived.warnings.iter().map(|warning| warnings::text(warning, &result.config)));
}
