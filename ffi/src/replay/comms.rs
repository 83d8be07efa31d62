//! Communicators from lists of ranks.

use std::ffi::c_int;

use crate::comm::Comm;
use crate::error::{c_integer, check, Result};
use crate::shim;

/// An owned group handle.
struct GroupHandle(mpi_sys::MPI_Group);

impl Drop for GroupHandle {
    fn drop(&mut self) {
        // SAFETY: a group created here, freed once.
        unsafe { mpi_sys::MPI_Group_free(&raw mut self.0) };
    }
}

impl Comm {
    /// Communicator of these ranks of this one, in order (MPI_COMM_SELF for a single rank); None on other ranks. Collective over the
    /// listed ranks (MPI_Comm_create_group); lists processed in the same order by all ranks cannot deadlock.
    ///
    /// # Errors
    /// MPI_ERR_RANK for a rank that does not exist or is listed twice; any MPI error.
    pub fn create_group(&self, ranks: &[u32]) -> Result<Option<Self>> {
        if !ranks.iter().any(|rank| u64::from(*rank) == self.rank()) {
            return Ok(None);
        }
        if ranks.len() == 1 {
            // Libraries support a few thousand communicators only; this one is predefined.
            return Ok(Some(Self::comm_self()));
        }
        let mut list = Vec::with_capacity(ranks.len());
        for rank in ranks {
            list.push(c_integer(u64::from(*rank), "MPI_ERR_RANK")?);
        }
        let (mut all, mut some) =
            (GroupHandle(constant!(mpi_sys::RSMPI_GROUP_NULL)), constant!(mpi_sys::RSMPI_GROUP_NULL));
        // SAFETY: a valid communicator; the new handle is owned by `all`.
        let result = check(unsafe { mpi_sys::MPI_Comm_group(self.handle(), &raw mut all.0) });
        if let Err(error) = result {
            std::mem::forget(all);
            return Err(error);
        }
        let length = c_int::try_from(list.len()).unwrap_or(c_int::MAX);
        // SAFETY: a valid group, and a list of `length` ranks.
        check(unsafe { mpi_sys::MPI_Group_incl(all.0, length, list.as_ptr(), &raw mut some) })?;
        let some = GroupHandle(some);
        let mut new_comm = constant!(shim::beff_comm_null);
        // SAFETY: collective over the ranks of the group, which includes this one; the new handle is written.
        check(unsafe { mpi_sys::MPI_Comm_create_group(self.handle(), some.0, 0, &raw mut new_comm) })?;
        Self::from_nullable_handle(new_comm)
    }
}
