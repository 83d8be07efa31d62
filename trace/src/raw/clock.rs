//! Conversion of ticks to ns of CLOCK_MONOTONIC.

/// A tick and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSample {
    /// Ticks of the recording clock.
    pub tick: u64,
    /// CLOCK_MONOTONIC in ns.
    pub ns: u64,
}

/// Linear conversion through two clock samples.
#[derive(Clone, Copy, Debug)]
pub struct TickConversion {
    from: ClockSample,
    ns_per_tick: f64,
}

impl TickConversion {
    /// Through two samples, as far apart as possible. If they are equal or run backwards, a tick counts as 1 ns.
    #[must_use]
    pub fn new(from: ClockSample, to: ClockSample) -> Self {
        let ns_per_tick = match (to.tick.checked_sub(from.tick), to.ns.checked_sub(from.ns)) {
            (Some(ticks), Some(ns)) if ticks > 0 && ns > 0 => ns as f64 / ticks as f64,
            _ => 1.0,
        };
        Self { from, ns_per_tick }
    }

    /// Time of a tick in ns.
    #[must_use]
    pub fn ns(&self, tick: u64) -> u64 {
        if tick >= self.from.tick {
            self.from.ns.saturating_add(((tick - self.from.tick) as f64 * self.ns_per_tick) as u64)
        } else {
            self.from.ns.saturating_sub(((self.from.tick - tick) as f64 * self.ns_per_tick) as u64)
        }
    }
}
