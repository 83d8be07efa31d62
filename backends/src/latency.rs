//! Times of single calls, recorded without allocation when they are wanted. The only clock in this crate: drivers mark
//! where a call begins and ends, and never see a time.

use std::time::Instant;

use hdrhistogram::Histogram;

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
}

impl Latency {
    /// Records nothing.
    #[must_use]
    pub fn off() -> Self {
        Self { epoch: Instant::now(), histogram: None }
    }

    /// Records; all memory is allocated here.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn on() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Self { epoch: Instant::now(), histogram: histogram.ok() }
    }

    /// True if times are recorded.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.histogram.is_some()
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
        if self.histogram.is_some() {
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
}
