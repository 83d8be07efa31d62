//! Nonblocking messages: posted one by one, completed together.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::Comm;
use crate::error::{c_integer, check, Result};

/// Messages in flight, with requests allocated in advance so that posting does not allocate. Dropping completes all: no message outlives
/// its owner.
#[derive(Debug)]
pub struct Requests {
    pending: Vec<MPI_Request>,
}

impl Requests {
    /// Allocates for `most` messages.
    #[must_use]
    pub fn with_capacity(most: usize) -> Self {
        Self { pending: Vec::with_capacity(most) }
    }

    /// True if nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Completes all messages (MPI_Waitall). Does not allocate.
    ///
    /// # Errors
    /// The first MPI error; nothing is pending afterwards.
    pub fn wait_all(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut first = Ok(());
        for some in self.pending.chunks_mut(MAX_WAIT_COUNT) {
            let count = c_int::try_from(some.len()).unwrap_or(c_int::MAX);
            // SAFETY: `count` requests of MPI, with memory valid as guaranteed when they were posted; statuses are ignored.
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

/// Requests per call, which fit a C integer.
const MAX_WAIT_COUNT: usize = 1 << 30;

/// MPI_Waitall may fail with requests pending (MPI-3.1 section 3.7.5, MPI_ERR_PENDING), whose memory belongs to the library.
#[cold]
fn wait_one_by_one(requests: &mut [MPI_Request]) {
    let null = constant!(mpi_sys::RSMPI_REQUEST_NULL);
    for request in requests.iter_mut().filter(|request| **request != null) {
        // SAFETY: a request of MPI, pending or failed; its memory is still valid. The first error is already reported.
        unsafe { mpi_sys::MPI_Wait(request, mpi_sys::RSMPI_STATUS_IGNORE) };
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // A panic ends all ranks, so waiting would never end.
        if !std::thread::panicking() {
            let _ = self.wait_all();
        }
    }
}

/// Direction of a message on this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDirection {
    /// From the memory.
    Send,
    /// Into the memory.
    Receive,
}

impl Comm {
    /// Posts a send of `bytes` bytes to `rank` (MPI_Isend), or a receive from it (MPI_Irecv). Messages of one rank arrive in the order of
    /// the sends.
    ///
    /// # Safety
    /// Until completed by `requests`, `memory` is readable for `bytes` bytes and unchanged for a send, writable and not otherwise used
    /// for a receive.
    ///
    /// # Errors
    /// Any MPI error, or more bytes than a C integer holds.
    pub unsafe fn post_message(
        &self,
        message: MessageDirection,
        memory: *mut u8,
        bytes: usize,
        rank: u64,
        requests: &mut Requests,
    ) -> Result<()> {
        let (count, rank) = (c_integer(bytes as u64, "MPI_ERR_COUNT")?, c_integer(rank, "MPI_ERR_RANK")?);
        // SAFETY: as the caller guarantees; the request is completed before its owner is dropped.
        requests.pending.push(unsafe {
            match message {
                MessageDirection::Send => self.isend(memory, count, rank),
                MessageDirection::Receive => self.irecv(memory, count, rank),
            }
        }?);
        Ok(())
    }

    /// MPI_Isend of `count` bytes.
    ///
    /// # Safety
    /// `memory` is readable for `count` bytes and unchanged until the request is complete.
    #[inline]
    pub(crate) unsafe fn isend(&self, memory: *const u8, count: c_int, rank: c_int) -> Result<MPI_Request> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        let (memory, kind) = (memory.cast::<c_void>(), constant!(mpi_sys::RSMPI_UINT8_T));
        // SAFETY: the memory is valid as the caller guarantees; a valid communicator.
        check(unsafe { mpi_sys::MPI_Isend(memory, count, kind, rank, TAG, self.handle(), &raw mut request) })?;
        Ok(request)
    }

    /// MPI_Irecv of `count` bytes.
    ///
    /// # Safety
    /// `memory` is writable for `count` bytes and not otherwise used until the request is complete.
    #[inline]
    pub(crate) unsafe fn irecv(&self, memory: *mut u8, count: c_int, rank: c_int) -> Result<MPI_Request> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        let (memory, kind) = (memory.cast::<c_void>(), constant!(mpi_sys::RSMPI_UINT8_T));
        // SAFETY: as in `isend`.
        check(unsafe { mpi_sys::MPI_Irecv(memory, count, kind, rank, TAG, self.handle(), &raw mut request) })?;
        Ok(request)
    }
}

/// Tag of all messages: communicators that exchange messages are duplicates, or carry nothing else meanwhile.
pub(crate) const TAG: c_int = 0;
