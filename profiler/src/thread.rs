//! A thread of the program: whether it is inside a call, and the buffer that it has.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::lane::Lane;
use crate::sink;

/// What belongs to a thread; see the shim.
#[repr(C)]
pub struct Thread {
    lane: *mut c_void,
    depth: c_int,
}

unsafe extern "C" {
    fn beff_thread() -> *mut Thread;
}

/// A call of the program under way: until it is dropped, calls of this thread are the library's own.
pub struct Inside {
    thread: *mut Thread,
}

impl Inside {
    /// None: nothing is recorded, or the library calls itself.
    #[inline(always)]
    pub fn enter() -> Option<Self> {
        if !sink::recording() {
            return None;
        }
        // SAFETY: the thread's own memory, which lives as long as the thread.
        let thread = unsafe { beff_thread() };
        // SAFETY: as above; nobody else refers to it.
        unsafe {
            if (*thread).depth != 0 {
                return None;
            }
            if (*thread).lane.is_null() {
                (*thread).lane = lane_of_thread()?.cast();
            }
            (*thread).depth = 1;
        }
        Some(Self { thread })
    }

    /// The buffer of this thread.
    #[inline(always)]
    pub fn lane(&mut self) -> &mut Lane {
        // SAFETY: `enter` has set it, and only this thread has it.
        unsafe { &mut *(*self.thread).lane.cast() }
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the thread's own memory.
        unsafe { (*self.thread).depth = 0 };
    }
}

/// Lanes whose threads have ended.
struct Idle(Vec<*mut Lane>);
// SAFETY: a lane in here belongs to nobody.
unsafe impl Send for Idle {}
static IDLE: Mutex<Idle> = Mutex::new(Idle(Vec::new()));
static NEXT_THREAD: AtomicU32 = AtomicU32::new(0);

/// At the end of a thread its lane is free for the next.
unsafe extern "C" fn thread_ends(lane: *mut c_void) {
    // SAFETY: the thread's own memory, still there in destructors of keys.
    unsafe { (*beff_thread()).lane = std::ptr::null_mut() };
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).0.push(lane.cast());
}

/// A lane for this thread. None: there are too many threads, or no room; the recording has ended.
#[cold]
fn lane_of_thread() -> Option<*mut Lane> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let made = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor takes what is set below.
        let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
        (failed == 0).then_some(key)
    });
    let Some(key) = made else {
        sink::stop("the program uses all keys of threads (pthread_key_create)");
        return None;
    };
    let thread = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).0.pop();
    let lane = match idle {
        Some(lane) => {
            // SAFETY: the lane belonged to nobody.
            unsafe { (*lane).taken_over(thread) };
            lane
        }
        None => Box::into_raw(Box::new(Lane::new(thread)?)),
    };
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(key, lane.cast()) };
    Some(lane)
}

/// True if this thread is inside a call of the program that is recorded.
pub fn inside() -> bool {
    // SAFETY: the thread's own memory.
    unsafe { (*beff_thread()).depth != 0 }
}
