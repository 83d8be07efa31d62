//! Rank 0's ears: every record goes to the journal and into the result, every step to whoever watches.

use super::complain;
use super::progress::Progress;
use crate::frame::records::{kinds, Outcome, Record, Warning};
use crate::frame::report::Outputs;
use crate::frame::run::{Live, Moved, Observer, Standing};
use crate::frame::words::clause;

/// Collects the records of a run. Lives on rank 0.
pub struct Collector<R> {
    /// What was measured so far.
    pub result: R,
    /// Files to write, if asked for.
    pub outputs: Option<Outputs>,
    progress: Progress,
    journal_broken: bool,
    judge: Option<fn(&R) -> Vec<f64>>,
}

impl<R: Record> Collector<R> {
    /// Starts with a result that has no records.
    #[must_use]
    pub fn new(result: R, outputs: Option<Outputs>, progress: Progress) -> Self {
        let mut this = Self { result, outputs, progress, journal_broken: false, judge: None };
        let start = this.result.start_line();
        this.write_journal(&start);
        this
    }

    /// With somebody who works out from the records what the run asks for.
    #[must_use]
    pub fn judged_by(mut self, judge: fn(&R) -> Vec<f64>) -> Self {
        self.judge = Some(judge);
        self
    }

    fn write_journal(&mut self, line: &R::Line) {
        let Some(outputs) = self.outputs.as_mut().filter(|_| !self.journal_broken) else { return };
        if let Err(e) = outputs.journal().append(line) {
            self.journal_broken = true;
            let path = outputs.journal_path().display().to_string();
            complain(&format!(
                "the journal {path} cannot be written any more: {e}. The run goes on, results in memory"
            ));
            self.result.warn(journal_broken(&path, &e.to_string()));
        }
    }

    /// Takes the files away: nothing was measured.
    pub(crate) fn discard(self) {
        if let Some(outputs) = self.finish().1 {
            outputs.discard();
        }
    }

    /// Nothing more is measured: gives the result back.
    #[must_use]
    pub fn finish(mut self) -> (R, Option<Outputs>) {
        self.progress.end(self.result.outcome() == Outcome::Complete);
        (self.result, self.outputs)
    }
}

/// The journal could not be written to its end.
pub(crate) fn journal_broken(path: &str, reason: &str) -> Warning {
    let cause = clause(reason);
    kinds::JOURNAL_BROKEN.warning().figure("path", path).figure("reason", reason).told(
        format!("the journal {path} is not whole"),
        format!("The journal {path} could not be written to its end: {cause}. These results come from memory."),
    )
}

impl<R: Record> Observer<R::Line> for Collector<R> {
    fn record(&mut self, line: R::Line) {
        self.write_journal(&line);
        self.result.absorb(line);
    }

    fn progress(&mut self, standing: &Standing) {
        self.progress.part(standing);
    }

    fn measured(&mut self, is_complete: bool, last: Vec<Moved>) {
        self.progress.measured(is_complete, last);
    }

    fn judgement(&self) -> Vec<f64> {
        self.judge.map_or_else(Vec::new, |judge| judge(&self.result))
    }

    fn live(&self) -> Live {
        self.progress.live()
    }
}
