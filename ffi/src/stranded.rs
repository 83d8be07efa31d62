//! An end for ranks that wait for each other because of the MPI library. Some versions of ROMIO return from a collective call whose
//! read or write failed on one rank, and leave the other ranks inside of it: they wait for data that nobody will send, and this rank
//! waits for them in the next agreement. Nothing but an end of all ranks helps then.
//!
//! A driver says [`expect_others`] when a collective call failed here, and [`goes_on`] while it makes the calls that follow. The next
//! agreement of all ranks ([`crate::Comm::barrier`], an allreduce, a [`crate::Gathering`]) is the sign that they have come back. If there is no such sign for
//! the time of [`arrange`], a thread says why and ends this process, and with it, by every launcher, the others.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time if nobody sets another. A single call that takes longer on the other ranks, on very slow storage, needs a longer one.
pub const LIMIT_SECONDS: u64 = 60;
const LOOK: Duration = Duration::from_millis(50);

/// How the end is made.
#[derive(Clone, Copy, Debug)]
struct Arranged {
    rank: u64,
    limit: Duration,
    say: fn(&str),
    exit_code: c_int,
}

static ARRANGED: OnceLock<Arranged> = OnceLock::new();
/// Read after every agreement.
static EXPECTED: AtomicBool = AtomicBool::new(false);
/// Milliseconds more than the arranged time.
static MORE_MS: AtomicU64 = AtomicU64::new(0);
/// Since when nothing has moved on this rank, and what to say of it.
static SINCE: Mutex<Option<(Instant, String)>> = Mutex::new(None);

fn since() -> std::sync::MutexGuard<'static, Option<(Instant, String)>> {
    SINCE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Once, at the start: this rank, the longest time between a failed collective call and the next agreement, what says why the end comes, and the
/// exit code. Without it ranks wait.
pub fn arrange(rank: u64, limit_seconds: u64, say: fn(&str), exit_code: c_int) {
    let _ = ARRANGED.set(Arranged { rank, limit: Duration::from_secs(limit_seconds), say, exit_code });
}

/// From now on ranks may need this much longer than arranged to come to an agreement: a recorded program has pauses of its own.
pub fn allow(more: Duration) {
    MORE_MS.store(u64::try_from(more.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// How long ranks may need: as arranged, and what was allowed beyond.
#[must_use]
pub fn limit() -> Duration {
    let arranged = ARRANGED.get().map_or(Duration::from_secs(LIMIT_SECONDS), |arranged| arranged.limit);
    arranged.saturating_add(Duration::from_millis(MORE_MS.load(Ordering::Relaxed)))
}

/// A collective call of this rank has failed with `error`: the other ranks are expected in the next agreement.
#[cold]
pub fn expect_others(error: String) {
    static THREAD: OnceLock<()> = OnceLock::new();
    since().get_or_insert((Instant::now(), error));
    EXPECTED.store(true, Ordering::Relaxed);
    // Without a thread it would be as it is without this module.
    THREAD.get_or_init(|| drop(thread::Builder::new().name("stranded".into()).spawn(watch)));
}

/// This rank has come back from another call after the failed one.
#[inline]
pub fn goes_on() {
    if are_expected() {
        moved();
    }
}

#[cold]
fn moved() {
    if let Some((moment, _)) = since().as_mut() {
        *moment = Instant::now();
    }
}

/// True from a failed collective call of this rank to the next agreement.
#[inline]
pub(crate) fn are_expected() -> bool {
    EXPECTED.load(Ordering::Relaxed)
}

/// All ranks have agreed on something.
#[inline]
pub(crate) fn others_came() {
    if are_expected() {
        forget();
    }
}

#[cold]
fn forget() {
    EXPECTED.store(false, Ordering::Relaxed);
    *since() = None;
}

fn watch() {
    let Some(arranged) = ARRANGED.get() else { return };
    loop {
        thread::sleep(LOOK);
        let limit = limit();
        let is_over = |(moment, _): &&(Instant, String)| moment.elapsed() >= limit;
        let Some(error) = since().as_ref().filter(is_over).map(|(_, error)| error.clone()) else { continue };
        (arranged.say)(&format!(
            "rank {}: {error}\nAfter {} s the other ranks have not come back from this collective call: the MPI library leaves them in it. \
             Ending all ranks; what was measured is in the journal of --out, the files stay. Repeat with --backend posix, or with another \
             MPI library.",
            arranged.rank,
            limit.as_secs()
        ));
        end(arranged.exit_code);
    }
}

/// Ends this process from another thread than that of MPI, and with it, by every launcher, the other ranks.
pub fn end(exit_code: c_int) -> ! {
    // SAFETY: always allowed. MPI is busy in the other thread, so neither a call of it nor a function it has left for the exit may
    // run here; launchers end all ranks when one ends so.
    unsafe { libc::_exit(exit_code) }
}

/// Any agreement of this process is the sign that is expected: tests that agree read, the one that looks at it writes.
#[cfg(test)]
pub(crate) static AGREEMENTS: std::sync::RwLock<()> = std::sync::RwLock::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Agreement, Comm};

    #[test]
    fn what_is_expected_ends_with_an_agreement() {
        let _alone = AGREEMENTS.write().unwrap();
        others_came();
        assert!(since().is_none());
        expect_others("a first error".to_owned());
        expect_others("a second error".to_owned());
        assert!(since().as_ref().is_some_and(|(_, error)| error == "a first error"));
        let before = since().as_ref().map(|(moment, _)| *moment);
        thread::sleep(Duration::from_millis(2));
        goes_on();
        assert!(since().as_ref().map(|(moment, _)| *moment) > before);
        others_came();
        assert!(since().is_none() && !EXPECTED.load(Ordering::Relaxed));

        // An agreement that was begun before the call failed says nothing of where the others are now.
        let own = Comm::own();
        let mut agreement = Agreement::new(&own, 1);
        agreement.begin(&[1.0]).unwrap();
        expect_others("an error under an agreement".to_owned());
        assert_eq!(agreement.finish().unwrap(), [1.0]);
        assert!(since().is_some());
        agreement.begin(&[2.0]).unwrap();
        assert_eq!(agreement.finish().unwrap(), [2.0]);
        assert!(since().is_none() && !EXPECTED.load(Ordering::Relaxed));
    }
}
