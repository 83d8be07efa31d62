//! What was measured of a partition through one backend, once and again: the parts of its value and the series of each.

use std::collections::HashMap;

use beff_statistics::repeats::{bound, Bound, Cell};

use super::influence::{link, weights, Part, Worth};
use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::{Ended, PatternRecord, RunResult, TypeRecord};
use crate::frame::records::Access;

/// What was measured of one partition through one backend: the parts of its value, and the series of each.
pub(super) struct Played {
    pub(super) parts: Vec<Part>,
    /// Without weights.
    pub(super) cells: Vec<Cell>,
}

/// What was measured of one partition through one backend.
#[derive(Default)]
pub(super) struct Own<'a> {
    pub(super) patterns: Vec<&'a PatternRecord>,
    repeats: HashMap<(Access, u8), Vec<&'a PatternRecord>>,
    types: Vec<&'a TypeRecord>,
    type_repeats: Vec<&'a TypeRecord>,
}

/// All of a run by backend and ranks: records of many partitions are passed over once.
pub(super) fn by_partition(result: &RunResult) -> HashMap<(&str, u64), Own<'_>> {
    let mut all: HashMap<(&str, u64), Own<'_>> = HashMap::new();
    for p in result.patterns.iter().filter(|p| is_measured(p)) {
        all.entry((&p.backend, p.ranks)).or_default().patterns.push(p);
    }
    for p in result.repeats.iter().map(|r| &r.measured).filter(|p| is_measured(p)) {
        let own = all.entry((&p.backend, p.ranks)).or_default();
        own.repeats.entry((p.access, p.pattern)).or_default().push(p);
    }
    for t in &result.types {
        all.entry((&t.backend, t.ranks)).or_default().types.push(t);
    }
    for t in result.type_repeats.iter().map(|r| &r.measured) {
        all.entry((&t.backend, t.ranks)).or_default().type_repeats.push(t);
    }
    all
}

impl Played {
    /// None: nothing was measured again.
    pub(super) fn new(own: &Own<'_>) -> Option<Self> {
        if own.repeats.is_empty() {
            return None;
        }
        let mut this = Self { parts: Vec::new(), cells: Vec::new() };
        for p in &own.patterns {
            this.pattern(p, own.repeats.get(&(p.access, p.pattern)).map_or(&[], Vec::as_slice));
        }
        for t in &own.types {
            let same = |r: &&&TypeRecord| r.access == t.access && r.pattern_type == t.pattern_type;
            let again: Vec<&TypeRecord> = own.type_repeats.iter().filter(same).copied().collect();
            this.files(t, &again);
        }
        // First writes come first: the counts of the others follow them.
        link(&mut this.parts);
        Some(this)
    }

    fn pattern(&mut self, p: &PatternRecord, again: &[&PatternRecord]) {
        let all = || [p].into_iter().chain(again.iter().copied());
        self.parts.push(Part {
            access: p.access,
            pattern_type: p.pattern_type,
            pattern: Some(p.pattern),
            bytes: p.moved_bytes as f64,
            seconds: p.seconds(),
            scheduled_seconds: if p.time_units > 0 { p.scheduled_seconds } else { 0.0 },
            is_timed: matches!(p.ended, Ended::Time | Ended::TimeGuard),
            calls: p.calls,
            chunks: p.call_bytes / p.chunk_bytes.max(1),
            counts_from: None,
        });
        self.cells.push(Cell {
            group: p.access as usize,
            weight: 0.0,
            logs: all().map(log_rate).collect(),
            seconds: all().map(|p| p.at_seconds.unwrap_or(0.0)).collect(),
        });
    }

    /// Opening and closing: their time is the inverse of a rate. It is known when the first pattern of the same repeat began.
    fn files(&mut self, t: &TypeRecord, again: &[&TypeRecord]) {
        let seconds = |t: &TypeRecord| t.open_seconds + t.close_seconds;
        let all = || [t].into_iter().chain(again.iter().copied()).filter(|t| seconds(t) > 0.0);
        if all().next().is_none() {
            return;
        }
        let times = self.parts.iter().zip(&self.cells);
        let times = times.filter(|(p, _)| p.access == t.access && p.pattern_type == t.pattern_type);
        let times = times.map(|(_, cell)| &cell.seconds).max_by_key(|seconds| seconds.len());
        let at = |n: usize| times.and_then(|times| times.get(n).or(times.last())).copied().unwrap_or(0.0);
        let logs: Vec<f64> = all().map(|t| -seconds(t).ln()).collect();
        let part = Part {
            access: t.access,
            pattern_type: t.pattern_type,
            pattern: None,
            bytes: 0.0,
            seconds: seconds(t),
            scheduled_seconds: 0.0,
            is_timed: false,
            calls: 0,
            chunks: 1,
            counts_from: None,
        };
        let seconds = (0..logs.len()).map(at).collect();
        self.parts.push(part);
        self.cells.push(Cell { group: t.access as usize, weight: 0.0, logs, seconds });
    }

    /// The interval of what `of` takes out, and the weights of the cells in it.
    pub(super) fn bound(&self, release: Release, of: impl Fn(&Worth) -> Option<f64>) -> Option<(Bound, Vec<f64>)> {
        let weights = weights(&self.parts, release, of)?;
        let weigh = |(cell, weight): (&Cell, &f64)| {
            // The numeric slope of what has nothing to do with it is not exactly 0.
            Cell { weight: if weight.abs() < 1e-9 { 0.0 } else { *weight }, ..cell.clone() }
        };
        let cells: Vec<Cell> = self.cells.iter().zip(&weights).map(weigh).collect();
        Some((bound(&cells)?, weights))
    }
}

/// It has a rate that means something.
pub(super) fn is_measured(p: &PatternRecord) -> bool {
    p.calls > 0 && p.moved_bytes > 0 && p.seconds() > 0.0 && !matches!(p.ended, Ended::Error | Ended::Interrupted)
}

pub(super) fn log_rate(p: &PatternRecord) -> f64 {
    (p.moved_bytes as f64 / p.seconds()).ln()
}
