//! Where a run stands, while it runs: as a bar, as lines, as JSON, and as a file of metrics. Nothing is written inside a clock,
//! but the bar, which a terminal alone gets.

mod bar;
mod json;
mod lines;
mod metrics;
pub mod pace;
mod stage;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::Instant;

use anyhow::anyhow;
use console::Term;
use indicatif::ProgressDrawTarget;

use self::pace::left_seconds;
use self::stage::{Stage, Stages};
use crate::frame::error::UsageError;
use crate::frame::options::{ProgressArgs, ProgressMode};
use crate::frame::run::{Live, Standing};
use crate::frame::system::terminal;

/// A moment of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moment<'a> {
    /// What comes next.
    pub standing: &'a Standing,
    /// Since the run began.
    pub elapsed_seconds: f64,
    /// Until it ends, by what was measured so far.
    pub left_seconds: f64,
}

impl Moment<'_> {
    /// How much of all is done, 0 to 1, by time.
    fn share(&self) -> f64 {
        let all = self.elapsed_seconds + self.left_seconds;
        if all > 0.0 {
            (self.elapsed_seconds / all).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

/// Who tells it.
trait Teller {
    /// The run begins.
    fn begin(&mut self, _title: &str) {}
    /// A new part begins.
    fn part(&mut self, _now: &Moment<'_>) {}
    /// A stage is over.
    fn stage(&mut self, _over: &Stage, _now: &Moment<'_>) {}
    /// Nothing more comes.
    fn end(&mut self, _elapsed_seconds: f64) {}
}

/// All who tell it.
pub struct Progress {
    tellers: Vec<Box<dyn Teller>>,
    stages: Stages,
    begin: Instant,
    live: Live,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("tellers", &self.tellers.len()).finish_non_exhaustive()
    }
}

impl Progress {
    /// As asked for. `title` is the benchmark in a few words.
    ///
    /// # Errors
    /// The file of metrics cannot be written: nothing would watch the run.
    pub fn open(args: &ProgressArgs, title: &str) -> anyhow::Result<Self> {
        let live = Live::default();
        let mut tellers: Vec<Box<dyn Teller>> = Vec::new();
        match args.mode() {
            ProgressMode::Off => {}
            ProgressMode::Json => tellers.push(Box::new(json::Json::new())),
            ProgressMode::Lines => tellers.push(Box::new(lines::Lines::new())),
            ProgressMode::Bar => tellers.push(match draw_target() {
                Some(target) => Box::new(bar::Bar::new(target, live.clone())),
                None => return Err(no_terminal().into()),
            }),
            ProgressMode::Auto => tellers.push(match draw_target() {
                Some(target) => Box::new(bar::Bar::new(target, live.clone())),
                None => Box::new(lines::Lines::new()),
            }),
        }
        if let Some(path) = &args.metrics {
            let metrics = metrics::Metrics::create(path, title).map_err(|e| {
                anyhow!(UsageError::new(
                    format!("--metrics {}: {e}", path.display()),
                    "Give another name, in a directory that is there and may be written.",
                ))
            })?;
            tellers.push(Box::new(metrics));
        }
        let mut this = Self { tellers, stages: Stages::default(), begin: Instant::now(), live };
        this.tellers.iter_mut().for_each(|teller| teller.begin(title));
        Ok(this)
    }

    /// Tells nobody.
    #[must_use]
    pub fn silent() -> Self {
        Self { tellers: Vec::new(), stages: Stages::default(), begin: Instant::now(), live: Live::default() }
    }

    /// Where bytes are counted while the clock runs.
    pub(super) fn live(&self) -> Live {
        self.live.clone()
    }

    /// A new part begins.
    pub(super) fn part(&mut self, standing: &Standing) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        let left_seconds = left_seconds(elapsed_seconds, standing.done_seconds, standing.all_seconds);
        let now = Moment { standing, elapsed_seconds, left_seconds };
        let over = self.stages.part(standing, elapsed_seconds);
        for teller in &mut self.tellers {
            if let Some(over) = &over {
                teller.stage(over, &now);
            }
            teller.part(&now);
        }
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        self.tellers.iter_mut().for_each(|teller| teller.end(elapsed_seconds));
        self.tellers.clear();
    }
}

fn no_terminal() -> UsageError {
    UsageError::new(
        "--progress bar: stderr is no terminal that a bar could be drawn on",
        "Take --progress lines, or auto, which draws a bar where it can.",
    )
}

/// On stderr if that is a terminal, or on the terminal behind the launcher's pipe; None: there is none.
fn draw_target() -> Option<ProgressDrawTarget> {
    if std::io::stderr().is_terminal() {
        return Some(ProgressDrawTarget::stderr());
    }
    terminal::behind_stderr().map(|(read, write)| ProgressDrawTarget::term(Term::read_write_pair(read, write), 5))
}
