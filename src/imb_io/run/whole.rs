//! The whole measurement: pilot, announcement, row after row.

use beff_backends::{driver, DriverOptions, Latency, Ring};
use beff_ffi::{Comm, MpiError};

use super::again::Again;
use super::bare::{self, Compared};
use super::job::{Backend, Foreseen, RowJob};
use super::load::Load;
use super::outcome::RowOutcome;
use super::pilot::Pilot;
use super::row::measure;
use super::team::Team;
use super::{Bench, LAPS};
use crate::frame::config::Repeat;
use crate::frame::records::Outcome;
use crate::frame::run::able;
use crate::frame::run::able::NotRun;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{agree, Moved, Observer, Standing};
use crate::frame::system::memory::high_water_bytes;
use crate::frame::units::count;
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::processes::Groups;
use crate::imb_io::plan::repetitions::Measured;
use crate::imb_io::plan::{Benchmark, ImbPlan, Mode, Row};
use crate::imb_io::records::{CpuLoad, ImbAnnouncement, ImbEnding, ImbLine, RowEnd, RowRecord, RowRepeat};

/// Periods and windows need at least this.
const LEAST_BYTES: u64 = 4096;

/// A run under way.
pub struct Run<'a> {
    world: &'a Comm,
    plan: &'a ImbPlan,
    observer: &'a mut dyn Observer<ImbLine>,
    bench: Bench<'a>,
    backends: Vec<Backend>,
    /// For each number of ranks and groups in the plan; None where this rank waits.
    teams: Vec<(Groups, Option<Team>)>,
    pilot: Pilot,
    again: Again,
    begin: Instant,
    expected_seconds: f64,
    done_seconds: f64,
    verify_seconds: f64,
    interrupted: bool,
    planned_bytes: u64,
    last: Vec<Moved>,
}

impl<'a> Run<'a> {
    /// Maps the memory of the transfers and makes the drivers. Not collective.
    ///
    /// # Errors
    /// Memory that cannot be mapped, this rank's.
    pub fn new(
        world: &'a Comm,
        plan: &'a ImbPlan,
        config: &'a ImbConfig,
        run_dir: &'a RunDir,
        interrupt: &'a Interrupt,
        not_run: &[NotRun],
        observer: &'a mut dyn Observer<ImbLine>,
    ) -> Result<Self, String> {
        let begin = Instant::now();
        let planned_bytes = data_bytes(plan, config);
        let windows_bytes = planned_bytes.max(LEAST_BYTES).next_multiple_of(LEAST_BYTES);
        // Periods are whole calls: none goes beyond the end.
        let ring = Ring::new(windows_bytes, 0)
            .map_err(|e| format!("rank {}: {windows_bytes} bytes for data: {e}", world.rank()))?;
        let laps = plan.rows.iter().map(|row| plan.most(row)).max().unwrap_or(1).min(LAPS);
        let backends = config.backends.iter().filter_map(|name| backend(config, name, not_run)).collect();
        Ok(Self {
            world,
            plan,
            observer,
            bench: Bench {
                config,
                run_dir,
                ring,
                laps: Latency::laps(laps as usize),
                warnings: Vec::new(),
                corruptions: Vec::new(),
                interrupt,
                load: None,
            },
            backends,
            teams: Vec::new(),
            pilot: Pilot::default(),
            again: Again::new(config.repeat, config.until_share, plan.repetitions.limit_seconds),
            begin,
            expected_seconds: 0.0,
            done_seconds: 0.0,
            verify_seconds: 0.0,
            interrupted: false,
            planned_bytes: windows_bytes,
            last: Vec::new(),
        })
    }

    /// Flies the pilot and says how long the rows will take. Collective over the world.
    ///
    /// # Errors
    /// An MPI call that failed.
    pub fn announce(&mut self) -> Result<ImbAnnouncement, MpiError> {
        for row in &self.plan.rows {
            let Ok(groups) = self.plan.groups(row) else { continue };
            if !self.teams.iter().any(|(made, _)| *made == groups) {
                self.teams.push((groups, Team::make(self.world, groups, self.bench.run_dir.path())?));
            }
        }
        let mut cpu_load = None;
        if self.plan.benchmarks.iter().any(|benchmark| benchmark.has_overlap()) {
            let (load, calibration_error) = Load::calibrate(self.world)?;
            self.bench.load = Some(load);
            cpu_load = Some(CpuLoad { unit_seconds: load.unit_seconds, calibration_error });
        }
        for (groups, team) in &self.teams {
            if let Some(team) = team {
                let errors = self.pilot.fly(&mut self.bench, self.plan, team, &self.backends)?;
                errors.into_iter().for_each(|error| self.observer.record(ImbLine::Error(error)));
            }
            self.wait(*groups)?;
        }
        self.tell_findings();
        self.agree_on_stop()?;
        let pilot_seconds = self.begin.elapsed().as_secs_f64();
        let backends = 0..self.backends.len();
        let rows = self.plan.rows.iter().flat_map(|row| backends.clone().map(move |backend| (row, backend)));
        let runs: Vec<_> = rows.filter(|(row, backend)| self.pilot.foresee(row, *backend, 1).is_some()).collect();
        let rounds = match self.bench.config.repeat {
            Repeat::Times(times) => 1.0 + times as f64,
            // How many there will be nobody knows.
            Repeat::Auto | Repeat::Off => 1.0,
        };
        let first: f64 = runs.iter().map(|(row, backend)| self.foresee(row, *backend).row_seconds).sum();
        let rows_seconds = rounds * first;
        let beside_seconds = pilot_seconds + bare::expected_seconds(self.bench.config);
        self.expected_seconds = beside_seconds + rows_seconds;
        self.done_seconds = pilot_seconds;
        let announcement = ImbAnnouncement {
            expected_seconds: self.expected_seconds,
            limit_seconds: self
                .plan
                .repetitions
                .bound_seconds(runs.len() as u64)
                .map(|rows| (rounds * rows + beside_seconds).max(self.expected_seconds)),
            pilot_seconds,
            cpu_load,
        };
        self.observer.record(ImbLine::Announcement(announcement.clone()));
        Ok(announcement)
    }

    /// A row with as many repetitions as its time allows; nothing where its kind cannot run.
    fn foresee(&self, row: &Row, backend: usize) -> Foreseen {
        let most = self.plan.most(row);
        let Some(all) = self.pilot.foresee(row, backend, most) else { return Foreseen::default() };
        let measured = Measured { repetition_seconds: all.step_seconds, spent_seconds: all.fixed_seconds };
        let steps = self.plan.repetitions.reduced(most, &measured, None);
        self.pilot.foresee(row, backend, steps).unwrap_or_default()
    }

    /// Measures all rows. Collective over the world.
    ///
    /// # Errors
    /// An MPI call that failed: the other ranks may wait for ever.
    pub fn execute(&mut self) -> Result<ImbEnding, MpiError> {
        let plan = self.plan;
        for block in plan.rows.chunk_by(same_block) {
            if !self.interrupted {
                self.block(block)?;
            }
        }
        self.repeat()?;
        if self.bench.config.bare && !self.interrupted {
            self.compare_bare()?;
        }
        let last = std::mem::take(&mut self.last);
        self.observer.measured(!self.interrupted, last);
        Ok(ImbEnding {
            outcome: if self.interrupted { Outcome::Interrupted } else { Outcome::Complete },
            real_seconds: self.begin.elapsed().as_secs_f64(),
            verify_seconds: self.verify_seconds,
            cleanup_seconds: 0.0,
            rank_memory_high_water_bytes: high_water_bytes().unwrap_or(0),
            rank_memory_planned_bytes: self.planned_bytes,
        })
    }

    /// Beside bare loops; the error of all ranks is recorded, and ends nothing else.
    fn compare_bare(&mut self) -> Result<(), MpiError> {
        match bare::compare(self.world, &mut self.bench, &self.backends)? {
            Compared::Records(records, interrupted) => {
                records.into_iter().for_each(|record| self.observer.record(ImbLine::Bare(record)));
                self.interrupted |= interrupted;
            }
            Compared::Failed(error) => self.observer.record(ImbLine::Error(error)),
        }
        Ok(())
    }

    /// The rows of one benchmark on one number of ranks; the other ranks wait until its end.
    fn block(&mut self, rows: &[Row]) -> Result<(), MpiError> {
        let Some(Ok(groups)) = rows.first().map(|row| self.plan.groups(row)) else { return Ok(()) };
        let index = self.teams.iter().position(|(made, team)| *made == groups && team.is_some());
        if let Some(index) = index {
            let mut previous = vec![[None; 2]; self.backends.len()];
            'rows: for row in rows {
                for (backend, previous) in previous.iter_mut().enumerate() {
                    let of_mode = &mut previous[usize::from(row.mode == Mode::NonAggregate)];
                    *of_mode = self.row(row, backend, index, *of_mode)?;
                    if self.raised(index)? {
                        self.interrupted = true;
                        break 'rows;
                    }
                }
            }
        }
        self.wait(groups)?;
        self.agree_on_stop()
    }

    /// Rounds over the rows that are wanted again, behind the first one. Collective over the world.
    fn repeat(&mut self) -> Result<(), MpiError> {
        let (plan, mut round) = (self.plan, 0);
        while !self.interrupted && self.bench.config.repeat.goes_on_after(round) {
            let mut measured = false;
            for block in plan.rows.chunk_by(same_block) {
                if !self.interrupted {
                    measured |= self.block_again(block, round)?;
                }
            }
            if !agree::any(self.world, measured)? {
                break;
            }
            round += 1;
        }
        Ok(())
    }

    /// The rows of a block that are wanted once more; whether there was any.
    fn block_again(&mut self, rows: &[Row], round: u64) -> Result<bool, MpiError> {
        let Some(Ok(groups)) = rows.first().map(|row| self.plan.groups(row)) else { return Ok(false) };
        let index = self.teams.iter().position(|(made, team)| *made == groups && team.is_some());
        let mut measured = false;
        if let Some(index) = index {
            'rows: for row in rows {
                for backend in 0..self.backends.len() {
                    if !self.is_wanted(self.number(row, backend), index)? {
                        continue;
                    }
                    measured = true;
                    self.row_again(row, backend, index, round)?;
                    if self.raised(index)? {
                        self.interrupted = true;
                        break 'rows;
                    }
                }
            }
        }
        self.wait(groups)?;
        self.agree_on_stop()?;
        Ok(measured)
    }

    /// Whether rank 0 wants a row again. Collective over the active ranks.
    fn is_wanted(&self, number: u64, team: usize) -> Result<bool, MpiError> {
        let Some(team) = &self.teams[team].1 else { return Ok(false) };
        agree::any(&team.active, team.active.is_root() && self.again.wants(number))
    }

    /// Names files and makes data of a row.
    fn number(&self, row: &Row, backend: usize) -> u64 {
        (self.place(row) * self.backends.len() + backend) as u64
    }

    fn place(&self, row: &Row) -> usize {
        self.plan.rows.iter().position(|r| std::ptr::eq(r, row)).unwrap_or(0)
    }

    /// Measures and records a row once more.
    fn row_again(&mut self, row: &Row, backend: usize, team: usize, round: u64) -> Result<(), MpiError> {
        let number = self.number(row, backend);
        let Some((record, repetitions)) = self.again.of(number) else { return Ok(()) };
        let (sample, name) = (sample(row), self.backends[backend].name.clone());
        let ranks = count(row.ranks, "rank");
        self.observer.progress(&Standing {
            what: format!("{} ({name}) again, {ranks}, {sample}", row.benchmark.name),
            done_seconds: self.done_seconds,
            all_seconds: self.expected_seconds.max(self.done_seconds),
            stage: format!("round {}", round + 2),
            next_seconds: self.foresee(row, backend).row_seconds,
            ranks: row.ranks,
            last: std::mem::take(&mut self.last),
        });
        let Some(of_team) = &self.teams[team].1 else { return Ok(()) };
        // Behind those of the rows and of the pilot, which has two of each kind.
        let all = (self.plan.rows.len() * self.backends.len()) as u64;
        let job = RowJob {
            row,
            backend: &self.backends[backend],
            team: of_team,
            number: (4 + round) * all + number,
            keep: false,
            rule: &self.plan.repetitions,
            wanted: repetitions,
            foreseen: None,
            previous: None,
            fixed: Some(repetitions),
            during: &format!("{}, {name}, {ranks}, {sample}, round {}", row.benchmark.name, round + 2),
        };
        let outcome = measure(&mut self.bench, &job)?;
        self.done_seconds += outcome.record.real_seconds;
        self.again.take_in(number, &outcome.record);
        self.record(outcome, |measured| ImbLine::Repeat(Box::new(RowRepeat { row: record, measured })));
        Ok(())
    }

    /// Measures and records one row; its repetitions.
    fn row(&mut self, row: &Row, backend: usize, team: usize, previous: Option<u64>) -> Result<Option<u64>, MpiError> {
        let foreseen = self.foresee(row, backend);
        let sample = sample(row);
        let (name, ranks) = (self.backends[backend].name.clone(), row.ranks);
        self.observer.progress(&Standing {
            what: format!("{} ({name}), {}, {sample}", row.benchmark.name, count(ranks, "rank")),
            done_seconds: self.done_seconds,
            all_seconds: self.expected_seconds,
            stage: format!("{}, {}", row.benchmark.name, count(ranks, "rank")),
            next_seconds: foreseen.row_seconds,
            ranks,
            last: std::mem::take(&mut self.last),
        });
        let Some(of_team) = &self.teams[team].1 else { return Ok(None) };
        let (at, number) = (self.place(row), self.number(row, backend));
        let job = RowJob {
            row,
            backend: &self.backends[backend],
            team: of_team,
            number,
            keep: self.bench.config.keep_files && self.is_last(at),
            rule: &self.plan.repetitions,
            wanted: self.plan.most(row),
            foreseen: self.pilot.foresee(row, backend, self.plan.most(row)),
            previous,
            fixed: None,
            during: &format!(
                "{}, {name}, {ranks} rank{}, {sample}",
                row.benchmark.name,
                if ranks == 1 { "" } else { "s" }
            ),
        };
        let outcome = measure(&mut self.bench, &job)?;
        self.done_seconds += foreseen.row_seconds;
        self.again.first(number, &outcome.record);
        Ok(self.record(outcome, |record| ImbLine::Row(Box::new(record))))
    }

    fn record(&mut self, outcome: RowOutcome, line: impl Fn(RowRecord) -> ImbLine) -> Option<u64> {
        let RowOutcome { record, error, corruption, verify_seconds } = outcome;
        self.verify_seconds += verify_seconds;
        self.last.extend(moved(&record));
        let repetitions = (record.ended == RowEnd::Complete).then_some(record.repetitions);
        self.observer.record(line(record));
        self.bench.corruptions.extend(corruption);
        error.map(ImbLine::Error).into_iter().for_each(|line| self.observer.record(line));
        self.tell_findings();
        repetitions
    }

    /// What files of rows and of trials have brought.
    fn tell_findings(&mut self) {
        let corruptions = std::mem::take(&mut self.bench.corruptions).into_iter().map(ImbLine::Corruption);
        let warnings = std::mem::take(&mut self.bench.warnings).into_iter().map(ImbLine::Warning);
        corruptions.chain(warnings).for_each(|line| self.observer.record(line));
    }

    /// The last row of its benchmark.
    fn is_last(&self, at: usize) -> bool {
        let name = |row: &Row| row.benchmark.name;
        self.plan.rows.get(at + 1).is_none_or(|next| name(next) != name(&self.plan.rows[at]))
    }

    /// Ranks outside the groups wait here for the others without burning their cores.
    fn wait(&self, groups: Groups) -> Result<(), MpiError> {
        if groups.ranks * groups.groups < self.world.size() {
            self.world.idle_barrier()?;
        }
        Ok(())
    }

    /// Whether a signal came, on any rank of a team.
    fn raised(&self, team: usize) -> Result<bool, MpiError> {
        let raised = self.bench.interrupt.raised();
        self.teams[team].1.as_ref().map_or(Ok(raised), |team| agree::any(&team.active, raised))
    }

    fn agree_on_stop(&mut self) -> Result<(), MpiError> {
        self.interrupted = agree::any(self.world, self.interrupted || self.bench.interrupt.raised())?;
        Ok(())
    }
}

/// Bytes for the data of one rank.
#[must_use]
pub fn data_bytes(plan: &ImbPlan, config: &ImbConfig) -> u64 {
    bare::memory_bytes(config).max(plan.memory_bytes())
}

fn same_block(a: &Row, b: &Row) -> bool {
    std::ptr::eq::<Benchmark>(a.benchmark, b.benchmark) && a.ranks == b.ranks
}

fn sample(row: &Row) -> String {
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

fn moved(record: &RowRecord) -> Option<Moved> {
    let slowest = record.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max);
    let moved = |bytes: u64| Moved {
        who: record.backend.clone(),
        bytes: bytes.saturating_mul(record.repetitions),
        seconds: slowest * record.repetitions as f64,
    };
    record.sample_bytes.map(moved)
}

/// What the configuration means for the driver of this name.
#[must_use]
pub fn driver_options(config: &ImbConfig, name: &str) -> DriverOptions {
    DriverOptions {
        direct: config.direct.of(name).into(),
        queue_depth: config.queue_depth,
        unique_open: config.unique_open,
        ..DriverOptions::default()
    }
}

fn backend(config: &ImbConfig, name: &str, not_run: &[NotRun]) -> Option<Backend> {
    let row = driver(name)?;
    let options = driver_options(config, name);
    Some(Backend {
        name: row.name.to_owned(),
        driver: (row.make)(&options),
        moves_data: row.uses_space,
        is_mpi: row.is_collective_native,
        why_not: able::reason(not_run, row.name).map(str::to_owned),
    })
}
