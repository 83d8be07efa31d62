//! Messages that do not block: begun one by one, waited for together.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::Comm;
use crate::error::{c_integer, check, Result};

/// Messages under way. Made once with room for as many as will ever be pending, so that beginning one does not allocate.
/// Dropping it waits for all of them: no message outlives its owner.
#[derive(Debug)]
pub struct Requests {
    pending: Vec<MPI_Request>,
}

impl Requests {
    /// Room for `most` messages.
    #[must_use]
    pub fn with_capacity(most: usize) -> Self {
        Self { pending: Vec::with_capacity(most) }
    }

    /// True if nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Waits for all messages (MPI_Waitall). Does not allocate.
    ///
    /// # Errors
    /// The first that MPI reports; nothing is pending afterwards.
    pub fn wait_all(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut first = Ok(());
        for some in self.pending.chunks_mut(MOST_AT_ONCE) {
            let count = c_int::try_from(some.len()).unwrap_or(c_int::MAX);
            // SAFETY: `count` requests made by MPI; the memory of their messages is valid by the promise given when they
            // were begun; no status is wanted.
            let code = unsafe { mpi_sys::MPI_Waitall(count, some.as_mut_ptr(), mpi_sys::RSMPI_STATUSES_IGNORE) };
            if code != 0 {
                first = first.and(check(code));
                wait_one_by_one(some);
            }
        }
        self.pending.clear();
        first
    }
}

/// As many requests fit a C integer.
const MOST_AT_ONCE: usize = 1 << 30;

/// MPI_Waitall that fails may leave some under way (MPI-3.1 section 3.7.5, MPI_ERR_PENDING), and their memory is the library's
/// until they are complete.
#[cold]
fn wait_one_by_one(requests: &mut [MPI_Request]) {
    let null = constant!(mpi_sys::RSMPI_REQUEST_NULL);
    for request in requests.iter_mut().filter(|request| **request != null) {
        // SAFETY: a request made by MPI that is not complete, or has failed; its memory is still valid. What it says is told
        // already: the first error counts.
        unsafe { mpi_sys::MPI_Wait(request, mpi_sys::RSMPI_STATUS_IGNORE) };
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // A rank that panics ends all ranks: nobody would answer.
        if !std::thread::panicking() {
            let _ = self.wait_all();
        }
    }
}

/// Which way a message goes, as this rank sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Out of the memory.
    Send,
    /// Into the memory.
    Receive,
}

impl Comm {
    /// Begins to send `bytes` bytes to `rank` (MPI_Isend), or to receive them from there (MPI_Irecv). Messages of one rank
    /// arrive in the order they were sent.
    ///
    /// # Safety
    /// Until the message has been waited for in `requests`, `memory` is readable for `bytes` bytes and does not change; to
    /// receive, writable and not otherwise used.
    ///
    /// # Errors
    /// What MPI reports, or more bytes than a C integer holds.
    pub unsafe fn begin(
        &self,
        message: Message,
        memory: *mut u8,
        bytes: usize,
        rank: u64,
        requests: &mut Requests,
    ) -> Result<()> {
        let (count, rank) = (c_integer(bytes as u64, "MPI_ERR_COUNT")?, c_integer(rank, "MPI_ERR_RANK")?);
        // SAFETY: the caller's promise; the request is waited for before its owner is gone.
        requests.pending.push(unsafe {
            match message {
                Message::Send => self.begin_send(memory, count, rank),
                Message::Receive => self.begin_receive(memory, count, rank),
            }
        }?);
        Ok(())
    }

    /// MPI_Isend of `count` bytes.
    ///
    /// # Safety
    /// `memory` is readable for that many bytes and does not change until the request is complete.
    #[inline]
    pub(crate) unsafe fn begin_send(&self, memory: *const u8, count: c_int, rank: c_int) -> Result<MPI_Request> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        let (memory, kind) = (memory.cast::<c_void>(), constant!(mpi_sys::RSMPI_UINT8_T));
        // SAFETY: the caller's promise about the memory; a valid communicator.
        check(unsafe { mpi_sys::MPI_Isend(memory, count, kind, rank, TAG, self.handle(), &raw mut request) })?;
        Ok(request)
    }

    /// MPI_Irecv of `count` bytes.
    ///
    /// # Safety
    /// `memory` is writable for that many bytes and not otherwise used until the request is complete.
    #[inline]
    pub(crate) unsafe fn begin_receive(&self, memory: *mut u8, count: c_int, rank: c_int) -> Result<MPI_Request> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        let (memory, kind) = (memory.cast::<c_void>(), constant!(mpi_sys::RSMPI_UINT8_T));
        // SAFETY: as in `begin_send`.
        check(unsafe { mpi_sys::MPI_Irecv(memory, count, kind, rank, TAG, self.handle(), &raw mut request) })?;
        Ok(request)
    }
}

/// All messages have this tag: communicators that exchange messages are duplicates of their own, or carry nothing else
/// meanwhile.
pub(crate) const TAG: c_int = 0;
