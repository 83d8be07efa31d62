//! Values of types, partitions and the system from the records.

use std::collections::HashMap;

use super::averages::{access_average, release_0_5_contribution, release_1, release_2_1};
use super::{PartitionValue, ReleaseValues, SystemValue, TypeValue};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::patterns::{of_type, patterns, MIN_M_PART_BYTES};
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::plan::Role;
use crate::b_eff_io::records::{PatternRecord, RunResult, TypeRecord};
use crate::frame::records::AccessMethod;
use crate::frame::units::mb_per_second;
use crate::frame::values::NULL_BACKEND;

/// The records of one type with one access method on one partition through one backend.
#[derive(Clone)]
pub(super) struct TypeRecords<'a> {
    pub(super) patterns: Vec<&'a PatternRecord>,
    pub(super) files: Vec<&'a TypeRecord>,
}

/// Index of the records of a run by type, access method, partition and backend, built in one pass.
pub(super) struct TypeRecordIndex<'a>(HashMap<(&'a str, u64, AccessMethod, PatternType), TypeRecords<'a>>);

impl<'a> TypeRecordIndex<'a> {
    pub(super) fn new(result: &'a RunResult) -> Self {
        let mut places: HashMap<_, TypeRecords<'a>> = HashMap::new();
        // Records with the same key are consecutive: one look-up for all of them.
        let same = |a: &PatternRecord, b: &PatternRecord| {
            (a.ranks, a.access, a.pattern_type) == (b.ranks, b.access, b.pattern_type) && a.backend == b.backend
        };
        for of_one in result.patterns.chunk_by(same) {
            let p = &of_one[0];
            let place = (p.backend.as_str(), p.ranks, p.access, p.pattern_type);
            places.entry(place).or_insert_with(TypeRecords::empty).patterns.extend(of_one);
        }
        for f in &result.types {
            let place = (f.backend.as_str(), f.ranks, f.access, f.pattern_type);
            places.entry(place).or_insert_with(TypeRecords::empty).files.push(f);
        }
        Self(places)
    }

    pub(super) fn of(&self, backend: &'a str, ranks: u64, access: AccessMethod, t: PatternType) -> TypeRecords<'a> {
        self.0.get(&(backend, ranks, access, t)).cloned().unwrap_or_else(TypeRecords::empty)
    }
}

impl<'a> TypeRecords<'a> {
    pub(super) fn of(result: &'a RunResult, backend: &str, ranks: u64, access: AccessMethod, t: PatternType) -> Self {
        let patterns = result
            .patterns
            .iter()
            .filter(|p| p.backend == backend && p.ranks == ranks && p.access == access && p.pattern_type == t);
        let files = result
            .types
            .iter()
            .filter(|f| f.backend == backend && f.ranks == ranks && f.access == access && f.pattern_type == t);
        Self { patterns: patterns.collect(), files: files.collect() }
    }

    pub(super) fn empty() -> Self {
        Self { patterns: Vec::new(), files: Vec::new() }
    }

    /// Adds those of another type.
    pub(super) fn add(&mut self, other: &Self) {
        self.patterns.extend(&other.patterns);
        self.files.extend(&other.files);
    }

    fn bytes(&self) -> u64 {
        self.patterns.iter().map(|p| p.moved_bytes).fold(0, u64::saturating_add)
    }

    pub(super) fn file_seconds(&self) -> f64 {
        self.files.iter().map(|f| f.open_seconds + f.close_seconds).sum()
    }

    pub(super) fn seconds(&self) -> f64 {
        self.file_seconds() + self.patterns.iter().map(|p| p.seconds()).sum::<f64>()
    }

    /// Bytes and seconds by the definition of release 0.5.
    fn release_0_5_contribution(&self) -> (f64, f64) {
        let parts = self.patterns.iter().map(|p| {
            let scheduled = if p.time_units > 0 { p.scheduled_seconds } else { 0.0 };
            release_0_5_contribution(p.moved_bytes, p.seconds(), scheduled)
        });
        parts.fold((0.0, self.file_seconds()), |(b, s), (bytes, seconds)| (b + bytes, s + seconds))
    }

    /// True if every pattern was completed and the file was closed.
    fn is_complete(&self, t: PatternType) -> bool {
        let specs = patterns(MIN_M_PART_BYTES);
        !self.files.is_empty()
            && of_type(&specs, t).iter().all(|spec| {
                let record = self.patterns.iter().find(|p| p.pattern == spec.number);
                match spec.role {
                    // None exists if the segment has its full size without it.
                    Role::FillUp => record.is_none_or(|p| is_empty_fill_up(p) || is_finished(p)),
                    Role::WarmUp | Role::Timed => record.is_some_and(|p| is_finished(p)),
                }
            })
    }
}

fn is_finished(p: &PatternRecord) -> bool {
    p.calls > 0 && p.was_run() && !p.ended.is_cut()
}

/// True for a fill-up with nothing to fill: it does not run and is not missing.
pub(super) fn is_empty_fill_up(p: &PatternRecord) -> bool {
    matches!(p.pattern, 33 | 42) && p.call_bytes == 0
}

/// One value for each backend, partition, access and type that is part of the run.
pub(super) fn types(result: &RunResult, index: &TypeRecordIndex<'_>) -> Vec<TypeValue> {
    let mut values = Vec::new();
    for (backend, ranks) in backends_and_partitions(result) {
        for access in AccessMethod::ALL {
            let done = |t: PatternType| access != AccessMethod::Rewrite || is_rewritten(result.config.full_rewrite, t);
            for &pattern_type in result.config.types.iter().filter(|&&t| done(t)) {
                let records = index.of(backend, ranks, access, pattern_type);
                let (moved_bytes, seconds) = (records.bytes(), records.seconds());
                values.push(TypeValue {
                    backend: backend.to_owned(),
                    ranks,
                    access,
                    pattern_type,
                    moved_bytes,
                    seconds,
                    mb_per_second: mb_per_second(moved_bytes, seconds).filter(|_| moved_bytes > 0),
                    complete: records.is_complete(pattern_type),
                });
            }
        }
    }
    values
}

/// Returns all pairs, in the order backend, partition.
pub(super) fn backends_and_partitions(result: &RunResult) -> impl Iterator<Item = (&str, u64)> {
    let partitions = &result.partitions;
    result.config.backends.iter().flat_map(move |backend| partitions.iter().map(move |p| (backend.as_str(), p.ranks)))
}

/// One value for each backend and partition.
pub(super) fn partitions(result: &RunResult, index: &TypeRecordIndex<'_>, types: &[TypeValue]) -> Vec<PartitionValue> {
    let mut own: HashMap<(&str, u64), Vec<&TypeValue>> = HashMap::new();
    types.iter().for_each(|v| own.entry((&v.backend, v.ranks)).or_default().push(v));
    let of = |place| own.get(&place).map_or(&[][..], Vec::as_slice);
    backends_and_partitions(result).map(|place| partition(result, index, of(place), place)).collect()
}

fn partition<'a>(
    result: &'a RunResult,
    index: &TypeRecordIndex<'a>,
    types: &[&TypeValue],
    (backend, ranks): (&'a str, u64),
) -> PartitionValue {
    let of_access = |access| move |v: &&&TypeValue| v.access == access;
    let complete = |access: AccessMethod, t: PatternType| {
        types.iter().find(|v| v.access == access && v.pattern_type == t && v.complete).and_then(|v| v.mb_per_second)
    };
    let mut rates = AccessMethod::ALL.map(|access| PatternType::ALL.map(|t| complete(access, t)));
    if backend == NULL_BACKEND {
        // Rates of moving nothing: averages of them would be mistaken for results.
        rates = [[None; PatternType::COUNT]; 3];
    }
    let averages = rates.map(access_average);
    let all_measured = averages.iter().all(Option::is_some);
    PartitionValue {
        backend: backend.to_owned(),
        ranks,
        access_mb_per_second: averages,
        access_bytes: AccessMethod::ALL
            .map(|a| types.iter().filter(of_access(a)).map(|v| v.moved_bytes).fold(0, u64::saturating_add)),
        access_seconds: AccessMethod::ALL.map(|a| types.iter().filter(of_access(a)).map(|v| v.seconds).sum()),
        values: ReleaseValues {
            release_0_5: all_measured.then(|| release_0_5(result, index, backend, ranks)).flatten(),
            release_1: release_1(averages[0], averages[1], averages[2]),
            release_2_1: release_2_1(rates[0], rates[1], averages[2]),
        },
    }
}

/// All bytes / all time of a partition.
fn release_0_5<'a>(result: &RunResult, index: &TypeRecordIndex<'a>, backend: &'a str, ranks: u64) -> Option<f64> {
    let mut sum = (0.0, 0.0);
    for access in AccessMethod::ALL {
        for &t in &result.config.types {
            let (bytes, seconds) = index.of(backend, ranks, access, t).release_0_5_contribution();
            sum = (sum.0 + bytes, sum.1 + seconds);
        }
    }
    (sum.1 > 0.0).then(|| sum.0 / sum.1 / 1e6)
}

/// One value for each backend: the maximum over its partitions.
pub(super) fn systems(result: &RunResult, partitions: &[PartitionValue]) -> Vec<SystemValue> {
    let system = |backend: &String| {
        let own = || partitions.iter().filter(|p| p.backend == *backend);
        let best = |value: fn(&ReleaseValues) -> Option<f64>| {
            own().filter_map(|p| value(&p.values).map(|v| (v, p.ranks))).max_by(|a, b| a.0.total_cmp(&b.0))
        };
        let best = [best(|v| v.release_0_5), best(|v| v.release_1), best(|v| v.release_2_1)];
        let value = |i: usize| best[i].map(|(value, _)| value);
        SystemValue {
            backend: backend.clone(),
            values: ReleaseValues { release_0_5: value(0), release_1: value(1), release_2_1: value(2) },
            ranks: best.map(|b| b.map(|(_, ranks)| ranks)),
        }
    };
    result.config.backends.iter().map(system).collect()
}

#[cfg(test)]
mod tests {
    use crate::b_eff_io::pattern_type::PatternType;
    use crate::b_eff_io::records::StopReason;
    use crate::b_eff_io::values::derive;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run};
    use crate::frame::records::AccessMethod;

    #[test]
    fn equal_rates_give_equal_values_by_every_definition() {
        let d = derive(&full_run());
        assert_eq!((d.types.len(), d.partitions.len(), d.systems.len()), (2 * 15, 2, 1));
        assert!(d.types.iter().all(|t| t.complete));
        let p = &d.partitions[1];
        // 200 MB/s without opening and closing, which take 1 % here.
        for value in [p.values.release_0_5, p.values.release_1, p.values.release_2_1] {
            let value = value.unwrap();
            assert!(value > 197.0 && value < 200.0, "{value}");
        }
        assert_eq!(d.systems[0].ranks, [Some(4); 3]);
        assert_eq!(d.systems[0].values, p.values);
    }

    #[test]
    fn moving_nothing_has_rates_but_no_value() {
        let mut result = full_run();
        result.config.backends = vec!["null".into()];
        result.patterns.iter_mut().for_each(|p| p.backend = "null".into());
        result.types.iter_mut().for_each(|t| t.backend = "null".into());
        let d = derive(&result);
        assert!(d.types.iter().all(|t| t.mb_per_second.is_some()));
        assert!(d.partitions.iter().all(|p| p.access_mb_per_second == [None; 3] && p.values == Default::default()));
        assert_eq!(d.systems[0].ranks, [None; 3]);
    }

    #[test]
    fn open_and_close_count() {
        let result = full_run();
        let d = derive(&result);
        let t = d
            .types
            .iter()
            .find(|t| t.ranks == 4 && t.access == AccessMethod::Read && t.pattern_type == PatternType::Separate)
            .unwrap();
        let patterns = result.patterns.iter();
        let own = patterns
            .filter(|p| p.ranks == 4 && p.access == AccessMethod::Read && p.pattern_type == PatternType::Separate);
        let seconds: f64 = own.map(|p| p.seconds()).sum();
        let file = result
            .types
            .iter()
            .find(|f| f.ranks == 4 && f.access == AccessMethod::Read && f.pattern_type == PatternType::Separate);
        let file = file.unwrap();
        assert!((t.seconds - seconds - file.open_seconds - file.close_seconds).abs() < 1e-9);
        assert_eq!(t.mb_per_second, Some(t.moved_bytes as f64 / t.seconds / 1e6));
    }

    #[test]
    fn without_full_rewrite_only_release_2_1_has_a_value() {
        let mut result = full_run();
        result.config.full_rewrite = false;
        result.patterns.retain(|p| p.access != AccessMethod::Rewrite || p.pattern_type == PatternType::Scatter);
        result.types.retain(|p| p.access != AccessMethod::Rewrite || p.pattern_type == PatternType::Scatter);
        let values = derive(&result).systems[0].values;
        assert_eq!((values.release_0_5, values.release_1), (None, None));
        assert!(values.release_2_1.unwrap() > 190.0);
    }

    #[test]
    fn incomplete_types_are_shown_but_not_averaged() {
        for ended in [StopReason::NotRun("direct".into()), StopReason::Interrupted, StopReason::Error] {
            let mut result = full_run();
            edit_pattern(&mut result, 4, AccessMethod::Read, 12, |p| p.ended = ended.clone());
            let d = derive(&result);
            let t = d
                .types
                .iter()
                .find(|t| t.ranks == 4 && t.access == AccessMethod::Read && t.pattern_type == PatternType::Shared)
                .unwrap();
            assert!(!t.complete && t.mb_per_second.is_some());
            assert_eq!(d.partitions[1].access_mb_per_second[2], None);
            assert_eq!(d.partitions[1].values.release_2_1, None);
            assert_eq!(d.systems[0].ranks, [Some(2); 3]);
        }
    }

    #[test]
    fn a_subset_or_a_killed_run_has_no_value() {
        let mut result = full_run();
        result.config.types = vec![PatternType::Scatter, PatternType::Shared];
        let d = derive(&result);
        assert_eq!(d.systems[0].values.release_2_1, None);
        let mut result = full_run();
        result.patterns.truncate(20);
        result.types.truncate(1);
        let d = derive(&result);
        assert_eq!(d.systems[0].values.release_2_1, None);
        assert_eq!(d.types.len(), 30);
        assert_eq!(d.types.iter().filter(|t| t.complete).count(), 1);
    }

    #[test]
    fn a_fill_up_of_nothing_is_not_missing() {
        let mut result = full_run();
        result.patterns.retain(|p| p.pattern != 33);
        for p in result.patterns.iter_mut().filter(|p| p.pattern == 42) {
            (p.calls, p.call_bytes, p.chunk_bytes, p.moved_bytes) = (0, 0, 0, 0);
        }
        assert!(derive(&result).types.iter().all(|t| t.complete));
    }

    #[test]
    fn a_pattern_far_beyond_its_time_weighs_no_more_than_planned() {
        let mut result = full_run();
        let undisturbed = derive(&result).partitions[1].values.release_0_5.unwrap();
        // The same bytes in ten times the time, then five times as much of both.
        edit_pattern(&mut result, 4, AccessMethod::Read, 13, |p| p.intervals.transfer_seconds *= 10.0);
        let slow = derive(&result).partitions[1].values.release_0_5.unwrap();
        edit_pattern(&mut result, 4, AccessMethod::Read, 13, |p| p.moved_bytes *= 5);
        edit_pattern(&mut result, 4, AccessMethod::Read, 13, |p| p.intervals.transfer_seconds *= 5.0);
        let slower = derive(&result).partitions[1].values.release_0_5.unwrap();
        assert!(slow < undisturbed && (slow - slower).abs() < 1e-6, "{undisturbed} {slow} {slower}");
    }
}
