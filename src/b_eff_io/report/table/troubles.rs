//! Wrong data in words.

use crate::b_eff_io::records::{CorruptionRecord, RunResult};
use crate::frame::report::ending::Corruption;
use crate::frame::report::text::count;

pub(super) fn corruption(result: &RunResult) -> Corruption<'_, CorruptionRecord> {
    let ring = count(result.patterns.iter().map(|r| r.verification.words_wrong).fold(0, u64::saturating_add), "word");
    let full =
        result.types.iter().filter_map(|t| t.full_verification).map(|v| v.words_wrong).fold(0, u64::saturating_add);
    let sampled =
        result.patterns.iter().filter_map(|r| r.sample.as_ref()).map(|s| s.words_wrong).fold(0, u64::saturating_add);
    Corruption {
        title: "DATA CORRUPTION",
        amount: format!(
            "{ring} wrong in what was read back, {} in the full check, {} in samples of the files",
            count(full, "word"),
            count(sampled, "word")
        ),
        places: &result.corruptions,
        place,
        next_step:
            "Do not trust this storage with these settings. Repeat with --verify full and another backend to find \
                    out whether the file system, the MPI library or a cache between them is at fault.",
    }
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
