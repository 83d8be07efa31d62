//! Messages that do not block: begun one by one, waited for together.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::Comm;
use crate::error::{check, Cause, MpiError, Result};

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
    /// What MPI reports; nothing is pending afterwards.
    pub fn wait_all(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let count = c_int::try_from(self.pending.len()).unwrap_or(c_int::MAX);
        // SAFETY: `count` requests made by MPI; the memory of their messages is valid by the promise given when they
        // were begun; no status is wanted.
        let code = unsafe { mpi_sys::MPI_Waitall(count, self.pending.as_mut_ptr(), mpi_sys::RSMPI_STATUSES_IGNORE) };
        self.pending.clear();
        check(code)
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

impl Comm {
    /// Begins to send `bytes` bytes to `rank` (MPI_Isend).
    ///
    /// # Safety
    /// `memory` is readable for `bytes` bytes and does not change until the message has been waited for in `requests`.
    ///
    /// # Errors
    /// What MPI reports, or more bytes than a C integer holds.
    pub unsafe fn isend(&self, memory: *const u8, bytes: usize, rank: u64, requests: &mut Requests) -> Result<()> {
        // SAFETY: a predefined constant.
        let mut request = unsafe { mpi_sys::RSMPI_REQUEST_NULL };
        let (count, rank) = (int(bytes as u64, "MPI_ERR_COUNT")?, int(rank, "MPI_ERR_RANK")?);
        // SAFETY: the caller's promise about the memory; a valid communicator; the request is waited for before its
        // owner is gone.
        check(unsafe {
            mpi_sys::MPI_Isend(
                memory.cast::<c_void>(),
                count,
                mpi_sys::RSMPI_UINT8_T,
                rank,
                TAG,
                self.handle(),
                &raw mut request,
            )
        })?;
        requests.pending.push(request);
        Ok(())
    }

    /// Begins to receive `bytes` bytes from `rank` (MPI_Irecv). Messages of one rank arrive in the order they were sent.
    ///
    /// # Safety
    /// `memory` is writable for `bytes` bytes and not otherwise used until the message has been waited for in `requests`.
    ///
    /// # Errors
    /// What MPI reports, or more bytes than a C integer holds.
    pub unsafe fn irecv(&self, memory: *mut u8, bytes: usize, rank: u64, requests: &mut Requests) -> Result<()> {
        // SAFETY: a predefined constant.
        let mut request = unsafe { mpi_sys::RSMPI_REQUEST_NULL };
        let (count, rank) = (int(bytes as u64, "MPI_ERR_COUNT")?, int(rank, "MPI_ERR_RANK")?);
        // SAFETY: as for `isend`, with memory that is written.
        check(unsafe {
            mpi_sys::MPI_Irecv(
                memory.cast::<c_void>(),
                count,
                mpi_sys::RSMPI_UINT8_T,
                rank,
                TAG,
                self.handle(),
                &raw mut request,
            )
        })?;
        requests.pending.push(request);
        Ok(())
    }
}

/// All messages have this tag: communicators that exchange messages are duplicates of their own.
const TAG: c_int = 0;

fn int(value: u64, class: &str) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| MpiError {
        class: class.into(),
        text: format!("{value} does not fit a C integer"),
        cause: Cause::Unsupported,
    })
}
