//! Transfers between memory and file that do not block: begun one after the other, waited for together.

use std::ffi::c_int;

use mpi_sys::{MPI_Request, MPI_Status};

use crate::access::{moved, no_status, Access, Args, READ, WRITE};
use crate::datatype::TransferType;
use crate::error::{check, Result};
use crate::file::MpiFile;

/// One call: how much, and where in the file (in bytes from the displacement of the view, for calls with an offset) and in
/// memory.
#[derive(Debug)]
pub struct Transfer<'t, M> {
    /// How much, and in which elements.
    pub what: &'t TransferType,
    /// Where in the file.
    pub offset_bytes: u64,
    /// Memory, at least as long.
    pub memory: M,
}

/// What the caller wants to know of each call: its number, and the bytes it moved or why it failed. False: begin no further
/// one.
pub trait Took: FnMut(usize, Result<u64>) -> bool {}

impl<T: FnMut(usize, Result<u64>) -> bool> Took for T {}

/// Room for requests and statuses, made once, so that beginning and completing a transfer does not allocate.
#[derive(Debug)]
pub struct Transfers {
    requests: Vec<MPI_Request>,
    /// Whether each of them was begun.
    begun: Vec<bool>,
    statuses: Vec<MPI_Status>,
}

impl Transfers {
    /// Room for `most` transfers at once.
    #[must_use]
    pub fn with_capacity(most: usize) -> Self {
        Self { requests: Vec::with_capacity(most), begun: Vec::with_capacity(most), statuses: vec![no_status(); most] }
    }

    /// Transfers that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.statuses.len()
    }

    /// Begins all `transfers`, which write, runs `during` once, waits for all (MPI_Waitall) and tells `took` of each.
    /// Returns after all have ended, whatever goes wrong; also a panic goes on only then.
    ///
    /// # Panics
    /// If the memory of one is shorter than the transfer, or there are more than fit.
    pub fn write<'m, 't>(
        &mut self,
        file: &MpiFile,
        access: Access,
        transfers: impl Iterator<Item = Transfer<'t, &'m [u8]>>,
        during: &mut dyn FnMut(),
        took: impl Took,
    ) {
        self.run(transfers, during, took, |t, request| {
            let args = Args::new(file, t.offset_bytes, (t.memory.as_ptr(), t.memory.len()), t.what);
            // SAFETY: the memory is borrowed for longer than `run`, which waits for the request before it returns, and only
            // read.
            unsafe { args.begin::<WRITE>(access, request) }
        });
    }

    /// As [`Transfers::write`], with transfers that read.
    ///
    /// # Panics
    /// As [`Transfers::write`].
    pub fn read<'m, 't>(
        &mut self,
        file: &MpiFile,
        access: Access,
        transfers: impl Iterator<Item = Transfer<'t, &'m mut [u8]>>,
        during: &mut dyn FnMut(),
        took: impl Took,
    ) {
        self.run(transfers, during, took, |t, request| {
            let args = Args::new(file, t.offset_bytes, (t.memory.as_mut_ptr(), t.memory.len()), t.what);
            // SAFETY: as in `write`; the memory is exclusively borrowed.
            unsafe { args.begin::<READ>(access, request) }
        });
    }

    /// One transfer, begun and waited for. Returns the bytes it moved.
    ///
    /// # Panics
    /// As [`Transfers::write`].
    pub fn write_one(&mut self, file: &MpiFile, access: Access, transfer: Transfer<'_, &[u8]>) -> Result<u64> {
        let mut result = Ok(0);
        self.write(file, access, std::iter::once(transfer), &mut || {}, |_, told| {
            result = told;
            false
        });
        result
    }

    /// As [`Transfers::write_one`], for a read.
    ///
    /// # Panics
    /// As [`Transfers::write`].
    pub fn read_one(&mut self, file: &MpiFile, access: Access, transfer: Transfer<'_, &mut [u8]>) -> Result<u64> {
        let mut result = Ok(0);
        self.read(file, access, std::iter::once(transfer), &mut || {}, |_, told| {
            result = told;
            false
        });
        result
    }

    /// `begin` begins one transfer and fills in its request.
    fn run<'t, M>(
        &mut self,
        transfers: impl Iterator<Item = Transfer<'t, M>>,
        during: &mut dyn FnMut(),
        mut took: impl Took,
        begin: impl Fn(Transfer<'t, M>, *mut MPI_Request) -> Result<()>,
    ) {
        // Nothing is pending between two calls of this function.
        self.requests.clear();
        self.begun.clear();
        let mut flight = Flight { all: self };
        let mut element = None;
        for (number, transfer) in transfers.enumerate() {
            assert!(number < flight.all.statuses.len(), "more transfers than there is room for");
            let counted = transfer.what.element();
            assert!(*element.get_or_insert(counted) == counted, "one view, one element");
            let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
            let begun = begin(transfer, &raw mut request);
            // A call that failed has left none: its place stays empty, so that places are numbers of calls.
            flight.all.requests.push(request);
            flight.all.begun.push(begun.is_ok());
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
            // Told as a whole by a library that does not say which one.
            if statuses.iter().all(|status| status.MPI_ERROR == 0) {
                took(0, Err(error));
                return;
            }
        }
        for (number, (status, _)) in statuses.iter().zip(&self.begun).enumerate().filter(|(_, (_, begun))| **begun) {
            took(number, check(status.MPI_ERROR).and_then(|()| moved(status, element)));
        }
    }
}

/// Transfers under way. Dropped by a panic it waits for them: the memory is the caller's again only then.
struct Flight<'a> {
    all: &'a mut Transfers,
}

impl Flight<'_> {
    /// Waits until nothing is pending; the statuses tell of each, with MPI_ERROR where the result is an error.
    fn wait(&mut self) -> Result<()> {
        let Transfers { requests, statuses, .. } = &mut *self.all;
        let count = c_int::try_from(requests.len()).unwrap_or(c_int::MAX);
        statuses[..requests.len()].fill(no_status());
        // SAFETY: as many requests made by MPI, or null, as statuses; their memory is valid until the owner of this value
        // returns.
        let code = unsafe { mpi_sys::MPI_Waitall(count, requests.as_mut_ptr(), statuses.as_mut_ptr()) };
        if code == 0 {
            return Ok(());
        }
        // After an error some may still be pending (MPI_ERR_PENDING).
        for (request, status) in requests.iter_mut().zip(statuses.iter_mut()) {
            if *request != constant!(mpi_sys::RSMPI_REQUEST_NULL) {
                // SAFETY: a request made by MPI and its status.
                let code = unsafe { mpi_sys::MPI_Wait(request, status) };
                status.MPI_ERROR = code;
            }
        }
        check(code)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let null = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        if self.all.requests.iter().any(|request| *request != null) {
            let _ = self.wait();
        }
    }
}
