//! Ranks that are not MPI's. A [`crate::Comm`] of them ([`crate::Comm::from_ranks`]) calls no MPI function: unit tests run the loops of several
//! ranks as threads.
//!
//! All collective calls are an allgather of bytes.

use std::fmt::Debug;

/// One rank of a group. All methods but the first two are collective or involve a peer.
pub trait RankGroup: Debug {
    /// This rank's number.
    fn rank(&self) -> u64;

    /// Number of ranks.
    fn size(&self) -> u64;

    /// The bytes of every rank, in rank order. `call` names the collective call, the same on all ranks.
    fn allgather(&self, call: &'static str, mine: &[u8]) -> Vec<Vec<u8>>;

    /// Posts a nonblocking allgather. Returns its number.
    fn post_allgather(&self, mine: &[u8]) -> u64;

    /// Completes the allgather that [`RankGroup::post_allgather`] numbered.
    fn complete_allgather(&self, number: u64) -> Vec<Vec<u8>>;

    /// Splits the group: ranks with the same number form a new group in their present order; None without a number.
    fn split(&self, number: Option<u64>) -> Option<Box<dyn RankGroup>>;

    /// Sends a message to another rank; it is buffered until received.
    fn send(&self, to: u64, bytes: &[u8]);

    /// Receives the next message of another rank.
    fn receive(&self, from: u64) -> Vec<u8>;
}

/// Combines each number over all ranks, in place.
pub(crate) fn reduce_u64(values: &mut [u64], all: &[Vec<u8>], combine: impl Fn(u64, u64) -> u64) {
    for (rank, bytes) in all.iter().enumerate() {
        let theirs = from_bytes(bytes);
        assert_eq!(theirs.len(), values.len(), "rank {rank} has a different number of values");
        for (value, other) in values.iter_mut().zip(theirs) {
            *value = if rank == 0 { other } else { combine(*value, other) };
        }
    }
}

/// The same for floating-point numbers.
pub(crate) fn reduce_f64(values: &mut [f64], all: &[Vec<u8>], combine: impl Fn(f64, f64) -> f64) {
    let mut bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
    reduce_u64(&mut bits, all, |a, b| combine(f64::from_bits(a), f64::from_bits(b)).to_bits());
    values.iter_mut().zip(bits).for_each(|(value, bits)| *value = f64::from_bits(bits));
}

/// Converts numbers to bytes.
pub(crate) fn to_bytes(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The same for floating-point numbers.
pub(crate) fn f64_to_bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Converts bytes to numbers.
pub(crate) fn from_bytes(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))).collect()
}
