//! Our side as processes, as ranks are: this program started again, once for each job, told what to do on its standard input.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::sides::{prepare_ours, run_ours, Sample, Work};
use crate::Failure;

/// What one process does.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    pub work: Work,
    pub path: PathBuf,
    /// Its number, from 0.
    pub job: u32,
}

const READY: &str = "ready";

/// The side of the process: prepares, waits for a word, works, tells its times.
pub fn work() -> Result<(), Failure> {
    let mut lines = std::io::stdin().lock().lines();
    let mut line = || lines.next().unwrap_or_else(|| Err(std::io::ErrorKind::UnexpectedEof.into()));
    let task: Task = serde_json::from_str(&line()?)?;
    if task.work.sessions {
        nix::unistd::setsid()?;
    }
    let (file, ring) = prepare_ours(&task.work, &task.path, task.job)?;
    println!("{READY}");
    line()?;
    let sample = run_ours(&task.work, file, ring)?;
    println!("{} {}", sample.transfer_seconds, sample.sync_seconds);
    Ok(())
}

/// A process that was started.
struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(task: &Task) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("a process without input")?;
        let output = BufReader::new(child.stdout.take().ok_or("a process without output")?);
        let mut worker = Self { child, input, output };
        writeln!(worker.input, "{}", serde_json::to_string(task)?)?;
        Ok(worker)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut text = String::new();
        self.output.read_line(&mut text)?;
        if text.is_empty() {
            return Err(format!("a process of ours ended: {}", self.child.wait()?).into());
        }
        Ok(text.trim().to_owned())
    }

    fn times(&mut self) -> Result<Sample, Failure> {
        let text = self.line()?;
        let number = |word: Option<&str>| word.and_then(|w| w.parse::<f64>().ok()).ok_or("a process told no time");
        let mut words = text.split_whitespace();
        let sample = Sample {
            transfer_seconds: number(words.next())?,
            sync_seconds: number(words.next())?,
            ..Sample::default()
        };
        self.child.wait()?;
        Ok(sample)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Where it has ended there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All jobs from one moment on: the slowest counts, as in fio.
pub fn ours(work: &Work) -> Result<Sample, Failure> {
    let mut workers = Vec::new();
    for (path, job) in work.paths().into_iter().zip(0..) {
        let mut worker = Worker::start(&Task { work: work.clone(), path, job })?;
        if worker.line()? != READY {
            return Err("a process of ours said something else".into());
        }
        workers.push(worker);
    }
    for worker in &mut workers {
        writeln!(worker.input, "go")?;
    }
    let samples = workers.iter_mut().map(Worker::times).collect::<Result<Vec<_>, _>>()?;
    let all = |s: &&Sample| s.transfer_seconds + s.sync_seconds;
    samples.iter().max_by(|a, b| all(a).total_cmp(&all(b))).copied().ok_or_else(|| "no job".into())
}
