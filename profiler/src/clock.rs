//! Clock of the recording: the processor's cycle counter if it is invariant, else CLOCK_MONOTONIC.

use std::sync::atomic::{AtomicBool, Ordering};

use beff_trace::raw::clock::ClockSample;

static USES_COUNTER: AtomicBool = AtomicBool::new(false);

/// CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Unix time in ns.
pub fn unix_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the time is a local variable.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 has the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    monotonic_ns()
}

/// Current time in ticks.
#[inline(always)]
pub fn ticks() -> u64 {
    if USES_COUNTER.load(Ordering::Relaxed) {
        counter()
    } else {
        monotonic_ns()
    }
}

/// Chooses the clock, once, before the first reading.
pub fn choose_clock() {
    let even = cfg!(target_arch = "x86_64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
            let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
            let has = |flag| flags.split_whitespace().any(|word| word == flag);
            has("constant_tsc") && has("nonstop_tsc")
        })
        // The kernel uses one of these if it has found the counters of the processors to differ.
        && !std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|source| ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"].contains(&source.trim()));
    USES_COUNTER.store(even, Ordering::Relaxed);
}

/// A tick and its time. The closest of several pairs, because the thread may be preempted in between.
pub fn sample_clock() -> ClockSample {
    let mut best = (u64::MAX, ClockSample::default());
    for _ in 0..8 {
        let before = ticks();
        let ns = monotonic_ns();
        let between = ticks().saturating_sub(before);
        if between < best.0 {
            best = (between, ClockSample { tick: before + between / 2, ns });
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use beff_trace::raw::clock::TickConversion;

    #[test]
    fn ticks_become_the_time_of_the_host() {
        choose_clock();
        let from = sample_clock();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let tick = ticks();
        let at_ns = monotonic_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let clock = TickConversion::new(from, sample_clock());
        assert!(clock.ns(tick).abs_diff(at_ns) < 1_000_000, "{} {at_ns}", clock.ns(tick));
        assert!(clock.ns(from.tick) == from.ns && clock.ns(tick) > from.ns + 19_000_000);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        assert!(unix_ns().abs_diff(now) < 60_000_000_000);
    }
}
