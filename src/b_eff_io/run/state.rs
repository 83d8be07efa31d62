//! State of a run on one rank: what it works with, and what it has measured so far.

use std::io;
use std::path::Path;

use beff_backends::{BackendError, Driver, DriverOptions, DriverRow, OpenFile, TransferBuffer, UnavailableDriver};
use beff_ffi::{Comm, MpiError};
use beff_statistics::bootstrap::MIN_ROUNDS;
use nix::libc;

use crate::b_eff_io::config::{BufferPolicy, CallOrder, Config, CorruptionPolicy};
use crate::b_eff_io::plan::memory::shares_memory;
use crate::b_eff_io::plan::run::RunPlan;
use crate::b_eff_io::plan::two_phase;
use crate::b_eff_io::records::{CorruptionRecord, JournalLine, Verification};
use crate::b_eff_io::run::batching::SyncModel;
use crate::b_eff_io::run::cut_run::CutRun;
use crate::b_eff_io::run::drivers::driver_options;
use crate::b_eff_io::run::files::TypeFile;
use crate::b_eff_io::run::first_measurement::{FirstMeasurement, TypeDuration};
use crate::b_eff_io::run::kernel_counters::KernelCounters;
use crate::b_eff_io::run::measurement::LoopRecorder;
use crate::b_eff_io::run::peak_memory::PeakMemory;
use crate::b_eff_io::run::run_limit::RunLimit;
use crate::b_eff_io::run::verify::{Findings, StampedData};
use crate::frame::backends;
use crate::frame::records::{AccessMethod, ErrorRecord, RunOutcome};
use crate::frame::run::agree::{collect, first_message};
use crate::frame::run::availability;
use crate::frame::run::availability::SkippedBackend;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{error_agreement, RunObserver, TransferVolume};
use crate::frame::units::count;
use crate::frame::values::MPI_IO;
use beff_stamp::{Generation, StampStream};

/// Time for a sample of a short pattern, unless a run needs less.
const SAMPLE_SECONDS: f64 = 0.5;

/// A contestant of the run, which is a backend or a variant of one, and its state.
pub struct BackendState {
    /// Its name.
    pub name: String,
    /// Its backend.
    pub row: &'static DriverRow,
    /// The driver.
    pub driver: Box<dyn Driver>,
    /// The driver's options.
    pub options: DriverOptions,
    /// False for the null backend and for one that is not run: nothing to verify.
    pub moves_data: bool,
    /// False if it cannot run here.
    pub is_run: bool,
    /// True once a verification found wrong data. Equal on the ranks of a partition.
    pub has_wrong_data: bool,
    /// Kernel counters; only for libraries whose reports are not verified otherwise.
    pub counters: Option<KernelCounters>,
    /// Prediction of its syncs.
    pub sync: SyncModel,
    /// From the writes before the first pattern, all ranks; None without them.
    pub calibrated_bytes_per_second: Option<f64>,
    /// Time by which the access method is behind its schedule on the current partition.
    pub debt_seconds: f64,
}

impl BackendState {
    /// Replaces the driver by one with other options.
    pub fn replace_driver(&mut self, options: DriverOptions) {
        self.driver = (self.row.create)(&options);
        self.options = options;
    }

    /// Runs nothing any more; each of its patterns gets the reason.
    fn disable(&mut self, reason: &str) {
        self.driver = Box::new(UnavailableDriver { reason: reason.to_owned() });
        (self.moves_data, self.is_run) = (false, false);
    }
}

/// State of a run. One per rank.
pub struct RunState<'a> {
    /// All ranks.
    pub world: &'a Comm,
    /// The configuration.
    pub config: &'a Config,
    /// The plan.
    pub plan: &'a RunPlan,
    /// Directory of the files.
    pub run_dir: &'a RunDir,
    /// Signals.
    pub interrupt: &'a Interrupt,
    /// Receives records and progress.
    pub observer: &'a mut dyn RunObserver<JournalLine>,
    /// Backends in turn.
    pub backends: Vec<BackendState>,
    /// The transfer buffer.
    pub buffer: TransferBuffer,
    /// Preallocated memory in which loops record batches and decisions.
    pub recorder: LoopRecorder,
    /// Identity of the stamped data.
    pub data: StampedData,
    /// Files of all partitions, types and backends.
    pub files: Vec<TypeFile>,
    /// Number of hosts; that of this rank is in the recorder.
    pub hosts: usize,
    /// Time limit; None without one.
    pub limit: Option<RunLimit>,
    /// Why the run stops; None while it continues.
    pub stop: Option<RunOutcome>,
    /// Time of verification by rereading so far.
    pub full_verify_seconds: f64,
    /// Longest time for a sample of a short pattern.
    pub sample_seconds: f64,
    /// Scheduled time of the completed patterns.
    pub done_seconds: f64,
    /// Time limit of the run, or its scheduled time.
    pub all_seconds: f64,
    /// Transfers since the last progress report.
    pub unreported: Vec<TransferVolume>,
    /// Peak memory of this rank.
    pub peak_memory: PeakMemory,
    /// Start of the run.
    pub begin: Instant,
    /// The run that this one continues.
    pub cut: Option<&'a CutRun>,
    /// Start of the patterns of this run, relative to it, and the scheduled time of those completed before.
    pub patterns_begin: (f64, f64),
    /// First measurements of the patterns.
    pub first_measurements: Vec<FirstMeasurement>,
    /// Durations of the types in the first measurement.
    pub type_durations: Vec<TypeDuration>,
    /// Patterns that a repetition could not run, with the reason.
    pub refusals: Vec<(u8, String)>,
    buffer_content: Option<(Generation, u64)>,
}

/// State of a contestant before its first pattern; its driver is a substitute if it is `not_run`. None if this build lacks its backend.
fn backend_state(config: &Config, run_dir: &RunDir, name: &str, not_run: &[SkippedBackend]) -> Option<BackendState> {
    let row = backends::row(name)?;
    let why_not = availability::skip_reason(not_run, name);
    let options = driver_options(config, run_dir, name);
    Some(BackendState {
        name: name.to_owned(),
        row,
        driver: match why_not {
            Some(reason) => Box::new(UnavailableDriver { reason: reason.to_owned() }),
            None => (row.create)(&options),
        },
        options,
        moves_data: row.uses_space && why_not.is_none(),
        is_run: why_not.is_none(),
        has_wrong_data: false,
        counters: (row.name == MPI_IO).then(KernelCounters::default),
        sync: SyncModel::default(),
        calibrated_bytes_per_second: None,
        debt_seconds: 0.0,
    })
}

/// Allocates the transfer buffer of a run; in shared memory if ranks may copy from each other's.
///
/// # Errors
/// The error of the kernel, for the user.
pub fn allocate_buffer(world: &Comm, config: &Config, plan: &RunPlan) -> Result<TransferBuffer, String> {
    map_buffer(world, plan, shares_memory(config, world.size()))
}

fn map_buffer(world: &Comm, plan: &RunPlan, is_shared: bool) -> Result<TransferBuffer, String> {
    let new_buffer = if is_shared { TransferBuffer::new_shareable } else { TransferBuffer::new };
    new_buffer(plan.period_bytes, plan.tail_bytes).map_err(|e| {
        format!(
            "rank {} cannot allocate {} bytes of transfer memory: {e}; {}",
            world.rank(),
            plan.period_bytes + plan.tail_bytes,
            next_step(&e)
        )
    })
}

impl<'a> RunState<'a> {
    /// Allocates everything. Drivers of the backends `not_run` are not created; each of their patterns gets the reason.
    ///
    /// # Errors
    /// The error of the kernel if memory cannot be allocated, for the user.
    pub fn new(
        world: &'a Comm,
        config: &'a Config,
        plan: &'a RunPlan,
        run_dir: &'a RunDir,
        interrupt: &'a Interrupt,
        not_run: &[SkippedBackend],
        observer: &'a mut dyn RunObserver<JournalLine>,
    ) -> Result<Self, String> {
        let is_run = |name: &str| availability::skip_reason(not_run, name).is_none();
        let is_shared = shares_memory(config, world.size())
            && config.backends.iter().any(|name| is_run(name) && two_phase::is_possible(config, name));
        let buffer = map_buffer(world, plan, is_shared)?;
        Ok(Self::with_buffer(world, (config, plan), run_dir, interrupt, not_run, observer, buffer))
    }

    /// State with a transfer buffer of [`allocate_buffer`].
    #[must_use]
    pub fn with_buffer(
        world: &'a Comm,
        (config, plan): (&'a Config, &'a RunPlan),
        run_dir: &'a RunDir,
        interrupt: &'a Interrupt,
        not_run: &[SkippedBackend],
        observer: &'a mut dyn RunObserver<JournalLine>,
        buffer: TransferBuffer,
    ) -> Self {
        let state = |name: &String| backend_state(config, run_dir, name, not_run);
        let backends = config.backends.iter().filter_map(state).collect();
        let recorder = LoopRecorder::new(config.latency, observer.byte_counter());
        Self {
            world,
            config,
            plan,
            run_dir,
            interrupt,
            observer,
            backends,
            buffer,
            recorder,
            data: StampedData {
                seed: config.seed,
                period_bytes: plan.period_bytes,
                reused: config.buffers == BufferPolicy::Reused,
            },
            files: Vec::new(),
            hosts: 1,
            limit: None,
            stop: None,
            full_verify_seconds: 0.0,
            sample_seconds: SAMPLE_SECONDS,
            done_seconds: 0.0,
            all_seconds: plan.planned_seconds(config),
            unreported: Vec::new(),
            peak_memory: PeakMemory::default(),
            begin: Instant::now(),
            cut: None,
            patterns_begin: (0.0, 0.0),
            first_measurements: Vec::new(),
            type_durations: Vec::new(),
            refusals: Vec::new(),
            buffer_content: None,
        }
    }

    /// Fills the transfer buffer with the data of a generation, with period `period_bytes`, unless it has them already, and sets the period
    /// of its windows. Outside every clock.
    pub fn fill_buffer(&mut self, generation: Generation, period_bytes: u64) {
        if self.buffer_content != Some((generation, period_bytes)) {
            let rank = self.world.rank();
            StampStream::new(self.data.seed, generation, rank, period_bytes).fill(self.buffer.bytes_mut());
            self.buffer_content = Some((generation, period_bytes));
        }
        self.buffer.set_period_bytes(period_bytes);
    }

    /// Time since the start, including that of the run that this one continues.
    #[must_use]
    pub fn elapsed_seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64() + self.cut.map_or(0.0, CutRun::used_seconds)
    }

    /// First measurement of a pattern; None without one.
    #[must_use]
    pub fn first_measurement(
        &self,
        backend: usize,
        ranks: u64,
        access: AccessMethod,
        pattern: u8,
    ) -> Option<FirstMeasurement> {
        let is_it = |p: &&FirstMeasurement| {
            p.backend == backend && p.ranks == ranks && p.access == access && p.pattern == pattern
        };
        self.first_measurements.iter().find(is_it).copied()
    }

    /// True if several backends were measured and one of them made too few rounds of the pattern for a comparison.
    #[must_use]
    pub fn has_few_rounds(&self, ranks: u64, access: AccessMethod, pattern: u8) -> bool {
        let is_rival = |p: &&FirstMeasurement| {
            let own = p.ranks == ranks && p.access == access && p.pattern == pattern;
            own && p.calls > 0 && self.backends[p.backend].moves_data
        };
        let rivals = || self.first_measurements.iter().filter(is_rival);
        rivals().count() > 1 && rivals().any(|p| (p.rounds as usize) < MIN_ROUNDS)
    }

    /// Marks the contents of the transfer buffer as invalid, before reads.
    pub fn invalidate_buffer(&mut self) {
        self.buffer_content = None;
    }

    /// Records an error known to all ranks; the run will stop.
    pub fn fail(&mut self, error: ErrorRecord) {
        self.observer.record(JournalLine::Error(error));
        self.stop = Some(RunOutcome::Failed);
    }

    /// Agrees on an error of any rank; true if there is one, which ends the run. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn agree_on_error(&mut self, comm: &Comm, mine: Option<&BackendError>, during: &str) -> Result<bool, MpiError> {
        let record = error_agreement::first_error(comm, mine, during)?;
        let failed = record.is_some();
        record.into_iter().for_each(|record| self.fail(record));
        Ok(failed)
    }

    /// Hints in force as the library reports them; a failure of the query is recorded as an error.
    pub fn granted_hints(&mut self, file: &dyn OpenFile, during: &str) -> Vec<(String, String)> {
        file.hints_in_use().unwrap_or_else(|e| {
            let next_step = "the hints in force are unknown; the measurement continues";
            self.observer.record(JournalLine::Error(ErrorRecord::of_rank(0, during, e.to_string(), next_step)));
            Vec::new()
        })
    }

    /// Ends the run if requested.
    fn note_wrong_data(&mut self, backend: usize, words_wrong: u64) {
        let found = &mut self.backends[backend];
        found.has_wrong_data = true;
        if self.config.on_corruption == CorruptionPolicy::End && self.stop.is_none() {
            let message = format!("{}: {} wrong; the run ends", found.name, count(words_wrong, "word"));
            let next_step = "examine this backend; --on-corruption skip measures the others nevertheless";
            self.fail(ErrorRecord::of_rank(0, "verification with --on-corruption end", message, next_step));
        }
    }

    /// With `--on-corruption skip`, contestants with wrong data are not run any more. Between types, when no file is open; on all ranks of a
    /// partition, or of the run.
    pub fn skip_corrupt(&mut self) {
        if self.config.on_corruption == CorruptionPolicy::Skip {
            let corrupt = self.backends.iter_mut().filter(|backend| backend.has_wrong_data && backend.is_run);
            corrupt.for_each(|backend| backend.disable("its data was wrong before (--on-corruption skip)"));
        }
    }

    /// Sums over all ranks; corruptions are recorded, with the order of a measurement `beside` the definition. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn report_findings(
        &mut self,
        comm: &Comm,
        backend: usize,
        beside: Option<CallOrder>,
        findings: &Findings,
    ) -> Result<Findings, MpiError> {
        let mine = findings.verification;
        let mut sums = [mine.words_checked, mine.words_wrong, findings.past_cache_bytes, findings.samples_read];
        comm.sum_u64(&mut sums)?;
        if sums[1] > 0 {
            for found in collect(comm, findings.corruptions.clone())? {
                let (order, mix) = (beside.map(|beside| beside.order), beside.and_then(|beside| beside.mix));
                let file = self.run_dir.located(Path::new(&found.file)).display().to_string();
                self.observer.record(JournalLine::Corruption(CorruptionRecord { order, mix, file, ..found }));
            }
            self.note_wrong_data(backend, sums[1]);
        }
        let [words_checked, words_wrong, past_cache_bytes, places_read] = sums;
        let verification = Verification { words_checked, words_wrong };
        Ok(Findings { verification, past_cache_bytes, samples_read: places_read, corruptions: Vec::new() })
    }
}

/// The contestants that copy from each other's memory, where a rank is not permitted to share its own: they are not run. Equal on all ranks.
/// Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn find_unshareable(
    world: &Comm,
    config: &Config,
    refusal: impl FnOnce() -> Option<io::Error>,
) -> Result<Vec<SkippedBackend>, MpiError> {
    if !shares_memory(config, world.size()) {
        return Ok(Vec::new());
    }
    let Some((rank, reason)) = first_message(world, refusal().map(|e| e.to_string()))? else { return Ok(Vec::new()) };
    let skipped = |backend: &String| {
        SkippedBackend {
        backend: backend.clone(),
        reason: format!(
            "cannot work here: memfd_create: {reason} (rank {rank}); its two-phase transfers share memory, which a seccomp filter of a \
             container may refuse: permit it, or use --set exchange=messages"
        ),
    }
    };
    Ok(config.backends.iter().filter(|name| two_phase::is_possible(config, name)).map(skipped).collect())
}

/// Next step after this error of an allocation. Only shared memory can be refused (memfd_create(2)).
fn next_step(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            "shared memory requires memfd_create, which is not permitted (a seccomp filter of a container?): permit it, or use \
             --set exchange=messages"
        }
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n)",
        _ => "use a smaller --memory-per-process",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_memory_is_advised_only_where_memory_is_missing() {
        let of = |errno| next_step(&io::Error::from_raw_os_error(errno));
        assert!(of(libc::ENOMEM).contains("--memory-per-process"));
        assert!(of(libc::EPERM).contains("exchange=messages") && !of(libc::ENOSYS).contains("--memory"));
        assert!(of(libc::EMFILE).contains("ulimit -n"));
    }
}
