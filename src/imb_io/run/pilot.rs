//! What rows will take, from a few repetitions of the smallest and the largest sample of each kind of benchmark.

use beff_backends::Direction;
use beff_ffi::MpiError;

use super::job::{Backend, Foreseen, RowJob};
use super::outcome::Stopped;
use super::team::Team;
use super::trial::{trial, Tried, TRIAL_STEPS};
use super::Bench;
use crate::frame::records::ErrorRecord;
use crate::frame::run::agree;
use crate::frame::run::clock::Instant;
use crate::imb_io::plan::{Action, Benchmark, Group, ImbPlan, Mode, Pointer, Row, Style};

/// Benchmarks that cost the same, as far as the pilot is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    what: Option<(Group, bool, Direction, Style)>,
    mode: Mode,
    ranks: u64,
    backend: usize,
}

impl Kind {
    fn of(benchmark: &Benchmark, mode: Mode, ranks: u64, backend: usize) -> Self {
        let what = match &benchmark.action {
            Action::Transfer(t) => Some((t.group, t.pointer == Pointer::Shared, t.direction, t.style)),
            Action::OpenClose => None,
        };
        Self { what, mode, ranks, backend }
    }
}

/// One sample size of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Probe {
    sample_bytes: f64,
    /// One repetition with all that belongs to it.
    one_seconds: f64,
    /// What a file costs beside its repetitions.
    file_seconds: f64,
    /// Repetitions.
    steps: f64,
}

/// A probe is repeated as often as fits into this: the first calls of a kind are slower.
const PROBE_SECONDS: f64 = 0.01;

/// What the pilot saw. Equal on all ranks that saw it.
#[derive(Debug, Default)]
pub(super) struct Pilot {
    seen: Vec<(Kind, Option<[Probe; 2]>)>,
}

impl Pilot {
    /// Tries every kind of the plan on the ranks of `team`. Returns what failed, equal on all of them: its rows are tried again, but
    /// an error that does not come again was one all the same. Collective over the active ranks.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub(super) fn fly(
        &mut self,
        bench: &mut Bench<'_>,
        plan: &ImbPlan,
        team: &Team,
        backends: &[Backend],
    ) -> Result<Vec<ErrorRecord>, MpiError> {
        let mut errors = Vec::new();
        for (at, row) in plan.rows.iter().enumerate() {
            if plan.groups(row).ok() != Some(team.groups) {
                continue;
            }
            for (index, backend) in backends.iter().enumerate() {
                let kind = Kind::of(row.benchmark, row.mode, row.ranks, index);
                if self.seen.iter().any(|(seen, _)| *seen == kind) {
                    continue;
                }
                if agree::any(&team.active, bench.interrupt.raised())? {
                    return Ok(errors);
                }
                // Names the files: not what this rank alone counts, ranks see different kinds.
                let number = ((plan.rows.len() + at) * backends.len() + index) as u64;
                let probes = match probes(bench, plan, (team, backend), row, number) {
                    Ok(probes) => Some(probes),
                    Err(Stopped::Mpi(error)) => return Err(error),
                    Err(Stopped::Failed(error)) => {
                        errors.push(error);
                        None
                    }
                    Err(Stopped::NotRun(_) | Stopped::Interrupted) => None,
                };
                self.seen.push((kind, probes));
            }
        }
        Ok(errors)
    }

    /// What a row of `steps` repetitions takes; None: its kind was not seen.
    pub(super) fn foresee(&self, row: &Row, backend: usize, steps: u64) -> Option<Foreseen> {
        let kind = Kind::of(row.benchmark, row.mode, row.ranks, backend);
        let probes = self.seen.iter().find(|(seen, _)| *seen == kind)?.1.as_ref()?;
        let bytes = row.sample_bytes.unwrap_or(0) as f64;
        let one_seconds = between(probes, bytes, |probe| probe.one_seconds);
        // What the larger one of the probes' files costs more, it costs for its bytes.
        let [least, more] = [probes[0].file_seconds, (probes[1].file_seconds - probes[0].file_seconds).max(0.0)];
        let probe_bytes = (probes[1].sample_bytes * probes[1].steps).max(1.0);
        let files = if row.benchmark.has_overlap() { 3.0 } else { 1.0 };
        let (fixed_seconds, step_seconds) = (files * least, one_seconds + files * more * bytes / probe_bytes);
        let row_seconds = fixed_seconds + steps as f64 * step_seconds;
        Some(Foreseen { one_seconds, step_seconds, fixed_seconds, row_seconds })
    }
}

/// On the line through both probes, never below the smaller one.
fn between(probes: &[Probe; 2], bytes: f64, value: impl Fn(&Probe) -> f64) -> f64 {
    let [low, high] = [value(&probes[0]), value(&probes[1])];
    let distance = probes[1].sample_bytes - probes[0].sample_bytes;
    let share = if distance > 0.0 { (bytes - probes[0].sample_bytes) / distance } else { 0.0 };
    (low + (high - low) * share).max(low.min(high))
}

/// The smallest and the largest sample of a kind. Equal on all active ranks.
fn probes(
    bench: &mut Bench<'_>,
    plan: &ImbPlan,
    (team, backend): (&Team, &Backend),
    row: &Row,
    number: u64,
) -> Result<[Probe; 2], Stopped> {
    let sizes = || plan.sizes_bytes.iter().copied();
    let ends = [sizes().filter(|bytes| *bytes > 0).min().unwrap_or(0), sizes().max().unwrap_or(0)];
    let mut probes = [Probe::default(); 2];
    for (n, bytes) in ends.into_iter().enumerate() {
        if n == 1 && (ends[0] == ends[1] || row.sample_bytes.is_none()) {
            probes[1] = probes[0];
            break;
        }
        let row = Row { sample_bytes: row.sample_bytes.map(|_| bytes), ..*row };
        let job = RowJob {
            row: &row,
            backend,
            team,
            number: 2 * number + n as u64,
            keep: false,
            rule: &plan.repetitions,
            wanted: plan.most(&row),
            foreseen: None,
            previous: None,
            fixed: None,
            during: &format!(
                "pilot before the first row: {}, {}, ranks {}, {} bytes",
                row.benchmark.name,
                backend.name,
                row.ranks,
                row.sample_bytes.unwrap_or(0)
            ),
        };
        let first = trial(bench, &job, TRIAL_STEPS)?.one_seconds;
        let steps = ((PROBE_SECONDS / first.max(1e-9)) as u64).clamp(TRIAL_STEPS, job.wanted.max(TRIAL_STEPS));
        let begin = Instant::now();
        let Tried { one_seconds, clock_seconds } = trial(bench, &job, steps)?;
        let all_seconds = job.slowest(begin.elapsed().as_secs_f64())?;
        let steps = steps.min(job.wanted) as f64;
        // A trial of what overlaps has two files.
        let files = if row.benchmark.has_overlap() { 2.0 } else { 1.0 };
        let file_seconds = (all_seconds - clock_seconds).max(0.0) / files;
        probes[n] = Probe { sample_bytes: bytes as f64, one_seconds, file_seconds, steps };
    }
    Ok(probes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::names::find;

    #[test]
    fn rows_are_foreseen_between_the_probes() {
        let of = |name, bytes| Row {
            benchmark: find(name).unwrap(),
            ranks: 2,
            mode: Mode::Aggregate,
            sample_bytes: Some(bytes),
        };
        let probe =
            |sample_bytes, one_seconds, file_seconds| Probe { sample_bytes, one_seconds, file_seconds, steps: 2.0 };
        let probes = [probe(1.0, 1e-6, 0.01), probe(1_000_001.0, 1e-3, 0.03)];
        let kind = Kind::of(find("P_Read_Indv").unwrap(), Mode::Aggregate, 2, 0);
        let pilot = Pilot { seen: vec![(kind, Some(probes))] };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let middle = pilot.foresee(&of("P_Read_Expl", 500_001), 0, 10).unwrap();
        assert!(close(middle.one_seconds, 500.5e-6), "{middle:?}");
        let bytes = 10.0 * 500_001.0 / 2_000_002.0;
        assert!(close(middle.row_seconds, 0.01 + 0.02 * bytes + 10.0 * 500.5e-6), "{middle:?}");
        assert!(close(pilot.foresee(&of("P_Read_Priv", 0), 0, 1000).unwrap().one_seconds, 1e-6));
        for other in [of("P_Write_Indv", 1), of("P_Read_Shared", 1), Row { ranks: 3, ..of("P_Read_Indv", 1) }] {
            assert_eq!(pilot.foresee(&other, 0, 1), None);
        }
        assert_eq!(pilot.foresee(&of("P_Read_Indv", 1), 1, 1), None);
    }
}
