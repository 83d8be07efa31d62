//! Trials of settings with a recorded application: each is one replay of all its calls on new files.

use std::collections::BTreeMap;
use std::path::Path;

use beff_backends::driver;
use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use super::abort::abort_run;
use super::config::{Detail, Pace, ReplayConfig};
use super::prepare::{prepare_run, RunPreparation};
use super::records::{ProcessRecord, ProfileRepetition, ReplayLine, VERIFICATION};
use super::run::execution::{driver_options, execute};
use super::setting;
use super::values::storage_reads;
use super::values::trial::{data_classes, CallTotals};
use crate::frame::checks::{backend_names, backends, check_direct, check_option_effect};
use crate::frame::command::start::{self, CommandError};
use crate::frame::command::{backend_capabilities, directory};
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::{ErrorRecord, RunOutcome, Warning};
use crate::frame::run::availability::find_unavailable;
use crate::frame::run::granted_hints::granted_hints;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::storage_sheet::stripes_of;
use crate::frame::run::trials::{TrialOutcome, TrialPart, TrialRequest, TrialRunner, TrialScope};
use crate::frame::run::{ProgressReport, RunObserver, TransferVolume};
use crate::frame::system::survey::Survey;
use crate::frame::trials::{Setting, TrialConfig};
use crate::frame::units::{count, format_size};
use crate::frame::variants::override_hints;

/// The share of the free space that a trial may need, as percent, if no space is given.
const SPACE_PERCENT: u64 = 80;

/// Prepares trials with the profile of the configuration: reads it, creates the run directory, and checks that the backend works there.
/// Collective.
///
/// # Errors
/// Equal on all ranks: a configuration that a replay does not have, an error in the profile, too little space or memory, an unavailable
/// backend; nothing is left then. MPI errors.
pub fn open_trials<'a>(
    world: &'a Comm,
    interrupt: &'a Interrupt,
    survey: &'a Survey,
    config: &TrialConfig,
) -> Result<Box<dyn TrialRunner + 'a>, CommandError> {
    let base = replay_config(config).map_err(|e| CommandError::Collective(e.into()))?;
    let mut ready = prepare_run(world, &base, survey)?;
    check_trial(&ready, config).map_err(|e| CommandError::Collective(e.into()))?;
    let has_hints = has_hints(&base);
    let recorded_hints = start::broadcast_from_root(world, "recorded hints", || match has_hints {
        true => ready.profile.first_open_hints(&base),
        false => Ok(Vec::new()),
    })?;
    let interrupt = interrupt.clone().share_limit(world)?;
    let backends = base.backends.as_slice();
    let files = (backends, RankDirectories::NONE);
    let (mut run_dir, _) =
        directory::create_run_directory(world, &base.path, base.run_dir.as_deref(), files, ("", None), None)?;
    // A setting may request direct I/O, whatever the default is.
    let may_be_direct = DirectPolicy::first_direct(backends, |_| DirectPolicy::Auto);
    let examined =
        directory::try_direct_io(world, &mut run_dir, &mut ready.storage, may_be_direct, None).and_then(|()| {
            start::skip_unavailable_backends(world, &run_dir, backends, |name| driver_options(&base, &run_dir, name))
        });
    if let Err(error) = examined {
        if matches!(error, CommandError::Collective(_)) {
            let _ = directory::clean_up(world, &run_dir, false, RunOutcome::Failed);
        }
        return Err(error);
    }
    let omitted = ready.calls.sums.omissions_by_backend(&base).iter().flat_map(|of| &of.omitted).map(|o| o.calls).sum();
    Ok(Box::new(ReplayTrials {
        world,
        interrupt,
        base,
        ready,
        run_dir,
        recorded_hints,
        omitted,
        known: BTreeMap::new(),
    }))
}

/// The configuration of a replay with the default setting.
fn replay_config(config: &TrialConfig) -> Result<ReplayConfig, UsageError> {
    let known = backend_capabilities();
    let chosen = backends(std::slice::from_ref(&config.backend), &known)?;
    let can_replay = |name: &str| driver(name).is_some_and(|row| row.replay.is_some() && row.uses_space);
    if !can_replay(&config.backend) {
        return Err(UsageError::new(
            format!("--backend {}: it cannot replay an application with files", config.backend),
            format!("Choose from: {}.", backend_names(&known, |backend| can_replay(backend.name))),
        ));
    }
    let Some(profile) = &config.profile else {
        return Err(UsageError::new("there is no profile to replay", "Name the profile of an application."));
    };
    check_direct(config.direct, &chosen, &known)?;
    check_option_effect(!config.hints.is_empty(), "--hint", &chosen, &known, |backend| backend.mpi)?;
    hints::check_limits(config.hints.iter().map(|(key, value)| (key.as_str(), value.as_str())))
        .map_err(|cause| UsageError::new(format!("--hint: {cause}"), "Give only the hints that all trials need."))?;
    if !matches!(config.cache, CachePolicy::Drop | CachePolicy::Keep) {
        return Err(UsageError::new(
            "--cache: the pages of a replay are dropped or kept before its calls",
            "Choose --cache drop or --cache keep.",
        ));
    }
    Ok(ReplayConfig {
        profile: profile.clone(),
        backends: vec![config.backend.clone()],
        variants: Vec::new(),
        what_if: None,
        path: config.path.clone(),
        run_dir: config.run_dir.clone(),
        keep_files: false,
        out: None,
        pace: Pace::Fast,
        scale: 1.0,
        repeat: 1,
        time_limit: None,
        cache: config.cache,
        direct: config.direct,
        dio_align_bytes: None,
        storage: Vec::new(),
        stripe: None,
        hints: config.hints.clone(),
        verify: true,
        detail: Detail::Function,
        // The ranks are bound before.
        bind: BindPolicy::None,
        seed: config.seed,
        inject: false,
    })
}

/// Checks that a trial has a rate and enough space. Equal on all ranks.
fn check_trial(ready: &RunPreparation, config: &TrialConfig) -> Result<(), UsageError> {
    if ready.facts.read_bytes.saturating_add(ready.facts.written_bytes) == 0 {
        return Err(UsageError::new(
            "the profile transfers no data, so there is no bandwidth to increase",
            "Record the program during its I/O; `beff-raw profile show FILE` shows the content of a profile.",
        ));
    }
    let most_bytes = config.space_bytes.unwrap_or(ready.storage.free_bytes / 100 * SPACE_PERCENT);
    if ready.space_bytes > most_bytes {
        return Err(UsageError::new(
            format!(
                "the files of the profile need up to {}, and a trial may use {}",
                format_size(ready.space_bytes),
                format_size(most_bytes)
            ),
            "Choose another --path with enough space, or a larger --space.",
        ));
    }
    Ok(())
}

fn has_hints(config: &ReplayConfig) -> bool {
    config.backends.iter().any(|name| driver(name).is_some_and(|row| row.has_hints))
}

/// A prepared profile, replayed with different settings.
struct ReplayTrials<'a> {
    world: &'a Comm,
    interrupt: Interrupt,
    /// Without a setting.
    base: ReplayConfig,
    ready: RunPreparation,
    run_dir: RunDir,
    /// Hints of the first recorded opening.
    recorded_hints: Setting,
    /// Calls that the backend cannot replay.
    omitted: u64,
    /// Settings whose data was right when it was compared, and the hints that they are granted.
    known: BTreeMap<Setting, Setting>,
}

/// Records of one trial on rank 0.
#[derive(Default)]
struct TrialRecords {
    repetitions: Vec<ProfileRepetition>,
    processes: Vec<ProcessRecord>,
    errors: Vec<ErrorRecord>,
}

impl RunObserver<ReplayLine> for TrialRecords {
    fn record(&mut self, line: ReplayLine) {
        match line {
            ReplayLine::Repetition(repetition) => self.repetitions.push(*repetition),
            ReplayLine::Process(record) => self.processes.push(record),
            ReplayLine::Error(error) => self.errors.push(error),
            _ => {}
        }
    }

    fn progress(&mut self, _: &ProgressReport) {}

    fn measurement_ended(&mut self, _is_complete: bool, _last: Vec<TransferVolume>) {}
}

impl TrialRecords {
    /// The result, if all calls were made.
    fn outcome(&self, fs_type: &str) -> TrialOutcome {
        if let Some(ErrorRecord { during, rank, message, next_step, .. }) = self.errors.first() {
            return refused(format!("{during}: rank {rank}: {message}; {next_step}"));
        }
        let timed: Vec<_> = self.processes.iter().filter(|record| record.repetition != VERIFICATION).cloned().collect();
        let parts: Vec<TrialPart> = data_classes(&timed)
            .into_iter()
            .map(|(class, CallTotals { bytes, seconds })| TrialPart { name: class.name().to_owned(), bytes, seconds })
            .collect();
        let read_bytes = CallTotals::of(&timed, |class| class.is_read()).bytes;
        let fetched = self.repetitions.iter().find(|repetition| repetition.is_timed());
        let fetched = fetched.and_then(|repetition| storage_reads::replayed(fs_type, repetition).ok());
        let share = |bytes: u64| (bytes as f64 / read_bytes as f64).min(1.0);
        TrialOutcome {
            bytes_per_second: CallTotals::of(&timed, |_| true).bytes_per_second(),
            parts,
            words_checked: self
                .repetitions
                .iter()
                .map(|repetition| repetition.bytes_checked.div_ceil(WORD_BYTES))
                .sum(),
            words_wrong: self.repetitions.iter().map(|repetition| repetition.bytes_wrong.div_ceil(WORD_BYTES)).sum(),
            storage_share: fetched.filter(|_| read_bytes > 0).map(share),
            ..TrialOutcome::default()
        }
    }
}

/// Replays count bytes.
const WORD_BYTES: u64 = 8;

fn refused(reason: String) -> TrialOutcome {
    TrialOutcome { refusal: Some(reason), ..TrialOutcome::default() }
}

/// Result of the recorded ranks.
#[derive(Deserialize, Serialize)]
enum TrialEnd {
    Measured(TrialOutcome),
    Stopped(RunOutcome),
}

impl ReplayTrials<'_> {
    fn contestant(&self) -> &str {
        &self.base.backends[0]
    }

    /// The configuration of a trial, or why the setting is refused.
    fn trial_config(&self, trial: &TrialRequest<'_>, is_known: bool) -> Result<ReplayConfig, String> {
        let config = setting::apply(&self.base, trial.setting)?;
        Ok(ReplayConfig {
            // Until their stripes are read.
            keep_files: true,
            verify: !is_known,
            seed: config.seed.wrapping_add(u64::from(trial.number)),
            ..config
        })
    }

    /// Why the backend cannot work with this direct I/O; None if it can, or works as checked before. Collective.
    fn unavailable(&self, config: &ReplayConfig) -> Result<Option<String>, MpiError> {
        if config.direct == self.base.direct {
            return Ok(None);
        }
        let options = |name: &str| driver_options(config, &self.run_dir, name);
        Ok(match find_unavailable(self.world, &self.run_dir, &config.backends, options)? {
            Ok(skipped) => skipped.into_iter().next().map(|skipped| skipped.reason),
            Err((rank, message)) => Some(format!("rank {rank}: {message}")),
        })
    }

    /// Replays the calls, on the recorded ranks; the result is that of rank 0. Collective over all ranks.
    fn replay(&self, config: &ReplayConfig) -> Result<TrialEnd, MpiError> {
        let mut records = TrialRecords::default();
        let means = self.ready.context(config, (&self.run_dir, &[]), &self.interrupt);
        let execute = |means| execute(means, &mut records).unwrap_or_else(|stuck| abort_run(&stuck, &self.run_dir));
        let ending = means.as_ref().map(execute).unwrap_or_default();
        // With the ranks beyond the recorded ones.
        self.world.idle_barrier()?;
        let fs_type = &self.ready.storage.fs_type;
        let mut packed = Vec::new();
        if self.world.is_root() {
            let end = match ending.outcome {
                RunOutcome::Complete | RunOutcome::Failed => {
                    let first = self.run_dir.file(&Path::new(self.contestant()).join("file-0001"));
                    let outcome = records.outcome(fs_type);
                    TrialEnd::Measured(TrialOutcome { layout: stripes_of(&first, fs_type), ..outcome })
                }
                stopped => TrialEnd::Stopped(stopped),
            };
            // What remains is reported at the end.
            let _ = self.run_dir.empty(self.contestant());
            packed = serde_json::to_vec(&end).unwrap_or_default();
        }
        let packed = self.world.bcast_bytes(packed, 0)?;
        Ok(serde_json::from_slice(&packed).unwrap_or(TrialEnd::Stopped(RunOutcome::Failed)))
    }
}

impl TrialRunner for ReplayTrials<'_> {
    fn work(&self) -> String {
        let name = self.base.profile.file_name().unwrap_or_default().to_string_lossy();
        match self.omitted {
            0 => format!("replay of {name}"),
            omitted => format!("replay of {name} without {} that {} omits", count(omitted, "call"), self.contestant()),
        }
    }

    /// Together with those of the first recorded opening.
    fn granted_hints(&mut self, given: &[(String, String)]) -> Result<Option<Setting>, MpiError> {
        let name = self.contestant();
        let Some(row) = driver(name).filter(|row| row.has_hints) else { return Ok(None) };
        let hints = override_hints(&override_hints(&self.recorded_hints, &self.base.hints), given);
        let mut granted = None;
        if let Some(comm) = &self.ready.active {
            let driver = (row.create)(&driver_options(&self.base, &self.run_dir, name));
            granted = granted_hints(comm, &self.run_dir, &*driver, name, &hints)?;
        }
        let packed = self.world.bcast_bytes(serde_json::to_vec(&granted).unwrap_or_default(), 0)?;
        Ok(serde_json::from_slice(&packed).unwrap_or_default())
    }

    fn measure(&mut self, trial: &TrialRequest<'_>) -> Result<Result<TrialOutcome, RunOutcome>, MpiError> {
        if trial.scope == TrialScope::Others {
            return Ok(Ok(refused("a recording has no other chunk sizes".to_owned())));
        }
        let mut setting = trial.setting.to_vec();
        setting.sort();
        let config = match self.trial_config(trial, self.known.contains_key(&setting)) {
            Ok(config) => config,
            Err(cause) => return Ok(Ok(refused(cause))),
        };
        if let Some(reason) = self.unavailable(&config)? {
            return Ok(Ok(refused(reason)));
        }
        let granted = match self.known.get(&setting) {
            Some(granted) => granted.clone(),
            None => self.granted_hints(&config.hints)?.unwrap_or_default(),
        };
        Ok(match self.replay(&config)? {
            TrialEnd::Stopped(outcome) => Err(outcome),
            TrialEnd::Measured(outcome) => {
                if outcome.refusal.is_none() && outcome.words_wrong == 0 {
                    self.known.insert(setting, granted.clone());
                }
                Ok(TrialOutcome { hints_granted: granted, ..outcome })
            }
        })
    }

    fn clean_up(&mut self, outcome: RunOutcome) -> Option<Warning> {
        directory::clean_up(self.world, &self.run_dir, false, outcome)
    }
}
