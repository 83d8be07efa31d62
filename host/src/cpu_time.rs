//! CPU time of a host (/proc/stat) and of this process (getrusage(2), /proc/self/schedstat).

use std::time::Duration;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::read_trimmed;

/// Times of some CPUs of a host since boot, ns. The kernel counts ticks, usually 100 per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCpuTimes {
    /// User mode, including low priority (user, nice).
    pub user_ns: u64,
    /// Kernel mode, including interrupts (system, irq, softirq).
    pub kernel_ns: u64,
    /// Runnable virtual CPU while the hypervisor ran something else (steal).
    pub steal_ns: u64,
    /// Total, including idle time.
    pub all_ns: u64,
}

impl HostCpuTimes {
    /// Difference to `earlier`. Counters that decreased give 0.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            kernel_ns: self.kernel_ns.saturating_sub(earlier.kernel_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
            all_ns: self.all_ns.saturating_sub(earlier.all_ns),
        }
    }

    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            kernel_ns: self.kernel_ns + other.kernel_ns,
            steal_ns: self.steal_ns + other.steal_ns,
            all_ns: self.all_ns + other.all_ns,
        }
    }
}

/// CPU times and context switches of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpuTimes {
    /// User mode, all threads, ns.
    pub user_ns: u64,
    /// Kernel mode, all threads, ns.
    pub kernel_ns: u64,
    /// Run-queue wait of the main thread, ns; None if unknown.
    pub waited_ns: Option<u64>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl ProcessCpuTimes {
    /// Difference to `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            kernel_ns: self.kernel_ns.saturating_sub(earlier.kernel_ns),
            waited_ns: self.waited_ns.zip(earlier.waited_ns).map(|(now, then)| now.saturating_sub(then)),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }

    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            kernel_ns: self.kernel_ns + other.kernel_ns,
            waited_ns: self.waited_ns.zip(other.waited_ns).map(|(a, b)| a + b),
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }
}

/// Times of these CPUs of this host; None if /proc/stat is not available (sandboxes).
#[must_use]
pub fn host_cpu_times(cpus: &[u32]) -> Option<HostCpuTimes> {
    sum_cpu_times(&read_trimmed("/proc/stat")?, cpus, procfs::ticks_per_second())
}

fn sum_cpu_times(stat: &str, cpus: &[u32], ticks_per_second: u64) -> Option<HostCpuTimes> {
    let mut sum = None;
    for line in stat.lines().take_while(|line| line.starts_with("cpu")) {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next()?.strip_prefix("cpu")?.parse::<u32>();
        if number.is_ok_and(|number| cpus.contains(&number)) {
            // user nice system idle iowait irq softirq steal; the guest times that follow are included in user.
            let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
            let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.try_into().ok()?;
            let ns = |ticks: u64| ticks * (1_000_000_000 / ticks_per_second.max(1));
            let one = HostCpuTimes {
                user_ns: ns(user + nice),
                kernel_ns: ns(system + irq + softirq),
                steal_ns: ns(steal),
                all_ns: ns(user + nice + system + idle + iowait + irq + softirq + steal),
            };
            sum = Some(one.plus(sum.unwrap_or_default()));
        }
    }
    sum
}

/// Times of this process.
#[must_use]
pub fn process_cpu_times() -> ProcessCpuTimes {
    let waited = read_trimmed("/proc/self/schedstat").and_then(|text| run_queue_wait_ns(&text));
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return ProcessCpuTimes { waited_ns: waited, ..ProcessCpuTimes::default() };
    };
    let ns = |time: nix::sys::time::TimeVal| {
        let micros = u64::try_from(time.num_microseconds()).unwrap_or(0);
        u64::try_from(Duration::from_micros(micros).as_nanos()).unwrap_or(u64::MAX)
    };
    let count = |number: std::ffi::c_long| u64::try_from(number).unwrap_or(0);
    ProcessCpuTimes {
        user_ns: ns(usage.user_time()),
        kernel_ns: ns(usage.system_time()),
        waited_ns: waited,
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
    }
}

/// Second field of schedstat (Documentation/scheduler/sched-stats.rst): time on a run queue.
fn run_queue_wait_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  10 20 30 40 50 60 70 80 9 9\ncpu0 1 2 3 4 5 6 7 8 1 1\ncpu2 10 20 30 40 50 60 70 80 0 0\nintr 1 2 3\n";

    #[test]
    fn only_requested_cpus_count_by_their_number() {
        let ms = |ticks: u64| ticks * 10_000_000;
        let first = HostCpuTimes { user_ns: ms(3), kernel_ns: ms(16), steal_ns: ms(8), all_ns: ms(36) };
        assert_eq!(sum_cpu_times(STAT, &[0, 1], 100), Some(first), "CPU 1 is off line");
        let both = HostCpuTimes { user_ns: ms(33), kernel_ns: ms(176), steal_ns: ms(88), all_ns: ms(396) };
        assert_eq!(sum_cpu_times(STAT, &[0, 2], 100), Some(both));
        assert_eq!(sum_cpu_times(STAT, &[7], 100), None);
        assert_eq!(sum_cpu_times("cpu0 1 2 3\n", &[0], 100), None, "too few columns");
        assert_eq!(sum_cpu_times("", &[0], 100), None);
    }

    #[test]
    fn differences_and_sums() {
        let one = sum_cpu_times(STAT, &[0], 100).unwrap();
        let two = sum_cpu_times(STAT, &[2], 100).unwrap();
        assert_eq!(two.plus(one).since(two), one);
        assert_eq!(one.since(two), HostCpuTimes::default());
        let own = ProcessCpuTimes {
            user_ns: 5,
            kernel_ns: 4,
            waited_ns: Some(3),
            voluntary_switches: 2,
            involuntary_switches: 1,
        };
        assert_eq!(own.plus(own).since(own), own);
        assert_eq!(own.since(ProcessCpuTimes::default()).waited_ns, None, "unknown before, unknown now");
    }

    #[test]
    fn run_queue_wait_is_the_second_field() {
        assert_eq!(run_queue_wait_ns("123 456 7"), Some(456));
        assert_eq!(run_queue_wait_ns("123"), None);
    }

    #[test]
    fn this_host_has_cpu_times() {
        let before = process_cpu_times();
        let mut sum = 0_u64;
        while process_cpu_times().user_ns - before.user_ns < 20_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let all: Vec<u32> = (0..4096).collect();
        assert!(host_cpu_times(&all).is_some_and(|times| times.all_ns > times.user_ns));
    }
}
