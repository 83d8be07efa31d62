//! Interference: CPU use of other processes.

use std::time::{Duration, Instant};

/// Sampling interval of the CPU use.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(300);

/// CPU times since boot, in clock ticks.
#[derive(Clone, Copy, Debug)]
pub struct CpuTicks {
    total: u64,
    /// All CPUs not idle, including steal time.
    busy: u64,
    /// This process and its terminated children.
    own: u64,
    processors: u64,
}

impl CpuTicks {
    /// Reads the current values; None if /proc does not provide them.
    pub fn now() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let values = text.lines().next()?.split_whitespace().skip(1).map(str::parse);
        // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)); guest time is contained in user.
        let values: Vec<u64> = values.take(8).collect::<Result<_, _>>().ok()?;
        let all = values.iter().sum();
        let idle = values.get(3)? + values.get(4)?;
        let own = procfs::process::Process::myself().ok()?.stat().ok()?;
        let children = u64::try_from(own.cutime + own.cstime).ok()?;
        let processors = text.lines().filter(|line| line.starts_with("cpu")).count() as u64 - 1;
        Some(Self { total: all, busy: all - idle, own: own.utime + own.stime + children, processors })
    }

    /// Average number of CPUs used by other processes since `before`; includes kernel threads.
    pub fn other_cpus_since(&self, before: &Self) -> f64 {
        let all = (self.total - before.total).max(1) as f64 / self.processors.max(1) as f64;
        let others = (self.busy - before.busy).saturating_sub(self.own - before.own);
        others as f64 / all
    }
}

/// Waits until other processes use less than `most` CPUs, or until the patience is exhausted.
pub fn wait_until_idle(most: f64, patience: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        let before = CpuTicks::now();
        std::thread::sleep(SAMPLE_INTERVAL);
        match before.zip(CpuTicks::now()) {
            Some((before, after)) if after.other_cpus_since(&before) > most => {}
            _ => return,
        }
    }
}
