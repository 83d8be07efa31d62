//! Proof that nothing is allocated inside the clock: an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// No destructor and no lazy beginning: this is read inside the allocator.
    static LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread's allocations are not counted: it measures nothing.
pub fn leave_out_this_thread() {
    LEFT_OUT.set(true);
}

fn count() {
    // A thread that is ending has no such word any more.
    if !LEFT_OUT.try_with(Cell::get).unwrap_or(false) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// The system allocator with a count of its calls. The binary installs it; the clock reads the count before and
/// after each clocked interval and puts the difference into the result.
#[derive(Debug)]
pub struct CountingAllocator;

/// Allocations and reallocations of this process so far, without those of threads that are left out; always 0 if [`CountingAllocator`] is not installed.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

// SAFETY: every request goes to the system allocator unchanged; counting touches no memory of it.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above; `ptr` came from the system allocator.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
