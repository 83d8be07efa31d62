//! Begin and end of MPI: the file of the process is made, and closed.

use std::ffi::{c_int, CStr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, Once};

use beff_trace::raw::clock::Moment;
use beff_trace::raw::{ProcessHead, VERSION};
use beff_trace::{Call, End, Function};

use crate::clock::{self, ticks};
use crate::message::say;
use crate::mpi::{constants, library_version, pmpi, Word};
use crate::name::{without_pmpi, without_pmpi_from_here, Name};
use crate::original::Symbol;
use crate::thread::{inside, Inside};
use crate::{cost, decode, hosts, merge, sink};

/// Sessions that are open, and whether MPI_Init was called.
static OPEN: AtomicU32 = AtomicU32::new(0);
static BEGIN_OFFSET_NS: AtomicI64 = AtomicI64::new(0);
/// When this library was loaded: the first of the two moments that turn ticks into ns, until the end brings a later one.
static LOADED: Mutex<Option<Moment>> = Mutex::new(None);

/// At the load of the library, in every process: chooses the clock if this process may be recorded.
pub fn loaded() {
    if std::env::var_os("BEFF_PROFILE_DIR").is_some() {
        clock::choose();
        if let Ok(mut loaded) = LOADED.lock() {
            *loaded = Some(clock::moment());
        }
    }
}

/// MPI_Init and MPI_Init_thread.
pub fn init(name: Name, provided: Word, call: impl FnOnce() -> c_int) -> c_int {
    let begin = ticks();
    let code = call();
    let end = ticks();
    if code == 0 {
        start(constants().comm_world, 0);
        OPEN.fetch_add(1, Ordering::Relaxed);
        note(name, begin, end, |call| {
            // SAFETY: the call has answered the level.
            call.number = (provided != 0).then(|| i64::from(unsafe { *(provided as *const c_int) }));
        });
    }
    code
}

/// MPI_Session_init.
#[cfg_attr(not(mpi_sessions), allow(dead_code))]
pub fn session_init(name: Name, session: Word, call: impl FnOnce() -> c_int) -> c_int {
    let begin = ticks();
    let code = call();
    let end = ticks();
    if code == 0 {
        // SAFETY: the call has left one there.
        let session = unsafe { crate::mpi::handle_at(session, 0) };
        start(constants().comm_null, session);
        OPEN.fetch_add(1, Ordering::Relaxed);
        note(name, begin, end, |_| {});
    }
    code
}

/// Records a call that began before the recording, or that ends with it.
fn note(name: Name, begin: u64, end: u64, fill: impl FnOnce(&mut Call)) {
    if let Some(mut inside) = Inside::enter() {
        let mut call = name.call(begin, end, 0);
        fill(&mut call);
        inside.lane().call(&mut call);
    }
}

/// MPI_Finalize, and MPI_Session_finalize. Files that are closed by attributes of MPI_COMM_SELF are closed in there, so the recording
/// goes on until it is over.
pub fn finalize(name: Name, call: impl FnOnce() -> c_int) -> c_int {
    let recorded = sink::recording() && outermost(name.pmpi);
    if recorded {
        let now = ticks();
        note(name, now, now, |_| {});
    }
    let last = OPEN.load(Ordering::Relaxed) <= 1;
    let begin_ns = BEGIN_OFFSET_NS.load(Ordering::Relaxed);
    let offset = if last && name.function == Function::Finalize { hosts::offset_again_ns(begin_ns) } else { begin_ns };
    if !recorded {
        return call();
    }
    // What the library itself does to its files in there goes by these names.
    without_pmpi_from_here(last);
    let code = call();
    OPEN.fetch_sub(1, Ordering::Relaxed);
    if last {
        finish(End::Complete, offset);
    }
    code
}

fn outermost(pmpi: bool) -> bool {
    !passed_on(pmpi) && !inside()
}

fn passed_on(pmpi: bool) -> bool {
    pmpi && without_pmpi()
}

/// MPI_Abort, also by an error handler inside of another call.
pub fn abort(name: Name, code: Word, call: impl FnOnce() -> c_int) -> c_int {
    if sink::recording() && !passed_on(name.pmpi) {
        let now = ticks();
        note(name, now, now, |call| call.number = Some(i64::from(code as c_int)));
        finish(End::Aborted, BEGIN_OFFSET_NS.load(Ordering::Relaxed));
    }
    call()
}

fn finish(end: End, offset_ns: i64) {
    if let Some(mut inside) = Inside::enter() {
        inside.lane().finish();
    }
    let mut merge_here = None;
    sink::end(|head| {
        head.end = end;
        head.clock_offset_ns[1] = offset_ns;
        head.storage_bytes = storage_bytes();
        merge_here = (head.rank == 0 && end == End::Complete).then_some(head.ranks);
    });
    if let (Some(ranks), Some(out)) = (merge_here, std::env::var_os("BEFF_PROFILE_OUT")) {
        if let Some(dir) = std::env::var_os("BEFF_PROFILE_DIR") {
            merge::merge_behind_finalize(&PathBuf::from(dir), &PathBuf::from(out), ranks);
        }
    }
}

/// Bytes from and to storage, by the count of the kernel.
fn storage_bytes() -> Option<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some([value("read_bytes:")?, value("write_bytes:")?])
}

/// Begins the recording, once.
fn start(world: Word, session: Word) {
    let Some(dir) = std::env::var_os("BEFF_PROFILE_DIR") else { return };
    if sink::recording() || OPEN.load(Ordering::Relaxed) > 0 || !right_flavour() {
        return;
    }
    let Some((rank, ranks)) = (if session == 0 { of_world(world) } else { of_session(session) }) else {
        return say("cannot find out the rank of this process, which is not recorded");
    };
    let offset = if session == 0 { hosts::offset_ns() } else { 0 };
    BEGIN_OFFSET_NS.store(offset, Ordering::Relaxed);
    let loaded = LOADED.lock().ok().and_then(|loaded| *loaded).unwrap_or_default();
    let head = ProcessHead {
        version: VERSION,
        rank,
        ranks,
        host: hosts::name(),
        pid: std::process::id(),
        library: library_version(),
        command: command(),
        started_unix_ns: clock::unix_ns(),
        clock_offset_ns: [offset; 2],
        cost_ns: cost::of_a_record(),
        storage_bytes: None,
        end: End::Cut,
        moments: [loaded, clock::moment()],
    };
    let limit = std::env::var("BEFF_PROFILE_LIMIT_BYTES").ok();
    let limit_bytes = match limit.as_deref().map(str::parse) {
        None => u64::MAX,
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) => return say("BEFF_PROFILE_LIMIT_BYTES is not a number of bytes; nothing is recorded"),
    };
    forks();
    sink::begin(&PathBuf::from(dir).join(format!("rank-{rank}.beff")), head, limit_bytes);
}

fn command() -> Vec<String> {
    let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn of_world(world: Word) -> Option<(u32, u32)> {
    let (mut rank, mut ranks): (c_int, c_int) = (0, 0);
    let fine = pmpi!(Comm_rank(world, &raw mut rank)) == 0 && pmpi!(Comm_size(world, &raw mut ranks)) == 0;
    fine.then_some((u32::try_from(rank).ok()?, u32::try_from(ranks).ok()?))
}

fn of_session(session: Word) -> Option<(u32, u32)> {
    let mut group: Word = 0;
    let (mut rank, mut ranks): (c_int, c_int) = (0, 0);
    let fine = pmpi!(Group_from_session_pset(session, c"mpi://WORLD".as_ptr(), &raw mut group)) == 0
        && pmpi!(Group_rank(group, &raw mut rank)) == 0
        && pmpi!(Group_size(group, &raw mut ranks)) == 0;
    decode::WORLD_GROUP.store(group, Ordering::Relaxed);
    fine.then_some((u32::try_from(rank).ok()?, u32::try_from(ranks).ok()?))
}

/// False, and said, if this library is built for another MPI than the program's: handles would be taken for what they are not.
fn right_flavour() -> bool {
    let version = library_version();
    let open_mpi = version.contains("Open MPI");
    let other_abi = crate::original::library_of(c"PMPI_Init").is_some_and(|name| name.contains("libmpi_abi"));
    let built_for_open_mpi = crate::mpi::OPEN_MPI;
    if open_mpi == built_for_open_mpi && !other_abi {
        return true;
    }
    let own = if built_for_open_mpi { "Open MPI" } else { "MPICH and its family" };
    let first = version.lines().next().unwrap_or("another MPI");
    let abi = if other_abi { " by the standard ABI" } else { "" };
    say(&format!("built for {own}, but the program runs with {first}{abi}: nothing is recorded"));
    false
}

extern "C" fn in_child() {
    sink::forget();
    hosts::forget();
}

/// From now on, a forked child records nothing.
fn forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores numbers.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
