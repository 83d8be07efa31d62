//! Overhead of the harness: clock, barrier, agreement, and an access that moves nothing.

use std::time::Duration;

use beff_backends::{
    driver, AccessKind, AccessPattern, Batch, Batches, Direction, DriverOptions, FilePath, Latency, OpenFile, OpenMode,
    OpenRequest, TransferBuffer,
};
use beff_ffi::{Comm, MpiError};

use crate::frame::records::HarnessCost;
use crate::frame::run::clock::Instant;

const TIME_PER_COST: Duration = Duration::from_millis(50);

/// Measures all costs, that of recording latencies only if requested. Collective.
///
/// # Errors
/// MPI errors.
pub fn measure(comm: &Comm, latency: bool) -> Result<HarnessCost, MpiError> {
    let (clock_resolution_ns, clock_read_ns) = measure_clock();
    Ok(HarnessCost {
        clock_resolution_ns,
        clock_read_ns,
        barrier_ns: median_ns(comm, || comm.bare_barrier())?,
        decision_ns: median_ns(comm, || comm.max_f64(&mut [1.0; 4]))?,
        null_access_ns: null_access_ns(),
        latency_record_ns: if latency { latency_record_ns() } else { 0.0 },
    })
}

pub(crate) fn measure_clock() -> (f64, f64) {
    const READS: u32 = 2000;
    let mut smallest = f64::INFINITY;
    let begin = Instant::now();
    let mut last = begin;
    for _ in 0..READS {
        let now = Instant::now();
        let step = (now - last).as_nanos();
        if step > 0 {
            smallest = smallest.min(step as f64);
        }
        last = now;
    }
    let whole_ns = begin.elapsed().as_nanos() as f64;
    // A clock that did not advance at all is coarser than the whole loop.
    (smallest.min(whole_ns.max(1.0)), whole_ns / f64::from(READS))
}

/// Cost of recording the end of an iteration ([`Latency::record_interval`]), in ns.
#[must_use]
pub fn timestamp_ns() -> f64 {
    const LAPS: u32 = 2000;
    let mut latency = Latency::intervals(LAPS as usize);
    let begin = Instant::now();
    latency.start_intervals();
    (0..LAPS).for_each(|_| latency.record_interval());
    begin.elapsed().as_nanos() as f64 / f64::from(LAPS)
}

/// Median over iterations of the slowest rank's time for `call`.
pub(crate) fn median_ns(comm: &Comm, mut call: impl FnMut() -> Result<(), MpiError>) -> Result<f64, MpiError> {
    let mut one = || -> Result<f64, MpiError> {
        let begin = Instant::now();
        call()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    one()?;
    // On crowded machines a barrier takes tens of milliseconds, so the number of iterations is derived from the first few.
    let mut times = vec![one()?, one()?, one()?];
    let mut first = [times.iter().sum::<f64>()];
    comm.max_f64(&mut first)?;
    let repetitions = (TIME_PER_COST.as_secs_f64() * 3.0 / first[0].max(1e-7)).clamp(3.0, 2001.0) as usize;
    while times.len() < repetitions {
        times.push(one()?);
    }
    comm.max_f64(&mut times)?;
    times.sort_by(f64::total_cmp);
    Ok(times[repetitions / 2] * 1e9)
}

/// Time of one access of 1 kB through the null backend: arithmetic of offsets and windows, and the backend interface; 0 if it cannot run.
#[must_use]
pub fn null_access_ns() -> f64 {
    null_chunk_ns(1024, &mut Latency::off()).unwrap_or(0.0)
}

/// Cost of `--latency` for each call: calls of one chunk with recorded times minus the same without; 0 if it cannot be measured.
#[must_use]
pub fn latency_record_ns() -> f64 {
    let (on, off) = (null_chunk_ns(1, &mut Latency::on()), null_chunk_ns(1, &mut Latency::off()));
    on.zip(off).map_or(0.0, |(on, off)| (on - off).max(0.0))
}

/// A file of the null backend, prepared for writes of the first of four ranks with interleaved chunks; None if a call does not fit the
/// transfer buffer.
#[must_use]
pub fn null_file(chunk_bytes: u64, chunks_per_call: u64, buffer: &mut TransferBuffer) -> Option<Box<dyn OpenFile>> {
    let pattern = AccessPattern {
        kind: AccessKind::Collective,
        base_bytes: chunk_bytes,
        stride_bytes: 4 * chunk_bytes,
        ..AccessPattern::private(chunk_bytes, chunks_per_call, u64::MAX)
    };
    let own = Comm::comm_self();
    let request = OpenRequest { path: &FilePath::unbacked("null"), mode: OpenMode::CreateNew, comm: &own, hints: &[] };
    let mut file = (driver("null")?.create)(&DriverOptions::default()).open(&request).ok()?;
    file.prepare(&pattern, Direction::Write, buffer, &[]).ok()?;
    Some(file)
}

/// Time of one chunk of 1 kB through the null backend, the minimum of several trials, which excludes interference.
fn null_chunk_ns(chunks_per_call: u64, latency: &mut Latency) -> Option<f64> {
    const CHUNK: u64 = 1024;
    const CHUNKS: u64 = 256 * 1024;
    let mut buffer = TransferBuffer::new(1 << 20, CHUNK * chunks_per_call).ok()?;
    let mut file = null_file(CHUNK, chunks_per_call, &mut buffer)?;
    let calls = CHUNKS / chunks_per_call;
    let mut best = f64::INFINITY;
    for round in 0..20 {
        let begin = Instant::now();
        let moved = file.write(Batches::new(Batch { first_call: round * calls, calls }, latency), &buffer);
        let ns = begin.elapsed().as_nanos() as f64;
        if moved.is_ok() {
            best = best.min(ns / CHUNKS as f64);
        }
    }
    let _ = file.close();
    best.is_finite().then_some(best)
}
