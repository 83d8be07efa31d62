//! Exchanges between neighbours, the loops of b_eff: messages of one length again and again, by one of several calls.
//!
//! The loops stand here and not behind a call per message: what is measured is the MPI library, and a short message
//! takes as long as a few dozen instructions.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::Comm;
use crate::error::{c_integer, check, refused, Result};
use crate::places::{Flow, InTurn, Next, Onward, Places, Turn};
use crate::requests::TAG;
use crate::shim;

/// How the messages of an iteration are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One MPI_Sendrecv for each step, one after the other.
    Sendrecv,
    /// One MPI_Alltoallv over all ranks of the communicator.
    Alltoallv,
    /// MPI_Irecv and MPI_Isend for all steps, then MPI_Waitall.
    Nonblocking,
    /// Of the first step only: the lower rank sends and then receives, the higher one the other way round.
    PingPong,
}

/// One step as this rank sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Rank that gets a message.
    pub send_to: Option<u64>,
    /// Rank that a message comes from.
    pub receive_from: Option<u64>,
}

/// The messages of one rank in a pattern, with everything allocated that the loops need.
#[derive(Debug)]
pub struct Exchange<'a> {
    comm: &'a Comm,
    /// Ranks by step, MPI_PROC_NULL where there is no message.
    sends: Vec<c_int>,
    receives: Vec<c_int>,
    requests: Vec<MPI_Request>,
    /// Places of the steps of an iteration.
    at: Vec<(usize, usize)>,
    send_counts: Vec<c_int>,
    receive_counts: Vec<c_int>,
    send_places: Vec<c_int>,
    receive_places: Vec<c_int>,
}

impl<'a> Exchange<'a> {
    /// Room for these steps on `comm`, which carries no other messages while a loop runs.
    ///
    /// # Errors
    /// A rank that is not one of the communicator, or two messages to or from the same one.
    pub fn new(comm: &'a Comm, links: &[Link]) -> Result<Self> {
        let rank = |peer: Option<u64>| -> Result<c_int> {
            match peer {
                None => Ok(constant!(shim::beff_proc_null)),
                Some(peer) if peer < comm.size() => c_integer(peer, "MPI_ERR_RANK"),
                Some(peer) => Err(refused("MPI_ERR_RANK", format!("no rank {peer} in {}", comm.size()))),
            }
        };
        let once = |peer: fn(&Link) -> Option<u64>| {
            (1..links.len()).all(|n| peer(&links[n]).is_none() || links[..n].iter().all(|l| peer(l) != peer(&links[n])))
        };
        if !once(|l| l.send_to) || !once(|l| l.receive_from) {
            return Err(refused("MPI_ERR_RANK", "two messages of one iteration between the same ranks".into()));
        }
        let ranks = usize::try_from(comm.size()).unwrap_or(usize::MAX);
        Ok(Self {
            comm,
            sends: links.iter().map(|l| rank(l.send_to)).collect::<Result<_>>()?,
            receives: links.iter().map(|l| rank(l.receive_from)).collect::<Result<_>>()?,
            requests: Vec::with_capacity(2 * links.len()),
            at: vec![(0, 0); links.len()],
            send_counts: vec![0; ranks],
            receive_counts: vec![0; ranks],
            send_places: vec![0; ranks],
            receive_places: vec![0; ranks],
        })
    }

    /// Runs `iterations` iterations. Does not allocate. Every rank of the communicator makes the same call.
    ///
    /// # Errors
    /// What MPI reports. Nothing is under way afterwards.
    ///
    /// # Panics
    /// If a message lies outside of its memory or receives overlap, or there are not as many windows as steps.
    pub fn run(&mut self, way: Way, flow: &Flow<'_>, send: &[u8], receive: &mut [u8], iterations: u64) -> Result<()> {
        assert!(flow.fits(self.sends.len(), send.len(), receive.len()), "messages outside of their memory: {flow:?}");
        // The places of MPI_Alltoallv are C integers too.
        c_integer(send.len().max(receive.len()) as u64, "MPI_ERR_COUNT")?;
        let count = c_integer(flow.message_bytes as u64, "MPI_ERR_COUNT")?;
        if self.comm.ranks().is_some() {
            self.among_ranks(flow, send, receive, iterations);
            return Ok(());
        }
        if way == Way::Alltoallv {
            self.arrange(count);
        }
        let (out, into) = (send.as_ptr(), receive.as_mut_ptr());
        // SAFETY: the next places are those of the flow, which lie inside its memory, as asserted above; the memories are
        // borrowed until the loop is over.
        unsafe {
            match flow.places {
                Places::Windows { send_at, receive_at, send, receive } => {
                    let turns = [Turn::of(send), Turn::of(receive)];
                    self.go(way, InTurn { send_at, receive_at, turns }, count, out, into, iterations)
                }
                Places::Walk(walk) => {
                    let last = walk.memory_bytes - flow.message_bytes;
                    let on = Onward { at: walk.begin, advance: walk.advance_bytes, last };
                    self.go(way, on, count, out, into, iterations)
                }
            }
        }
    }

    /// The same messages between ranks that are not MPI's, whatever the way.
    fn among_ranks(&self, flow: &Flow<'_>, send: &[u8], receive: &mut [u8], iterations: u64) {
        match flow.places {
            Places::Windows { send_at, receive_at, send: out, receive: into } => {
                let turns = [Turn::of(out), Turn::of(into)];
                self.by_ranks(InTurn { send_at, receive_at, turns }, flow.message_bytes, send, receive, iterations);
            }
            Places::Walk(walk) => {
                let last = walk.memory_bytes - flow.message_bytes;
                let on = Onward { at: walk.begin, advance: walk.advance_bytes, last };
                self.by_ranks(on, flow.message_bytes, send, receive, iterations);
            }
        }
    }

    fn by_ranks(&self, mut next: impl Next, bytes: usize, send: &[u8], receive: &mut [u8], iterations: u64) {
        let Some(ranks) = self.comm.ranks() else { return };
        for _ in 0..iterations {
            let places: Vec<(usize, usize)> = (0..self.sends.len()).map(|step| next.next(step)).collect();
            // MPI_PROC_NULL is negative.
            for (to, (at, _)) in self.sends.iter().zip(&places) {
                if let Ok(to) = u64::try_from(*to) {
                    ranks.send(to, &send[*at..*at + bytes]);
                }
            }
            for (from, (_, at)) in self.receives.iter().zip(&places) {
                if let Ok(from) = u64::try_from(*from) {
                    receive[*at..*at + bytes].copy_from_slice(&ranks.receive(from));
                }
            }
            next.end_of_iteration();
        }
    }

    /// The loop itself, compiled for each kind of places.
    ///
    /// # Safety
    /// `out` and `into` are valid for `count` bytes at all places that `next` gives, until this returns.
    #[inline]
    unsafe fn go<P: Next>(
        &mut self,
        way: Way,
        mut next: P,
        count: c_int,
        out: *const u8,
        into: *mut u8,
        iterations: u64,
    ) -> Result<()> {
        for _ in 0..iterations {
            // SAFETY: the caller's promise; each of these calls awaits all messages of its iteration, also when it fails.
            unsafe {
                match way {
                    Way::Sendrecv => self.sendrecv(&mut next, count, out, into)?,
                    Way::Alltoallv => self.alltoallv(&mut next, out, into)?,
                    Way::Nonblocking => self.nonblocking(&mut next, count, out, into)?,
                    Way::PingPong => self.ping_pong(&mut next, count, out, into)?,
                }
            }
            next.end_of_iteration();
        }
        Ok(())
    }

    /// Counts by rank, as MPI_Alltoallv wants them; those of ranks without a message stay 0.
    fn arrange(&mut self, count: c_int) {
        for (to, from) in self.sends.iter().zip(&self.receives) {
            if let Ok(to) = usize::try_from(*to) {
                self.send_counts[to] = count;
            }
            if let Ok(from) = usize::try_from(*from) {
                self.receive_counts[from] = count;
            }
        }
    }

    /// # Safety
    /// As [`Exchange::go`].
    #[inline]
    unsafe fn sendrecv(&self, next: &mut impl Next, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        for (step, (to, from)) in self.sends.iter().zip(&self.receives).enumerate() {
            let (send_at, receive_at) = next.next(step);
            // SAFETY: the caller's promise; ranks of a valid communicator or MPI_PROC_NULL.
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
    /// As [`Exchange::go`], with the counts of [`Exchange::arrange`].
    #[inline]
    unsafe fn alltoallv(&mut self, next: &mut impl Next, out: *const u8, into: *mut u8) -> Result<()> {
        for (step, (to, from)) in self.sends.iter().zip(&self.receives).enumerate() {
            let (send_at, receive_at) = next.next(step);
            // MPI_PROC_NULL is negative. C integers: the memories are no longer than one can say.
            if let Some(place) = usize::try_from(*to).ok().and_then(|to| self.send_places.get_mut(to)) {
                *place = send_at as c_int;
            }
            if let Some(place) = usize::try_from(*from).ok().and_then(|from| self.receive_places.get_mut(from)) {
                *place = receive_at as c_int;
            }
        }
        // SAFETY: the caller's promise; the four lists have one entry for each rank.
        check(unsafe {
            mpi_sys::MPI_Alltoallv(
                out.cast::<c_void>(),
                self.send_counts.as_ptr(),
                self.send_places.as_ptr(),
                mpi_sys::RSMPI_UINT8_T,
                into.cast::<c_void>(),
                self.receive_counts.as_ptr(),
                self.receive_places.as_ptr(),
                mpi_sys::RSMPI_UINT8_T,
                self.comm.handle(),
            )
        })
    }

    /// # Safety
    /// As [`Exchange::go`].
    #[inline]
    unsafe fn nonblocking(&mut self, next: &mut impl Next, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        self.requests.clear();
        // SAFETY: the caller's promise.
        let begun = unsafe { self.begin(next, count, out, into) };
        if begun.is_err() {
            // The senders of these receives may never send; a send that was begun has its receive over there.
            for request in &mut self.requests {
                // SAFETY: a request of this iteration that is not complete yet. One of a send may refuse.
                unsafe { mpi_sys::MPI_Cancel(request) };
            }
        }
        let pending = self.requests.len() as c_int;
        // SAFETY: `pending` requests made by MPI, whose memory is valid by the caller's promise; no status is wanted.
        let waited =
            check(unsafe { mpi_sys::MPI_Waitall(pending, self.requests.as_mut_ptr(), mpi_sys::RSMPI_STATUSES_IGNORE) });
        if waited.is_err() {
            // MPI_Waitall may give up with some of them still under way (MPI-3.1 section 3.7.5).
            for request in &mut self.requests {
                // SAFETY: as above; what is complete is a null request by now, which returns at once.
                unsafe { mpi_sys::MPI_Wait(request, mpi_sys::RSMPI_STATUS_IGNORE) };
            }
        }
        begun.and(waited)
    }

    /// Begins all messages of an iteration: the receives first.
    ///
    /// # Safety
    /// As [`Exchange::go`], until all requests are complete.
    #[inline]
    unsafe fn begin(&mut self, next: &mut impl Next, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        let null = constant!(shim::beff_proc_null);
        let steps = self.sends.len();
        // Both are placed before either: a step has one place in its iteration.
        for step in 0..steps {
            self.at[step] = next.next(step);
        }
        for step in (0..steps).filter(|step| self.receives[*step] != null) {
            let (_, receive_at) = self.at[step];
            // SAFETY: the caller's promise; the request is kept and waited for.
            self.requests.push(unsafe { self.comm.begin_receive(into.add(receive_at), count, self.receives[step]) }?);
        }
        for step in (0..steps).filter(|step| self.sends[*step] != null) {
            let (send_at, _) = self.at[step];
            // SAFETY: the caller's promise; the request is kept and waited for.
            self.requests.push(unsafe { self.comm.begin_send(out.add(send_at), count, self.sends[step]) }?);
        }
        Ok(())
    }

    /// # Safety
    /// As [`Exchange::go`].
    #[inline]
    unsafe fn ping_pong(&self, next: &mut impl Next, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        let (Some(&to), Some(&from)) = (self.sends.first(), self.receives.first()) else { return Ok(()) };
        let (send_at, receive_at) = next.next(0);
        let begins = self.comm.rank() < u64::try_from(to).unwrap_or(0);
        // SAFETY: the caller's promise; both calls are complete when they return; no status is wanted.
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
