//! Rank 0's ears: every record goes to the journal and into the result, every step to the progress bar.

use std::io::IsTerminal;
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::complain;
use crate::engine::{comm, imb, Observer, Standing};
use crate::plan::patterns::type_name;
use crate::report::Outputs;
use crate::results::comm::{CommLine, CommResult};
use crate::results::imb::{ImbLine, ImbResult};
use crate::results::{JournalLine, Record, RunResult, Warning};
use crate::system::terminal;
use crate::units::format_seconds;

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

    fn take(&mut self, line: R::Line) {
        self.write_journal(&line);
        self.result.absorb(line);
    }

    /// Moves the bar; `what` is worked on now.
    fn show(&mut self, what: &str, done_seconds: f64, all_seconds: f64, last_mb_per_second: Option<f64>) {
        let share = if all_seconds > 0.0 { done_seconds / all_seconds } else { 0.0 };
        let left = Duration::try_from_secs_f64((all_seconds - done_seconds).max(0.0)).unwrap_or_default();
        let left = format_seconds(left.as_secs_f64().ceil());
        let rate = last_mb_per_second.map_or(String::new(), |r| format!(", {r:.1} MB/s"));
        self.bar.set_position((share * 1000.0) as u64);
        self.bar.set_message(format!("{what}, at most {left} left{rate}"));
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

impl Observer for Collector<RunResult> {
    fn record(&mut self, line: JournalLine) {
        self.take(line);
    }

    fn progress(&mut self, s: &Standing) {
        if self.bar.is_hidden() {
            return;
        }
        let (kind, access) = (type_name(s.pattern_type), s.access.name());
        let what = format!("{}, {} ranks, {access}: pattern {} ({kind})", s.backend, s.ranks, s.pattern);
        self.show(&what, s.done_seconds, s.all_seconds, s.last_mb_per_second);
    }
}

impl Observer<CommLine, comm::Standing> for Collector<CommResult> {
    fn record(&mut self, line: CommLine) {
        self.take(line);
    }

    fn progress(&mut self, s: &comm::Standing) {
        if !self.bar.is_hidden() {
            self.show(&s.pattern, s.done_seconds, s.all_seconds, s.last_mb_per_second);
        }
    }
}

impl Observer<ImbLine, imb::Standing> for Collector<ImbResult> {
    fn record(&mut self, line: ImbLine) {
        self.take(line);
    }

    fn progress(&mut self, s: &imb::Standing) {
        if !self.bar.is_hidden() {
            let what = format!("{} ({}), {} ranks, {}", s.benchmark, s.backend, s.ranks, s.sample);
            self.show(&what, s.done_seconds, s.all_seconds, s.last_mb_per_second);
        }
    }
}
