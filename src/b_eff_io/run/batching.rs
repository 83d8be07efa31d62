//! Decides whether a loop continues, and with how many calls: pure arithmetic on agreed numbers, so that the decision is the same on all
//! ranks.
//!
//! The first batch is one call. Later ones double, up to 1/16 of the pattern's time at the rate of the last two agreed batches (the next
//! may be ten times slower when the page cache fills) and up to 0.25 s (so that a signal or an error of another rank is detected soon). The
//! faster of the two batches counts: a pause in one does not reduce the rate, and calls that remain slower are detected with the next
//! batch.
//!
//! A batch begins and ends with an empty queue, so short ones are slower. With direct I/O a pattern in rounds therefore has batches of the
//! same length, but at most a third of a round, and each round continues from the largest batch so far. Through the page cache, where the
//! next batch may be much slower, the limit is 1/16 of the time until the end of the round, and batches double from the last one.
//!
//! While reductions are pending, ranks may run batches whose times are not agreed yet: calls *ahead*. Calls ahead and the next batch
//! together are so few that, if slower than predicted (ten times through the page cache, twice with direct I/O), they exceed the time by no
//! more than one batch alone; and they never exceed two batches of maximum length. Where that leaves too little, or no further call seems
//! to fit, the ranks first agree on the calls ahead: no loop ends on an estimate. Towards the end, where fewer calls may be ahead, batches
//! are shorter, so that a short pause of one rank does not delay the others.
//!
//! Before the first agreement the rate of an earlier measurement is used, so that a rank whose first call is short need not wait for the
//! others; through the page cache, where it predicts little, for one call more.
//!
//! Syncs belong to the time of a pattern and can exceed its calls. [`SyncModel`] predicts latency + bytes / rate from the calibration and
//! all syncs since. A loop ends when no further call fits together with its share of the sync. Overrun is deducted from later patterns of
//! the access method ([`budget_seconds`](crate::b_eff_io::plan::schedule::budget_seconds)). Saved time is not passed on.

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::StopReason;

/// Approximate maximum time of a batch, so that a signal or an error of one rank is detected soon.
const MAX_BATCH_SECONDS: f64 = 0.25;
/// Maximum share of the pattern's time for a batch predicted from the last one, and the factor by which the next may be slower.
const BATCH_SHARE: f64 = 1.0 / 16.0;
const SLOWDOWN_CACHED: f64 = 10.0;
/// Maximum share of a round: at most two batches are ahead, and if twice as slow they still leave time to the next round.
const ROUND_SHARE: f64 = 1.0 / 3.0;
/// Factor by which the next batch may be slower with direct I/O.
const SLOWDOWN_DIRECT: f64 = 2.0;
/// Calls that may be issued before the first agreement, at the rate of an earlier measurement, through the page cache.
const MAX_UNMEASURED_CALLS: u64 = 2;
/// Minimum part of the window that lets other ranks be behind while a batch runs, as a share of the longest batch.
const SLACK: f64 = 0.75;
/// No batch begins that would be shorter than this share of its intended length: the ranks agree first.
const MIN_BATCH_SHARE: f64 = 0.8;

/// Prediction of the time of a sync from the previous ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncModel {
    latency_seconds: f64,
    bytes_per_second: f64,
}

impl Default for SyncModel {
    /// Without data: syncs take no time.
    fn default() -> Self {
        Self { latency_seconds: 0.0, bytes_per_second: f64::INFINITY }
    }
}

/// The time of a smaller sync is all latency.
const LATENCY_BYTES: u64 = 4 << 20;

impl SyncModel {
    /// Adds a sync of `bytes` (all ranks) that took `seconds`. A slower rate is adopted at once, a faster one slowly: overrunning is worse
    /// than stopping early.
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

    /// The model as numbers, for broadcast.
    #[must_use]
    pub fn to_parts(self) -> [f64; 2] {
        [self.latency_seconds, self.bytes_per_second]
    }

    /// Inverse of [`SyncModel::to_parts`].
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

/// Limits of a loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopLimits {
    /// Maximum number of calls.
    pub max_calls: u64,
    /// Reason of the end at that number.
    pub calls_end: CallsEnd,
    /// Time from the beginning of the pattern to the end of the round, its sync included; None: only calls count.
    pub time_seconds: Option<f64>,
    /// Time of the whole pattern, from which the length of batches is derived; None: only calls count.
    pub pattern_seconds: Option<f64>,
    /// Rounds of the whole pattern.
    pub rounds: u32,
    /// True if the time limit is a guard only.
    pub time_is_guard: bool,
    /// Prediction of the final sync; None without one.
    pub sync: Option<SyncModel>,
    /// Time of a call in an earlier measurement, equal on all ranks; None if no applicable one exists.
    pub expected_call_seconds: Option<f64>,
    /// Bytes of one call, all ranks.
    pub call_bytes_all_ranks: u64,
    /// How the end is determined.
    pub termination: Termination,
}

/// Meaning of the limit of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsEnd {
    /// The count of the definition.
    Count,
    /// The share of the space.
    Space,
}

/// State of a loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopProgress {
    /// Calls completed.
    pub calls: u64,
    /// Time since the pattern began, slowest rank.
    pub elapsed_seconds: f64,
    /// Calls of the last batch.
    pub last_calls: u64,
    /// Calls of the largest batch.
    pub largest_calls: u64,
    /// Time of the last batch, slowest rank.
    pub last_seconds: f64,
    /// Time of a call in the batch before the last one, slowest rank; None without one.
    pub call_seconds_before: Option<f64>,
    /// Calls already covered by a sync at the end of an earlier round.
    pub synced_calls: u64,
    /// True if the transfers of all ranks bypass the page cache.
    pub is_direct: bool,
}

/// Calls issued by all ranks, agreed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssuedCalls {
    /// Calls of all batches.
    pub calls: u64,
    /// Calls of the last one.
    pub last_calls: u64,
    /// Calls of the largest one.
    pub largest_calls: u64,
}

impl LoopProgress {
    /// Time of a call in the last batch, slowest rank.
    #[must_use]
    pub fn call_seconds(&self) -> f64 {
        self.last_seconds.max(1e-9) / self.last_calls.max(1) as f64
    }

    /// This state after one more batch; the time of the pattern is not updated.
    #[must_use]
    pub fn with_batch(self, calls: u64, seconds: f64) -> Self {
        Self {
            calls: self.calls + calls,
            last_calls: calls,
            largest_calls: self.largest_calls.max(calls),
            last_seconds: seconds,
            ..self
        }
    }

    /// This state as the successor of `earlier`.
    #[must_use]
    pub fn after(self, earlier: &Self) -> Self {
        let call_seconds_before = match (earlier.calls > 0, self.calls > earlier.calls) {
            (true, true) => Some(earlier.call_seconds()),
            (_, _) => earlier.call_seconds_before,
        };
        Self { call_seconds_before, ..self }
    }

    /// The calls of this state, with none ahead.
    #[must_use]
    pub fn issued(&self) -> IssuedCalls {
        IssuedCalls { calls: self.calls, last_calls: self.last_calls, largest_calls: self.largest_calls }
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchDecision {
    /// Another batch of this many calls.
    Run(u64),
    /// Agree on the oldest batch ahead first.
    Agree,
    /// End.
    Stop(StopReason),
}

/// Decides from the agreed state and the calls issued since. At least one call is always issued. Without calls ahead the result is never
/// [`BatchDecision::Agree`].
#[must_use]
pub fn next(limits: &LoopLimits, agreed: &LoopProgress, issued: IssuedCalls) -> BatchDecision {
    let left = limits.max_calls.saturating_sub(issued.calls);
    if left == 0 {
        return BatchDecision::Stop(match limits.calls_end {
            CallsEnd::Count => StopReason::Count,
            CallsEnd::Space => StopReason::Space,
        });
    }
    let ahead = issued.calls - agreed.calls;
    let per_call = match limits.expected_call_seconds {
        // The faster of two batches: a pause does not make a rank slower.
        _ if agreed.calls > 0 => agreed.call_seconds().min(agreed.call_seconds_before.unwrap_or(f64::INFINITY)),
        _ if ahead == 0 => return BatchDecision::Run(1),
        Some(seconds) if agreed.is_direct || issued.calls < MAX_UNMEASURED_CALLS => seconds,
        _ => return BatchDecision::Agree,
    };
    let time = limits.time_seconds.unwrap_or(f64::INFINITY);
    let stop = BatchDecision::Stop(if limits.time_is_guard { StopReason::TimeGuard } else { StopReason::Time });
    if limits.termination == Termination::PerCall {
        // Release 2.1: continue while the time for one more call, by the mean so far, remains.
        let calls = agreed.calls as f64;
        return if agreed.elapsed_seconds * (calls + 1.0) / calls <= time { BatchDecision::Run(1) } else { stop };
    }
    let (unused, ahead_seconds) = (time - agreed.elapsed_seconds, ahead as f64 * per_call);
    // Each further call costs its own time and its share of the sync at the end.
    let unsynced_bytes = (issued.calls - agreed.synced_calls) * limits.call_bytes_all_ranks;
    let sync_now = limits.sync.map_or(0.0, |s| s.predict_seconds(unsynced_bytes));
    let sync_one = limits.sync.map_or(0.0, |s| s.predict_seconds(limits.call_bytes_all_ranks) - s.predict_seconds(0));
    let fit = (unused - ahead_seconds - sync_now) / (per_call + sync_one);
    let (longest, largest_calls) = match (agreed.is_direct, limits.pattern_seconds) {
        (true, Some(whole)) => {
            ((whole * BATCH_SHARE).min(whole / f64::from(limits.rounds) * ROUND_SHARE), issued.largest_calls)
        }
        _ => (time * BATCH_SHARE, issued.last_calls),
    };
    let share = longest.min(MAX_BATCH_SECONDS);
    let slower = if agreed.is_direct { SLOWDOWN_DIRECT } else { SLOWDOWN_CACHED };
    let window = (share + unused / slower).min(2.0 * MAX_BATCH_SECONDS);
    // Where the window is hardly longer than a batch, shorter batches leave some of it to ranks that are behind.
    let batch_seconds = share.min(window - SLACK * share);
    let remaining_seconds = window - ahead_seconds;
    if ahead > 0 && (fit < 1.0 || remaining_seconds < per_call || remaining_seconds < MIN_BATCH_SHARE * batch_seconds) {
        return BatchDecision::Agree;
    }
    if fit < 1.0 {
        return stop;
    }
    let by_time = (batch_seconds.min(remaining_seconds) / per_call) as u64;
    BatchDecision::Run(largest_calls.saturating_mul(2).min(by_time).min(fit as u64).clamp(1, left))
}

impl LoopLimits {
    /// Limits until the end of round `round` of `rounds`: its share of time and calls, so that a round may use what earlier ones left, and
    /// no round is empty because an earlier one was fast.
    #[must_use]
    pub fn until_round(&self, round: u32, rounds: u32) -> Self {
        let share = f64::from(round + 1) / f64::from(rounds);
        let calls = u128::from(self.max_calls) * u128::from(round + 1);
        Self {
            // Does not exceed max_calls, because round + 1 is at most rounds.
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
