//! Where the time of processors went: of a host by /proc/stat, of this process by getrusage(2) and /proc/self/schedstat.

use std::time::Duration;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::read_trimmed;

/// Times of some CPUs of a host since it started, ns. The kernel counts them in ticks, 100 in a second as a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTimes {
    /// Programs, those of low priority too (user, nice).
    pub user_ns: u64,
    /// The kernel, interrupts too (system, irq, softirq).
    pub kernel_ns: u64,
    /// A virtual CPU was ready, and the hypervisor ran something else (steal).
    pub steal_ns: u64,
    /// All of it, idle too.
    pub all_ns: u64,
}

impl HostTimes {
    /// What passed since `earlier`. Counters that ran backwards have not moved.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            kernel_ns: self.kernel_ns.saturating_sub(earlier.kernel_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
            all_ns: self.all_ns.saturating_sub(earlier.all_ns),
        }
    }

    /// Both together.
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

/// What this process got of its host so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTimes {
    /// In the program, all threads, ns.
    pub user_ns: u64,
    /// In the kernel on behalf of it, all threads, ns.
    pub kernel_ns: u64,
    /// Its main thread was ready and had no CPU, ns; None: the kernel does not tell.
    pub waited_ns: Option<u64>,
    /// It gave its CPU away to wait for something.
    pub voluntary_switches: u64,
    /// Its CPU was taken away.
    pub involuntary_switches: u64,
}

impl OwnTimes {
    /// What passed since `earlier`.
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

    /// Both together.
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

/// Times of these CPUs of this host; None where the kernel does not tell (sandboxes).
#[must_use]
pub fn host(cpus: &[u32]) -> Option<HostTimes> {
    of_cpus(&read_trimmed("/proc/stat")?, cpus, procfs::ticks_per_second())
}

fn of_cpus(stat: &str, cpus: &[u32], ticks_per_second: u64) -> Option<HostTimes> {
    let mut sum = None;
    for line in stat.lines().take_while(|line| line.starts_with("cpu")) {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next()?.strip_prefix("cpu")?.parse::<u32>();
        if number.is_ok_and(|number| cpus.contains(&number)) {
            // user nice system idle iowait irq softirq steal; guest times, which follow, are in user already.
            let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
            let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.try_into().ok()?;
            let ns = |ticks: u64| ticks * (1_000_000_000 / ticks_per_second.max(1));
            let one = HostTimes {
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
pub fn own() -> OwnTimes {
    let waited = read_trimmed("/proc/self/schedstat").and_then(|text| waited_ns(&text));
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return OwnTimes { waited_ns: waited, ..OwnTimes::default() };
    };
    let ns = |time: nix::sys::time::TimeVal| {
        let micros = u64::try_from(time.num_microseconds()).unwrap_or(0);
        u64::try_from(Duration::from_micros(micros).as_nanos()).unwrap_or(u64::MAX)
    };
    let count = |number: std::ffi::c_long| u64::try_from(number).unwrap_or(0);
    OwnTimes {
        user_ns: ns(usage.user_time()),
        kernel_ns: ns(usage.system_time()),
        waited_ns: waited,
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
    }
}

/// Second field of schedstat (Documentation/scheduler/sched-stats.rst): time spent ready on a run queue.
fn waited_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  10 20 30 40 50 60 70 80 9 9\ncpu0 1 2 3 4 5 6 7 8 1 1\ncpu2 10 20 30 40 50 60 70 80 0 0\nintr 1 2 3\n";

    #[test]
    fn only_the_cpus_asked_for_count_by_their_number() {
        let ms = |ticks: u64| ticks * 10_000_000;
        let first = HostTimes { user_ns: ms(3), kernel_ns: ms(16), steal_ns: ms(8), all_ns: ms(36) };
        assert_eq!(of_cpus(STAT, &[0, 1], 100), Some(first), "CPU 1 is off line");
        let both = HostTimes { user_ns: ms(33), kernel_ns: ms(176), steal_ns: ms(88), all_ns: ms(396) };
        assert_eq!(of_cpus(STAT, &[0, 2], 100), Some(both));
        assert_eq!(of_cpus(STAT, &[7], 100), None);
        assert_eq!(of_cpus("cpu0 1 2 3\n", &[0], 100), None, "too few columns");
        assert_eq!(of_cpus("", &[0], 100), None);
    }

    #[test]
    fn differences_and_sums() {
        let one = of_cpus(STAT, &[0], 100).unwrap();
        let two = of_cpus(STAT, &[2], 100).unwrap();
        assert_eq!(two.plus(one).since(two), one);
        assert_eq!(one.since(two), HostTimes::default());
        let own =
            OwnTimes { user_ns: 5, kernel_ns: 4, waited_ns: Some(3), voluntary_switches: 2, involuntary_switches: 1 };
        assert_eq!(own.plus(own).since(own), own);
        assert_eq!(own.since(OwnTimes::default()).waited_ns, None, "not known then, not known now");
    }

    #[test]
    fn the_time_ready_is_the_second_field() {
        assert_eq!(waited_ns("123 456 7"), Some(456));
        assert_eq!(waited_ns("123"), None);
    }

    #[test]
    fn this_machine_answers() {
        let before = own();
        let mut sum = 0_u64;
        while own().user_ns - before.user_ns < 20_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let all: Vec<u32> = (0..4096).collect();
        assert!(host(&all).is_some_and(|times| times.all_ns > times.user_ns));
    }
}
