//! Loops of b_eff in C without any checks: the reference for [`crate::NeighborExchange`].

use std::ffi::{c_char, c_int, c_long};

use crate::comm::Comm;
use crate::message_layout::MemoryWalk;
use crate::shim;

/// Communication of a rank in a bare loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareExchange {
    /// MPI_Send and MPI_Recv with one other rank; the lower one sends first.
    PingPong {
        /// Rank of the peer.
        peer: u64,
    },
    /// MPI_Sendrecv to the left and from the right, then in the opposite direction; only the first if both are one rank.
    Sendrecv {
        /// Left neighbour.
        left: u64,
        /// Right neighbour.
        right: u64,
    },
}

/// Seconds of `iterations` iterations on this rank (MPI_Wtime); None if a call failed. Advance 0 reuses one message buffer.
///
/// # Panics
/// If a message lies outside its memory, or if a length or rank does not fit a C integer.
#[must_use]
pub fn run(
    comm: &Comm,
    bare: BareExchange,
    (message_bytes, walk): (usize, MemoryWalk),
    send: &[u8],
    receive: &mut [u8],
    iterations: u64,
) -> Option<f64> {
    let last = walk.last_offset(message_bytes).filter(|_| walk.memory_bytes <= send.len().min(receive.len()));
    let Some(last) = last else { panic!("messages of {message_bytes} bytes outside their memory: {walk:?}") };
    let (out, into) = (send.as_ptr().cast::<c_char>(), receive.as_mut_ptr().cast::<c_char>());
    let (bytes, iterations) = (to_c_int(message_bytes as u64), iterations.min(1 << 31) as c_long);
    // Offsets in memory fit a long.
    let [base, advance, last] = [walk.begin, walk.advance_bytes, last].map(|place| place as c_long);
    let walk = shim::beff_bare_walk { base, advance, last };
    let seconds = match bare {
        BareExchange::PingPong { peer } => {
            let begins = c_int::from(comm.rank() < peer);
            // SAFETY: messages up to `last` lie inside both memories (checked above), which are borrowed for the call; a valid
            // communicator.
            unsafe {
                shim::beff_bare_ping_pong(out, into, walk, bytes, iterations, begins, to_c_int(peer), comm.handle())
            }
        }
        BareExchange::Sendrecv { left, right } => {
            // SAFETY: as above.
            unsafe {
                shim::beff_bare_sendrecv(
                    out,
                    into,
                    walk,
                    bytes,
                    iterations,
                    to_c_int(left),
                    to_c_int(right),
                    comm.handle(),
                )
            }
        }
    };
    (seconds >= 0.0).then_some(seconds)
}

pub(crate) fn to_c_int(value: u64) -> c_int {
    c_int::try_from(value).unwrap_or_else(|_| panic!("{value} does not fit a C integer"))
}
