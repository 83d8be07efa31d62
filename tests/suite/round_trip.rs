//! A profile that is replayed under the profiler gives a profile with the same calls, arguments, bytes and errors.
//!
//! Dictionaries are compared by what they mean: numbers of types, communicators and hints may differ. What may differ besides is
//! what a replay cannot or must not repeat, and nothing else:
//! - names of files and when something happened,
//! - `thread`: calls of threads are made one behind the other,
//! - `after` and `polls`: they say how fast who was,
//! - in how many Waitany, Waitsome, Testany, Testsome the requests were found, and in which order: they are compared by request,
//! - MPI_Init, MPI_Finalize and their kin, which are those of this program, and MPI_Register_datarep, whose functions nobody has,
//! - which handler errors have: a replay needs one that returns,
//! - between two libraries: `granted`, for each has its own hints; `_c`, where one has none; what they think of negative offsets;
//!   MPI_Request_get_status, which MPICH 4.0 answers with false for requests of files.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use beff_trace::text::read_all_ranks;
use beff_trace::{Call, DataOrigin, Datatype, Function, ProfileHead, Role};

use crate::profile_support::{application, launched, profile};
use crate::support::{launcher, Launch, Scratch, PROGRAM};

/// A profile in memory.
struct Profile {
    head: ProfileHead,
    ranks: Vec<Vec<Call>>,
    /// Place of a call in its rank, by rank and begin.
    places: HashMap<(u32, u64), usize>,
    /// Of each file, the number it has in the first profile.
    files: Vec<usize>,
    /// The library of the other profile is another one.
    is_of_another_mpi: bool,
    /// One of the two was recorded by a version for which bytes beyond the end of a file were holes.
    are_holes_unknown: bool,
}

impl Profile {
    fn read(path: &Path) -> Self {
        let (head, calls) = read_all_ranks(path).unwrap();
        let mut ranks = vec![Vec::new(); head.processes.len()];
        for call in calls {
            let (rank, call) = call.unwrap();
            if is_repeated(&call) {
                ranks[rank as usize].push(call);
            }
        }
        let named = ranks.iter().enumerate().flat_map(|(rank, calls)| {
            calls.iter().enumerate().map(move |(place, call)| ((rank as u32, call.begin_ns), place))
        });
        let (places, files) = (named.collect(), (0..head.files.len()).collect());
        Self { head, ranks, places, files, is_of_another_mpi: false, are_holes_unknown: false }
    }

    /// A replay calls the first file of a profile `file-0001`.
    fn of_replay(path: &Path) -> Self {
        let mut profile = Self::read(path);
        let number = |path: &str| -> usize { path.rsplit_once("/file-").unwrap().1.parse::<usize>().unwrap() - 1 };
        profile.files = profile.head.files.iter().map(|file| number(&file.path)).collect();
        profile
    }

    fn family(&self) -> &str {
        if self.head.library.contains("Open MPI") {
            "Open MPI"
        } else {
            "MPICH"
        }
    }

    fn datatype(&self, number: u32) -> String {
        let of = |number: u32| self.datatype(number);
        let mut text = format!("{:?}", self.head.types[number as usize]);
        match &self.head.types[number as usize] {
            Datatype::Named { .. } => {}
            Datatype::Struct { of: parts, .. } => {
                let parts: Vec<String> = parts.iter().map(|part| of(*part)).collect();
                text = format!("{} of {}", text.split(", of: [").next().unwrap(), parts.join(" and "));
            }
            _ => {
                let (front, number) = text.trim_end_matches(" }").rsplit_once(", of: ").unwrap();
                text = format!("{front} of ({})", of(number.parse().unwrap()));
            }
        }
        text
    }

    fn hints(&self, number: u32) -> String {
        let mut hints = self.head.infos[number as usize].clone();
        hints.sort();
        format!("{hints:?}")
    }

    /// All of a call that a replay must repeat.
    fn meaning(&self, call: &Call) -> String {
        let mut text = String::from(call.function.name());
        let mut add = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                write!(text, " {key}={value}").unwrap();
            }
        };
        let shown = |value: Option<i64>| value.map(|value| value.to_string());
        if !self.is_of_another_mpi {
            add("large", call.large_count.then(String::new));
        }
        let is_left_to_the_library = self.is_of_another_mpi && call.offset.is_some_and(|offset| offset < 0);
        add("error", call.error.filter(|_| !is_left_to_the_library).map(|class| class.name().to_owned()));
        add("handle", call.handle.map(|n| n.to_string()));
        add("file", call.file.map(|n| self.files[n as usize].to_string()));
        add("name", call.name.clone());
        add("offset", shown(call.offset));
        add("count", shown(call.count));
        for (key, number) in [("type", call.datatype), ("etype", call.etype), ("filetype", call.filetype)] {
            add(key, number.map(|n| self.datatype(n)));
        }
        add("comm", call.comm.map(|n| format!("{:?}", self.head.comms[n as usize])));
        add("mode", call.amode.map(|mode| format!("{mode:?}")));
        add("info", call.info.map(|n| self.hints(n)));
        add("whence", call.whence.map(|w| format!("{w:?}")));
        add("flag", call.flag.map(|flag| flag.to_string()));
        if !self.is_of_another_mpi {
            add("granted", call.granted.map(|n| self.hints(n)));
        }
        // Recordings of earlier versions have no position of a seek to the end.
        if !matches!(call.function, Function::SetErrhandler | Function::CallErrhandler | Function::Seek) {
            add("number", shown(call.number));
        }
        add("bytes", call.bytes.filter(|_| !is_left_to_the_library).map(|bytes| bytes.to_string()));
        add("request", call.request.map(|n| n.to_string()));
        let several = |list: &[String]| (!list.is_empty()).then(|| list.join(";"));
        add("requests", several(&call.requests.iter().map(u64::to_string).collect::<Vec<_>>()));
        add("done", several(&call.completions.iter().map(|done| format!("{done:?}")).collect::<Vec<_>>()));
        add(
            "from",
            several(&self.origins(call).iter().map(|(bytes, origin)| format!("{bytes}@{origin}")).collect::<Vec<_>>()),
        );
        text
    }

    fn origins(&self, call: &Call) -> Vec<(u64, String)> {
        let mut all: Vec<(u64, String)> = Vec::new();
        for part in &call.from {
            let origin = self.origin(part.origin);
            match all.last_mut().filter(|(_, last)| *last == "Unknown" && origin == "Unknown") {
                Some((bytes, _)) => *bytes += part.bytes,
                None => all.push((part.bytes, origin)),
            }
        }
        all
    }

    fn origin(&self, content: DataOrigin) -> String {
        match content {
            DataOrigin::Hole if self.are_holes_unknown => self.origin(DataOrigin::Unknown),
            DataOrigin::Call { rank, begin_ns, memory } => {
                format!("call {} of rank {rank}+{memory}", self.places[&(rank, begin_ns)])
            }
            other => format!("{other:?}"),
        }
    }

    /// The calls of a rank, those that find some of their requests taken apart and sorted into one place.
    fn meanings(&self, rank: usize) -> Vec<String> {
        let mut all = Vec::new();
        let is_compared = |call: &&Call| !(self.is_of_another_mpi && call.function == Function::RequestGetStatus);
        let calls: Vec<&Call> = self.ranks[rank].iter().filter(is_compared).collect();
        for calls in calls.chunk_by(|one, other| one.function == other.function && finds_some(one.function)) {
            if !finds_some(calls[0].function) {
                all.extend(calls.iter().map(|call| self.meaning(call)));
                continue;
            }
            let mut found: Vec<String> = calls
                .iter()
                .flat_map(|call| call.completions.iter().map(move |done| format!("{:?} {done:?}", call.function)))
                .collect();
            found.sort();
            all.extend(found);
        }
        all
    }
}

/// False for what belongs to the program that makes the calls.
fn is_repeated(call: &Call) -> bool {
    let is_default_handler = call.function == Function::SetErrhandler && call.handle.is_none();
    let is_of_program = matches!(call.function.role(), Role::Program | Role::Posix);
    (!is_of_program || call.function == Function::CreateErrhandler) && !is_default_handler
}

/// Finds some of its requests, whichever are done.
fn finds_some(function: Function) -> bool {
    matches!(function, Function::Waitany | Function::Waitsome | Function::Testany | Function::Testsome)
}

/// Replays `first` under the profiler. The profile of that.
#[track_caller]
fn again(scratch: &Scratch, first: &Path, ranks: u64, codes: &[i32]) -> PathBuf {
    let second = scratch.join("second.csv");
    let disk = scratch.join("disk");
    fs::create_dir_all(&disk).unwrap();
    let launch = Launch::alone().arg("profile").arg("-o").arg(&second).arg("--").args(launched(ranks)).arg(PROGRAM);
    let run = launch.arg("replay").arg(first).args(["--repeat", "0"]).arg("--path").arg(&disk).run();
    assert!(codes.contains(&run.code()) && second.exists(), "{run}");
    second
}

#[track_caller]
fn same(first: &Path, second: &Path) {
    same_profiles(Profile::read(first), Profile::of_replay(second));
}

#[track_caller]
fn same_profiles(mut first: Profile, mut second: Profile) {
    let differs = first.family() != second.family();
    (first.is_of_another_mpi, second.is_of_another_mpi) = (differs, differs);
    assert_eq!(first.ranks.len(), second.ranks.len());
    assert!(first.ranks.iter().all(|calls| !calls.is_empty()), "nothing to compare");
    for (file, number) in second.head.files.iter().zip(&second.files) {
        assert_eq!(file.size_bytes, first.head.files[*number].size_bytes, "{}", first.head.files[*number].path);
    }
    for rank in 0..first.ranks.len() {
        let (one, other) = (first.meanings(rank), second.meanings(rank));
        for (place, (one, other)) in one.iter().zip(&other).enumerate() {
            assert_eq!(one, other, "rank {rank}, call {place}");
        }
        assert_eq!(one.len(), other.len(), "rank {rank}: {:?} {:?}", one.get(other.len()), other.get(one.len()));
    }
}

/// Recorded, replayed under the profiler, compared.
#[track_caller]
fn round_trip(name: &str, ranks: u64, code: i32, args: impl FnOnce(&str) -> Vec<String>) {
    let scratch = Scratch::new();
    let program = application(&scratch, name);
    let (first, place) = (scratch.join("first.csv"), scratch.join("place"));
    fs::create_dir(&place).unwrap();
    let args = args(place.to_str().unwrap());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    profile(&first, ranks, &program, &args).run().expect(code);
    same(&first, &again(&scratch, &first, ranks, &[0]));
}

/// The programs of the profiler's tests write into the directory they are given twice.
fn twice(place: &str) -> Vec<String> {
    vec![place.into(), place.into()]
}

#[test]
fn every_function_comes_back() {
    round_trip("every", 2, 5, twice);
}

#[test]
fn every_type_comes_back() {
    round_trip("types", 2, 0, twice);
}

#[test]
fn requests_come_back() {
    round_trip("requests", 2, 0, twice);
}

#[test]
fn who_wrote_what_is_read_comes_back() {
    for (ranks, how) in [(2, "message"), (3, "barrier")] {
        round_trip("turns", ranks, 0, |place| vec![format!("{place}/data"), how.into(), "10".into()]);
    }
}

/// Recorded with either library on another machine, replayed with the one at hand.
#[test]
fn what_another_library_did_comes_back() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profile/recorded");
    for mpi in ["mpich", "openmpi"] {
        for name in ["every", "types", "requests"] {
            let scratch = Scratch::new();
            let first = recorded.join(format!("{mpi}-{name}.csv.zst"));
            // Calls with a negative offset may succeed with one library and fail with the other.
            let codes: &[i32] = if mpi == launcher().mpi { &[0] } else { &[0, 1] };
            let mut both = [Profile::read(&first), Profile::of_replay(&again(&scratch, &first, 2, codes))];
            both.iter_mut().for_each(|profile| profile.are_holes_unknown = true);
            let [first, second] = both;
            same_profiles(first, second);
        }
    }
}

#[test]
fn a_call_that_differs_is_seen() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profile/recorded");
    let first = Profile::read(&recorded.join("mpich-every.csv.zst"));
    let of = |changed: &dyn Fn(&mut Call)| {
        let mut call = first.ranks[0].iter().find(|call| call.bytes == Some(32)).unwrap().clone();
        changed(&mut call);
        first.meaning(&call)
    };
    let same = of(&|_| {});
    assert_eq!(same, of(&|call| (call.begin_ns, call.end_ns, call.thread, call.polls) = (1, 2, 3, 4)));
    let changes: [&dyn Fn(&mut Call); 5] = [
        &|call| call.bytes = Some(31),
        &|call| call.offset = call.offset.map(|offset| offset + 1),
        &|call| call.datatype = Some(1),
        &|call| call.large_count = !call.large_count,
        &|call| call.error = beff_trace::ErrorClass::from_name("MPI_ERR_IO"),
    ];
    for change in changes {
        assert_ne!(same, of(change));
    }
}
