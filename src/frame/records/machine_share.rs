//! What else the processors did while something was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU time while something was measured, and who had it: of the host that lost the largest share of it to others than the
/// ranks. Of a host the CPUs count on which its ranks may run. The kernel counts `steal`, `others` and `kernel` in ticks of
/// some 10 ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineShare {
    /// The host that lost the largest share to others than its ranks.
    pub host: String,
    /// CPUs of it on which its ranks may run.
    pub cpus: u64,
    /// Between the two looks, longest rank: a little longer than what was measured.
    pub watched_seconds: f64,
    /// CPU time that passed on these CPUs, idle too; 0: the kernel does not tell.
    pub cpu_seconds: f64,
    /// Of it, taken by the hypervisor for other machines.
    pub steal_seconds: f64,
    /// Of it, used by programs that are no ranks, without their calls into the kernel.
    pub others_seconds: f64,
    /// Of it, used by the kernel and not charged to a rank: writing pages back, interrupts, calls of other programs.
    pub kernel_seconds: f64,
    /// Longest time of a rank (of all hosts) in which it was ready and had no CPU; None: the kernel does not tell.
    pub waited_seconds: Option<f64>,
    /// Context switches of all ranks, to wait for something.
    pub voluntary_switches: u64,
    /// Context switches of all ranks, because the CPU was taken away.
    pub involuntary_switches: u64,
}

impl MachineShare {
    /// Takes in what was seen while more of the same was measured. If the host that lost most is another one then, the one
    /// that lost the larger share stands for both.
    pub fn add(&mut self, more: Self) {
        let lost = |s: &Self| s.steal_seconds + s.others_seconds;
        let larger = lost(&more) * self.cpu_seconds > lost(self) * more.cpu_seconds;
        if more.host != self.host && larger {
            (self.host, self.cpus) = (more.host, more.cpus);
        }
        self.watched_seconds += more.watched_seconds;
        self.cpu_seconds += more.cpu_seconds;
        self.steal_seconds += more.steal_seconds;
        self.others_seconds += more.others_seconds;
        self.kernel_seconds += more.kernel_seconds;
        self.waited_seconds = self.waited_seconds.zip(more.waited_seconds).map(|(a, b)| a + b);
        self.voluntary_switches += more.voluntary_switches;
        self.involuntary_switches += more.involuntary_switches;
    }
}

#[cfg(test)]
mod tests {
    use crate::frame::records::fixture::machine_share;
    use crate::frame::records::MachineShare;

    #[test]
    fn what_was_seen_later_adds_up() {
        let mut sum = machine_share(1.0);
        sum.add(MachineShare { host: "node2".into(), cpus: 4, ..machine_share(2.0) });
        assert_eq!((sum.host.as_str(), sum.cpus), ("node2", 4), "it lost more");
        assert_eq!(
            (sum.watched_seconds, sum.cpu_seconds, sum.steal_seconds, sum.others_seconds),
            (20.0, 40.0, 3.0, 0.5)
        );
        assert_eq!((sum.kernel_seconds, sum.waited_seconds), (1.0, Some(0.25)));
        assert_eq!((sum.voluntary_switches, sum.involuntary_switches), (2400, 68));
        sum.add(MachineShare { host: "node3".into(), waited_seconds: None, ..machine_share(0.0) });
        assert_eq!((sum.host.as_str(), sum.waited_seconds), ("node2", None));
    }
}
