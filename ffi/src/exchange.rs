//! Exchanges between neighbours, the loops of b_eff: the same messages again and again, by one of several calls.
//!
//! The loops stand here and not behind a call per message: what is measured is the MPI library, and a short message
//! takes as long as a few dozen instructions.

use std::ffi::{c_int, c_void};

use mpi_sys::MPI_Request;

use crate::comm::Comm;
use crate::error::{c_integer, check, refused, Result};
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

/// Places beside each other that the iterations of a loop use in turn: iteration i the one with number i modulo `count`.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// How many, at least 1.
    pub count: usize,
    /// Distance of two.
    pub stride_bytes: usize,
}

impl Windows {
    /// Bytes from the beginning of the first window to the end of the last; None: more than there can be.
    fn reach(self, message_bytes: usize) -> Option<usize> {
        self.count.checked_sub(1)?.checked_mul(self.stride_bytes)?.checked_add(message_bytes)
    }
}

/// Where the messages of one loop lie in memory.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Length of a message.
    pub message_bytes: usize,
    /// For each step, where the first window to be sent from begins in the memory of the sends.
    pub send_at: &'a [usize],
    /// For each step, where the first window to be received into begins in the memory of the receives. The ranges of two
    /// steps, with all windows, must not overlap.
    pub receive_at: &'a [usize],
    /// Windows of the sends.
    pub send_windows: Windows,
    /// Windows of the receives.
    pub receive_windows: Windows,
}

impl Flow<'_> {
    /// Whether all windows of all places lie inside of memories of these lengths, and those of the receives apart.
    fn fits(&self, steps: usize, send_bytes: usize, receive_bytes: usize) -> bool {
        let reaches = (self.send_windows.reach(self.message_bytes), self.receive_windows.reach(self.message_bytes));
        let (Some(out), Some(into)) = reaches else { return false };
        let inside = |at: usize, reach: usize, len: usize| at.checked_add(reach).is_some_and(|end| end <= len);
        let apart = |n: usize| self.receive_at[..n].iter().all(|at| at.abs_diff(self.receive_at[n]) >= into);
        self.send_at.len() == steps
            && self.receive_at.len() == steps
            && self.send_at.iter().all(|at| inside(*at, out, send_bytes))
            && self.receive_at.iter().all(|at| inside(*at, into, receive_bytes))
            && (1..steps).all(apart)
    }
}

/// The messages of one rank in a pattern, with everything allocated that the loops need.
#[derive(Debug)]
pub struct Exchange<'a> {
    comm: &'a Comm,
    /// Ranks by step, MPI_PROC_NULL where there is no message.
    sends: Vec<c_int>,
    receives: Vec<c_int>,
    requests: Vec<MPI_Request>,
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
    /// If a window lies outside of its memory or receives overlap, or there are not as many places as steps.
    pub fn run(&mut self, way: Way, flow: &Flow<'_>, send: &[u8], receive: &mut [u8], iterations: u64) -> Result<()> {
        assert!(flow.fits(self.sends.len(), send.len(), receive.len()), "messages outside of their memory: {flow:?}");
        let count = c_integer(flow.message_bytes as u64, "MPI_ERR_COUNT")?;
        if way == Way::Alltoallv {
            self.arrange(flow, count)?;
        }
        let (mut from, mut to) = (Turn::default(), Turn::default());
        for _ in 0..iterations {
            // SAFETY: every window of every place lies inside its memory, as asserted above, and the shifts are those of
            // windows; the memories are borrowed until all messages of the iteration are complete, which each of the
            // calls below awaits, also when it fails.
            unsafe {
                let (out, into) = (send.as_ptr().add(from.shift_bytes), receive.as_mut_ptr().add(to.shift_bytes));
                match way {
                    Way::Sendrecv => self.sendrecv(flow, count, out, into)?,
                    Way::Alltoallv => self.alltoallv(out, into)?,
                    Way::Nonblocking => self.nonblocking(flow, count, out, into)?,
                    Way::PingPong => self.ping_pong(flow, count, out, into)?,
                }
            }
            from.next(flow.send_windows);
            to.next(flow.receive_windows);
        }
        Ok(())
    }

    /// Counts and places by rank, as MPI_Alltoallv wants them; those of ranks without a message stay 0.
    fn arrange(&mut self, flow: &Flow<'_>, count: c_int) -> Result<()> {
        for (step, (to, from)) in self.sends.iter().zip(&self.receives).enumerate() {
            if let Ok(to) = usize::try_from(*to) {
                self.send_counts[to] = count;
                self.send_places[to] = c_integer(flow.send_at[step] as u64, "MPI_ERR_COUNT")?;
            }
            if let Ok(from) = usize::try_from(*from) {
                self.receive_counts[from] = count;
                self.receive_places[from] = c_integer(flow.receive_at[step] as u64, "MPI_ERR_COUNT")?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// `out` and `into` are valid for every place of the flow and `count` bytes behind it.
    #[inline]
    unsafe fn sendrecv(&self, flow: &Flow<'_>, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        for (step, (to, from)) in self.sends.iter().zip(&self.receives).enumerate() {
            // SAFETY: the caller's promise; ranks of a valid communicator or MPI_PROC_NULL.
            check(unsafe {
                mpi_sys::MPI_Sendrecv(
                    out.add(flow.send_at[step]).cast::<c_void>(),
                    count,
                    mpi_sys::RSMPI_UINT8_T,
                    *to,
                    TAG,
                    into.add(flow.receive_at[step]).cast::<c_void>(),
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
    /// `out` and `into` are valid for all places and counts of [`Exchange::arrange`].
    #[inline]
    unsafe fn alltoallv(&self, out: *const u8, into: *mut u8) -> Result<()> {
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
    /// As [`Exchange::sendrecv`].
    #[inline]
    unsafe fn nonblocking(&mut self, flow: &Flow<'_>, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        self.requests.clear();
        // SAFETY: the caller's promise.
        let begun = unsafe { self.begin(flow, count, out, into) };
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

    /// Begins all messages of an iteration.
    ///
    /// # Safety
    /// As [`Exchange::sendrecv`], until all requests are complete.
    #[inline]
    unsafe fn begin(&mut self, flow: &Flow<'_>, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        let null = constant!(shim::beff_proc_null);
        for (step, from) in self.receives.iter().enumerate().filter(|(_, from)| **from != null) {
            // SAFETY: the caller's promise; the request is kept and waited for.
            self.requests.push(unsafe { self.comm.begin_receive(into.add(flow.receive_at[step]), count, *from) }?);
        }
        for (step, to) in self.sends.iter().enumerate().filter(|(_, to)| **to != null) {
            // SAFETY: the caller's promise; the request is kept and waited for.
            self.requests.push(unsafe { self.comm.begin_send(out.add(flow.send_at[step]), count, *to) }?);
        }
        Ok(())
    }

    /// # Safety
    /// As [`Exchange::sendrecv`], for the first step.
    #[inline]
    unsafe fn ping_pong(&self, flow: &Flow<'_>, count: c_int, out: *const u8, into: *mut u8) -> Result<()> {
        let (Some(&to), Some(&from)) = (self.sends.first(), self.receives.first()) else { return Ok(()) };
        let (send_at, receive_at) = (flow.send_at[0], flow.receive_at[0]);
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

/// Whose turn it is among windows.
#[derive(Default)]
struct Turn {
    number: usize,
    shift_bytes: usize,
}

impl Turn {
    #[inline]
    fn next(&mut self, windows: Windows) {
        self.number += 1;
        self.shift_bytes += windows.stride_bytes;
        if self.number == windows.count {
            *self = Self::default();
        }
    }
}
