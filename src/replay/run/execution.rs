//! Complete replay: content and needs of the profile, then one repetition after the other, alternating between backends.

use std::time::{Duration, Instant};

use beff_backends::{driver, DriverOptions};
use beff_ffi::{Comm, MpiError};
use beff_trace::layout::TypeLayouts;
use beff_trace::ProfileHead;

use super::call_csv::CallCsvWriter;
use super::call_source::CallSource;
use super::collective_check::CollectiveCheck;
use super::hints;
use super::repetition::{RepetitionJob, RepetitionOutcome, ReplayBackend};
use super::scan::{self, RankScan, ReplaySupport, ScanTotals};
use super::{order, preparation, ReplayAbort, ReplayContext};
use crate::frame::fault_injection;
use crate::frame::records::{ErrorRecord, RunOutcome};
use crate::frame::run::availability::{self, SkippedBackend};
use crate::frame::run::interference::HostCpus;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{agree, ProgressReport, RunObserver};
use crate::frame::system::memory::high_water_bytes;
use crate::replay::config::{Detail, ReplayConfig};
use crate::replay::plan::collective_counts::{collective_limits, OpeningId};
use crate::replay::plan::memory_relocation::MemoryRelocation;
use crate::replay::records::{
    repetition_name, ProfileRepetition, RepetitionStatus, ReplayEnding, ReplayLine, VERIFICATION,
};

/// Support of programs by the backends of a configuration, in its order.
#[must_use]
pub fn replay_support(config: &ReplayConfig) -> Vec<ReplaySupport> {
    let rows = config.backends.iter().filter_map(|name| driver(config.backend_of(name)));
    let refusal = |row: &beff_backends::DriverRow| {
        let by_offsets = !row.has_hints;
        row.replay.map(|replay| ReplaySupport { unsupported: replay.unsupported_reason, by_offsets })
    };
    rows.filter_map(refusal).collect()
}

/// Inputs of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanInput<'a> {
    /// The calls.
    pub source: CallSource<'a>,
    /// The profile without its calls.
    pub head: &'a ProfileHead,
    /// Its datatypes.
    pub layouts: &'a TypeLayouts,
    /// Relocation of their memory.
    pub relocation: &'a MemoryRelocation,
    /// Support by the backends.
    pub support: &'a [ReplaySupport],
    /// Size of cache-cold memory, for accesses whose buffer was not just used.
    pub cold_bytes: u64,
    /// Data is compared.
    pub verify: bool,
}

impl ScanInput<'_> {
    /// Scans one rank up to `limits`.
    ///
    /// # Errors
    /// An error in the profile, in words.
    pub fn rank(&self, rank: u32, limits: &[(OpeningId, u64)]) -> Result<RankScan, String> {
        let types = (self.layouts, self.relocation);
        scan::scan_rank(self.source, rank, types, self.support, limits, (self.cold_bytes, self.verify))
    }

    fn matching(&self) -> CollectiveCheck<'_> {
        let Self { source, head, layouts, support: refusals, .. } = *self;
        CollectiveCheck { source, head, layouts, refusals }
    }

    /// Scans all ranks, one after the other, up to the last matching collective calls.
    ///
    /// # Errors
    /// An error in the profile, in words.
    pub fn scan_all(&self) -> Result<Vec<RankScan>, String> {
        let mut known = Vec::new();
        loop {
            let ranks = 0..self.head.processes.len() as u32;
            let scans = ranks.map(|rank| self.rank(rank, &known)).collect::<Result<Vec<_>, _>>()?;
            let meetings: Vec<_> = scans.iter().map(|scan| scan.totals.meetings.clone()).collect();
            let more = new_limits(&known, collective_limits(&meetings, &self.head.comms));
            if more.is_empty() {
                self.matching().check_all(&scans)?;
                return Ok(scans);
            }
            known.extend(more);
        }
    }

    /// Scans this rank up to the last matching collective calls, and exchanges the order between the ranks. Collective.
    ///
    /// # Errors
    /// Outer: MPI between the ranks. Inner: rank and message, equal on all ranks.
    pub fn scan_collectively(&self, comm: &Comm) -> Result<Result<RankScan, (u64, String)>, MpiError> {
        let mut known = Vec::new();
        let mut scan = loop {
            let scan = match agree::all_or_first_error(comm, self.rank(comm.rank() as u32, &known))? {
                Ok(scan) => scan,
                Err(error) => return Ok(Err(error)),
            };
            let all = agree::collect(comm, vec![scan.totals.meetings.clone()])?;
            let found = if comm.is_root() { collective_limits(&all, &self.head.comms) } else { Vec::new() };
            let bytes = comm.bcast_bytes(serde_json::to_vec(&found).unwrap_or_default(), 0)?;
            let more = new_limits(&known, serde_json::from_slice(&bytes).unwrap_or_default());
            if more.is_empty() {
                break scan;
            }
            known.extend(more);
        };
        if let Err(error) = self.matching().check_collectively(comm, &mut scan)? {
            return Ok(Err(error));
        }
        let ready = preparation::exchange_preparations(comm, self.source, self.layouts, &self.head.comms, &scan)?;
        let (ready, awaited) = match ready {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        };
        scan.preparation_schedule = ready;
        scan.calls_awaited_by_others = order::exchange_awaited_calls(comm, &scan.awaited_calls)?;
        scan.calls_awaited_by_others.extend(awaited);
        scan.calls_awaited_by_others.sort_unstable();
        scan.calls_awaited_by_others.dedup();
        let missing = agree::all_or_first_error(comm, scan::unissued_calls(self.source, comm.rank() as u32, &scan))?;
        let missing = match missing {
            Ok(missing) => missing,
            Err(error) => return Ok(Err(error)),
        };
        let lost = order::find_lost_calls(comm, &missing)?;
        let given_up = scan.lost_calls.len() as u64;
        let own = scan.awaited_calls.iter().filter(|after| lost.contains(after)).count() as u64;
        (scan.totals.orderings, scan.totals.orderings_lost) = (scan.awaited_calls.len() as u64 - own, own + given_up);
        scan.lost_calls.extend(lost);
        Ok(Ok(scan))
    }
}

fn new_limits(known: &[(OpeningId, u64)], found: Vec<(OpeningId, u64)>) -> Vec<(OpeningId, u64)> {
    found.into_iter().filter(|limit| !known.contains(limit)).collect()
}

/// Calls that are replayed, with their content and needs.
#[derive(Clone, Copy, Debug)]
pub struct ReplayVariant<'a> {
    /// The calls.
    pub source: CallSource<'a>,
    /// Scan of this rank.
    pub scan: &'a RankScan,
    /// Combined totals, because the memory layout is equal on all ranks.
    pub combined_totals: &'a ScanTotals,
}

/// Inputs of a run.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionContext<'a> {
    /// Communicator of the recorded ranks.
    pub comm: &'a Comm,
    /// The configuration.
    pub config: &'a ReplayConfig,
    /// The calls as recorded.
    pub unchanged: ReplayVariant<'a>,
    /// The calls with the change, if it is one of calls.
    pub changed: Option<ReplayVariant<'a>>,
    /// The profile without its calls.
    pub head: &'a ProfileHead,
    /// Its datatypes.
    pub layouts: &'a TypeLayouts,
    /// Relocation of their memory.
    pub relocation: &'a MemoryRelocation,
    /// Size of cache-cold memory, for accesses whose buffer was not just used.
    pub cold_bytes: u64,
    /// Directory of the files.
    pub run_dir: &'a RunDir,
    /// Unavailable backends.
    pub not_run: &'a [SkippedBackend],
    /// Type of its file system.
    pub fs_type: &'a str,
    /// Recorded time from the first call to the end of the last one.
    pub span: Duration,
    /// Signals.
    pub interrupt: &'a Interrupt,
    /// Prints a message of any rank during the run.
    pub print: fn(&str),
    /// Ends this process, and with it all ranks, while its main thread is in a call.
    pub terminate: fn(&ReplayAbort, &RunDir),
}

/// Replays everything. Collective over the recorded ranks.
///
/// # Errors
/// Errors that leave ranks waiting for each other.
pub fn execute(
    means: &ExecutionContext<'_>,
    observer: &mut dyn RunObserver<ReplayLine>,
) -> Result<ReplayEnding, ReplayAbort> {
    let begin = Instant::now();
    let (comm, config) = (means.comm, means.config);
    let unchanged = replay_context(means, &means.unchanged)?;
    let changed = means.changed.as_ref().map(|changed| replay_context(means, changed)).transpose()?;
    let cpus = HostCpus::survey(comm)?;
    let mut ending = ReplayEnding { outcome: RunOutcome::Complete, ..ReplayEnding::default() };
    let Some(mut details) = create_call_logs(means, observer)? else {
        ending.outcome = RunOutcome::Failed;
        return Ok(ending);
    };
    report_unapplied_hints(means, observer)?;
    let mut failed = Vec::new();
    let planned = planned_repetitions(config);
    let all = planned.len() as u64;
    let mut repetition_seconds: f64 = 0.0;
    for (done, (number, name)) in planned.into_iter().enumerate() {
        if failed.contains(&name) {
            continue;
        }
        if let Some(outcome) = means.interrupt.agree(comm, repetition_seconds)? {
            ending.outcome = outcome;
            break;
        }
        let Some(way) = replay_backend(config, name) else { continue };
        if let Some(reason) = availability::skip_reason(means.not_run, config.checked_as(name)) {
            if number == VERIFICATION {
                continue;
            }
            let ended = RepetitionStatus::NotRun(reason.to_owned());
            let record = ProfileRepetition { ended, ..ProfileRepetition::empty(name, number) };
            observer.record(ReplayLine::Repetition(Box::new(record)));
            continue;
        }
        observer.progress(&progress_report(means, repetition_name(name, number), [done as u64, all]));
        let changed = changed.as_ref().filter(|_| config.change_of(name).is_some());
        let context = changed.unwrap_or(&unchanged);
        let job = RepetitionJob {
            context,
            comm,
            cpus: &cpus,
            backend: way,
            number,
            verifies: number == VERIFICATION,
            fs_type: means.fs_type,
            span: means.span,
            options: driver_options(config, means.run_dir, name),
            landing_bytes: context.scan.landing_bytes()[1],
        };
        let started = Instant::now();
        let outcome = job.run(details.as_mut())?;
        failed.extend(outcome.failure.as_ref().map(|_| name));
        let goes_on = record_outcome(outcome, observer, &mut ending);
        if comm.is_root() && !(config.keep_files && number == config.repeat) {
            // A failure to remove files is reported with the run directory.
            let _ = means.run_dir.empty(name);
        }
        comm.barrier()?;
        repetition_seconds = repetition_seconds.max(started.elapsed().as_secs_f64());
        if !goes_on {
            break;
        }
    }
    ending.real_seconds = agree::max_seconds(comm, begin.elapsed().as_secs_f64())?;
    ending.rank_memory_high_water_bytes = high_water_bytes().unwrap_or(0);
    Ok(ending)
}

fn report_unapplied_hints(
    means: &ExecutionContext<'_>,
    observer: &mut dyn RunObserver<ReplayLine>,
) -> Result<(), MpiError> {
    let (config, placed) = (means.config, (means.run_dir, means.not_run));
    for name in &config.backends {
        let options = driver_options(config, means.run_dir, name);
        if let Some(warning) = hints::unapplied_hints_warning(means.comm, config, name, placed, &options)? {
            observer.record(ReplayLine::Warning(warning));
        }
    }
    Ok(())
}

/// Number and backend of each repetition. The first one of a backend that stores data compares it. Each repetition begins with another
/// backend, because the state that one leaves behind may affect the next.
fn planned_repetitions(config: &ReplayConfig) -> Vec<(u64, &String)> {
    let first = if config.verify { VERIFICATION } else { VERIFICATION + 1 };
    let order = |number: u64| {
        let mut names: Vec<&String> = config.backends.iter().collect();
        let begin = number.saturating_sub(1) % (names.len() as u64).max(1);
        names.rotate_left(begin as usize);
        names.into_iter().map(move |name| (number, name))
    };
    let stores = |name: &str| replay_backend(config, name).is_some_and(|way| way.stores);
    (first..=config.repeat).flat_map(order).filter(|(number, name)| *number > VERIFICATION || stores(name)).collect()
}

fn replay_context<'a>(
    means: &ExecutionContext<'a>,
    variant: &ReplayVariant<'a>,
) -> Result<ReplayContext<'a>, ReplayAbort> {
    let sources = variant.combined_totals.sources(means.config.seed, means.cold_bytes);
    Ok(ReplayContext {
        config: means.config,
        head: means.head,
        layouts: means.layouts,
        relocation: means.relocation,
        source: variant.source,
        scan: variant.scan,
        sieving_gaps: &variant.combined_totals.gaps,
        sources: sources.ok_or_else(|| ReplayAbort::Calls("the size of the memory overflows".into()))?,
        cold_bytes: means.cold_bytes,
        run_dir: means.run_dir,
        interrupt: means.interrupt,
        print: means.print,
        terminate: means.terminate,
    })
}

/// Creates the files of single calls, if requested. None if a rank failed, which is recorded.
fn create_call_logs(
    means: &ExecutionContext<'_>,
    observer: &mut dyn RunObserver<ReplayLine>,
) -> Result<Option<Option<CallCsvWriter>>, MpiError> {
    let (comm, config) = (means.comm, means.config);
    let details = match (config.detail, &config.out) {
        (Detail::Request, Some(prefix)) => fault_injection::injected_failure("files of calls", comm.rank())
            .and_then(|()| CallCsvWriter::create(prefix, comm.rank() as u32).map(Some)),
        _ => Ok(None),
    };
    let (rank, message) = match agree::all_or_first_error(comm, details)? {
        Ok(details) => return Ok(Some(details)),
        Err(error) => error,
    };
    let next_step = "choose another --out that all ranks can write to";
    observer.record(ReplayLine::Error(ErrorRecord::of_rank(rank, "opening files of calls", message, next_step)));
    Ok(None)
}

/// Progress before a repetition, after `done` of `all`.
fn progress_report(means: &ExecutionContext<'_>, pass: String, [done, all]: [u64; 2]) -> ProgressReport {
    let seconds = means.span.as_secs_f64();
    ProgressReport {
        what: pass.clone(),
        done_seconds: seconds * done as f64,
        all_seconds: seconds * all as f64,
        stage: pass,
        next_seconds: seconds,
        ranks: means.comm.size(),
        transferred: Vec::new(),
    }
}

/// Driver options of a backend, for files in the run directory.
#[must_use]
pub fn driver_options(config: &ReplayConfig, run_dir: &RunDir, name: &str) -> DriverOptions {
    let direct = config.direct_of(name).into();
    DriverOptions { direct, direct_trial: run_dir.direct_trial(), ..DriverOptions::default() }
}

fn replay_backend<'a>(config: &ReplayConfig, name: &'a str) -> Option<ReplayBackend<'a>> {
    let row = driver(config.backend_of(name))?;
    let replay = row.replay?;
    let refusal = ReplaySupport { unsupported: replay.unsupported_reason, by_offsets: !row.has_hints };
    Some(ReplayBackend { name, replay, refusal, stores: row.uses_space })
}

/// Records an outcome. False if the run ends with it.
fn record_outcome(
    outcome: RepetitionOutcome,
    observer: &mut dyn RunObserver<ReplayLine>,
    ending: &mut ReplayEnding,
) -> bool {
    let RepetitionOutcome { record, classes, processes, corruption, error, failure, .. } = outcome;
    ending.prefill_seconds += outcome.prefill_seconds;
    ending.prepare_seconds += outcome.prepare_seconds;
    ending.verify_seconds += outcome.verify_seconds;
    match record.ended {
        RepetitionStatus::Limit => ending.outcome = RunOutcome::Limit,
        RepetitionStatus::Interrupted => ending.outcome = RunOutcome::Interrupted,
        RepetitionStatus::Error(_) => ending.outcome = RunOutcome::Failed,
        RepetitionStatus::Complete | RepetitionStatus::NotRun(_) => {}
    }
    let goes_on = (record.ended == RepetitionStatus::Complete || failure.is_some()) && error.is_none();
    if error.is_some() {
        ending.outcome = RunOutcome::Failed;
    }
    observer.record(ReplayLine::Repetition(Box::new(record)));
    classes.into_iter().for_each(|record| observer.record(ReplayLine::Class(record)));
    processes.into_iter().for_each(|record| observer.record(ReplayLine::Process(record)));
    corruption.into_iter().for_each(|found| observer.record(ReplayLine::Corruption(found)));
    failure.into_iter().chain(error).for_each(|error| observer.record(ReplayLine::Error(error)));
    goes_on
}
