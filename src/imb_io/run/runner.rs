//! The run: pilot, announcement, all rows and their repetitions.

use beff_backends::{DriverOptions, Latency, TransferBuffer};
use beff_ffi::{Comm, MpiError};

use super::bare::{self, BareOutcome};
use super::job::{ConfiguredBackend, RowEstimate, RowJob};
use super::load::ComputeLoad;
use super::outcome::RowOutcome;
use super::pilot::PilotCosts;
use super::repetition::RowRepetitionSchedule;
use super::row::measure;
use super::team::Team;
use super::{RowContext, MAX_ITERATION_TIMES};
use crate::frame::backends;
use crate::frame::config::RepetitionPolicy;
use crate::frame::records::RunOutcome;
use crate::frame::run::availability;
use crate::frame::run::availability::SkippedBackend;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{agree, ProgressReport, RunObserver, TransferVolume};
use crate::frame::system::memory::high_water_bytes;
use crate::frame::units::count;
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::iterations::RowCost;
use crate::imb_io::plan::processes::Groups;
use crate::imb_io::plan::{ImbBenchmark, ImbPlan, Mode, PlannedRow};
use crate::imb_io::records::{CpuLoad, ImbAnnouncement, ImbEnding, ImbLine, RowRecord, RowRepetition, RowStatus};

/// Minimum bytes of periods and windows.
const MIN_BYTES: u64 = 4096;

/// Runs all rows.
pub struct RowRunner<'a> {
    world: &'a Comm,
    plan: &'a ImbPlan,
    observer: &'a mut dyn RunObserver<ImbLine>,
    context: RowContext<'a>,
    backends: Vec<ConfiguredBackend>,
    /// Team for each number of ranks and groups in the plan; None if this rank waits.
    teams: Vec<(Groups, Option<Team>)>,
    pilot: PilotCosts,
    schedule: RowRepetitionSchedule,
    begin: Instant,
    expected_seconds: f64,
    done_seconds: f64,
    verify_seconds: f64,
    /// Why the run stops; None while it continues.
    stop: Option<RunOutcome>,
    planned_bytes: u64,
    recent_transfers: Vec<TransferVolume>,
}

impl<'a> RowRunner<'a> {
    /// Maps the transfer buffer and creates the drivers. Not collective.
    ///
    /// # Errors
    /// The memory of this rank cannot be mapped.
    pub fn new(
        world: &'a Comm,
        plan: &'a ImbPlan,
        config: &'a ImbConfig,
        run_dir: &'a RunDir,
        interrupt: &'a Interrupt,
        not_run: &[SkippedBackend],
        observer: &'a mut dyn RunObserver<ImbLine>,
    ) -> Result<Self, String> {
        let begin = Instant::now();
        let planned_bytes = data_bytes(plan, config);
        let windows_bytes = planned_bytes.max(MIN_BYTES).next_multiple_of(MIN_BYTES);
        // Periods are whole calls: no window exceeds the buffer.
        let transfer_buffer = TransferBuffer::new(windows_bytes, 0)
            .map_err(|e| format!("rank {}: {windows_bytes} bytes for data: {e}", world.rank()))?;
        let laps = plan.rows.iter().map(|row| plan.max_iterations(row)).max().unwrap_or(1).min(MAX_ITERATION_TIMES);
        let backends = config.backends.iter().filter_map(|name| make_backend(config, run_dir, name, not_run)).collect();
        Ok(Self {
            world,
            plan,
            observer,
            context: RowContext {
                config,
                run_dir,
                buffer: transfer_buffer,
                iteration_times: Latency::intervals(laps as usize),
                warnings: Vec::new(),
                corruptions: Vec::new(),
                interrupt,
                load: None,
            },
            backends,
            teams: Vec::new(),
            pilot: PilotCosts::default(),
            schedule: RowRepetitionSchedule::new(config.repeat, config.until_share, plan.iterations.limit_seconds),
            begin,
            expected_seconds: 0.0,
            done_seconds: 0.0,
            verify_seconds: 0.0,
            stop: None,
            planned_bytes: windows_bytes,
            recent_transfers: Vec::new(),
        })
    }

    /// Runs the pilot and announces the estimated time of the rows. Collective over the world.
    ///
    /// # Errors
    /// An MPI call failed.
    pub fn announce(&mut self) -> Result<ImbAnnouncement, MpiError> {
        for row in &self.plan.rows {
            let Ok(groups) = self.plan.groups(row) else { continue };
            if !self.teams.iter().any(|(existing, _)| *existing == groups) {
                self.teams.push((groups, Team::create(self.world, groups, self.context.run_dir.path())?));
            }
        }
        let mut cpu_load = None;
        if self.plan.benchmarks.iter().any(|benchmark| benchmark.has_overlap()) {
            let (load, calibration_error) = ComputeLoad::calibrate(self.world)?;
            self.context.load = Some(load);
            cpu_load = Some(CpuLoad { unit_seconds: load.unit_seconds, calibration_error });
        }
        for (groups, team) in &self.teams {
            if let Some(team) = team {
                let errors = self.pilot.measure(&mut self.context, self.plan, team, &self.backends)?;
                errors.into_iter().for_each(|error| self.observer.record(ImbLine::Error(error)));
            }
            self.wait_for_groups(*groups)?;
        }
        self.record_findings();
        self.agree_on_interrupt()?;
        let pilot_seconds = self.begin.elapsed().as_secs_f64();
        let backends = 0..self.backends.len();
        let rows = self.plan.rows.iter().flat_map(|row| backends.clone().map(move |backend| (row, backend)));
        let runs: Vec<_> = rows.filter(|(row, backend)| self.pilot.estimate(row, *backend, 1).is_some()).collect();
        let rounds = match self.context.config.repeat {
            RepetitionPolicy::Times(times) => 1.0 + times as f64,
            // The number of rounds is unknown.
            RepetitionPolicy::Auto | RepetitionPolicy::Off => 1.0,
        };
        let first: f64 = runs.iter().map(|(row, backend)| self.estimate(row, *backend).row_seconds).sum();
        let rows_seconds = rounds * first;
        let beside_seconds = pilot_seconds + bare::expected_seconds(self.context.config);
        self.expected_seconds = beside_seconds + rows_seconds;
        self.done_seconds = pilot_seconds;
        let announcement = ImbAnnouncement {
            expected_seconds: self.expected_seconds,
            limit_seconds: self
                .plan
                .iterations
                .bound_seconds(runs.len() as u64)
                .map(|rows| (rounds * rows + beside_seconds).max(self.expected_seconds)),
            pilot_seconds,
            cpu_load,
        };
        self.observer.record(ImbLine::Announcement(announcement.clone()));
        Ok(announcement)
    }

    /// Estimate of a row with as many iterations as its time limit allows; zero if its kind cannot run.
    fn estimate(&self, row: &PlannedRow, backend: usize) -> RowEstimate {
        let most = self.plan.max_iterations(row);
        let Some(all) = self.pilot.estimate(row, backend, most) else { return RowEstimate::default() };
        let measured = RowCost { iteration_seconds: all.iteration_total_seconds, spent_seconds: all.fixed_seconds };
        let steps = self.plan.iterations.reduced_iterations(most, &measured, None);
        self.pilot.estimate(row, backend, steps).unwrap_or_default()
    }

    /// Measures all rows. Collective over the world.
    ///
    /// # Errors
    /// An MPI call failed: the other ranks may wait forever.
    pub fn execute(&mut self) -> Result<ImbEnding, MpiError> {
        let plan = self.plan;
        for block in plan.rows.chunk_by(same_block) {
            if self.stop.is_none() {
                self.measure_block(block)?;
            }
        }
        self.repeat_rows()?;
        if self.context.config.bare && self.stop.is_none() {
            self.compare_bare()?;
        }
        let last = std::mem::take(&mut self.recent_transfers);
        self.observer.measurement_ended(self.stop.is_none(), last);
        Ok(ImbEnding {
            outcome: self.stop.unwrap_or(RunOutcome::Complete),
            real_seconds: self.begin.elapsed().as_secs_f64(),
            verify_seconds: self.verify_seconds,
            cleanup_seconds: 0.0,
            rank_memory_high_water_bytes: high_water_bytes().unwrap_or(0),
            rank_memory_planned_bytes: self.planned_bytes,
        })
    }

    /// Compares with bare loops; an error is recorded, and the run continues.
    fn compare_bare(&mut self) -> Result<(), MpiError> {
        match bare::compare(self.world, &mut self.context, &self.backends)? {
            BareOutcome::Records(records, stop) => {
                records.into_iter().for_each(|record| self.observer.record(ImbLine::Bare(record)));
                self.stop = stop;
            }
            BareOutcome::Failed(error) => self.observer.record(ImbLine::Error(error)),
        }
        Ok(())
    }

    /// Measures the rows of one benchmark on one number of ranks; the other ranks wait.
    fn measure_block(&mut self, rows: &[PlannedRow]) -> Result<(), MpiError> {
        let Some(Ok(groups)) = rows.first().map(|row| self.plan.groups(row)) else { return Ok(()) };
        let index = self.teams.iter().position(|(existing, team)| *existing == groups && team.is_some());
        if let Some(index) = index {
            let mut previous = vec![[None; 2]; self.backends.len()];
            'rows: for row in rows {
                for (backend, previous) in previous.iter_mut().enumerate() {
                    if self.stops_before(row, backend, index)? {
                        break 'rows;
                    }
                    let of_mode = &mut previous[usize::from(row.mode == Mode::NonAggregate)];
                    *of_mode = self.measure_row(row, backend, index, *of_mode)?;
                }
            }
        }
        self.wait_for_groups(groups)?;
        self.agree_on_interrupt()
    }

    /// Runs rounds of repetitions after the first measurements. Collective over the world.
    fn repeat_rows(&mut self) -> Result<(), MpiError> {
        let (plan, mut round) = (self.plan, 0);
        while self.stop.is_none() && self.context.config.repeat.allows_another(round) {
            let mut measured = false;
            for block in plan.rows.chunk_by(same_block) {
                if self.stop.is_none() {
                    measured |= self.repeat_block(block, round)?;
                }
            }
            if !agree::any_rank(self.world, measured)? {
                break;
            }
            round += 1;
        }
        Ok(())
    }

    /// Repeats the rows of a block that need it; true if there was any.
    fn repeat_block(&mut self, rows: &[PlannedRow], round: u64) -> Result<bool, MpiError> {
        let Some(Ok(groups)) = rows.first().map(|row| self.plan.groups(row)) else { return Ok(false) };
        let index = self.teams.iter().position(|(existing, team)| *existing == groups && team.is_some());
        let mut measured = false;
        if let Some(index) = index {
            'rows: for row in rows {
                let contestants: Vec<u64> = (0..self.backends.len()).map(|n| self.row_number(row, n)).collect();
                // Variants and their backends are compared by pairs of rounds: all of them need the repetition, or none.
                let together = !self.context.config.variants.is_empty();
                let needed = match together {
                    true => vec![self.needs_repetition(&contestants, index)?; contestants.len()],
                    false => {
                        let each = contestants.chunks(1).map(|own| self.needs_repetition(own, index));
                        each.collect::<Result<_, _>>()?
                    }
                };
                // The order rotates, because the state that one leaves behind may affect the next.
                let order = (0..contestants.len()).map(|n| (n + round as usize + 1) % contestants.len());
                for backend in order.filter(|backend| needed[*backend]) {
                    if self.stops_before(row, backend, index)? {
                        break 'rows;
                    }
                    measured = true;
                    self.repeat_row(row, backend, index, round)?;
                }
            }
        }
        self.wait_for_groups(groups)?;
        self.agree_on_interrupt()?;
        Ok(measured)
    }

    /// True if rank 0 schedules a repetition of these rows, all in one round. Collective over the active ranks.
    fn needs_repetition(&self, numbers: &[u64], team: usize) -> Result<bool, MpiError> {
        let Some(team) = &self.teams[team].1 else { return Ok(false) };
        agree::any_rank(&team.active, team.active.is_root() && self.schedule.needs_repetition(numbers))
    }

    /// Number of a row over all backends, for names and data of its files.
    fn row_number(&self, row: &PlannedRow, backend: usize) -> u64 {
        (self.row_index(row) * self.backends.len() + backend) as u64
    }

    fn row_index(&self, row: &PlannedRow) -> usize {
        self.plan.rows.iter().position(|r| std::ptr::eq(r, row)).unwrap_or(0)
    }

    /// Measures and records a repetition of a row.
    fn repeat_row(&mut self, row: &PlannedRow, backend: usize, team: usize, round: u64) -> Result<(), MpiError> {
        let number = self.row_number(row, backend);
        let Some((record, repetitions)) = self.schedule.record_and_iterations(number) else { return Ok(()) };
        let (sample, name) = (sample_label(row), self.backends[backend].name.clone());
        let (ranks, next_seconds) = (count(row.ranks, "rank"), self.estimate(row, backend).row_seconds);
        self.observer.progress(&ProgressReport {
            what: format!("{} ({name}) repeated, {ranks}, {sample}", row.benchmark.name),
            done_seconds: self.done_seconds,
            // The number of rounds may be unknown.
            all_seconds: self.expected_seconds.max(self.done_seconds + next_seconds),
            stage: format!("round {}", round + 2),
            next_seconds,
            ranks: row.ranks,
            transferred: std::mem::take(&mut self.recent_transfers),
        });
        let Some(of_team) = &self.teams[team].1 else { return Ok(()) };
        // Numbers after those of the rows and of the pilot, which uses two for each kind.
        let all = (self.plan.rows.len() * self.backends.len()) as u64;
        let job = RowJob {
            row,
            backend: &self.backends[backend],
            team: of_team,
            number: (4 + round) * all + number,
            keep_files: false,
            rule: &self.plan.iterations,
            requested_iterations: repetitions,
            estimate: None,
            previous_iterations: None,
            fixed_iterations: Some(repetitions),
            during: &format!("{}, {name}, {ranks}, {sample}, round {}", row.benchmark.name, round + 2),
        };
        let outcome = measure(&mut self.context, &job)?;
        self.done_seconds += outcome.record.real_seconds;
        self.schedule.add_repetition(number, &outcome.record);
        self.record(outcome, |measured| {
            ImbLine::Repetition(Box::new(RowRepetition { row: record, measurement: measured }))
        });
        Ok(())
    }

    /// Measures and records one row; returns its iterations.
    fn measure_row(
        &mut self,
        row: &PlannedRow,
        backend: usize,
        team: usize,
        previous: Option<u64>,
    ) -> Result<Option<u64>, MpiError> {
        let foreseen = self.estimate(row, backend);
        let sample = sample_label(row);
        let (name, ranks) = (self.backends[backend].name.clone(), row.ranks);
        self.observer.progress(&ProgressReport {
            what: format!("{} ({name}), {}, {sample}", row.benchmark.name, count(ranks, "rank")),
            done_seconds: self.done_seconds,
            all_seconds: self.expected_seconds,
            stage: format!("{}, {}", row.benchmark.name, count(ranks, "rank")),
            next_seconds: foreseen.row_seconds,
            ranks,
            transferred: std::mem::take(&mut self.recent_transfers),
        });
        let Some(of_team) = &self.teams[team].1 else { return Ok(None) };
        let (at, number) = (self.row_index(row), self.row_number(row, backend));
        let job = RowJob {
            row,
            backend: &self.backends[backend],
            team: of_team,
            number,
            keep_files: self.context.config.keep_files && self.is_last_of_benchmark(at),
            rule: &self.plan.iterations,
            requested_iterations: self.plan.max_iterations(row),
            estimate: self.pilot.estimate(row, backend, self.plan.max_iterations(row)),
            previous_iterations: previous,
            fixed_iterations: None,
            during: &format!(
                "{}, {name}, {ranks} rank{}, {sample}",
                row.benchmark.name,
                if ranks == 1 { "" } else { "s" }
            ),
        };
        let outcome = measure(&mut self.context, &job)?;
        self.done_seconds += foreseen.row_seconds;
        self.schedule.add_first(number, &outcome.record);
        Ok(self.record(outcome, |record| ImbLine::Row(Box::new(record))))
    }

    fn record(&mut self, outcome: RowOutcome, line: impl Fn(RowRecord) -> ImbLine) -> Option<u64> {
        let RowOutcome { record, error, corruption, verify_seconds } = outcome;
        self.verify_seconds += verify_seconds;
        self.recent_transfers.extend(transferred(&record));
        let repetitions = (record.ended == RowStatus::Complete).then_some(record.iterations);
        self.observer.record(line(record));
        self.context.corruptions.extend(corruption);
        error.map(ImbLine::Error).into_iter().for_each(|line| self.observer.record(line));
        self.record_findings();
        repetitions
    }

    fn record_findings(&mut self) {
        let corruptions = std::mem::take(&mut self.context.corruptions).into_iter().map(ImbLine::Corruption);
        let warnings = std::mem::take(&mut self.context.warnings).into_iter().map(ImbLine::Warning);
        corruptions.chain(warnings).for_each(|line| self.observer.record(line));
    }

    fn is_last_of_benchmark(&self, at: usize) -> bool {
        let name = |row: &PlannedRow| row.benchmark.name;
        self.plan.rows.get(at + 1).is_none_or(|next| name(next) != name(&self.plan.rows[at]))
    }

    /// Ranks outside the groups wait here without busy polling.
    fn wait_for_groups(&self, groups: Groups) -> Result<(), MpiError> {
        if groups.ranks * groups.groups < self.world.size() {
            self.world.idle_barrier()?;
        }
        Ok(())
    }

    /// True if the run ends before this row: after a signal on any rank of the team, or if the row would last beyond the time limit.
    fn stops_before(&mut self, row: &PlannedRow, backend: usize, team: usize) -> Result<bool, MpiError> {
        let seconds = self.estimate(row, backend).row_seconds;
        if let Some(team) = &self.teams[team].1 {
            self.stop = self.context.interrupt.agree(&team.active, seconds)?;
        }
        Ok(self.stop.is_some())
    }

    fn agree_on_interrupt(&mut self) -> Result<(), MpiError> {
        self.stop = self.context.interrupt.agree_on_stop(self.world, self.stop)?;
        Ok(())
    }
}

/// Bytes for the data of one rank.
#[must_use]
pub fn data_bytes(plan: &ImbPlan, config: &ImbConfig) -> u64 {
    bare::memory_bytes(config).max(plan.memory_bytes())
}

fn same_block(a: &PlannedRow, b: &PlannedRow) -> bool {
    std::ptr::eq::<ImbBenchmark>(a.benchmark, b.benchmark) && a.ranks == b.ranks
}

fn sample_label(row: &PlannedRow) -> String {
    let mode = match row.mode {
        Mode::Aggregate => "aggregate",
        Mode::NonAggregate => "non-aggregate",
    };
    match row.sample_bytes {
        Some(bytes) if row.benchmark.has_non_aggregate() => format!("{mode}, {bytes} bytes"),
        Some(bytes) => format!("{bytes} bytes"),
        None => "open and close".into(),
    }
}

fn transferred(record: &RowRecord) -> Option<TransferVolume> {
    let slowest = record.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max);
    let moved = |bytes: u64| TransferVolume {
        who: record.backend.clone(),
        bytes: bytes.saturating_mul(record.iterations),
        seconds: slowest * record.iterations as f64,
    };
    record.sample_bytes.map(moved)
}

/// Options of the driver of this contestant, for files in the run directory.
#[must_use]
pub fn driver_options(config: &ImbConfig, run_dir: &RunDir, name: &str) -> DriverOptions {
    DriverOptions {
        direct_trial: run_dir.direct_trial(),
        direct: config.direct_of(name).into(),
        queue_depth: config.queue_depth_of(name),
        unique_open: config.unique_open,
        ..DriverOptions::default()
    }
}

fn make_backend(
    config: &ImbConfig,
    run_dir: &RunDir,
    name: &str,
    not_run: &[SkippedBackend],
) -> Option<ConfiguredBackend> {
    let row = backends::row(name)?;
    let options = driver_options(config, run_dir, name);
    Some(ConfiguredBackend {
        name: name.to_owned(),
        hints: if row.has_hints { config.hints_of(name) } else { Vec::new() },
        driver: (row.create)(&options),
        options,
        moves_data: row.uses_space,
        is_mpi: row.is_collective_native,
        unavailable_reason: availability::skip_reason(not_run, name).map(str::to_owned),
    })
}
