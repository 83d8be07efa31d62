//! Nonblocking one-number messages between ranks that execute programs of their own, for ordering.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::collective_timeout;
use crate::comm::Comm;
use crate::error::{c_integer, check, Result};
use crate::requests::TAG;

/// Sends and receives of numbers, on a duplicated communicator. Messages of one rank arrive in order.
#[derive(Debug)]
pub struct Notifications {
    comm: Comm,
    /// Boxed, because the memory of a message must not move while in flight.
    in_flight: Vec<(MPI_Request, Box<u64>)>,
    /// Numbers sent to all ranks, and received from all.
    sent: u64,
    received: u64,
}

impl Notifications {
    /// Between the ranks of `comm`. Collective.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn new(comm: &Comm) -> Result<Self> {
        Ok(Self { comm: comm.duplicate()?, in_flight: Vec::new(), sent: 0, received: 0 })
    }

    /// Sends a number to `rank` without waiting; the request is kept while in flight.
    ///
    /// # Errors
    /// Any MPI error, or a rank that does not exist.
    pub fn send(&mut self, rank: u64, number: u64) -> Result<()> {
        self.remove_completed_sends()?;
        let message = Box::new(number);
        let memory = std::ptr::from_ref::<u64>(&message).cast::<u8>();
        // SAFETY: eight bytes in a box that is kept unchanged until the request is complete.
        let request = unsafe { self.comm.isend(memory, NOTIFICATION_BYTES, c_integer(rank, "MPI_ERR_RANK")?) }?;
        self.in_flight.push((request, message));
        self.sent += 1;
        Ok(())
    }

    /// The next number from `rank`, if it has arrived. Neither waits nor allocates.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn receive(&mut self, rank: u64) -> Result<Option<u64>> {
        let source = c_integer(rank, "MPI_ERR_RANK")?;
        let mut arrived: c_int = 0;
        let (flag, ignore) = (&raw mut arrived, constant!(mpi_sys::RSMPI_STATUS_IGNORE));
        // SAFETY: one integer is written; the status is ignored.
        check(unsafe { mpi_sys::MPI_Iprobe(source, TAG, self.comm.handle(), flag, ignore) })?;
        if arrived == 0 {
            return Ok(None);
        }
        let mut number = 0_u64;
        let memory = (&raw mut number).cast::<c_void>();
        let kind = constant!(mpi_sys::RSMPI_UINT8_T);
        // SAFETY: memory for the eight bytes of every message.
        check(unsafe { mpi_sys::MPI_Recv(memory, NOTIFICATION_BYTES, kind, source, TAG, self.comm.handle(), ignore) })?;
        self.received += 1;
        Ok(Some(number))
    }

    fn remove_completed_sends(&mut self) -> Result<()> {
        let mut n = 0;
        while n < self.in_flight.len() {
            let mut done: c_int = 0;
            let (request, flag) = (&raw mut self.in_flight[n].0, &raw mut done);
            // SAFETY: a pending request of this value; the status is ignored.
            check(unsafe { mpi_sys::MPI_Test(request, flag, mpi_sys::RSMPI_STATUS_IGNORE) })?;
            if done == 0 {
                // Later ones to the same rank are pending too; those to other ranks are tested next time.
                return Ok(());
            }
            self.in_flight.swap_remove(n);
            n = 0;
        }
        Ok(())
    }

    /// Receives the remaining numbers and completes the sends. Collective; no rank sends afterwards.
    ///
    /// Ranks receive what has arrived until all together have received as many as were sent: two numbers per rank, whatever the number
    /// of ranks. Usually the first sum is the last.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn finish(mut self) -> Result<()> {
        loop {
            for rank in 0..self.comm.size() {
                while self.receive(rank)?.is_some() {}
            }
            let mut sums = [self.sent, self.received];
            self.comm.sum_u64(&mut sums)?;
            if sums[0] == sums[1] {
                return self.wait_for_sends();
            }
        }
    }

    fn wait_for_sends(&mut self) -> Result<()> {
        let mut first = Ok(());
        for (request, _) in &mut self.in_flight {
            // SAFETY: a pending request of this value; the status is ignored. All are completed despite errors, because their memory is
            // freed.
            first = first.and(check(unsafe { mpi_sys::MPI_Wait(request, mpi_sys::RSMPI_STATUS_IGNORE) }));
        }
        self.in_flight.clear();
        first
    }
}

/// Length of a message.
const NOTIFICATION_BYTES: c_int = 8;

impl Drop for Notifications {
    fn drop(&mut self) {
        // A message must not outlive its memory. Eight bytes are sent eagerly, without the receiver; a panic ends all ranks.
        if !std::thread::panicking() {
            let _ = self.wait_for_sends();
        }
    }
}

/// A nonblocking barrier that can be tested repeatedly.
#[derive(Debug)]
pub struct PendingBarrier {
    request: MPI_Request,
    complete: bool,
}

impl PendingBarrier {
    /// Posts the barrier (MPI_Ibarrier). Collective, nonblocking.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn post(comm: &Comm) -> Result<Self> {
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        // SAFETY: collective call on a valid communicator; the request is kept and tested.
        check(unsafe { mpi_sys::MPI_Ibarrier(comm.handle(), &raw mut request) })?;
        Ok(Self { request, complete: false })
    }

    /// True after all ranks have posted.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn is_complete(&mut self) -> Result<bool> {
        if !self.complete {
            let mut done: c_int = 0;
            // SAFETY: the pending request of the barrier; the status is ignored.
            check(unsafe { mpi_sys::MPI_Test(&raw mut self.request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })?;
            self.complete = done != 0;
            if self.complete {
                collective_timeout::peers_arrived();
            }
        }
        Ok(self.complete)
    }
}
