//! Exchanges between neighbours, the loops of b_eff: messages of one length, repeated, by one of several MPI calls.
//!
//! The loops are here, not behind a function per message, because a short message takes as long as a few dozen instructions.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::Comm;
use crate::error::{c_integer, check, rejection, Result};
use crate::message_layout::{
    MessageLayout, MessagePlacement, OffsetSequence, WalkOffsets, WindowCursor, WindowOffsets,
};
use crate::requests::TAG;
use crate::shim;

/// MPI calls that exchange the messages of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeCall {
    /// One MPI_Sendrecv for each step, one after the other.
    Sendrecv,
    /// One MPI_Alltoallv over all ranks of the communicator.
    Alltoallv,
    /// MPI_Irecv and MPI_Isend for all steps, then MPI_Waitall.
    Nonblocking,
    /// First step only: the lower rank sends, then receives; the higher one vice versa.
    PingPong,
}

/// Peers of this rank in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPeers {
    /// Destination rank.
    pub send_to: Option<u64>,
    /// Source rank.
    pub receive_from: Option<u64>,
}

/// Messages of one rank in a pattern, with all memory that the loops need.
#[derive(Debug)]
pub struct NeighborExchange<'a> {
    comm: &'a Comm,
    /// Ranks by step, MPI_PROC_NULL where there is no message.
    destinations: Vec<c_int>,
    sources: Vec<c_int>,
    requests: Vec<MPI_Request>,
    /// Offsets of the steps of an iteration.
    step_offsets: Vec<(usize, usize)>,
    send_counts: Vec<c_int>,
    receive_counts: Vec<c_int>,
    send_displacements: Vec<c_int>,
    receive_displacements: Vec<c_int>,
}

impl<'a> NeighborExchange<'a> {
    /// Allocates memory for these steps on `comm`, which carries no other messages while a loop runs.
    ///
    /// # Errors
    /// A rank outside the communicator, or two messages to or from the same rank.
    pub fn new(comm: &'a Comm, links: &[StepPeers]) -> Result<Self> {
        let rank = |peer: Option<u64>| -> Result<c_int> {
            match peer {
                None => Ok(constant!(shim::beff_proc_null)),
                Some(peer) if peer < comm.size() => c_integer(peer, "MPI_ERR_RANK"),
                Some(peer) => Err(rejection("MPI_ERR_RANK", format!("no rank {peer} in {}", comm.size()))),
            }
        };
        let once = |peer: fn(&StepPeers) -> Option<u64>| {
            (1..links.len()).all(|n| peer(&links[n]).is_none() || links[..n].iter().all(|l| peer(l) != peer(&links[n])))
        };
        if !once(|l| l.send_to) || !once(|l| l.receive_from) {
            return Err(rejection("MPI_ERR_RANK", "two messages of one iteration between the same ranks".into()));
        }
        let ranks = usize::try_from(comm.size()).unwrap_or(usize::MAX);
        Ok(Self {
            comm,
            destinations: links.iter().map(|l| rank(l.send_to)).collect::<Result<_>>()?,
            sources: links.iter().map(|l| rank(l.receive_from)).collect::<Result<_>>()?,
            requests: Vec::with_capacity(2 * links.len()),
            step_offsets: vec![(0, 0); links.len()],
            send_counts: vec![0; ranks],
            receive_counts: vec![0; ranks],
            send_displacements: vec![0; ranks],
            receive_displacements: vec![0; ranks],
        })
    }

    /// Runs `iterations` iterations. Does not allocate. All ranks of the communicator call this alike.
    ///
    /// # Errors
    /// Any MPI error. Nothing is in flight afterwards.
    ///
    /// # Panics
    /// If a message lies outside its memory, receives overlap, or the numbers of windows and steps differ.
    pub fn run(
        &mut self,
        way: ExchangeCall,
        flow: &MessageLayout<'_>,
        send: &[u8],
        receive: &mut [u8],
        iterations: u64,
    ) -> Result<()> {
        assert!(
            flow.fits(self.destinations.len(), send.len(), receive.len()),
            "messages outside their memory: {flow:?}"
        );
        // The displacements of MPI_Alltoallv are C integers too.
        c_integer(send.len().max(receive.len()) as u64, "MPI_ERR_COUNT")?;
        let count = c_integer(flow.message_bytes as u64, "MPI_ERR_COUNT")?;
        if self.comm.custom_ranks().is_some() {
            self.run_without_mpi(flow, send, receive, iterations);
            return Ok(());
        }
        if way == ExchangeCall::Alltoallv {
            self.fill_counts(count);
        }
        let (out, into) = (send.as_ptr(), receive.as_mut_ptr());
        // SAFETY: the offsets of the flow lie inside its memories, as asserted above, which are borrowed until the loop has ended.
        unsafe {
            match flow.placement {
                MessagePlacement::Windows { send_at, receive_at, send, receive } => {
                    let turns = [WindowCursor::new(send), WindowCursor::new(receive)];
                    self.run_loop(
                        way,
                        WindowOffsets { send_at, receive_at, cursors: turns },
                        count,
                        out,
                        into,
                        iterations,
                    )
                }
                MessagePlacement::Walk(walk) => {
                    let last = walk.memory_bytes - flow.message_bytes;
                    let on = WalkOffsets { at: walk.begin, advance: walk.advance_bytes, last };
                    self.run_loop(way, on, count, out, into, iterations)
                }
            }
        }
    }

    /// The same messages between ranks that are not MPI's, whatever the call.
    fn run_without_mpi(&self, flow: &MessageLayout<'_>, send: &[u8], receive: &mut [u8], iterations: u64) {
        match flow.placement {
            MessagePlacement::Windows { send_at, receive_at, send: out, receive: into } => {
                let turns = [WindowCursor::new(out), WindowCursor::new(into)];
                self.exchange_without_mpi(
                    WindowOffsets { send_at, receive_at, cursors: turns },
                    flow.message_bytes,
                    send,
                    receive,
                    iterations,
                );
            }
            MessagePlacement::Walk(walk) => {
                let last = walk.memory_bytes - flow.message_bytes;
                let on = WalkOffsets { at: walk.begin, advance: walk.advance_bytes, last };
                self.exchange_without_mpi(on, flow.message_bytes, send, receive, iterations);
            }
        }
    }

    fn exchange_without_mpi(
        &self,
        mut next: impl OffsetSequence,
        bytes: usize,
        send: &[u8],
        receive: &mut [u8],
        iterations: u64,
    ) {
        let Some(ranks) = self.comm.custom_ranks() else { return };
        for _ in 0..iterations {
            let places: Vec<(usize, usize)> =
                (0..self.destinations.len()).map(|step| next.next_offsets(step)).collect();
            // MPI_PROC_NULL is negative.
            for (to, (at, _)) in self.destinations.iter().zip(&places) {
                if let Ok(to) = u64::try_from(*to) {
                    ranks.send(to, &send[*at..*at + bytes]);
                }
            }
            for (from, (_, at)) in self.sources.iter().zip(&places) {
                if let Ok(from) = u64::try_from(*from) {
                    receive[*at..*at + bytes].copy_from_slice(&ranks.receive(from));
                }
            }
            next.end_of_iteration();
        }
    }

    /// The loop itself, monomorphized for each kind of placement.
    ///
    /// # Safety
    /// Until this returns, `out` and `into` are valid for `count` bytes at all offsets that `next` yields.
    #[inline]
    unsafe fn run_loop<P: OffsetSequence>(
        &mut self,
        way: ExchangeCall,
        mut next: P,
        count: c_int,
        out: *const u8,
        into: *mut u8,
        iterations: u64,
    ) -> Result<()> {
        for _ in 0..iterations {
            // SAFETY: as the caller guarantees; each call completes all messages of its iteration, also on errors.
            unsafe {
                match way {
                    ExchangeCall::Sendrecv => self.sendrecv(&mut next, count, out, into)?,
                    ExchangeCall::Alltoallv => self.alltoallv(&mut next, out, into)?,
                    ExchangeCall::Nonblocking => self.nonblocking(&mut next, count, out, into)?,
                    ExchangeCall::PingPong => self.ping_pong(&mut next, count, out, into)?,
                }
            }
            next.end_of_iteration();
        }
        Ok(())
    }

    /// Sets the counts by rank for MPI_Alltoallv; those of ranks without a message stay 0.
    fn fill_counts(&mut self, count: c_int) {
        for (to, from) in self.destinations.iter().zip(&self.sources) {
            if let Ok(to) = usize::try_from(*to) {
                self.send_counts[to] = count;
            }
            if let Ok(from) = usize::try_from(*from) {
                self.receive_counts[from] = count;
            }
        }
    }

    /// # Safety
    /// As [`NeighborExchange::run_loop`].
    #[inline]
    unsafe fn sendrecv(
        &self,
        next: &mut impl OffsetSequence,
        count: c_int,
        out: *const u8,
        into: *mut u8,
    ) -> Result<()> {
        for (step, (to, from)) in self.destinations.iter().zip(&self.sources).enumerate() {
            let (send_at, receive_at) = next.next_offsets(step);
            // SAFETY: as the caller guarantees; ranks of a valid communicator or MPI_PROC_NULL.
            check(unsafe {
                mpi_sys::MPI_Sendrecv(
                    out.add(send_at).cast::<c_void>(),
                    count,
                    mpi_sys::RSMPI_UINT8_T,
                    *to,
                    TAG,
                    into.add(receive_at).cast::<c_void>(),
                    count,
                    mpi_sys::RSMPI_UINT8_T,
                    *from,
                    TAG,
                    self.comm.handle(),
                    mpi_sys::RSMPI_STATUS_IGNORE,
                )
            })?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`NeighborExchange::run_loop`], with the counts of [`NeighborExchange::fill_counts`].
    #[inline]
    unsafe fn alltoallv(&mut self, next: &mut impl OffsetSequence, out: *const u8, into: *mut u8) -> Result<()> {
        for (step, (to, from)) in self.destinations.iter().zip(&self.sources).enumerate() {
            let (send_at, receive_at) = next.next_offsets(step);
            // MPI_PROC_NULL is negative. The memory lengths fit a C integer, so offsets do.
            if let Some(place) = usize::try_from(*to).ok().and_then(|to| self.send_displacements.get_mut(to)) {
                *place = send_at as c_int;
            }
            if let Some(place) = usize::try_from(*from).ok().and_then(|from| self.receive_displacements.get_mut(from)) {
                *place = receive_at as c_int;
            }
        }
        // SAFETY: as the caller guarantees; the four lists have one entry for each rank.
        check(unsafe {
            mpi_sys::MPI_Alltoallv(
                out.cast::<c_void>(),
                self.send_counts.as_ptr(),
                self.send_displacements.as_ptr(),
                mpi_sys::RSMPI_UINT8_T,
                into.cast::<c_void>(),
                self.receive_counts.as_ptr(),
                self.receive_displacements.as_ptr(),
                mpi_sys::RSMPI_UINT8_T,
                self.comm.handle(),
            )
        })
    }

    /// # Safety
    /// As [`NeighborExchange::run_loop`].
    #[inline]
    unsafe fn nonblocking(
        &mut self,
        next: &mut impl OffsetSequence,
        count: c_int,
        out: *const u8,
        into: *mut u8,
    ) -> Result<()> {
        self.requests.clear();
        // SAFETY: as the caller guarantees.
        let begun = unsafe { self.post_all(next, count, out, into) };
        if begun.is_err() {
            // The senders of these receives may never send; a posted send has its receive at the other rank.
            for request in &mut self.requests {
                // SAFETY: a pending request of this iteration. MPI may reject the cancellation of a send.
                unsafe { mpi_sys::MPI_Cancel(request) };
            }
        }
        let pending = self.requests.len() as c_int;
        // SAFETY: `pending` requests of MPI, with memory valid as the caller guarantees; statuses are ignored.
        let waited =
            check(unsafe { mpi_sys::MPI_Waitall(pending, self.requests.as_mut_ptr(), mpi_sys::RSMPI_STATUSES_IGNORE) });
        if waited.is_err() {
            // MPI_Waitall may return with some still pending (MPI-3.1 section 3.7.5).
            for request in &mut self.requests {
                // SAFETY: as above; a completed request is null, for which the call returns at once.
                unsafe { mpi_sys::MPI_Wait(request, mpi_sys::RSMPI_STATUS_IGNORE) };
            }
        }
        begun.and(waited)
    }

    /// Posts all messages of an iteration, the receives first.
    ///
    /// # Safety
    /// As [`NeighborExchange::run_loop`], until all requests are complete.
    #[inline]
    unsafe fn post_all(
        &mut self,
        next: &mut impl OffsetSequence,
        count: c_int,
        out: *const u8,
        into: *mut u8,
    ) -> Result<()> {
        let null = constant!(shim::beff_proc_null);
        let steps = self.destinations.len();
        // Offsets are taken for all steps first: a step has one offset per iteration.
        for step in 0..steps {
            self.step_offsets[step] = next.next_offsets(step);
        }
        for step in (0..steps).filter(|step| self.sources[*step] != null) {
            let (_, receive_at) = self.step_offsets[step];
            // SAFETY: as the caller guarantees; the request is kept and completed.
            self.requests.push(unsafe { self.comm.irecv(into.add(receive_at), count, self.sources[step]) }?);
        }
        for step in (0..steps).filter(|step| self.destinations[*step] != null) {
            let (send_at, _) = self.step_offsets[step];
            // SAFETY: as the caller guarantees; the request is kept and completed.
            self.requests.push(unsafe { self.comm.isend(out.add(send_at), count, self.destinations[step]) }?);
        }
        Ok(())
    }

    /// # Safety
    /// As [`NeighborExchange::run_loop`].
    #[inline]
    unsafe fn ping_pong(
        &self,
        next: &mut impl OffsetSequence,
        count: c_int,
        out: *const u8,
        into: *mut u8,
    ) -> Result<()> {
        let (Some(&to), Some(&from)) = (self.destinations.first(), self.sources.first()) else { return Ok(()) };
        let (send_at, receive_at) = next.next_offsets(0);
        let begins = self.comm.rank() < u64::try_from(to).unwrap_or(0);
        // SAFETY: as the caller guarantees; both calls are blocking; the status is ignored.
        let (send, receive) = unsafe {
            let (out, into) = (out.add(send_at).cast::<c_void>(), into.add(receive_at).cast::<c_void>());
            let (kind, comm, status) = (mpi_sys::RSMPI_UINT8_T, self.comm.handle(), mpi_sys::RSMPI_STATUS_IGNORE);
            (
                move || check(mpi_sys::MPI_Send(out, count, kind, to, TAG, comm)),
                move || check(mpi_sys::MPI_Recv(into, count, kind, from, TAG, comm, status)),
            )
        };
        if begins {
            send()?;
            receive()
        } else {
            receive()?;
            send()
        }
    }
}
