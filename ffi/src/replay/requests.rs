//! Requests of files: completing, testing, freeing and cancelling them.

use std::ffi::c_int;

use mpi_sys::{MPI_Request, MPI_Status};

use super::timed::{timed, Code, Timed};
use crate::access::{moved, no_status};
use crate::datatype::Element;
use crate::shim;

/// A request of MPI, or none. Dropped, it is forgotten, not completed: who begins a transfer sees to that.
#[derive(Debug)]
#[repr(transparent)]
pub struct Request(MPI_Request);

/// What a completion tells.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Status(MPI_Status);

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Status {{ error: {} }}", self.0.MPI_ERROR)
    }
}

impl Request {
    /// MPI_REQUEST_NULL.
    #[must_use]
    #[inline]
    pub fn none() -> Self {
        Self(constant!(mpi_sys::RSMPI_REQUEST_NULL))
    }

    /// True if it stands for a transfer that has not been completed.
    #[must_use]
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.0 != constant!(mpi_sys::RSMPI_REQUEST_NULL)
    }

    /// The request, and none in its place.
    #[must_use]
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::none())
    }

    #[inline]
    pub(super) fn memory(&mut self) -> *mut MPI_Request {
        &raw mut self.0
    }

    /// MPI_Wait.
    #[inline]
    pub fn wait(&mut self, status: &mut Status) -> Timed {
        // SAFETY: a request made by MPI or none; the status is memory of our own.
        timed(|| unsafe { mpi_sys::MPI_Wait(self.memory(), status.memory()) })
    }

    /// MPI_Test, and whether it is complete now.
    #[inline]
    pub fn test(&mut self, status: &mut Status) -> (Timed, bool) {
        let mut done: c_int = 0;
        // SAFETY: as in `wait`; one integer is written.
        let timed = timed(|| unsafe { mpi_sys::MPI_Test(self.memory(), &raw mut done, status.memory()) });
        (timed, done != 0)
    }

    /// MPI_Request_free. The transfer goes on; nobody can know when it has ended.
    pub fn free(&mut self) -> Timed {
        // SAFETY: a pending request; MPI sets it to null.
        timed(|| unsafe { mpi_sys::MPI_Request_free(self.memory()) })
    }

    /// MPI_Cancel. The request still has to be completed.
    pub fn cancel(&mut self) -> Timed {
        // SAFETY: a pending request.
        timed(|| unsafe { mpi_sys::MPI_Cancel(self.memory()) })
    }

    /// MPI_Request_get_status, and whether the transfer has ended. The request stays.
    pub fn get_status(&self, status: &mut Status) -> (Timed, bool) {
        let mut done: c_int = 0;
        // SAFETY: as in `wait`; one integer is written.
        let timed = timed(|| unsafe { mpi_sys::MPI_Request_get_status(self.0, &raw mut done, status.memory()) });
        (timed, done != 0)
    }
}

impl Status {
    /// One without content, for a call to fill in.
    #[must_use]
    #[inline]
    pub fn none() -> Self {
        Self(no_status())
    }

    #[inline]
    pub(super) fn memory(&mut self) -> *mut MPI_Status {
        &raw mut self.0
    }

    /// Bytes that were moved, None if the library does not tell.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> Option<u64> {
        moved(&self.0, Element::Byte).ok()
    }

    /// The error in it. Defined only after a call on several requests that returned MPI_ERR_IN_STATUS.
    #[must_use]
    pub fn code(&self) -> Code {
        Code(self.0.MPI_ERROR)
    }
}

/// What a call on several requests found, in `done`: places in the list.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// When, and what it returned.
    pub timed: Timed,
    /// False if a test found nothing complete (Testall: not all).
    pub any: bool,
    /// How many are in `done`. With none pending in the list (MPI_UNDEFINED) 0.
    pub count: usize,
}

/// Memory for calls on several requests, made before the clock.
#[derive(Debug, Default)]
pub struct Several {
    /// The list.
    pub requests: Vec<Request>,
    /// Statuses of what was completed: of Waitsome and Testsome in the order of `done`, else in that of the list.
    pub statuses: Vec<Status>,
    /// Places in the list that were completed.
    pub done: Vec<c_int>,
}

fn pointer(requests: &mut [Request]) -> *mut MPI_Request {
    // Transparent: a list of requests is a list of those of MPI.
    requests.as_mut_ptr().cast()
}

impl Several {
    /// Makes room for lists of so many requests.
    pub fn reserve(&mut self, most: usize) {
        self.requests.reserve(most.saturating_sub(self.requests.len()));
        if self.statuses.len() < most {
            self.statuses.resize(most, Status::none());
            self.done.resize(most, 0);
        }
    }

    /// Length of the list, with room for the answers.
    fn ready(&mut self) -> c_int {
        self.reserve(self.requests.len());
        c_int::try_from(self.requests.len()).unwrap_or(c_int::MAX)
    }

    fn found(&self, timed: Timed, any: bool, count: c_int) -> Found {
        // MPI_UNDEFINED is negative: nothing pending in the list.
        Found { timed, any, count: usize::try_from(count).unwrap_or(0).min(self.requests.len()) }
    }

    fn one(&mut self, timed: Timed, any: bool, index: c_int) -> Found {
        let known = usize::try_from(index).is_ok_and(|index| index < self.requests.len());
        if known {
            self.done[0] = index;
        }
        self.found(timed, any, c_int::from(known))
    }

    /// MPI_Waitall. `done` says nothing; the statuses are in the order of the list.
    pub fn wait_all(&mut self) -> Found {
        let count = self.ready();
        let (list, statuses) = (pointer(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as many requests as told, each made by MPI or null, and at least as many statuses.
        let timed = timed(|| unsafe { mpi_sys::MPI_Waitall(count, list, statuses) });
        self.found(timed, true, count)
    }

    /// MPI_Testall; as [`Several::wait_all`] if all are complete.
    pub fn test_all(&mut self) -> Found {
        let (count, mut all) = (self.ready(), 0);
        let (list, statuses) = (pointer(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `wait_all`; one integer is written.
        let timed = timed(|| unsafe { mpi_sys::MPI_Testall(count, list, &raw mut all, statuses) });
        self.found(timed, all != 0, count)
    }

    /// MPI_Waitany; the status of the one is the first.
    pub fn wait_any(&mut self) -> Found {
        let (count, mut index) = (self.ready(), -1);
        if self.statuses.is_empty() {
            self.reserve(1);
        }
        let (list, status) = (pointer(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `wait_all`, with one status; one integer is written.
        let timed = timed(|| unsafe { mpi_sys::MPI_Waitany(count, list, &raw mut index, status) });
        self.one(timed, true, index)
    }

    /// MPI_Testany; the status of the one is the first.
    pub fn test_any(&mut self) -> Found {
        let (count, mut index, mut done) = (self.ready(), -1, 0);
        if self.statuses.is_empty() {
            self.reserve(1);
        }
        let (list, status) = (pointer(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `wait_any`.
        let timed = timed(|| unsafe { mpi_sys::MPI_Testany(count, list, &raw mut index, &raw mut done, status) });
        self.one(timed, done != 0, index)
    }

    /// MPI_Waitsome.
    pub fn wait_some(&mut self) -> Found {
        let (count, mut found) = (self.ready(), 0);
        let (list, done) = (pointer(&mut self.requests), self.done.as_mut_ptr());
        let statuses = self.statuses.as_mut_ptr().cast::<MPI_Status>();
        // SAFETY: as in `wait_all`, with as many places as requests.
        let timed = timed(|| unsafe { mpi_sys::MPI_Waitsome(count, list, &raw mut found, done, statuses) });
        self.found(timed, found > 0, found)
    }

    /// MPI_Testsome.
    pub fn test_some(&mut self) -> Found {
        let (count, mut found) = (self.ready(), 0);
        let (list, done) = (pointer(&mut self.requests), self.done.as_mut_ptr());
        let statuses = self.statuses.as_mut_ptr().cast::<MPI_Status>();
        // SAFETY: as in `wait_some`.
        let timed = timed(|| unsafe { mpi_sys::MPI_Testsome(count, list, &raw mut found, done, statuses) });
        self.found(timed, found != 0, found)
    }

    /// MPI_Request_get_status_any of MPI-4.1; None if this library has none. The requests stay.
    pub fn get_status_any(&mut self) -> Option<Found> {
        let call = constant!(shim::beff_request_get_status_any)?;
        let (count, mut index, mut done) = (self.ready().max(0), -1, 0);
        if self.statuses.is_empty() {
            self.reserve(1);
        }
        let (list, status) = (pointer(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `test_any`.
        let timed = timed(|| unsafe { call(count, list, &raw mut index, &raw mut done, status) });
        Some(self.one(timed, done != 0, index))
    }

    /// MPI_Request_get_status_all of MPI-4.1, as [`Several::get_status_any`].
    pub fn get_status_all(&mut self) -> Option<Found> {
        let call = constant!(shim::beff_request_get_status_all)?;
        let (count, mut all) = (self.ready(), 0);
        let (list, statuses) = (pointer(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `test_all`.
        let timed = timed(|| unsafe { call(count, list, &raw mut all, statuses) });
        Some(self.found(timed, all != 0, count))
    }

    /// MPI_Request_get_status_some of MPI-4.1, as [`Several::get_status_any`].
    pub fn get_status_some(&mut self) -> Option<Found> {
        let call = constant!(shim::beff_request_get_status_some)?;
        let (count, mut found) = (self.ready(), 0);
        let (list, done) = (pointer(&mut self.requests), self.done.as_mut_ptr());
        let statuses = self.statuses.as_mut_ptr().cast::<MPI_Status>();
        // SAFETY: as in `test_some`.
        let timed = timed(|| unsafe { call(count, list, &raw mut found, done, statuses) });
        Some(self.found(timed, found != 0, found))
    }
}

/// True if the library has the functions of MPI-4.1 that ask about several requests and leave them.
#[must_use]
pub fn has_get_status_of_several() -> bool {
    constant!(shim::beff_request_get_status_any).is_some()
}
