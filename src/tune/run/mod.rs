//! Execution of a search: one trial after the other, each planned from those before.

pub mod grants;

use beff_ffi::{Comm, MpiError};
use beff_tuning::search::Search;
use beff_tuning::trial::{setting_text, Phase, PlannedTrial};

use crate::frame::records::RunOutcome;
use crate::frame::run::agree::broadcast;
use crate::frame::run::clock::Instant;
use crate::frame::run::trials::{TrialOutcome, TrialRequest, TrialRunner, TrialScope};
use crate::frame::run::{ProgressReport, RunObserver, TransferVolume};
use crate::tune::records::{TrialCorruption, TrialRecord, TuneLine};

/// What a search works with.
pub struct SearchRun<'a> {
    /// All ranks.
    pub world: &'a Comm,
    /// Measures the trials.
    pub runner: &'a mut dyn TrialRunner,
    /// Receives records and progress.
    pub observer: &'a mut dyn RunObserver<TuneLine>,
    /// Begin of the search.
    pub begin: Instant,
    /// Time that the search took before it was continued.
    pub earlier_seconds: f64,
    /// Budget.
    pub budget_seconds: f64,
    /// Backend.
    pub backend: String,
}

/// Measures until the search ends. Collective: all ranks plan the same trials, because they have the same results and rank 0's times.
///
/// # Errors
/// MPI between the ranks.
pub fn execute(run: &mut SearchRun<'_>, search: &mut Search) -> Result<RunOutcome, MpiError> {
    let mut last = Vec::new();
    while let Some(planned) = search.next_trial() {
        let number = search.trials().len() as u32;
        report_progress(run, &planned, number, std::mem::take(&mut last))?;
        let begin_seconds = now_seconds(run)?;
        let scope = if planned.phase == Phase::Others { TrialScope::Others } else { TrialScope::Goal };
        let request = TrialRequest { setting: &planned.setting, number, seconds: planned.seconds, scope };
        let outcome = match run.runner.measure(&request)? {
            Ok(outcome) => outcome,
            Err(cause) => {
                run.observer.measurement_ended(false, Vec::new());
                return Ok(cause);
            }
        };
        last = volumes(&run.backend, &outcome);
        let record = TrialRecord { planned, begin_seconds, end_seconds: now_seconds(run)?, outcome };
        search.add(record.judged());
        record_trial(run, number, record);
    }
    run.observer.measurement_ended(true, last);
    Ok(RunOutcome::Complete)
}

fn now_seconds(run: &SearchRun<'_>) -> Result<f64, MpiError> {
    broadcast(run.world, run.earlier_seconds + run.begin.elapsed().as_secs_f64())
}

fn record_trial(run: &mut SearchRun<'_>, number: u32, record: TrialRecord) {
    let TrialOutcome { words_checked, words_wrong, .. } = record.outcome;
    let setting = record.planned.setting.clone();
    run.observer.record(TuneLine::Trial(Box::new(record)));
    if words_wrong > 0 {
        run.observer.record(TuneLine::Corruption(TrialCorruption {
            trial: number,
            setting,
            words_checked,
            words_wrong,
        }));
    }
}

fn volumes(backend: &str, outcome: &TrialOutcome) -> Vec<TransferVolume> {
    let bytes = outcome.parts.iter().map(|part| part.bytes).sum();
    let seconds = outcome.parts.iter().map(|part| part.seconds).sum();
    vec![TransferVolume { who: backend.to_owned(), bytes, seconds }]
}

fn report_progress(
    run: &mut SearchRun<'_>,
    planned: &PlannedTrial,
    number: u32,
    transferred: Vec<TransferVolume>,
) -> Result<(), MpiError> {
    let done_seconds = now_seconds(run)?;
    run.observer.progress(&ProgressReport {
        what: format!("trial {} ({}): {}", number + 1, planned.phase.name(), setting_text(&planned.setting)),
        stage: planned.phase.name().to_owned(),
        done_seconds: done_seconds.min(run.budget_seconds),
        all_seconds: run.budget_seconds,
        next_seconds: planned.seconds,
        ranks: run.world.size(),
        transferred,
    });
    Ok(())
}

#[cfg(test)]
pub(super) mod stub;
#[cfg(test)]
mod tests;
