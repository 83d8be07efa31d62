//! A quick look at the machine before the first pattern: what every size and method takes on one ring of all ranks, and
//! what stands beside the messages. The time of the run is announced from this.

use beff_ffi::Comm;

use crate::b_eff::plan::effort::{iterations, Pilot, METHODS};
use crate::b_eff::plan::sizes::SIZES;
use crate::b_eff::plan::{Buffers, CommPattern, CommPlan, Family};
use crate::b_eff::records::{Method, PilotRecord};
use crate::frame::run::clock::Instant;
use crate::frame::run::harness::median_ns;
use crate::frame::run::interrupt::Interrupt;
use beff_stamp::POISON_BYTE;

use super::check::compare;
use super::layout::Layout;
use super::memory::Memory;
use super::pattern::{Broken, Loop, Pattern};

/// What a loop of the pilot is to take.
const LOOP_SECONDS: f64 = 0.5e-3;
/// Iterations of the first loop.
const FIRST_ITERATIONS: u64 = 10;
/// Loops of each kind; the fastest counts, what disturbed the others is no property of the machine.
const TRIES: usize = 2;
/// Bytes compared to see how long that takes.
const SAMPLE_BYTES: u64 = 1 << 20;

/// Share of the limit after which each loop is run once only, and after which the remaining sizes are extrapolated.
const ONCE_SHARE: f64 = 0.1;
const ENOUGH_SHARE: f64 = 0.25;

/// Bandwidth of a rank where the pilot had no time to see it: it is seen when the sizes come, and the effort follows.
const GUESSED_BYTES_PER_SECOND: f64 = 3e8;

/// What bounds it.
pub struct Limits<'a> {
    /// Begin of the run.
    pub begin: Instant,
    /// Time of the whole run.
    pub seconds: f64,
    /// The signal.
    pub interrupt: &'a Interrupt,
}

/// What it brought, equal on all ranks.
pub struct Flown {
    /// Times.
    pub pilot: Pilot,
    /// The loops.
    pub records: Vec<PilotRecord>,
    /// Slots whose memory was touched.
    pub slots: u64,
    /// Time so far.
    pub elapsed_seconds: f64,
    /// A signal came.
    pub interrupted: bool,
}

/// The pattern that is looked at: a random ring, as most of the patterns of the average are, and over several hosts the
/// slowest; or what comes nearest to it.
fn example(plan: &CommPlan) -> Option<(usize, &CommPattern)> {
    let rank = |p: &CommPattern| match p.family {
        Family::Random => 3,
        Family::Ring => 2,
        Family::PingPong => 0,
        _ => 1,
    };
    plan.patterns.iter().enumerate().max_by_key(|(index, p)| (rank(p), *index))
}

/// Runs it. Collective.
///
/// # Errors
/// An MPI call that failed.
pub fn fly(
    comm: &Comm,
    plan: &CommPlan,
    layout: Layout,
    memory: &mut Memory,
    limits: &Limits<'_>,
) -> Result<Flown, Broken> {
    let beside = |error| Broken { place: "before the first pattern".into(), error };
    let loop_ns =
        median_ns(comm, || comm.bare_barrier().and_then(|()| comm.max_f64(&mut [0.0; 12]))).map_err(beside)?;
    let mut verify = seconds_per_byte(layout, comm.rank(), memory);
    comm.max_f64(&mut verify).map_err(beside)?;
    let pilot = Pilot {
        iteration_seconds: [[0.0; METHODS]; SIZES],
        steps: 1,
        loop_seconds: loop_ns * 1e-9,
        verify_seconds_per_byte: verify[0],
        wipe_seconds_per_byte: if layout.buffers == Buffers::Cyclic { verify[1] } else { 0.0 },
        sizes_bytes: plan.sizes_bytes.clone(),
    };
    let mut flown = Flown { pilot, records: Vec::new(), slots: 0, elapsed_seconds: 0.0, interrupted: false };
    let Some((index, example)) = example(plan) else { return Ok(flown) };
    flown.pilot.steps = example.most_steps();
    let mut pattern = Pattern::new(comm, layout, index as u64, example).map_err(beside)?;
    pattern.touch(memory)?;
    flown.slots = example.most_steps();
    let methods: &[Method] = if example.family == Family::PingPong { &[Method::PingPong] } else { &Method::EXCHANGES };
    let mut next = [FIRST_ITERATIONS; METHODS];
    for size in 0..SIZES {
        let enough = flown.elapsed_seconds > ENOUGH_SHARE * limits.seconds || flown.interrupted;
        if size > 0 && enough {
            let more = (plan.sizes_bytes[size] - plan.sizes_bytes[size - 1]) * flown.pilot.steps;
            let seconds = more as f64 / GUESSED_BYTES_PER_SECOND;
            flown.pilot.iteration_seconds[size] = flown.pilot.iteration_seconds[size - 1].map(|one| one + seconds);
            continue;
        }
        one_size(comm, memory, &mut pattern, methods, limits, (size, &mut next), &mut flown)?;
    }
    // What was not compared must not pass for what comes.
    memory.poison();
    Ok(flown)
}

/// All methods with one size; the iterations for the next one.
fn one_size(
    comm: &Comm,
    memory: &mut Memory,
    pattern: &mut Pattern<'_>,
    methods: &[Method],
    limits: &Limits<'_>,
    (size, next): (usize, &mut [u64; METHODS]),
    flown: &mut Flown,
) -> Result<(), Broken> {
    let message_bytes = flown.pilot.sizes_bytes[size];
    let tries = if flown.elapsed_seconds > ONCE_SHARE * limits.seconds { 1 } else { TRIES };
    // Times of the loops, try by try, then elapsed time and signal.
    let mut shared = [f64::INFINITY; TRIES * METHODS + 2];
    for attempt in 0..tries {
        for (way, method) in methods.iter().copied().enumerate() {
            let (iterations, number) = (next[way], way as u64);
            let l = Loop { method, repetition: 0, number, message_bytes, iterations };
            shared[attempt * METHODS + way] = pattern.timed(memory, &l)?;
        }
    }
    shared[TRIES * METHODS] = limits.begin.elapsed().as_secs_f64();
    shared[TRIES * METHODS + 1] = f64::from(u8::from(limits.interrupt.raised()));
    comm.max_f64(&mut shared).map_err(|error| Broken { place: "pilot".into(), error })?;
    flown.elapsed_seconds = shared[TRIES * METHODS];
    flown.interrupted = shared[TRIES * METHODS + 1] > 0.0;
    for way in 0..METHODS {
        // A ping-pong has one method only; it stands for the others.
        let Some(method) = methods.get(way) else {
            flown.pilot.iteration_seconds[size][way] = flown.pilot.iteration_seconds[size][0];
            continue;
        };
        let seconds = (0..tries).map(|attempt| shared[attempt * METHODS + way]).fold(f64::INFINITY, f64::min);
        let one = seconds / next[way] as f64;
        flown.pilot.iteration_seconds[size][way] = one;
        flown.records.push(PilotRecord { message_bytes, method: *method, iterations: next[way], seconds });
        // The next size is up to four times as long.
        next[way] = iterations(LOOP_SECONDS / 2.0, one).min(2 * FIRST_ITERATIONS);
    }
    Ok(())
}

/// What comparing one byte takes on this rank, and what wiping it takes.
fn seconds_per_byte(layout: Layout, rank: u64, memory: &mut Memory) -> [f64; 2] {
    let (send, receive) = memory.halves();
    let length = send.len().min(SAMPLE_BYTES as usize);
    let begin = Instant::now();
    let compared = std::hint::black_box(compare(layout.stream(rank), 0, &send[..length]));
    let compare_seconds = begin.elapsed().as_secs_f64();
    debug_assert_eq!(compared.0, 0);
    let begin = Instant::now();
    std::hint::black_box(&mut receive[..length]).fill(POISON_BYTE);
    [compare_seconds, begin.elapsed().as_secs_f64()].map(|seconds| seconds / length.max(1) as f64)
}
