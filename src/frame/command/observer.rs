//! Observer of rank 0: records go to the journal and into the result, progress to the reporters.

use std::time::Instant;

use super::print_diagnostic;
use super::progress::{ProgressMonitor, RunEndReport};
use crate::frame::error::Exit;
use crate::frame::records::{kinds, JournaledResult, RunOutcome, TimeLimitRecord, Warning};
use crate::frame::report::Outputs;
use crate::frame::run::{ByteCounter, ProgressReport, RunObserver, TransferVolume};
use crate::frame::words::clause;

/// Collects the records of a run on rank 0.
pub struct ResultCollector<R> {
    /// Result so far.
    pub result: R,
    /// Files to write, if requested.
    pub outputs: Option<Outputs>,
    progress: ProgressMonitor,
    journal_broken: bool,
    journal_seconds: f64,
    evaluator: Option<fn(&R) -> Vec<f64>>,
}

impl<R: JournaledResult> ResultCollector<R> {
    /// Starts with a result without records.
    #[must_use]
    pub fn new(result: R, outputs: Option<Outputs>, progress: ProgressMonitor) -> Self {
        let mut this = Self { result, outputs, progress, journal_broken: false, journal_seconds: 0.0, evaluator: None };
        let start = this.result.start_line();
        this.write_journal(&start);
        this
    }

    /// Adds a function that derives from the records the numbers that the run needs.
    #[must_use]
    pub fn with_evaluator(mut self, judge: fn(&R) -> Vec<f64>) -> Self {
        self.evaluator = Some(judge);
        self
    }

    /// Records the time limit, if there is one.
    #[must_use]
    pub fn with_time_limit(mut self, record: Option<TimeLimitRecord>) -> Self {
        record.into_iter().for_each(|record| self.record(R::time_limit_line(record)));
        self
    }

    fn write_journal(&mut self, line: &R::JournalLine) {
        let Some(outputs) = self.outputs.as_mut().filter(|_| !self.journal_broken) else { return };
        let begin = Instant::now();
        let appended = outputs.journal().append(line);
        self.journal_seconds += begin.elapsed().as_secs_f64();
        if let Err(e) = appended {
            self.journal_broken = true;
            let path = outputs.journal_path().display().to_string();
            print_diagnostic(&format!(
                "the journal {path} cannot be written any more: {e}. The run continues, results in memory"
            ));
            self.result.add_warning(journal_warning(&path, &e.to_string()));
        }
    }

    /// Time taken to write the journal.
    pub(crate) fn journal_seconds(&self) -> f64 {
        self.journal_seconds
    }

    /// Removes the files: nothing was measured.
    pub(crate) fn discard(self, exit: Exit) {
        let (_, outputs, progress) = self.finish();
        progress.result(&RunEndReport { outcome: RunOutcome::Failed, exit, metrics: Vec::new() });
        if let Some(outputs) = outputs {
            outputs.discard();
        }
    }

    /// Ends the collection; the progress reporters wait for the result.
    #[must_use]
    pub fn finish(mut self) -> (R, Option<Outputs>, ProgressMonitor) {
        self.progress.end(self.result.outcome() == RunOutcome::Complete);
        (self.result, self.outputs, self.progress)
    }
}

/// Warning for a journal that could not be written to its end.
pub(crate) fn journal_warning(path: &str, reason: &str) -> Warning {
    let cause = clause(reason);
    kinds::JOURNAL_BROKEN.warning().with_figure("path", path).with_figure("reason", reason).with_text(
        format!("the journal {path} is incomplete"),
        format!("The journal {path} could not be written to its end: {cause}. These results come from memory."),
    )
}

impl<R: JournaledResult> RunObserver<R::JournalLine> for ResultCollector<R> {
    fn record(&mut self, line: R::JournalLine) {
        self.write_journal(&line);
        self.result.apply(line);
    }

    fn progress(&mut self, standing: &ProgressReport) {
        self.progress.part(standing);
    }

    fn measurement_ended(&mut self, is_complete: bool, last: Vec<TransferVolume>) {
        self.progress.measured(is_complete, last);
    }

    fn derived_numbers(&self) -> Vec<f64> {
        self.evaluator.map_or_else(Vec::new, |judge| judge(&self.result))
    }

    fn byte_counter(&self) -> ByteCounter {
        self.progress.live()
    }
}
