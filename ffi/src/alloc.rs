//! A counting allocator, which shows that nothing is allocated in timed regions.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Without destructor and lazy initialization, because the allocator reads it.
    static EXCLUDED: Cell<bool> = const { Cell::new(false) };
}

/// Excludes this thread, which measures nothing, from the count.
pub fn exclude_this_thread() {
    EXCLUDED.set(true);
}

fn count_allocation() {
    // Fails in a thread that is being destroyed.
    if !EXCLUDED.try_with(Cell::get).unwrap_or(false) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// The system allocator with a count of its calls. The binary installs it; the result contains the difference over each timed region.
#[derive(Debug)]
pub struct CountingAllocator;

/// Allocations and reallocations of this process so far, except those of excluded threads; 0 if [`CountingAllocator`] is not installed.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

// SAFETY: every request is passed on unchanged; counting does not touch its memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation();
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above; `ptr` came from the system allocator.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_allocation();
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
