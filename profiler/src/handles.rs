//! Numbers of the arguments of a call. Each thread caches those of its last files and types, so that a call needs no lock.

use std::ffi::{c_int, CStr};
use std::sync::atomic::Ordering;

use beff_trace::raw::event;
use beff_trace::{Call, ErrorClass};

use crate::decode;
use crate::dictionary::{lock, EntryKind, GENERATION};
use crate::mpi::{handle, is_predefined, pmpi, predefined_handles, Word};
use crate::original::Symbol;
use crate::thread_buffer::{HandleCache, ThreadBuffer};

pub fn has_error_class(call: &Call, class: &str) -> bool {
    call.error.is_some_and(|error| Some(error) == ErrorClass::from_name(class))
}

impl ThreadBuffer {
    /// Clears the cache if it may be invalid.
    #[inline(always)]
    fn refresh_cache(&mut self) {
        let generation = GENERATION.load(Ordering::Acquire);
        if self.handle_cache.generation != generation {
            self.clear_cache(generation);
        }
    }

    /// Not inlined: it would separate the parts of the path of every call by several cache lines of code.
    #[cold]
    #[inline(never)]
    fn clear_cache(&mut self, generation: u32) {
        self.handle_cache = HandleCache { generation, files: [(0, 0); 8], types: [(0, 0); 16] };
    }

    /// The opening of a file handle. None for an invalid handle.
    #[inline(always)]
    pub fn file(&mut self, handle: Word) -> Option<u32> {
        self.refresh_cache();
        let slot = (handle >> 4 ^ handle >> 9) & 7;
        let (known, number) = self.handle_cache.files[slot];
        if known == handle && number != 0 {
            return Some(number);
        }
        self.look_up_file(handle, slot)
    }

    #[cold]
    fn look_up_file(&mut self, handle: Word, slot: usize) -> Option<u32> {
        let number = lock().file_number(handle)?;
        self.handle_cache.files[slot] = (handle, number);
        Some(number)
    }

    /// The number of the type of a call that began at `tick`. None if unknown.
    ///
    /// # Safety
    /// The handle is that of a type.
    #[inline(always)]
    pub unsafe fn datatype(&mut self, handle: Word, tick: u64) -> Option<u32> {
        self.refresh_cache();
        let slot = (handle ^ handle >> 4 ^ handle >> 9) & 15;
        let (known, number) = self.handle_cache.types[slot];
        if known == handle && number != 0 {
            return Some(number - 1);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.look_up_datatype(handle, slot, tick) }
    }

    #[cold]
    unsafe fn look_up_datatype(&mut self, handle: Word, slot: usize, tick: u64) -> Option<u32> {
        if handle == predefined_handles().datatype_null || handle == 0 {
            return None;
        }
        let tick = self.clamp_tick(tick);
        let mut shared = lock();
        // SAFETY: guaranteed by the caller.
        let id = unsafe { decode::decode_datatype(&mut shared, self, handle, tick, 0) }?;
        drop(shared);
        self.handle_cache.types[slot] = (handle, id + 1);
        Some(id)
    }

    /// The type argument of a file call. A type that MPI rejects or has not checked may be invalid: it is used only if known or
    /// predefined.
    pub fn datatype_of(&mut self, call: &Call, datatype: Word) -> Option<u32> {
        let (datatype, tick) = (handle(datatype), call.begin_ns);
        if has_error_class(call, "MPI_ERR_TYPE") {
            return None;
        }
        if failed_early(call) && !is_predefined(datatype) {
            return lock().by_handle(datatype, tick);
        }
        // SAFETY: a handle that MPI has checked, or a predefined one.
        unsafe { self.datatype(datatype, tick) }
    }

    /// The hints argument of a file call, if MPI has checked it.
    pub fn info_of(&mut self, call: &Call, info: Word) -> Option<u32> {
        if failed_early(call) || has_error_class(call, "MPI_ERR_TYPE") || has_error_class(call, "MPI_ERR_INFO") {
            return None;
        }
        self.info(handle(info), call.begin_ns)
    }

    pub fn comm(&mut self, handle: Word, tick: u64) -> Option<u32> {
        let (ranks, tick) = (decode::comm_ranks(handle)?, self.clamp_tick(tick));
        let mut shared = lock();
        shared.scratch.clear();
        ranks.iter().for_each(|rank| shared.scratch.extend_from_slice(&rank.to_le_bytes()));
        Some(shared.number_entry(EntryKind::Comm, tick, |out, id| event::put_comm(out, tick, id, &ranks), self))
    }

    pub fn info(&mut self, handle: Word, tick: u64) -> Option<u32> {
        let (pairs, tick) = (decode::info_pairs(handle)?, self.clamp_tick(tick));
        let mut shared = lock();
        shared.scratch.clear();
        event::put_info(&mut shared.scratch, 0, 0, &pairs);
        Some(shared.number_entry(EntryKind::Info, tick, |out, id| event::put_info(out, tick, id, &pairs), self))
    }

    /// Records the file system type of an opened file.
    pub fn storage(&mut self, path: &str, fs_type: &str, tick: u64) {
        let tick = self.clamp_tick(tick);
        let mut shared = lock();
        shared.scratch.clear();
        event::put_storage(&mut shared.scratch, 0, 0, path, fs_type);
        shared.number_entry(EntryKind::Storage, tick, |out, id| event::put_storage(out, tick, id, path, fs_type), self);
    }

    /// Records that a file had disappeared before the open at this tick.
    pub fn record_missing_file(&mut self, path: &str, tick: u64) {
        let tick = self.clamp_tick(tick);
        let mut out = Vec::new();
        event::put_removed(&mut out, tick, path);
        self.record_event(&out, tick);
    }

    /// Hints in force for a file.
    pub fn granted(&mut self, file: Word, tick: u64) -> Option<u32> {
        let mut info: Word = 0;
        if pmpi!(File_get_info(file, &raw mut info)) != 0 {
            return None;
        }
        let id = self.info(info, tick);
        pmpi!(Info_free(&raw mut info));
        id
    }
}

/// True if a file call failed with an error that MPI checks before types and hints.
fn failed_early(call: &Call) -> bool {
    ["MPI_ERR_FILE", "MPI_ERR_ARG", "MPI_ERR_COUNT"].iter().any(|class| has_error_class(call, class))
}
