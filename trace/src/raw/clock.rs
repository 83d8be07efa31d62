//! From ticks to ns of CLOCK_MONOTONIC.

/// A tick and the time at which it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Ticks of the clock of the recording.
    pub tick: u64,
    /// CLOCK_MONOTONIC in ns.
    pub ns: u64,
}

/// A straight line through two moments.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    from: Moment,
    ns_per_tick: f64,
}

impl Clock {
    /// Through two moments, as far apart as can be. Equal ones, or a clock that runs backwards: a tick is taken as 1 ns.
    #[must_use]
    pub fn new(from: Moment, to: Moment) -> Self {
        let ns_per_tick = match (to.tick.checked_sub(from.tick), to.ns.checked_sub(from.ns)) {
            (Some(ticks), Some(ns)) if ticks > 0 && ns > 0 => ns as f64 / ticks as f64,
            _ => 1.0,
        };
        Self { from, ns_per_tick }
    }

    /// The time of a tick, in ns.
    #[must_use]
    pub fn ns(&self, tick: u64) -> u64 {
        if tick >= self.from.tick {
            self.from.ns.saturating_add(((tick - self.from.tick) as f64 * self.ns_per_tick) as u64)
        } else {
            self.from.ns.saturating_sub(((self.from.tick - tick) as f64 * self.ns_per_tick) as u64)
        }
    }
}
