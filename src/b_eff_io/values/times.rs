//! Scheduled against real time of each access method, and where the difference went.

use super::totals::{backends_and_partitions, Index};
use super::AccessTime;
use crate::b_eff_io::plan::schedule::repeats_counts;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::Access;

/// One for each backend, partition and access method of which anything was recorded.
pub(super) fn times<'a>(result: &'a RunResult, index: &Index<'a>) -> Vec<AccessTime> {
    let mut all = Vec::new();
    for (backend, ranks) in backends_and_partitions(result) {
        all.extend(Access::ALL.iter().filter_map(|&access| time(result, index, (backend, ranks), access)));
    }
    all
}

fn time<'a>(
    result: &RunResult,
    index: &Index<'a>,
    (backend, ranks): (&'a str, u64),
    access: Access,
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
            add(&mut sum, p, is_counted(result, p));
        }
    }
    (patterns > 0).then_some(sum)
}

/// The sync comes at the end of a pattern: what went beyond the schedule was sync first, then whatever drove the loop.
fn add(sum: &mut AccessTime, p: &PatternRecord, counted: bool) {
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

/// True if the definition gives the number of calls, not the time: warm-up and fill-up, the first write of segments, and
/// with release 2.1 every rewrite and read.
fn is_counted(result: &RunResult, p: &PatternRecord) -> bool {
    match p.access {
        _ if p.time_units == 0 => true,
        Access::Write => p.pattern_type.has_segments(),
        Access::Rewrite | Access::Read => repeats_counts(result.config.release),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::config::Release;
    use crate::b_eff_io::values::fixture::{edit, full_run};

    fn of(result: &RunResult, access: Access) -> AccessTime {
        times(result, &Index::new(result)).into_iter().find(|t| t.ranks == 4 && t.access == access).unwrap()
    }

    /// What a change of the run adds to (sync, open and close, counted, loop, unused), in whole seconds.
    fn added(release: Release, access: Access, pattern: u8, change: fn(&mut PatternRecord)) -> [f64; 5] {
        let mut result = full_run();
        result.config.release = release;
        let parts = |t: &AccessTime| {
            [t.sync_seconds, t.open_close_seconds, t.counted_seconds, t.loop_seconds, t.unused_seconds]
        };
        let before = parts(&of(&result, access));
        edit(&mut result, 4, access, pattern, change);
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
        let (write, read) = (Access::Write, Access::Read);
        assert_eq!(added(Release::R1, write, 10, sync), [7.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(added(Release::R1, write, 10, mostly_sync), [3.0, 0.0, 0.0, 0.0, 0.0], "no more than is beyond");
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
        edit(&mut result, 4, Access::Write, 3, |p| p.intervals.sync_seconds = 50.0);
        edit(&mut result, 4, Access::Write, 27, |p| p.intervals.transfer_seconds *= 3.0);
        edit(&mut result, 4, Access::Write, 20, |p| p.intervals.transfer_seconds /= 3.0);
        for t in times(&result, &Index::new(&result)) {
            let beyond = t.sync_seconds + t.open_close_seconds + t.counted_seconds + t.loop_seconds - t.unused_seconds;
            assert!((t.real_seconds - t.scheduled_seconds - beyond).abs() < 1e-6, "{t:?}");
        }
        assert_eq!(times(&result, &Index::new(&result)).len(), 2 * 3);
        result.patterns.clear();
        assert_eq!(times(&result, &Index::new(&result)), []);
    }
}
