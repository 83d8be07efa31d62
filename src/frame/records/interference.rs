//! Interference: CPU time that the ranks did not get during a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU time during a measurement by consumer, on the host with the largest share of interference. Only CPUs on which the host's ranks
/// may run are counted. The kernel counts steal time, other processes and `kernel` in ticks of some 10 ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterferenceRecord {
    /// Host with the largest share of interference.
    pub host: String,
    /// CPUs of this host on which its ranks may run.
    pub cpus: u64,
    /// Time between the two readings, maximum over the ranks: slightly longer than the measurement.
    pub observed_seconds: f64,
    /// CPU time on these CPUs, including idle time; 0 if the kernel does not report it.
    pub cpu_seconds: f64,
    /// Part of it that is steal time (CPU time the hypervisor gave to other machines).
    pub steal_seconds: f64,
    /// Part of it used by other processes in user mode.
    pub other_process_seconds: f64,
    /// Part of it used by the kernel and not charged to a rank: write-back, interrupts, system calls of other processes.
    pub kernel_seconds: f64,
    /// Run-queue wait: longest time in which a rank (of any host) was runnable without a CPU; None if the kernel does not report it.
    pub run_queue_wait_seconds: Option<f64>,
    /// Voluntary context switches of all ranks.
    pub voluntary_switches: u64,
    /// Involuntary context switches (preemptions) of all ranks.
    pub involuntary_switches: u64,
}

impl InterferenceRecord {
    /// Adds a later interval of the same measurement. If its host differs, the host with the larger share represents both.
    pub fn add(&mut self, more: Self) {
        let lost = |s: &Self| s.steal_seconds + s.other_process_seconds;
        let larger = lost(&more) * self.cpu_seconds > lost(self) * more.cpu_seconds;
        if more.host != self.host && larger {
            (self.host, self.cpus) = (more.host, more.cpus);
        }
        self.observed_seconds += more.observed_seconds;
        self.cpu_seconds += more.cpu_seconds;
        self.steal_seconds += more.steal_seconds;
        self.other_process_seconds += more.other_process_seconds;
        self.kernel_seconds += more.kernel_seconds;
        self.run_queue_wait_seconds = self.run_queue_wait_seconds.zip(more.run_queue_wait_seconds).map(|(a, b)| a + b);
        self.voluntary_switches += more.voluntary_switches;
        self.involuntary_switches += more.involuntary_switches;
    }
}

#[cfg(test)]
mod tests {
    use crate::frame::records::fixture::interference;
    use crate::frame::records::InterferenceRecord;

    #[test]
    fn later_intervals_add_up() {
        let mut sum = interference(1.0);
        sum.add(InterferenceRecord { host: "node2".into(), cpus: 4, ..interference(2.0) });
        assert_eq!((sum.host.as_str(), sum.cpus), ("node2", 4), "larger share");
        assert_eq!(
            (sum.observed_seconds, sum.cpu_seconds, sum.steal_seconds, sum.other_process_seconds),
            (20.0, 40.0, 3.0, 0.5)
        );
        assert_eq!((sum.kernel_seconds, sum.run_queue_wait_seconds), (1.0, Some(0.25)));
        assert_eq!((sum.voluntary_switches, sum.involuntary_switches), (2400, 68));
        sum.add(InterferenceRecord { host: "node3".into(), run_queue_wait_seconds: None, ..interference(0.0) });
        assert_eq!((sum.host.as_str(), sum.run_queue_wait_seconds), ("node2", None));
    }
}
