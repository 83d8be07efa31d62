//! Time limit of a run: when it must end, and how much of that time its end takes. Only rank 0 has one, and only its clock decides.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::frame::run::clock::Instant;

/// Writing of the results and the end of the processes, beside the time from the start of the program to the measurement: both depend on
/// the number of ranks and on the load of the hosts.
const MIN_RESERVE_SECONDS: f64 = 2.5;
/// The end of a run takes at most this share of the limit, whatever the start took.
const MAX_RESERVE_SHARE: f64 = 0.35;
/// Later limits do not end a run: durations of clocks are finite.
const MAX_SECONDS: f64 = 1e9;
/// Assumed rate at which file systems remove files: ext4 on a shared virtual disk, the slowest case measured. Removal can be observed only
/// when it is too late.
const REMOVED_BYTES_PER_SECOND: f64 = 1e9;
/// Removal takes at most this share of the limit, or many bytes would leave nothing to measure on file systems that remove at once.
const MAX_REMOVAL_SHARE: f64 = 0.2;

/// Time limit of a run.
#[derive(Debug)]
pub struct JobLimit {
    end: Instant,
    /// Time reserved for the end, whatever files exist.
    base_seconds: f64,
    /// Longest time reserved for removal.
    max_removal_seconds: f64,
    /// Time reserved for the end now, as bits of f64.
    reserve: AtomicU64,
    /// The current pattern writes new files.
    grows: AtomicBool,
}

impl JobLimit {
    /// Limit `left_seconds` from now, for a program whose start, or whose end beside the writing of results, takes `started_seconds`.
    #[must_use]
    pub fn new(left_seconds: f64, started_seconds: f64) -> Self {
        let base_seconds = (MIN_RESERVE_SECONDS + started_seconds).min(MAX_RESERVE_SHARE * left_seconds).max(0.0);
        let end = Instant::now() + Duration::from_secs_f64(left_seconds.clamp(0.0, MAX_SECONDS));
        let max_removal_seconds = (MAX_REMOVAL_SHARE * left_seconds).max(0.0);
        Self {
            end,
            base_seconds,
            max_removal_seconds,
            reserve: AtomicU64::new(base_seconds.to_bits()),
            grows: AtomicBool::new(false),
        }
    }

    /// Limit `left_seconds` from now that reserves nothing.
    #[must_use]
    pub fn without_reserve(left_seconds: f64) -> Self {
        Self { base_seconds: 0.0, reserve: AtomicU64::default(), ..Self::new(left_seconds, 0.0) }
    }

    /// Sets the time that the end of the run takes: `files_seconds` to close the open files, and the removal of these bytes. `grows`: what
    /// follows adds further ones.
    pub fn expect_files(&self, files_seconds: f64, bytes: u64, grows: bool) {
        self.grows.store(grows, Ordering::Relaxed);
        let seconds = self.base_seconds + files_seconds + self.seconds_to_remove(bytes);
        self.reserve.store(seconds.to_bits(), Ordering::Relaxed);
    }

    /// Time to remove bytes that were written since, if they are new.
    #[must_use]
    pub fn removal_seconds(&self, bytes: u64) -> f64 {
        if self.grows.load(Ordering::Relaxed) {
            self.seconds_to_remove(bytes)
        } else {
            0.0
        }
    }

    fn seconds_to_remove(&self, bytes: u64) -> f64 {
        (bytes as f64 / REMOVED_BYTES_PER_SECOND).min(self.max_removal_seconds)
    }

    /// Time reserved for the end of the run.
    #[must_use]
    pub fn reserve_seconds(&self) -> f64 {
        f64::from_bits(self.reserve.load(Ordering::Relaxed))
    }

    /// Time that is left to measure; negative once the run should have ended.
    #[must_use]
    pub fn left_seconds(&self) -> f64 {
        let now = Instant::now();
        let until_end = self.end.duration_since(now).as_secs_f64() - now.duration_since(self.end).as_secs_f64();
        until_end - self.reserve_seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::run::testing::{approx_equal, run_ranks, scripted_call, Script};

    fn scripted(work: impl Fn() + Sync) {
        run_ranks(1, |_| Script::default().cost("second", 1.0), |_| work());
    }

    #[test]
    fn the_end_of_a_run_is_reserved_from_the_limit() {
        scripted(|| {
            let limit = JobLimit::new(100.0, 3.0);
            assert_eq!((limit.reserve_seconds(), limit.left_seconds()), (5.5, 94.5));
            scripted_call("second", "");
            assert_eq!(limit.left_seconds(), 93.5);
            assert_eq!(limit.removal_seconds(8_000_000_000), 0.0);
            limit.expect_files(0.5, 8_000_000_000, true);
            assert_eq!(limit.removal_seconds(8_000_000_000), 8.0);
            assert_eq!((limit.reserve_seconds(), limit.left_seconds()), (14.0, 85.0));
            limit.expect_files(0.5, 800_000_000_000, true);
            assert_eq!(limit.reserve_seconds(), 26.0, "at most a fifth of the limit");
            limit.expect_files(0.0, 0, false);
            (0..98).for_each(|_| assert_eq!(scripted_call("second", ""), None));
            assert_eq!(limit.left_seconds(), -4.5);
        });
    }

    /// A slow start must not leave nothing to measure; a limit in the past or in the far future is one, too.
    #[test]
    fn any_limit_is_possible() {
        scripted(|| {
            for (left, started, reserve) in [
                (3.0, 0.5, 1.05),
                (20.0, 2.0, 4.5),
                (20.0, 60.0, 7.0),
                (0.0, 1.0, 0.0),
                (-7.0, 1.0, 0.0),
                (1e30, 1.0, 3.5),
            ] {
                let limit = JobLimit::new(left, started);
                assert!(approx_equal(limit.reserve_seconds(), reserve), "{left} {started}");
                assert_eq!(limit.left_seconds() > 0.0, left > 0.0, "{left} {started}");
            }
        });
    }
}
