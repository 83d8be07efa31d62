//! Progress of a run: as a bar, as lines, as JSON, and as a file of metrics. Nothing is written inside a clock, except the bar on a
//! terminal.

mod bar;
mod json;
mod lines;
mod metrics;
pub mod remaining;
mod reporter;
mod stage;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use json::ProgressEvent;

pub(crate) use reporter::RunEndReport;
pub use reporter::RunTitle;

use std::io::IsTerminal;
use std::time::Instant;

use anyhow::anyhow;
use console::Term;
use indicatif::ProgressDrawTarget;

use self::remaining::remaining_seconds;
use self::reporter::{FinalProgress, ProgressReporter, ProgressSnapshot};
use self::stage::StageTracker;
use crate::frame::error::UsageError;
use crate::frame::options::{ProgressArgs, ProgressMode};
use crate::frame::run::{ByteCounter, ProgressReport, TransferVolume};
use crate::frame::system::terminal;

#[derive(Clone, Copy, Debug, Default)]
struct PlannedPart {
    done_seconds: f64,
    next_seconds: f64,
    all_seconds: f64,
    /// Elapsed time of the run when the part began.
    begin_seconds: f64,
}

impl PlannedPart {
    /// Completed share of the plan if the run is interrupted in this part, which counts at most as planned.
    fn share_if_interrupted(&self, elapsed_seconds: f64) -> f64 {
        let done_seconds = self.done_seconds + (elapsed_seconds - self.begin_seconds).min(self.next_seconds).max(0.0);
        elapsed_share(elapsed_seconds, remaining_seconds(elapsed_seconds, done_seconds, self.all_seconds))
    }
}

/// Completed share of the run, 0 to 1, by time.
fn elapsed_share(elapsed_seconds: f64, left_seconds: f64) -> f64 {
    let all = elapsed_seconds + left_seconds;
    if all > 0.0 {
        (elapsed_seconds / all).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// All progress reporters of a run.
pub struct ProgressMonitor {
    reporters: Vec<Box<dyn ProgressReporter>>,
    stages: StageTracker,
    begin: Instant,
    live: ByteCounter,
    current_part: PlannedPart,
    /// The share at the end of measuring, before clean-up.
    measured_share: Option<f64>,
}

impl std::fmt::Debug for ProgressMonitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("tellers", &self.reporters.len()).finish_non_exhaustive()
    }
}

impl ProgressMonitor {
    /// Opens the requested reporters.
    ///
    /// # Errors
    /// The file of metrics cannot be written; there is no terminal for a bar.
    pub fn open(args: &ProgressArgs, title: &RunTitle) -> anyhow::Result<Self> {
        let live = ByteCounter::default();
        let mut tellers: Vec<Box<dyn ProgressReporter>> = Vec::new();
        match args.mode() {
            ProgressMode::Off => {}
            ProgressMode::Json => tellers.push(Box::new(json::JsonReporter::new())),
            ProgressMode::Lines => tellers.push(Box::new(lines::LineReporter::new())),
            ProgressMode::Bar => tellers.push(match draw_target() {
                Some(target) => Box::new(bar::BarReporter::new(target, live.clone())),
                None => return Err(no_terminal().into()),
            }),
            ProgressMode::Auto => tellers.push(match draw_target() {
                Some(target) => Box::new(bar::BarReporter::new(target, live.clone())),
                None => Box::new(lines::LineReporter::new()),
            }),
        }
        if let Some(path) = &args.metrics {
            let metrics = metrics::MetricsFile::create(path, title).map_err(|e| {
                anyhow!(UsageError::new(
                    format!("--metrics {}: {e}", path.display()),
                    "Give another name, in an existing directory that can be written.",
                ))
            })?;
            tellers.push(Box::new(metrics));
        }
        let mut this = Self { reporters: tellers, live, ..Self::silent() };
        this.reporters.iter_mut().for_each(|teller| teller.begin(&title.text));
        Ok(this)
    }

    /// Without reporters.
    #[must_use]
    pub fn silent() -> Self {
        Self {
            reporters: Vec::new(),
            stages: StageTracker::default(),
            begin: Instant::now(),
            live: ByteCounter::default(),
            current_part: PlannedPart::default(),
            measured_share: None,
        }
    }

    pub(super) fn live(&self) -> ByteCounter {
        self.live.clone()
    }

    pub(super) fn part(&mut self, standing: &ProgressReport) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        let ProgressReport { done_seconds, next_seconds, all_seconds, .. } = *standing;
        self.current_part = PlannedPart { done_seconds, next_seconds, all_seconds, begin_seconds: elapsed_seconds };
        let left_seconds = remaining_seconds(elapsed_seconds, done_seconds, all_seconds);
        self.notify(&ProgressSnapshot {
            standing,
            elapsed_seconds,
            left_seconds,
            share: elapsed_share(elapsed_seconds, left_seconds),
        });
    }

    fn notify(&mut self, now: &ProgressSnapshot<'_>) {
        let over = self.stages.part(now.standing, now.elapsed_seconds);
        for teller in &mut self.reporters {
            if let Some(over) = &over {
                teller.stage(over, now);
            }
            teller.part(now);
        }
    }

    /// Completed share if the run ends now.
    fn share_at_end(&self, is_complete: bool, elapsed_seconds: f64) -> f64 {
        if is_complete {
            1.0
        } else {
            self.measured_share.unwrap_or_else(|| self.current_part.share_if_interrupted(elapsed_seconds))
        }
    }

    pub(super) fn measured(&mut self, is_complete: bool, last: Vec<TransferVolume>) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        let share = self.share_at_end(is_complete, elapsed_seconds);
        self.measured_share = Some(share);
        let what = "cleaning up".to_owned();
        let stage = what.clone();
        let (done_seconds, all_seconds) = (self.current_part.all_seconds, self.current_part.all_seconds);
        let standing =
            ProgressReport { what, stage, done_seconds, all_seconds, next_seconds: 0.0, ranks: 1, transferred: last };
        self.notify(&ProgressSnapshot { standing: &standing, elapsed_seconds, left_seconds: 0.0, share });
    }

    pub(super) fn end(&mut self, is_complete: bool) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        let share = self.share_at_end(is_complete, elapsed_seconds);
        self.reporters.iter_mut().for_each(|teller| teller.end(FinalProgress { elapsed_seconds, share, is_complete }));
    }

    /// Reports the result, after the end.
    pub(super) fn result(mut self, end: &RunEndReport) {
        self.reporters.iter_mut().for_each(|teller| teller.result(end));
    }
}

fn no_terminal() -> UsageError {
    UsageError::new(
        "--progress bar: stderr is not a terminal, so a bar cannot be drawn",
        "Use --progress lines, or auto, which draws a bar where possible.",
    )
}

/// Stderr if it is a terminal, else the terminal behind the launcher's pipe, and its columns; None if there is none.
fn draw_target() -> Option<(ProgressDrawTarget, usize)> {
    let columns = |term: &Term| usize::from(term.size().1);
    if std::io::stderr().is_terminal() {
        return Some((ProgressDrawTarget::stderr(), columns(&Term::stderr())));
    }
    let (read, write) = terminal::stderr_terminal()?;
    let term = Term::read_write_pair(read, write);
    let columns = columns(&term);
    Some((ProgressDrawTarget::term(term, 5), columns))
}
