//! Rank 0's ears: every record goes to the journal and into the result, every step to the progress bar.

use std::io::IsTerminal;
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::complain;
use crate::frame::records::{Record, Warning};
use crate::frame::report::Outputs;
use crate::frame::run::{Observer, Standing};
use crate::frame::system::terminal;
use crate::frame::units::format_seconds;

/// Collects the records of a run. Lives on rank 0.
pub struct Collector<R> {
    /// What was measured so far.
    pub result: R,
    /// Files to write, if asked for.
    pub outputs: Option<Outputs>,
    bar: ProgressBar,
    journal_broken: bool,
}

impl<R: Record> Collector<R> {
    /// Starts with a result that has no records. The bar is drawn only on a terminal and without `quiet`.
    #[must_use]
    pub fn new(result: R, outputs: Option<Outputs>, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { draw_target() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}% {msg}") {
            bar.set_style(style);
        }
        let mut this = Self { result, outputs, bar, journal_broken: false };
        let start = this.result.start_line();
        this.write_journal(&start);
        this
    }

    fn write_journal(&mut self, line: &R::Line) {
        let Some(outputs) = self.outputs.as_mut().filter(|_| !self.journal_broken) else { return };
        if let Err(e) = outputs.journal().append(line) {
            self.journal_broken = true;
            let path = outputs.journal_path().display().to_string();
            complain(&format!(
                "the journal {path} cannot be written any more: {e}. The run goes on, results in memory"
            ));
            self.result.warn(Warning::JournalBroken { path, reason: e.to_string() });
        }
    }

    /// Takes the bar and the files away: nothing was measured.
    pub(crate) fn discard(self) {
        if let Some(outputs) = self.finish().1 {
            outputs.discard();
        }
    }

    /// Takes the bar away and gives the result back.
    #[must_use]
    pub fn finish(self) -> (R, Option<Outputs>) {
        self.bar.finish_and_clear();
        (self.result, self.outputs)
    }
}

/// On stderr if that is a terminal, or on the terminal behind the launcher's pipe.
fn draw_target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() {
        return ProgressDrawTarget::stderr();
    }
    terminal::behind_stderr().map_or_else(ProgressDrawTarget::hidden, |(read, write)| {
        ProgressDrawTarget::term(Term::read_write_pair(read, write), 5)
    })
}

impl<R: Record> Observer<R::Line> for Collector<R> {
    fn record(&mut self, line: R::Line) {
        self.write_journal(&line);
        self.result.absorb(line);
    }

    /// Moves the bar.
    fn progress(&mut self, standing: &Standing) {
        if self.bar.is_hidden() {
            return;
        }
        let Standing { what, done_seconds, all_seconds, last_mb_per_second } = standing;
        let share = if *all_seconds > 0.0 { done_seconds / all_seconds } else { 0.0 };
        let left = Duration::try_from_secs_f64((all_seconds - done_seconds).max(0.0)).unwrap_or_default();
        let left = format_seconds(left.as_secs_f64().ceil());
        let rate = last_mb_per_second.map_or(String::new(), |r| format!(", {r:.1} MB/s"));
        self.bar.set_position((share * 1000.0) as u64);
        self.bar.set_message(format!("{what}, at most {left} left{rate}"));
    }
}
