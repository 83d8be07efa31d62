//! Complete replays on several ranks, which are threads; MPI is `beff_fake_mpi`. Contents of files, comparisons and waits must follow
//! from the profile.

use std::path::Path;
use std::time::Duration;

use beff_fake_mpi::{error_code, ranks, script, ScriptedResult};
use beff_ffi::{Comm, Universe};
use beff_trace::layout::TypeLayouts;
use beff_trace::text;

use super::call_source::CallSource;
use super::execution::{execute, replay_support, ExecutionContext, ReplayVariant, ScanInput};
use super::what_if;
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::RunOutcome;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{ProgressReport, RunObserver, TransferVolume};
use crate::replay::config::{Detail, Pace, ReplayConfig, WhatIf};
use crate::replay::plan::memory_relocation::MemoryRelocation;
use crate::replay::records::{ProfileRepetition, RepetitionStatus, ReplayCorruption, ReplayLine};
use crate::replay::run::scan::ScanTotals;
use crate::replay::run::write_source::WriteSources;

const COLD_BYTES: u64 = 1 << 20;
const SEED: u64 = 5;

fn config(profile: &Path, path: &Path, backends: &[&str], pace: Pace) -> ReplayConfig {
    ReplayConfig {
        profile: profile.to_owned(),
        backends: backends.iter().map(|name| (*name).to_owned()).collect(),
        variants: Vec::new(),
        what_if: None,
        path: path.to_owned(),
        run_dir: None,
        keep_files: true,
        out: None,
        pace,
        scale: 1.0,
        repeat: 0,
        time_limit: None,
        cache: CachePolicy::Keep,
        direct: DirectPolicy::Off,
        dio_align_bytes: None,
        storage: Vec::new(),
        stripe: None,
        hints: Vec::new(),
        verify: true,
        detail: Detail::Run,
        bind: BindPolicy::None,
        seed: SEED,
        inject: false,
    }
}

#[derive(Default)]
pub(super) struct ReplayObservation {
    pub(super) passes: Vec<ProfileRepetition>,
    pub(super) corruption: Option<ReplayCorruption>,
    pub(super) sources: Option<WriteSources>,
    pub(super) others: Vec<String>,
    pub(super) outcome: RunOutcome,
}

impl RunObserver<ReplayLine> for ReplayObservation {
    fn record(&mut self, line: ReplayLine) {
        match line {
            ReplayLine::Repetition(repetition) => self.passes.push(*repetition),
            ReplayLine::Corruption(found) => self.corruption = Some(found),
            ReplayLine::Class(_) | ReplayLine::Process(_) => {}
            other => self.others.push(format!("{other:?}")),
        }
    }

    fn progress(&mut self, _: &ProgressReport) {}

    fn measurement_ended(&mut self, _is_complete: bool, _last: Vec<TransferVolume>) {}
}

/// Totals over all ranks that determine the memory layout.
fn combined_totals(all: &[ScanTotals]) -> ScanTotals {
    let most = |of: fn(&ScanTotals) -> u64| all.iter().map(of).max().unwrap_or(0);
    ScanTotals {
        below_bytes: most(|sums| sums.below_bytes),
        above_bytes: most(|sums| sums.above_bytes),
        strewn_bytes: most(|sums| sums.strewn_bytes),
        ..ScanTotals::default()
    }
}

fn replay(config: &ReplayConfig, comm: &Comm) -> ReplayObservation {
    let (mut head, _) = text::read_all_ranks(&config.profile).unwrap();
    let (recorded, _) = TypeLayouts::for_library_lenient(&head.types, &head.library);
    let relocation = MemoryRelocation::add_types(&mut head.types, &recorded);
    let (layouts, _) = TypeLayouts::for_library_lenient(&head.types, &head.library);
    let refusals = replay_support(config);
    let source = CallSource { path: &config.profile, change: None };
    let look = ScanInput {
        source,
        head: &head,
        layouts: &layouts,
        relocation: &relocation,
        support: &refusals,
        cold_bytes: COLD_BYTES,
        verify: config.verify,
    };
    let sums: Vec<ScanTotals> = look.scan_all().unwrap().into_iter().map(|scan| scan.totals).collect();
    let scan = look.scan_collectively(comm).unwrap().unwrap();
    let change = config
        .what_if
        .as_ref()
        .and_then(|change| what_if::plan_change(change, &config.profile, (&head, &layouts)).unwrap());
    let changed = change.as_ref().map(|change| {
        let source = CallSource { change: Some(change), ..source };
        let look = ScanInput { source, ..look };
        let sums: Vec<ScanTotals> = look.scan_all().unwrap().into_iter().map(|scan| scan.totals).collect();
        (source, look.scan_collectively(comm).unwrap().unwrap(), combined_totals(&sums))
    });
    let run_dir =
        RunDir::create(comm, &config.path, "run", (&config.backends, RankDirectories::NONE)).unwrap().unwrap();
    let interrupt = Interrupt::default();
    let means = ExecutionContext {
        comm,
        config,
        unchanged: ReplayVariant { source, scan: &scan, combined_totals: &combined_totals(&sums) },
        changed: changed.as_ref().map(|(source, scan, sums)| ReplayVariant {
            source: *source,
            scan,
            combined_totals: sums,
        }),
        head: &head,
        layouts: &layouts,
        relocation: &relocation,
        cold_bytes: COLD_BYTES,
        run_dir: &run_dir,
        not_run: &[],
        fs_type: "",
        span: Duration::from_millis(1),
        interrupt: &interrupt,
        print: |text| panic!("{text}"),
        terminate: |stuck, _| panic!("{stuck:?}"),
    };
    let mut seen = ReplayObservation {
        sources: combined_totals(&sums).sources(config.seed, COLD_BYTES),
        ..ReplayObservation::default()
    };
    seen.outcome = execute(&means, &mut seen).unwrap().outcome;
    seen
}

/// Replays a profile of `size` ranks; returns the observation of rank 0, and the files of the last backend.
pub(super) fn replay_profile(
    profile: &str,
    size: usize,
    backends: &[&str],
    pace: Pace,
) -> (ReplayObservation, Vec<Vec<u8>>) {
    replay_profile_after(|| (), profile, size, backends, pace)
}

/// The same, after an action on each rank.
fn replay_profile_after(
    before: impl Fn() + Sync,
    profile: &str,
    size: usize,
    backends: &[&str],
    pace: Pace,
) -> (ReplayObservation, Vec<Vec<u8>>) {
    let (seen, files) = replay_repeatedly(|_| before(), profile, size, backends, (pace, 0));
    assert_eq!(seen.outcome, RunOutcome::Complete, "{:?} {:?}", seen.passes, seen.others);
    (seen, files)
}

/// The same with a number of repetitions and any outcome.
pub(super) fn replay_repeatedly(
    before: impl Fn(usize) + Sync,
    profile: &str,
    size: usize,
    backends: &[&str],
    (pace, repeat): (Pace, u64),
) -> (ReplayObservation, Vec<Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.csv");
    std::fs::write(&path, profile).unwrap();
    let config = ReplayConfig { repeat, ..config(&path, directory.path(), backends, pace) };
    let seen = ranks(size, |rank| {
        let universe = Universe::init().unwrap();
        before(rank);
        replay(&config, &universe.world())
    });
    let files = directory.path().join("run").join(backends.last().unwrap());
    let mut names: Vec<_> = std::fs::read_dir(files).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let contents = names.iter().map(|name| std::fs::read(name).unwrap()).collect();
    (seen.into_iter().next().unwrap(), contents)
}

pub(super) fn assert_repetition(pass: &ProfileRepetition, calls: u64, [checked, unknown, wrong]: [u64; 3]) {
    assert_eq!(pass.ended, RepetitionStatus::Complete);
    assert_eq!((pass.calls, pass.calls_as_recorded, &pass.differences), (calls, calls, &Vec::new()));
    assert_eq!([pass.bytes_checked, pass.bytes_unknown, pass.bytes_wrong], [checked, unknown, wrong]);
}

/// Rank 1 reads data that rank 0 writes late, after other calls, and rank 2 data of both: correct by the recorded order alone, at any
/// pace.
const ORDERED_PROFILE: &str = "beff-raw profile,1
ranks, 3
comm, 0, world
type, 0, BYTE
file, 0, out.dat

calls, 0, 5
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
1000, 50000000, File_write_at, handle=1, offset=1000000, count=4000000, type=0, bytes=4000000
60000000, 60000010, File_write_at, handle=1, offset=0, count=1000, type=0, bytes=1000
70000000, 70000010, File_write_at, handle=1, offset=1000, count=24, type=0, bytes=24
400000000, 400000010, File_close, handle=1

calls, 1, 4
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
80000000, 80000010, File_read_at, handle=1, offset=500, count=524, type=0, bytes=524, after=0@70000000, from=500@0:60000000+500;24@0:70000000+0
90000000, 90000010, File_write_at, handle=1, offset=2000, count=48, type=0, bytes=48
400000000, 400000010, File_close, handle=1

calls, 2, 3
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
100000000, 100000010, File_read_at, handle=1, offset=1000, count=1048, type=0, bytes=1048, after=0@70000000;1@90000000, from=24@0:70000000+0;976@hole;48@1:90000000+0
400000000, 400000010, File_close, handle=1
";

#[test]
fn reads_wait_for_writes_of_other_ranks_and_return_their_bytes() {
    for (backends, pace) in [(["posix"], Pace::Fast), (["posix"], Pace::Think), (["uring"], Pace::Fast)] {
        let (seen, files) = replay_profile(ORDERED_PROFILE, 3, &backends, pace);
        assert_repetition(&seen.passes[0], 12, [524 + 1048, 0, 0]);
        assert!(seen.corruption.is_none() && seen.others.is_empty(), "{:?}", seen.others);
        let file = &files[0];
        assert_eq!(file.len(), 5_000_000);
        assert!(file[1024..2000].iter().all(|byte| *byte == 0));
        let sources = seen.sources.unwrap();
        let written = |rank, begin_ns, bytes: usize| {
            let mut words = vec![0; bytes];
            sources.rank_words(rank).fill_from(sources.address(rank, begin_ns), &mut words);
            words
        };
        assert!(file[..1000] == written(0, 60_000_000, 1000), "each call writes words of its own rank and begin");
        assert!(file[1000..1024] == written(0, 70_000_000, 24));
        assert!(file[2000..2048] == written(1, 90_000_000, 48));
    }
}

/// The profile names rank 0 as origin of data of rank 1: the error is reported with rank, location and content.
#[test]
fn bytes_of_another_rank_are_wrong() {
    let wrong =
        ORDERED_PROFILE.replace("from=500@0:60000000+500;24@0:70000000+0", "from=500@1:90000000+0;24@0:70000000+0");
    let (seen, _) = replay_profile(&wrong, 3, &["posix"], Pace::Fast);
    let repetition = &seen.passes[0];
    assert_eq!((repetition.bytes_checked, repetition.bytes_unknown), (524 + 1048, 0));
    assert!((490..=500).contains(&repetition.bytes_wrong), "{}", repetition.bytes_wrong);
    let found = seen.corruption.unwrap();
    assert_eq!((found.rank, found.begin_ns, found.offset_bytes), (1, 80_000_000, Some(500)));
    assert_eq!(found.expected_from, "rank 1, call at 90000000 ns");
    let moved = ORDERED_PROFILE.replace("500@0:60000000+500", "500@0:60000000+501");
    assert!(replay_profile(&moved, 3, &["posix"], Pace::Fast).0.passes[0].bytes_wrong > 480, "one byte further");
}

#[test]
fn unknown_bytes_are_counted_and_not_wrong() {
    let unknown = ORDERED_PROFILE.replace("from=500@0:60000000+500;", "from=500@?;");
    let (seen, _) = replay_profile(&unknown, 3, &["posix"], Pace::Fast);
    assert_repetition(&seen.passes[0], 12, [24 + 1048, 500, 0]);
}

/// An initial file has words of its own, which reads verify, and so do overwritten parts.
#[test]
fn existing_files_are_created_before_the_first_call() {
    let there = ORDERED_PROFILE
        .replace("file, 0, out.dat", "file, 0, out.dat, 4096")
        .replace("number=-1", "number=4096")
        .replace("976@hole", "976@file");
    let (seen, files) = replay_profile(&there, 3, &["posix", "uring"], Pace::Fast);
    assert_eq!(seen.passes.len(), 2);
    for repetition in &seen.passes {
        assert_repetition(repetition, 12, [524 + 1048, 0, 0]);
        assert_eq!(repetition.prefilled_bytes, 4096);
    }
    assert!(files[0].len() == 5_000_000 && files[0][1024..2000].iter().any(|byte| *byte != 0));
}

/// A call recorded as short completes now, and a recorded error does not occur.
#[test]
fn differing_results_are_recorded() {
    let short = ORDERED_PROFILE.replace("count=48, type=0, bytes=48", "count=48, type=0, bytes=40");
    let short =
        short.replace("offset=1000, count=24, type=0, bytes=24", "offset=1000, count=24, type=0, error=MPI_ERR_IO");
    let (seen, _) = replay_profile(&short, 3, &["posix"], Pace::Fast);
    let repetition = &seen.passes[0];
    assert_eq!((repetition.calls, repetition.calls_as_recorded), (12, 10));
    let reported: Vec<_> =
        repetition.differences.iter().map(|d| (d.kind.as_str(), d.calls, d.rank, d.begin_ns)).collect();
    assert_eq!(reported, [("bytes", 1, 1, 90_000_000), ("error", 1, 0, 70_000_000)]);
}

/// Its speed would be that of a call that did nothing.
#[test]
fn a_call_that_fails_now_alone_ends_the_repetitions_of_its_backend_with_an_error() {
    let profile = "beff-raw profile,1
ranks, 2
comm, 0, world
type, 0, BYTE
file, 0, out.dat

calls, 0, 3
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
100, 110, File_write_at, handle=1, offset=0, count=100, type=0, bytes=100
1000, 1010, File_close, handle=1

calls, 1, 4
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
200, 210, File_write_at, handle=1, offset=100, count=100, type=0, bytes=100
300, 310, File_write_at, handle=1, offset=200, count=100, type=0, bytes=100
1000, 1010, File_close, handle=1
";
    let fail = |rank| {
        if rank == 1 {
            script("File_write_at", &[ScriptedResult::Success, ScriptedResult::Code(error_code("MPI_ERR_NO_SPACE"))]);
        }
    };
    let (seen, _) = replay_repeatedly(fail, profile, 2, &["mpiio", "posix"], (Pace::Fast, 2));
    assert_eq!(seen.outcome, RunOutcome::Failed);
    let names: Vec<_> = seen.passes.iter().map(|pass| (pass.backend.as_str(), pass.repetition)).collect();
    let expected = [("mpiio", 0), ("posix", 0), ("posix", 1), ("posix", 2)];
    assert_eq!(names, expected, "it is not repeated, the others are");
    assert_repetition(&seen.passes[3], 7, [0; 3]);
    let RepetitionStatus::Error(message) = &seen.passes[0].ended else { panic!("{:?}", seen.passes[0]) };
    for part in ["rank 1", "MPI_File_write_at", "file-0001, offset 200", "recorded at 300 ns", "1 call failed"] {
        assert!(message.contains(part), "no {part}: {message}");
    }
    assert_eq!((seen.passes[0].calls, seen.passes[0].calls_as_recorded), (7, 6));
    assert!(seen.others.len() == 1 && seen.others[0].contains("no_space: true"), "{:?}", seen.others);
}

/// Rank 0 has finished and waits for none, while rank 1 pauses.
#[test]
fn a_repetition_lasts_as_long_as_its_slowest_rank() {
    let own_files = "beff-raw profile,1
ranks, 2
comm, 0, 0
comm, 1, 1
file, 0, a.dat
file, 1, b.dat

calls, 0, 2
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
20, 30, File_close, handle=1

calls, 1, 2
0, 10, File_open, handle=1, comm=1, file=1, mode=create;rdwr, number=-1
200000000, 200000010, File_close, handle=1
";
    let (seen, _) = replay_repeatedly(|_| (), own_files, 2, &["posix"], (Pace::Think, 1));
    assert_repetition(&seen.passes[1], 4, [0; 3]);
    assert!(seen.passes[1].span_seconds >= 0.199, "{}", seen.passes[1].span_seconds);
    assert!(seen.passes[0].span_seconds < 0.1, "the verification has no pauses: {}", seen.passes[0].span_seconds);
}

/// The read delivers what is elsewhere in the file: not the fault of the storage.
#[test]
fn reads_after_a_seek_that_fails_now_are_not_compared() {
    let profile = "beff-raw profile,1
ranks, 1
comm, 0, world
type, 0, BYTE
file, 0, out.dat, 1000

calls, 0, 5
0, 10, File_open, handle=1, comm=0, file=0, mode=rdwr, number=1000
100, 110, File_seek, handle=1, offset=500, whence=set
200, 210, File_read, handle=1, count=100, type=0, bytes=100, from=100@file
300, 310, File_read_at, handle=1, offset=0, count=100, type=0, bytes=100, from=100@?
1000, 1010, File_close, handle=1
";
    let fail = |_| script("File_seek", &[ScriptedResult::Code(error_code("MPI_ERR_OTHER"))]);
    let (seen, _) = replay_repeatedly(fail, profile, 1, &["mpiio"], (Pace::Fast, 0));
    assert_eq!((seen.outcome, seen.corruption.is_none()), (RunOutcome::Failed, true), "{:?}", seen.corruption);
    let pass = &seen.passes[0];
    assert_eq!([pass.bytes_checked, pass.bytes_unknown, pass.bytes_wrong], [0, 200, 0]);
}

/// Ranks rely on what an omitted call waited for.
#[test]
fn the_order_of_an_omitted_call_holds_for_the_next_one() {
    let profile = "beff-raw profile,1
ranks, 2
comm, 0, world
type, 0, BYTE
file, 0, f, -

calls, 0, 4
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
500, 510, File_write_shared, handle=1, count=0, type=0, bytes=0, after=1@20
520, 530, File_read_at, handle=1, offset=0, count=67108864, type=0, bytes=67108864, from=67108864@1:20+0
600, 610, File_close, handle=1

calls, 1, 3
1, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
20, 400, File_write_at, handle=1, offset=0, count=67108864, type=0, bytes=67108864
601, 610, File_close, handle=1
";
    let (seen, _) = replay_profile(profile, 2, &["posix"], Pace::Fast);
    assert_repetition(&seen.passes[0], 6, [67_108_864, 0, 0]);
}

/// Comparing data between calls changes their times.
#[test]
fn data_is_compared_in_a_repetition_of_its_own() {
    let (seen, _) = replay_repeatedly(|_| (), ORDERED_PROFILE, 3, &["posix", "null"], (Pace::Fast, 2));
    let names: Vec<_> = seen.passes.iter().map(|pass| (pass.backend.as_str(), pass.repetition)).collect();
    assert_eq!(names, [("posix", 0), ("posix", 1), ("null", 1), ("null", 2), ("posix", 2)]);
    assert!(seen.passes[0].bytes_checked > 0 && seen.passes[0].bytes_wrong == 0);
    assert!(seen.passes[1..].iter().all(|pass| pass.bytes_checked + pass.bytes_unknown == 0), "{:?}", seen.passes);
}

/// Two reads to the same memory, of which the second reports all bytes and delivers nothing: data of the first must not be accepted for
/// it.
#[test]
fn memory_of_a_read_holds_no_data_of_an_earlier_read() {
    let two_reads = |bytes: u64, keys: [&str; 2]| {
        let read = |begin: u64, keys: &str| {
            let end = begin + 10;
            format!("{begin}, {end}, File_read_at, handle=1, offset=0, count={bytes}, type=0, bytes={bytes}{keys}")
        };
        format!(
            "beff-raw profile,1
ranks, 1
comm, 0, world
type, 0, BYTE
file, 0, out.dat

calls, 0, 5
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
{}
{}
{}
1000, 1010, File_close, handle=1
",
            read(100, ", buffer=0"),
            read(200, keys[0]),
            read(300, keys[1])
        )
    };
    let zeros =
        || script("File_read_at", &[ScriptedResult::Filled(0), ScriptedResult::Filled(0), ScriptedResult::Success]);
    // The cycle of the landing area ends after each of them.
    let bytes = COLD_BYTES * 2 / 3;
    let hole = format!(", from={bytes}@hole");
    let (seen, _) = replay_profile_after(zeros, &two_reads(bytes, [&hole, &hole]), 1, &["mpiio"], Pace::Fast);
    assert_repetition(&seen.passes[0], 5, [2 * bytes, 0, bytes]);
    // The program reused its buffer; data of the first read is not compared.
    let keys = [", buffer=0", ", buffer=0, from=1000@hole"];
    let (seen, _) = replay_profile_after(zeros, &two_reads(1000, keys), 1, &["mpiio"], Pace::Fast);
    assert_repetition(&seen.passes[0], 5, [1000, 0, 1000]);
}

/// A workload of views, of every form of access, and without results, as it is written by hand.
const WORKLOAD: &str = "beff-raw profile,1
ranks, 2
comm, 0, world
type, 0, DOUBLE
type, 1, subarray, sizes=4;8, subsizes=2;8, starts=0;0, order=c, of=0
type, 2, subarray, sizes=4;8, subsizes=2;8, starts=2;0, order=c, of=0
file, 0, ckpt.dat

calls, 0, 8
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
20, 30, File_set_view, handle=1, offset=0, etype=0, filetype=1, name=native
40, 50, File_write_all, handle=1, count=16, type=0
60, 70, File_iwrite_at, handle=1, offset=16, count=16, type=0, request=1
80, 90, Wait, requests=1, done=1
100, 110, File_seek, handle=1, offset=0, whence=set
120, 130, File_read_all, handle=1, count=32, type=0
140, 150, File_close, handle=1

calls, 1, 7
1, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
21, 30, File_set_view, handle=1, offset=0, etype=0, filetype=2, name=native
41, 50, File_write_all, handle=1, count=16, type=0
61, 90, File_write_at, handle=1, offset=16, count=16, type=0
101, 110, File_seek, handle=1, offset=0, whence=set
121, 130, File_read_all, handle=1, count=32, type=0
141, 150, File_close, handle=1
";

/// The text of a workload, completed by its order.
fn completed(workload: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), workload).unwrap();
    String::from_utf8(beff_trace::workload::derive_order(file.path()).unwrap().unwrap()).unwrap()
}

#[test]
fn a_workload_without_results_is_replayed_and_compared_in_full() {
    for backend in ["posix", "uring"] {
        let (seen, files) = replay_profile(&completed(WORKLOAD), 2, &[backend], Pace::Fast);
        assert_repetition(&seen.passes[0], 15, [2 * 256, 0, 0]);
        assert_eq!(files[0].len(), 512);
    }
}

/// MPI_BOTTOM with the addresses of a variable on the stack and one on the heap, in each direction and form, and read by another type.
#[test]
fn absolute_addresses_need_only_the_memory_of_their_data() {
    let (heap, stack) = (0x5555_5555_6010_i64, 0x7fff_ffff_e018_i64);
    let profile = format!(
        "beff-raw profile,1
ranks, 1
comm, 0, world
type, 0, BYTE
type, 1, hindexed, blocks=1000;3000, displacements_bytes={stack};{heap}, of=0
type, 2, struct, blocks=400, displacements_bytes={heap}, of=0
file, 0, out.dat

calls, 0, 8
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
20, 30, File_write_at, handle=1, offset=0, count=1, type=1, buffer=-4096
40, 50, File_iwrite_at, handle=1, offset=4000, count=1, type=2, request=1, buffer=-4096
60, 70, Wait, requests=1
80, 90, File_read_at, handle=1, offset=0, count=1, type=1, buffer=-4096
100, 110, File_iread_at, handle=1, offset=500, count=1, type=2, request=2, buffer=-4096
120, 130, Wait, requests=2
140, 150, File_close, handle=1
"
    );
    for backend in ["posix", "uring"] {
        let (seen, files) = replay_profile(&completed(&profile), 1, &[backend], Pace::Fast);
        assert_repetition(&seen.passes[0], 8, [4400, 0, 0]);
        let written = &files[0];
        assert!(written.len() == 4400 && written[..4000].iter().any(|byte| *byte != 0));
    }
}

/// Positions relative to the end of the file follow from its size: after writes of both ranks, after set_size, in a view with holes, and
/// of a file opened to append.
#[test]
fn writes_after_a_seek_to_the_end_are_replayed() {
    let profile = "beff-raw profile,1
ranks, 2
comm, 0, world
type, 0, BYTE
type, 1, vector, count=1, block=10, stride=20, of=0
type, 2, resized, lower_bound=0, extent=20, of=1
file, 0, out.dat

calls, 0, 10
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
20, 30, File_write_at, handle=1, offset=0, count=100, type=0
60, 70, File_seek, handle=1, offset=0, whence=end
80, 90, File_write, handle=1, count=7, type=0
100, 110, File_seek, handle=1, offset=-7, whence=end
120, 130, File_read, handle=1, count=7, type=0
140, 150, File_set_size, handle=1, offset=200
160, 170, File_set_view, handle=1, offset=0, etype=0, filetype=2
180, 190, File_seek, handle=1, offset=0, whence=end
500, 510, File_close, handle=1

calls, 1, 8
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
40, 50, File_write_at, handle=1, offset=100, count=20, type=0
140, 150, File_set_size, handle=1, offset=200
160, 170, File_set_view, handle=1, offset=0, etype=0, filetype=2
200, 210, File_seek, handle=1, offset=-5, whence=end
220, 230, File_write, handle=1, count=15, type=0
240, 250, File_read_at, handle=1, offset=95, count=15, type=0
500, 510, File_close, handle=1
";
    let (seen, files) = replay_profile(&completed(profile), 2, &["posix"], Pace::Fast);
    assert_repetition(&seen.passes[0], 18, [7 + 15, 0, 0]);
    // 100 bytes of the view are below 200, and 5 of them are overwritten.
    assert_eq!(files[0].len(), 210);
    assert!([110, 126, 188, 205].iter().all(|at| files[0][*at] != 0 || files[0][at + 1] != 0));
    let append = "beff-raw profile,1
ranks, 1
comm, 0, world
type, 0, BYTE
file, 0, out.dat, 50

calls, 0, 4
0, 10, File_open, handle=1, comm=0, file=0, mode=rdwr;append
20, 30, File_write, handle=1, count=7, type=0
40, 50, File_read_at, handle=1, offset=40, count=17, type=0
60, 70, File_close, handle=1
";
    let (seen, files) = replay_profile(&completed(append), 1, &["posix"], Pace::Fast);
    assert_repetition(&seen.passes[0], 4, [17, 0, 0]);
    assert_eq!(files[0].len(), 57);
}

/// Open MPI reports the requested bytes of a read at the end of the file: those beyond it are not delivered.
#[test]
fn bytes_that_a_library_reports_beyond_the_end_of_the_file_are_not_compared() {
    let profile = "beff-raw profile,1
library, \"Open MPI v4.1.4\"
ranks, 1
comm, 0, world
type, 0, BYTE
file, 0, out.dat

calls, 0, 4
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
20, 30, File_write_at, handle=1, offset=0, count=5, type=0, bytes=5
40, 50, File_read_at, handle=1, offset=0, count=10, type=0, bytes=10, from=5@0:20+0;5@hole
60, 70, File_close, handle=1
";
    // The fake library reports all bytes and delivers none.
    let (seen, _) = replay_profile(&profile.replace("5@0:20+0", "5@?"), 1, &["mpiio"], Pace::Fast);
    assert_repetition(&seen.passes[0], 4, [0, 10, 0]);
    let (seen, _) = replay_profile(profile, 1, &["mpiio"], Pace::Fast);
    assert_eq!(seen.passes[0].bytes_checked, 5, "known bytes are compared");
}

/// Rank 0 fills what both ranks write later, and reads what the other one wrote.
const FILLED_PROFILE: &str = "beff-raw profile,1
ranks, 2
comm, 0, world
type, 0, BYTE
file, 0, out.h5

calls, 0, 5
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
100, 110, File_write_at, handle=1, offset=0, count=2000, type=0, bytes=2000
300, 310, File_write_at, handle=1, offset=0, count=1000, type=0, bytes=1000
500, 510, File_read_at, handle=1, offset=1000, count=1000, type=0, bytes=1000, after=1@400, from=1000@1:400+0
9000, 9010, File_close, handle=1

calls, 1, 3
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
400, 410, File_write_at, handle=1, offset=1000, count=1000, type=0, bytes=1000, after=0@100
9000, 9010, File_close, handle=1
";

#[test]
fn changed_calls_alternate_with_the_unchanged_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.csv");
    std::fs::write(&path, FILLED_PROFILE).unwrap();
    let config = config(&path, directory.path(), &["posix", "fill-never"], Pace::Fast);
    let config = ReplayConfig { repeat: 3, what_if: Some(WhatIf::FillNever), ..config };
    let seen = ranks(2, |_| replay(&config, &Universe::init().unwrap().world())).remove(0);
    assert_eq!(seen.outcome, RunOutcome::Complete, "{:?} {:?}", seen.passes, seen.others);
    let order: Vec<_> = seen.passes.iter().map(|pass| (pass.backend.as_str(), pass.repetition)).collect();
    let (own, other) = ("posix", "fill-never");
    let rounds = [(own, 0), (other, 0), (own, 1), (other, 1), (other, 2), (own, 2), (own, 3), (other, 3)];
    assert_eq!(order, rounds, "each round begins with the other one");
    for pass in &seen.passes {
        let calls = if pass.backend == own { 8 } else { 7 };
        assert_repetition(pass, calls, if pass.is_timed() { [0; 3] } else { [1000, 0, 0] });
    }
    let file = |name: &str| std::fs::read(directory.path().join("run").join(name).join("file-0001")).unwrap();
    assert_eq!((file(own).len(), file(other).len()), (2000, 2000));
}
