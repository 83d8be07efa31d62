//! Detection of stalled ranks. A rank that waits for another cannot see what blocks it, so a rank that does not proceed reports its
//! position itself. One that is blocked in a synchronizing call checks neither timeout nor signals; a separate thread does, and ends it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use beff_ffi::alloc;
use beff_trace::Function;

use super::ReplayAbort;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::system::affinity;

#[derive(Clone, Copy, Debug)]
pub(super) enum RankActivity {
    /// In a burst of calls, starting with this one. `synchronizes`: the call synchronizes ranks.
    InCalls { function: Function, begin_ns: u64, following: usize, synchronizes: bool },
    /// Waiting for another rank before the call of `begin_ns`.
    Waiting { begin_ns: u64, awaited: AwaitedRank },
}

impl fmt::Display for RankActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCalls { function, begin_ns, following: 0, .. } => {
                write!(f, "in MPI_{}, recorded at {begin_ns} ns", function.name())
            }
            Self::InCalls { function, begin_ns, following: behind, .. } => {
                write!(
                    f,
                    "in MPI_{}, recorded at {begin_ns} ns, or one of the {behind} calls after it",
                    function.name()
                )
            }
            Self::Waiting { begin_ns, awaited: other } => {
                write!(f, "waiting before the call recorded at {begin_ns} ns, for {other}")
            }
        }
    }
}

/// Awaited rank: until a call ends, or until the rank reaches a barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitedRank {
    pub rank: u32,
    pub call_ns: Option<u64>,
}

impl fmt::Display for AwaitedRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, call_ns } = self;
        match call_ns {
            Some(begin_ns) => write!(f, "the call of rank {rank} at {begin_ns} ns, which has not ended"),
            None => write!(f, "rank {rank}, which has not reached the common barrier"),
        }
    }
}

type SharedActivity = Arc<Mutex<Option<(Instant, RankActivity)>>>;

/// Stores the activity of this rank. Without a watch it costs an uncontended lock.
#[derive(Clone, Debug, Default)]
pub(super) struct ActivityNote(SharedActivity);

impl ActivityNote {
    pub fn enter(&self, place: RankActivity) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), place));
    }

    pub fn leave(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
pub(super) struct StallLimits {
    /// For a synchronizing call; half of it is the time of the first report of any activity.
    pub limit: Duration,
    /// For such a call after a signal.
    pub grace: Duration,
}

/// A thread that polls the activity until it is dropped.
#[derive(Debug)]
pub(super) struct StallWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StallWatch {
    /// `say` receives reports of the activity of `rank` after half the limit, and again after twice, four times ... that time. `end`
    /// receives the reason if the rank cannot continue.
    pub fn start(
        notes: &ActivityNote,
        (rank, limits): (u32, StallLimits),
        interrupt: &Interrupt,
        say: impl Fn(&str) + Send + 'static,
        end: impl Fn(&ReplayAbort) + Send + 'static,
    ) -> Self {
        let interrupt = interrupt.clone();
        let (stop, shared) = (Arc::new(AtomicBool::new(false)), Arc::clone(&notes.0));
        let (ends, ready) = (Arc::clone(&stop), Arc::new(Barrier::new(2)));
        let is_ready = Arc::clone(&ready);
        let look = move || {
            // The thread is not part of the measurement.
            alloc::exclude_this_thread();
            affinity::use_initial_affinity();
            is_ready.wait();
            let (mut reports, mut raised, long) = (StallReports::default(), None, limits.limit / 2);
            while !ends.load(Ordering::Acquire) {
                thread::park_timeout(POLL_INTERVAL.min(long / 4));
                let place = *shared.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                if let Some(text) = reports.next_report(place, long, now) {
                    say(&format!("rank {rank}: {text}"));
                }
                if interrupt.is_raised() {
                    raised.get_or_insert(now);
                }
                if let Some(stuck) = overdue_error(rank, place, limits, raised, now) {
                    end(&stuck);
                }
            }
        };
        // Without a thread there are no reports.
        let thread = thread::Builder::new().name("standing".into()).spawn(look).ok();
        // Its start allocates, which would be counted in the timed region.
        if thread.is_some() {
            ready.wait();
        }
        Self { stop, thread }
    }
}

impl Drop for StallWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Error of a rank that exceeds a limit in a synchronizing call.
fn overdue_error(
    rank: u32,
    place: Option<(Instant, RankActivity)>,
    limits: StallLimits,
    raised: Option<Instant>,
    now: Instant,
) -> Option<ReplayAbort> {
    let (since, place) =
        place.filter(|(_, place)| matches!(place, RankActivity::InCalls { synchronizes: true, .. }))?;
    let is_over = |begin: Instant, limit| now.saturating_duration_since(begin) >= limit;
    if raised.is_some_and(|raised| is_over(raised, limits.grace) && is_over(since, limits.grace)) {
        return Some(ReplayAbort::Interrupted);
    }
    is_over(since, limits.limit).then(|| {
        ReplayAbort::Calls(format!(
            "rank {rank}: {place}, for {:.0} s: other ranks have not reached their call, or the storage or the MPI library blocks \
             this one. The reports of other ranks above give the reason. Raise BEFF_RAW_STRANDED_SECONDS if a single call can take longer",
            limits.limit.as_secs_f64()
        ))
    })
}

/// Last report: begin of the activity, and time of the next report.
#[derive(Default)]
struct StallReports(Option<(Instant, Duration)>);

impl StallReports {
    fn next_report(&mut self, place: Option<(Instant, RankActivity)>, long: Duration, now: Instant) -> Option<String> {
        let (since, place) = place?;
        let again = self.0.filter(|(reported, _)| *reported == since).map_or(long, |(_, again)| again);
        let stood = now.saturating_duration_since(since);
        if stood < again {
            return None;
        }
        self.0 = Some((since, again * 2));
        // The threshold instead of the elapsed time: the text does not depend on thread scheduling.
        Some(format!("{place}, for over {:.0} s so far. Other ranks may wait for it", again.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SYNC: RankActivity =
        RankActivity::InCalls { function: Function::Sync, begin_ns: 7, following: 0, synchronizes: true };
    const LIMITS: StallLimits = StallLimits { limit: Duration::from_secs(60), grace: Duration::from_secs(8) };

    #[test]
    fn a_stall_is_reported_at_doubling_times() {
        let (long, since) = (Duration::from_secs(30), Instant::now());
        let mut reports = StallReports::default();
        let mut after = |seconds, place| reports.next_report(place, long, since + Duration::from_secs(seconds));
        let stands = Some((since, SYNC));
        assert_eq!(after(29, stands), None);
        let text = "in MPI_File_sync, recorded at 7 ns, for over 30 s so far. Other ranks may wait for it";
        assert_eq!(after(31, stands).as_deref(), Some(text));
        assert_eq!(after(59, stands), None, "not at every poll");
        let text = "in MPI_File_sync, recorded at 7 ns, for over 60 s so far. Other ranks may wait for it";
        assert_eq!(after(60, stands).as_deref(), Some(text));
        assert_eq!(after(119, stands), None);
        let elsewhere = Some((since + Duration::from_secs(100), SYNC));
        assert_eq!(after(125, elsewhere), None, "it has proceeded");
        assert!(after(130, elsewhere).is_some());
        assert_eq!(after(500, None), None, "between two calls");
    }

    #[test]
    fn a_rank_stalled_in_a_synchronizing_call_is_terminated() {
        let since = Instant::now();
        let after = |seconds| since + Duration::from_secs(seconds);
        let ends = |place, raised, seconds| overdue_error(0, Some((since, place)), LIMITS, raised, after(seconds));
        assert!(ends(SYNC, None, 59).is_none() && matches!(ends(SYNC, None, 60), Some(ReplayAbort::Calls(_))));
        let alone = RankActivity::InCalls { function: Function::Sync, begin_ns: 7, following: 0, synchronizes: false };
        assert!(ends(alone, Some(since), 1000).is_none(), "it returns when the storage responds");
        assert!(ends(SYNC, Some(after(5)), 12).is_none(), "others may release it");
        assert!(matches!(ends(SYNC, Some(after(5)), 13), Some(ReplayAbort::Interrupted)));
        let just_come = overdue_error(0, Some((after(10), SYNC)), LIMITS, Some(after(1)), after(13));
        assert!(just_come.is_none(), "it proceeded after the signal");
    }

    #[test]
    fn the_activity_names_the_reason_of_the_stall() {
        let some =
            RankActivity::InCalls { function: Function::WriteAt, begin_ns: 9, following: 15, synchronizes: false };
        assert_eq!(some.to_string(), "in MPI_File_write_at, recorded at 9 ns, or one of the 15 calls after it");
        let waits = RankActivity::Waiting { begin_ns: 9, awaited: AwaitedRank { rank: 3, call_ns: Some(4) } };
        let text = "waiting before the call recorded at 9 ns, for the call of rank 3 at 4 ns, which has not ended";
        assert_eq!(waits.to_string(), text);
    }

    #[test]
    fn the_watch_reports_a_stalled_rank_and_ends_with_it() {
        let (say, said) = mpsc::channel();
        let notes = ActivityNote::default();
        let limits = StallLimits { limit: Duration::from_millis(40), ..LIMITS };
        let (end, ended) = mpsc::channel();
        let end = move |stuck: &ReplayAbort| drop(end.send(stuck.to_string()));
        let say = move |text: &str| say.send(text.to_owned()).unwrap();
        let watch = StallWatch::start(&notes, (2, limits), &Interrupt::default(), say, end);
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
