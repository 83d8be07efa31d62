//! Ends ranks that deadlock in the MPI library. Some versions of ROMIO return from a collective call whose read or write failed on one
//! rank and leave the other ranks in it, waiting for data that is never sent, while this rank waits for them in the next agreement. Only
//! ending all ranks helps.
//!
//! A driver calls [`expect_peers`] after a failed collective call, and [`record_progress`] after the calls that follow. The next agreement of
//! all ranks ([`crate::Comm::barrier`], an allreduce, a [`crate::PendingBarrier`]) shows that they have returned. If none completes within the
//! limit of [`configure`], a thread reports the reason and ends this process, and every launcher then ends the others.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Default limit. It must exceed the longest single call of the other ranks, on very slow storage.
pub const DEFAULT_LIMIT_SECONDS: u64 = 60;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of the timeout.
#[derive(Clone, Copy, Debug)]
struct TimeoutConfig {
    rank: u64,
    limit: Duration,
    report: fn(&str),
    exit_code: c_int,
}

static CONFIG: OnceLock<TimeoutConfig> = OnceLock::new();
/// Read after every agreement.
static PEERS_EXPECTED: AtomicBool = AtomicBool::new(false);
/// Milliseconds added to the configured limit.
static EXTENSION_MS: AtomicU64 = AtomicU64::new(0);
/// Time of this rank's last progress, and the error.
static LAST_PROGRESS: Mutex<Option<(Instant, String)>> = Mutex::new(None);

fn lock_last_progress() -> std::sync::MutexGuard<'static, Option<(Instant, String)>> {
    LAST_PROGRESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Configures the timeout, once, at the start: this rank, the limit between a failed collective call and the next agreement, the function
/// that reports the reason, and the exit code. Without it ranks wait forever.
pub fn configure(rank: u64, limit_seconds: u64, say: fn(&str), exit_code: c_int) {
    let _ = CONFIG.set(TimeoutConfig { rank, limit: Duration::from_secs(limit_seconds), report: say, exit_code });
}

/// Extends the limit from now on: a recorded program has pauses.
pub fn extend_limit(more: Duration) {
    EXTENSION_MS.store(u64::try_from(more.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// The configured limit plus its extension.
#[must_use]
pub fn limit() -> Duration {
    let arranged = CONFIG.get().map_or(Duration::from_secs(DEFAULT_LIMIT_SECONDS), |arranged| arranged.limit);
    arranged.saturating_add(Duration::from_millis(EXTENSION_MS.load(Ordering::Relaxed)))
}

/// A collective call of this rank has failed with `error`: the other ranks are expected in the next agreement.
#[cold]
pub fn expect_peers(error: String) {
    static THREAD: OnceLock<()> = OnceLock::new();
    lock_last_progress().get_or_insert((Instant::now(), error));
    PEERS_EXPECTED.store(true, Ordering::Relaxed);
    // Without the thread there is no timeout.
    THREAD.get_or_init(|| drop(thread::Builder::new().name("stranded".into()).spawn(monitor)));
}

/// Records that this rank has returned from a call after the failed one.
#[inline]
pub fn record_progress() {
    if peers_expected() {
        update_progress();
    }
}

#[cold]
fn update_progress() {
    if let Some((moment, _)) = lock_last_progress().as_mut() {
        *moment = Instant::now();
    }
}

/// True from a failed collective call of this rank to the next agreement.
#[inline]
pub(crate) fn peers_expected() -> bool {
    PEERS_EXPECTED.load(Ordering::Relaxed)
}

/// All ranks have completed an agreement.
#[inline]
pub(crate) fn peers_arrived() {
    if peers_expected() {
        clear_expectation();
    }
}

#[cold]
fn clear_expectation() {
    PEERS_EXPECTED.store(false, Ordering::Relaxed);
    *lock_last_progress() = None;
}

fn monitor() {
    let Some(arranged) = CONFIG.get() else { return };
    loop {
        thread::sleep(POLL_INTERVAL);
        let limit = limit();
        let is_over = |(moment, _): &&(Instant, String)| moment.elapsed() >= limit;
        let Some(error) = lock_last_progress().as_ref().filter(is_over).map(|(_, error)| error.clone()) else {
            continue;
        };
        (arranged.report)(&format!(
            "rank {}: {error}\nAfter {} s the other ranks have not returned from this collective call: the MPI library leaves them in it. \
             All ranks are ended; completed measurements are in the journal of --out, the files are kept. Repeat with --backend posix, or with another \
             MPI library.",
            arranged.rank,
            limit.as_secs()
        ));
        exit_process(arranged.exit_code);
    }
}

/// Ends this process from a thread that does not call MPI; every launcher then ends the other ranks.
pub fn exit_process(exit_code: c_int) -> ! {
    // SAFETY: always allowed. The other thread is inside MPI, so neither MPI functions nor its exit handlers may run here; launchers end
    // all ranks if one exits so.
    unsafe { libc::_exit(exit_code) }
}

/// Any agreement of this process clears the expectation: tests with agreements take the read lock, the timeout's test the write lock.
#[cfg(test)]
pub(crate) static AGREEMENT_LOCK: std::sync::RwLock<()> = std::sync::RwLock::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comm, MaxReduction};

    #[test]
    fn an_agreement_clears_the_expectation() {
        let _alone = AGREEMENT_LOCK.write().unwrap();
        peers_arrived();
        assert!(lock_last_progress().is_none());
        expect_peers("a first error".to_owned());
        expect_peers("a second error".to_owned());
        assert!(lock_last_progress().as_ref().is_some_and(|(_, error)| error == "a first error"));
        let before = lock_last_progress().as_ref().map(|(moment, _)| *moment);
        thread::sleep(Duration::from_millis(2));
        record_progress();
        assert!(lock_last_progress().as_ref().map(|(moment, _)| *moment) > before);
        peers_arrived();
        assert!(lock_last_progress().is_none() && !PEERS_EXPECTED.load(Ordering::Relaxed));

        // A reduction that was posted before the call failed does not show that the others have returned.
        let own = Comm::comm_self();
        let mut agreement = MaxReduction::new(&own, 1).unwrap();
        agreement.post(&[1.0]).unwrap();
        expect_peers("an error while a reduction is pending".to_owned());
        assert_eq!(agreement.complete().unwrap(), [1.0]);
        assert!(lock_last_progress().is_some());
        agreement.post(&[2.0]).unwrap();
        assert_eq!(agreement.complete().unwrap(), [2.0]);
        assert!(lock_last_progress().is_none() && !PEERS_EXPECTED.load(Ordering::Relaxed));
    }
}
