//! What the harness itself costs: clock, barrier, decision, and an access that moves nothing.

use std::time::Duration;

use beff_backends::{
    driver, AccessKind, Batch, Batches, Direction, DriverOptions, FilePath, Latency, OpenFile, OpenMode, OpenRequest,
    Pattern, Ring,
};
use beff_ffi::{Comm, MpiError};

use crate::frame::records::HarnessCost;
use crate::frame::run::clock::Instant;

/// Time spent on each of the costs, at most about.
const SHARE: Duration = Duration::from_millis(50);

/// Measures all costs, that of recording latencies only if they are wanted. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn measure(comm: &Comm, latency: bool) -> Result<HarnessCost, MpiError> {
    let (clock_resolution_ns, clock_read_ns) = clock();
    Ok(HarnessCost {
        clock_resolution_ns,
        clock_read_ns,
        barrier_ns: median_ns(comm, || comm.bare_barrier())?,
        decision_ns: median_ns(comm, || comm.max_f64(&mut [1.0; 4]))?,
        null_access_ns: null_access_ns(),
        latency_record_ns: if latency { latency_record_ns() } else { 0.0 },
    })
}

pub(crate) fn clock() -> (f64, f64) {
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
    // A clock that did not move at all is coarser than the whole loop.
    (smallest.min(whole_ns.max(1.0)), whole_ns / f64::from(READS))
}

/// What it costs to keep the end of a repetition ([`Latency::lap`]), in ns.
#[must_use]
pub fn lap_ns() -> f64 {
    const LAPS: u32 = 2000;
    let mut latency = Latency::laps(LAPS as usize);
    let begin = Instant::now();
    latency.start_laps();
    (0..LAPS).for_each(|_| latency.lap());
    begin.elapsed().as_nanos() as f64 / f64::from(LAPS)
}

/// Median over repetitions of the slowest rank's time for `call`.
pub(crate) fn median_ns(comm: &Comm, mut call: impl FnMut() -> Result<(), MpiError>) -> Result<f64, MpiError> {
    let mut one = || -> Result<f64, MpiError> {
        let begin = Instant::now();
        call()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    one()?;
    // Crowded machines take tens of milliseconds for a barrier: the number of repetitions follows from the first few.
    let mut times = vec![one()?, one()?, one()?];
    let mut first = [times.iter().sum::<f64>()];
    comm.max_f64(&mut first)?;
    let repetitions = (SHARE.as_secs_f64() * 3.0 / first[0].max(1e-7)).clamp(3.0, 2001.0) as usize;
    while times.len() < repetitions {
        times.push(one()?);
    }
    comm.max_f64(&mut times)?;
    times.sort_by(f64::total_cmp);
    Ok(times[repetitions / 2] * 1e9)
}

/// One access of 1 kB through the null backend: the arithmetic of offsets and windows, and the seam; 0 if it cannot run.
#[must_use]
pub fn null_access_ns() -> f64 {
    null_chunk_ns(1024, &mut Latency::off()).unwrap_or(0.0)
}

/// What `--latency` adds to each call: calls of one chunk with the times recorded, less the same without; 0 if it cannot
/// be measured.
#[must_use]
pub fn latency_record_ns() -> f64 {
    let (on, off) = (null_chunk_ns(1, &mut Latency::on()), null_chunk_ns(1, &mut Latency::off()));
    on.zip(off).map_or(0.0, |(on, off)| (on - off).max(0.0))
}

/// A file of the null backend, about to be written in calls as those of the first of four ranks that interleave their
/// chunks; None if a call does not fit the ring.
#[must_use]
pub fn null_file(chunk_bytes: u64, chunks_per_call: u64, ring: &mut Ring) -> Option<Box<dyn OpenFile>> {
    let pattern = Pattern {
        kind: AccessKind::Collective,
        base_bytes: chunk_bytes,
        stride_bytes: 4 * chunk_bytes,
        ..Pattern::private(chunk_bytes, chunks_per_call, u64::MAX)
    };
    let own = Comm::own();
    let request = OpenRequest { path: &FilePath::nowhere("null"), mode: OpenMode::CreateNew, comm: &own, hints: &[] };
    let mut file = (driver("null")?.make)(&DriverOptions::default()).open(&request).ok()?;
    file.prepare(&pattern, Direction::Write, ring, &[]).ok()?;
    Some(file)
}

/// Time of one chunk of 1 kB through the null backend, the best of several tries: what the machine does beside it is not
/// the harness's cost.
fn null_chunk_ns(chunks_per_call: u64, latency: &mut Latency) -> Option<f64> {
    const CHUNK: u64 = 1024;
    const CHUNKS: u64 = 256 * 1024;
    let mut ring = Ring::new(1 << 20, CHUNK * chunks_per_call).ok()?;
    let mut file = null_file(CHUNK, chunks_per_call, &mut ring)?;
    let calls = CHUNKS / chunks_per_call;
    let mut best = f64::INFINITY;
    for round in 0..20 {
        let begin = Instant::now();
        let moved = file.write(Batches::new(Batch { first_call: round * calls, calls }, latency), &ring);
        let ns = begin.elapsed().as_nanos() as f64;
        if moved.is_ok() {
            best = best.min(ns / CHUNKS as f64);
        }
    }
    let _ = file.close();
    best.is_finite().then_some(best)
}
