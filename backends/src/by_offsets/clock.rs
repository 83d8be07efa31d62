//! The clock of outcomes.

/// CLOCK_MONOTONIC in ns.
#[inline]
pub(super) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writable memory of one struct timespec. The call cannot fail: the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // Time since the start of the host, never negative.
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}
