//! The bandwidth of a loop.

use crate::b_eff::records::LoopRecord;

/// Bandwidth of one loop, all ranks together; None if it moved nothing or took no time.
#[must_use]
pub fn bytes_per_second(message_bytes: u64, messages: u64, one: &LoopRecord) -> Option<f64> {
    let moved = message_bytes as f64 * messages as f64 * one.iterations as f64;
    (moved > 0.0 && one.seconds.is_finite() && one.seconds > 0.0).then(|| moved / one.seconds)
}
