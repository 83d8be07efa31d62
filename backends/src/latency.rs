//! Times of single calls, recorded without allocation when they are wanted. The only clock in this crate: drivers mark
//! where a call begins and ends, and never see a time.

use std::time::Instant;

use hdrhistogram::Histogram;
use quanta::Clock;

/// Longest time that is told apart, one hour; longer ones count as that.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits kept of each time.
const DIGITS: u8 = 3;

/// Where a call began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(u64);

/// A recorder of call times. Off, it costs one well-predicted branch per call.
#[derive(Clone, Debug)]
pub struct Latency {
    epoch: Instant,
    histogram: Option<Histogram<u64>>,
    laps: Option<Laps>,
}

/// From the end of a call to the end of the next one: one reading of the cycle counter for each.
#[derive(Clone, Debug)]
struct Laps {
    clock: Clock,
    last: u64,
    ticks: Vec<u64>,
}

impl Latency {
    /// Records nothing.
    #[must_use]
    pub fn off() -> Self {
        Self { epoch: Instant::now(), histogram: None, laps: None }
    }

    /// Records; all memory is allocated here.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn on() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Self { epoch: Instant::now(), histogram: histogram.ok(), laps: None }
    }

    /// Keeps laps: the times between the ends of calls that follow each other, the first `most` of them. All memory is
    /// allocated here. Where the processor has a cycle counter that never stops, that is the clock.
    #[must_use]
    pub fn laps(most: usize) -> Self {
        let laps = Laps { clock: Clock::new(), last: 0, ticks: Vec::with_capacity(most) };
        Self { laps: Some(laps), ..Self::off() }
    }

    /// Forgets the laps there are; the first one begins now.
    #[inline]
    pub fn start_laps(&mut self) {
        if let Some(laps) = &mut self.laps {
            laps.ticks.clear();
        }
        self.resume_laps();
    }

    /// The next lap begins now, behind those there are: the time since the last one is nobody's.
    #[inline]
    pub fn resume_laps(&mut self) {
        if let Some(laps) = &mut self.laps {
            laps.last = laps.clock.raw();
        }
    }

    /// A lap ends, for calls whose driver does not say so.
    #[inline]
    pub fn lap(&mut self) {
        if let Some(laps) = &mut self.laps {
            laps.lap();
        }
    }

    /// The laps so far, in ns.
    pub fn laps_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.laps.iter().flat_map(|laps| laps.ticks.iter().map(|ticks| laps.clock.delta_as_nanos(0, *ticks)))
    }

    /// True if times are recorded.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.histogram.is_some() || self.laps.is_some()
    }

    /// A call begins.
    #[must_use]
    #[inline]
    pub fn begin(&self) -> Mark {
        if self.histogram.is_some() {
            Mark(self.now_ns())
        } else {
            Mark(0)
        }
    }

    /// The call that began at `mark` has ended.
    #[inline]
    pub fn end(&mut self, mark: Mark) {
        if let Some(laps) = &mut self.laps {
            laps.lap();
        } else if self.histogram.is_some() {
            let ns = self.now_ns().saturating_sub(mark.0);
            if let Some(histogram) = &mut self.histogram {
                histogram.saturating_record(ns.max(1));
            }
        }
    }

    /// Forgets what was recorded.
    pub fn clear(&mut self) {
        if let Some(histogram) = &mut self.histogram {
            histogram.reset();
        }
    }

    /// What was recorded, in ns; None if it is off.
    #[must_use]
    pub fn histogram(&self) -> Option<&Histogram<u64>> {
        self.histogram.as_ref()
    }

    /// u64 nanoseconds last for five centuries.
    #[inline]
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

impl Laps {
    #[inline]
    fn lap(&mut self) {
        let now = self.clock.raw();
        // Room was made before; what is beyond is not kept.
        if self.ticks.len() < self.ticks.capacity() {
            self.ticks.push(now.wrapping_sub(self.last));
        }
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_records_nothing_and_on_records_each_call() {
        let mut off = Latency::off();
        off.end(off.begin());
        assert!(off.histogram().is_none());
        let mut on = Latency::on();
        for _ in 0..10 {
            let mark = on.begin();
            on.end(mark);
        }
        assert_eq!(on.histogram().unwrap().len(), 10);
        on.clear();
        assert_eq!(on.histogram().unwrap().len(), 0);
    }

    #[test]
    fn each_time_is_that_of_its_call_in_ns() {
        let mut latency = Latency::on();
        let first = latency.begin();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let second = latency.begin();
        latency.end(second);
        latency.end(first);
        let times = latency.histogram().unwrap();
        let (least, most) = (times.min(), times.max());
        assert!(least < most / 2 && (20_000_000..10_000_000_000).contains(&most), "{least} {most}");
        let third = latency.begin();
        latency.end(third);
        assert_eq!(latency.histogram().unwrap().len(), 3, "one after the other");
    }

    #[test]
    fn laps_are_the_time_and_no_more_than_there_is_room_for() {
        let mut latency = Latency::laps(3);
        let begin = Instant::now();
        latency.start_laps();
        for _ in 0..5 {
            let mark = latency.begin();
            std::thread::sleep(std::time::Duration::from_millis(2));
            latency.end(mark);
        }
        let all = begin.elapsed().as_nanos() as u64;
        let laps: Vec<u64> = latency.laps_ns().collect();
        assert_eq!(laps.len(), 3);
        assert!(laps.iter().all(|ns| *ns >= 1_900_000) && laps.iter().sum::<u64>() <= all, "{laps:?} of {all}");
        let since = Instant::now();
        latency.start_laps();
        assert_eq!(latency.laps_ns().count(), 0);
        latency.lap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        latency.resume_laps();
        latency.lap();
        let all: u64 = latency.laps_ns().sum();
        assert!(all + 19_000_000 <= since.elapsed().as_nanos() as u64, "the pause is nobody's: {all}");
        std::thread::sleep(std::time::Duration::from_millis(20));
        latency.lap();
        let all: Vec<u64> = latency.laps_ns().collect();
        assert!(all.len() == 3 && all[2] >= 19_000_000, "{all:?}");
    }
}
