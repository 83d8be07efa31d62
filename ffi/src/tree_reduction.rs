//! Reductions of values of any length, along a binomial tree of messages.
//!
//! A gather takes memory and time on rank 0 in proportion to the number of ranks. Here each rank combines the values of at most log2(ranks)
//! others, one after the other. Consecutive ranks are combined first: with the usual placement those of one node, before nodes.

use std::ffi::{c_int, c_void};

use crate::comm::{element_count, Comm, MAX_ELEMENTS};
use crate::error::{c_integer, Result};
use crate::ranks::RankGroup;

/// Tag of the messages: different from that of other messages on the communicator.
const TREE_TAG: c_int = 1;
/// Bytes of the first message, with the length of the value: most values need no second one, and libraries send it eagerly.
const FIRST_BYTES: usize = 1024;
/// Bytes of the length.
const LENGTH_BYTES: usize = 8;

/// How a value is sent to another rank.
#[derive(Debug)]
pub struct Encoding<T> {
    /// Converts a value to bytes.
    pub encode: fn(&T) -> Vec<u8>,
    /// Converts the bytes of another rank to a value.
    pub decode: fn(&[u8]) -> T,
}

impl Comm {
    /// Combines the values of all ranks in rank order: `combine` is associative, its first argument of lower ranks than its second. The
    /// result is on rank 0, None on the others. Collective.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn reduce_in_tree<T>(
        &self,
        mine: T,
        encoding: &Encoding<T>,
        mut combine: impl FnMut(T, T) -> T,
    ) -> Result<Option<T>> {
        if let Some(ranks) = self.custom_ranks() {
            return Ok(reduce_custom(ranks, &mine, encoding, combine));
        }
        let mut combined = mine;
        let mut distance = 1;
        while distance < self.size() {
            if self.rank() & distance != 0 {
                self.send_value(&(encoding.encode)(&combined), self.rank() - distance)?;
                return Ok(None);
            }
            if self.rank() + distance < self.size() {
                let theirs = self.receive_value(self.rank() + distance)?;
                combined = combine(combined, (encoding.decode)(&theirs));
            }
            distance *= 2;
        }
        Ok(Some(combined))
    }

    fn send_value(&self, bytes: &[u8], to: u64) -> Result<()> {
        let to = c_integer(to, "MPI_ERR_RANK")?;
        let mut first = (bytes.len() as u64).to_le_bytes().to_vec();
        let (begin, rest) = bytes.split_at(bytes.len().min(FIRST_BYTES - LENGTH_BYTES));
        first.extend_from_slice(begin);
        std::iter::once(&first[..]).chain(rest.chunks(MAX_ELEMENTS)).try_for_each(|part| {
            let (memory, count, kind) =
                (part.as_ptr().cast::<c_void>(), element_count(part), constant!(mpi_sys::RSMPI_UINT8_T));
            // SAFETY: `count` bytes that live and do not change until the send is complete.
            self.post_and_wait(|request| unsafe {
                mpi_sys::MPI_Isend(memory, count, kind, to, TREE_TAG, self.handle(), request)
            })
        })
    }

    fn receive_value(&self, from: u64) -> Result<Vec<u8>> {
        let from = c_integer(from, "MPI_ERR_RANK")?;
        let mut first = [0_u8; FIRST_BYTES];
        self.receive_part(&mut first, from)?;
        let (length, begin) = first.split_at(LENGTH_BYTES);
        let length = length.iter().rev().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
        let mut bytes = vec![0; length];
        let begun = length.min(begin.len());
        bytes[..begun].copy_from_slice(&begin[..begun]);
        bytes[begun..].chunks_mut(MAX_ELEMENTS).try_for_each(|part| self.receive_part(part, from))?;
        Ok(bytes)
    }

    /// Receives a message of at most this length.
    fn receive_part(&self, part: &mut [u8], from: c_int) -> Result<()> {
        let (memory, count, kind) =
            (part.as_mut_ptr().cast::<c_void>(), element_count(part), constant!(mpi_sys::RSMPI_UINT8_T));
        // SAFETY: `count` bytes, exclusively borrowed until the receive is complete.
        self.post_and_wait(|request| unsafe {
            mpi_sys::MPI_Irecv(memory, count, kind, from, TREE_TAG, self.handle(), request)
        })
    }
}

/// The same among ranks that are not MPI's, in the same tree.
fn reduce_custom<T>(
    ranks: &dyn RankGroup,
    mine: &T,
    encoding: &Encoding<T>,
    mut combine: impl FnMut(T, T) -> T,
) -> Option<T> {
    let all = ranks.allgather("reduce", &(encoding.encode)(mine));
    if ranks.rank() != 0 {
        return None;
    }
    let mut values: Vec<Option<T>> = all.iter().map(|bytes| Some((encoding.decode)(bytes))).collect();
    let mut distance = 1;
    while distance < values.len() {
        for rank in (0..values.len() - distance).step_by(2 * distance) {
            let pair = values[rank].take().zip(values[rank + distance].take());
            values[rank] = pair.map(|(lower, higher)| combine(lower, higher));
        }
        distance *= 2;
    }
    values.swap_remove(0)
}
