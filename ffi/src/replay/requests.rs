//! Requests of files: completion, test, free and cancel.

use std::ffi::c_int;

use mpi_sys::{MPI_Request, MPI_Status};

use super::timing::{time_call, ReturnCode, TimedCall};
use crate::access::{empty_status, transferred_bytes};
use crate::datatype::Element;
use crate::shim;

/// A request of MPI, or MPI_REQUEST_NULL. Dropping does not complete it; the owner of the transfer must.
#[derive(Debug)]
#[repr(transparent)]
pub struct Request(MPI_Request);

/// An MPI_Status.
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
    pub fn null() -> Self {
        Self(constant!(mpi_sys::RSMPI_REQUEST_NULL))
    }

    /// True if the transfer has not been completed.
    #[must_use]
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.0 != constant!(mpi_sys::RSMPI_REQUEST_NULL)
    }

    /// Returns the request and replaces it by MPI_REQUEST_NULL.
    #[must_use]
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::null())
    }

    #[inline]
    pub(super) fn as_mut_ptr(&mut self) -> *mut MPI_Request {
        &raw mut self.0
    }

    /// MPI_Wait.
    #[inline]
    pub fn wait(&mut self, status: &mut Status) -> TimedCall {
        // SAFETY: a request of MPI or null; the status is owned here.
        time_call(|| unsafe { mpi_sys::MPI_Wait(self.as_mut_ptr(), status.as_mut_ptr()) })
    }

    /// MPI_Test; returns the flag.
    #[inline]
    pub fn test(&mut self, status: &mut Status) -> (TimedCall, bool) {
        let mut done: c_int = 0;
        // SAFETY: as in `wait`; one integer is written.
        let timed = time_call(|| unsafe { mpi_sys::MPI_Test(self.as_mut_ptr(), &raw mut done, status.as_mut_ptr()) });
        (timed, done != 0)
    }

    /// MPI_Request_free. The transfer continues; its completion cannot be observed.
    pub fn free(&mut self) -> TimedCall {
        // SAFETY: a pending request; MPI sets it to null.
        time_call(|| unsafe { mpi_sys::MPI_Request_free(self.as_mut_ptr()) })
    }

    /// MPI_Cancel. The request must still be completed.
    pub fn cancel(&mut self) -> TimedCall {
        // SAFETY: a pending request.
        time_call(|| unsafe { mpi_sys::MPI_Cancel(self.as_mut_ptr()) })
    }

    /// MPI_Request_get_status; returns whether the transfer is complete. The request stays.
    pub fn get_status(&self, status: &mut Status) -> (TimedCall, bool) {
        let mut done: c_int = 0;
        // SAFETY: as in `wait`; one integer is written.
        let timed =
            time_call(|| unsafe { mpi_sys::MPI_Request_get_status(self.0, &raw mut done, status.as_mut_ptr()) });
        (timed, done != 0)
    }
}

impl Status {
    /// An empty status, to be filled by a call.
    #[must_use]
    #[inline]
    pub fn empty() -> Self {
        Self(empty_status())
    }

    #[inline]
    pub(super) fn as_mut_ptr(&mut self) -> *mut MPI_Status {
        &raw mut self.0
    }

    /// Transferred bytes, None if the library does not report them.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> Option<u64> {
        transferred_bytes(&self.0, Element::Byte).ok()
    }

    /// Error of the status. Defined only after a call on several requests that returned MPI_ERR_IN_STATUS.
    #[must_use]
    pub fn code(&self) -> ReturnCode {
        ReturnCode(self.0.MPI_ERROR)
    }
}

/// Result of a call on several requests.
#[derive(Clone, Copy, Debug)]
pub struct MultiCompletion {
    /// Times and return code.
    pub timed: TimedCall,
    /// False if a test completed nothing (Testall: not all).
    pub flag: bool,
    /// Number of completed requests, whose indices are in `done`; 0 if none was pending (MPI_UNDEFINED).
    pub count: usize,
}

/// Memory for calls on several requests, allocated before the timed region.
#[derive(Debug, Default)]
pub struct RequestArray {
    /// The array of requests.
    pub requests: Vec<Request>,
    /// Statuses of completed requests: for Waitsome and Testsome in the order of `done`, else in that of the array.
    pub statuses: Vec<Status>,
    /// Indices of completed requests.
    pub indices: Vec<c_int>,
}

fn mpi_requests(requests: &mut [Request]) -> *mut MPI_Request {
    // Transparent, so an array of requests is an array of MPI_Request.
    requests.as_mut_ptr().cast()
}

impl RequestArray {
    /// Allocates for arrays of `most` requests.
    pub fn reserve(&mut self, most: usize) {
        self.requests.reserve(most.saturating_sub(self.requests.len()));
        if self.statuses.len() < most {
            self.statuses.resize(most, Status::empty());
            self.indices.resize(most, 0);
        }
    }

    /// Length of the array, after allocating the results.
    fn prepare(&mut self) -> c_int {
        self.reserve(self.requests.len());
        c_int::try_from(self.requests.len()).unwrap_or(c_int::MAX)
    }

    fn completion(&self, timed: TimedCall, any: bool, count: c_int) -> MultiCompletion {
        // MPI_UNDEFINED is negative: no request was pending.
        MultiCompletion { timed, flag: any, count: usize::try_from(count).unwrap_or(0).min(self.requests.len()) }
    }

    fn single_completion(&mut self, timed: TimedCall, any: bool, index: c_int) -> MultiCompletion {
        let known = usize::try_from(index).is_ok_and(|index| index < self.requests.len());
        if known {
            self.indices[0] = index;
        }
        self.completion(timed, any, c_int::from(known))
    }

    /// MPI_Waitall. `done` is unused; the statuses are in the order of the array.
    pub fn wait_all(&mut self) -> MultiCompletion {
        let count = self.prepare();
        let (list, statuses) = (mpi_requests(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: `count` requests, each of MPI or null, and at least as many statuses.
        let timed = time_call(|| unsafe { mpi_sys::MPI_Waitall(count, list, statuses) });
        self.completion(timed, true, count)
    }

    /// MPI_Testall; as [`RequestArray::wait_all`] if all are complete.
    pub fn test_all(&mut self) -> MultiCompletion {
        let (count, mut all) = (self.prepare(), 0);
        let (list, statuses) = (mpi_requests(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `wait_all`; one integer is written.
        let timed = time_call(|| unsafe { mpi_sys::MPI_Testall(count, list, &raw mut all, statuses) });
        self.completion(timed, all != 0, count)
    }

    /// MPI_Waitany; its status is the first one.
    pub fn wait_any(&mut self) -> MultiCompletion {
        let (count, mut index) = (self.prepare(), -1);
        if self.statuses.is_empty() {
            self.reserve(1);
        }
        let (list, status) = (mpi_requests(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `wait_all`, with one status; one integer is written.
        let timed = time_call(|| unsafe { mpi_sys::MPI_Waitany(count, list, &raw mut index, status) });
        self.single_completion(timed, true, index)
    }

    /// MPI_Testany; its status is the first one.
    pub fn test_any(&mut self) -> MultiCompletion {
        let (count, mut index, mut done) = (self.prepare(), -1, 0);
        if self.statuses.is_empty() {
            self.reserve(1);
        }
        let (list, status) = (mpi_requests(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `wait_any`.
        let timed = time_call(|| unsafe { mpi_sys::MPI_Testany(count, list, &raw mut index, &raw mut done, status) });
        self.single_completion(timed, done != 0, index)
    }

    /// MPI_Waitsome.
    pub fn wait_some(&mut self) -> MultiCompletion {
        let (count, mut found) = (self.prepare(), 0);
        let (list, done) = (mpi_requests(&mut self.requests), self.indices.as_mut_ptr());
        let statuses = self.statuses.as_mut_ptr().cast::<MPI_Status>();
        // SAFETY: as in `wait_all`, with as many indices as requests.
        let timed = time_call(|| unsafe { mpi_sys::MPI_Waitsome(count, list, &raw mut found, done, statuses) });
        self.completion(timed, found > 0, found)
    }

    /// MPI_Testsome.
    pub fn test_some(&mut self) -> MultiCompletion {
        let (count, mut found) = (self.prepare(), 0);
        let (list, done) = (mpi_requests(&mut self.requests), self.indices.as_mut_ptr());
        let statuses = self.statuses.as_mut_ptr().cast::<MPI_Status>();
        // SAFETY: as in `wait_some`.
        let timed = time_call(|| unsafe { mpi_sys::MPI_Testsome(count, list, &raw mut found, done, statuses) });
        self.completion(timed, found != 0, found)
    }

    /// MPI_Request_get_status_any of MPI-4.1; None if the library lacks it. The requests stay.
    pub fn get_status_any(&mut self) -> Option<MultiCompletion> {
        let call = constant!(shim::beff_request_get_status_any)?;
        let (count, mut index, mut done) = (self.prepare().max(0), -1, 0);
        if self.statuses.is_empty() {
            self.reserve(1);
        }
        let (list, status) = (mpi_requests(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `test_any`.
        let timed = time_call(|| unsafe { call(count, list, &raw mut index, &raw mut done, status) });
        Some(self.single_completion(timed, done != 0, index))
    }

    /// MPI_Request_get_status_all of MPI-4.1, as [`RequestArray::get_status_any`].
    pub fn get_status_all(&mut self) -> Option<MultiCompletion> {
        let call = constant!(shim::beff_request_get_status_all)?;
        let (count, mut all) = (self.prepare(), 0);
        let (list, statuses) = (mpi_requests(&mut self.requests), self.statuses.as_mut_ptr().cast::<MPI_Status>());
        // SAFETY: as in `test_all`.
        let timed = time_call(|| unsafe { call(count, list, &raw mut all, statuses) });
        Some(self.completion(timed, all != 0, count))
    }

    /// MPI_Request_get_status_some of MPI-4.1, as [`RequestArray::get_status_any`].
    pub fn get_status_some(&mut self) -> Option<MultiCompletion> {
        let call = constant!(shim::beff_request_get_status_some)?;
        let (count, mut found) = (self.prepare(), 0);
        let (list, done) = (mpi_requests(&mut self.requests), self.indices.as_mut_ptr());
        let statuses = self.statuses.as_mut_ptr().cast::<MPI_Status>();
        // SAFETY: as in `test_some`.
        let timed = time_call(|| unsafe { call(count, list, &raw mut found, done, statuses) });
        Some(self.completion(timed, found != 0, found))
    }
}

/// True if the library has MPI_Request_get_status_any, _all and _some of MPI-4.1.
#[must_use]
pub fn has_get_status_of_many() -> bool {
    constant!(shim::beff_request_get_status_any).is_some()
}
