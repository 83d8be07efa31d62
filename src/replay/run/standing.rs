//! Where a rank stands. Who waits for another rank cannot see what keeps it, so a rank that stays in one place for long says so itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use beff_ffi::alloc;
use beff_trace::Function;

use crate::frame::system::affinity;

/// What a rank is doing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Calls made in one go, from this one on.
    Calls { function: Function, begin_ns: u64, behind: usize },
    /// Before the call of `begin_ns`, for another rank.
    Waits { begin_ns: u64, other: Other },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls { function, begin_ns, behind: 0 } => {
                write!(f, "in MPI_{}, recorded at {begin_ns} ns", function.name())
            }
            Self::Calls { function, begin_ns, behind } => {
                write!(
                    f,
                    "in MPI_{}, recorded at {begin_ns} ns, or one of the {behind} calls behind it",
                    function.name()
                )
            }
            Self::Waits { begin_ns, other } => {
                write!(f, "waiting before the call recorded at {begin_ns} ns, for {other}")
            }
        }
    }
}

/// Who is waited for: for the end of a call, or until that rank comes to where both meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    pub rank: u32,
    pub call_ns: Option<u64>,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, call_ns } = self;
        match call_ns {
            Some(begin_ns) => write!(f, "the call of rank {rank} at {begin_ns} ns, which has not ended"),
            None => write!(f, "rank {rank}, which has not come to where both meet"),
        }
    }
}

type Shared = Arc<Mutex<Option<(Instant, Place)>>>;

/// Notes where this rank stands. Without a watch it costs a lock that nobody else wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Shared);

impl Notes {
    pub fn enter(&self, place: Place) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), place));
    }

    pub fn leave(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A thread that looks at the notes from time to time, until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// `say` is told where `rank` stands when it has stood there for `long`, and again after twice that, four times ...
    pub fn begin(notes: &Notes, rank: u32, long: Duration, say: impl Fn(&str) + Send + 'static) -> Self {
        let (over, shared) = (Arc::new(AtomicBool::new(false)), Arc::clone(&notes.0));
        let (ends, ready) = (Arc::clone(&over), Arc::new(Barrier::new(2)));
        let is_ready = Arc::clone(&ready);
        let look = move || {
            // It is no part of what is measured.
            alloc::leave_out_this_thread();
            affinity::as_found();
            is_ready.wait();
            let mut told = Told::default();
            while !ends.load(Ordering::Acquire) {
                thread::park_timeout(long / 4);
                let place = *shared.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(text) = told.next(place, long, Instant::now()) {
                    say(&format!("rank {rank}: {text}"));
                }
            }
        };
        // Without a thread nothing is said.
        let thread = thread::Builder::new().name("standing".into()).spawn(look).ok();
        // Its beginning allocates, and that is counted where it is seen in the clock.
        if thread.is_some() {
            ready.wait();
        }
        Self { over, thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does nothing that can panic.
            let _ = thread.join();
        }
    }
}

/// What was said last: since when the rank stood there, and after how long it is said again.
#[derive(Default)]
struct Told(Option<(Instant, Duration)>);

impl Told {
    fn next(&mut self, place: Option<(Instant, Place)>, long: Duration, now: Instant) -> Option<String> {
        let (since, place) = place?;
        let again = self.0.filter(|(told, _)| *told == since).map_or(long, |(_, again)| again);
        let stood = now.saturating_duration_since(since);
        if stood < again {
            return None;
        }
        self.0 = Some((since, again * 2));
        // The limit, not the moment of this look: what is said does not depend on when the thread ran.
        Some(format!("{place}, for over {:.0} s so far. Other ranks may wait for it", again.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SYNC: Place = Place::Calls { function: Function::Sync, begin_ns: 7, behind: 0 };

    #[test]
    fn it_is_said_after_a_while_and_again_after_twice_that() {
        let (long, since) = (Duration::from_secs(30), Instant::now());
        let mut told = Told::default();
        let mut after = |seconds, place| told.next(place, long, since + Duration::from_secs(seconds));
        let stands = Some((since, SYNC));
        assert_eq!(after(29, stands), None);
        let text = "in MPI_File_sync, recorded at 7 ns, for over 30 s so far. Other ranks may wait for it";
        assert_eq!(after(31, stands).as_deref(), Some(text));
        assert_eq!(after(59, stands), None, "not every time");
        let text = "in MPI_File_sync, recorded at 7 ns, for over 60 s so far. Other ranks may wait for it";
        assert_eq!(after(60, stands).as_deref(), Some(text));
        assert_eq!(after(119, stands), None);
        let elsewhere = Some((since + Duration::from_secs(100), SYNC));
        assert_eq!(after(125, elsewhere), None, "it has moved");
        assert!(after(130, elsewhere).is_some());
        assert_eq!(after(500, None), None, "between two calls");
    }

    #[test]
    fn a_place_says_what_keeps_the_rank() {
        let some = Place::Calls { function: Function::WriteAt, begin_ns: 9, behind: 15 };
        assert_eq!(some.to_string(), "in MPI_File_write_at, recorded at 9 ns, or one of the 15 calls behind it");
        let waits = Place::Waits { begin_ns: 9, other: Other { rank: 3, call_ns: Some(4) } };
        let text = "waiting before the call recorded at 9 ns, for the call of rank 3 at 4 ns, which has not ended";
        assert_eq!(waits.to_string(), text);
    }

    #[test]
    fn the_watch_speaks_of_a_rank_that_stands_and_ends_with_it() {
        let (say, said) = mpsc::channel();
        let notes = Notes::default();
        let watch = Watch::begin(&notes, 2, Duration::from_millis(20), move |text| say.send(text.to_owned()).unwrap());
        notes.enter(SYNC);
        let text = said.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(text.starts_with("rank 2: in MPI_File_sync, recorded at 7 ns, for over 0 s"), "{text}");
        notes.leave();
        drop(watch);
        assert!(said.iter().all(|text| text.starts_with("rank 2: in")), "its end is the end of the channel");
    }
}
