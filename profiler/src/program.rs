//! Initialization and finalization of MPI: creates and completes the file of the process.

use std::ffi::{c_int, CStr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, Once};

use beff_trace::raw::clock::ClockSample;
use beff_trace::raw::{ProcessHeader, VERSION};
use beff_trace::{Call, Function, RecordingStatus};

use crate::clock::{self, ticks};
use crate::environment::{self, variable};
use crate::message::report;
#[cfg(standard_abi)]
use crate::mpi::{beff_file_null, constant};
use crate::mpi::{handle, library_version, pmpi, predefined_handles, Word, OPEN_MPI, STANDARD_ABI};
use crate::name::{exclude_pmpi, is_pmpi_excluded, Name};
use crate::original::Symbol;
use crate::thread::{is_inside_call, CallGuard};
use crate::world::{self, WorldStart};
use crate::{cost, decode, hosts, merge, sink};

/// Open sessions, including MPI_Init.
static OPEN_SESSIONS: AtomicU32 = AtomicU32::new(0);
static BEGIN_OFFSET_NS: AtomicI64 = AtomicI64::new(0);
/// Load time of this library: the first of two moments that convert ticks to ns, until the end replaces it.
static LOAD_MOMENT: Mutex<Option<ClockSample>> = Mutex::new(None);

/// At load, in every process: chooses the clock if the process may be recorded.
pub fn on_load() {
    if std::env::var_os("BEFF_PROFILE_DIR").is_some() {
        clock::choose_clock();
        if let Ok(mut loaded) = LOAD_MOMENT.lock() {
            *loaded = Some(clock::sample_clock());
        }
    }
}

pub fn init(name: Name, provided: Word, call: impl FnOnce() -> c_int) -> c_int {
    let begin = ticks();
    let code = call();
    let end = ticks();
    if code == 0 {
        start_recording(predefined_handles().comm_world, 0);
        environment::hide();
        OPEN_SESSIONS.fetch_add(1, Ordering::Relaxed);
        record_now(name, begin, end, |call| {
            // SAFETY: the call has written the thread level.
            call.number = (provided != 0).then(|| i64::from(unsafe { *(provided as *const c_int) }));
        });
    }
    code
}

#[cfg_attr(not(mpi_sessions), allow(dead_code))]
pub fn session_init(name: Name, session: Word, call: impl FnOnce() -> c_int) -> c_int {
    let begin = ticks();
    let code = call();
    let end = ticks();
    if code == 0 {
        // SAFETY: the call has written a session there.
        let session = unsafe { crate::mpi::handle_at(session, 0) };
        start_recording(predefined_handles().comm_null, session);
        environment::hide();
        OPEN_SESSIONS.fetch_add(1, Ordering::Relaxed);
        record_now(name, begin, end, |_| {});
    }
    code
}

/// Records a call that began before the recording or ends with it.
fn record_now(name: Name, begin: u64, end: u64, fill: impl FnOnce(&mut Call)) {
    if let Some(mut inside) = CallGuard::enter() {
        let mut call = name.new_call(begin, end, 0);
        fill(&mut call);
        inside.buffer().record_call(&mut call);
    }
}

/// MPI_Finalize and MPI_Session_finalize. Attributes of MPI_COMM_SELF may close files in these calls, so the recording continues until
/// they return.
pub fn finalize(name: Name, call: impl FnOnce() -> c_int) -> c_int {
    sink::report_loss();
    let recorded = sink::is_recording() && is_outermost(name.pmpi);
    if recorded {
        let now = ticks();
        record_now(name, now, now, |_| {});
    }
    let last = OPEN_SESSIONS.load(Ordering::Relaxed) <= 1;
    let begin_ns = BEGIN_OFFSET_NS.load(Ordering::Relaxed);
    let offset = if last && name.function == Function::Finalize { hosts::end_offset_ns(begin_ns) } else { begin_ns };
    if !recorded {
        return call();
    }
    // The library itself uses these names for its files meanwhile.
    exclude_pmpi(last);
    let code = call();
    OPEN_SESSIONS.fetch_sub(1, Ordering::Relaxed);
    if last {
        finish_recording(RecordingStatus::Complete, offset);
    }
    code
}

fn is_outermost(pmpi: bool) -> bool {
    !is_passed_through(pmpi) && !is_inside_call()
}

fn is_passed_through(pmpi: bool) -> bool {
    pmpi && is_pmpi_excluded()
}

/// MPI_Abort, also by an error handler inside another call.
pub fn abort(name: Name, code: Word, call: impl FnOnce() -> c_int) -> c_int {
    sink::report_loss();
    if sink::is_recording() && !is_passed_through(name.pmpi) {
        let now = ticks();
        record_now(name, now, now, |call| call.number = Some(i64::from(code as c_int)));
        finish_recording(RecordingStatus::Aborted, BEGIN_OFFSET_NS.load(Ordering::Relaxed));
    }
    call()
}

fn finish_recording(end: RecordingStatus, offset_ns: i64) {
    if let Some(mut inside) = CallGuard::enter() {
        inside.buffer().finish();
    }
    let mut merge_here = None;
    sink::end(|head| {
        head.end = end;
        head.clock_offset_ns[1] = offset_ns;
        head.storage_bytes = storage_bytes();
        merge_here = (head.rank == 0 && end == RecordingStatus::Complete).then_some(head.ranks);
    });
    if let (Some(ranks), Some(out)) = (merge_here, variable("BEFF_PROFILE_OUT")) {
        if let Some(recording) = variable("BEFF_PROFILE_DIR") {
            let (directory, out) = world::merge_paths(recording, out);
            merge::merge_after_finalize(&directory, &out, ranks);
        }
    }
}

/// Bytes read from and written to storage, as counted by the kernel.
fn storage_bytes() -> Option<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some([value("read_bytes:")?, value("write_bytes:")?])
}

fn start_recording(world: Word, session: Word) {
    if sink::is_recording() || OPEN_SESSIONS.load(Ordering::Relaxed) > 0 || !is_matching_mpi() {
        return;
    }
    let Some((rank, ranks)) = (if session == 0 { world_rank(world) } else { session_rank(session) }) else {
        return report("cannot determine the rank of this process, which is not recorded");
    };
    let Some(recording) = variable("BEFF_PROFILE_DIR").filter(|directory| !directory.is_empty()) else {
        return world::report_unrecorded(
            rank,
            ranks,
            "BEFF_PROFILE_DIR, the directory for the recording, is not set. `beff-raw profile -- COMMAND` sets it",
        );
    };
    let offset = if session == 0 { hosts::offset_ns() } else { 0 };
    BEGIN_OFFSET_NS.store(offset, Ordering::Relaxed);
    let loaded = LOAD_MOMENT.lock().ok().and_then(|loaded| *loaded).unwrap_or_default();
    let head = ProcessHeader {
        version: VERSION,
        rank,
        ranks,
        host: hosts::host_name(),
        pid: std::process::id(),
        library: library_version(),
        command: command(),
        started_unix_ns: clock::unix_ns(),
        clock_offset_ns: [offset; 2],
        cost_ns: cost::record_cost_ns(),
        storage_bytes: None,
        end: RecordingStatus::Truncated,
        clock_samples: [loaded, clock::sample_clock()],
    };
    let limit = variable("BEFF_PROFILE_LIMIT_BYTES");
    let limit_bytes = match limit.as_deref().map(|limit| limit.to_string_lossy().parse()) {
        None => u64::MAX,
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) => return report("BEFF_PROFILE_LIMIT_BYTES is not a number of bytes; nothing is recorded"),
    };
    let start = WorldStart { is_spawned: session == 0 && is_spawned(), ranks };
    let Some(directory) = world::enter_directory(&PathBuf::from(recording), rank, &start) else { return };
    let file = directory.join(format!("rank-{rank}.beff"));
    if file.symlink_metadata().is_ok() {
        let reason = format!(
            "{} contains the recording of another program. Give each program a recording of its own",
            directory.display()
        );
        return world::report_unrecorded(rank, ranks, &reason);
    }
    register_fork_handler();
    sink::begin(&file, head, limit_bytes);
}

fn command() -> Vec<String> {
    let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn world_rank(world: Word) -> Option<(u32, u32)> {
    let (mut rank, mut ranks): (c_int, c_int) = (0, 0);
    let fine = pmpi!(Comm_rank(world, &raw mut rank)) == 0 && pmpi!(Comm_size(world, &raw mut ranks)) == 0;
    fine.then_some((u32::try_from(rank).ok()?, u32::try_from(ranks).ok()?))
}

/// True if MPI_Comm_spawn started this process.
fn is_spawned() -> bool {
    let mut parent: Word = predefined_handles().comm_null;
    pmpi!(Comm_get_parent(&raw mut parent)) == 0 && handle(parent) != predefined_handles().comm_null
}

fn session_rank(session: Word) -> Option<(u32, u32)> {
    let mut group: Word = 0;
    let (mut rank, mut ranks): (c_int, c_int) = (0, 0);
    let fine = pmpi!(Group_from_session_pset(session, c"mpi://WORLD".as_ptr(), &raw mut group)) == 0
        && pmpi!(Group_rank(group, &raw mut rank)) == 0
        && pmpi!(Group_size(group, &raw mut ranks)) == 0;
    decode::WORLD_GROUP.store(group, Ordering::Relaxed);
    fine.then_some((u32::try_from(rank).ok()?, u32::try_from(ranks).ok()?))
}

/// False, with a message, if this library is built for another MPI than the program's: handles would be misinterpreted.
fn is_matching_mpi() -> bool {
    let version = library_version();
    let open_mpi = version.contains("Open MPI");
    let standard_abi = crate::original::library_with(c"PMPI_Init").is_some_and(|name| name.contains("libmpi_abi"));
    if standard_abi == STANDARD_ABI && (open_mpi == OPEN_MPI || standard_abi) {
        return has_constants_of_library();
    }
    let own = match () {
        () if STANDARD_ABI => "the standard ABI",
        () if OPEN_MPI => "Open MPI",
        () => "MPICH and derivatives",
    };
    let first = version.lines().next().unwrap_or("another MPI");
    let abi = if standard_abi { " by the standard ABI" } else { "" };
    report(&format!("built for {own}, but the program runs with {first}{abi}: nothing is recorded"));
    false
}

/// False, with a message, if the library numbers constants of the standard ABI differently: MPICH 5.0.2 and Intel MPI 2021.19 disagree on
/// MPI_ERRORS_RETURN, the default handler of files, and on MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END.
#[cfg(standard_abi)]
fn has_constants_of_library() -> bool {
    let (file, mut handler): (Word, Word) = (constant!(beff_file_null), 0);
    if pmpi!(File_get_errhandler(file, &raw mut handler)) != 0 {
        return true;
    }
    if handler == predefined_handles().errors_return {
        return true;
    }
    report("built with an mpi.h whose constants are not those of this library, although both have the standard ABI: nothing is recorded");
    false
}

#[cfg(not(standard_abi))]
fn has_constants_of_library() -> bool {
    true
}

extern "C" fn in_child() {
    sink::disable();
    hosts::reset_in_child();
}

/// Disables the recording in forked children.
fn register_fork_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores numbers.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
