//! Output of external commands, with a time limit: a command may wait for a server that does not answer.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest output that is read.
const MAX_OUTPUT_BYTES: u64 = 4 << 20;
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Directories with commands of administrators, which are not in every PATH.
const MORE_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/lpp/mmfs/bin"];

/// Standard output of a command that succeeds within `timeout`. A command that does not is killed, and not waited for: it may be in an
/// uninterruptible call of the kernel.
///
/// # Errors
/// Why there is no output, as the end of a sentence that begins with the command.
pub fn output_of(words: &[&str], timeout: Duration) -> Result<String, String> {
    let begin = Instant::now();
    let mut child = spawn(words).map_err(|error| format!("cannot be run: {error}"))?;
    let output = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    // A descendant of the command may hold the pipe open, so the reader is not joined.
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = output.map(|output| output.take(MAX_OUTPUT_BYTES).read_to_end(&mut text));
        let _ = sender.send(text);
    });
    let late = || format!("did not answer in {} s", timeout.as_secs_f64());
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begin.elapsed() < timeout => thread::sleep(POLL_INTERVAL),
            Ok(None) => {
                let _ = child.kill();
                thread::spawn(move || drop(child.wait()));
                return Err(late());
            }
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    };
    if !status.success() {
        return Err(format!("failed: {status}"));
    }
    let left = timeout.saturating_sub(begin.elapsed()).max(POLL_INTERVAL);
    let text = receiver.recv_timeout(left).map_err(|_| late())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn spawn(words: &[&str]) -> io::Result<Child> {
    let (name, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let start = |program: &str| {
        let mut command = Command::new(program);
        // Numbers and words are parsed.
        command.args(arguments).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    };
    let elsewhere = MORE_DIRECTORIES.iter().map(|directory| format!("{directory}/{name}"));
    match start(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !name.contains('/') => {
            elsewhere.into_iter().find_map(|program| start(&program).ok()).ok_or(error)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout_ms: u64) -> (Result<String, String>, Duration) {
        let begin = Instant::now();
        (output_of(&["sh", "-c", script], Duration::from_millis(timeout_ms)), begin.elapsed())
    }

    #[test]
    fn what_succeeds_in_time_has_an_output() {
        assert_eq!(shell("echo a; echo b >&2; cat", 5000).0, Ok("a\n".into()), "without standard input");
        assert_eq!(shell("yes | head -c 1000000", 5000).0.unwrap().len(), 1_000_000, "more than a pipe holds");
        assert_eq!(shell("exit 3", 5000).0, Err("failed: exit status: 3".into()));
        assert!(output_of(&["beff-no-such-command"], Duration::from_secs(5)).unwrap_err().contains("cannot be run"));
        assert!(output_of(&[], Duration::from_secs(5)).is_err());
    }

    /// Not even if it ignores signals, or leaves a process behind that holds its output.
    #[test]
    fn no_command_is_waited_for_beyond_its_time() {
        for script in ["exec sleep 20", "trap '' TERM INT; sleep 20", "sleep 20 & echo over"] {
            let (output, spent) = shell(script, 200);
            assert_eq!(output, Err("did not answer in 0.2 s".into()), "{script}");
            assert!(spent < Duration::from_secs(10), "{script}: {spent:?}");
        }
        let (output, spent) = shell("exec yes", 15_000);
        assert!(output.is_err() && spent < Duration::from_secs(15), "more than is read: {output:?}");
    }
}
