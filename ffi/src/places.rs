//! Where the messages of a loop lie in memory: windows in turn, or a walk.

/// Places beside each other that the iterations of a loop use in turn: iteration i the one with number i modulo `count`.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// How many, at least 1.
    pub count: usize,
    /// Distance of two.
    pub stride_bytes: usize,
}

impl Windows {
    /// Bytes from the beginning of the first window to the end of the last; None: more than there can be.
    fn reach(self, message_bytes: usize) -> Option<usize> {
        self.count.checked_sub(1)?.checked_mul(self.stride_bytes)?.checked_add(message_bytes)
    }
}

/// Where the messages of one loop lie in memory.
#[derive(Clone, Copy, Debug)]
pub enum Places<'a> {
    /// Each step has windows of its own, which the iterations use in turn.
    Windows {
        /// For each step, where the first window to be sent from begins in the memory of the sends.
        send_at: &'a [usize],
        /// For each step, where the first window to be received into begins in the memory of the receives. The ranges of
        /// two steps, with all windows, must not overlap.
        receive_at: &'a [usize],
        /// Windows of the sends.
        send: Windows,
        /// Windows of the receives.
        receive: Windows,
    },
    /// One message behind the other, at the same place of both memories, and from their beginning where the next one would
    /// not fit.
    Walk(Walk),
}

/// A walk through memory.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Where the first message begins.
    pub begin: usize,
    /// Distance of two messages, at least their length.
    pub advance_bytes: usize,
    /// Bytes of both memories that the messages lie in.
    pub memory_bytes: usize,
}

impl Walk {
    /// The last place where a message of this length may begin; None: nowhere.
    pub(crate) fn last(self, message_bytes: usize) -> Option<usize> {
        self.memory_bytes.checked_sub(message_bytes).filter(|last| self.begin <= *last)
    }

    /// Whether so many messages behind each other lie inside and apart.
    fn fits(self, message_bytes: usize, messages: usize) -> bool {
        let Some(last) = self.last(message_bytes) else { return false };
        let advance = self.advance_bytes.max(1);
        let on_grid = self.begin.is_multiple_of(advance);
        message_bytes <= advance && messages + usize::from(!on_grid) <= last / advance + 1
    }
}

/// The messages of one loop.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Length of a message.
    pub message_bytes: usize,
    /// Where they lie.
    pub places: Places<'a>,
}

impl Flow<'_> {
    /// Whether all messages lie inside of memories of these lengths, and what an iteration receives apart.
    pub(crate) fn fits(&self, steps: usize, send_bytes: usize, receive_bytes: usize) -> bool {
        let (send_at, receive_at, send, receive) = match self.places {
            Places::Windows { send_at, receive_at, send, receive } => (send_at, receive_at, send, receive),
            Places::Walk(walk) => {
                return walk.memory_bytes <= send_bytes.min(receive_bytes) && walk.fits(self.message_bytes, steps);
            }
        };
        let reaches = (send.reach(self.message_bytes), receive.reach(self.message_bytes));
        let (Some(out), Some(into)) = reaches else { return false };
        let inside = |at: usize, reach: usize, len: usize| at.checked_add(reach).is_some_and(|end| end <= len);
        let apart = |n: usize| receive_at[..n].iter().all(|at| at.abs_diff(receive_at[n]) >= into);
        send_at.len() == steps
            && receive_at.len() == steps
            && send_at.iter().all(|at| inside(*at, out, send_bytes))
            && receive_at.iter().all(|at| inside(*at, into, receive_bytes))
            && (1..steps).all(apart)
    }
}

/// Where the next message is sent from and received into.
pub(crate) trait Next {
    /// Of this step.
    fn next(&mut self, step: usize) -> (usize, usize);
    /// All steps of an iteration are behind.
    fn end_of_iteration(&mut self);
}

/// One message behind the other.
pub(crate) struct Onward {
    pub(crate) at: usize,
    pub(crate) advance: usize,
    pub(crate) last: usize,
}

impl Next for Onward {
    #[inline]
    fn next(&mut self, _: usize) -> (usize, usize) {
        let at = self.at;
        self.at += self.advance;
        if self.at > self.last {
            self.at = 0;
        }
        (at, at)
    }

    #[inline]
    fn end_of_iteration(&mut self) {}
}

/// Windows in turn.
pub(crate) struct InTurn<'a> {
    pub(crate) send_at: &'a [usize],
    pub(crate) receive_at: &'a [usize],
    /// Of the sends and of the receives.
    pub(crate) turns: [Turn; 2],
}

impl Next for InTurn<'_> {
    #[inline]
    fn next(&mut self, step: usize) -> (usize, usize) {
        let [from, to] = &self.turns;
        (self.send_at[step] + from.shift_bytes, self.receive_at[step] + to.shift_bytes)
    }

    #[inline]
    fn end_of_iteration(&mut self) {
        self.turns.iter_mut().for_each(Turn::next);
    }
}

/// Whose turn it is among windows.
pub(crate) struct Turn {
    windows: Windows,
    number: usize,
    shift_bytes: usize,
}

impl Turn {
    pub(crate) fn of(windows: Windows) -> Self {
        Self { windows, number: 0, shift_bytes: 0 }
    }

    #[inline]
    fn next(&mut self) {
        self.number += 1;
        self.shift_bytes += self.windows.stride_bytes;
        if self.number == self.windows.count {
            *self = Self::of(self.windows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(begin: usize, message_bytes: usize, memory_bytes: usize) -> Flow<'static> {
        let advance_bytes = message_bytes.next_multiple_of(8);
        Flow { message_bytes, places: Places::Walk(Walk { begin, advance_bytes, memory_bytes }) }
    }

    #[test]
    fn a_walk_stays_inside_and_apart() {
        assert!(walk(0, 100, 624).fits(6, 624, 624));
        assert!(!walk(0, 100, 624).fits(7, 624, 624), "seven of 104 bytes");
        assert!(!walk(0, 100, 624).fits(2, 624, 623), "a memory that is too short");
        assert!(!walk(528, 100, 624).fits(1, 624, 624), "behind the last place");
        // Between two places of the next lap a message covers both.
        assert!(walk(8, 100, 624).fits(5, 624, 624) && !walk(8, 100, 624).fits(6, 624, 624));
    }

    #[test]
    fn messages_go_on_and_come_back() {
        let mut on = Onward { at: 8, advance: 104, last: 524 };
        let places: Vec<usize> = (0..7).map(|_| on.next(0).0).collect();
        assert_eq!(places, [8, 112, 216, 320, 424, 0, 104]);
    }
}
