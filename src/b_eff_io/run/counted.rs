//! Whether a library has made the calls it reports: what the kernel counted of them against what it says it moved.
//!
//! Some versions of OMPIO return success for a collective call whose pwrite or pread failed, with the full count in the status. The
//! kernel counts only what its calls moved (rchar and wchar of /proc/self/io; see proc_pid_io(5)), so over all ranks less was
//! counted than moved. More is no sign of anything: sieving, messages through sockets. A library that reaches its storage without
//! read and write calls is not counted at all, and then nothing can be said; so an alarm needs a kernel that has been heard.

use beff_backends::Direction;

use crate::frame::system::memory::ProcessIo;

/// What is known of the counters for one backend. Equal on all ranks of a partition: it follows from sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// In this direction at least as much was counted as moved, once.
    heard: [bool; 2],
    /// Too little was counted, and all data was right.
    deaf: bool,
}

impl Counters {
    /// How many bytes the kernel has not seen of `moved_bytes`; None: all, or nothing can be said.
    pub fn missing(&mut self, direction: Direction, moved_bytes: u64, io: Option<ProcessIo>) -> Option<u64> {
        let io = io.filter(|_| moved_bytes > 0 && !self.deaf)?;
        let counted = counted_bytes(direction, &io);
        let heard = &mut self.heard[usize::from(direction == Direction::Read)];
        *heard |= counted >= moved_bytes;
        // Before it was ever heard, most of the bytes must have been.
        let believed = *heard || counted >= moved_bytes / 2;
        (believed && counted < moved_bytes).then(|| moved_bytes - counted)
    }

    /// Everything was there all the same.
    pub fn disbelieve(&mut self) {
        self.deaf = true;
    }

    /// As numbers, to be sent to ranks that have not seen what these have.
    #[must_use]
    pub fn to_parts(self) -> [f64; 3] {
        [self.heard[0], self.heard[1], self.deaf].map(|flag| f64::from(u8::from(flag)))
    }

    /// The counters that [`Counters::to_parts`] took apart.
    #[must_use]
    pub fn from_parts(parts: [f64; 3]) -> Self {
        let [write, read, deaf] = parts.map(|flag| flag > 0.5);
        Self { heard: [write, read], deaf }
    }
}

/// Bytes of the calls of one direction.
#[must_use]
pub fn counted_bytes(direction: Direction, io: &ProcessIo) -> u64 {
    match direction {
        Direction::Write => io.call_written_bytes,
        Direction::Read => io.call_read_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: u64) -> Option<ProcessIo> {
        Some(ProcessIo { call_written_bytes: bytes, ..ProcessIo::default() })
    }

    #[test]
    fn less_than_was_moved_is_missing_once_the_kernel_was_heard() {
        let mut counters = Counters::default();
        assert_eq!(counters.missing(Direction::Write, 1000, written(0)), None, "a library past the kernel");
        assert_eq!(counters.missing(Direction::Write, 1000, None), None);
        assert_eq!(counters.missing(Direction::Write, 1000, written(900)), Some(100), "most of it was counted");
        assert_eq!(counters.missing(Direction::Write, 1000, written(1200)), None, "sieving, sockets");
        assert_eq!(counters.missing(Direction::Write, 1000, written(0)), Some(1000));
        assert_eq!(counters.missing(Direction::Read, 1000, written(1000)), None, "reads were never heard");
        assert_eq!(Counters::from_parts(counters.to_parts()), counters);
        counters.disbelieve();
        assert_eq!(counters.missing(Direction::Write, 1000, written(900)), None);
        assert_eq!(Counters::from_parts(counters.to_parts()), counters);
    }
}
