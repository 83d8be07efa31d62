//! Progress bar on a terminal. It moves and shows the rate within a part: a thread reads the bytes moved by rank 0 five times a second,
//! and draws.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use beff_ffi::alloc;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::reporter::{FinalProgress, ProgressReporter, ProgressSnapshot};
use crate::frame::run::{ByteCounter, ProgressReport};
use crate::frame::system::affinity;
use crate::frame::terminal_escape::line;
use crate::frame::units::{format_seconds, mb_per_second};

/// Columns of the bar, the percentage and the blanks: `{bar:10} {percent:>3}% `.
const BAR_COLUMNS: usize = 16;
const TICK: Duration = Duration::from_millis(200);
/// A rate over less time is not shown.
const MIN_RATE_SECONDS: f64 = 0.1;

pub(super) struct BarReporter {
    bar: ProgressBar,
    part: Arc<Mutex<Option<RunningPart>>>,
    live: ByteCounter,
    columns: usize,
    over: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
struct RunningPart {
    standing: ProgressReport,
    begin: Instant,
    /// Elapsed time of the run when the part began.
    elapsed_seconds: f64,
    left_seconds: f64,
    /// Bytes counted before it.
    live_before: u64,
}

impl RunningPart {
    /// Position of the bar in thousandths, and the text beside it in `columns`, `since` the begin of the part, with `live` bytes counted.
    fn bar_state(&self, since: Duration, live: u64, columns: usize) -> (u64, String) {
        let since_seconds = since.as_secs_f64();
        let all = self.elapsed_seconds + self.left_seconds;
        let elapsed = self.elapsed_seconds + since_seconds;
        // The bar stops at the planned end of a part that takes longer.
        let planned = self.planned_share() * all;
        let at = self.elapsed_seconds + since_seconds.min(planned);
        let share = if all > 0.0 { (at / all).clamp(0.0, 1.0) } else { 0.0 };
        let left = (all - elapsed).max(self.left_seconds - planned).max(0.0);
        let bytes = live.saturating_sub(self.live_before).saturating_mul(self.standing.ranks.max(1));
        let now = mb_per_second(bytes, since_seconds).filter(|_| since_seconds >= MIN_RATE_SECONDS && bytes > 0);
        let last = || self.standing.transferred.last().and_then(|last| mb_per_second(last.bytes, last.seconds));
        let rate = now.or_else(last).map_or_else(String::new, |rate| format!("{rate:.1} MB/s, "));
        let left = format_seconds(left.ceil());
        let what = line(&self.standing.what);
        // The name of the pattern is at the end, where a line is truncated.
        let forms = [
            format!("{rate}about {left} left: {what}"),
            format!("{rate}{left} left: {what}"),
            format!("{rate}{left}: {what}"),
        ];
        let fitting = forms.into_iter().find(|text| text.chars().count() <= columns);
        ((share * 1000.0) as u64, fitting.unwrap_or_else(|| format!("{left}: {what}")))
    }

    /// Share of the run that is planned for this part.
    fn planned_share(&self) -> f64 {
        let ProgressReport { done_seconds, all_seconds, next_seconds, .. } = self.standing;
        let rest = (all_seconds - done_seconds).max(0.0);
        let of_rest = if rest > 0.0 { (next_seconds / rest).clamp(0.0, 1.0) } else { 0.0 };
        let all = self.elapsed_seconds + self.left_seconds;
        if all > 0.0 {
            of_rest * self.left_seconds / all
        } else {
            0.0
        }
    }
}

impl BarReporter {
    /// A bar on a terminal with `columns` columns.
    pub(super) fn new((target, columns): (ProgressDrawTarget, usize), live: ByteCounter) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        // The text is truncated to the width.
        if let Ok(style) = ProgressStyle::with_template("{bar:10} {percent:>3}% {wide_msg}") {
            bar.set_style(style);
        }
        let mut this = Self {
            bar,
            part: Arc::default(),
            live,
            columns: columns.saturating_sub(BAR_COLUMNS + 1),
            over: Arc::default(),
            ticker: None,
        };
        this.start();
        this
    }

    fn start(&mut self) {
        let (bar, part, live, over) = (self.bar.clone(), self.part.clone(), self.live.clone(), self.over.clone());
        let columns = self.columns;
        let tick = move || {
            // Drawing is not part of the measurement.
            alloc::exclude_this_thread();
            affinity::use_initial_affinity();
            while !over.load(Ordering::Acquire) {
                thread::park_timeout(TICK);
                draw(&bar, &part, &live, columns);
            }
        };
        // Without a thread the bar moves between parts only.
        self.ticker = thread::Builder::new().name("progress".into()).spawn(tick).ok();
    }
}

fn draw(bar: &ProgressBar, part: &Mutex<Option<RunningPart>>, live: &ByteCounter, columns: usize) {
    let part = part.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(part) = part {
        let (position, message) = part.bar_state(part.begin.elapsed(), live.load(Ordering::Relaxed), columns);
        bar.set_position(position);
        bar.set_message(message);
    }
}

impl ProgressReporter for BarReporter {
    fn part(&mut self, now: &ProgressSnapshot<'_>) {
        let part = RunningPart {
            standing: now.standing.clone(),
            begin: Instant::now(),
            elapsed_seconds: now.elapsed_seconds,
            left_seconds: now.left_seconds,
            live_before: self.live.load(Ordering::Relaxed),
        };
        *self.part.lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
        draw(&self.bar, &self.part, &self.live, self.columns);
    }

    fn end(&mut self, _end: FinalProgress) {
        self.over.store(true, Ordering::Release);
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // The thread only draws and has no result.
            let _ = ticker.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::run::TransferVolume;

    fn part() -> RunningPart {
        let standing = ProgressReport {
            what: "posix, 2 ranks, read: pattern 3 (scatter)".into(),
            stage: "read".into(),
            done_seconds: 20.0,
            all_seconds: 60.0,
            next_seconds: 10.0,
            ranks: 2,
            transferred: vec![TransferVolume { who: "posix".into(), bytes: 5_000_000, seconds: 1.0 }],
        };
        RunningPart {
            standing,
            begin: Instant::now(),
            elapsed_seconds: 30.0,
            left_seconds: 60.0,
            live_before: 1_000_000,
        }
    }

    #[test]
    fn it_moves_within_a_part_and_shows_the_rate_of_all_ranks() {
        let shown = |seconds, live| part().bar_state(Duration::from_secs_f64(seconds), live, 200);
        let what = "posix, 2 ranks, read: pattern 3 (scatter)";
        assert_eq!(shown(0.0, 1_000_000), (333, format!("5.0 MB/s, about 1.0 min left: {what}")));
        assert_eq!(shown(9.0, 10_000_000), (433, format!("2.0 MB/s, about 51.0 s left: {what}")));
        // A fourth of the remaining time: 15 s. Then the bar stops, and the remaining time is at least that of the other parts.
        assert_eq!(shown(15.0, 1_000_000), (500, format!("5.0 MB/s, about 45.0 s left: {what}")));
        assert_eq!(shown(100.0, 1_000_000), (500, format!("5.0 MB/s, about 45.0 s left: {what}")));
    }

    #[test]
    fn eighty_columns_have_the_name_of_the_pattern() {
        let mut part = part();
        part.standing.what = "mpiio, 64 ranks, rewrite: pattern 37 (seg-coll)".into();
        let text = part.bar_state(Duration::from_secs(9), 10_000_000_000, 80 - BAR_COLUMNS - 1).1;
        assert_eq!(text, "51.0 s: mpiio, 64 ranks, rewrite: pattern 37 (seg-coll)");
        part.standing.what = "read: pattern 3 (scatter)".into();
        let text = part.bar_state(Duration::from_secs(9), 10_000_000, 80 - BAR_COLUMNS - 1).1;
        assert_eq!(text, "2.0 MB/s, about 51.0 s left: read: pattern 3 (scatter)");
    }

    #[test]
    fn a_run_of_no_time_has_a_bar_too() {
        let mut part = part();
        (part.elapsed_seconds, part.left_seconds) = (0.0, 0.0);
        part.standing.all_seconds = 0.0;
        assert_eq!(part.bar_state(Duration::ZERO, 0, 80).0, 0);
    }
}
