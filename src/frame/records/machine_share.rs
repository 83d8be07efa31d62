//! What else the processors did while something was measured.

use serde::{Deserialize, Serialize};

/// CPU time while something was measured, and who had it: of the host that lost the largest share of it to others than the
/// ranks. Of a host the CPUs count on which its ranks may run. The kernel counts `steal`, `others` and `kernel` in ticks of
/// some 10 ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineShare {
    /// The host.
    pub host: String,
    /// CPUs of it on which its ranks may run.
    pub cpus: u64,
    /// How long it was watched: around the clock, a little longer than what was measured.
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
    /// Context switches of all ranks that waited for something.
    pub voluntary_switches: u64,
    /// Context switches of all ranks whose CPU was taken away.
    pub involuntary_switches: u64,
}
