//! What all ranks together make of a row: extremes, sums, the first finding.

use std::path::Path;

use beff_backends::InForce;
use beff_ffi::MpiError;

use super::found::Checked;
use super::job::RowJob;
use super::outcome::{Beside, RowOutcome, Stages};
use super::team::Team;
use super::{Bench, LAPS};
use crate::frame::run::agree::first_message;
use crate::frame::run::clock::Instant;
use crate::frame::run::in_force::of_all;
use crate::imb_io::records::{GroupTimes, ImbCorruption, OverlapTimes, RepetitionTimes, RowRecord};

/// Laps and clock may differ by this share of the time, and by what lies between their readings.
const CLOCKS_DIFFER: f64 = 0.05;
const CLOCKS_DIFFER_SECONDS: f64 = 1e-3;
/// Seconds to whole units that can be added over millions of ranks.
const TICKS: f64 = 1e11;

/// Puts the ranks together. Collective over the active ranks.
pub(super) fn summarize(
    bench: &mut Bench<'_>,
    job: &RowJob<'_>,
    mut record: RowRecord,
    stages: Stages,
    begin: Instant,
) -> Result<RowOutcome, MpiError> {
    let (steps, last) = (record.repetitions as f64, &stages.last);
    let own = last.timed.seconds / steps;
    let in_laps = last.timed.seconds - last.timed.sync_seconds - last.timed.wait_seconds;
    let mine = repetition_times(bench.laps.laps_ns().collect(), (record.repetitions, in_laps));
    let times = mine.unwrap_or(RepetitionTimes { median_seconds: 0.0, p99_seconds: 0.0, max_seconds: 0.0 });
    let beside = |time: fn(&Beside) -> f64| stages.beside.as_ref().map_or(0.0, time);
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
    record.repetition_times = (sums[4] == 0).then_some(RepetitionTimes { median_seconds, p99_seconds, max_seconds });
    record.overlap = stages.beside.as_ref().map(|_| OverlapTimes {
        blocking_seconds: Some(blocking),
        alone_seconds: alone,
        overlapped_seconds: record.times.iter().map(|t| t.max_seconds).fold(0.0, f64::max),
        cpu_seconds: cpu,
        cpu_overlapped_seconds: cpu_overlapped,
    });
    record.sync_seconds = sync;
    [record.moved_bytes, record.bytes_checked, record.bytes_wrong, record.allocations_in_clock] =
        [sums[0], sums[1], sums[2], sums[3]];
    let found = (&stages.checked, stages.last.file.as_path());
    let corruption = if record.bytes_wrong > 0 { corruption(job, found)? } else { None };
    let Stages { last, beside, .. } = stages;
    record.blocking_strategy = beside.map(|beside| beside.blocking_strategy);
    let in_force = in_force(job, last.in_force)?;
    (record.strategy, record.direct) = (in_force.strategy, in_force.direct);
    record.hints_granted = last.hints_granted;
    record.evidence = last.evidence;
    record.storage_read_bytes = last.storage_read_bytes;
    record.machine = last.cpu_watch.end(&job.team.cpus, &job.team.active)?;
    record.real_seconds = begin.elapsed().as_secs_f64();
    Ok(RowOutcome { record, error: None, corruption, verify_seconds })
}

/// How the calls were made and whether they were direct, of all ranks.
fn in_force(job: &RowJob<'_>, mine: InForce) -> Result<InForce, MpiError> {
    let mut kinds = [mine.direct == Some(true), mine.direct == Some(false)].map(u64::from);
    job.team.active.sum_u64(&mut kinds)?;
    Ok(of_all(mine, kinds[0], kinds[1]))
}

/// Of this rank, of as many repetitions as are kept; None if the calls were not timed one by one, or the cycle counter does
/// not agree with the clock.
fn repetition_times(mut laps_ns: Vec<u64>, (repetitions, seconds): (u64, f64)) -> Option<RepetitionTimes> {
    let sum_seconds = laps_ns.iter().sum::<u64>() as f64 * 1e-9;
    let tolerated = CLOCKS_DIFFER * seconds + CLOCKS_DIFFER_SECONDS;
    let kept = laps_ns.len() as u64;
    let too_long = sum_seconds > seconds + tolerated;
    let too_short = kept == repetitions && sum_seconds < seconds - tolerated;
    if kept != repetitions.min(LAPS) || too_long || too_short {
        return None;
    }
    laps_ns.sort_unstable();
    let at = |quantile: f64| {
        let rank = (quantile * laps_ns.len() as f64).ceil() as usize;
        laps_ns.get(rank.clamp(1, laps_ns.len().max(1)) - 1).map(|ns| *ns as f64 * 1e-9)
    };
    Some(RepetitionTimes { median_seconds: at(0.5)?, p99_seconds: at(0.99)?, max_seconds: at(1.0)? })
}

/// Least, largest and mean time of each group; complete on rank 0.
fn group_times(team: &Team, own_seconds: f64) -> Result<Vec<GroupTimes>, MpiError> {
    let mut ends = [own_seconds, -own_seconds];
    team.group.max_f64(&mut ends)?;
    let mut sum = [(own_seconds * TICKS) as u64];
    team.group.sum_u64(&mut sum)?;
    let mean_seconds = sum[0] as f64 / TICKS / team.groups.ranks as f64;
    let here = GroupTimes { min_seconds: -ends[1], max_seconds: ends[0], mean_seconds };
    if team.groups.groups == 1 {
        return Ok(vec![here]);
    }
    let packed = if team.group.is_root() { serde_json::to_vec(&here).unwrap_or_default() } else { Vec::new() };
    let all = team.active.gather_bytes(&packed)?;
    Ok(all.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect())
}

/// The first finding of the lowest rank that has one, on all ranks. Collective.
pub(super) fn corruption(
    job: &RowJob<'_>,
    (checked, file): (&Checked, &Path),
) -> Result<Option<ImbCorruption>, MpiError> {
    let mine = checked.finding.as_ref().map(|finding| ImbCorruption {
        backend: job.backend.name.clone(),
        benchmark: job.row.benchmark.name.to_owned(),
        ranks: job.row.ranks,
        mode: job.row.mode,
        sample_bytes: job.row.sample_bytes.unwrap_or(0),
        rank: job.team.active.rank(),
        repetition: finding.repetition,
        file: file.display().to_string(),
        offset_bytes: finding.offset_bytes,
        expected: finding.expected,
        found: finding.found,
        looks_like: finding.looks_like.clone(),
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
        let times = repetition_times((1..=200).rev().collect(), (200, 20.1e-6)).unwrap();
        let ns = [times.median_seconds, times.p99_seconds, times.max_seconds].map(|s| (s * 1e9).round());
        assert_eq!(ns, [100.0, 198.0, 200.0]);
        let first = vec![7; LAPS as usize];
        assert_eq!(repetition_times(first, (LAPS + 1, 1.0)).map(|t| (t.p99_seconds * 1e9).round()), Some(7.0));
        assert!(repetition_times(vec![7], (9, 1.0)).is_none(), "fewer than are kept");
        assert!(repetition_times(vec![3_000; LAPS as usize], (LAPS + 1, 1.0)).is_none(), "longer than all of them");
        assert!(repetition_times(Vec::new(), (9, 1.0)).is_none(), "not timed one by one");
        assert!(repetition_times(vec![1_000_000_000], (1, 1.5)).is_none(), "clocks that differ");
    }
}
