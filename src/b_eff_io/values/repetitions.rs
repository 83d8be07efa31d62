//! Paired measurements of two backends, the first and the repetitions: for patterns with too few rounds to be sampled, such as one long
//! call.

use std::collections::{BTreeMap, HashMap};

use beff_statistics::bootstrap::PairedTotals;

use super::series::is_measured;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::AccessMethod;

/// Backend, ranks, access method, pattern.
type PatternKey<'a> = (&'a str, u64, AccessMethod, u8);

/// The repetitions of each pattern, by number.
pub(super) struct RepetitionIndex<'a>(HashMap<PatternKey<'a>, BTreeMap<u32, &'a PatternRecord>>);

impl<'a> RepetitionIndex<'a> {
    pub(super) fn new(result: &'a RunResult) -> Self {
        let mut places: HashMap<PatternKey<'a>, BTreeMap<u32, &'a PatternRecord>> = HashMap::new();
        for r in result.repetitions.iter().filter(|r| is_measured(&r.measurement)) {
            places.entry(key(&r.measurement)).or_default().insert(r.repetition, &r.measurement);
        }
        Self(places)
    }

    /// Returns both backends in each measurement that both have, the first one first; the sum of their bytes is that of the first
    /// measurement. So all measurements have equal weight, and one that was cut counts by its rate.
    pub(super) fn paired_measurements(&self, record: &PatternRecord, base: &PatternRecord) -> Vec<PairedTotals> {
        if !is_measured(record) || !is_measured(base) {
            return Vec::new();
        }
        let none = BTreeMap::new();
        let [own, other] = [record, base].map(|first| self.0.get(&key(first)).unwrap_or(&none));
        let again = own.iter().filter_map(|(number, p)| Some((*p, *other.get(number)?)));
        let both: Vec<(&PatternRecord, &PatternRecord)> = [(record, base)].into_iter().chain(again).collect();
        let share = 1.0 / both.len() as f64;
        let pair = |(p, b): (&PatternRecord, &PatternRecord)| PairedTotals {
            bytes: record.moved_bytes as f64 * share,
            seconds: record.moved_bytes as f64 * share * seconds_per_byte(p),
            base_bytes: base.moved_bytes as f64 * share,
            base_seconds: base.moved_bytes as f64 * share * seconds_per_byte(b),
        };
        both.into_iter().map(pair).collect()
    }
}

fn key(p: &PatternRecord) -> PatternKey<'_> {
    (&p.backend, p.ranks, p.access, p.pattern)
}

fn seconds_per_byte(p: &PatternRecord) -> f64 {
    p.seconds() / p.moved_bytes as f64
}
