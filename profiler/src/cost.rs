//! Overhead of the profiler per call.

use beff_trace::raw::record::{has, CompactRecord};
use beff_trace::Function;

use crate::clock::{monotonic_ns, ticks};

/// Records per measured batch, and number of batches; the fastest counts.
const RECORDS: usize = 512;
const BATCHES: usize = 8;

/// Time of two clock readings and a record in memory, in ns.
pub fn record_cost_ns() -> Option<f64> {
    let mut buffer = vec![0_u64; 4 * RECORDS];
    let mut best = u64::MAX;
    for _ in 0..BATCHES {
        let before = monotonic_ns();
        let mut tick = ticks();
        for place in buffer.chunks_exact_mut(4) {
            let begin = ticks();
            let end = ticks();
            let record = CompactRecord {
                function: Function::WriteAt as u8,
                present: has::OFFSET,
                datatype: 0,
                handle: 0,
                since_ticks: begin.wrapping_sub(tick) as u32,
                duration_ticks: end.wrapping_sub(begin) as u32,
                offset: 0,
                count: 1,
                bytes: 8,
            };
            tick = begin;
            place.copy_from_slice(&record.words());
            std::hint::black_box(&mut *place);
        }
        best = best.min(monotonic_ns() - before);
    }
    Some(best as f64 / RECORDS as f64)
}
