//! Placement of a loop's messages in memory: windows in turn, or a walk.

/// Equally spaced windows that the iterations of a loop use in turn: iteration i uses window i modulo `count`.
#[derive(Clone, Copy, Debug)]
pub struct MessageWindows {
    /// Number of windows, at least 1.
    pub count: usize,
    /// Distance of two windows.
    pub stride_bytes: usize,
}

impl MessageWindows {
    /// Bytes from the first window's begin to the last one's end; None on overflow.
    fn span_bytes(self, message_bytes: usize) -> Option<usize> {
        self.count.checked_sub(1)?.checked_mul(self.stride_bytes)?.checked_add(message_bytes)
    }
}

/// Placement of the messages of a loop.
#[derive(Clone, Copy, Debug)]
pub enum MessagePlacement<'a> {
    /// Each step has its own windows, which the iterations use in turn.
    Windows {
        /// For each step, the offset of its first window in the memory of the sends.
        send_at: &'a [usize],
        /// For each step, the offset of its first window in the memory of the receives. Ranges of two steps, with all windows, must not
        /// overlap.
        receive_at: &'a [usize],
        /// Windows of the sends.
        send: MessageWindows,
        /// Windows of the receives.
        receive: MessageWindows,
    },
    /// Consecutive messages at equal offsets of both memories, wrapping to the begin.
    Walk(MemoryWalk),
}

/// A walk through memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryWalk {
    /// Offset of the first message.
    pub begin: usize,
    /// Distance of two messages, at least their length.
    pub advance_bytes: usize,
    /// Bytes of both memories that contain the messages.
    pub memory_bytes: usize,
}

impl MemoryWalk {
    /// The last offset at which a message of this length may begin; None if it does not fit.
    pub(crate) fn last_offset(self, message_bytes: usize) -> Option<usize> {
        self.memory_bytes.checked_sub(message_bytes).filter(|last| self.begin <= *last)
    }

    /// Whether so many consecutive messages fit without overlap.
    fn fits(self, message_bytes: usize, messages: usize) -> bool {
        let Some(last) = self.last_offset(message_bytes) else { return false };
        let advance = self.advance_bytes.max(1);
        let on_grid = self.begin.is_multiple_of(advance);
        message_bytes <= advance && messages + usize::from(!on_grid) <= last / advance + 1
    }
}

/// The messages of one loop.
#[derive(Clone, Copy, Debug)]
pub struct MessageLayout<'a> {
    /// Length of a message.
    pub message_bytes: usize,
    /// Their placement.
    pub placement: MessagePlacement<'a>,
}

impl MessageLayout<'_> {
    /// Whether all messages lie inside memories of these lengths, and the receives of an iteration do not overlap.
    pub(crate) fn fits(&self, steps: usize, send_bytes: usize, receive_bytes: usize) -> bool {
        let (send_at, receive_at, send, receive) = match self.placement {
            MessagePlacement::Windows { send_at, receive_at, send, receive } => (send_at, receive_at, send, receive),
            MessagePlacement::Walk(walk) => {
                return walk.memory_bytes <= send_bytes.min(receive_bytes) && walk.fits(self.message_bytes, steps);
            }
        };
        let reaches = (send.span_bytes(self.message_bytes), receive.span_bytes(self.message_bytes));
        let (Some(out), Some(into)) = reaches else { return false };
        let inside = |at: usize, span: usize, len: usize| at.checked_add(span).is_some_and(|end| end <= len);
        let apart = |n: usize| receive_at[..n].iter().all(|at| at.abs_diff(receive_at[n]) >= into);
        send_at.len() == steps
            && receive_at.len() == steps
            && send_at.iter().all(|at| inside(*at, out, send_bytes))
            && receive_at.iter().all(|at| inside(*at, into, receive_bytes))
            && (1..steps).all(apart)
    }
}

/// Offsets of the next message in the memories of the sends and receives.
pub(crate) trait OffsetSequence {
    /// Offsets for this step.
    fn next_offsets(&mut self, step: usize) -> (usize, usize);
    /// Called after all steps of an iteration.
    fn end_of_iteration(&mut self);
}

/// Consecutive messages.
pub(crate) struct WalkOffsets {
    pub(crate) at: usize,
    pub(crate) advance: usize,
    pub(crate) last: usize,
}

impl OffsetSequence for WalkOffsets {
    #[inline]
    fn next_offsets(&mut self, _: usize) -> (usize, usize) {
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

pub(crate) struct WindowOffsets<'a> {
    pub(crate) send_at: &'a [usize],
    pub(crate) receive_at: &'a [usize],
    /// Of the sends and of the receives.
    pub(crate) cursors: [WindowCursor; 2],
}

impl OffsetSequence for WindowOffsets<'_> {
    #[inline]
    fn next_offsets(&mut self, step: usize) -> (usize, usize) {
        let [from, to] = &self.cursors;
        (self.send_at[step] + from.offset_bytes, self.receive_at[step] + to.offset_bytes)
    }

    #[inline]
    fn end_of_iteration(&mut self) {
        self.cursors.iter_mut().for_each(WindowCursor::advance);
    }
}

/// The current one of several windows.
pub(crate) struct WindowCursor {
    windows: MessageWindows,
    number: usize,
    offset_bytes: usize,
}

impl WindowCursor {
    pub(crate) fn new(windows: MessageWindows) -> Self {
        Self { windows, number: 0, offset_bytes: 0 }
    }

    #[inline]
    fn advance(&mut self) {
        self.number += 1;
        self.offset_bytes += self.windows.stride_bytes;
        if self.number == self.windows.count {
            *self = Self::new(self.windows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(begin: usize, message_bytes: usize, memory_bytes: usize) -> MessageLayout<'static> {
        let advance_bytes = message_bytes.next_multiple_of(8);
        MessageLayout {
            message_bytes,
            placement: MessagePlacement::Walk(MemoryWalk { begin, advance_bytes, memory_bytes }),
        }
    }

    #[test]
    fn walks_stay_inside_memory_without_overlap() {
        assert!(walk(0, 100, 624).fits(6, 624, 624));
        assert!(!walk(0, 100, 624).fits(7, 624, 624), "seven times 104 bytes");
        assert!(!walk(0, 100, 624).fits(2, 624, 623), "memory too short");
        assert!(!walk(528, 100, 624).fits(1, 624, 624), "beyond the last offset");
        // Between two offsets of the next pass through memory a message overlaps both.
        assert!(walk(8, 100, 624).fits(5, 624, 624) && !walk(8, 100, 624).fits(6, 624, 624));
    }

    #[test]
    fn walk_offsets_wrap_around() {
        let mut on = WalkOffsets { at: 8, advance: 104, last: 524 };
        let places: Vec<usize> = (0..7).map(|_| on.next_offsets(0).0).collect();
        assert_eq!(places, [8, 112, 216, 320, 424, 0, 104]);
    }
}
