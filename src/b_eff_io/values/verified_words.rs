//! Words of a run that were compared with what was written, repetitions and other orders included.

use crate::b_eff_io::records::{PatternRecord, RunResult, TypeRecord, Verification};

/// Bytes of a compared word.
pub const WORD_BYTES: u64 = 8;

/// Compared words by where they were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedWords {
    /// In the buffers of reads.
    pub buffers: Verification,
    /// In complete checks of the files.
    pub files: Verification,
    /// In samples of the files.
    pub samples: Verification,
}

impl VerifiedWords {
    /// Those of a run, or of one contestant.
    #[must_use]
    pub fn of(result: &RunResult, contestant: Option<&str>) -> Self {
        let is_own = |backend: &str| contestant.is_none_or(|name| name == backend);
        let repeated = result.repetitions.iter().map(|r| &r.measurement);
        let patterns = result.patterns.iter().chain(repeated).chain(result.ordered.iter().map(|o| &o.measurement));
        let mut words = Self::default();
        patterns.filter(|p| is_own(&p.backend)).for_each(|p: &PatternRecord| words.add_pattern(p));
        let repeated = result.type_repetitions.iter().map(|r| &r.measurement);
        let types = result.types.iter().chain(repeated).chain(result.ordered_types.iter().map(|o| &o.measurement));
        let full = types.filter(|t| is_own(&t.backend)).filter_map(|t: &TypeRecord| t.full_verification);
        full.for_each(|found| words.files.add(found));
        words
    }

    fn add_pattern(&mut self, pattern: &PatternRecord) {
        self.buffers.add(pattern.verification);
        if let Some(sample) = &pattern.sample {
            let words_checked = sample.bytes / WORD_BYTES;
            self.samples.add(Verification { words_checked, words_wrong: sample.words_wrong });
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> Verification {
        let mut all = self.buffers;
        all.add(self.files);
        all.add(self.samples);
        all
    }

    /// Wrong words of a contestant, returned or in its files.
    pub(super) fn wrong_of(result: &RunResult, contestant: &str) -> u64 {
        Self::of(result, Some(contestant)).total().words_wrong
    }
}
