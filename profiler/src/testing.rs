//! A recording in a process of its own: what is recorded belongs to the process, so each test starts its program again.

use std::ffi::{c_int, CStr, CString};
use std::path::Path;
use std::process::Command;

use beff_trace::raw::{Event, ProcessFile, ProcessHead, VERSION};
use beff_trace::{Call, End};

use crate::mpi::{pmpi, Word, OPEN_MPI};
use crate::original::{find_data, Symbol};
use crate::{clock, sink};

const DIRECTORY: &str = "BEFF_PROFILE_DIR";
/// Which test the process is started for.
const ALONE: &str = "BEFF_TEST_ALONE";

/// Runs `body` in a process of its own that records into the directory it gets, and then `check` here, on what was recorded.
pub fn alone(name: &str, body: impl FnOnce(), check: impl FnOnce(ProcessHead, Vec<Event>)) {
    if std::env::var(ALONE).is_ok_and(|alone| alone == name) {
        return body();
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(ALONE, name).env(DIRECTORY, directory.path());
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{}\n{told}", output.status);
    let file = ProcessFile::open(&directory.path().join("rank-0.beff")).unwrap();
    let mut events = file.events();
    let all = events.by_ref().collect();
    check(ProcessHead { end: events.end(), ..file.head().clone() }, all);
}

/// Begins to record without an MPI that has begun.
pub fn record(limit_bytes: u64) {
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let head = ProcessHead {
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
        end: End::Cut,
        moments: [clock::moment(), clock::moment()],
    };
    sink::begin(&Path::new(&directory).join("rank-0.beff"), head, limit_bytes);
    assert!(sink::recording());
}

/// Ends what [`record`] began.
pub fn end() {
    if let Some(mut inside) = crate::thread::Inside::enter() {
        inside.lane().finish();
    }
    sink::end(|head| head.end = End::Complete);
}

/// Loads the MPI library this was built for.
pub fn load_mpi() {
    let loads = |path: &str| {
        let path = CString::new(path).unwrap();
        // SAFETY: the path ends with zero; a library of MPI has no initialisers that harm.
        !unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) }.is_null()
    };
    let all = env!("BEFF_TEST_MPI");
    assert!(all.split(':').any(loads), "none of {all} can be loaded");
}

/// Runs `work` while MPI runs: Open MPI tells the class of an error only then.
pub fn with_mpi(work: impl FnOnce()) {
    load_mpi();
    assert_eq!(pmpi!(Init(0_usize, 0_usize)), 0);
    work();
    assert_eq!(pmpi!(Finalize()), 0);
}

/// A predefined handle: the number that MPICH has for it, or the symbol of Open MPI.
pub fn predefined(mpich: Word, open_mpi: &CStr) -> Word {
    if OPEN_MPI {
        find_data(open_mpi)
    } else {
        mpich
    }
}

/// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
pub const IGNORED: Word = if OPEN_MPI { 0 } else { 1 };

/// A status that tells so many bytes, and an error; nothing where none is wanted.
pub fn put_status(address: Word, bytes: u64, error: i32) {
    if address == IGNORED {
        return;
    }
    let (count, bytes, place) =
        if OPEN_MPI { (16, bytes, 8) } else { (0, bytes & 0xffff_ffff | bytes >> 32 << 33, 16) };
    // SAFETY: the test gives the address of memory for a status.
    unsafe {
        ((address + count) as *mut u64).write_unaligned(bytes);
        ((address + place) as *mut i32).write_unaligned(error);
    }
}

/// The calls among what was recorded, without their times and addresses.
pub fn calls(events: &[Event]) -> Vec<Call> {
    let call = |event: &Event| match event {
        Event::Call(call) => {
            Some(Call { begin_ns: 0, end_ns: 0, buffer: None, unchanged_ns: None, ..(**call).clone() })
        }
        _ => None,
    };
    events.iter().filter_map(call).collect()
}
