//! State of a thread: whether it is inside a call, and its buffer.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::thread_buffer::ThreadBuffer;
use crate::{bus_error, sink};

/// Thread-local state; see the shim.
#[repr(C)]
pub struct ThreadState {
    lane: *mut c_void,
    depth: c_int,
}

unsafe extern "C" {
    fn beff_thread() -> *mut ThreadState;
}

/// A recorded call in progress: until it is dropped, further calls of this thread are the library's own.
pub struct CallGuard {
    thread: *mut ThreadState,
}

impl CallGuard {
    /// None if nothing is recorded, or if the library calls itself.
    #[inline(always)]
    pub fn enter() -> Option<Self> {
        if !sink::is_recording() {
            sink::report_loss();
            return None;
        }
        // SAFETY: thread-local memory, which lives as long as the thread.
        let thread = unsafe { beff_thread() };
        // SAFETY: as above; no other reference exists.
        unsafe {
            if (*thread).depth != 0 {
                return None;
            }
            if (*thread).lane.is_null() {
                (*thread).lane = assign_buffer()?.cast();
            }
            (*thread).depth = 1;
        }
        Some(Self { thread })
    }

    #[inline(always)]
    pub fn buffer(&mut self) -> &mut ThreadBuffer {
        // SAFETY: set by `enter`, and exclusive to this thread.
        unsafe { &mut *(*self.thread).lane.cast() }
    }
}

impl Drop for CallGuard {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: thread-local memory.
        unsafe { (*self.thread).depth = 0 };
    }
}

/// Buffers of finished threads.
struct IdleBuffers(Vec<*mut ThreadBuffer>);
// SAFETY: no thread uses a buffer in this list.
unsafe impl Send for IdleBuffers {}
static IDLE: Mutex<IdleBuffers> = Mutex::new(IdleBuffers(Vec::new()));
static NEXT_THREAD: AtomicU32 = AtomicU32::new(0);

/// Releases the buffer of a finished thread for reuse.
unsafe extern "C" fn release_buffer(lane: *mut c_void) {
    // SAFETY: thread-local memory, which still exists in key destructors.
    unsafe { (*beff_thread()).lane = std::ptr::null_mut() };
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).0.push(lane.cast());
}

/// Assigns a buffer to this thread. None, and the recording has ended, if there are too many threads or no space.
#[cold]
fn assign_buffer() -> Option<*mut ThreadBuffer> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let created = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor accepts the value set below.
        let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(release_buffer)) };
        (failed == 0).then_some(key)
    });
    let Some(key) = created else {
        sink::stop("no key for thread-specific data is left (pthread_key_create)");
        return None;
    };
    let thread = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).0.pop();
    let lane = match idle {
        Some(lane) => {
            // SAFETY: no thread uses the buffer.
            unsafe { (*lane).reassign(thread) };
            lane
        }
        None => Box::into_raw(Box::new(ThreadBuffer::new(thread)?)),
    };
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(key, lane.cast()) };
    bus_error::unblock();
    Some(lane)
}

/// True if this thread is inside a recorded call of the program.
pub fn is_inside_call() -> bool {
    // SAFETY: thread-local memory.
    unsafe { (*beff_thread()).depth != 0 }
}
