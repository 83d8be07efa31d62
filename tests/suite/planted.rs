//! Launches under planted time, and what their calls took by it: see `tests/planted/planted.c`.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::patient;
use crate::support::{document, Launch, Run, Scratch};

const SOURCE: &str = include_str!("../planted/planted.c");
/// A launch takes a second or two; planted time does not pass while it hangs.
const LIMIT: Duration = Duration::from_secs(120);
/// The step of the planted clock is 10 ns, and an interval has some readings of it: so much may recorded times be off.
pub const STEP_SECONDS: f64 = 5e-6;

/// One call of the program, or of messages some that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub function: String,
    pub calls: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Handle of the file, or its descriptor; 0 for what has none.
    pub file: i64,
    /// Elements, bytes, or the displacement of a view.
    pub count: u64,
    /// Name of a file that was opened.
    pub name: Option<String>,
}

impl Call {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.splitn(9, ' ').collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap_or_else(|e| panic!("{line}: {e}"));
        let failed = number(7) != 0;
        // The only calls that may fail are those that look whether a file can be opened.
        assert!(!failed || words[0] == "openat", "a call of MPI failed: {line}");
        (!failed).then(|| Self {
            function: words[0].to_owned(),
            calls: number(2) as u64,
            begin_ns: number(3) as u64,
            end_ns: number(4) as u64,
            file: number(5),
            count: number(6) as u64,
            name: words.get(8).map(|name| (*name).to_owned()),
        })
    }

    pub fn is(&self, function: &str) -> bool {
        self.function == function
    }

    /// By its name, a call of MPI-IO or of the kernel that moves data (the first half of a split one does not count).
    pub fn moves(&self) -> bool {
        let of_file = self.function.strip_prefix("MPI_File_").map_or_else(
            || matches!(self.function.as_str(), "pwrite64" | "pread64"),
            |rest| ["write", "read", "iwrite", "iread"].iter().any(|verb| rest.starts_with(verb)),
        );
        of_file && !self.function.ends_with("_end")
    }

    pub fn writes(&self) -> bool {
        self.moves() && self.function.contains("write")
    }

    /// What it was planted to take.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 * 1e-9
    }
}

/// Sum over calls.
pub fn seconds<'a>(calls: impl IntoIterator<Item = &'a Call>) -> f64 {
    calls.into_iter().map(Call::seconds).sum()
}

/// From an open to the close of the same file: all calls of the rank between them.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    pub path: &'a str,
    pub open: &'a Call,
    /// Of all files, and those that have none.
    pub calls: &'a [Call],
    pub close: &'a Call,
}

impl<'a> Session<'a> {
    /// The calls on its file.
    pub fn own(&self) -> impl Iterator<Item = &'a Call> + use<'a> {
        let file = self.open.file;
        self.calls.iter().filter(move |call| call.file == file)
    }

    pub fn moves(&self) -> impl Iterator<Item = &'a Call> + use<'a> {
        self.own().filter(|call| call.moves())
    }
}

/// A run under planted time.
#[derive(Debug)]
pub struct Planted {
    pub run: Run,
    pub result: Value,
    /// By rank.
    pub ranks: Vec<Vec<Call>>,
    /// Files of the run, kept until the test has ended.
    _scratch: Scratch,
}

impl Planted {
    /// The program with these arguments and outputs; `rules` as in `planted.c`.
    #[track_caller]
    pub fn run(ranks: u64, rules: &[&str], args: &[&str]) -> Self {
        Self::launch(ranks, rules, |launch, scratch| launch.args(args).into(scratch))
    }

    /// With arguments that depend on the place of the outputs.
    #[track_caller]
    pub fn launch(ranks: u64, rules: &[&str], arguments: impl FnOnce(Launch, &Scratch) -> Launch) -> Self {
        static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| patient::library_of("planted", SOURCE));
        let scratch = Scratch::new();
        let logs = scratch.join("log");
        fs::create_dir(&logs).expect("a directory for the logs");
        let both = format!("{}:{}", patient::library().display(), library.display());
        let launch = Launch::new(ranks).env("LD_PRELOAD", both).env("BEFF_PLANTED", rules.join(" "));
        let launch = launch.env("BEFF_PLANTED_LOG", &logs).within(LIMIT);
        let run = arguments(launch, &scratch).run();
        run.expect(0);
        println!("{:.1} s", run.seconds);
        let read = |rank| {
            let path = logs.join(format!("rank-{rank}.log"));
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            text.lines().filter_map(Call::read).collect()
        };
        Self { result: document(&scratch), ranks: (0..ranks).map(read).collect(), run, _scratch: scratch }
    }

    /// True if the cycle counter is planted too: asked for, and possible on this machine.
    pub fn has_cycles(&self) -> bool {
        self.ranks.iter().all(|calls| calls.iter().any(|call| call.is("cycles") && call.count == 1))
    }

    /// The sessions of a rank with files whose names contain `name`.
    pub fn sessions(&self, rank: usize, name: &str) -> Vec<Session<'_>> {
        let calls = &self.ranks[rank];
        let mut sessions = Vec::new();
        for (at, open) in calls.iter().enumerate() {
            let Some(path) = open.name.as_deref().filter(|path| path.contains(name)) else { continue };
            let close = if open.is("openat") { "close" } else { "MPI_File_close" };
            let end = calls[at..].iter().position(|call| call.is(close) && call.file == open.file);
            let end = at + end.unwrap_or_else(|| panic!("rank {rank} never closes {path}"));
            sessions.push(Session { path, open, calls: &calls[at + 1..end], close: &calls[end] });
        }
        sessions
    }
}

/// Fails unless a recorded time is what the calls took.
#[track_caller]
pub fn same(recorded: &Value, planted: f64, what: &str) {
    let recorded = recorded.as_f64().unwrap_or_else(|| panic!("{what}: no number: {recorded}"));
    assert!((recorded - planted).abs() < STEP_SECONDS, "{what}: recorded {recorded} s, planted {planted} s");
}

/// The index of the largest value.
pub fn largest(values: &[f64]) -> usize {
    (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).expect("a rank")
}
