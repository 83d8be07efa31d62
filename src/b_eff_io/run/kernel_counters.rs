//! Detects whether a library issued the calls that it reports: bytes counted by the kernel against bytes reported as moved.
//!
//! Some versions of OMPIO return success for a collective call whose pwrite or pread failed, with the full count in the status. The kernel
//! counts only bytes that its calls moved (rchar and wchar of /proc/self/io; see proc_pid_io(5)), so over all ranks it counts less. A
//! larger count proves nothing (sieving, messages through sockets). A library without read and write calls is not counted at all; an error
//! is therefore reported only if the kernel has been observed to count.

use beff_backends::Direction;

use crate::frame::system::memory::ProcessIo;

/// Kernel counters for one backend. Equal on all ranks of a partition, because they are derived from sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    /// At least as much was counted as moved in this direction, once.
    is_counting: [bool; 2],
    /// Too little was counted although all data was correct.
    is_incomplete: bool,
}

impl KernelCounters {
    /// Number of the `moved_bytes` that the kernel did not count; None: all were counted, or no conclusion is possible.
    pub fn missing(&mut self, direction: Direction, moved_bytes: u64, io: Option<ProcessIo>) -> Option<u64> {
        let io = io.filter(|_| moved_bytes > 0 && !self.is_incomplete)?;
        let counted = counted_bytes(direction, &io);
        let observed = &mut self.is_counting[usize::from(direction == Direction::Read)];
        *observed |= counted >= moved_bytes;
        // Before the kernel was observed to count, it must have counted at least half of the bytes.
        let believed = *observed || counted >= moved_bytes / 2;
        (believed && counted < moved_bytes).then(|| moved_bytes - counted)
    }

    /// Notes that data was complete although bytes were not counted.
    pub fn mark_incomplete(&mut self) {
        self.is_incomplete = true;
    }

    /// As numbers, for broadcast.
    #[must_use]
    pub fn to_parts(self) -> [f64; 3] {
        [self.is_counting[0], self.is_counting[1], self.is_incomplete].map(|flag| f64::from(u8::from(flag)))
    }

    /// Inverse of [`KernelCounters::to_parts`].
    #[must_use]
    pub fn from_parts(parts: [f64; 3]) -> Self {
        let [write, read, is_incomplete] = parts.map(|flag| flag > 0.5);
        Self { is_counting: [write, read], is_incomplete }
    }
}

/// Bytes counted for one direction.
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
    fn bytes_are_missing_only_if_the_kernel_counts_them() {
        let mut counters = KernelCounters::default();
        assert_eq!(counters.missing(Direction::Write, 1000, written(0)), None, "a library not counted by the kernel");
        assert_eq!(counters.missing(Direction::Write, 1000, None), None);
        assert_eq!(counters.missing(Direction::Write, 1000, written(900)), Some(100), "most of it was counted");
        assert_eq!(counters.missing(Direction::Write, 1000, written(1200)), None, "sieving, sockets");
        assert_eq!(counters.missing(Direction::Write, 1000, written(0)), Some(1000));
        assert_eq!(counters.missing(Direction::Read, 1000, written(1000)), None, "reads were never counted");
        assert_eq!(KernelCounters::from_parts(counters.to_parts()), counters);
        counters.mark_incomplete();
        assert_eq!(counters.missing(Direction::Write, 1000, written(900)), None);
        assert_eq!(KernelCounters::from_parts(counters.to_parts()), counters);
    }
}
