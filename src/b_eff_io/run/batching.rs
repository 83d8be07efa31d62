//! When a loop goes on, and with how many calls: pure arithmetic on what all ranks agreed on.
//!
//! All ranks put in the same numbers, so all take the same decision. The first batch is one call. Later ones double, up to 1/16 of
//! the pattern's time by the speed of the last batch (the next may be ten times slower: the page cache fills) and 0.25 s (a signal
//! or another rank's error is seen soon).
//!
//! Syncs belong to the time of a pattern and can exceed its calls. [`SyncModel`] predicts latency + bytes / rate from the calibration
//! and every sync since; a slower rate is believed at once, a faster one slowly. A loop ends when no further call fits together
//! with its share of the sync. What was overrun is taken from the later patterns of the access method
//! ([`budget_seconds`](crate::b_eff_io::plan::schedule::budget_seconds)). Saved time is not given to others.

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::Ended;

/// A batch never takes much longer than this, so that a signal or an error of one rank is seen soon.
const LONGEST_BATCH_SECONDS: f64 = 0.25;
/// A batch predicted from the last one takes at most this part of the pattern's time: the next may be ten times slower.
const BATCH_SHARE: f64 = 1.0 / 16.0;

/// How long a sync will take, learned from the syncs seen so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncModel {
    latency_seconds: f64,
    bytes_per_second: f64,
}

impl Default for SyncModel {
    /// Before anything is known: syncs are free.
    fn default() -> Self {
        Self { latency_seconds: 0.0, bytes_per_second: f64::INFINITY }
    }
}

/// Below this many bytes a sync is all latency.
const LATENCY_BYTES: u64 = 4 << 20;

impl SyncModel {
    /// Takes in a sync of `bytes` (all ranks) that took `seconds`. A slower rate than believed is believed at once, a
    /// faster one slowly: overrunning the schedule is worse than stopping early.
    pub fn learn(&mut self, bytes: u64, seconds: f64) {
        if bytes < LATENCY_BYTES {
            self.latency_seconds =
                if self.latency_seconds == 0.0 { seconds } else { 0.5 * (self.latency_seconds + seconds) };
            return;
        }
        let rate = bytes as f64 / (seconds - self.latency_seconds).max(seconds * 0.1).max(1e-9);
        self.bytes_per_second = if rate < self.bytes_per_second || self.bytes_per_second.is_infinite() {
            rate
        } else {
            0.7 * self.bytes_per_second + 0.3 * rate
        };
    }

    /// The model as numbers, to be sent to other ranks.
    #[must_use]
    pub fn to_parts(self) -> [f64; 2] {
        [self.latency_seconds, self.bytes_per_second]
    }

    /// The model that [`SyncModel::to_parts`] took apart.
    #[must_use]
    pub fn from_parts(parts: [f64; 2]) -> Self {
        Self { latency_seconds: parts[0], bytes_per_second: parts[1] }
    }

    /// Predicted time of a sync after writing `bytes`.
    #[must_use]
    pub fn predict_seconds(&self, bytes: u64) -> f64 {
        self.latency_seconds + bytes as f64 / self.bytes_per_second
    }
}

/// What bounds a loop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls at most.
    pub max_calls: u64,
    /// What it means when they are used up.
    pub calls_end: CallsEnd,
    /// Time for the whole pattern, its sync included; None: only calls count.
    pub time_seconds: Option<f64>,
    /// What it means when the time is used up.
    pub time_is_guard: bool,
    /// Prediction of the sync at the end; None: there is none.
    pub sync: Option<SyncModel>,
    /// Bytes of one call, all ranks.
    pub call_bytes_all_ranks: u64,
    /// How the end is found.
    pub termination: Termination,
}

/// Meaning of the call limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsEnd {
    /// The count of the definition.
    Count,
    /// The space share.
    Space,
}

/// State of a loop, equal on all ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Calls done.
    pub calls: u64,
    /// Time since the pattern began, slowest rank.
    pub elapsed_seconds: f64,
    /// Calls of the last batch.
    pub last_calls: u64,
    /// Time of the last batch, slowest rank.
    pub last_seconds: f64,
    /// Calls that a sync has covered already, at the end of earlier rounds.
    pub synced_calls: u64,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Another batch of this many calls.
    Run(u64),
    /// The loop is over.
    Stop(Ended),
}

/// The decision. At least one call is always made.
#[must_use]
pub fn next(limits: &Limits, progress: &Progress) -> Step {
    let left = limits.max_calls.saturating_sub(progress.calls);
    if left == 0 {
        return Step::Stop(match limits.calls_end {
            CallsEnd::Count => Ended::Count,
            CallsEnd::Space => Ended::Space,
        });
    }
    if progress.calls == 0 {
        return Step::Run(1);
    }
    let per_call = progress.last_seconds.max(1e-9) / progress.last_calls.max(1) as f64;
    let Some(time) = limits.time_seconds else {
        return Step::Run(grown(limits, progress, LONGEST_BATCH_SECONDS, per_call).min(left));
    };
    let stop = Step::Stop(if limits.time_is_guard { Ended::TimeGuard } else { Ended::Time });
    if limits.termination == Termination::PerCall {
        // Release 2.1: go on while the time for one more call, judged from the mean so far, is there.
        let calls = progress.calls as f64;
        return if progress.elapsed_seconds * (calls + 1.0) / calls <= time { Step::Run(1) } else { stop };
    }
    // Each further call costs its own time and its share of the sync at the end.
    let unsynced_bytes = (progress.calls - progress.synced_calls) * limits.call_bytes_all_ranks;
    let sync_now = limits.sync.map_or(0.0, |s| s.predict_seconds(unsynced_bytes));
    let sync_one = limits.sync.map_or(0.0, |s| s.predict_seconds(limits.call_bytes_all_ranks) - s.predict_seconds(0));
    let remaining = time - progress.elapsed_seconds - sync_now;
    let fit = remaining / (per_call + sync_one);
    if fit < 1.0 {
        return stop;
    }
    let longest = (time * BATCH_SHARE).min(LONGEST_BATCH_SECONDS);
    Step::Run(grown(limits, progress, longest, per_call).min(fit as u64).clamp(1, left))
}

impl Limits {
    /// The limits of a pattern up to the end of round `round` of `rounds`: its share of the time and of the calls, so that
    /// what one round leaves the next may use, and no round is empty because an earlier one was fast.
    #[must_use]
    pub fn until(&self, round: u32, rounds: u32) -> Self {
        let share = f64::from(round + 1) / f64::from(rounds);
        let calls = u128::from(self.max_calls) * u128::from(round + 1);
        Self {
            // Not larger than max_calls, as round + 1 is at most rounds.
            max_calls: calls.div_ceil(u128::from(rounds)) as u64,
            time_seconds: self.time_seconds.map(|seconds| seconds * share),
            ..*self
        }
    }
}

fn grown(limits: &Limits, progress: &Progress, longest_seconds: f64, per_call: f64) -> u64 {
    if limits.termination == Termination::PerCall {
        return 1;
    }
    let by_time = (longest_seconds / per_call) as u64;
    (progress.last_calls.saturating_mul(2)).min(by_time).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(time: f64) -> Limits {
        Limits {
            max_calls: u64::MAX,
            calls_end: CallsEnd::Count,
            time_seconds: Some(time),
            time_is_guard: false,
            sync: None,
            call_bytes_all_ranks: 1024,
            termination: Termination::Geometric,
        }
    }

    #[test]
    fn the_latency_that_was_learned_is_taken_off_a_long_sync() {
        let mut model = SyncModel::default();
        model.learn(LATENCY_BYTES - 1, 0.25);
        assert_eq!(model.to_parts(), [0.25, f64::INFINITY]);
        // From exactly this size on it is a rate.
        model.learn(LATENCY_BYTES, 1.25);
        assert_eq!(model.to_parts(), [0.25, LATENCY_BYTES as f64]);
        assert_eq!(model.predict_seconds(LATENCY_BYTES), 1.25);
        assert_eq!(SyncModel::from_parts([0.5, 8.0]).to_parts(), [0.5, 8.0]);
        assert_eq!(SyncModel::from_parts(model.to_parts()), model);
    }

    /// Plays a loop whose call `n` takes `cost(n)` seconds; returns (calls, seconds, decisions).
    fn play(limits: &Limits, cost: impl Fn(u64) -> f64) -> (u64, f64, u64) {
        let mut p = Progress::default();
        let mut decisions = 0;
        loop {
            match next(limits, &p) {
                Step::Run(calls) => {
                    let seconds: f64 = (p.calls..p.calls + calls).map(&cost).sum();
                    p = Progress {
                        calls: p.calls + calls,
                        elapsed_seconds: p.elapsed_seconds + seconds,
                        last_calls: calls,
                        last_seconds: seconds,
                        ..p
                    };
                    decisions += 1;
                }
                Step::Stop(_) => return (p.calls, p.elapsed_seconds, decisions),
            }
        }
    }

    #[test]
    fn few_decisions_fill_the_time() {
        let (calls, seconds, decisions) = play(&limits(1.0), |_| 1e-6);
        assert!((0.99..=1.0).contains(&seconds), "{seconds}");
        assert!(calls > 990_000);
        assert!(decisions < 60, "{decisions}");
    }

    #[test]
    fn a_loop_that_becomes_ten_times_slower_overruns_by_less_than_a_batch() {
        let (_, seconds, _) = play(&limits(1.0), |n| if n < 300_000 { 1e-6 } else { 1e-5 });
        assert!(seconds < 1.0 + 10.0 / 16.0, "{seconds}");
        assert!(seconds > 0.9);
    }

    #[test]
    fn slow_calls_run_at_least_once_and_stop() {
        let (calls, _, _) = play(&limits(1.0), |_| 3.0);
        assert_eq!(calls, 1);
        let (calls, seconds, _) = play(&limits(1.0), |_| 0.3);
        assert_eq!(calls, 3);
        assert!(seconds < 1.0);
    }

    #[test]
    fn the_sync_is_inside_the_time() {
        let mut model = SyncModel::default();
        model.learn(100 << 20, 1.0); // 105 MB/s
        let l = Limits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(1.0) };
        let (calls, seconds, _) = play(&l, |_| 1e-3);
        let sync = model.predict_seconds(calls << 20);
        assert!(seconds + sync <= 1.0 && seconds + sync > 0.9, "{seconds} + {sync}");
    }

    #[test]
    fn sync_model_believes_bad_news_at_once() {
        let mut m = SyncModel::default();
        m.learn(1 << 30, 1.0);
        m.learn(1 << 30, 10.0);
        assert!(m.predict_seconds(1 << 30) > 9.9);
        m.learn(1 << 30, 1.0);
        assert!(m.predict_seconds(1 << 30) > 2.0);
    }

    #[test]
    fn counts_and_space_end_a_loop() {
        let l = Limits { max_calls: 10, time_seconds: None, ..limits(1.0) };
        assert_eq!(next(&l, &Progress { calls: 10, ..Progress::default() }), Step::Stop(Ended::Count));
        let l = Limits { calls_end: CallsEnd::Space, ..l };
        assert_eq!(next(&l, &Progress { calls: 10, ..Progress::default() }), Step::Stop(Ended::Space));
        assert_eq!(play(&l, |_| 1e-3).0, 10);
    }

    #[test]
    fn rounds_share_time_and_calls() {
        let whole = Limits { max_calls: 10, ..limits(8.0) };
        let parts: Vec<_> = (0..4).map(|r| whole.until(r, 4)).map(|l| (l.max_calls, l.time_seconds)).collect();
        assert_eq!(parts, [(3, Some(2.0)), (5, Some(4.0)), (8, Some(6.0)), (10, Some(8.0))]);
        let endless = Limits { max_calls: u64::MAX, ..whole };
        assert_eq!(endless.until(7, 8).max_calls, u64::MAX);
        assert!(endless.until(0, 8).max_calls >= u64::MAX / 8);
    }

    #[test]
    fn a_sync_that_has_been_is_not_predicted_again() {
        let mut model = SyncModel::default();
        model.learn(100 << 20, 1.0);
        let l = Limits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(2.0) };
        let before = Progress { calls: 100, elapsed_seconds: 1.0, last_calls: 1, last_seconds: 1e-3, synced_calls: 0 };
        assert!(matches!(next(&l, &before), Step::Stop(_)));
        assert!(matches!(next(&l, &Progress { synced_calls: 100, ..before }), Step::Run(_)));
    }

    #[test]
    fn per_call_decides_after_every_call() {
        let l = Limits { termination: Termination::PerCall, ..limits(0.1) };
        let (calls, _, decisions) = play(&l, |_| 1e-3);
        assert_eq!(calls, decisions);
        assert!((99..=100).contains(&calls));
    }
}
