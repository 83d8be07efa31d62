//! Our side as separate processes, like ranks: this program is started once per job and reads its task from standard input.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::sides::{prepare_ours, run_ours, JobDescription, RunSample};
use crate::BenchError;

#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerTask {
    pub work: JobDescription,
    pub path: PathBuf,
    /// Job number, from 0.
    pub job: u32,
}

const READY: &str = "ready";

/// Main function of a process: prepares, waits for the start line, runs, and prints its times.
pub fn run_worker() -> Result<(), BenchError> {
    let mut lines = std::io::stdin().lock().lines();
    let mut line = || lines.next().unwrap_or_else(|| Err(std::io::ErrorKind::UnexpectedEof.into()));
    let task: WorkerTask = serde_json::from_str(&line()?)?;
    if task.work.sessions {
        nix::unistd::setsid()?;
    }
    let (file, buffer) = prepare_ours(&task.work, &task.path, task.job)?;
    println!("{READY}");
    line()?;
    let sample = run_ours(&task.work, file, buffer)?;
    println!("{} {}", sample.transfer_seconds, sample.sync_seconds);
    Ok(())
}

struct WorkerProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl WorkerProcess {
    fn start(task: &WorkerTask) -> Result<Self, BenchError> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("a worker process without input")?;
        let output = BufReader::new(child.stdout.take().ok_or("a worker process without output")?);
        let mut worker = Self { child, input, output };
        writeln!(worker.input, "{}", serde_json::to_string(task)?)?;
        Ok(worker)
    }

    fn line(&mut self) -> Result<String, BenchError> {
        let mut text = String::new();
        self.output.read_line(&mut text)?;
        if text.is_empty() {
            return Err(format!("a worker process ended: {}", self.child.wait()?).into());
        }
        Ok(text.trim().to_owned())
    }

    fn times(&mut self) -> Result<RunSample, BenchError> {
        let text = self.line()?;
        let number =
            |word: Option<&str>| word.and_then(|w| w.parse::<f64>().ok()).ok_or("a worker process reported no time");
        let mut words = text.split_whitespace();
        let sample = RunSample {
            transfer_seconds: number(words.next())?,
            sync_seconds: number(words.next())?,
            ..RunSample::default()
        };
        self.child.wait()?;
        Ok(sample)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // Errors mean that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts all jobs together; the slowest counts, as in fio.
pub fn measure_ours(work: &JobDescription) -> Result<RunSample, BenchError> {
    let mut workers = Vec::new();
    for (path, job) in work.paths().into_iter().zip(0..) {
        let mut worker = WorkerProcess::start(&WorkerTask { work: work.clone(), path, job })?;
        if worker.line()? != READY {
            return Err("a worker process sent an unexpected line".into());
        }
        workers.push(worker);
    }
    for worker in &mut workers {
        writeln!(worker.input, "go")?;
    }
    let samples = workers.iter_mut().map(WorkerProcess::times).collect::<Result<Vec<_>, _>>()?;
    let all = |s: &&RunSample| s.transfer_seconds + s.sync_seconds;
    samples.iter().max_by(|a, b| all(a).total_cmp(&all(b))).copied().ok_or_else(|| "no job".into())
}
