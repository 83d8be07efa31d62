//! Ends a process whose MPI_Finalize does not return. In MPICH 4.0 with UCX over TCP, one rank often waits for a disconnect and the others for
//! that rank, until the batch system kills the job.
//!
//! A thread calls the function of [`Universe::finalize_within`] at the limit, and that calls [`leave`]: it signs off from the launcher, which
//! would otherwise report a crash and replace the exit code, and ends the process.

use std::ffi::c_int;
use std::mem::{transmute, zeroed};
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::collective_timeout::exit_process;
use crate::universe::Universe;

/// Time between the first and the last rank that reach the limit. Before it has passed no rank may end: that would let another one continue in
/// MPI_Finalize, up to a barrier of the launcher that ranks have left.
const GRACE: Duration = Duration::from_secs(1);
/// Time in which the launcher learns that a process has ended.
const TURN: Duration = Duration::from_millis(20);
/// Limit for the answer of the launcher.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The thread that is in MPI_Finalize.
#[derive(Clone, Copy, Debug)]
pub struct MpiThread(libc::pthread_t);

impl MpiThread {
    fn this() -> Self {
        // SAFETY: always allowed.
        Self(unsafe { libc::pthread_self() })
    }

    /// Stops it for good: it must not continue while the process signs off. It may hold locks, also that of the allocator.
    fn freeze(self) -> bool {
        static FROZEN: AtomicBool = AtomicBool::new(false);
        extern "C" fn handler(_: c_int) {
            FROZEN.store(true, Ordering::SeqCst);
            loop {
                // SAFETY: always allowed in a handler.
                unsafe { libc::pause() };
            }
        }
        // SAFETY: all fields may be zero. The handler calls nothing but pause. The thread exists: it ends with the process.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = handler as extern "C" fn(c_int) as libc::sighandler_t;
            libc::sigfillset(&raw mut action.sa_mask);
            let signal = libc::SIGRTMAX();
            if libc::sigaction(signal, &raw const action, null_mut()) != 0 || libc::pthread_kill(self.0, signal) != 0 {
                return false;
            }
        }
        (0..200).any(|_| {
            thread::sleep(Duration::from_millis(5));
            FROZEN.load(Ordering::SeqCst)
        })
    }
}

impl Universe {
    /// MPI_Finalize. If it has not returned after `limit`, a thread calls `at_limit`, which must not call MPI. Collective; all ranks should
    /// begin at the same time.
    pub fn finalize_within(self, limit: Duration, at_limit: impl FnOnce(MpiThread) + Send + 'static) {
        let this = MpiThread::this();
        let (finalized, waiting) = channel::<()>();
        // Without the thread there is no limit.
        let _ = thread::Builder::new().name("finalize".into()).spawn(move || {
            if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                at_limit(this);
            }
        });
        drop(self);
        drop(finalized);
    }
}

/// Ends this process without MPI_Finalize, from the thread that reached the limit. The process signs off from the launcher, as MPI_Finalize
/// does, by PMIx or by the wire protocol of PMI-1; other launchers may report a crash.
///
/// With PMIx, the processes of a host sign off one after another: `turn` waits, and what it returns is kept until the process has ended. The
/// server of PMIx 4.2 frees a fence twice if the ranks that wait in it sign off together with the one that it waits for; it then crashes
/// or never ends.
pub fn leave<T>(mpi: MpiThread, exit_code: c_int, turn: impl FnOnce() -> T) -> ! {
    // Allocated before the other thread stops.
    let pmi = std::env::var("PMI_FD").ok().and_then(|fd| fd.parse().ok());
    match (pmix_finalize(), pmi) {
        (Some(finalize), _) => {
            thread::sleep(GRACE);
            let _turn = turn();
            let (ended, waiting) = channel();
            let _ = thread::Builder::new().name("pmix".into()).spawn(move || {
                // SAFETY: the arguments of the PMIx standard for "no directives"; thread-safe, and counted if MPI_Finalize is in it too.
                unsafe { finalize(null(), 0) };
                let _ = ended.send(());
            });
            let _ = waiting.recv_timeout(ANSWER_LIMIT);
            thread::sleep(TURN);
            exit_process(exit_code)
        }
        (None, Some(fd)) => {
            let is_frozen = mpi.freeze();
            thread::sleep(GRACE);
            if is_frozen {
                pmi_finalize(fd);
            }
        }
        (None, None) => thread::sleep(GRACE),
    }
    exit_process(exit_code)
}

type PmixFinalize = unsafe extern "C" fn(*const libc::c_void, usize) -> c_int;

/// PMIx_Finalize of the library that the MPI library has loaded.
fn pmix_finalize() -> Option<PmixFinalize> {
    // SAFETY: the name is a C string, and this function of the PMIx standard has had this type in all versions.
    unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"PMIx_Finalize".as_ptr());
        (!symbol.is_null()).then(|| transmute::<*mut libc::c_void, PmixFinalize>(symbol))
    }
}

/// Signs off by PMI-1 and waits for the answer. True if it came. Allocates nothing.
fn pmi_finalize(fd: RawFd) -> bool {
    const REQUEST: &[u8] = b"cmd=finalize\n";
    const ANSWER: &[u8] = b"cmd=finalize_ack";
    let mut answer = [0_u8; 1024];
    let mut length = 0;
    let mut wait = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let limit_ms = ANSWER_LIMIT.as_millis() as c_int;
    // SAFETY: the pointers are to the memory above, with its lengths. If the descriptor is no socket any more, the call fails.
    unsafe {
        if libc::send(fd, REQUEST.as_ptr().cast(), REQUEST.len(), libc::MSG_NOSIGNAL) != REQUEST.len() as isize {
            return false;
        }
        // An answer to MPI_Finalize may come first.
        while length < answer.len() && libc::poll(&raw mut wait, 1, limit_ms) > 0 {
            let read = libc::read(fd, answer[length..].as_mut_ptr().cast(), answer.len() - length);
            if read <= 0 {
                return false;
            }
            length += read as usize;
            if answer[..length].windows(ANSWER.len()).any(|part| part == ANSWER) {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicU64;

    use beff_fake_mpi::{as_rank, set_finalize_time};

    use super::*;

    /// True if the limit is reached, when MPI_Finalize takes this long.
    fn is_reached(limit: Duration, finalize: Duration) -> bool {
        let (reached, waiting) = channel();
        as_rank(0, 1, || {
            set_finalize_time(finalize);
            Universe::init().unwrap().finalize_within(limit, move |_| reached.send(()).unwrap());
        });
        // The function is dropped without a call once MPI_Finalize has returned.
        waiting.recv().is_ok()
    }

    #[test]
    fn only_a_finalize_that_hangs_reaches_the_limit() {
        assert!(is_reached(Duration::from_millis(20), Duration::from_millis(500)));
        assert!(!is_reached(Duration::from_secs(60), Duration::ZERO));
    }

    #[test]
    fn the_sign_off_is_sent_once_and_answered() {
        // Also after an answer to the thread that has stopped, and in parts; not if the launcher refuses, is gone, or is none.
        for (answer, expected) in [
            (&["cmd=finalize_ack\n"][..], true),
            (&["cmd=barrier_out\n", "cmd=fina", "lize_ack\n"], true),
            (&["cmd=unknown rc=1\n", ""], false),
            (&[""], false),
        ] {
            let (ours, mut launcher) = UnixStream::pair().unwrap();
            let server = thread::spawn(move || {
                let mut request = [0; 64];
                let length = launcher.read(&mut request).unwrap();
                for part in answer {
                    launcher.write_all(part.as_bytes()).unwrap();
                    thread::sleep(Duration::from_millis(5));
                }
                String::from_utf8_lossy(&request[..length]).into_owned()
            });
            assert_eq!(pmi_finalize(ours.as_raw_fd()), expected, "{answer:?}");
            assert_eq!(server.join().unwrap(), "cmd=finalize\n");
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(!pmi_finalize(file.as_raw_fd()) && !pmi_finalize(-1));
    }

    #[test]
    fn a_frozen_thread_stays_where_it_is() {
        static STEPS: AtomicU64 = AtomicU64::new(0);
        let (send, receive) = channel();
        thread::spawn(move || {
            send.send(MpiThread::this()).unwrap();
            loop {
                STEPS.fetch_add(1, Ordering::SeqCst);
            }
        });
        let busy = receive.recv().unwrap();
        assert!(busy.freeze());
        let stopped = STEPS.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(40));
        assert_eq!(STEPS.load(Ordering::SeqCst), stopped);
    }
}
