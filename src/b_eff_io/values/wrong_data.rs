//! Wrong data of a contestant.

use crate::b_eff_io::records::{PatternRecord, RunResult};

/// Wrong words that a contestant returned or left in its files.
pub(super) fn wrong_words(result: &RunResult, backend: &str) -> u64 {
    let of_sample = |p: &PatternRecord| p.sample.as_ref().map_or(0, |s| s.words_wrong);
    let patterns = result.patterns.iter().filter(|p| p.backend == backend);
    let of_patterns = patterns.map(|p| p.verification.words_wrong.saturating_add(of_sample(p)));
    let of_files = result.types.iter().filter(|t| t.backend == backend).filter_map(|t| t.full_verification);
    of_patterns.chain(of_files.map(|v| v.words_wrong)).fold(0, u64::saturating_add)
}
