//! A maximum over ranks as a pending reduction, completed later while the ranks work.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::{element_count, Comm};
use crate::error::{check, Result};
use crate::ranks::{f64_to_bytes, reduce_f64};
use crate::yielding_wait::wait_yielding;
use crate::{collective_timeout, shim};

/// Element-wise maximum over all ranks in preallocated, reusable memory: a persistent MPI_Allreduce_init, because each MPI_Iallreduce
/// allocates (7 times in MPICH 4.0); MPI_Iallreduce where the library has no persistent collectives. Libraries may progress it only inside
/// their calls; the rest is then done on completion.
#[derive(Debug)]
pub struct MaxReduction<'c> {
    comm: &'c Comm,
    /// Owned by MPI while the request is pending.
    values: Vec<f64>,
    request: MPI_Request,
    /// The request is inactive between reductions, not null.
    persistent: bool,
    pending: bool,
    /// Number of the collective call among ranks that are not MPI's.
    collective_number: u64,
    /// Other ranks were expected before this was posted ([`collective_timeout::expect_peers`]): its completion shows that they have returned.
    confirms_peers: bool,
}

impl<'c> MaxReduction<'c> {
    /// For `numbers` values of each rank of `comm`. Nothing is posted. Collective.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn new(comm: &'c Comm, numbers: usize) -> Result<Self> {
        let none = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        let mut new = Self {
            comm,
            values: vec![0.0; numbers],
            request: none,
            persistent: false,
            pending: false,
            collective_number: 0,
            confirms_peers: false,
        };
        if comm.size() > 1 && comm.custom_ranks().is_none() {
            let begin = shim::beff_allreduce_init_in_place;
            // SAFETY: the vector keeps its memory until `drop` frees the request.
            unsafe { new.with_memory(begin) }?;
            new.persistent = new.request != none;
        }
        Ok(new)
    }

    /// Creates the request with `begin`, one of the two in-place reductions of the shim.
    ///
    /// # Safety
    /// The values are neither moved nor accessed while the request is active.
    unsafe fn with_memory(
        &mut self,
        begin: unsafe extern "C" fn(
            *mut c_void,
            c_int,
            mpi_sys::MPI_Datatype,
            mpi_sys::MPI_Op,
            mpi_sys::MPI_Comm,
            *mut MPI_Request,
        ) -> c_int,
    ) -> Result<()> {
        let (memory, elements) = (self.values.as_mut_ptr().cast::<c_void>(), element_count(&self.values));
        let (kind, op) = (constant!(mpi_sys::RSMPI_DOUBLE), constant!(mpi_sys::RSMPI_MAX));
        // SAFETY: `elements` doubles on the heap, for which the caller vouches.
        check(unsafe { begin(memory, elements, kind, op, self.comm.handle(), &raw mut self.request) })
    }

    /// True from [`MaxReduction::post`] to [`MaxReduction::complete`].
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// Posts the reduction of this rank's numbers, as many as given to `new`. Collective, in the order of all collective calls, but
    /// nonblocking. Does not allocate.
    ///
    /// # Errors
    /// Any MPI error.
    ///
    /// # Panics
    /// If one is pending, or if the number of values differs.
    pub fn post(&mut self, mine: &[f64]) -> Result<()> {
        assert!(!self.pending, "a reduction is pending");
        self.values.copy_from_slice(mine);
        self.confirms_peers = collective_timeout::peers_expected();
        if let Some(ranks) = self.comm.custom_ranks() {
            self.collective_number = ranks.post_allgather(&f64_to_bytes(mine));
        } else if self.persistent {
            // SAFETY: the inactive request of `new`; the values are neither moved nor accessed until it is complete: `complete` and
            // `drop` complete it first, all else requires that none is pending.
            check(unsafe { mpi_sys::MPI_Start(&raw mut self.request) })?;
        } else if self.comm.size() > 1 {
            // SAFETY: as above.
            unsafe { self.with_memory(shim::beff_iallreduce_in_place) }?;
        }
        self.pending = true;
        Ok(())
    }

    /// Lets the library progress pending operations, this and others (MPI_Test).
    ///
    /// # Errors
    /// Any MPI error.
    pub fn progress(&mut self) -> Result<()> {
        if self.comm.size() == 1 || self.comm.custom_ranks().is_some() {
            return Ok(());
        }
        let mut done: c_int = 0;
        // SAFETY: the request of this reduction, pending, inactive or null; its memory lives until completion; the status is ignored.
        check(unsafe { mpi_sys::MPI_Test(&raw mut self.request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })
    }

    /// Waits until all ranks have posted, yielding the core. Returns the maxima, of the last reduction if none is pending. Does not
    /// allocate.
    ///
    /// # Errors
    /// Any MPI error; nothing is pending afterwards.
    pub fn complete(&mut self) -> Result<&[f64]> {
        self.wait_pending()?;
        Ok(&self.values)
    }

    fn wait_pending(&mut self) -> Result<()> {
        if std::mem::take(&mut self.pending) {
            if let Some(ranks) = self.comm.custom_ranks() {
                reduce_f64(&mut self.values, &ranks.complete_allgather(self.collective_number), f64::max);
            } else if self.comm.size() > 1 {
                wait_yielding(&mut self.request)?;
            }
            if self.confirms_peers {
                collective_timeout::peers_arrived();
            }
        }
        Ok(())
    }
}

impl Drop for MaxReduction<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.wait_pending();
            if self.persistent {
                // SAFETY: the inactive request of `new`, freed once, before the communicator that this borrows.
                unsafe { mpi_sys::MPI_Request_free(&raw mut self.request) };
            }
        } else if self.pending {
            // A panic ends all ranks, so the reduction would never complete. Until then MPI may write to this memory.
            std::mem::forget(std::mem::take(&mut self.values));
        }
    }
}
