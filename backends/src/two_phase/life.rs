//! Whether the process of another rank of this host still lives.

/// A process: its number, and when it began in ticks since the kernel did (proc_pid_stat(5), field 22), because numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) pid: u64,
    pub(crate) began: u64,
}

impl Life {
    /// This process. Where it cannot be seen in /proc, it is never found to be over.
    pub(crate) fn own() -> Self {
        Self::of(std::process::id()).unwrap_or(Self { pid: 0, began: 0 })
    }

    /// A process that lives.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let pid = u64::from(pid);
        began(pid).ok().flatten().map(|began| Self { pid, began })
    }

    /// True if it has ended, also if nobody has asked for its end (a zombie). False where /proc does not tell.
    pub(crate) fn is_over(&self) -> bool {
        self.pid != 0 && began(self.pid).is_ok_and(|began| began != Some(self.began))
    }
}

/// When the process of this number began; None: there is none that lives.
fn began(pid: u64) -> std::io::Result<Option<u64>> {
    let text = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => text,
        // It may go while it is read.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The name in parentheses may hold anything.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_whitespace();
    if matches!(fields.next(), Some("Z" | "X" | "x")) {
        return Ok(None);
    }
    // Field 4 is the next one.
    let ticks = fields.nth(22 - 4).and_then(|ticks| ticks.parse().ok());
    ticks.map(Some).ok_or_else(|| std::io::Error::other("/proc/PID/stat without a start time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_end_and_numbers_come_again() {
        let own = Life::own();
        assert!(own.began > 0 && !own.is_over());
        assert!(Life { began: own.began + 1, ..own }.is_over(), "another one with this number");
        assert!(!Life { pid: 0, began: 0 }.is_over(), "not known");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let life = Life::of(child.id()).unwrap();
        assert!(!life.is_over());
        child.kill().unwrap();
        while !life.is_over() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(life.is_over());
    }
}
