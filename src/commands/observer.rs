//! Rank 0's ears: every record goes to the journal and into the result, every step to the progress bar.

use std::io::IsTerminal;
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::complain;
use crate::engine::{Observer, Standing};
use crate::plan::patterns::type_name;
use crate::report::Outputs;
use crate::results::{JournalLine, RunResult, Warning};
use crate::system::terminal;
use crate::units::format_seconds;

/// Collects the records of a run. Lives on rank 0.
pub struct Collector {
    /// What was measured so far.
    pub result: RunResult,
    /// Files to write, if asked for.
    pub outputs: Option<Outputs>,
    bar: ProgressBar,
    journal_broken: bool,
}

impl Collector {
    /// Starts with a result that has no records. The bar is drawn only on a terminal and without `quiet`.
    #[must_use]
    pub fn new(result: RunResult, outputs: Option<Outputs>, quiet: bool) -> Self {
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

    fn write_journal(&mut self, line: &JournalLine) {
        let Some(outputs) = self.outputs.as_mut().filter(|_| !self.journal_broken) else { return };
        if let Err(e) = outputs.journal().append(line) {
            self.journal_broken = true;
            let path = outputs.journal_path().display().to_string();
            complain(&format!(
                "the journal {path} cannot be written any more: {e}. The run goes on, results in memory"
            ));
            self.result.warnings.push(Warning::JournalBroken { path, reason: e.to_string() });
        }
    }

    /// Takes the bar away and gives the result back.
    #[must_use]
    pub fn finish(self) -> (RunResult, Option<Outputs>) {
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

impl Observer for Collector {
    fn record(&mut self, line: JournalLine) {
        self.write_journal(&line);
        self.result.absorb(line);
    }

    fn progress(&mut self, s: &Standing) {
        if self.bar.is_hidden() {
            return;
        }
        let share = if s.all_seconds > 0.0 { s.done_seconds / s.all_seconds } else { 0.0 };
        let left = Duration::try_from_secs_f64((s.all_seconds - s.done_seconds).max(0.0)).unwrap_or_default();
        let rate = s.last_mb_per_second.map_or(String::new(), |r| format!(", {r:.1} MB/s"));
        self.bar.set_position((share * 1000.0) as u64);
        self.bar.set_message(format!(
            "{}, {} ranks, {}: pattern {} ({}), at most {} left{rate}",
            s.backend,
            s.ranks,
            s.access.name(),
            s.pattern,
            type_name(s.pattern_type),
            format_seconds(left.as_secs_f64().ceil()),
        ));
    }
}
