//! Short messages between ranks that do not wait for each other: a number from one rank to another, sent without waiting and asked
//! for without waiting. For orders between ranks that work through programs of their own.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::Comm;
use crate::error::{c_integer, check, Result};
use crate::requests::TAG;
use crate::stranded;

/// Sends and receives of numbers, on a communicator of its own. Messages of one rank arrive in the order they were sent.
#[derive(Debug)]
pub struct Signals {
    comm: Comm,
    /// The memory of a message does not move while it is under way.
    under_way: Vec<(MPI_Request, Box<u64>)>,
    /// Numbers sent to each rank, and received from it.
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl Signals {
    /// Between the ranks of `comm`. Collective.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn new(comm: &Comm) -> Result<Self> {
        let ranks = usize::try_from(comm.size()).unwrap_or(1);
        Ok(Self { comm: comm.duplicate()?, under_way: Vec::new(), sent: vec![0; ranks], received: vec![0; ranks] })
    }

    /// Sends a number to `rank`. It does not wait for the other side: what is still under way is kept.
    ///
    /// # Errors
    /// What MPI reports, or a rank that is not there.
    pub fn send(&mut self, rank: u64, number: u64) -> Result<()> {
        self.forget_arrived()?;
        let message = Box::new(number);
        let memory = std::ptr::from_ref::<u64>(&message).cast::<u8>();
        // SAFETY: eight bytes in a box that is kept, unchanged, until the request is complete.
        let request = unsafe { self.comm.begin_send(memory, BYTES, c_integer(rank, "MPI_ERR_RANK")?) }?;
        self.under_way.push((request, message));
        if let Some(sent) = self.sent.get_mut(rank as usize) {
            *sent += 1;
        }
        Ok(())
    }

    /// The next number of `rank`, if it has arrived. Does not wait, and does not allocate.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn receive(&mut self, rank: u64) -> Result<Option<u64>> {
        let source = c_integer(rank, "MPI_ERR_RANK")?;
        let mut arrived: c_int = 0;
        let (flag, ignore) = (&raw mut arrived, constant!(mpi_sys::RSMPI_STATUS_IGNORE));
        // SAFETY: one integer is written; the status is not wanted.
        check(unsafe { mpi_sys::MPI_Iprobe(source, TAG, self.comm.handle(), flag, ignore) })?;
        if arrived == 0 {
            return Ok(None);
        }
        let mut number = 0_u64;
        let memory = (&raw mut number).cast::<c_void>();
        let kind = constant!(mpi_sys::RSMPI_UINT8_T);
        // SAFETY: room for the eight bytes that every message here has.
        check(unsafe { mpi_sys::MPI_Recv(memory, BYTES, kind, source, TAG, self.comm.handle(), ignore) })?;
        if let Some(received) = self.received.get_mut(rank as usize) {
            *received += 1;
        }
        Ok(Some(number))
    }

    fn forget_arrived(&mut self) -> Result<()> {
        let mut n = 0;
        while n < self.under_way.len() {
            let mut done: c_int = 0;
            let (request, flag) = (&raw mut self.under_way[n].0, &raw mut done);
            // SAFETY: a request of this value that is pending; the status is not wanted.
            check(unsafe { mpi_sys::MPI_Test(request, flag, mpi_sys::RSMPI_STATUS_IGNORE) })?;
            if done == 0 {
                // Later ones to the same rank have not arrived either; others are looked at another time.
                return Ok(());
            }
            self.under_way.swap_remove(n);
            n = 0;
        }
        Ok(())
    }

    /// Receives what nobody asked for, and waits for what was sent. Collective; nobody sends any more.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn finish(mut self) -> Result<()> {
        let ranks = self.sent.len();
        let all = self.comm.allgather_u64(&self.sent)?;
        for rank in 0..ranks {
            let to_me = all.get(rank * ranks + self.comm.rank() as usize).copied().unwrap_or(0);
            while self.received[rank] < to_me {
                self.receive(rank as u64)?;
            }
        }
        self.wait_for_sent()
    }

    fn wait_for_sent(&mut self) -> Result<()> {
        let mut first = Ok(());
        for (request, _) in &mut self.under_way {
            // SAFETY: a pending request of this value; the status is not wanted. After an error the others are still waited
            // for: their memory goes now.
            first = first.and(check(unsafe { mpi_sys::MPI_Wait(request, mpi_sys::RSMPI_STATUS_IGNORE) }));
        }
        self.under_way.clear();
        first
    }
}

/// Length of a message.
const BYTES: c_int = 8;

impl Drop for Signals {
    fn drop(&mut self) {
        // The memory of a message must not go before it. Eight bytes leave without the other side; a rank that panics ends all.
        if !std::thread::panicking() {
            let _ = self.wait_for_sent();
        }
    }
}

/// A barrier that is entered once and asked about as often as wanted.
#[derive(Debug)]
pub struct Gathering {
    request: MPI_Request,
    complete: bool,
}

impl Gathering {
    /// Enters it (MPI_Ibarrier). Collective, but nobody waits here.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn enter(comm: &Comm) -> Result<Self> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        // SAFETY: collective call on a valid communicator; the request is kept and tested.
        check(unsafe { mpi_sys::MPI_Ibarrier(comm.handle(), &raw mut request) })?;
        Ok(Self { request, complete: false })
    }

    /// True once all ranks have entered.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn is_complete(&mut self) -> Result<bool> {
        if !self.complete {
            let mut done: c_int = 0;
            // SAFETY: the request of the barrier, pending; the status is not wanted.
            check(unsafe { mpi_sys::MPI_Test(&raw mut self.request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })?;
            self.complete = done != 0;
            if self.complete {
                stranded::others_came();
            }
        }
        Ok(self.complete)
    }
}
