//! Scheduled and real time of each access method, and the parts of the difference.

use super::totals::{backends_and_partitions, TypeRecordIndex};
use super::AccessTime;
use crate::b_eff_io::plan::schedule::repeats_counts;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::AccessMethod;

/// Entry for each backend, partition and access method with records.
pub(super) fn times<'a>(result: &'a RunResult, index: &TypeRecordIndex<'a>) -> Vec<AccessTime> {
    let mut all = Vec::new();
    for (backend, ranks) in backends_and_partitions(result) {
        all.extend(AccessMethod::ALL.iter().filter_map(|&access| access_time(result, index, (backend, ranks), access)));
    }
    all
}

fn access_time<'a>(
    result: &RunResult,
    index: &TypeRecordIndex<'a>,
    (backend, ranks): (&'a str, u64),
    access: AccessMethod,
) -> Option<AccessTime> {
    let mut sum = AccessTime {
        backend: backend.to_owned(),
        ranks,
        access,
        scheduled_seconds: 0.0,
        real_seconds: 0.0,
        sync_seconds: 0.0,
        open_close_seconds: 0.0,
        counted_seconds: 0.0,
        loop_seconds: 0.0,
        unused_seconds: 0.0,
    };
    let mut patterns = 0;
    for &pattern_type in &result.config.types {
        let records = index.of(backend, ranks, access, pattern_type);
        patterns += records.patterns.len();
        sum.open_close_seconds += records.file_seconds();
        sum.real_seconds += records.seconds();
        for p in records.patterns {
            add_pattern(&mut sum, p, is_counted(result, p));
        }
    }
    (patterns > 0).then_some(sum)
}

/// The sync is at the end of a pattern: time beyond the schedule is sync first, then that of the loop.
fn add_pattern(sum: &mut AccessTime, p: &PatternRecord, counted: bool) {
    sum.scheduled_seconds += p.scheduled_seconds;
    let beyond = p.seconds() - p.scheduled_seconds;
    if beyond < 0.0 {
        sum.unused_seconds -= beyond;
        return;
    }
    let sync = beyond.min(p.intervals.sync_seconds);
    sum.sync_seconds += sync;
    if counted {
        sum.counted_seconds += beyond - sync;
    } else {
        sum.loop_seconds += beyond - sync;
    }
}

/// True if the definition determines the number of calls, not the time: warm-up and fill-up, the first write of segments, and with release
/// 2.1 every rewrite and read.
fn is_counted(result: &RunResult, p: &PatternRecord) -> bool {
    match p.access {
        _ if p.time_units == 0 => true,
        AccessMethod::Write => p.pattern_type.has_segments(),
        AccessMethod::Rewrite | AccessMethod::Read => repeats_counts(result.config.release),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::config::Release;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run};

    fn of(result: &RunResult, access: AccessMethod) -> AccessTime {
        times(result, &TypeRecordIndex::new(result)).into_iter().find(|t| t.ranks == 4 && t.access == access).unwrap()
    }

    /// Seconds that a change of the run adds to (sync, open and close, counted, loop, unused), rounded.
    fn added(release: Release, access: AccessMethod, pattern: u8, change: fn(&mut PatternRecord)) -> [f64; 5] {
        let mut result = full_run();
        result.config.release = release;
        let parts = |t: &AccessTime| {
            [t.sync_seconds, t.open_close_seconds, t.counted_seconds, t.loop_seconds, t.unused_seconds]
        };
        let before = parts(&of(&result, access));
        edit_pattern(&mut result, 4, access, pattern, change);
        let after = parts(&of(&result, access));
        std::array::from_fn(|i| (after[i] - before[i]).round())
    }

    #[test]
    fn every_second_beyond_the_schedule_has_its_cause() {
        let sync: fn(&mut PatternRecord) = |p| p.intervals.sync_seconds = 7.0;
        let transfer: fn(&mut PatternRecord) = |p| p.intervals.transfer_seconds += 7.0;
        let short: fn(&mut PatternRecord) = |p| p.intervals.transfer_seconds -= 7.0;
        let mostly_sync: fn(&mut PatternRecord) = |p| {
            p.intervals.transfer_seconds -= 4.0;
            p.intervals.sync_seconds += 7.0;
        };
        let (write, read) = (AccessMethod::Write, AccessMethod::Read);
        assert_eq!(added(Release::R1, write, 10, sync), [7.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(added(Release::R1, write, 10, mostly_sync), [3.0, 0.0, 0.0, 0.0, 0.0], "at most the excess");
        assert_eq!(added(Release::R1, write, 10, transfer), [0.0, 0.0, 0.0, 7.0, 0.0]);
        assert_eq!(added(Release::R1, write, 27, transfer), [0.0, 0.0, 7.0, 0.0, 0.0], "segments go by counts");
        assert_eq!(added(Release::R1, write, 9, transfer), [0.0, 0.0, 7.0, 0.0, 0.0], "so does the warm-up");
        assert_eq!(added(Release::R1, write, 10, short), [0.0, 0.0, 0.0, 0.0, 7.0]);
        assert_eq!(added(Release::R1, read, 10, transfer), [0.0, 0.0, 0.0, 7.0, 0.0]);
        assert_eq!(added(Release::R2_1, read, 10, transfer), [0.0, 0.0, 7.0, 0.0, 0.0], "2.1 repeats the counts");
    }

    #[test]
    fn the_parts_add_up() {
        let mut result = full_run();
        edit_pattern(&mut result, 4, AccessMethod::Write, 3, |p| p.intervals.sync_seconds = 50.0);
        edit_pattern(&mut result, 4, AccessMethod::Write, 27, |p| p.intervals.transfer_seconds *= 3.0);
        edit_pattern(&mut result, 4, AccessMethod::Write, 20, |p| p.intervals.transfer_seconds /= 3.0);
        for t in times(&result, &TypeRecordIndex::new(&result)) {
            let beyond = t.sync_seconds + t.open_close_seconds + t.counted_seconds + t.loop_seconds - t.unused_seconds;
            assert!((t.real_seconds - t.scheduled_seconds - beyond).abs() < 1e-6, "{t:?}");
        }
        assert_eq!(times(&result, &TypeRecordIndex::new(&result)).len(), 2 * 3);
        result.patterns.clear();
        assert_eq!(times(&result, &TypeRecordIndex::new(&result)), []);
    }
}
