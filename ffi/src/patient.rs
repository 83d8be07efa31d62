//! Agreements of ranks that leave the core to others while they wait.
//!
//! MPI libraries spin in their blocking calls. Where two ranks share a core, or a rank sleeps in the kernel until its transfer is done and
//! wakes where another one spins, that takes the core from the rank that everybody waits for. These calls ask, and after a short
//! while yield between two questions.

use std::ffi::{c_int, c_void};
use std::thread;

use mpi_sys::MPI_Request;

use crate::comm::{count, Comm, MOST_ELEMENTS};
use crate::error::{check, Result};
use crate::{shim, stranded};

/// Questions before the first yield: some microseconds, which is what ranks need that come together on cores of their own.
const QUESTIONS: u32 = 32;

impl Comm {
    /// A barrier (MPI_Ibarrier, then MPI_Test).
    ///
    /// # Errors
    /// What MPI reports.
    pub fn barrier(&self) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            ranks.meet("barrier", &[]);
            return Ok(());
        }
        if self.size() > 1 {
            // SAFETY: collective call on a valid communicator.
            self.patiently(|request| unsafe { mpi_sys::MPI_Ibarrier(self.handle(), request) })?;
        }
        stranded::others_came();
        Ok(())
    }

    /// Begins an operation and waits for its end.
    pub(crate) fn patiently(&self, begin: impl FnOnce(*mut MPI_Request) -> c_int) -> Result<()> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        check(begin(&raw mut request))?;
        complete(request)
    }

    /// Element-wise, in place (MPI_Iallreduce, then MPI_Test). Does not allocate.
    pub(crate) fn allreduce<T>(
        &self,
        values: &mut [T],
        datatype: mpi_sys::MPI_Datatype,
        op: mpi_sys::MPI_Op,
    ) -> Result<()> {
        if self.size() > 1 {
            for values in values.chunks_mut(MOST_ELEMENTS) {
                let (memory, elements) = (values.as_mut_ptr().cast::<c_void>(), count(values));
                // SAFETY: the buffer holds `elements` elements of the type the callers pair with it, and is borrowed alone until the
                // request is complete, which is before this goes on.
                self.patiently(|request| unsafe {
                    shim::beff_iallreduce_in_place(memory, elements, datatype, op, self.handle(), request)
                })?;
            }
        }
        stranded::others_came();
        Ok(())
    }
}

pub(crate) fn complete(mut request: MPI_Request) -> Result<()> {
    let mut questions = 0;
    loop {
        let mut done: c_int = 0;
        // SAFETY: the pending request of the caller; the status is not wanted. An error here is that of the
        // operation, which is over with it (MPI-3.1, 3.7.3): nothing is written after this returns.
        check(unsafe { mpi_sys::MPI_Test(&raw mut request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })?;
        if done != 0 {
            return Ok(());
        }
        questions += 1;
        if questions > QUESTIONS {
            thread::yield_now();
        }
    }
}
