//! Runs a measurement and ends it, for every benchmark: clean-up, output files, printed table, one exit code.

use std::time::Instant;

use beff_ffi::Comm;

use super::observer::ResultCollector;
use super::progress::RunEndReport;
use super::start::CommandError;
use super::{directory, print_diagnostic, start};
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::InconclusivePolicy;
use crate::frame::records::{JournaledResult, RunEnd, RunOutcome, Warning};
use crate::frame::report::{DisplayContext, TerminalOutput, Views};
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{NullObserver, RunObserver};
use crate::frame::values::acceptance::RequirementVerdict;

#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredFiles<'a> {
    pub run_dir: &'a RunDir,
    /// Keep them if the run is complete.
    pub keep: bool,
}

impl MeasuredFiles<'_> {
    fn clean_up(&self, world: &Comm, outcome: RunOutcome) -> Option<Warning> {
        directory::clean_up(world, self.run_dir, self.keep, outcome)
    }
}

pub(crate) struct ScreenOutput {
    pub sheet: TerminalOutput,
    /// Printed on stderr after it.
    pub remark: Option<String>,
    /// Exit code of a run that is otherwise [`Exit::Ok`].
    pub exit: Exit,
}

impl From<TerminalOutput> for ScreenOutput {
    fn from(sheet: TerminalOutput) -> Self {
        Self { sheet, remark: None, exit: Exit::Ok }
    }
}

/// Runs `work`, cleans up and reports. If `work` failed on all ranks before anything was measured, everything created for it is removed.
/// The exit code is that of rank 0 on all ranks. Collective.
///
/// # Errors
/// Errors of `work`; MPI errors.
pub(crate) fn measure_and_report<R: Views>(
    world: &Comm,
    files: Option<MeasuredFiles<'_>>,
    mut collector: Option<ResultCollector<R>>,
    work: impl FnOnce(&mut dyn RunObserver<R::JournalLine>) -> Result<R::EndRecord, CommandError>,
    page: impl FnOnce(&R, &R::Derived, &DisplayContext) -> ScreenOutput,
) -> Result<Exit, CommandError> {
    let ended = match &mut collector {
        Some(collector) => work(collector),
        None => work(&mut NullObserver),
    };
    if let Err(CommandError::Collective(error)) = &ended {
        if let Some(files) = files {
            let _ = directory::clean_up(world, files.run_dir, false, RunOutcome::Failed);
        }
        if let Some(collector) = collector.take() {
            collector.discard(if error.is::<UsageError>() { Exit::Usage } else { Exit::Failure });
        }
    }
    finish_run(world, files, ended?, collector, page)
}

fn finish_run<R: Views>(
    world: &Comm,
    files: Option<MeasuredFiles<'_>>,
    mut ending: R::EndRecord,
    collector: Option<ResultCollector<R>>,
    page: impl FnOnce(&R, &R::Derived, &DisplayContext) -> ScreenOutput,
) -> Result<Exit, CommandError> {
    let mut worst = [*ending.rank_memory_high_water_bytes()];
    world.max_u64(&mut worst)?;
    *ending.rank_memory_high_water_bytes() = worst[0];
    let outcome = ending.outcome();
    // After a signal, or at the end of the job, the launcher may kill soon: the result comes before the removal of files.
    let result_first = matches!(outcome, RunOutcome::Interrupted | RunOutcome::Limit);
    let mut left = None;
    if let Some(files) = files.filter(|_| !result_first) {
        let begin = Instant::now();
        left = files.clean_up(world, outcome);
        ending.set_cleanup_seconds(begin.elapsed().as_secs_f64());
    }
    let mut exit = Exit::Ok;
    if let Some(mut collector) = collector {
        if let Some(warning) = left {
            collector.record(R::warning_line(warning));
        }
        ending.set_journal_seconds(collector.journal_seconds());
        collector.record(R::end_line(ending));
        exit = write_report(collector, page);
    }
    if let Some(left) = files.filter(|_| result_first).and_then(|files| files.clean_up(world, outcome)) {
        print_diagnostic(&format!("{} could not be removed: {}", left.text("path"), left.text("reason")));
    }
    Ok(start::broadcast_exit(world, exit)?)
}

/// Writes the files and prints the page, on rank 0.
fn write_report<R: Views>(
    collector: ResultCollector<R>,
    page: impl FnOnce(&R, &R::Derived, &DisplayContext) -> ScreenOutput,
) -> Exit {
    let (result, outputs, progress) = collector.finish();
    let derived = result.derived();
    let view = |suffix: &str| result.file_bytes(&derived, suffix);
    let (mut remark, mut judged) = (None, Exit::Ok);
    let sheet = |place: &DisplayContext| {
        let page = page(&result, &derived, place);
        (remark, judged) = (page.remark, page.exit);
        page.sheet
    };
    let is_written = start::write_outputs(outputs, view, sheet);
    let exit = match if is_written { exit_code(&result) } else { Exit::Failure } {
        Exit::Ok => judged,
        failed => failed,
    };
    progress.result(&RunEndReport { outcome: result.outcome(), exit, metrics: result.metrics(&derived) });
    if !is_written {
        return exit;
    }
    remark.iter().for_each(|remark| print_diagnostic(remark));
    if exit == Exit::Usage {
        print_diagnostic("nothing was measured: everything requested was refused, for the reasons among the warnings");
    }
    exit
}

/// Exit code of an acceptance with this verdict.
pub(crate) fn acceptance_exit(verdict: RequirementVerdict, undecided: InconclusivePolicy) -> Exit {
    match (verdict, undecided) {
        (RequirementVerdict::Pass, _) | (RequirementVerdict::Undecided, InconclusivePolicy::Pass) => Exit::Ok,
        (RequirementVerdict::Fail, _) => Exit::BelowLimit,
        (RequirementVerdict::Undecided, InconclusivePolicy::Fail) => Exit::Inconclusive,
    }
}

/// Exit code of the program for a result.
pub(crate) fn exit_code<R: JournaledResult>(result: &R) -> Exit {
    match result.outcome() {
        _ if result.is_corrupt() => Exit::Corruption,
        RunOutcome::Interrupted => Exit::Interrupted,
        // The request does not fit this machine: a script must not take it for a measurement.
        RunOutcome::Complete | RunOutcome::Limit if result.errors().is_empty() && result.has_no_measurement() => {
            Exit::Usage
        }
        RunOutcome::Complete | RunOutcome::Limit if result.errors().is_empty() => Exit::Ok,
        _ => Exit::Failure,
    }
}
