//! Compiles the programs of tests/profile, runs them with and without the profiler, and prints recorded calls in their format.
#![allow(dead_code)] // every test uses a part
#![allow(clippy::unwrap_used)] // helpers of tests

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use beff_trace::raw::{Event, ProcessFile};
use beff_trace::{Amode, ArrayOrder, Call, Datatype, Function, RecordingStatus, Role};

use patient::own_sessions;

#[path = "../../../ffi/tests/ranks/patient.rs"]
mod patient;

/// The library to preload: BEFF_PROFILER. Cargo does not build it for tests, because nothing links it: without the variable the tests
/// build it, in their own profile.
pub fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(library) = std::env::var_os("BEFF_PROFILER") {
        return library.into();
    }
    BUILT
        .get_or_init(|| {
            let own = std::env::current_exe().unwrap();
            let target = own.parent().and_then(Path::parent).unwrap();
            let profile = match target.file_name().unwrap().to_str().unwrap() {
                "debug" => "dev",
                other => other,
            };
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.args(["build", "--quiet", "--offline", "-p", "beff-profiler", "--profile", profile, "--target-dir"]);
            let status = cargo.arg(target.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
            assert!(status.success(), "the library cannot be built");
            target.join("libbeff_profiler.so")
        })
        .clone()
}

/// Path of a program's source.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/profile").join(name)
}

pub fn mpicc() -> String {
    std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into())
}

/// Compiles a program into `dir`; None without a Fortran compiler.
pub fn compile(dir: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let program = dir.join(name.replace('.', "_"));
    let c = mpicc();
    let fortran = !name.ends_with(".c");
    let compiler = if fortran { c.replace("mpicc", "mpifort") } else { c };
    let mut command = Command::new(&compiler);
    if fortran {
        // Buffers of two types are passed to one procedure without an interface.
        command.arg("-fallow-argument-mismatch").arg("-J").arg(dir);
    } else {
        command.args(["-O1", "-Wno-stringop-overflow", "-pthread"]);
    }
    let output = command.arg(source(name)).args(options).arg("-o").arg(&program).output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(e) if fortran => {
            eprintln!("SKIPPED: {compiler}: {e}");
            None
        }
        Err(e) => panic!("{compiler}: {e}"),
    }
}

/// Results of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct ProgramRun {
    pub code: Option<i32>,
    /// Sorted, because the launcher mixes the ranks.
    pub stdout: Vec<String>,
    /// Sorted, without numbers of jobs and processes.
    pub stderr: Vec<String>,
    /// Created files, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

fn lines(bytes: &[u8], numbers: bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let plain = |line: &str| match numbers {
        true => line.to_owned(),
        false => line.chars().filter(|c| !c.is_ascii_digit()).collect(),
    };
    let mut lines: Vec<String> = text.lines().map(plain).collect();
    lines.sort();
    lines
}

/// All letters, sorted.
pub fn sorted_letters(lines: &[String]) -> String {
    let mut all: Vec<char> = lines.concat().chars().collect();
    all.sort_unstable();
    all.into_iter().collect()
}

/// A program and the directories of its runs.
pub struct TestProgram {
    pub dir: tempfile::TempDir,
    pub program: PathBuf,
}

impl TestProgram {
    /// Compiles a program.
    pub fn new(name: &str, options: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let program = compile(dir.path(), name, options)?;
        Some(Self { dir, program })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs the program as `program EXPECTED-DIR DATA-DIR arguments`; the variables are set for the ranks only.
    pub fn run(&self, ranks: u32, variables: &[(&str, &str)], arguments: &[&str]) -> ProgramRun {
        let data = self.path("data");
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir(&data).unwrap();
        let launcher = std::env::var("BEFF_MPIRUN").unwrap_or_else(|_| "mpirun".into());
        let mut command = Command::new("timeout");
        own_sessions(&mut command, self.dir.path());
        command.arg("30").args(launcher.split_whitespace()).arg("-n").arg(ranks.to_string()).arg("env");
        command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
        command.arg(&self.program).arg(self.dir.path()).arg(&data).args(arguments);
        let output = command.output().unwrap();
        let paths = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
        let files = paths
            .filter(|path| path.is_file())
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()));
        ProgramRun {
            code: output.status.code(),
            stdout: lines(&output.stdout, true),
            stderr: lines(&output.stderr, false),
            files: files.collect(),
        }
    }

    /// Runs it under the profiler; the files of the ranks are in `profile`.
    pub fn record(&self, ranks: u32, variables: &[(&str, &str)], arguments: &[&str]) -> ProgramRun {
        let profile = self.path("profile");
        let _ = std::fs::remove_dir_all(&profile);
        std::fs::create_dir(&profile).unwrap();
        let (library, profile) = (library(), profile.to_string_lossy().into_owned());
        let library = library.to_string_lossy();
        let mut all = vec![("LD_PRELOAD", &*library), ("BEFF_PROFILE_DIR", profile.as_str())];
        all.extend_from_slice(variables);
        self.run(ranks, &all, arguments)
    }

    /// The file of a rank.
    pub fn file(&self, rank: u32) -> ProcessFile {
        ProcessFile::open(&self.path("profile").join(format!("rank-{rank}.beff"))).unwrap()
    }

    /// The calls as logged by the program.
    pub fn expected(&self, rank: u32) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(&format!("expected-{rank}"))).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs without and with the profiler: the program must be unaffected, and the recorded calls equal those that it logs.
    pub fn check(&self, ranks: u32, arguments: &[&str]) {
        let bare = self.run(ranks, &[], arguments);
        let recorded = self.record(ranks, &[], arguments);
        assert_eq!((recorded.code, &recorded.stderr), (bare.code, &bare.stderr));
        // The launcher may insert the line of one rank into that of another.
        assert_eq!(sorted_letters(&recorded.stdout), sorted_letters(&bare.stdout));
        assert!(recorded.files == bare.files, "the files differ");
        for rank in 0..ranks {
            let file = self.file(rank);
            assert_eq!(file.head().end, RecordingStatus::Complete);
            assert_eq!((file.head().rank, file.head().ranks), (rank, ranks));
            let recorded = text(&file);
            let expected = self.expected(rank);
            let at =
                recorded.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(recorded.len().min(expected.len()));
            assert_eq!(recorded.get(at), expected.get(at), "rank {rank}, call {at} of {}", expected.len());
            assert!(at > 0, "no call was recorded");
        }
    }
}

/// Dictionary entries read so far.
#[derive(Default)]
pub struct Dictionaries {
    pub types: BTreeMap<u32, Datatype>,
    pub comms: BTreeMap<u32, Vec<u32>>,
    pub infos: BTreeMap<u32, Vec<(String, String)>>,
}

/// The calls between initialization and finalization of MPI, in the format of the programs.
pub fn text(file: &ProcessFile) -> Vec<String> {
    let mut tables = Dictionaries::default();
    let mut lines = Vec::new();
    let mut last_ns = 0;
    for event in file.events() {
        match event {
            Event::Type { id, datatype } => assert!(tables.types.insert(id, datatype).is_none()),
            Event::Comm { id, ranks } => assert!(tables.comms.insert(id, ranks).is_none()),
            Event::Info { id, pairs } => assert!(tables.infos.insert(id, pairs).is_none()),
            // Any file system type of the scratch directory.
            Event::Storage { fs_type, .. } => assert!(!fs_type.is_empty()),
            Event::Removed { path } => lines.push(format!("gone {path}")),
            Event::Call(call) => {
                assert!(call.begin_ns >= last_ns && call.end_ns >= call.begin_ns, "{call:?} after {last_ns}");
                last_ns = call.begin_ns;
                // The files of the programs themselves, such as their output, are changed by POSIX calls.
                if call.function.role() != Role::Posix
                    && !["Init", "Init_thread", "Finalize", "Session_init", "Session_finalize"]
                        .contains(&call.function.name())
                {
                    lines.push(line(&call, &tables));
                }
            }
        }
    }
    lines
}

fn line(call: &Call, tables: &Dictionaries) -> String {
    let mut words = vec![format!("{}{}", call.function.name(), if call.large_count { "_c" } else { "" })];
    let mut add = |name: &str, value: Option<String>| words.extend(value.map(|value| format!("{name}={value}")));
    let datatype = |id: Option<u32>| id.map(|id| tree(id, tables));
    add("thread", (call.thread > 0).then(|| call.thread.to_string()));
    add("handle", call.handle.map(|n| n.to_string()));
    add("name", call.name.clone());
    add("offset", call.offset.map(|n| n.to_string()));
    add("count", call.count.map(|n| n.to_string()));
    add("type", datatype(call.datatype));
    add("etype", datatype(call.etype));
    add("filetype", datatype(call.filetype));
    add("comm", call.comm.map(|id| join(tables.comms[&id].iter())));
    add("mode", call.amode.map(modes));
    add("whence", call.whence.map(|whence| whence.name().to_owned()));
    add("bytes", call.bytes.map(|n| n.to_string()));
    add("request", call.request.map(|n| n.to_string()));
    add("requests", (!call.requests.is_empty()).then(|| join(call.requests.iter())));
    let done = call.completions.iter().map(|done| match (done.bytes, done.error) {
        (_, Some(error)) => format!("{}:{}", done.request, error.name()),
        (Some(bytes), None) => format!("{}:{bytes}", done.request),
        (None, None) => done.request.to_string(),
    });
    let done: Vec<String> = done.collect();
    add("done", (!done.is_empty()).then(|| done.join(",")));
    add("flag", call.flag.map(|flag| u8::from(flag).to_string()));
    for (name, id) in [("info", call.info), ("granted", call.granted)] {
        words.extend(id.map(|id| {
            assert!(tables.infos.contains_key(&id), "info {id} is not defined yet");
            name.to_owned()
        }));
    }
    let mut add = |name: &str, value: Option<String>| words.extend(value.map(|value| format!("{name}={value}")));
    // Those of File_delete and File_seek are not results of the calls.
    let number = call.number.filter(|_| !matches!(call.function, Function::Delete | Function::Seek));
    add("number", number.map(|n| n.to_string()));
    add("error", call.error.map(|error| error.name().to_owned()));
    words.join(" ")
}

fn modes(mode: Amode) -> String {
    let names: Vec<&str> = Amode::NAMES.into_iter().filter(|name| mode.has(name)).collect();
    names.join("+")
}

fn join<T: ToString>(list: impl Iterator<Item = T>) -> String {
    list.map(|one| one.to_string()).collect::<Vec<_>>().join(",")
}

/// A type as a tree on one line.
pub fn tree(id: u32, tables: &Dictionaries) -> String {
    let of = |id: &u32| tree(*id, tables);
    let all = |ids: &[u32]| ids.iter().map(|id| tree(*id, tables)).collect::<Vec<_>>().join(",");
    let order = |order: &ArrayOrder| if *order == ArrayOrder::C { "c" } else { "fortran" };
    let l = |list: &[u64]| join(list.iter());
    let s = |list: &[i64]| join(list.iter());
    match tables.types.get(&id).unwrap_or_else(|| panic!("type {id} is not defined yet")) {
        Datatype::Named { name, .. } => name.clone(),
        Datatype::Contiguous { count, of: t } => format!("contiguous({count};{})", of(t)),
        Datatype::Vector { count, block, stride, of: t } => format!("vector({count};{block};{stride};{})", of(t)),
        Datatype::Hvector { count, block, stride_bytes, of: t } => {
            format!("hvector({count};{block};{stride_bytes};{})", of(t))
        }
        Datatype::Indexed { blocks, displacements, of: t } => {
            format!("indexed({};{};{})", l(blocks), s(displacements), of(t))
        }
        Datatype::Hindexed { blocks, displacements_bytes, of: t } => {
            format!("hindexed({};{};{})", l(blocks), s(displacements_bytes), of(t))
        }
        Datatype::IndexedBlock { block, displacements, of: t } => {
            format!("indexed_block({block};{};{})", s(displacements), of(t))
        }
        Datatype::HindexedBlock { block, displacements_bytes, of: t } => {
            format!("hindexed_block({block};{};{})", s(displacements_bytes), of(t))
        }
        Datatype::Struct { blocks, displacements_bytes, of } => {
            format!("struct({};{};{})", l(blocks), s(displacements_bytes), all(of))
        }
        Datatype::Subarray { sizes, subsizes, starts, order: o, of: t } => {
            format!("subarray({};{};{};{};{})", l(sizes), l(subsizes), l(starts), order(o), of(t))
        }
        Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order: o, of: t } => {
            let distributions = join(distributions.iter().map(|d| format!("{d:?}")));
            let arguments = join(arguments.iter().map(|a| a.map_or("-".into(), |a| a.to_string())));
            format!(
                "darray({ranks};{rank};{};{distributions};{arguments};{};{};{})",
                l(sizes),
                l(grid),
                order(o),
                of(t)
            )
        }
        Datatype::Resized { lower_bound_bytes, extent_bytes, of: t } => {
            format!("resized({lower_bound_bytes};{extent_bytes};{})", of(t))
        }
    }
}
