//! Durations of single calls, recorded without allocation if enabled. The only clock in this crate: drivers mark the begin and end of
//! calls, and never see a time.

use std::time::Instant;

use hdrhistogram::Histogram;
use quanta::Clock;

/// Longest distinguished time, one hour; longer ones are recorded as this.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of each time.
const DIGITS: u8 = 3;

/// The start time of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStart(u64);

/// A recorder of call times. If disabled, it costs one well-predicted branch per call.
#[derive(Clone, Debug)]
pub struct Latency {
    epoch: Instant,
    histogram: Option<Histogram<u64>>,
    intervals: Option<CompletionIntervals>,
}

/// Intervals between the ends of successive calls: one reading of the cycle counter for each.
#[derive(Clone, Debug)]
struct CompletionIntervals {
    clock: Clock,
    last: u64,
    ticks: Vec<u64>,
}

impl Latency {
    /// Records nothing.
    #[must_use]
    pub fn off() -> Self {
        Self { epoch: Instant::now(), histogram: None, intervals: None }
    }

    /// Records call times; all memory is allocated here.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn on() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Self { epoch: Instant::now(), histogram: histogram.ok(), intervals: None }
    }

    /// Records the intervals between the ends of successive calls, the first `most` of them. All memory is allocated here. The clock is
    /// the cycle counter of the processor if it is invariant.
    #[must_use]
    pub fn intervals(most: usize) -> Self {
        let laps = CompletionIntervals { clock: Clock::new(), last: 0, ticks: Vec::with_capacity(most) };
        Self { intervals: Some(laps), ..Self::off() }
    }

    /// Discards the intervals and starts the first one.
    #[inline]
    pub fn start_intervals(&mut self) {
        if let Some(laps) = &mut self.intervals {
            laps.ticks.clear();
        }
        self.resume_intervals();
    }

    /// Starts the next interval; the time since the last one is not recorded.
    #[inline]
    pub fn resume_intervals(&mut self) {
        if let Some(laps) = &mut self.intervals {
            laps.last = laps.clock.raw();
        }
    }

    /// Ends an interval, for drivers that do not do so.
    #[inline]
    pub fn record_interval(&mut self) {
        if let Some(laps) = &mut self.intervals {
            laps.record();
        }
    }

    /// The recorded intervals, in ns.
    pub fn intervals_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.intervals.iter().flat_map(|laps| laps.ticks.iter().map(|ticks| laps.clock.delta_as_nanos(0, *ticks)))
    }

    /// True if times are recorded.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.histogram.is_some() || self.intervals.is_some()
    }

    /// Starts a call.
    #[must_use]
    #[inline]
    pub fn begin(&self) -> CallStart {
        if self.histogram.is_some() {
            CallStart(self.now_ns())
        } else {
            CallStart(0)
        }
    }

    /// Ends the call that was started at `mark`.
    #[inline]
    pub fn end(&mut self, mark: CallStart) {
        if let Some(laps) = &mut self.intervals {
            laps.record();
        } else if self.histogram.is_some() {
            let ns = self.now_ns().saturating_sub(mark.0);
            if let Some(histogram) = &mut self.histogram {
                histogram.saturating_record(ns.max(1));
            }
        }
    }

    /// Discards the recorded times.
    pub fn clear(&mut self) {
        if let Some(histogram) = &mut self.histogram {
            histogram.reset();
        }
    }

    /// The recorded times, in ns; None if disabled.
    #[must_use]
    pub fn histogram(&self) -> Option<&Histogram<u64>> {
        self.histogram.as_ref()
    }

    /// A u64 of nanoseconds covers five centuries.
    #[inline]
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

impl CompletionIntervals {
    #[inline]
    fn record(&mut self) {
        let now = self.clock.raw();
        // The memory is preallocated; later intervals are discarded.
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
    fn intervals_add_up_and_stop_at_the_capacity() {
        let mut latency = Latency::intervals(3);
        let begin = Instant::now();
        latency.start_intervals();
        for _ in 0..5 {
            let mark = latency.begin();
            std::thread::sleep(std::time::Duration::from_millis(2));
            latency.end(mark);
        }
        let all = begin.elapsed().as_nanos() as u64;
        let laps: Vec<u64> = latency.intervals_ns().collect();
        assert_eq!(laps.len(), 3);
        assert!(laps.iter().all(|ns| *ns >= 1_900_000) && laps.iter().sum::<u64>() <= all, "{laps:?} of {all}");
        let since = Instant::now();
        latency.start_intervals();
        assert_eq!(latency.intervals_ns().count(), 0);
        latency.record_interval();
        std::thread::sleep(std::time::Duration::from_millis(20));
        latency.resume_intervals();
        latency.record_interval();
        let all: u64 = latency.intervals_ns().sum();
        assert!(all + 19_000_000 <= since.elapsed().as_nanos() as u64, "the pause is not recorded: {all}");
        std::thread::sleep(std::time::Duration::from_millis(20));
        latency.record_interval();
        let all: Vec<u64> = latency.intervals_ns().collect();
        assert!(all.len() == 3 && all[2] >= 19_000_000, "{all:?}");
    }
}
