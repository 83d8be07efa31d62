//! Collective calls that yield the core while they wait.
//!
//! MPI libraries spin in blocking calls. Where ranks share a core, or one wakes from a transfer on the core of a spinning one, this
//! delays the rank that all wait for. These calls poll, and yield between polls after a short time.

use std::ffi::{c_int, c_void};
use std::thread;

use mpi_sys::MPI_Request;

use crate::comm::{element_count, Comm, MAX_ELEMENTS};
use crate::error::{check, Result};
use crate::{collective_timeout, shim};

/// Polls before the first yield: some microseconds, enough for ranks on separate cores.
const POLLS_BEFORE_YIELD: u32 = 32;

impl Comm {
    /// A barrier (MPI_Ibarrier, then MPI_Test).
    ///
    /// # Errors
    /// Any MPI error.
    pub fn barrier(&self) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            ranks.allgather("barrier", &[]);
            return Ok(());
        }
        if self.size() > 1 {
            // SAFETY: collective call on a valid communicator.
            self.post_and_wait(|request| unsafe { mpi_sys::MPI_Ibarrier(self.handle(), request) })?;
        }
        collective_timeout::peers_arrived();
        Ok(())
    }

    /// Posts an operation and completes it.
    pub(crate) fn post_and_wait(&self, begin: impl FnOnce(*mut MPI_Request) -> c_int) -> Result<()> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        check(begin(&raw mut request))?;
        wait_yielding(&mut request)
    }

    /// Element-wise, in place (MPI_Iallreduce, then MPI_Test). Does not allocate.
    pub(crate) fn allreduce<T>(
        &self,
        values: &mut [T],
        datatype: mpi_sys::MPI_Datatype,
        op: mpi_sys::MPI_Op,
    ) -> Result<()> {
        if self.size() > 1 {
            for values in values.chunks_mut(MAX_ELEMENTS) {
                let (memory, elements) = (values.as_mut_ptr().cast::<c_void>(), element_count(values));
                // SAFETY: `elements` elements of the type that the callers pair with the buffer, exclusively borrowed until completion.
                self.post_and_wait(|request| unsafe {
                    shim::beff_iallreduce_in_place(memory, elements, datatype, op, self.handle(), request)
                })?;
            }
        }
        collective_timeout::peers_arrived();
        Ok(())
    }
}

/// Completes a request, which is then null, or inactive if it is persistent.
pub(crate) fn wait_yielding(request: &mut MPI_Request) -> Result<()> {
    let mut questions = 0;
    loop {
        let mut done: c_int = 0;
        // SAFETY: the pending request of the caller; the status is ignored. An error is that of the operation, which has then ended
        // (MPI-3.1, 3.7.3): nothing is written afterwards.
        check(unsafe { mpi_sys::MPI_Test(request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })?;
        if done != 0 {
            return Ok(());
        }
        questions += 1;
        if questions > POLLS_BEFORE_YIELD {
            thread::yield_now();
        }
    }
}
