//! Recording of a program, from its calls to the events read from the file.

use beff_trace::raw::{Event, BLOCK_BYTES};
use beff_trace::types::Datatype;
use beff_trace::{Amode, Call, Completion, ErrorClass, Function, RecordingStatus, Whence};

use super::*;
use crate::data::{blocking, nonblocking};
use crate::mpi::{
    beff_err_in_status, beff_modes, beff_status_size, beff_whences, constant, pmpi, predefined_handles, HANDLE_BYTES,
    OPEN_MPI, STANDARD_ABI,
};
use crate::testing::{
    begin_recording, calls, end_recording, in_own_process, load_mpi, predefined, put_status, with_mpi, STATUS_IGNORE,
};
use crate::thread::CallGuard;
use std::ffi::CStr;

const FILE: Word = 0x1230;
const TYPE: Word = 0x4560;

fn name(function: Function) -> Name {
    Name { function, large: false, pmpi: false }
}

/// Registers file and type, as opening 1 and type 5.
fn register_file_and_type() {
    assert_eq!(dictionary::file_opened(Some(FILE), None), 1);
    let mut inside = CallGuard::enter().unwrap();
    let lane = inside.buffer();
    assert_eq!(lane.file(FILE), Some(1));
    let slot = (TYPE ^ TYPE >> 4 ^ TYPE >> 9) & 15;
    lane.handle_cache.types[slot] = (TYPE, 6);
}

fn access_arguments(offset: Option<i64>, count: u32, memory: Word) -> AccessArguments {
    AccessArguments {
        file: FILE,
        offset: offset.map(|offset| offset as Word),
        count: count as Word,
        datatype: TYPE,
        memory,
    }
}

fn write(offset: i64, count: u32, memory: Word, bytes: u64) {
    let code =
        blocking(name(Function::WriteAt), access_arguments(Some(offset), count, memory), STATUS_IGNORE, |status| {
            put_status(status, bytes, 0);
            0
        });
    assert_eq!(code, 0);
}

fn expected_write(offset: i64, count: i64, bytes: u64) -> Call {
    Call {
        handle: Some(1),
        datatype: Some(5),
        offset: Some(offset),
        count: Some(count),
        bytes: Some(bytes),
        ..Call::new(Function::WriteAt, 0, 0)
    }
}

/// Accesses equal to the previous one, or different in one value, within and beyond a short record.
#[test]
fn data_accesses_are_read_back_as_recorded() {
    const CASES: [(i64, u32, u64); 10] = [
        (0, 3, 24),
        (24, 3, 24),
        (48, 3, 24),
        (72, 4, 24),
        (96, 4, 23),
        (-1, 4, 23),
        (i64::MAX, 4, 23),
        (5, 4, u32::MAX as u64),
        (6, 4, 1 << 32),
        (7, 4, (1 << 40) + 5),
    ];
    in_own_process(
        "table::tests::data_accesses_are_read_back_as_recorded",
        || {
            begin_recording(u64::MAX);
            register_file_and_type();
            for (n, (offset, count, bytes)) in CASES.into_iter().enumerate() {
                write(offset, count, 0x7000 + n / 3 * 0x100, bytes);
            }
            let code =
                blocking(name(Function::Read), access_arguments(None, u32::MAX, 0x9000), STATUS_IGNORE, |status| {
                    put_status(status, 9, 0);
                    0
                });
            assert_eq!(code, 0);
            end_recording();
        },
        |head, events| {
            assert_eq!(
                (head.end, head.clock_samples[1].ns > head.clock_samples[0].ns),
                (RecordingStatus::Complete, true)
            );
            let mut expected: Vec<Call> =
                CASES.map(|(offset, count, bytes)| expected_write(offset, count.into(), bytes)).into();
            expected.push(Call {
                function: Function::Read,
                offset: None,
                count: Some(-1),
                bytes: Some(9),
                ..expected_write(0, 0, 0)
            });
            assert_eq!(calls(&events), expected);
            let buffers = events.iter().map(|event| match event {
                Event::Call(call) => call.buffer,
                _ => None,
            });
            let places = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3].map(|n| Some(0x7000 + n * 0x100));
            assert_eq!(buffers.collect::<Vec<_>>(), [&places[..], &[Some(0x9000)]].concat());
        },
    );
}

/// The time of each call lies within that of its caller, in order, and long calls have their duration.
#[test]
fn times_are_those_of_the_calls() {
    in_own_process(
        "table::tests::times_are_those_of_the_calls",
        || {
            begin_recording(u64::MAX);
            register_file_and_type();
            for millis in [0, 20, 0, 5] {
                blocking(name(Function::WriteAt), access_arguments(Some(millis), 1, 0x7000), STATUS_IGNORE, |status| {
                    std::thread::sleep(std::time::Duration::from_millis(millis as u64));
                    put_status(status, 1, 0);
                    0
                });
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            end_recording();
        },
        |_, events| {
            let times = events.iter().map(|event| match event {
                Event::Call(call) => (call.begin_ns, call.end_ns, call.offset.unwrap() as u64 * 1_000_000),
                other => panic!("{other:?}"),
            });
            let times: Vec<_> = times.collect();
            assert_eq!(times.len(), 4);
            for (begin, end, slept) in &times {
                assert!((*slept..*slept + 500_000_000).contains(&(end - begin)), "{times:?}");
            }
            assert!(times.windows(2).all(|pair| pair[1].0 >= pair[0].1 + 10_000_000), "{times:?}");
        },
    );
}

/// Blocks are consecutive, threads are interleaved, and a buffer is reused by the next thread.
#[test]
fn many_calls_of_many_threads_are_all_there() {
    const CALLS: i64 = 6000;
    in_own_process(
        "table::tests::many_calls_of_many_threads_are_all_there",
        || {
            begin_recording(u64::MAX);
            register_file_and_type();
            for n in 0..CALLS {
                // No two equal ones, so that each takes 32 bytes and its address.
                write(n, n as u32 % 7, 0x7000 + n as Word % 5, 1);
            }
            for thread in 1..3 {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        (0..CALLS / 10).for_each(|n| {
                            files::record_simple(
                                name(Function::SetSize),
                                || 0,
                                |lane, call| {
                                    call.handle = lane.file(FILE);
                                    call.offset = Some(thread * 100_000 + n);
                                },
                            );
                        });
                    });
                });
            }
            end_recording();
        },
        |head, events| {
            assert_eq!(head.end, RecordingStatus::Complete);
            assert!(CALLS as usize * 32 > 2 * BLOCK_BYTES, "several blocks");
            let all = calls(&events);
            let of_thread = |thread| all.iter().filter(move |call| call.thread == thread).cloned().collect::<Vec<_>>();
            let expected: Vec<Call> = (0..CALLS).map(|n| expected_write(n, n % 7, 1)).collect();
            assert!(of_thread(0) == expected, "the first thread");
            for thread in 1..3 {
                let set = |n| Call {
                    handle: Some(1),
                    offset: Some(i64::from(thread) * 100_000 + n),
                    thread,
                    ..Call::new(Function::SetSize, 0, 0)
                };
                assert!(of_thread(thread) == (0..CALLS / 10).map(set).collect::<Vec<_>>(), "thread {thread}");
            }
            assert_eq!(all.len() as i64, CALLS + 2 * (CALLS / 10));
        },
    );
}

/// Nested calls of the library are not recorded, per thread, also after a failed call of the program.
#[test]
fn calls_of_the_library_itself_are_not_recorded() {
    in_own_process(
        "table::tests::calls_of_the_library_itself_are_not_recorded",
        || {
            load_mpi();
            begin_recording(u64::MAX);
            register_file_and_type();
            let sync = || files::record_simple(name(Function::Sync), || 0, |lane, call| call.handle = lane.file(FILE));
            let nested = || {
                write(1, 1, 0x7000, 1);
                sync();
                requests::intercept(name(Function::Wait), one(0, 0, Statuses::None), |_| 0);
                std::thread::scope(|scope| scope.spawn(sync).join().unwrap());
                0
            };
            files::record_simple(name(Function::SetSize), nested, |lane, call| call.handle = lane.file(FILE));
            blocking(name(Function::WriteAt), access_arguments(Some(2), 1, 0x7000), STATUS_IGNORE, |status| {
                put_status(status, 8, 0);
                nested()
            });
            sync();
            crate::name::exclude_pmpi(true);
            let by_pmpi = Name { pmpi: true, ..name(Function::Sync) };
            files::record_simple(by_pmpi, || 0, |_, _| panic!("it is only passed on"));
            end_recording();
            assert_eq!(files::record_simple(name(Function::Sync), || 7, |_, _| panic!("the recording has ended")), 7);
        },
        |_, events| {
            let recorded = calls(&events).into_iter().map(|call| (call.function, call.thread, call.offset));
            let other = |thread| (Function::Sync, thread, None);
            let mut recorded: Vec<_> = recorded.collect();
            recorded.sort_by_key(|(function, thread, _)| (*thread, *function as u8));
            let mut own =
                vec![(Function::WriteAt, 0, Some(2)), (Function::SetSize, 0, None), (Function::Sync, 0, None)];
            own.sort_by_key(|(function, _, _)| *function as u8);
            own.extend([other(1), other(2)]);
            assert_eq!(recorded, own);
        },
    );
}

#[test]
fn a_full_file_ends_the_recording_and_keeps_what_is_there() {
    in_own_process(
        "table::tests::a_full_file_ends_the_recording_and_keeps_what_is_there",
        || {
            // The head, the live block, and one closed block.
            begin_recording(3 * BLOCK_BYTES as u64);
            register_file_and_type();
            (0..20_000).for_each(|n| write(n, n as u32 % 7, 0x7000, 1));
            assert!(!crate::sink::is_recording());
        },
        |head, events| {
            assert_eq!(head.end, RecordingStatus::LimitReached);
            let all = calls(&events);
            assert!(all.len() > BLOCK_BYTES / 32 && all.len() < 3 * BLOCK_BYTES / 32, "{}", all.len());
            let expected: Vec<Call> = (0..all.len() as i64).map(|n| expected_write(n, n % 7, 1)).collect();
            assert!(all == expected);
        },
    );
}

/// As compact records and as events: only issued accesses are recorded.
#[test]
fn a_process_that_is_killed_loses_nothing() {
    in_own_process(
        "table::tests::a_process_that_is_killed_loses_nothing",
        || {
            begin_recording(u64::MAX);
            register_file_and_type();
            (0..3000).for_each(|n| write(n, 1, 0x7000, 1));
            // Not ended: neither `end_recording` nor a flush.
        },
        |head, events| {
            assert_eq!((head.end, calls(&events).len()), (RecordingStatus::Truncated, 3000));
        },
    );
}

/// Requests in the memory of the program.
struct RequestFixture(Vec<u64>);

impl RequestFixture {
    /// Posts writes that return these handles.
    fn begin(handles: &[Word]) -> Self {
        let all = Self(vec![0; handles.len()]);
        for (index, handle) in handles.iter().enumerate() {
            let at = all.at(index);
            nonblocking(name(Function::IwriteAt), access_arguments(Some(index as i64), 1, 0x7000), at, || {
                put_handle(at, *handle);
                0
            });
        }
        all
    }

    fn array(&self) -> Word {
        self.0.as_ptr() as Word
    }

    fn at(&self, index: usize) -> Word {
        self.array() + index * HANDLE_BYTES
    }

    /// Completes a request like the library.
    fn done(&self, index: usize) {
        put_handle(self.at(index), predefined_handles().request_null);
    }
}

fn put_handle(at: Word, handle: Word) {
    // SAFETY: memory of the test, for a handle of this library.
    unsafe {
        if HANDLE_BYTES == 8 {
            (at as *mut u64).write_unaligned(handle as u64);
        } else {
            (at as *mut u32).write_unaligned(handle as u32);
        }
    }
}

fn put(at: Word, value: i32) {
    // SAFETY: memory of the test, for an int.
    unsafe { (at as *mut i32).write_unaligned(value) };
}

fn completed(function: Function, requests: &[u64], done: &[(u64, Option<u64>)]) -> Call {
    Call {
        requests: requests.to_vec(),
        completions: done
            .iter()
            .map(|(request, bytes)| Completion { request: *request, bytes: *bytes, error: None })
            .collect(),
        ..Call::new(function, 0, 0)
    }
}

/// Each completion has its request and bytes, in any order and by any call.
#[test]
fn completions_belong_to_their_requests() {
    in_own_process(
        "table::tests::completions_belong_to_their_requests",
        || {
            with_mpi(|| {
                begin_recording(u64::MAX);
                register_file_and_type();
                let size = constant!(beff_status_size) as usize;
                let all = RequestFixture::begin(&[0x10, 0x20, 0x30, 0x40, 0x50, 0x60]);
                let statuses = vec![0_u64; 64];
                let statuses = statuses.as_ptr() as Word;
                let (found, flag, indices) = (vec![0_i32; 1], vec![0_i32; 1], vec![0_i32; 8]);
                let (found, flag, indices) = (found.as_ptr() as Word, flag.as_ptr() as Word, indices.as_ptr() as Word);

                // Nothing complete, twice.
                for _ in 0..2 {
                    requests::intercept(
                        name(Function::Testall),
                        many(6, all.array(), flag, Statuses::Each(statuses)),
                        |_| 0,
                    );
                }
                // Two of them, returned in another order than that of the array.
                let listed = Statuses::Listed(statuses, found, indices);
                requests::intercept(name(Function::Waitsome), many(6, all.array(), 0, listed), |statuses| {
                    put(found, 2);
                    for (place, (index, bytes)) in [(4, 44), (1, 11)].into_iter().enumerate() {
                        put(indices + 4 * place, index as i32);
                        put_status(statuses + place * size, bytes, 0);
                        all.done(index);
                    }
                    0
                });
                // A single one, with an ignored status.
                requests::intercept(name(Function::Wait), one(all.at(2), 0, Statuses::One(STATUS_IGNORE)), |status| {
                    put_status(status, 33, 0);
                    all.done(2);
                    0
                });
                // One of any, found after an unsuccessful test.
                requests::intercept(
                    name(Function::Testany),
                    many(6, all.array(), flag, Statuses::One(statuses)),
                    |_| 0,
                );
                requests::intercept(
                    name(Function::Waitany),
                    many(6, all.array(), 0, Statuses::One(statuses)),
                    |status| {
                        put_status(status, 55, 0);
                        all.done(5);
                        0
                    },
                );
                // The others, one of them with an error.
                let failed = constant!(beff_err_in_status);
                let code = requests::intercept(
                    name(Function::Waitall),
                    many(6, all.array(), 0, Statuses::Each(statuses)),
                    |statuses| {
                        put_status(statuses, 1, 0);
                        put_status(statuses + 3 * size, 0, failed);
                        all.done(0);
                        all.done(3);
                        failed
                    },
                );
                assert_eq!(code, failed);
                // Nothing is pending: the call is only passed on.
                requests::intercept(name(Function::Waitall), many(6, all.array(), 0, Statuses::Each(statuses)), |_| 0);
                end_recording();
            });
        },
        |_, events| {
            let all = calls(&events);
            let begun: Vec<_> = all[..6].iter().map(|call| (call.function, call.offset, call.request)).collect();
            let expected = (0..6).map(|n| (Function::IwriteAt, Some(n), Some(n as u64 + 1)));
            assert_eq!(begun, expected.collect::<Vec<_>>());
            let mut waitsome = completed(Function::Waitsome, &[1, 2, 3, 4, 5, 6], &[(2, Some(11)), (5, Some(44))]);
            waitsome.polls = 2;
            let mut wait = completed(Function::Wait, &[3], &[(3, Some(33))]);
            wait.polls = 2;
            let mut waitany = completed(Function::Waitany, &[1, 4, 6], &[(6, Some(55))]);
            waitany.polls = 3;
            let in_status = ErrorClass::from_name("MPI_ERR_IN_STATUS");
            let mut waitall = completed(Function::Waitall, &[1, 4], &[(1, Some(1)), (4, None)]);
            (waitall.error, waitall.completions[1].error, waitall.polls) = (in_status, in_status, 3);
            assert_eq!(all[6..], [waitsome, wait, waitany, waitall]);
        },
    );
}

/// Requests that complete at once may share a handle; freed ones have no completion, queried ones stay.
#[test]
fn requests_of_one_handle_are_distinguished_and_freed_ones_forgotten() {
    in_own_process(
        "table::tests::requests_of_one_handle_are_distinguished_and_freed_ones_forgotten",
        || {
            load_mpi();
            begin_recording(u64::MAX);
            register_file_and_type();
            let all = RequestFixture::begin(&[0x10, 0x10, 0x20, 0x30]);
            let mut status = [0_u64; 8];
            let status = &raw mut status as Word;
            let wait = |index: usize, bytes: u64| {
                requests::intercept(name(Function::Wait), one(all.at(index), 0, Statuses::One(status)), |status| {
                    put_status(status, bytes, 0);
                    all.done(index);
                    0
                });
            };
            wait(1, 22);
            wait(0, 11);
            let flag = [1_i32];
            let asks = requests::RequestArguments {
                completes: false,
                ..one(all.at(2), flag.as_ptr() as Word, Statuses::None)
            };
            requests::intercept(name(Function::RequestGetStatus), asks, |_| 0);
            requests::intercept(name(Function::RequestFree), one(all.at(3), 0, Statuses::None), |_| {
                all.done(3);
                0
            });
            wait(2, 33);
            end_recording();
        },
        |_, events| {
            let all = calls(&events);
            let mut asked = completed(Function::RequestGetStatus, &[3], &[]);
            asked.flag = Some(true);
            let expected = [
                completed(Function::Wait, &[2], &[(2, Some(22))]),
                completed(Function::Wait, &[1], &[(1, Some(11))]),
                asked,
                completed(Function::RequestFree, &[4], &[]),
                completed(Function::Wait, &[3], &[(3, Some(33))]),
            ];
            assert_eq!(all[4..], expected);
        },
    );
}

/// A reused handle is another file; one that was never opened is none.
#[test]
fn handles_that_come_again_are_other_files() {
    in_own_process(
        "table::tests::handles_that_come_again_are_other_files",
        || {
            with_mpi(|| {
                begin_recording(u64::MAX);
                let sync = |file| {
                    files::record_simple(name(Function::Sync), || 0, |lane, call| call.handle = lane.file(file));
                };
                assert_eq!(dictionary::file_opened(Some(0x100), None), 1);
                assert_eq!(dictionary::file_opened(None, None), 2, "a failed one counts");
                assert_eq!(dictionary::file_opened(Some(0x200), None), 3);
                sync(0x100);
                sync(0x200);
                let word = 0x100_usize;
                files::close(name(Function::Close), &raw const word as Word, || 0);
                sync(0x100);
                assert_eq!(dictionary::file_opened(Some(0x100), None), 4);
                sync(0x100);
                let failed = files::close(name(Function::Close), &raw const word as Word, || 1);
                assert_eq!(failed, 1);
                sync(0x100);
                end_recording();
            });
        },
        |_, events| {
            let recorded: Vec<_> = calls(&events).into_iter().map(|call| (call.function, call.handle)).collect();
            let sync = |handle| (Function::Sync, handle);
            let close = |handle| (Function::Close, Some(handle));
            let expected = [sync(Some(1)), sync(Some(3)), close(1), sync(None), sync(Some(4)), close(4), sync(Some(4))];
            assert_eq!(recorded, expected);
        },
    );
}

#[test]
fn removed_files_are_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    in_own_process(
        "table::tests::removed_files_are_reported_once",
        || {
            for (handle, name) in [(0x10, "a"), (0x20, "b"), (0x30, "c")] {
                let path = path(name);
                std::fs::write(&path, "x").unwrap();
                let number = dictionary::file_opened(Some(handle), Some(&path));
                dictionary::file_closed(handle, Some(number));
            }
            assert_eq!(dictionary::take_missing_files(), [""; 0]);
            std::fs::remove_file(path("a")).unwrap();
            std::fs::remove_file(path("b")).unwrap();
            std::fs::remove_file(path("c")).unwrap();
            dictionary::file_deleted(&path("b"));
            let number = dictionary::file_opened(Some(0x30), Some(&path("c")));
            assert_eq!(dictionary::take_missing_files(), [path("a")]);
            assert_eq!(dictionary::take_missing_files(), [""; 0]);
            dictionary::file_closed(0x30, Some(number + 1));
            assert_eq!(dictionary::take_missing_files(), [""; 0], "the handle of another opening");
            dictionary::file_closed(0x30, Some(number));
            assert_eq!(dictionary::take_missing_files(), [path("c")]);
            begin_recording(u64::MAX);
        },
        |_, _| {},
    );
}

fn word<T>(value: &T) -> Word {
    std::ptr::from_ref(value) as Word
}

/// Arguments of the program.
struct Handles {
    int: Word,
    byte: Word,
    vector: Word,
    info: Word,
    world: Word,
    none: Word,
    modes: [c_int; 9],
    current: Word,
    end: Word,
}

impl Handles {
    fn new() -> Self {
        let (int, byte) =
            (predefined(0x4c00_0405, c"ompi_mpi_int", 0x209), predefined(0x4c00_010d, c"ompi_mpi_byte", 0x247));
        let (mut vector, mut info): (Word, Word) = (0, 0);
        assert_eq!(pmpi!(Type_vector(3_usize, 2_usize, 4_usize, int, &raw mut vector)), 0);
        assert_eq!(pmpi!(Type_commit(&raw mut vector)), 0);
        assert_eq!(pmpi!(Info_create(&raw mut info)), 0);
        assert_eq!(pmpi!(Info_set(info, c"cb_nodes".as_ptr(), c"1".as_ptr())), 0);
        Self {
            int,
            byte,
            vector,
            info,
            world: predefined_handles().comm_world,
            none: predefined_handles().info_null,
            modes: constant!(beff_modes),
            current: constant!(beff_whences)[1] as Word,
            end: constant!(beff_whences)[2] as Word,
        }
    }
}

/// `path` is NUL-terminated.
fn run_program(path: &str, with: &Handles) {
    let Handles { int, byte, mut vector, info, world, none, modes, current, end } = *with;
    // SAFETY: MPI calls with the arguments of their prototypes, in order; all memory lives until the end.
    unsafe {
        let path = path.as_ptr() as Word;
        let mut file: Word = 0;
        let at = &raw mut file as Word;
        assert_ne!(MPI_File_open(world, path, modes[0] as Word, none, at), 0);
        assert_eq!(MPI_File_open(world, path, (modes[1] | modes[3]) as Word, info, at), 0);
        assert_eq!(MPI_File_set_view(file, 8, int, vector, c"native".as_ptr() as Word, none), 0);
        let data: Vec<i32> = (0..64).collect();
        let memory = data.as_ptr() as Word;
        assert_eq!(MPI_File_write_at(file, 2, memory, 6, int, STATUS_IGNORE), 0);
        assert_eq!(MPI_File_write(file, memory, 1, vector, STATUS_IGNORE), 0);
        let status = [0_u64; 8];
        assert_eq!(PMPI_File_read_at(file, 0, memory, 20, byte, word(&status)), 0);
        let mut request: Word = 0;
        assert_eq!(MPI_File_iwrite_at(file, 12, memory, 2, vector, &raw mut request as Word), 0);
        assert_eq!(MPI_Wait(&raw mut request as Word, STATUS_IGNORE), 0);
        assert_eq!(MPI_File_seek(file, 0, end), 0);
        assert_eq!(MPI_File_seek(file, 3, current), 0);
        let mut position: i64 = 0;
        assert_eq!(MPI_File_get_position(file, &raw mut position as Word), 0);
        assert_eq!(MPI_File_sync(file), 0);
        assert_eq!(MPI_File_set_size(file, 1000), 0);
        assert_eq!(MPI_Type_free(&raw mut vector as Word), 0);
        assert_eq!(MPI_File_close(at), 0);
        assert_eq!(MPI_File_delete(path, none), 0);
        assert_eq!(MPI_Finalize(), 0);
    }
}

/// A complete program with the real library on one rank, through the exported names.
#[test]
fn a_program_is_recorded_with_types_views_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    in_own_process(
        "table::tests::a_program_is_recorded_with_types_views_and_ends",
        || {
            load_mpi();
            // SAFETY: no arguments are passed, which is allowed.
            assert_eq!(unsafe { MPI_Init(0, 0) }, 0);
            run_program(&format!("{}/f\0", directory.path().display()), &Handles::new());
            assert!(!crate::sink::is_recording());
        },
        |head, events| {
            assert_eq!((head.rank, head.ranks, head.end), (0, 1, RecordingStatus::Complete));
            let name = if STANDARD_ABI {
                "MPI"
            } else if OPEN_MPI {
                "Open MPI"
            } else {
                "MPICH"
            };
            assert!(head.library.contains(name), "{}", head.library);
            assert_eq!(head.clock_offset_ns, [0; 2]);
            assert!(head.command.iter().any(|word| word == "--exact"), "{:?}", head.command);
            let types: Vec<Datatype> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Type { id, datatype } => Some((*id, datatype.clone())),
                    _ => None,
                })
                .enumerate()
                .map(|(n, (id, datatype))| {
                    assert_eq!(n as u32, id, "numbered in order");
                    datatype
                })
                .collect();
            let named = |name: &str, bytes: u64| Datatype::Named {
                name: name.to_owned(),
                size_bytes: bytes,
                extent_bytes: bytes as i64,
            };
            let (int, vector, byte) =
                (named("INT", 4), Datatype::Vector { count: 3, block: 2, stride: 4, of: 0 }, named("BYTE", 1));
            assert_eq!(types, [int, vector, byte]);
            assert!(events.iter().any(|event| *event == Event::Comm { id: 0, ranks: vec![0] }));
            let asked = Event::Info { id: 0, pairs: vec![("cb_nodes".to_owned(), "1".to_owned())] };
            assert!(events.contains(&asked), "{events:?}");
            let all = calls(&events);
            let functions: Vec<Function> = all.iter().map(|call| call.function).collect();
            use Function::*;
            assert_eq!(
                functions,
                [
                    Init,
                    Open,
                    Open,
                    SetView,
                    WriteAt,
                    Write,
                    ReadAt,
                    IwriteAt,
                    Wait,
                    Seek,
                    Seek,
                    GetPosition,
                    Sync,
                    SetSize,
                    Close,
                    Delete,
                    Finalize
                ]
            );
            let no_file = ErrorClass::from_name("MPI_ERR_NO_SUCH_FILE");
            assert_eq!((all[1].handle, all[1].error, all[1].amode), (Some(1), no_file, Some(Amode(1))));
            let opened = &all[2];
            assert_eq!((opened.handle, opened.error, opened.amode), (Some(2), None, Some(Amode(1 << 1 | 1 << 3))));
            assert_eq!((opened.comm, opened.info, opened.number), (Some(0), Some(0), Some(-1)));
            assert!(opened.name.as_ref().is_some_and(|name| name.ends_with("/f")) && opened.granted.is_some());
            let view = &all[3];
            assert_eq!((view.handle, view.offset, view.name.as_deref()), (Some(2), Some(8), None));
            assert_eq!((view.etype, view.filetype, view.info), (Some(0), Some(1), None));
            let access = |call: &Call| (call.offset, call.count, call.datatype, call.bytes, call.request);
            assert!(all[4..8].iter().all(|call| call.handle == Some(2)));
            assert_eq!(access(&all[4]), (Some(2), Some(6), Some(0), Some(24), None));
            assert_eq!(access(&all[5]), (None, Some(1), Some(1), Some(24), None));
            assert_eq!(access(&all[6]), (Some(0), Some(20), Some(2), Some(20), None));
            assert_eq!(access(&all[7]), (Some(12), Some(2), Some(1), None, Some(1)));
            assert_eq!(all[8], completed(Wait, &[1], &[(1, Some(48))]));
            // The view has 12 + 12 elements up to the end of the last write.
            assert_eq!((all[9].offset, all[9].whence, all[9].number), (Some(0), Some(Whence::End), Some(24)));
            assert_eq!((all[10].offset, all[10].whence, all[10].number), (Some(3), Some(Whence::Current), None));
            assert_eq!(all[11].number, Some(27), "the end, and 3 more");
            assert_eq!((all[13].offset, all[14].handle), (Some(1000), Some(2)));
            assert!(all[15].name.as_ref().is_some_and(|name| name.ends_with("/f")));
        },
    );
}

#[test]
fn an_aborted_program_says_so() {
    in_own_process(
        "table::tests::an_aborted_program_says_so",
        || {
            load_mpi();
            begin_recording(u64::MAX);
            program::abort(name(Function::Abort), 77, || 0);
            assert!(!crate::sink::is_recording());
        },
        |head, events| {
            let recorded: Vec<_> = calls(&events).into_iter().map(|call| (call.function, call.number)).collect();
            assert_eq!((head.end, recorded), (RecordingStatus::Aborted, vec![(Function::Abort, Some(77))]));
        },
    );
}
