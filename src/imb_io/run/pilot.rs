//! Estimates the time of rows from a few iterations of the smallest and the largest sample of each kind of benchmark.

use beff_backends::Direction;
use beff_ffi::MpiError;

use super::job::{ConfiguredBackend, RowEstimate, RowJob};
use super::outcome::RowAbort;
use super::row_pilot::{pilot_row, PilotTime, PILOT_ITERATIONS};
use super::team::Team;
use super::RowContext;
use crate::frame::records::ErrorRecord;
use crate::frame::run::agree;
use crate::frame::run::clock::Instant;
use crate::imb_io::plan::{
    BenchmarkClass, ImbBenchmark, ImbPlan, MeasuredOperation, Mode, PlannedRow, Positioning, Synchronism,
};

/// Kind of benchmarks with the same estimated cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CostClass {
    transfer: Option<(BenchmarkClass, bool, Direction, Synchronism)>,
    mode: Mode,
    ranks: u64,
    backend: usize,
}

impl CostClass {
    fn of(benchmark: &ImbBenchmark, mode: Mode, ranks: u64, backend: usize) -> Self {
        let transfer = match &benchmark.operation {
            MeasuredOperation::Transfer(t) => {
                Some((t.class, t.positioning == Positioning::Shared, t.direction, t.synchronism))
            }
            MeasuredOperation::OpenClose => None,
        };
        Self { transfer, mode, ranks, backend }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CostSample {
    sample_bytes: f64,
    /// One iteration, including its syncs.
    iteration_seconds: f64,
    file_seconds: f64,
    steps: f64,
}

/// Target time of a measurement: more iterations, because the first calls of a kind are slower.
const SAMPLE_SECONDS: f64 = 0.01;

/// Costs by kind. Equal on all ranks that took part.
#[derive(Debug, Default)]
pub(super) struct PilotCosts {
    samples: Vec<(CostClass, Option<[CostSample; 2]>)>,
}

impl PilotCosts {
    /// Measures every kind of the plan on the ranks of `team`. Returns the errors, equal on all of them; the affected rows run
    /// nevertheless, but a transient error is recorded, too. Collective over the active ranks.
    pub(super) fn measure(
        &mut self,
        bench: &mut RowContext<'_>,
        plan: &ImbPlan,
        team: &Team,
        backends: &[ConfiguredBackend],
    ) -> Result<Vec<ErrorRecord>, MpiError> {
        let mut errors = Vec::new();
        for (at, row) in plan.rows.iter().enumerate() {
            if plan.groups(row).ok() != Some(team.groups) {
                continue;
            }
            for (index, backend) in backends.iter().enumerate() {
                let kind = CostClass::of(row.benchmark, row.mode, row.ranks, index);
                if self.samples.iter().any(|(seen, _)| *seen == kind) {
                    continue;
                }
                if agree::any_rank(&team.active, bench.interrupt.is_raised())? {
                    return Ok(errors);
                }
                // For the names of the files: equal on all ranks, which may measure different kinds.
                let number = ((plan.rows.len() + at) * backends.len() + index) as u64;
                let probes = match measure_samples(bench, plan, (team, backend), row, number) {
                    Ok(probes) => Some(probes),
                    Err(RowAbort::Mpi(error)) => return Err(error),
                    Err(RowAbort::Failed(error)) => {
                        errors.push(error);
                        None
                    }
                    Err(RowAbort::NotRun(_) | RowAbort::Interrupted | RowAbort::Limit) => None,
                };
                self.samples.push((kind, probes));
            }
        }
        Ok(errors)
    }

    /// Estimate of a row of `steps` iterations; None: its kind was not measured.
    pub(super) fn estimate(&self, row: &PlannedRow, backend: usize, steps: u64) -> Option<RowEstimate> {
        let kind = CostClass::of(row.benchmark, row.mode, row.ranks, backend);
        let probes = self.samples.iter().find(|(seen, _)| *seen == kind)?.1.as_ref()?;
        let bytes = row.sample_bytes.unwrap_or(0) as f64;
        let one_seconds = interpolate(probes, bytes, |probe| probe.iteration_seconds);
        // The additional cost of the larger file is attributed to its bytes.
        let [least, more] = [probes[0].file_seconds, (probes[1].file_seconds - probes[0].file_seconds).max(0.0)];
        let probe_bytes = (probes[1].sample_bytes * probes[1].steps).max(1.0);
        let files = if row.benchmark.has_overlap() { 3.0 } else { 1.0 };
        let (fixed_seconds, step_seconds) = (files * least, one_seconds + files * more * bytes / probe_bytes);
        let row_seconds = fixed_seconds + steps as f64 * step_seconds;
        Some(RowEstimate {
            iteration_seconds: one_seconds,
            iteration_total_seconds: step_seconds,
            fixed_seconds,
            row_seconds,
        })
    }
}

/// Linear interpolation between both samples, at least the smaller value.
fn interpolate(probes: &[CostSample; 2], bytes: f64, value: impl Fn(&CostSample) -> f64) -> f64 {
    let [low, high] = [value(&probes[0]), value(&probes[1])];
    let distance = probes[1].sample_bytes - probes[0].sample_bytes;
    let share = if distance > 0.0 { (bytes - probes[0].sample_bytes) / distance } else { 0.0 };
    (low + (high - low) * share).max(low.min(high))
}

/// Measures the smallest and the largest sample of a kind. Equal on all active ranks.
fn measure_samples(
    bench: &mut RowContext<'_>,
    plan: &ImbPlan,
    (team, backend): (&Team, &ConfiguredBackend),
    row: &PlannedRow,
    number: u64,
) -> Result<[CostSample; 2], RowAbort> {
    let sizes = || plan.sizes_bytes.iter().copied();
    let ends = [sizes().filter(|bytes| *bytes > 0).min().unwrap_or(0), sizes().max().unwrap_or(0)];
    let mut probes = [CostSample::default(); 2];
    for (n, bytes) in ends.into_iter().enumerate() {
        if n == 1 && (ends[0] == ends[1] || row.sample_bytes.is_none()) {
            probes[1] = probes[0];
            break;
        }
        let row = PlannedRow { sample_bytes: row.sample_bytes.map(|_| bytes), ..*row };
        let job = RowJob {
            row: &row,
            backend,
            team,
            number: 2 * number + n as u64,
            keep_files: false,
            rule: &plan.iterations,
            requested_iterations: plan.max_iterations(&row),
            estimate: None,
            previous_iterations: None,
            fixed_iterations: None,
            during: &format!(
                "pilot before the first row: {}, {}, ranks {}, {} bytes",
                row.benchmark.name,
                backend.name,
                row.ranks,
                row.sample_bytes.unwrap_or(0)
            ),
        };
        let first = pilot_row(bench, &job, PILOT_ITERATIONS)?.iteration_seconds;
        let steps = ((SAMPLE_SECONDS / first.max(1e-9)) as u64)
            .clamp(PILOT_ITERATIONS, job.requested_iterations.max(PILOT_ITERATIONS));
        let begin = Instant::now();
        let PilotTime { iteration_seconds: one_seconds, clock_seconds } = pilot_row(bench, &job, steps)?;
        let all_seconds = job.max_over_ranks(begin.elapsed().as_secs_f64())?;
        let steps = steps.min(job.requested_iterations) as f64;
        // A pilot measurement of an overlap uses two files.
        let files = if row.benchmark.has_overlap() { 2.0 } else { 1.0 };
        let file_seconds = (all_seconds - clock_seconds).max(0.0) / files;
        probes[n] = CostSample { sample_bytes: bytes as f64, iteration_seconds: one_seconds, file_seconds, steps };
    }
    Ok(probes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::names::find;

    #[test]
    fn rows_are_estimated_between_the_samples() {
        let of = |name, bytes| PlannedRow {
            benchmark: find(name).unwrap(),
            ranks: 2,
            mode: Mode::Aggregate,
            sample_bytes: Some(bytes),
        };
        let probe = |sample_bytes, one_seconds, file_seconds| CostSample {
            sample_bytes,
            iteration_seconds: one_seconds,
            file_seconds,
            steps: 2.0,
        };
        let probes = [probe(1.0, 1e-6, 0.01), probe(1_000_001.0, 1e-3, 0.03)];
        let kind = CostClass::of(find("P_Read_Indv").unwrap(), Mode::Aggregate, 2, 0);
        let pilot = PilotCosts { samples: vec![(kind, Some(probes))] };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let middle = pilot.estimate(&of("P_Read_Expl", 500_001), 0, 10).unwrap();
        assert!(close(middle.iteration_seconds, 500.5e-6), "{middle:?}");
        let bytes = 10.0 * 500_001.0 / 2_000_002.0;
        assert!(close(middle.row_seconds, 0.01 + 0.02 * bytes + 10.0 * 500.5e-6), "{middle:?}");
        assert!(close(pilot.estimate(&of("P_Read_Priv", 0), 0, 1000).unwrap().iteration_seconds, 1e-6));
        for other in [of("P_Write_Indv", 1), of("P_Read_Shared", 1), PlannedRow { ranks: 3, ..of("P_Read_Indv", 1) }] {
            assert_eq!(pilot.estimate(&other, 0, 1), None);
        }
        assert_eq!(pilot.estimate(&of("P_Read_Indv", 1), 1, 1), None);
    }
}
