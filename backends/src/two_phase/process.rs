//! Detects whether the process of another rank on this host still exists.

/// A process: its id, and its start time in ticks since boot (proc_pid_stat(5), field 22), because ids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: u64,
    pub(crate) start_ticks: u64,
}

impl ProcessIdentity {
    /// This process. If it is not visible in /proc, it never counts as ended.
    pub(crate) fn current() -> Self {
        Self::of(std::process::id()).unwrap_or(Self { pid: 0, start_ticks: 0 })
    }

    pub(crate) fn of(pid: u32) -> Option<Self> {
        let pid = u64::from(pid);
        start_ticks(pid).ok().flatten().map(|began| Self { pid, start_ticks: began })
    }

    /// True if it has ended, also as a zombie. False if /proc is not available.
    pub(crate) fn has_ended(&self) -> bool {
        self.pid != 0 && start_ticks(self.pid).is_ok_and(|began| began != Some(self.start_ticks))
    }
}

/// Start time of a process; None if it does not run.
fn start_ticks(pid: u64) -> std::io::Result<Option<u64>> {
    let text = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => text,
        // It may end during the read.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The name in parentheses may contain any character.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_whitespace();
    if matches!(fields.next(), Some("Z" | "X" | "x")) {
        return Ok(None);
    }
    // The next field is number 4.
    let ticks = fields.nth(22 - 4).and_then(|ticks| ticks.parse().ok());
    ticks.map(Some).ok_or_else(|| std::io::Error::other("/proc/PID/stat without a start time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_end_and_process_ids_are_reused() {
        let own = ProcessIdentity::current();
        assert!(own.start_ticks > 0 && !own.has_ended());
        assert!(
            ProcessIdentity { start_ticks: own.start_ticks + 1, ..own }.has_ended(),
            "another one with this number"
        );
        assert!(!ProcessIdentity { pid: 0, start_ticks: 0 }.has_ended(), "not known");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let life = ProcessIdentity::of(child.id()).unwrap();
        assert!(!life.has_ended());
        child.kill().unwrap();
        while !life.has_ended() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(life.has_ended());
    }
}
