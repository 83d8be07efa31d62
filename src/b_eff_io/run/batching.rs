//! When a loop goes on, and with how many calls: pure arithmetic on what all ranks agreed on.
//!
//! All ranks put in the same numbers, so all take the same decision. The first batch is one call. Later ones double, up to 1/16 of
//! the pattern's time by the speed of the last two batches that are known (the next may be ten times slower: the page cache fills) and
//! 0.25 s (a signal or another rank's error is seen soon). Of the two the faster one counts: a rank that had a pause in one batch is not
//! slower for that, and calls that stay slower are known with the next.
//!
//! A batch that the ranks move together begins and ends with nothing under way, so short ones are slower. Past the page cache a pattern in
//! rounds therefore has batches as long, but none longer than a third of a round, and each round goes on from the largest batch so far. Where
//! data can be in the page cache the next batch may be much slower: there it is 1/16 of the time up to the end of the round, and doubles from
//! the last one.
//!
//! While the ranks agree on some batches they may run others, of which nothing is known yet: calls *ahead*. What is ahead and the next
//! batch are together small enough that, slower than predicted, they overrun the time no more than one batch alone, and never longer than
//! two of the longest. Slower means ten times where data can be in the page cache and twice where it cannot. Where that leaves too
//! little, or no further call seems to fit, the ranks agree on what is ahead first: no loop ends by a guess. A rank that is slower for a
//! moment is to hold up nobody: towards the end, where less may be ahead, batches are shorter.
//!
//! Before anything is known the speed of an earlier pass stands for it, so that a rank whose first call is short need not wait for
//! the others; through the page cache, where a pass says little about the next, for one call more.
//!
//! Syncs belong to the time of a pattern and can exceed its calls. [`SyncModel`] predicts latency + bytes / rate from the calibration
//! and every sync since; a slower rate is believed at once, a faster one slowly. A loop ends when no further call fits together
//! with its share of the sync. What was overrun is taken from the later patterns of the access method
//! ([`budget_seconds`](crate::b_eff_io::plan::schedule::budget_seconds)). Saved time is not given to others.

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::Ended;

/// A batch never takes much longer than this, so that a signal or an error of one rank is seen soon.
const LONGEST_BATCH_SECONDS: f64 = 0.25;
/// A batch predicted from the last one takes at most this part of the pattern's time: the next may be so many times slower.
const BATCH_SHARE: f64 = 1.0 / 16.0;
const SLOWER: f64 = 10.0;
/// And at most this part of a round: two are ahead at most, and twice as slow they leave something to the next round.
const ROUND_SHARE: f64 = 1.0 / 3.0;
/// The same where nothing passes through the page cache.
const SLOWER_DIRECT: f64 = 2.0;
/// Calls that may be made before anything is known, by the speed of an earlier pass and through the page cache.
const UNKNOWN_CALLS: u64 = 2;
/// What of the window is left for others to be behind while a batch runs, at least, as a part of the longest batch.
const SLACK: f64 = 0.75;
/// No batch begins that could only be so short, as a part of what it is to be: something newer is to be known first.
const TOO_SHORT: f64 = 0.8;

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
    /// Time from the pattern's begin to the end of the round, its sync included; None: only calls count.
    pub time_seconds: Option<f64>,
    /// Time of the whole pattern, of which a batch takes a part; None: only calls count.
    pub whole_seconds: Option<f64>,
    /// Rounds of the whole pattern.
    pub rounds: u32,
    /// What it means when the time is used up.
    pub time_is_guard: bool,
    /// Prediction of the sync at the end; None: there is none.
    pub sync: Option<SyncModel>,
    /// Time of a call in an earlier pass, equal on all ranks; None: there was none that says something about this one.
    pub expected_call_seconds: Option<f64>,
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

/// State of a loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Calls done.
    pub calls: u64,
    /// Time since the pattern began, slowest rank.
    pub elapsed_seconds: f64,
    /// Calls of the last batch.
    pub last_calls: u64,
    /// Calls of the largest batch.
    pub largest_calls: u64,
    /// Time of the last batch, slowest rank.
    pub last_seconds: f64,
    /// Time of a call in the batch before that, slowest rank; None: there was none.
    pub call_seconds_before: Option<f64>,
    /// Calls that a sync has covered already, at the end of earlier rounds.
    pub synced_calls: u64,
    /// True if the transfers of all ranks pass by the page cache.
    pub is_direct: bool,
}

/// Calls that all ranks have made, whether they have agreed on them or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Calls of all batches.
    pub calls: u64,
    /// Calls of the last one.
    pub last_calls: u64,
    /// Calls of the largest one.
    pub largest_calls: u64,
}

impl Progress {
    /// Time of a call in the last batch, slowest rank.
    #[must_use]
    pub fn call_seconds(&self) -> f64 {
        self.last_seconds.max(1e-9) / self.last_calls.max(1) as f64
    }

    /// This state after one more batch; the time of the pattern is not this one's matter.
    #[must_use]
    pub fn and_batch(self, calls: u64, seconds: f64) -> Self {
        Self {
            calls: self.calls + calls,
            last_calls: calls,
            largest_calls: self.largest_calls.max(calls),
            last_seconds: seconds,
            ..self
        }
    }

    /// This state, known after `earlier`.
    #[must_use]
    pub fn after(self, earlier: &Self) -> Self {
        let call_seconds_before = match (earlier.calls > 0, self.calls > earlier.calls) {
            (true, true) => Some(earlier.call_seconds()),
            (_, _) => earlier.call_seconds_before,
        };
        Self { call_seconds_before, ..self }
    }

    /// The calls of this state alone: nothing is ahead of it.
    #[must_use]
    pub fn made(&self) -> Made {
        Made { calls: self.calls, last_calls: self.last_calls, largest_calls: self.largest_calls }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Another batch of this many calls.
    Run(u64),
    /// First agree on the oldest batch ahead.
    Agree,
    /// The loop is over.
    Stop(Ended),
}

/// The decision, from what all ranks agreed on and what they have made since. At least one call is always made.
/// If nothing is ahead the answer is never [`Step::Agree`].
#[must_use]
pub fn next(limits: &Limits, agreed: &Progress, made: Made) -> Step {
    let left = limits.max_calls.saturating_sub(made.calls);
    if left == 0 {
        return Step::Stop(match limits.calls_end {
            CallsEnd::Count => Ended::Count,
            CallsEnd::Space => Ended::Space,
        });
    }
    let ahead = made.calls - agreed.calls;
    let per_call = match limits.expected_call_seconds {
        // The faster one of two: a rank that had a pause is not slower for that.
        _ if agreed.calls > 0 => agreed.call_seconds().min(agreed.call_seconds_before.unwrap_or(f64::INFINITY)),
        _ if ahead == 0 => return Step::Run(1),
        Some(seconds) if agreed.is_direct || made.calls < UNKNOWN_CALLS => seconds,
        _ => return Step::Agree,
    };
    let time = limits.time_seconds.unwrap_or(f64::INFINITY);
    let stop = Step::Stop(if limits.time_is_guard { Ended::TimeGuard } else { Ended::Time });
    if limits.termination == Termination::PerCall {
        // Release 2.1: go on while the time for one more call, judged from the mean so far, is there.
        let calls = agreed.calls as f64;
        return if agreed.elapsed_seconds * (calls + 1.0) / calls <= time { Step::Run(1) } else { stop };
    }
    let (unused, ahead_seconds) = (time - agreed.elapsed_seconds, ahead as f64 * per_call);
    // Each further call costs its own time and its share of the sync at the end.
    let unsynced_bytes = (made.calls - agreed.synced_calls) * limits.call_bytes_all_ranks;
    let sync_now = limits.sync.map_or(0.0, |s| s.predict_seconds(unsynced_bytes));
    let sync_one = limits.sync.map_or(0.0, |s| s.predict_seconds(limits.call_bytes_all_ranks) - s.predict_seconds(0));
    let fit = (unused - ahead_seconds - sync_now) / (per_call + sync_one);
    let (longest, largest_calls) = match (agreed.is_direct, limits.whole_seconds) {
        (true, Some(whole)) => {
            ((whole * BATCH_SHARE).min(whole / f64::from(limits.rounds) * ROUND_SHARE), made.largest_calls)
        }
        _ => (time * BATCH_SHARE, made.last_calls),
    };
    let share = longest.min(LONGEST_BATCH_SECONDS);
    // Of which nothing is known yet.
    let slower = if agreed.is_direct { SLOWER_DIRECT } else { SLOWER };
    let window = (share + unused / slower).min(2.0 * LONGEST_BATCH_SECONDS);
    // Where the window is hardly larger than a batch, shorter ones leave something of it to those that are behind.
    let batch_seconds = share.min(window - SLACK * share);
    let room = window - ahead_seconds;
    if ahead > 0 && (fit < 1.0 || room < per_call || room < TOO_SHORT * batch_seconds) {
        return Step::Agree;
    }
    if fit < 1.0 {
        return stop;
    }
    let by_time = (batch_seconds.min(room) / per_call) as u64;
    Step::Run(largest_calls.saturating_mul(2).min(by_time).min(fit as u64).clamp(1, left))
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
            rounds,
            ..*self
        }
    }
}

#[cfg(test)]
#[path = "batching_tests.rs"]
mod tests;
