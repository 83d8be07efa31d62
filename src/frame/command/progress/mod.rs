//! Where a run stands, while it runs: as a bar, as lines, as JSON, and as a file of metrics. Nothing is written inside a clock,
//! but the bar, which a terminal alone gets.

mod bar;
mod json;
mod lines;
mod metrics;
pub mod pace;
mod stage;
mod teller;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use json::Event;

use std::io::IsTerminal;
use std::time::Instant;

use anyhow::anyhow;
use console::Term;
use indicatif::ProgressDrawTarget;

use self::pace::left_seconds;
use self::stage::Stages;
use self::teller::{End, Moment, Teller};
use crate::frame::error::UsageError;
use crate::frame::options::{ProgressArgs, ProgressMode};
use crate::frame::run::{Live, Moved, Standing};
use crate::frame::system::terminal;

/// The part under way, as planned.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    done_seconds: f64,
    next_seconds: f64,
    all_seconds: f64,
    /// Of the run, when it began.
    begin_seconds: f64,
}

impl Part {
    /// How much of all that is planned is done, if the run is cut in this part. A part is done no further than planned.
    fn share_if_cut(&self, elapsed_seconds: f64) -> f64 {
        let done_seconds = self.done_seconds + (elapsed_seconds - self.begin_seconds).min(self.next_seconds).max(0.0);
        share(elapsed_seconds, left_seconds(elapsed_seconds, done_seconds, self.all_seconds))
    }
}

/// How much of all is done, 0 to 1, by time.
fn share(elapsed_seconds: f64, left_seconds: f64) -> f64 {
    let all = elapsed_seconds + left_seconds;
    if all > 0.0 {
        (elapsed_seconds / all).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// All who tell it.
pub struct Progress {
    tellers: Vec<Box<dyn Teller>>,
    stages: Stages,
    begin: Instant,
    live: Live,
    now: Part,
    /// The share at the end of measuring, which cleaning up follows.
    measured_share: Option<f64>,
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
        let mut this = Self { tellers, live, ..Self::silent() };
        this.tellers.iter_mut().for_each(|teller| teller.begin(title));
        Ok(this)
    }

    /// Tells nobody.
    #[must_use]
    pub fn silent() -> Self {
        Self {
            tellers: Vec::new(),
            stages: Stages::default(),
            begin: Instant::now(),
            live: Live::default(),
            now: Part::default(),
            measured_share: None,
        }
    }

    /// Where bytes are counted while the clock runs.
    pub(super) fn live(&self) -> Live {
        self.live.clone()
    }

    /// A new part begins.
    pub(super) fn part(&mut self, standing: &Standing) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        let Standing { done_seconds, next_seconds, all_seconds, .. } = *standing;
        self.now = Part { done_seconds, next_seconds, all_seconds, begin_seconds: elapsed_seconds };
        let left_seconds = left_seconds(elapsed_seconds, done_seconds, all_seconds);
        self.tell(&Moment { standing, elapsed_seconds, left_seconds, share: share(elapsed_seconds, left_seconds) });
    }

    fn tell(&mut self, now: &Moment<'_>) {
        let over = self.stages.part(now.standing, now.elapsed_seconds);
        for teller in &mut self.tellers {
            if let Some(over) = &over {
                teller.stage(over, now);
            }
            teller.part(now);
        }
    }

    /// How much of all is done if nothing more is.
    fn share_at_end(&self, is_complete: bool, elapsed_seconds: f64) -> f64 {
        if is_complete {
            1.0
        } else {
            self.measured_share.unwrap_or_else(|| self.now.share_if_cut(elapsed_seconds))
        }
    }

    /// Nothing more is measured.
    pub(super) fn measured(&mut self, is_complete: bool, last: Vec<Moved>) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        let share = self.share_at_end(is_complete, elapsed_seconds);
        self.measured_share = Some(share);
        let what = "cleaning up".to_owned();
        let stage = what.clone();
        let (done_seconds, all_seconds) = (self.now.all_seconds, self.now.all_seconds);
        let standing = Standing { what, stage, done_seconds, all_seconds, next_seconds: 0.0, ranks: 1, last };
        self.tell(&Moment { standing: &standing, elapsed_seconds, left_seconds: 0.0, share });
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self, is_complete: bool) {
        let elapsed_seconds = self.begin.elapsed().as_secs_f64();
        let share = self.share_at_end(is_complete, elapsed_seconds);
        self.tellers.iter_mut().for_each(|teller| teller.end(End { elapsed_seconds, share, is_complete }));
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
