//! What two backends did in the same passes, the first and its repeats: ratios of types and patterns for which rounds give no interval,
//! such as those of one long call.

use std::collections::{BTreeMap, HashMap};

use super::played::is_measured;
use super::totals::TypeRecords;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::Access;

/// What is measured together in a repeat: backend, ranks, access method, type.
type Key<'a> = (&'a str, u64, Access, u8);

/// The repeats of a run by their places, each with its number.
pub(super) struct Repeats<'a>(HashMap<Key<'a>, BTreeMap<u32, TypeRecords<'a>>>);

impl<'a> Repeats<'a> {
    pub(super) fn new(result: &'a RunResult) -> Self {
        let mut places: HashMap<Key<'a>, BTreeMap<u32, TypeRecords<'a>>> = HashMap::new();
        for r in &result.repeats {
            let p = &r.measured;
            let of = places.entry((&p.backend, p.ranks, p.access, p.pattern_type)).or_default();
            of.entry(r.repeat).or_insert_with(TypeRecords::empty).patterns.push(p);
        }
        for r in &result.type_repeats {
            let t = &r.measured;
            let of = places.entry((&t.backend, t.ranks, t.access, t.pattern_type)).or_default();
            of.entry(r.repeat).or_insert_with(TypeRecords::empty).files.push(t);
        }
        Self(places)
    }

    /// Of one place, in their order.
    pub(super) fn of(&self, key: Key<'a>) -> Vec<TypeRecords<'a>> {
        self.0.get(&key).map(|passes| passes.values().cloned().collect()).unwrap_or_default()
    }
}

/// Seconds that the bytes of `first` take at the rates of `again`, opening and closing with it if `files`. So a repeat that was cut counts
/// by its rate. None: a pattern of `first` that was measured is missing.
fn seconds(first: &[&PatternRecord], again: &TypeRecords<'_>, files: bool) -> Option<f64> {
    let measured = first.iter().filter(|p| is_measured(p));
    let of = |p: &&&PatternRecord| {
        let r = again.patterns.iter().find(|r| r.pattern == p.pattern && is_measured(r))?;
        Some(p.moved_bytes as f64 * r.seconds() / r.moved_bytes as f64)
    };
    let patterns = measured.map(|p| of(&p)).sum::<Option<f64>>()?;
    Some(patterns + if files { again.file_seconds() } else { 0.0 })
}

/// One side of a comparison.
pub(super) struct Side<'a, 'b> {
    /// Patterns of the first pass.
    pub(super) first: &'b [&'a PatternRecord],
    /// Opening and closing of the first pass, if that counts.
    pub(super) file_seconds: Option<f64>,
    /// The repeats.
    pub(super) again: &'b [TypeRecords<'a>],
}

impl Side<'_, '_> {
    /// Of the first pass and of each repeat; None for one that is not whole.
    fn seconds(&self) -> Vec<Option<f64>> {
        let first = self.first.iter().filter(|p| is_measured(p)).map(|p| p.seconds()).sum::<f64>();
        let again = self.again.iter().map(|again| seconds(self.first, again, self.file_seconds.is_some()));
        [Some(first + self.file_seconds.unwrap_or(0.0))].into_iter().chain(again).collect()
    }
}

/// By how much the ratio of the rates `side` / `base` was off that of the first pass, as logarithms, in each pass that both made whole; the
/// first pass is first, and 0.
pub(super) fn offsets(side: &Side<'_, '_>, base: &Side<'_, '_>) -> Vec<f64> {
    let both = side.seconds().into_iter().zip(base.seconds());
    let logs: Vec<f64> = both.filter_map(|(s, b)| Some((b? / s?).ln())).filter(|log| log.is_finite()).collect();
    logs.first().map_or_else(Vec::new, |first| logs.iter().map(|log| log - first).collect())
}
