//! Begin of calls: deadlines instead of pauses, so that errors do not accumulate.

use std::time::Duration;

use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

use crate::frame::run::interrupt::Interrupt;
use crate::replay::config::Pace;

/// The kernel wakes up late: the last part is busy-waited.
const SPIN_NS: u64 = 80_000;
const MAX_SLEEP_NS: u64 = 100_000_000;

/// Clock of the outcomes.
pub(super) fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    pace: Pace,
    scale: f64,
    /// Begin of the repetition; corresponds to the first call of all ranks in the profile.
    start_ns: u64,
    /// End of the previous call: recorded, and now.
    last_ns: Option<(u64, u64)>,
    pub(super) late_ns: u64,
}

impl Deadlines {
    pub(super) fn new(pace: Pace, scale: f64, start_ns: u64) -> Self {
        Self { pace, scale, start_ns, last_ns: None, late_ns: 0 }
    }

    pub(super) fn is_paced(&self) -> bool {
        self.pace != Pace::Fast
    }

    /// Excludes a pause of the replay itself.
    pub(super) fn shift(&mut self, ns: u64) {
        self.start_ns += ns;
        self.last_ns = self.last_ns.map(|(recorded, now)| (recorded, now + ns));
    }

    pub(super) fn call_ended(&mut self, recorded_ns: u64, now_ns: u64) {
        self.last_ns = Some((recorded_ns, now_ns));
    }

    /// All ranks of a call are synchronized now; it was recorded as begun `met_ns` after that.
    pub(super) fn ranks_synchronized(&mut self, begin_ns: u64, met_ns: u64, now_ns: u64) {
        self.last_ns = Some((begin_ns.saturating_sub(met_ns), now_ns));
    }

    /// Begin of the call that was recorded at `begin_ns`.
    fn deadline(&self, begin_ns: u64) -> Option<u64> {
        match self.pace {
            Pace::Fast => None,
            Pace::Absolute => Some(self.start_ns + (begin_ns as f64 * self.scale) as u64),
            Pace::Think => {
                let (recorded, now) = self.last_ns.unwrap_or((0, self.start_ns));
                Some(now + begin_ns.saturating_sub(recorded))
            }
        }
    }

    /// Sleeps until the begin of the call. False after a signal.
    pub(super) fn sleep_until(&mut self, begin_ns: u64, interrupt: &Interrupt) -> bool {
        let Some(deadline) = self.deadline(begin_ns) else { return true };
        loop {
            let now = now_ns();
            let Some(left) = deadline.checked_sub(now) else {
                self.late_ns = self.late_ns.max(now - deadline);
                return true;
            };
            if interrupt.is_raised() {
                return false;
            }
            if left > SPIN_NS {
                let until = now + (left - SPIN_NS).min(MAX_SLEEP_NS);
                let until = Duration::from_nanos(until).into();
                let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until);
            } else if left == 0 {
                return true;
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_follow_from_the_profile() {
        let at = |pace, scale| Deadlines::new(pace, scale, 1000);
        assert_eq!(at(Pace::Fast, 1.0).deadline(500), None);
        assert_eq!(at(Pace::Absolute, 0.5).deadline(500), Some(1250));
        let mut think = at(Pace::Think, 1.0);
        assert_eq!(think.deadline(500), Some(1500), "the time before the first call");
        think.call_ended(600, 2000);
        assert_eq!((think.deadline(650), think.deadline(590)), (Some(2050), Some(2000)));
        think.shift(100);
        assert_eq!(think.deadline(650), Some(2150), "pauses of the replay are excluded");
        think.ranks_synchronized(700, 20, 3000);
        assert_eq!(think.deadline(700), Some(3020), "since the last rank was ready");
    }

    #[test]
    fn sleeping_ends_at_the_deadline_or_with_a_signal() {
        let start = now_ns();
        let mut deadlines = Deadlines::new(Pace::Absolute, 1.0, start);
        assert!(deadlines.sleep_until(5_000_000, &Interrupt::default()));
        assert!(now_ns() >= start + 5_000_000);
        assert!(deadlines.sleep_until(0, &Interrupt::default()) && deadlines.late_ns >= 5_000_000);
    }
}
