//! Loops of b_eff in C, without a check of anything: what [`crate::Exchange`] is compared with.

use std::ffi::{c_char, c_int, c_long};

use crate::comm::Comm;
use crate::exchange::Walk;
use crate::shim;

/// What a rank does in a bare loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare {
    /// MPI_Send and MPI_Recv with one other rank, the lower one begins.
    PingPong {
        /// The other rank.
        peer: u64,
    },
    /// MPI_Sendrecv to the left and from the right, then the other way round; if both are one rank, only the first.
    Sendrecv {
        /// Left neighbour.
        left: u64,
        /// Right neighbour.
        right: u64,
    },
}

/// Seconds of `iterations` iterations on this rank (MPI_Wtime); None if a call of MPI failed. An advance of 0 sends the same
/// message again and again.
///
/// # Panics
/// If a message lies outside of its memory, or the message or a rank is no C integer.
#[must_use]
pub fn run(
    comm: &Comm,
    bare: Bare,
    (message_bytes, walk): (usize, Walk),
    send: &[u8],
    receive: &mut [u8],
    iterations: u64,
) -> Option<f64> {
    let last = walk.last(message_bytes).filter(|_| walk.memory_bytes <= send.len().min(receive.len()));
    let Some(last) = last else { panic!("messages of {message_bytes} bytes outside of their memory: {walk:?}") };
    let (out, into) = (send.as_ptr().cast::<c_char>(), receive.as_mut_ptr().cast::<c_char>());
    let (bytes, iterations) = (int(message_bytes as u64), iterations.min(1 << 31) as c_long);
    // Places in memory, which are no larger than a long.
    let [base, advance, last] = [walk.begin, walk.advance_bytes, last].map(|place| place as c_long);
    let walk = shim::beff_bare_walk { base, advance, last };
    let seconds = match bare {
        Bare::PingPong { peer } => {
            let begins = c_int::from(comm.rank() < peer);
            // SAFETY: a message at `last` or before ends inside both memories, as found above; they are borrowed for the
            // call; a valid communicator.
            unsafe { shim::beff_bare_ping_pong(out, into, walk, bytes, iterations, begins, int(peer), comm.handle()) }
        }
        Bare::Sendrecv { left, right } => {
            // SAFETY: as above.
            unsafe {
                shim::beff_bare_sendrecv(out, into, walk, bytes, iterations, int(left), int(right), comm.handle())
            }
        }
    };
    (seconds >= 0.0).then_some(seconds)
}

pub(crate) fn int(value: u64) -> c_int {
    c_int::try_from(value).unwrap_or_else(|_| panic!("{value} is no C integer"))
}
