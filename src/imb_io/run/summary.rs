//! Reduction of a row over all ranks: extremes, sums, the first finding.

use std::path::Path;

use beff_backends::TransferStrategy;
use beff_ffi::MpiError;

use super::job::RowJob;
use super::outcome::{FileResults, OverlapReference, RowOutcome};
use super::team::Team;
use super::verify_result::VerifyResult;
use super::{RowContext, MAX_ITERATION_TIMES};
use crate::frame::run::agree::{collect, first_message};
use crate::frame::run::clock::Instant;
use crate::frame::run::effective_access::combine_ranks;
use crate::imb_io::records::{GroupTimes, ImbCorruption, IterationTimes, OverlapTimes, RowRecord};

/// Tolerated difference of iteration times and clock: a share of the time, plus the time between their readings.
const CLOCK_TOLERANCE_SHARE: f64 = 0.05;
const CLOCK_TOLERANCE_SECONDS: f64 = 1e-3;
/// Integer units per second that can be added over millions of ranks.
const TICKS_PER_SECOND: f64 = 1e11;

/// Reduces a row over the ranks. Collective over the active ranks.
pub(super) fn summarize(
    bench: &mut RowContext<'_>,
    job: &RowJob<'_>,
    mut record: RowRecord,
    stages: FileResults,
    begin: Instant,
) -> Result<RowOutcome, MpiError> {
    let (steps, last) = (record.iterations as f64, &stages.reported);
    let own = last.timed.seconds / steps;
    let in_laps = last.timed.seconds - last.timed.sync_seconds - last.timed.wait_seconds;
    let mine = iteration_times(bench.iteration_times.intervals_ns().collect(), (record.iterations, in_laps));
    let times = mine.unwrap_or(IterationTimes { median_seconds: 0.0, p99_seconds: 0.0, max_seconds: 0.0 });
    let beside = |time: fn(&OverlapReference) -> f64| stages.reference.as_ref().map_or(0.0, time);
    let mut worst = [
        times.median_seconds,
        times.p99_seconds,
        times.max_seconds,
        last.timed.sync_seconds / steps,
        beside(|b| b.blocking_seconds) / steps,
        beside(|b| b.alone_seconds) / steps,
        beside(|b| b.cpu_seconds) / steps,
        last.timed.cpu_seconds / steps,
        stages.verify_seconds,
    ];
    job.team.active.max_f64(&mut worst)?;
    let mut sums = [
        last.timed.moved_bytes,
        stages.checked.bytes_checked,
        stages.checked.bytes_wrong,
        last.timed.allocations,
        u64::from(mine.is_none()),
    ];
    job.team.active.sum_u64(&mut sums)?;
    record.times = group_times(job.team, own)?;
    let [median_seconds, p99_seconds, max_seconds, sync, blocking, alone, cpu, cpu_overlapped, verify_seconds] = worst;
    record.iteration_times = (sums[4] == 0).then_some(IterationTimes { median_seconds, p99_seconds, max_seconds });
    record.overlap = stages.reference.as_ref().map(|_| OverlapTimes {
        blocking_seconds: Some(blocking),
        alone_seconds: alone,
        overlapped_seconds: record.times.iter().map(|t| t.max_seconds).fold(0.0, f64::max),
        cpu_seconds: cpu,
        cpu_overlapped_seconds: cpu_overlapped,
    });
    record.sync_seconds = sync;
    [record.moved_bytes, record.bytes_checked, record.bytes_wrong, record.allocations_in_clock] =
        [sums[0], sums[1], sums[2], sums[3]];
    let found = (&stages.checked, stages.reported.file.as_path());
    let corruption = if record.bytes_wrong > 0 { corruption(job, found)? } else { None };
    let FileResults { reported: last, reference: beside, .. } = stages;
    record.blocking_strategy = beside.map(|beside| beside.blocking_strategy);
    let in_force = in_force(job, last.in_force)?;
    (record.strategy, record.direct) = (in_force.strategy, job.backend.options.proven_direct(in_force.direct));
    record.hints_granted = last.hints_granted;
    record.evidence = last.evidence;
    record.storage_read_bytes = last.storage_read_bytes;
    record.interference = last.cpu_watch.end(&job.team.cpus, &job.team.active)?;
    record.real_seconds = begin.elapsed().as_secs_f64();
    Ok(RowOutcome { record, error: None, corruption, verify_seconds })
}

/// Strategy of the calls and direct I/O over all ranks.
fn in_force(job: &RowJob<'_>, mine: TransferStrategy) -> Result<TransferStrategy, MpiError> {
    let mut kinds = [mine.direct == Some(true), mine.direct == Some(false)].map(u64::from);
    job.team.active.sum_u64(&mut kinds)?;
    Ok(combine_ranks(mine, kinds[0], kinds[1]))
}

/// Iteration times of this rank, of as many iterations as are stored; None if the calls were not timed individually, or if
/// cycle counter and clock disagree.
fn iteration_times(mut laps_ns: Vec<u64>, (repetitions, seconds): (u64, f64)) -> Option<IterationTimes> {
    let sum_seconds = laps_ns.iter().sum::<u64>() as f64 * 1e-9;
    let tolerated = CLOCK_TOLERANCE_SHARE * seconds + CLOCK_TOLERANCE_SECONDS;
    let kept = laps_ns.len() as u64;
    let too_long = sum_seconds > seconds + tolerated;
    let too_short = kept == repetitions && sum_seconds < seconds - tolerated;
    if kept != repetitions.min(MAX_ITERATION_TIMES) || too_long || too_short {
        return None;
    }
    laps_ns.sort_unstable();
    let at = |quantile: f64| {
        let rank = (quantile * laps_ns.len() as f64).ceil() as usize;
        laps_ns.get(rank.clamp(1, laps_ns.len().max(1)) - 1).map(|ns| *ns as f64 * 1e-9)
    };
    Some(IterationTimes { median_seconds: at(0.5)?, p99_seconds: at(0.99)?, max_seconds: at(1.0)? })
}

/// Minimum, maximum and mean time of each group; complete on rank 0.
fn group_times(team: &Team, own_seconds: f64) -> Result<Vec<GroupTimes>, MpiError> {
    let mut ends = [own_seconds, -own_seconds];
    team.group.max_f64(&mut ends)?;
    let mut sum = [(own_seconds * TICKS_PER_SECOND) as u64];
    team.group.sum_u64(&mut sum)?;
    let mean_seconds = sum[0] as f64 / TICKS_PER_SECOND / team.groups.ranks as f64;
    let here = GroupTimes { min_seconds: -ends[1], max_seconds: ends[0], mean_seconds };
    if team.groups.groups == 1 {
        return Ok(vec![here]);
    }
    collect(&team.active, if team.group.is_root() { vec![here] } else { Vec::new() })
}

/// The finding of the lowest rank that has one, on all ranks. Collective.
pub(super) fn corruption(
    job: &RowJob<'_>,
    (checked, file): (&VerifyResult, &Path),
) -> Result<Option<ImbCorruption>, MpiError> {
    let mine = checked.first_wrong.as_ref().map(|finding| ImbCorruption {
        backend: job.backend.name.clone(),
        benchmark: job.row.benchmark.name.to_owned(),
        ranks: job.row.ranks,
        mode: job.row.mode,
        sample_bytes: job.row.sample_bytes.unwrap_or(0),
        rank: job.team.active.rank(),
        iteration: finding.iteration,
        file: file.display().to_string(),
        offset_bytes: finding.offset_bytes,
        expected: finding.expected,
        actual: finding.actual,
        diagnosis: finding.diagnosis.clone(),
        bytes_wrong: checked.bytes_wrong,
    });
    let packed = mine.and_then(|mine| serde_json::to_string(&mine).ok());
    Ok(first_message(&job.team.active, packed)?.and_then(|(_, packed)| serde_json::from_str(&packed).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_times() {
        let times = iteration_times((1..=200).rev().collect(), (200, 20.1e-6)).unwrap();
        let ns = [times.median_seconds, times.p99_seconds, times.max_seconds].map(|s| (s * 1e9).round());
        assert_eq!(ns, [100.0, 198.0, 200.0]);
        let first = vec![7; MAX_ITERATION_TIMES as usize];
        assert_eq!(
            iteration_times(first, (MAX_ITERATION_TIMES + 1, 1.0)).map(|t| (t.p99_seconds * 1e9).round()),
            Some(7.0)
        );
        assert!(iteration_times(vec![7], (9, 1.0)).is_none(), "fewer than are stored");
        assert!(
            iteration_times(vec![3_000; MAX_ITERATION_TIMES as usize], (MAX_ITERATION_TIMES + 1, 1.0)).is_none(),
            "longer than all of them"
        );
        assert!(iteration_times(Vec::new(), (9, 1.0)).is_none(), "not timed individually");
        assert!(iteration_times(vec![1_000_000_000], (1, 1.5)).is_none(), "clocks that differ");
    }
}
