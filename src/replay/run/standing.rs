//! Where a rank stands. Who waits for another rank cannot see what keeps it, so a rank that stays in one place for long says so itself. One
//! that stays in a call that waits for other ranks sees neither a limit nor a signal there: a thread beside it does, and ends it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use beff_ffi::alloc;
use beff_trace::Function;

use super::Stuck;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::system::affinity;

/// What a rank is doing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Calls made in one go, from this one on. `meets`: it ends when other ranks have come to theirs.
    Calls { function: Function, begin_ns: u64, behind: usize, meets: bool },
    /// Before the call of `begin_ns`, for another rank.
    Waits { begin_ns: u64, other: Other },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls { function, begin_ns, behind: 0, .. } => {
                write!(f, "in MPI_{}, recorded at {begin_ns} ns", function.name())
            }
            Self::Calls { function, begin_ns, behind, .. } => {
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

/// How often the thread looks at the notes.
const LOOK: Duration = Duration::from_millis(100);

/// How long a rank may stay in a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// In a call that waits for other ranks; after half of that in any place it is told.
    pub stay: Duration,
    /// In such a call after a signal.
    pub grace: Duration,
}

/// A thread that looks at the notes from time to time, until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// `say` is told where `rank` stands when it has stood there for half the limit, and again after twice that, four times ... `end` is
    /// told why it cannot go on.
    pub fn begin(
        notes: &Notes,
        (rank, limits): (u32, Limits),
        interrupt: &Interrupt,
        say: impl Fn(&str) + Send + 'static,
        end: impl Fn(&Stuck) + Send + 'static,
    ) -> Self {
        let interrupt = interrupt.clone();
        let (over, shared) = (Arc::new(AtomicBool::new(false)), Arc::clone(&notes.0));
        let (ends, ready) = (Arc::clone(&over), Arc::new(Barrier::new(2)));
        let is_ready = Arc::clone(&ready);
        let look = move || {
            // It is no part of what is measured.
            alloc::leave_out_this_thread();
            affinity::as_found();
            is_ready.wait();
            let (mut told, mut raised, long) = (Told::default(), None, limits.stay / 2);
            while !ends.load(Ordering::Acquire) {
                thread::park_timeout(LOOK.min(long / 4));
                let place = *shared.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                if let Some(text) = told.next(place, long, now) {
                    say(&format!("rank {rank}: {text}"));
                }
                if interrupt.raised() {
                    raised.get_or_insert(now);
                }
                if let Some(stuck) = overdue(rank, place, limits, raised, now) {
                    end(&stuck);
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

/// Why a rank cannot go on that stays in a call for others.
fn overdue(
    rank: u32,
    place: Option<(Instant, Place)>,
    limits: Limits,
    raised: Option<Instant>,
    now: Instant,
) -> Option<Stuck> {
    let (since, place) = place.filter(|(_, place)| matches!(place, Place::Calls { meets: true, .. }))?;
    let is_over = |begin: Instant, limit| now.saturating_duration_since(begin) >= limit;
    if raised.is_some_and(|raised| is_over(raised, limits.grace) && is_over(since, limits.grace)) {
        return Some(Stuck::Interrupted);
    }
    is_over(since, limits.stay).then(|| {
        Stuck::Calls(format!(
            "rank {rank}: {place}, for {:.0} s: other ranks have not come to their call, or the storage or the MPI library holds this one. What the \
             other ranks say above of where they stand tells why. Raise BEFF_RAW_STRANDED_SECONDS where one call can take longer",
            limits.stay.as_secs_f64()
        ))
    })
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

    const SYNC: Place = Place::Calls { function: Function::Sync, begin_ns: 7, behind: 0, meets: true };
    const LIMITS: Limits = Limits { stay: Duration::from_secs(60), grace: Duration::from_secs(8) };

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
    fn a_rank_that_stays_in_a_call_for_others_is_ended() {
        let since = Instant::now();
        let after = |seconds| since + Duration::from_secs(seconds);
        let ends = |place, raised, seconds| overdue(0, Some((since, place)), LIMITS, raised, after(seconds));
        assert!(ends(SYNC, None, 59).is_none() && matches!(ends(SYNC, None, 60), Some(Stuck::Calls(_))));
        let alone = Place::Calls { function: Function::Sync, begin_ns: 7, behind: 0, meets: false };
        assert!(ends(alone, Some(since), 1000).is_none(), "it comes back when the storage does");
        assert!(ends(SYNC, Some(after(5)), 12).is_none(), "others may help it out");
        assert!(matches!(ends(SYNC, Some(after(5)), 13), Some(Stuck::Interrupted)));
        let just_come = overdue(0, Some((after(10), SYNC)), LIMITS, Some(after(1)), after(13));
        assert!(just_come.is_none(), "it went on after the signal");
    }

    #[test]
    fn a_place_says_what_keeps_the_rank() {
        let some = Place::Calls { function: Function::WriteAt, begin_ns: 9, behind: 15, meets: false };
        assert_eq!(some.to_string(), "in MPI_File_write_at, recorded at 9 ns, or one of the 15 calls behind it");
        let waits = Place::Waits { begin_ns: 9, other: Other { rank: 3, call_ns: Some(4) } };
        let text = "waiting before the call recorded at 9 ns, for the call of rank 3 at 4 ns, which has not ended";
        assert_eq!(waits.to_string(), text);
    }

    #[test]
    fn the_watch_speaks_of_a_rank_that_stands_and_ends_with_it() {
        let (say, said) = mpsc::channel();
        let notes = Notes::default();
        let limits = Limits { stay: Duration::from_millis(40), ..LIMITS };
        let (end, ended) = mpsc::channel();
        let end = move |stuck: &Stuck| drop(end.send(stuck.to_string()));
        let say = move |text: &str| say.send(text.to_owned()).unwrap();
        let watch = Watch::begin(&notes, (2, limits), &Interrupt::default(), say, end);
        notes.enter(SYNC);
        let text = said.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(text.starts_with("rank 2: in MPI_File_sync, recorded at 7 ns, for over 0 s"), "{text}");
        let why = ended.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(why.starts_with("rank 2: in MPI_File_sync, recorded at 7 ns, for 0 s: other ranks"), "{why}");
        notes.leave();
        drop(watch);
        assert!(said.iter().all(|text| text.starts_with("rank 2: in")), "its end is the end of the channel");
    }
}
