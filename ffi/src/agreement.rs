//! An agreement of ranks that is under way while they work: begun with the numbers of one moment, looked at later.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::{count, Comm};
use crate::error::{check, Result};
use crate::patient::complete;
use crate::ranks::{bytes_f64, fold_f64};
use crate::{shim, stranded};

/// The largest of some numbers over all ranks (MPI_Iallreduce), with memory of its own, made once for any number of agreements.
/// Libraries may go on with it only inside of their calls: then what is left of it is done where it is looked at.
#[derive(Debug)]
pub struct Agreement<'c> {
    comm: &'c Comm,
    /// MPI's while the request is pending.
    values: Vec<f64>,
    request: MPI_Request,
    under_way: bool,
    /// Of ranks that are not MPI's: the number of their meeting.
    meeting: u64,
    /// Other ranks were expected before it was begun ([`stranded::expect_others`]): its end is the sign that they have come.
    is_sign: bool,
}

impl<'c> Agreement<'c> {
    /// On `numbers` numbers of the ranks of `comm`. Nothing is under way.
    #[must_use]
    pub fn new(comm: &'c Comm, numbers: usize) -> Self {
        let request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        Self { comm, values: vec![0.0; numbers], request, under_way: false, meeting: 0, is_sign: false }
    }

    /// True from [`Agreement::begin`] to [`Agreement::finish`].
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Begins with this rank's numbers, as many as it was made for. Collective, in the order of all collective calls on the communicator,
    /// but no rank waits for another. Does not allocate.
    ///
    /// # Errors
    /// What MPI reports.
    ///
    /// # Panics
    /// If one is under way, or with another number of numbers.
    pub fn begin(&mut self, mine: &[f64]) -> Result<()> {
        assert!(!self.under_way, "an agreement is under way");
        self.values.copy_from_slice(mine);
        self.is_sign = stranded::are_expected();
        if let Some(ranks) = self.comm.ranks() {
            self.meeting = ranks.begin(&bytes_f64(mine));
        } else if self.comm.size() > 1 {
            let (memory, elements) = (self.values.as_mut_ptr().cast::<c_void>(), count(&self.values));
            let (kind, op) = (constant!(mpi_sys::RSMPI_DOUBLE), constant!(mpi_sys::RSMPI_MAX));
            // SAFETY: `elements` doubles on the heap, which neither move nor are looked at until the request is complete: `finish` and
            // `drop` complete it first, and everything else needs `under_way` to be false.
            check(unsafe {
                shim::beff_iallreduce_in_place(memory, elements, kind, op, self.comm.handle(), &raw mut self.request)
            })?;
        }
        self.under_way = true;
        Ok(())
    }

    /// Lets the library go on with what is under way (MPI_Test), also with other operations.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn ask(&mut self) -> Result<()> {
        if self.comm.size() == 1 || self.comm.ranks().is_some() {
            return Ok(());
        }
        let mut done: c_int = 0;
        // SAFETY: a pending request of this agreement or none, whose memory is there until it is complete; the status is not wanted.
        check(unsafe { mpi_sys::MPI_Test(&raw mut self.request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })
    }

    /// Waits until all ranks have begun it, and leaves the core to others meanwhile; the largest numbers, or what the last one came to
    /// if none is under way. Does not allocate.
    ///
    /// # Errors
    /// What MPI reports; nothing is under way afterwards.
    pub fn finish(&mut self) -> Result<&[f64]> {
        self.complete()?;
        Ok(&self.values)
    }

    fn complete(&mut self) -> Result<()> {
        if std::mem::take(&mut self.under_way) {
            if let Some(ranks) = self.comm.ranks() {
                fold_f64(&mut self.values, &ranks.finish(self.meeting), f64::max);
            } else if self.comm.size() > 1 {
                let none = constant!(mpi_sys::RSMPI_REQUEST_NULL);
                complete(std::mem::replace(&mut self.request, none))?;
            }
            if self.is_sign {
                stranded::others_came();
            }
        }
        Ok(())
    }
}

impl Drop for Agreement<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.complete();
        } else if self.under_way {
            // A rank that panics ends all ranks: nobody would answer. Until then MPI may still write there.
            std::mem::forget(std::mem::take(&mut self.values));
        }
    }
}
