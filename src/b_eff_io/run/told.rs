//! What ranks tell each other of their batches, while they run the next ones.

use beff_ffi::{Agreement, Comm, MpiError};

use crate::b_eff_io::run::batching::Progress;
use crate::frame::run::clock::Instant;

/// Numbers of one agreement.
pub(super) const NUMBERS: usize = 6;
/// Agreements under way while a batch runs, at most. With one, a rank waits for another that is a batch behind; small batches differ by more
/// than that, and libraries that go on with an agreement only inside of their calls need one for each step between more than two
/// ranks. More than the long batches that may be ahead (`batching`); of small ones it bounds them.
const UNDER_WAY: usize = 8;

/// Agreements under way, each with what it tells of. Made before the clock, with all memory.
#[derive(Debug)]
pub(super) struct Told<'c> {
    slots: Vec<Slot<'c>>,
    /// The oldest one, and how many there are.
    first: usize,
    count: usize,
}

#[derive(Debug)]
struct Slot<'c> {
    agreement: Agreement<'c>,
    of: Progress,
    telling_seconds: f64,
}

/// What all ranks know now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// What this rank had made when it told.
    pub(super) of: Progress,
    /// The largest of all ranks' numbers.
    pub(super) numbers: [f64; NUMBERS],
    /// Time of this rank to begin it, and to wait for its end.
    pub(super) telling_seconds: f64,
    pub(super) hearing_seconds: f64,
}

impl<'c> Told<'c> {
    /// Nothing is under way between the ranks of `comm`.
    pub(super) fn new(comm: &'c Comm) -> Self {
        let slot = |_| Slot { agreement: Agreement::new(comm, NUMBERS), of: Progress::default(), telling_seconds: 0.0 };
        Self { slots: (0..UNDER_WAY).map(slot).collect(), first: 0, count: 0 }
    }

    /// True if something has to be heard before more is told.
    pub(super) fn is_full(&self) -> bool {
        self.count == self.slots.len()
    }

    /// Begins to tell the others `numbers` of what this rank has made; the time it took. Collective, but no rank waits.
    ///
    /// # Errors
    /// What MPI reports.
    pub(super) fn tell(&mut self, of: Progress, numbers: [f64; NUMBERS]) -> Result<f64, MpiError> {
        let begin = Instant::now();
        let slots = self.slots.len();
        let slot = &mut self.slots[(self.first + self.count) % slots];
        slot.agreement.begin(&numbers)?;
        self.count += 1;
        // The library goes on with all of them if it is asked for one that has not ended; the oldest may have, long ago.
        slot.agreement.ask()?;
        let telling_seconds = begin.elapsed().as_secs_f64();
        (slot.of, slot.telling_seconds) = (of, telling_seconds);
        Ok(telling_seconds)
    }

    /// Waits for what was told first; None if nothing is under way.
    ///
    /// # Errors
    /// What MPI reports.
    pub(super) fn hear(&mut self) -> Result<Option<Heard>, MpiError> {
        if self.count == 0 {
            return Ok(None);
        }
        let begin = Instant::now();
        let slot = &mut self.slots[self.first];
        let mut numbers = [0.0; NUMBERS];
        numbers.copy_from_slice(slot.agreement.finish()?);
        let (of, telling_seconds) = (slot.of, slot.telling_seconds);
        self.first = (self.first + 1) % self.slots.len();
        self.count -= 1;
        Ok(Some(Heard { of, numbers, telling_seconds, hearing_seconds: begin.elapsed().as_secs_f64() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_heard_in_order() {
        let own = Comm::own();
        let mut told = Told::new(&own);
        assert!(told.hear().unwrap().is_none());
        let (mut next, mut expected) = (0, 0);
        // Around the end of the slots, full and not.
        for heard_at_once in [1, UNDER_WAY, 2, UNDER_WAY, 1] {
            while !told.is_full() {
                next += 1;
                told.tell(Progress { calls: next, ..Progress::default() }, [next as f64; NUMBERS]).unwrap();
            }
            for _ in 0..heard_at_once {
                expected += 1;
                let heard = told.hear().unwrap().unwrap();
                assert_eq!((heard.of.calls, heard.numbers), (expected, [expected as f64; NUMBERS]));
                assert!(heard.telling_seconds >= 0.0 && heard.hearing_seconds >= 0.0 && !told.is_full());
            }
        }
        assert_eq!(next - expected, UNDER_WAY as u64 - 1);
    }
}
