//! Recording in a separate process: the recording is process-wide, so each test restarts its program.

use std::ffi::{c_int, CStr, CString};
use std::path::Path;
use std::process::Command;

use beff_trace::raw::{Event, ProcessFile, ProcessHeader, VERSION};
use beff_trace::{Call, RecordingStatus};

use crate::mpi::{pmpi, predefined_handles, Word, HANDLE_BYTES, OPEN_MPI, STANDARD_ABI};
use crate::original::{find_data, Symbol};
use crate::{clock, sink};

const DIRECTORY: &str = "BEFF_PROFILE_DIR";
/// Name of the test for which the process was started.
const ALONE: &str = "BEFF_TEST_ALONE";

/// Runs `body` in a process that records into a directory of its own, then `check` in this process on the recorded events.
pub fn in_own_process(name: &str, body: impl FnOnce(), check: impl FnOnce(ProcessHeader, Vec<Event>)) {
    if std::env::var(ALONE).is_ok_and(|alone| alone == name) {
        return body();
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(ALONE, name).env(DIRECTORY, directory.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
    let file = ProcessFile::open(&directory.path().join("rank-0.beff")).unwrap();
    let mut events = file.events();
    let all = events.by_ref().collect();
    check(ProcessHeader { end: events.end(), ..file.head().clone() }, all);
}

/// Starts the recording without MPI.
pub fn begin_recording(limit_bytes: u64) {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let head = ProcessHeader {
        version: VERSION,
        rank: 0,
        ranks: 1,
        host: "here".to_owned(),
        pid: std::process::id(),
        library: "none".to_owned(),
        command: vec!["a".to_owned()],
        started_unix_ns: clock::unix_ns(),
        clock_offset_ns: [0; 2],
        cost_ns: None,
        storage_bytes: None,
        end: RecordingStatus::Truncated,
        clock_samples: [clock::sample_clock(), clock::sample_clock()],
    };
    sink::begin(&Path::new(&directory).join("rank-0.beff"), head, limit_bytes);
    assert!(sink::is_recording());
}

/// Ends the recording of [`record`].
pub fn end_recording() {
    if let Some(mut inside) = crate::thread::CallGuard::enter() {
        inside.buffer().finish();
    }
    sink::end(|head| head.end = RecordingStatus::Complete);
}

pub fn load_mpi() {
    let loads = |path: &str| {
        let path = CString::new(path).unwrap();
        // SAFETY: the path is NUL-terminated; initialisers of an MPI library are harmless.
        !unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) }.is_null()
    };
    let all = env!("BEFF_TEST_MPI");
    assert!(all.split(':').any(loads), "none of {all} can be loaded");
}

/// Runs `work` with MPI initialized: Open MPI reports error classes only then.
pub fn with_mpi(work: impl FnOnce()) {
    load_mpi();
    assert_eq!(pmpi!(Init(0_usize, 0_usize)), 0);
    work();
    assert_eq!(pmpi!(Finalize()), 0);
}

/// A predefined handle: its number in MPICH, its symbol in Open MPI, its number in the standard ABI.
pub fn predefined(mpich: Word, open_mpi: &CStr, standard_abi: Word) -> Word {
    if STANDARD_ABI {
        standard_abi
    } else if OPEN_MPI {
        find_data(open_mpi)
    } else {
        mpich
    }
}

pub const STATUS_IGNORE: Word = if HANDLE_BYTES == 8 { 0 } else { 1 };

/// Fills a status with bytes and an error, unless it is ignored.
pub fn put_status(address: Word, bytes: u64, error: i32) {
    if address == STATUS_IGNORE {
        return;
    }
    if STANDARD_ABI {
        assert_eq!(pmpi!(Status_set_elements(address, predefined_handles().byte, bytes)), 0);
        // SAFETY: the test passes the address of memory for a status; MPI_ERROR is the third integer in the ABI.
        return unsafe { ((address + 8) as *mut i32).write_unaligned(error) };
    }
    let (count, bytes, place) =
        if OPEN_MPI { (16, bytes, 8) } else { (0, bytes & 0xffff_ffff | bytes >> 32 << 33, 16) };
    // SAFETY: the test passes the address of memory for a status.
    unsafe {
        ((address + count) as *mut u64).write_unaligned(bytes);
        ((address + place) as *mut i32).write_unaligned(error);
    }
}

/// The recorded calls, without times and addresses.
pub fn calls(events: &[Event]) -> Vec<Call> {
    let call = |event: &Event| match event {
        Event::Call(call) => {
            Some(Call { begin_ns: 0, end_ns: 0, buffer: None, unchanged_ns: None, ..(**call).clone() })
        }
        _ => None,
    };
    events.iter().filter_map(call).collect()
}
