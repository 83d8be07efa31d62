//! Trials: the same calls with different settings, each on new files. The loops, the verification and the evidence are those of the
//! repetitions of a run.
//!
//! A pilot with the default gives the time of a call of each pattern, once; with the same requested time all trials have the same calls.
//! As in a repetition, a pattern that takes twice the expected time is cut, and its rate is that of the completed calls.
//!
//! What a run determines before its first measurement, a trial determines once for each setting: whether the backend works, the depths of
//! the queue, and whether two-phase first writes are direct. Settings with the same `direct` share the calibration of the queue; a setting
//! with a depth needs none.

mod outcome;
#[cfg(test)]
mod tests;
pub mod work;

use std::io;

use beff_backends::{DriverOptions, DriverRow, TransferBuffer};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::Config;
use crate::b_eff_io::hints::HintRule;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::hints::for_open;
use crate::b_eff_io::plan::memory::shares_memory;
use crate::b_eff_io::plan::patterns::patterns;
use crate::b_eff_io::plan::run::RunPlan;
use crate::b_eff_io::plan::trials::{
    calls_within, files, fit, longer_pilot, pattern_seconds, PatternCalls, PlannedFile, TrialSpace,
};
use crate::b_eff_io::plan::{PatternSpec, PATTERNS};
use crate::b_eff_io::run::context::{TypeContext, TypeRepetition};
use crate::b_eff_io::run::drivers::driver_options;
use crate::b_eff_io::run::execute::provide_driver_memory;
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
use crate::b_eff_io::run::first_measurement::FirstMeasurement;
use crate::b_eff_io::run::first_writes::try_first_writes;
use crate::b_eff_io::run::kernel_counters::KernelCounters;
use crate::b_eff_io::run::queue_calibration::calibrate_queues;
use crate::b_eff_io::run::state::{allocate_buffer, RunState};
use crate::b_eff_io::run::type_run::run_type;
use crate::frame::records::{AccessMethod, RunOutcome, StorageRecord};
use crate::frame::run::agree::{all_or_first_error, first_message};
use crate::frame::run::availability::find_unavailable;
use crate::frame::run::clock::Instant;
use crate::frame::run::evidence::StorageSite;
use crate::frame::run::granted_hints::granted_hints;
use crate::frame::run::interference::HostCpus;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::trials::{TrialOutcome, TrialRequest, TrialScope};
use crate::frame::trials::Setting;
use beff_stamp::Generation;

use outcome::{layout, Evaluation, TrialJournal};
use work::TrialWork;

/// Maximum number of pilots: 4^15 calls are more than any trial has.
const MAX_PILOTS: u32 = 16;
/// No time limit: the calls end by their number, or by the guard of a repetition.
const UNLIMITED_SECONDS: f64 = 1e9;

/// Longest time for a sample of a setting whose first trial was verified as usual.
const REPEATED_SAMPLE_SECONDS: f64 = 0.03;

/// A backend with one setting.
#[derive(Clone, Debug)]
pub struct TrialContestant {
    /// Configuration with this contestant alone.
    pub config: Config,
    /// Its plan, with a partition of all ranks.
    pub plan: RunPlan,
}

impl TrialContestant {
    fn name(&self) -> &str {
        self.config.backends.first().map_or("", String::as_str)
    }
}

/// Where trials are measured.
pub struct TrialPlace<'a> {
    /// All ranks.
    pub world: &'a Comm,
    /// Signals and the time limit.
    pub interrupt: &'a Interrupt,
    /// Directory of the files, with those of the backend and of its variant.
    pub run_dir: RunDir,
    /// Its storage.
    pub storage: StorageRecord,
    /// The backend.
    pub row: &'static DriverRow,
}

/// Time of a call.
#[derive(Clone, Copy, Debug)]
struct CallPace {
    /// Everything included, such as its share of the sync.
    seconds: f64,
    /// Without the sync.
    transfer_seconds: f64,
}

/// A pattern of one trial, with its calls and the time expected of each.
#[derive(Clone, Copy, Debug)]
struct TrialPattern {
    spec: PatternSpec,
    calls: u64,
    pace: CallPace,
}

/// Why there is no measurement.
enum NoMeasurement {
    /// The setting is refused.
    Refused(String),
    /// No further trial is possible.
    Ended(RunOutcome),
}

/// Trials of a backend.
pub struct PatternTrials<'a> {
    place: TrialPlace<'a>,
    site: StorageSite,
    cpus: HostCpus,
    work: TrialWork,
    default: TrialContestant,
    memory: TrialMemory,
    /// Of each scope whose pilot is done.
    paces: Vec<(TrialScope, Vec<CallPace>)>,
}

/// What trials leave to later ones.
#[derive(Default)]
struct TrialMemory {
    /// The transfer buffer, and whether it is shareable.
    buffer: Option<(bool, TransferBuffer)>,
    counters: Option<KernelCounters>,
    /// Of each setting: options of its driver, or why it is refused.
    prepared: Vec<(Setting, Result<DriverOptions, String>)>,
    /// Writes so far: each has different data.
    writings: u32,
}

impl<'a> PatternTrials<'a> {
    /// Surveys the storage and the CPUs. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn new(place: TrialPlace<'a>, work: TrialWork, default: TrialContestant) -> Result<Self, MpiError> {
        let site = StorageSite::survey(place.world, place.run_dir.path())?;
        let cpus = HostCpus::survey(place.world)?;
        Ok(Self { place, site, cpus, work, default, memory: TrialMemory::default(), paces: Vec::new() })
    }

    /// Directory of the files.
    #[must_use]
    pub fn run_dir(&self) -> &RunDir {
        &self.place.run_dir
    }

    /// The backend without a setting.
    #[must_use]
    pub fn default_contestant(&self) -> &TrialContestant {
        &self.default
    }

    /// Hints that the library lists for a new file opened with these and those of all trials. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn granted_hints(&self, hints: &[(String, String)]) -> Result<Option<Setting>, MpiError> {
        let (place, config) = (&self.place, &self.default.config);
        if !place.row.has_hints {
            return Ok(None);
        }
        let own = hints.iter().map(|(key, value)| HintRule::everywhere(key, value));
        let rules: Vec<HintRule> = config.hints.iter().cloned().chain(own).collect();
        let pattern_type = config.types.first().copied().unwrap_or(PatternType::Scatter);
        let requested = for_open(&rules, place.world.size(), AccessMethod::Write, pattern_type);
        let driver = (place.row.create)(&driver_options(config, &place.run_dir, self.default.name()));
        granted_hints(place.world, &place.run_dir, driver.as_ref(), self.default.name(), &requested)
    }

    /// Measures a contestant. Collective.
    ///
    /// # Errors
    /// Inner: why no further trial is possible. MPI errors.
    pub fn measure(
        &mut self,
        contestant: &TrialContestant,
        trial: &TrialRequest<'_>,
    ) -> Result<Result<TrialOutcome, RunOutcome>, MpiError> {
        if self.work.patterns(trial.scope).is_empty() {
            return Ok(Ok(TrialOutcome::default()));
        }
        let paces = match self.paces(trial)? {
            Ok(paces) => paces,
            Err(NoMeasurement::Ended(outcome)) => return Ok(Err(outcome)),
            Err(NoMeasurement::Refused(reason)) => {
                let refusal =
                    Some(format!("the default cannot be measured, which all trials are compared with: {reason}"));
                return Ok(Ok(TrialOutcome { refusal, ..TrialOutcome::default() }));
            }
        };
        let specs = self.specs(trial.scope);
        let seconds: Vec<f64> = paces.iter().map(|pace| pace.seconds).collect();
        let calls = calls_within(&specs, &seconds, trial.seconds, &self.table(), &self.space());
        let planned: Vec<TrialPattern> = specs
            .iter()
            .zip(&paces)
            .map(|(spec, pace)| TrialPattern { spec: *spec, calls: calls[usize::from(spec.number)], pace: *pace })
            .collect();
        let journal = match self.run_calls(Some(contestant), trial.setting, &planned)? {
            Ok(journal) => journal,
            Err(NoMeasurement::Ended(outcome)) => return Ok(Err(outcome)),
            Err(NoMeasurement::Refused(reason)) => {
                return Ok(Ok(TrialOutcome { refusal: Some(reason), ..TrialOutcome::default() }));
            }
        };
        let evaluation = Evaluation { work: &self.work, patterns: self.work.patterns(trial.scope), scope: trial.scope };
        Ok(Ok(self.broadcast(evaluation.outcome(&journal, &self.place.storage))?))
    }

    /// Rank 0's outcome: devices are known there only.
    fn broadcast(&self, mine: TrialOutcome) -> Result<TrialOutcome, MpiError> {
        // Finite numbers and texts can always be written and read.
        let packed = self.place.world.bcast_bytes(serde_json::to_vec(&mine).unwrap_or_default(), 0)?;
        Ok(serde_json::from_slice(&packed).unwrap_or_default())
    }

    fn specs(&self, scope: TrialScope) -> Vec<PatternSpec> {
        self.work.patterns(scope).iter().map(|pattern| pattern.spec).collect()
    }

    /// All patterns; M_PART does not depend on the setting.
    fn table(&self) -> [PatternSpec; PATTERNS] {
        patterns(self.default.plan.partitions[0].m_part_bytes)
    }

    fn space(&self) -> TrialSpace {
        TrialSpace {
            ranks: self.place.world.size(),
            space_bytes: self.default.plan.partitions[0].space_bytes,
            segment_multiple_bytes: self.default.config.segment_multiple_bytes,
        }
    }

    /// Time of the calls with the default, from pilots before the first trial.
    fn paces(&mut self, trial: &TrialRequest<'_>) -> Result<Result<Vec<CallPace>, NoMeasurement>, MpiError> {
        if let Some((_, paces)) = self.paces.iter().find(|(scope, _)| *scope == trial.scope) {
            return Ok(Ok(paces.clone()));
        }
        let specs = self.specs(trial.scope);
        let whole = pattern_seconds(&specs, trial.seconds);
        let mut paces = vec![CallPace { seconds: 0.0, transfer_seconds: 0.0 }; specs.len()];
        let (mut calls, mut first_seconds) = (vec![1; specs.len()], vec![None; specs.len()]);
        for _ in 0..MAX_PILOTS {
            let open: Vec<usize> = (0..specs.len()).filter(|at| calls[*at] > 0).collect();
            if open.is_empty() {
                break;
            }
            let fitting = self.fitting(&specs, &calls);
            // Nothing is known yet: a call may take the whole time. The guard, twice the time of all calls, is that time.
            let of = |at: &usize| {
                let planned = fitting[usize::from(specs[*at].number)];
                let pace = CallPace { seconds: 0.5 * whole[*at] / planned as f64, transfer_seconds: whole[*at] };
                TrialPattern { spec: specs[*at], calls: planned, pace }
            };
            let planned: Vec<TrialPattern> = open.iter().map(of).collect();
            let journal = match self.run_calls(None, &[], &planned)? {
                Ok(journal) => journal,
                Err(none) => return Ok(Err(none)),
            };
            if let Some(error) = journal.error() {
                return Ok(Err(NoMeasurement::Refused(error.to_owned())));
            }
            for (at, planned) in open.into_iter().zip(planned) {
                // The same on all ranks; rank 0's is broadcast nevertheless.
                let mut seen = journal.pace(&planned.spec, self.work.access);
                self.place.world.bcast_f64(&mut seen, 0)?;
                let [done, seconds, transfer_seconds] = seen;
                if done <= 0.0 {
                    let name = &self.work.patterns(trial.scope)[at].name;
                    return Ok(Err(NoMeasurement::Refused(journal.refusal(planned.spec.number, name))));
                }
                paces[at] = CallPace { seconds: seconds / done, transfer_seconds: transfer_seconds / done };
                // The guard has cut it, or the space: more calls are not possible.
                let is_last = (done as u64) < planned.calls || planned.calls < calls[at];
                let first = *first_seconds[at].get_or_insert(seconds);
                calls[at] = longer_pilot(planned.calls, seconds, first, whole[at]).filter(|_| !is_last).unwrap_or(0);
            }
        }
        self.paces.push((trial.scope, paces.clone()));
        Ok(Ok(paces))
    }

    fn fitting(&self, specs: &[PatternSpec], calls: &[u64]) -> PatternCalls {
        let mut all = [0; PATTERNS];
        specs.iter().zip(calls).for_each(|(spec, calls)| all[usize::from(spec.number)] = *calls);
        fit(all, &self.table(), &self.space())
    }

    /// Makes these calls on new files and removes them; `contestant` None: the default. Collective.
    fn run_calls(
        &mut self,
        contestant: Option<&TrialContestant>,
        setting: &[(String, String)],
        planned: &[TrialPattern],
    ) -> Result<Result<TrialJournal, NoMeasurement>, MpiError> {
        let table = self.table();
        let Self { place, site, cpus, work, default, memory, .. } = self;
        let contestant = contestant.unwrap_or(default);
        let buffer = match memory.take_buffer(place.world, contestant)? {
            Ok(buffer) => buffer,
            Err(reason) => return Ok(Err(NoMeasurement::Refused(reason))),
        };
        let is_known = memory.prepared.iter().any(|(of, _)| of == setting);
        let mut journal = TrialJournal::default();
        let TrialContestant { config, plan } = contestant;
        let mut run = RunState::with_buffer(
            place.world,
            (config, plan),
            &place.run_dir,
            place.interrupt,
            &[],
            &mut journal,
            buffer,
        );
        if is_known {
            run.sample_seconds = REPEATED_SAMPLE_SECONDS;
        }
        let context = TypeContext {
            access: work.access,
            partition: &plan.partitions[0],
            comm: place.world,
            site,
            cpus,
            pattern_type: PatternType::Scatter,
            repetition: None,
            order: None,
        };
        let mut calls = [0; PATTERNS];
        planned.iter().for_each(|p| calls[usize::from(p.spec.number)] = p.calls);
        let files = files(&table, &calls, config.segment_multiple_bytes);
        let mut refusal = memory.prepare(place, &mut run, setting)?;
        let mut layout_found = Vec::new();
        if refusal.is_none() && run.stop.is_none() {
            memory.counters.iter().for_each(|counters| run.backends[0].counters = Some(*counters));
            provide_driver_memory(&run, place.world, site);
            describe_work(&mut run, &files, planned, context);
            measure_types(&mut run, context, &files, &mut memory.writings)?;
            memory.counters = run.backends[0].counters;
            layout_found = layout(&run, &place.storage);
            refusal = remove_files(&mut run)?;
        }
        run.stop = place.interrupt.agree_on_stop(place.world, run.stop)?;
        let (stop, refusals) = (run.stop, std::mem::take(&mut run.refusals));
        let is_shareable = shares_memory(config, place.world.size());
        memory.buffer = Some((is_shareable, run.buffer));
        (journal.refusals, journal.layout) = (refusals, layout_found);
        Ok(match (stop, refusal) {
            // An error of the storage: another setting may work.
            (Some(RunOutcome::Failed), _) => {
                journal.has_failed = true;
                Ok(journal)
            }
            (Some(outcome), _) => Err(NoMeasurement::Ended(outcome)),
            (None, Some(reason)) => Err(NoMeasurement::Refused(reason)),
            (None, None) => Ok(journal),
        })
    }
}

impl TrialMemory {
    /// The buffer of the previous trial, or a new one if that has none of this kind. Inner: error equal on all ranks. Collective.
    fn take_buffer(
        &mut self,
        world: &Comm,
        contestant: &TrialContestant,
    ) -> Result<Result<TransferBuffer, String>, MpiError> {
        let TrialContestant { config, plan } = contestant;
        let is_shareable = shares_memory(config, world.size());
        let kept = self.buffer.take().filter(|(of, _)| *of == is_shareable);
        let buffer = kept.map_or_else(|| allocate_buffer(world, config, plan), |(_, buffer)| Ok(buffer));
        Ok(all_or_first_error(world, buffer)?.map_err(|(_, message)| message))
    }

    /// Replaces the driver by one that is prepared for the setting; returns why the setting is refused. Errors, which are recorded, and
    /// signals stop the run. Collective.
    fn prepare(
        &mut self,
        place: &TrialPlace<'_>,
        run: &mut RunState<'_>,
        setting: &[(String, String)],
    ) -> Result<Option<String>, MpiError> {
        run.backends[0].row = place.row;
        if let Some((_, known)) = self.prepared.iter().find(|(of, _)| of == setting) {
            return Ok(match known {
                Ok(options) => {
                    run.backends[0].replace_driver(options.clone());
                    None
                }
                Err(reason) => Some(reason.clone()),
            });
        }
        let name = run.backends[0].name.clone();
        let options = driver_options(run.config, run.run_dir, &name);
        let found = find_unavailable(place.world, run.run_dir, std::slice::from_ref(&name), |_| options.clone())?;
        let refusal = match found {
            Ok(unavailable) => unavailable.into_iter().next().map(|skipped| skipped.reason),
            Err((rank, message)) => Some(format!("rank {rank}: {message}")),
        };
        if let Some(reason) = refusal {
            self.prepared.push((setting.to_vec(), Err(reason.clone())));
            return Ok(Some(reason));
        }
        let has_depth = run.config.of(&name).queue_depth.is_some();
        let is_same = |known: &&DriverOptions| known.direct == options.direct && !known.calibrated.is_empty();
        let calibrated = self.prepared.iter().filter_map(|(_, known)| known.as_ref().ok()).find(is_same);
        let calibrated = calibrated.filter(|_| !has_depth).map(|known| known.calibrated.clone());
        run.backends[0].replace_driver(DriverOptions { calibrated: calibrated.unwrap_or_default(), ..options });
        if run.backends[0].options.calibrated.is_empty() {
            calibrate_queues(run, place.world)?;
        }
        try_first_writes(run, place.world)?;
        if run.stop.is_none() {
            self.prepared.push((setting.to_vec(), Ok(run.backends[0].options.clone())));
        }
        Ok(None)
    }
}

/// Describes files and calls as if they had been measured before: the trial is their repetition.
fn describe_work(run: &mut RunState<'_>, files: &[PlannedFile], planned: &[TrialPattern], context: TypeContext<'_>) {
    let backend = run.backends[0].name.clone();
    let ranks = context.partition.ranks;
    for PlannedFile { pattern_type, segment_bytes, patterns } in files {
        let contents = patterns.iter().map(|p| WrittenPattern::empty(p.spec, p.stream_bytes, Generation::First));
        run.files.push(TypeFile {
            backend: backend.clone(),
            ranks,
            pattern_type: *pattern_type,
            segment_bytes: *segment_bytes,
            shared_pointer: run.config.shared_pointer,
            written: Vec::new(),
            previous: contents.collect(),
        });
        for pattern in patterns.iter().filter(|pattern| pattern.calls > 0) {
            let pace = planned.iter().find(|p| p.spec.number == pattern.spec.number).map(|p| p.pace);
            let of = |part: fn(&CallPace) -> f64| pace.as_ref().map_or(0.0, part) * pattern.calls as f64;
            let measured = |access| FirstMeasurement {
                backend: 0,
                ranks,
                access,
                pattern_type: *pattern_type,
                pattern: pattern.spec.number,
                time_units: pattern.spec.time_units,
                calls: pattern.calls,
                rounds: 1,
                seconds: of(|pace| pace.seconds),
                calls_seconds: of(|pace| pace.transfer_seconds),
            };
            let prepares = (context.access != AccessMethod::Write).then_some(AccessMethod::Write);
            run.first_measurements.extend([Some(context.access), prepares].into_iter().flatten().map(measured));
        }
    }
}

/// Writes the files if they are rewritten or read, then measures. Collective.
fn measure_types(
    run: &mut RunState<'_>,
    context: TypeContext<'_>,
    files: &[PlannedFile],
    writings: &mut u32,
) -> Result<(), MpiError> {
    // Repetition 0 is neither recorded nor cut.
    let prepares = (context.access != AccessMethod::Write).then_some((AccessMethod::Write, 0));
    for (access, number) in prepares.into_iter().chain([(context.access, 1)]) {
        for file in files {
            if run.stop.is_some() {
                return Ok(());
            }
            *writings += 1;
            let repetition = TypeRepetition {
                number,
                share: 1.0,
                of_few_rounds: false,
                generation: *writings,
                begin: Instant::now(),
                budget_seconds: UNLIMITED_SECONDS,
                remaining_seconds: UNLIMITED_SECONDS,
            };
            let pattern_type = file.pattern_type;
            run_type(run, TypeContext { access, pattern_type, repetition: Some(repetition), ..context })?;
        }
    }
    Ok(())
}

/// Removes the files of the trial; returns the first error. No rank continues before all names are removed. Collective.
fn remove_files(run: &mut RunState<'_>) -> Result<Option<String>, MpiError> {
    let mut error = None;
    for file in run.files.iter().filter(|file| file.is_private() || run.world.is_root()) {
        let path = run.run_dir.file(&file.name(run.world.rank()));
        match path.remove() {
            // An error or a signal came before it was created, or the signal has removed it. The null backend has no files.
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                error.get_or_insert(format!("{} of the trial cannot be removed: {e}", path.display()));
            }
            _ => {}
        }
    }
    Ok(first_message(run.world, error)?.map(|(_, message)| message))
}
