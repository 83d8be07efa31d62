//! Ranks that are not MPI's. A [`crate::Comm`] can be made of them ([`crate::Comm::of`]) and then calls no function of MPI: unit tests run
//! the loops of several ranks against each other as threads of one process.
//!
//! All collective calls come down to one: every rank brings bytes and leaves with those of all ranks.

use std::fmt::Debug;

/// One rank of a group of them. All methods but the first two are collective or meet a partner, in the order of the calls.
pub trait Ranks: Debug {
    /// This rank's number.
    fn rank(&self) -> u64;

    /// How many there are.
    fn size(&self) -> u64;

    /// What every rank has brought, in the order of the ranks. `call` names the collective call, which is the same on all of them.
    fn meet(&self, call: &'static str, mine: &[u8]) -> Vec<Vec<u8>>;

    /// The begin of a meeting for which this rank does not wait yet. Returns its number.
    fn begin(&self, mine: &[u8]) -> u64;

    /// The end of the meeting that [`Ranks::begin`] gave this number.
    fn finish(&self, number: u64) -> Vec<Vec<u8>>;

    /// The ranks that say the same number, as a group of their own in their present order; None for those that say none.
    fn split(&self, number: Option<u64>) -> Option<Box<dyn Ranks>>;

    /// A message to another rank, which is kept until it is received.
    fn send(&self, to: u64, bytes: &[u8]);

    /// The next message of another rank.
    fn receive(&self, from: u64) -> Vec<u8>;
}

/// Each number combined over all ranks, in place.
pub(crate) fn fold(values: &mut [u64], all: &[Vec<u8>], combine: impl Fn(u64, u64) -> u64) {
    for (rank, bytes) in all.iter().enumerate() {
        let theirs = words(bytes);
        assert_eq!(theirs.len(), values.len(), "rank {rank} brings another number of numbers");
        for (value, other) in values.iter_mut().zip(theirs) {
            *value = if rank == 0 { other } else { combine(*value, other) };
        }
    }
}

/// The same for floating-point numbers.
pub(crate) fn fold_f64(values: &mut [f64], all: &[Vec<u8>], combine: impl Fn(f64, f64) -> f64) {
    let mut bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
    fold(&mut bits, all, |a, b| combine(f64::from_bits(a), f64::from_bits(b)).to_bits());
    values.iter_mut().zip(bits).for_each(|(value, bits)| *value = f64::from_bits(bits));
}

/// Numbers as bytes.
pub(crate) fn bytes(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The same for floating-point numbers.
pub(crate) fn bytes_f64(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Bytes as numbers.
pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))).collect()
}
