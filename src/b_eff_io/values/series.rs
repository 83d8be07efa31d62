//! All measurements of a partition through one backend: the components of its value and the series of each.

use std::collections::HashMap;

use beff_statistics::repetitions::{relative_interval, MeasuredCell, RelativeInterval};

use super::sensitivity::{link_counts, weights, ModelledValues, ValueComponent};
use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::{PatternRecord, RunResult, StopReason, TypeRecord};
use crate::frame::records::AccessMethod;

/// The components of the value of one partition through one backend, and the series of measurements of each.
pub(super) struct MeasuredSeries {
    pub(super) components: Vec<ValueComponent>,
    /// Without weights.
    pub(super) cells: Vec<MeasuredCell>,
}

/// Records of one partition through one backend.
#[derive(Default)]
pub(super) struct PartitionRecords<'a> {
    pub(super) patterns: Vec<&'a PatternRecord>,
    repetitions: HashMap<(AccessMethod, u8), Vec<&'a PatternRecord>>,
    types: Vec<&'a TypeRecord>,
    type_repetitions: Vec<&'a TypeRecord>,
}

/// Groups the records of a run by backend and ranks in one pass.
pub(super) fn by_partition(result: &RunResult) -> HashMap<(&str, u64), PartitionRecords<'_>> {
    let mut all: HashMap<(&str, u64), PartitionRecords<'_>> = HashMap::new();
    for p in result.patterns.iter().filter(|p| is_measured(p)) {
        all.entry((&p.backend, p.ranks)).or_default().patterns.push(p);
    }
    for p in result.repetitions.iter().map(|r| &r.measurement).filter(|p| is_measured(p)) {
        let own = all.entry((&p.backend, p.ranks)).or_default();
        own.repetitions.entry((p.access, p.pattern)).or_default().push(p);
    }
    for t in &result.types {
        all.entry((&t.backend, t.ranks)).or_default().types.push(t);
    }
    for t in result.type_repetitions.iter().map(|r| &r.measurement) {
        all.entry((&t.backend, t.ranks)).or_default().type_repetitions.push(t);
    }
    all
}

impl MeasuredSeries {
    /// Returns None without repetitions.
    pub(super) fn new(own: &PartitionRecords<'_>) -> Option<Self> {
        if own.repetitions.is_empty() {
            return None;
        }
        let mut this = Self { components: Vec::new(), cells: Vec::new() };
        for p in &own.patterns {
            this.add_pattern(p, own.repetitions.get(&(p.access, p.pattern)).map_or(&[], Vec::as_slice));
        }
        for t in &own.types {
            let same = |r: &&&TypeRecord| r.access == t.access && r.pattern_type == t.pattern_type;
            let again: Vec<&TypeRecord> = own.type_repetitions.iter().filter(same).copied().collect();
            this.add_files(t, &again);
        }
        // First writes come first, as the counts of the others follow them.
        link_counts(&mut this.components);
        Some(this)
    }

    fn add_pattern(&mut self, p: &PatternRecord, again: &[&PatternRecord]) {
        let all = || [p].into_iter().chain(again.iter().copied());
        self.components.push(ValueComponent {
            access: p.access,
            pattern_type: p.pattern_type,
            pattern: Some(p.pattern),
            bytes: p.moved_bytes as f64,
            seconds: p.seconds(),
            scheduled_seconds: if p.time_units > 0 { p.scheduled_seconds } else { 0.0 },
            is_timed: matches!(p.ended, StopReason::Time | StopReason::TimeGuard),
            calls: p.calls,
            chunks: p.call_bytes / p.chunk_bytes.max(1),
            counts_from: None,
        });
        self.cells.push(MeasuredCell {
            group: p.access as usize,
            weight: 0.0,
            logs: all().map(log_rate).collect(),
            seconds: all().map(|p| p.at_seconds.unwrap_or(0.0)).collect(),
        });
    }

    /// Adds opening and closing: their time is the inverse of a rate. Its time stamp is that of the first pattern of the same repetition.
    fn add_files(&mut self, t: &TypeRecord, again: &[&TypeRecord]) {
        let seconds = |t: &TypeRecord| t.open_seconds + t.close_seconds;
        let all = || [t].into_iter().chain(again.iter().copied()).filter(|t| seconds(t) > 0.0);
        if all().next().is_none() {
            return;
        }
        let times = self.components.iter().zip(&self.cells);
        let times = times.filter(|(p, _)| p.access == t.access && p.pattern_type == t.pattern_type);
        let times = times.map(|(_, cell)| &cell.seconds).max_by_key(|seconds| seconds.len());
        let at = |n: usize| times.and_then(|times| times.get(n).or(times.last())).copied().unwrap_or(0.0);
        let logs: Vec<f64> = all().map(|t| -seconds(t).ln()).collect();
        let part = ValueComponent {
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
        self.components.push(part);
        self.cells.push(MeasuredCell { group: t.access as usize, weight: 0.0, logs, seconds });
    }

    /// Interval of the value selected by `of`, and the weights of the cells in it.
    pub(super) fn interval(
        &self,
        release: Release,
        of: impl Fn(&ModelledValues) -> Option<f64>,
    ) -> Option<(RelativeInterval, Vec<f64>)> {
        let weights = weights(&self.components, release, of)?;
        let weigh = |(cell, weight): (&MeasuredCell, &f64)| {
            // The numeric derivative with respect to an unrelated component is not exactly 0.
            MeasuredCell { weight: if weight.abs() < 1e-9 { 0.0 } else { *weight }, ..cell.clone() }
        };
        let cells: Vec<MeasuredCell> = self.cells.iter().zip(&weights).map(weigh).collect();
        Some((relative_interval(&cells)?, weights))
    }

    /// Interval of all bytes by all time of these patterns of an access method, in which those ended by time weigh by their bytes, others by
    /// their time.
    pub(super) fn interval_of_patterns(&self, access: AccessMethod, patterns: &[u8]) -> Option<RelativeInterval> {
        let is_part =
            |part: &ValueComponent| part.access == access && part.pattern.is_some_and(|p| patterns.contains(&p));
        let parts = || self.components.iter().filter(|part| is_part(part));
        let (bytes, seconds) = parts().fold((0.0, 0.0), |(b, s), part| (b + part.bytes, s + part.seconds));
        let weight = |part: &ValueComponent| match part.is_timed {
            _ if !is_part(part) => 0.0,
            true => part.bytes / bytes,
            false => part.seconds / seconds,
        };
        let cells = self.components.iter().zip(&self.cells);
        let cells = cells.map(|(part, cell)| MeasuredCell { weight: weight(part), ..cell.clone() });
        relative_interval(&cells.collect::<Vec<_>>())
    }
}

pub(super) fn is_measured(p: &PatternRecord) -> bool {
    p.calls > 0 && p.moved_bytes > 0 && p.seconds() > 0.0 && !p.ended.is_cut()
}

pub(super) fn log_rate(p: &PatternRecord) -> f64 {
    (p.moved_bytes as f64 / p.seconds()).ln()
}
