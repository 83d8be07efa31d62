//! Report of a crash inside the MPI library (SIGSEGV, SIGFPE, SIGILL): a hint or a value that a library does not check can end the
//! process. The signal handler only notes the signal and the call; a thread of this process reports and cleans up, and the process then
//! ends by the signal. If that thread cannot proceed, because the process crashed while it allocated memory, the handler waits no longer
//! than [`REPORT_LIMIT_MS`].

use std::ffi::{c_int, c_void, CStr};
use std::io::{self, Read};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use signal_hook::low_level::emulate_default_handler;
use signal_hook_registry::register_unchecked;

const SIGNALS: [(c_int, &str); 3] = [
    (libc::SIGSEGV, "SIGSEGV, invalid memory access"),
    (libc::SIGFPE, "SIGFPE, arithmetic error such as a division by zero"),
    (libc::SIGILL, "SIGILL, invalid instruction"),
];
const REPORT_LIMIT_MS: c_int = 10_000;
const MAX_FRAMES: usize = 64;

static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
static IS_CRASHED: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Name of the MPI function in which the process crashed; null if it was in none.
static FUNCTION: AtomicPtr<libc::c_char> = AtomicPtr::new(std::ptr::null_mut());
/// Descriptors of the handler: it writes to the first and waits for the end of the second.
static REQUEST_FD: AtomicI32 = AtomicI32::new(-1);
static DONE_FD: AtomicI32 = AtomicI32::new(-1);

/// A file in use and its hints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileInUse {
    /// Path.
    pub path: String,
    /// Hints that were passed.
    pub hints: Vec<(String, String)>,
}

static FILES: Mutex<Vec<FileInUse>> = Mutex::new(Vec::new());
static CURRENT_FILE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets the files that calls will use, by number.
pub(crate) fn set_files(files: Vec<FileInUse>) {
    *FILES.lock().unwrap_or_else(PoisonError::into_inner) = files;
    CURRENT_FILE.store(0, Ordering::Relaxed);
}

/// Notes the number of the file that the next call uses.
#[inline]
pub(crate) fn note_file(number: usize) {
    CURRENT_FILE.store(number, Ordering::Relaxed);
}

/// What is known of a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Name and meaning of the signal.
    pub signal: &'static str,
    /// The MPI function that did not return; None if the process was in none.
    pub function: Option<String>,
    /// The file in use.
    pub file: Option<FileInUse>,
}

/// Watches this process for crashes from now on. `report` runs once, in a thread of its own; `prepare` runs first in that thread.
///
/// # Errors
/// Errors of pipe(2), sigaction(2), and of the creation of the thread.
pub fn watch(prepare: impl FnOnce() + Send + 'static, report: impl FnOnce(&Crash) + Send + 'static) -> io::Result<()> {
    if IS_INSTALLED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    let ((mut wait, request), (done, end)) = (io::pipe()?, io::pipe()?);
    let look = move || {
        prepare();
        let mut byte = [0];
        if wait.read(&mut byte).is_ok_and(|bytes| bytes == 1) {
            report(&noted_crash());
        }
        // Dropped: the handler, which waits for the end of this pipe, proceeds.
        drop(end);
    };
    thread::Builder::new().name("crash report".into()).stack_size(256 << 10).spawn(look)?;
    // Owned by the handler to the end of the process.
    REQUEST_FD.store(OwnedFd::from(request).into_raw_fd(), Ordering::Relaxed);
    DONE_FD.store(OwnedFd::from(done).into_raw_fd(), Ordering::Release);
    let mut frames = [std::ptr::null_mut::<c_void>(); 2];
    // SAFETY: the array has this length. The first call loads the unwinder, which the handler must not.
    unsafe { libc::backtrace(frames.as_mut_ptr(), 2) };
    SIGNALS.iter().try_for_each(|(signal, _)| install(*signal))
}

fn install(signal: c_int) -> io::Result<()> {
    // SAFETY: the handler calls only functions that are safe in it, except backtrace(3) and dladdr(3), which may find a lock held by the
    // crashed code: the process is lost anyway. It does not return to the instruction that caused the signal.
    unsafe { register_unchecked(signal, move |_| handle(signal)) }.map(|_| ())
}

fn handle(signal: c_int) {
    if !IS_CRASHED.swap(true, Ordering::AcqRel) {
        SIGNAL.store(signal, Ordering::Relaxed);
        FUNCTION.store(current_function().cast_mut(), Ordering::Relaxed);
        let (request, done) = (REQUEST_FD.load(Ordering::Acquire), DONE_FD.load(Ordering::Acquire));
        let mut end = libc::pollfd { fd: done, events: libc::POLLIN, revents: 0 };
        // SAFETY: one byte of a constant; one structure on the stack.
        unsafe {
            if libc::write(request, c"x".as_ptr().cast(), 1) == 1 {
                libc::poll(&raw mut end, 1, REPORT_LIMIT_MS);
            }
        }
    }
    // Fails only for unknown signals; the fault would recur with the default action.
    let _ = emulate_default_handler(signal);
}

/// Name of the outermost MPI function on the stack, in the memory of its library; null if there is none.
fn current_function() -> *const libc::c_char {
    let mut frames = [std::ptr::null_mut::<c_void>(); MAX_FRAMES];
    // SAFETY: the array has this length.
    let depth = unsafe { libc::backtrace(frames.as_mut_ptr(), MAX_FRAMES as c_int) };
    let mut names = frames[..usize::try_from(depth).unwrap_or(0)].iter().rev().map(|frame| {
        // SAFETY: zeros are a valid Dl_info, which dladdr fills; names are NUL-terminated and stay while the library is loaded.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(*frame, &raw mut info) == 0 {
                return std::ptr::null();
            }
            info.dli_sname
        }
    });
    // SAFETY: as above.
    let is_mpi = |name: &*const libc::c_char| !name.is_null() && is_mpi_function(unsafe { CStr::from_ptr(*name) });
    names.find(is_mpi).unwrap_or(std::ptr::null())
}

/// True for functions of the interface, not for internal ones (`MPIR_`, `MPIOI_`).
fn is_mpi_function(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.strip_prefix(b"P").unwrap_or(name).starts_with(b"MPI_")
}

fn noted_crash() -> Crash {
    let number = SIGNAL.load(Ordering::Relaxed);
    let name = FUNCTION.load(Ordering::Relaxed);
    // SAFETY: null, or a name in the memory of a loaded library.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
    let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    Crash {
        signal: SIGNALS.iter().find(|(signal, _)| *signal == number).map_or("a signal", |(_, name)| name),
        function: name.map(|name| name.strip_prefix('P').map_or(name.clone(), str::to_owned)),
        file: files.get(CURRENT_FILE.load(Ordering::Relaxed)).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    const CHILD: &str = "BEFF_TEST_CRASH";

    #[test]
    fn names_of_the_interface_are_recognised() {
        for (name, is_it) in [
            (c"MPI_File_open", true),
            (c"PMPI_Wait", true),
            (c"MPIR_Err_return", false),
            (c"MPIOI_File_write_all", false),
        ] {
            assert_eq!(is_mpi_function(name), is_it, "{name:?}");
        }
    }

    fn crash_here(signal: c_int) -> ! {
        set_files(vec![
            FileInUse::default(),
            FileInUse { path: "/x/out".into(), hints: vec![("a".into(), "0".into())] },
        ]);
        note_file(1);
        let report = |crash: &Crash| {
            let _ = io::stderr().write_all(format!("REPORT {crash:?}\n").as_bytes());
        };
        watch(|| (), report).unwrap();
        // SAFETY: a signal to this thread.
        unsafe { libc::raise(signal) };
        std::process::exit(3)
    }

    #[test]
    fn a_crash_is_reported_and_ends_the_process_by_its_signal() {
        if let Ok(signal) = std::env::var(CHILD) {
            crash_here(signal.parse().unwrap());
        }
        for (signal, name) in SIGNALS {
            let me = std::env::current_exe().unwrap();
            let mut test = Command::new("timeout");
            test.arg("20")
                .arg(me)
                .args(["--exact", "crash::tests::a_crash_is_reported_and_ends_the_process_by_its_signal"]);
            let out = test.args(["--nocapture", "--test-threads=1"]).env(CHILD, signal.to_string()).output().unwrap();
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            let code = out.status.signal().or(out.status.code().map(|code| code - 128));
            assert_eq!(code, Some(signal), "{text}");
            let line = text.lines().find(|line| line.starts_with("REPORT")).unwrap_or_else(|| panic!("{text}"));
            for part in [name, "/x/out", "(\"a\", \"0\")"] {
                assert!(line.contains(part), "{line}");
            }
        }
    }
}
