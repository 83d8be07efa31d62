//! Communicators from lists of ranks.

use std::ffi::c_int;

use crate::comm::Comm;
use crate::error::{c_integer, check, Result};
use crate::shim;

/// A group that is freed.
struct Group(mpi_sys::MPI_Group);

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: a group made here, freed once.
        unsafe { mpi_sys::MPI_Group_free(&raw mut self.0) };
    }
}

impl Comm {
    /// The communicator of these ranks of this one, in this order (MPI_COMM_SELF for one alone); None on ranks that are not in it. Collective over those that
    /// are (MPI_Comm_create_group): lists that are worked through by all in the same order cannot wait for each other.
    ///
    /// # Errors
    /// MPI_ERR_RANK for a rank that does not exist or stands there twice; what MPI reports.
    pub fn of_ranks(&self, ranks: &[u32]) -> Result<Option<Self>> {
        if !ranks.iter().any(|rank| u64::from(*rank) == self.rank()) {
            return Ok(None);
        }
        if ranks.len() == 1 {
            // Libraries have room for a few thousand communicators, and this one is there.
            return Ok(Some(Self::own()));
        }
        let mut list = Vec::with_capacity(ranks.len());
        for rank in ranks {
            list.push(c_integer(u64::from(*rank), "MPI_ERR_RANK")?);
        }
        let (mut all, mut some) = (Group(constant!(mpi_sys::RSMPI_GROUP_NULL)), constant!(mpi_sys::RSMPI_GROUP_NULL));
        // SAFETY: a valid communicator; the new handle is owned by `all`.
        let told = check(unsafe { mpi_sys::MPI_Comm_group(self.handle(), &raw mut all.0) });
        if let Err(error) = told {
            std::mem::forget(all);
            return Err(error);
        }
        let length = c_int::try_from(list.len()).unwrap_or(c_int::MAX);
        // SAFETY: a valid group, and as many ranks as told.
        check(unsafe { mpi_sys::MPI_Group_incl(all.0, length, list.as_ptr(), &raw mut some) })?;
        let some = Group(some);
        let mut made = constant!(shim::beff_comm_null);
        // SAFETY: collective over the ranks of the group, this one among them; the new handle is written.
        check(unsafe { mpi_sys::MPI_Comm_create_group(self.handle(), some.0, 0, &raw mut made) })?;
        Self::adopt(made)
    }
}
