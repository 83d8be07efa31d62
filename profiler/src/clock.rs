//! The clock of the recording: the counter of the processor where it runs evenly and through sleep, else CLOCK_MONOTONIC.

use std::sync::atomic::{AtomicBool, Ordering};

use beff_trace::raw::clock::Moment;

static COUNTER: AtomicBool = AtomicBool::new(false);

/// CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Unix time in ns.
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the time is ours.
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

/// Now, in ticks.
#[inline(always)]
pub fn ticks() -> u64 {
    if COUNTER.load(Ordering::Relaxed) {
        counter()
    } else {
        monotonic_ns()
    }
}

/// Chooses the clock, once, before the first tick.
pub fn choose() {
    let even = cfg!(target_arch = "x86_64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
            let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
            let has = |flag| flags.split_whitespace().any(|word| word == flag);
            has("constant_tsc") && has("nonstop_tsc")
        })
        // A kernel that has found the counters of its processors to differ uses one of these.
        && !std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|source| ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"].contains(&source.trim()));
    COUNTER.store(even, Ordering::Relaxed);
}

/// A tick and its time. The tightest of some pairs: a processor may be taken away in between.
pub fn moment() -> Moment {
    let mut best = (u64::MAX, Moment::default());
    for _ in 0..8 {
        let before = ticks();
        let ns = monotonic_ns();
        let between = ticks().saturating_sub(before);
        if between < best.0 {
            best = (between, Moment { tick: before + between / 2, ns });
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use beff_trace::raw::clock::Clock;

    #[test]
    fn ticks_become_the_time_of_the_host() {
        choose();
        let from = moment();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let tick = ticks();
        let at_ns = monotonic_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let clock = Clock::new(from, moment());
        assert!(clock.ns(tick).abs_diff(at_ns) < 1_000_000, "{} {at_ns}", clock.ns(tick));
        assert!(clock.ns(from.tick) == from.ns && clock.ns(tick) > from.ns + 19_000_000);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        assert!(unix_ns().abs_diff(now) < 60_000_000_000);
    }
}
