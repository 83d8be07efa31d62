//! Starts the program under the launcher, with a time limit, and looks at what it left.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::patient::{self, own_sessions, patient};

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_beff-raw");
/// Settings of a short run: M_PART = 2 MiB.
pub const SHORT: [&str; 4] = ["-T", "1s", "--memory-per-process", "64M"];
/// Limit of a launch that takes seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The launcher of the MPI the program was built with.
#[derive(Debug)]
pub struct Launcher {
    /// Command with the arguments it always needs.
    pub words: Vec<String>,
    /// `mpich`, `openmpi` or `intel`.
    pub mpi: String,
}

/// From BEFF_MPIRUN and BEFF_MPI_NAME; without them from what the program says it was built with.
pub fn launcher() -> &'static Launcher {
    static LAUNCHER: OnceLock<Launcher> = OnceLock::new();
    LAUNCHER.get_or_init(|| {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mpi = std::env::var("BEFF_MPI_NAME").unwrap_or_else(|_| built_with());
        if let Ok(given) = std::env::var("BEFF_MPIRUN") {
            assert!(!given.trim().is_empty(), "BEFF_MPIRUN is empty: set it to the launcher of {mpi}, or unset it");
            return Launcher { words: words(&given), mpi };
        }
        let found = [format!("mpirun.{mpi}"), "mpirun".into()].into_iter().find(|name| is_command(name));
        let command = found.unwrap_or_else(|| {
            panic!("no launcher: neither mpirun.{mpi} nor mpirun is in PATH; set BEFF_MPIRUN, or use `make test`")
        });
        let more = if mpi == "openmpi" { " --oversubscribe --bind-to none" } else { "" };
        Launcher { words: words(&format!("{command}{more}")), mpi }
    })
}

fn built_with() -> String {
    let info = Command::new(PROGRAM).arg("info").output().expect("the program starts");
    let text = String::from_utf8_lossy(&info.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("built with")).unwrap_or_default();
    let names = [("Open MPI", "openmpi"), ("Intel", "intel"), ("MPICH", "mpich")];
    names.iter().find(|(long, _)| line.contains(long)).map_or_else(
        || panic!("`beff-raw info` names no known MPI ({line}): set BEFF_MPI_NAME and BEFF_MPIRUN"),
        |(_, short)| (*short).to_owned(),
    )
}

/// True if PATH has this command.
pub fn is_command(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// A test that cannot run here says so on a line of its own, which `make test` counts and shows.
pub fn skip(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// A directory on the disk of the build, removed at the end.
#[derive(Debug)]
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        let parent = env!("CARGO_TARGET_TMPDIR");
        Self(tempfile::Builder::new().prefix("beff-").tempdir_in(parent).expect("a directory in the target directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Names in the directory `path` below this one, sorted.
    pub fn list(&self, path: &str) -> Vec<String> {
        list(&self.path().join(path))
    }
}

/// Names in a directory, sorted.
pub fn list(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Where the contents of two files differ first. By blocks: tests are not optimized, and byte by byte 100 MB take seconds.
pub fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    const BLOCK_BYTES: usize = 1 << 20;
    let blocks = one.chunks(BLOCK_BYTES).zip(other.chunks(BLOCK_BYTES));
    let (number, (one, other)) = blocks.enumerate().find(|(_, (one, other))| one != other)?;
    Some(number * BLOCK_BYTES + one.iter().zip(other).position(|(a, b)| a != b).unwrap_or(one.len().min(other.len())))
}

/// What a finished launch left.
#[derive(Debug)]
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
    pub seconds: f64,
}

impl Run {
    /// Exit code; a signal counts as 128 + its number, as shells do.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Fails with everything the program said unless it ended with `code`.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code(), code, "exit code; {self}");
        self
    }

    /// Fails unless stderr holds all of `parts`.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Self {
        let flat = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(flat.contains(part), "no '{part}' on stderr; {self}");
        }
        self
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (status, seconds, out, err) = (self.status, self.seconds, &self.stdout, &self.stderr);
        let tail: Vec<&str> = out.lines().rev().take(25).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        write!(f, "{status} after {seconds:.1} s\n-- end of stdout:\n{}\n-- stderr:\n{err}", tail.join("\n"))
    }
}

/// A launch to be.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    limit: Duration,
}

impl Launch {
    /// Under the launcher with `ranks` ranks.
    pub fn new(ranks: u64) -> Self {
        let words: Vec<&str> = launcher().words.iter().map(String::as_str).collect();
        Self::under(&words, ranks)
    }

    /// Under this launcher.
    pub fn under(words: &[&str], ranks: u64) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("-n").arg(ranks.to_string()).arg(PROGRAM);
        Self::of(command)
    }

    /// Under the launcher, each rank through these words.
    pub fn through(words: &[&str], ranks: u64) -> Self {
        let mut launcher = launcher().words.iter();
        let mut command = Command::new(launcher.next().expect("a launcher"));
        command.args(launcher).arg("-n").arg(ranks.to_string()).args(words).arg(PROGRAM);
        Self::of(command)
    }

    /// Without a launcher.
    pub fn alone() -> Self {
        Self::of(Command::new(PROGRAM))
    }

    /// Any command that starts ranks.
    pub fn of(mut command: Command) -> Self {
        // Open MPI refuses root without these; containers of a build farm have nobody else.
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
            command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
        }
        patient(&mut command);
        Self { command, limit: LIMIT }
    }

    pub fn args<S: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub fn arg(self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.args([arg])
    }

    /// With this in the environment of the launcher and of the ranks.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Ended after so long.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Files below `scratch`, outputs beside them with the prefix `out`.
    pub fn into(self, scratch: &Scratch) -> Self {
        let disk = scratch.join("disk");
        fs::create_dir_all(&disk).expect("a directory for the files");
        self.arg("--path").arg(disk).arg("--out").arg(scratch.join("out"))
    }

    /// In this directory.
    pub fn inside(mut self, scratch: &Scratch) -> Self {
        self.command.current_dir(scratch.path());
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let logs = Scratch::new();
        own_sessions(&mut self.command, logs.path());
        let file = |name: &str| File::create(logs.join(name)).expect("a file for the output");
        self.command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr")).process_group(0);
        let begin = Instant::now();
        let child = self.command.spawn().unwrap_or_else(|e| panic!("{:?}: {e}", self.command));
        Running { child, logs, begin, limit: self.limit, ended: false }
    }

    /// Starts it and waits for its end.
    pub fn run(self) -> Run {
        self.start().wait()
    }
}

/// A launch under way. Dropped: ended, with all its processes.
#[derive(Debug)]
pub struct Running {
    child: Child,
    logs: Scratch,
    begin: Instant,
    limit: Duration,
    ended: bool,
}

impl Running {
    /// Process id of the launcher (of the program, without one).
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// True if the launcher has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child of ours").is_some()
    }

    /// The processes of the program below the launcher.
    pub fn ranks(&self) -> Vec<i32> {
        let name = Path::new(PROGRAM).file_name();
        let is_ours = |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.file_name() == name);
        descendants(self.pid()).into_iter().filter(is_ours).collect()
    }

    /// Waits until `condition` holds; fails at the time limit or when the launch ends before.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        while !condition() {
            assert!(
                !self.is_over() && self.begin.elapsed() < self.limit,
                "{what} did not come; stderr: {}",
                self.log("stderr")
            );
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait(mut self) -> Run {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            let left = self.begin.elapsed() < self.limit;
            assert!(left, "not finished after {:?}; stderr: {}", self.limit, self.log("stderr"));
            sleep(Duration::from_millis(10));
        };
        self.ended = true;
        let seconds = self.begin.elapsed().as_secs_f64();
        Run { stdout: self.log("stdout"), stderr: self.log("stderr"), status, seconds }
    }

    /// What it has printed so far on `stdout` or `stderr`.
    pub fn log(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.logs.join(name)).unwrap_or_default()).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            let mut pids = descendants(self.pid());
            pids.push(self.pid());
            for pid in pids {
                signal(pid, "KILL");
            }
            let _ = self.child.wait();
        }
    }
}

/// Children of `root`, their children, and so on.
fn descendants(root: i32) -> Vec<i32> {
    let processes = procfs::process::all_processes().expect("/proc");
    let parents: Vec<(i32, i32)> = processes.flatten().filter_map(|p| Some((p.pid, p.stat().ok()?.ppid))).collect();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

/// The launch on storage that is slow by this rule (`tests/planted/slow.c`).
pub fn slow_storage(launch: Launch, rule: &str) -> Launch {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| patient::library_of("slow", include_str!("../planted/slow.c")));
    let both = format!("{}:{}", patient::library().display(), library.display());
    launch.env("LD_PRELOAD", both).env("BEFF_SLOW", rule)
}

/// Sends a signal to one process that a test started.
pub fn signal(pid: i32, name: &str) {
    // The shell's own kill: no package is needed for it.
    let _ = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid} 2>/dev/null")).status();
}

/// The JSON document that a run left with `--out out`.
#[track_caller]
pub fn document(scratch: &Scratch) -> Value {
    read_json(&scratch.join("out.json"))
}

#[track_caller]
pub fn read_json(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The lines of the journal of one kind.
#[track_caller]
pub fn journal(scratch: &Scratch, kind: &str) -> Vec<Value> {
    let path = scratch.join("out.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["record"] == kind).collect()
}

/// The elements of an array.
#[track_caller]
pub fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not an array: {value}"))
}

/// True if transfers of this run with O_DIRECT are known to bypass the page cache.
pub fn proves_direct(result: &Value) -> bool {
    let basis = &result["manifest"]["storage"]["direct_align_basis"];
    ["statx", "trial-proven", "option-proven"].iter().any(|proven| basis == proven)
}

/// A whole number.
#[track_caller]
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a whole number: {value}"))
}

/// Mounts that a test made, undone at its end.
#[derive(Debug)]
pub struct Mount(PathBuf);

impl Mount {
    /// `mount ARGS DIR`; the reason if it cannot be made here.
    pub fn new(args: &[&str], dir: &Path) -> Result<Self, String> {
        fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        succeed(Command::new("mount").args(args).arg(dir))?;
        Ok(Self(dir.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        for _ in 0..50 {
            if succeed(Command::new("umount").arg(&self.0)).is_ok() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        println!("{} could not be unmounted", self.0.display());
    }
}

/// Runs a command of the system; its words if it fails.
pub fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    output.status.success().then_some(()).ok_or_else(|| format!("{command:?}: {text}"))
}
