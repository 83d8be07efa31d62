//! Who else uses the processors.

use std::time::{Duration, Instant};

/// How long the processors are looked at.
const LOOK: Duration = Duration::from_millis(300);

/// Ticks of the processors since the start of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// When.
    all: u64,
    /// All processors at work, for whomever; stolen by other machines included.
    busy: u64,
    /// This program and its children that have ended.
    own: u64,
    processors: u64,
}

impl Ticks {
    /// Now; None where /proc does not tell.
    pub fn now() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let values = text.lines().next()?.split_whitespace().skip(1).map(str::parse);
        // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)); guests are in user already.
        let values: Vec<u64> = values.take(8).collect::<Result<_, _>>().ok()?;
        let all = values.iter().sum();
        let idle = values.get(3)? + values.get(4)?;
        let own = procfs::process::Process::myself().ok()?.stat().ok()?;
        let children = u64::try_from(own.cutime + own.cstime).ok()?;
        let processors = text.lines().filter(|line| line.starts_with("cpu")).count() as u64 - 1;
        Some(Self { all, busy: all - idle, own: own.utime + own.stime + children, processors })
    }

    /// Processors that others kept busy since then, on average: 0 is nobody. The kernel's own threads count as others.
    pub fn others_since(&self, before: &Self) -> f64 {
        let all = (self.all - before.all).max(1) as f64 / self.processors.max(1) as f64;
        let others = (self.busy - before.busy).saturating_sub(self.own - before.own);
        others as f64 / all
    }
}

/// Waits until others keep less than `most` processors busy, or the patience is at an end.
pub fn wait_for_quiet(most: f64, patience: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        let before = Ticks::now();
        std::thread::sleep(LOOK);
        match before.zip(Ticks::now()) {
            Some((before, after)) if after.others_since(&before) > most => {}
            _ => return,
        }
    }
}
