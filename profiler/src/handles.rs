//! The numbers of what a call was given. A thread remembers those of its last files and types, so that a call needs no lock.

use std::ffi::{c_int, CStr};
use std::sync::atomic::Ordering;

use beff_trace::raw::event;
use beff_trace::{Call, ErrorClass};

use crate::decode;
use crate::dictionary::{lock, Kind, GENERATION};
use crate::lane::Lane;
use crate::mpi::{constants, handle, is_predefined, pmpi, Word};
use crate::original::Symbol;
use crate::storage::{self, without_driver};

/// True if a call failed with an error of this class.
pub fn is(call: &Call, class: &str) -> bool {
    call.error.is_some_and(|error| Some(error) == ErrorClass::named(class))
}

impl Lane {
    /// What is remembered, emptied if it may be wrong.
    #[inline(always)]
    fn current(&mut self) {
        let generation = GENERATION.load(Ordering::Acquire);
        if self.memory.generation != generation {
            self.memory.generation = generation;
            self.memory.files = [(0, 0); 8];
            self.memory.types = [(0, 0); 16];
        }
    }

    /// The opening that a file handle stands for. None: it is none.
    #[inline(always)]
    pub fn file(&mut self, handle: Word) -> Option<u32> {
        self.current();
        let slot = (handle >> 4 ^ handle >> 9) & 7;
        let (known, number) = self.memory.files[slot];
        if known == handle && number != 0 {
            return Some(number);
        }
        self.file_slowly(handle, slot)
    }

    #[cold]
    fn file_slowly(&mut self, handle: Word, slot: usize) -> Option<u32> {
        let number = lock().file(handle)?;
        self.memory.files[slot] = (handle, number);
        Some(number)
    }

    /// The number of a type that a call begun at `tick` was given. None: it cannot be found out.
    ///
    /// # Safety
    /// The handle is one of a type.
    #[inline(always)]
    pub unsafe fn datatype(&mut self, handle: Word, tick: u64) -> Option<u32> {
        self.current();
        let slot = (handle ^ handle >> 4 ^ handle >> 9) & 15;
        let (known, number) = self.memory.types[slot];
        if known == handle && number != 0 {
            return Some(number - 1);
        }
        // SAFETY: as promised.
        unsafe { self.datatype_slowly(handle, slot, tick) }
    }

    #[cold]
    unsafe fn datatype_slowly(&mut self, handle: Word, slot: usize, tick: u64) -> Option<u32> {
        if handle == constants().datatype_null || handle == 0 {
            return None;
        }
        let tick = self.not_before(tick);
        let mut shared = lock();
        // SAFETY: as promised.
        let id = unsafe { decode::datatype(&mut shared, self, handle, tick, 0) }?;
        drop(shared);
        self.memory.types[slot] = (handle, id + 1);
        Some(id)
    }

    /// The type that a call on a file was given. One that MPI complains about may be none, and so may one that it did not come to
    /// look at: that is asked about only if it is known or predefined.
    pub fn datatype_of(&mut self, call: &Call, datatype: Word) -> Option<u32> {
        let (datatype, tick) = (handle(datatype), call.begin_ns);
        if is(call, "MPI_ERR_TYPE") {
            return None;
        }
        if is_early(call) && !is_predefined(datatype) {
            return lock().by_handle(datatype, tick);
        }
        // SAFETY: a handle that MPI has looked at, or a predefined one.
        unsafe { self.datatype(datatype, tick) }
    }

    /// The hints that a call on a file was given, as far as MPI has looked at them.
    pub fn info_of(&mut self, call: &Call, info: Word) -> Option<u32> {
        if is_early(call) || is(call, "MPI_ERR_TYPE") || is(call, "MPI_ERR_INFO") {
            return None;
        }
        self.info(handle(info), call.begin_ns)
    }

    /// Ranks of a communicator.
    pub fn comm(&mut self, handle: Word, tick: u64) -> Option<u32> {
        let (ranks, tick) = (decode::comm(handle)?, self.not_before(tick));
        let mut shared = lock();
        shared.scratch.clear();
        ranks.iter().for_each(|rank| shared.scratch.extend_from_slice(&rank.to_le_bytes()));
        Some(shared.number(Kind::Comm, tick, |out, id| event::put_comm(out, tick, id, &ranks), self))
    }

    /// Keys and values of hints.
    pub fn info(&mut self, handle: Word, tick: u64) -> Option<u32> {
        let (pairs, tick) = (decode::info(handle)?, self.not_before(tick));
        let mut shared = lock();
        shared.scratch.clear();
        event::put_info(&mut shared.scratch, 0, 0, &pairs);
        Some(shared.number(Kind::Info, tick, |out, id| event::put_info(out, tick, id, &pairs), self))
    }

    /// The kind of file system of a file that was opened by this name.
    pub fn storage(&mut self, path: &str, tick: u64) {
        let path = without_driver(path);
        let Some(fs_type) = storage::fs_type(path) else { return };
        let tick = self.not_before(tick);
        let mut shared = lock();
        shared.scratch.clear();
        event::put_storage(&mut shared.scratch, 0, 0, path, &fs_type);
        shared.number(Kind::Storage, tick, |out, id| event::put_storage(out, tick, id, path, &fs_type), self);
    }

    /// A file that was gone before the opening at this tick.
    pub fn gone(&mut self, path: &str, tick: u64) {
        let tick = self.not_before(tick);
        let mut out = Vec::new();
        event::put_gone(&mut out, tick, path);
        self.event(&out, tick);
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

/// True if a call on a file failed with an error of what MPI looks at before types and hints.
fn is_early(call: &Call) -> bool {
    ["MPI_ERR_FILE", "MPI_ERR_ARG", "MPI_ERR_COUNT"].iter().any(|class| is(call, class))
}
