//! Nonblocking data accesses: posted one after the other, completed together.

use std::ffi::c_int;

use mpi_sys::{MPI_Request, MPI_Status};

use crate::access::{empty_status, transferred_bytes, DataAccess, TransferArguments, READ, WRITE};
use crate::datatype::TransferType;
use crate::error::{check, Result};
use crate::file::MpiFile;

/// Arguments of one data access; the offset is in bytes from the displacement of the view, for explicit offsets.
#[derive(Debug)]
pub struct Transfer<'t, M> {
    /// Length and element.
    pub what: &'t TransferType,
    /// File offset.
    pub offset_bytes: u64,
    /// Memory, at least of that length.
    pub memory: M,
}

/// Receives the number of each call and its bytes or error. Returning false stops further posts.
pub trait CompletionHandler: FnMut(usize, Result<u64>) -> bool {}

impl<T: FnMut(usize, Result<u64>) -> bool> CompletionHandler for T {}

/// Preallocated requests and statuses, so that posting and completing a transfer does not allocate.
#[derive(Debug)]
pub struct TransferRequests {
    requests: Vec<MPI_Request>,
    /// Whether each was posted.
    posted: Vec<bool>,
    statuses: Vec<MPI_Status>,
}

impl TransferRequests {
    /// Allocates for `most` concurrent transfers.
    #[must_use]
    pub fn with_capacity(most: usize) -> Self {
        Self {
            requests: Vec::with_capacity(most),
            posted: Vec::with_capacity(most),
            statuses: vec![empty_status(); most],
        }
    }

    /// Maximum number of concurrent transfers.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.statuses.len()
    }

    /// Posts all writes, runs `during` once, completes all (MPI_Waitall) and calls `took` for each. Returns, or continues a panic, only
    /// after completion.
    ///
    /// # Panics
    /// If the memory of a transfer is too short, or if they exceed the capacity.
    pub fn write<'m, 't>(
        &mut self,
        file: &MpiFile,
        access: DataAccess,
        transfers: impl Iterator<Item = Transfer<'t, &'m [u8]>>,
        during: &mut dyn FnMut(),
        took: impl CompletionHandler,
    ) {
        self.run(transfers, during, took, |t, request| {
            let args = TransferArguments::new(file, t.offset_bytes, (t.memory.as_ptr(), t.memory.len()), t.what);
            // SAFETY: the memory is only read, and borrowed for longer than `run`, which completes the request.
            unsafe { args.post::<WRITE>(access, request) }
        });
    }

    /// As [`TransferRequests::write`], for reads.
    ///
    /// # Panics
    /// As [`TransferRequests::write`].
    pub fn read<'m, 't>(
        &mut self,
        file: &MpiFile,
        access: DataAccess,
        transfers: impl Iterator<Item = Transfer<'t, &'m mut [u8]>>,
        during: &mut dyn FnMut(),
        took: impl CompletionHandler,
    ) {
        self.run(transfers, during, took, |t, request| {
            let args = TransferArguments::new(file, t.offset_bytes, (t.memory.as_mut_ptr(), t.memory.len()), t.what);
            // SAFETY: as in `write`; the memory is exclusively borrowed.
            unsafe { args.post::<READ>(access, request) }
        });
    }

    /// Posts and completes one transfer. Returns its bytes.
    ///
    /// # Panics
    /// As [`TransferRequests::write`].
    pub fn write_one(&mut self, file: &MpiFile, access: DataAccess, transfer: Transfer<'_, &[u8]>) -> Result<u64> {
        let mut result = Ok(0);
        self.write(file, access, std::iter::once(transfer), &mut || {}, |_, outcome| {
            result = outcome;
            false
        });
        result
    }

    /// As [`TransferRequests::write_one`], for a read.
    ///
    /// # Panics
    /// As [`TransferRequests::write`].
    pub fn read_one(&mut self, file: &MpiFile, access: DataAccess, transfer: Transfer<'_, &mut [u8]>) -> Result<u64> {
        let mut result = Ok(0);
        self.read(file, access, std::iter::once(transfer), &mut || {}, |_, outcome| {
            result = outcome;
            false
        });
        result
    }

    /// `begin` posts one transfer and sets its request.
    fn run<'t, M>(
        &mut self,
        transfers: impl Iterator<Item = Transfer<'t, M>>,
        during: &mut dyn FnMut(),
        mut took: impl CompletionHandler,
        begin: impl Fn(Transfer<'t, M>, *mut MPI_Request) -> Result<()>,
    ) {
        // Nothing is pending between two calls of this function.
        self.requests.clear();
        self.posted.clear();
        let mut flight = InFlightTransfers { transfers: self };
        let mut element = None;
        for (number, transfer) in transfers.enumerate() {
            assert!(number < flight.transfers.statuses.len(), "more transfers than the capacity");
            let counted = transfer.what.element();
            assert!(*element.get_or_insert(counted) == counted, "transfers with different elements");
            let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
            let begun = begin(transfer, &raw mut request);
            // A failed call leaves a null request at its index, so that indices are call numbers.
            flight.transfers.requests.push(request);
            flight.transfers.posted.push(begun.is_ok());
            if begun.is_err_and(|error| !took(number, Err(error))) {
                break;
            }
        }
        during();
        let outcome = flight.wait();
        drop(flight);
        let Some(element) = element else { return };
        let statuses = &self.statuses[..self.requests.len()];
        if let Err(error) = outcome {
            // Libraries may report an error without the status of the failed transfer.
            if statuses.iter().all(|status| status.MPI_ERROR == 0) {
                took(0, Err(error));
                return;
            }
        }
        for (number, (status, _)) in statuses.iter().zip(&self.posted).enumerate().filter(|(_, (_, begun))| **begun) {
            took(number, check(status.MPI_ERROR).and_then(|()| transferred_bytes(status, element)));
        }
    }
}

/// Transfers in flight. Dropped by a panic it completes them, before the caller reuses the memory.
struct InFlightTransfers<'a> {
    transfers: &'a mut TransferRequests,
}

impl InFlightTransfers<'_> {
    /// Completes all; the statuses contain MPI_ERROR where the result is an error.
    fn wait(&mut self) -> Result<()> {
        let TransferRequests { requests, statuses, .. } = &mut *self.transfers;
        let count = c_int::try_from(requests.len()).unwrap_or(c_int::MAX);
        statuses[..requests.len()].fill(empty_status());
        // SAFETY: as many requests of MPI, or null, as statuses; the memory is valid until the owner of this value returns.
        let code = unsafe { mpi_sys::MPI_Waitall(count, requests.as_mut_ptr(), statuses.as_mut_ptr()) };
        if code == 0 {
            return Ok(());
        }
        // After an error some may still be pending (MPI_ERR_PENDING).
        for (request, status) in requests.iter_mut().zip(statuses.iter_mut()) {
            if *request != constant!(mpi_sys::RSMPI_REQUEST_NULL) {
                // SAFETY: a request of MPI and its status.
                let code = unsafe { mpi_sys::MPI_Wait(request, status) };
                status.MPI_ERROR = code;
            }
        }
        check(code)
    }
}

impl Drop for InFlightTransfers<'_> {
    fn drop(&mut self) {
        let null = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        if self.transfers.requests.iter().any(|request| *request != null) {
            let _ = self.wait();
        }
    }
}
