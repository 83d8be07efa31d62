//! A bar on a terminal. It moves and tells the rate while a part runs: a thread of its own looks five times a second at what rank 0
//! has moved, and draws.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use beff_ffi::alloc;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::teller::{End, Moment, Teller};
use crate::frame::plain::line;
use crate::frame::run::{Live, Standing};
use crate::frame::system::affinity;
use crate::frame::units::{format_seconds, mb_per_second};

/// Between two looks.
const TICK: Duration = Duration::from_millis(200);
/// A rate over less time says nothing.
const SHORTEST_RATE_SECONDS: f64 = 0.1;

pub(super) struct Bar {
    bar: ProgressBar,
    part: Arc<Mutex<Option<Part>>>,
    live: Live,
    over: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

/// The part under way.
#[derive(Clone, Debug)]
struct Part {
    standing: Standing,
    begin: Instant,
    /// Of all, when it began.
    elapsed_seconds: f64,
    left_seconds: f64,
    /// Counted before it.
    live_before: u64,
}

impl Part {
    /// Share of all in thousandths, and what stands beside the bar, `since` its begin, with so many bytes counted.
    fn shown(&self, since: Duration, live: u64) -> (u64, String) {
        let since_seconds = since.as_secs_f64();
        let all = self.elapsed_seconds + self.left_seconds;
        let elapsed = self.elapsed_seconds + since_seconds;
        // A part that takes longer than planned stands still at its end.
        let planned = self.next_share() * all;
        let at = self.elapsed_seconds + since_seconds.min(planned);
        let share = if all > 0.0 { (at / all).clamp(0.0, 1.0) } else { 0.0 };
        let left = (all - elapsed).max(self.left_seconds - planned).max(0.0);
        let bytes = live.saturating_sub(self.live_before).saturating_mul(self.standing.ranks.max(1));
        let now = mb_per_second(bytes, since_seconds).filter(|_| since_seconds >= SHORTEST_RATE_SECONDS && bytes > 0);
        let last = || self.standing.last.last().and_then(|last| mb_per_second(last.bytes, last.seconds));
        let rate = now.or_else(last).map_or_else(String::new, |rate| format!("{rate:.1} MB/s, "));
        let left = format_seconds(left.ceil());
        ((share * 1000.0) as u64, format!("{rate}about {left} left: {}", line(&self.standing.what)))
    }

    /// Of all, what this part takes.
    fn next_share(&self) -> f64 {
        let Standing { done_seconds, all_seconds, next_seconds, .. } = self.standing;
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

impl Bar {
    pub(super) fn new(target: ProgressDrawTarget, live: Live) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        // What does not fit in the width is left away at the end.
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {percent:>3}% {wide_msg}") {
            bar.set_style(style);
        }
        let mut this = Self { bar, part: Arc::default(), live, over: Arc::default(), ticker: None };
        this.start();
        this
    }

    fn start(&mut self) {
        let (bar, part, live, over) = (self.bar.clone(), self.part.clone(), self.live.clone(), self.over.clone());
        let tick = move || {
            // What is drawn is no part of what is measured.
            alloc::leave_out_this_thread();
            affinity::as_found();
            while !over.load(Ordering::Acquire) {
                thread::park_timeout(TICK);
                draw(&bar, &part, &live);
            }
        };
        // Without a thread it moves between the parts alone.
        self.ticker = thread::Builder::new().name("progress".into()).spawn(tick).ok();
    }
}

fn draw(bar: &ProgressBar, part: &Mutex<Option<Part>>, live: &Live) {
    let part = part.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(part) = part {
        let (position, message) = part.shown(part.begin.elapsed(), live.load(Ordering::Relaxed));
        bar.set_position(position);
        bar.set_message(message);
    }
}

impl Teller for Bar {
    fn part(&mut self, now: &Moment<'_>) {
        let part = Part {
            standing: now.standing.clone(),
            begin: Instant::now(),
            elapsed_seconds: now.elapsed_seconds,
            left_seconds: now.left_seconds,
            live_before: self.live.load(Ordering::Relaxed),
        };
        *self.part.lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
        draw(&self.bar, &self.part, &self.live);
    }

    fn end(&mut self, _end: End) {
        self.over.store(true, Ordering::Release);
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // It only draws: its end is all that is wanted of it.
            let _ = ticker.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::run::Moved;

    fn part() -> Part {
        let standing = Standing {
            what: "posix, 2 ranks, read: pattern 3 (scatter)".into(),
            stage: "read".into(),
            done_seconds: 20.0,
            all_seconds: 60.0,
            next_seconds: 10.0,
            ranks: 2,
            last: vec![Moved { who: "posix".into(), bytes: 5_000_000, seconds: 1.0 }],
        };
        Part { standing, begin: Instant::now(), elapsed_seconds: 30.0, left_seconds: 60.0, live_before: 1_000_000 }
    }

    #[test]
    fn it_moves_within_a_part_and_shows_the_rate_of_all_ranks() {
        let shown = |seconds, live| part().shown(Duration::from_secs_f64(seconds), live);
        let what = "posix, 2 ranks, read: pattern 3 (scatter)";
        assert_eq!(shown(0.0, 1_000_000), (333, format!("5.0 MB/s, about 1.0 min left: {what}")));
        assert_eq!(shown(9.0, 10_000_000), (433, format!("2.0 MB/s, about 51.0 s left: {what}")));
        // A fourth of what is left: 15 s. Then it waits, and says no less than the others will take.
        assert_eq!(shown(15.0, 1_000_000), (500, format!("5.0 MB/s, about 45.0 s left: {what}")));
        assert_eq!(shown(100.0, 1_000_000), (500, format!("5.0 MB/s, about 45.0 s left: {what}")));
    }

    #[test]
    fn a_run_of_no_time_has_a_bar_too() {
        let mut part = part();
        (part.elapsed_seconds, part.left_seconds) = (0.0, 0.0);
        part.standing.all_seconds = 0.0;
        assert_eq!(part.shown(Duration::ZERO, 0).0, 0);
    }
}
