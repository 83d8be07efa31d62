//! What two backends did in the same passes, the first and its repeats: for patterns that have too few rounds to be drawn, such as those of
//! one long call.

use std::collections::{BTreeMap, HashMap};

use beff_statistics::bootstrap::Totals;

use super::played::is_measured;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::Access;

/// Backend, ranks, access method, pattern.
type Key<'a> = (&'a str, u64, Access, u8);

/// The repeats of each pattern, by their numbers.
pub(super) struct Repeats<'a>(HashMap<Key<'a>, BTreeMap<u32, &'a PatternRecord>>);

impl<'a> Repeats<'a> {
    pub(super) fn new(result: &'a RunResult) -> Self {
        let mut places: HashMap<Key<'a>, BTreeMap<u32, &'a PatternRecord>> = HashMap::new();
        for r in result.repeats.iter().filter(|r| is_measured(&r.measured)) {
            places.entry(key(&r.measured)).or_default().insert(r.repeat, &r.measured);
        }
        Self(places)
    }

    /// Both backends in each pass that both made, the first one first; all together they have the bytes of the first one. So each pass counts
    /// alike, and one that was cut by its rate.
    pub(super) fn passes(&self, record: &PatternRecord, base: &PatternRecord) -> Vec<Totals> {
        if !is_measured(record) || !is_measured(base) {
            return Vec::new();
        }
        let none = BTreeMap::new();
        let [own, other] = [record, base].map(|first| self.0.get(&key(first)).unwrap_or(&none));
        let again = own.iter().filter_map(|(number, p)| Some((*p, *other.get(number)?)));
        let both: Vec<(&PatternRecord, &PatternRecord)> = [(record, base)].into_iter().chain(again).collect();
        let share = 1.0 / both.len() as f64;
        let pair = |(p, b): (&PatternRecord, &PatternRecord)| Totals {
            bytes: record.moved_bytes as f64 * share,
            seconds: record.moved_bytes as f64 * share * seconds_per_byte(p),
            base_bytes: base.moved_bytes as f64 * share,
            base_seconds: base.moved_bytes as f64 * share * seconds_per_byte(b),
        };
        both.into_iter().map(pair).collect()
    }
}

fn key(p: &PatternRecord) -> Key<'_> {
    (&p.backend, p.ranks, p.access, p.pattern)
}

fn seconds_per_byte(p: &PatternRecord) -> f64 {
    p.seconds() / p.moved_bytes as f64
}
