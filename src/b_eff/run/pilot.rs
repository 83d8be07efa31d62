//! Pilot measurement before the first pattern: times of every size and method on one ring of all ranks, and the overhead of
//! the loops. The time of the run is estimated from it.

use beff_ffi::Comm;

use crate::b_eff::plan::effort::{iterations, PilotTimes, METHOD_COUNT};
use crate::b_eff::plan::sizes::SIZE_COUNT;
use crate::b_eff::plan::{BufferMode, CommPattern, CommPlan, PatternFamily};
use crate::b_eff::records::{MessageMethod, PilotRecord};
use crate::frame::records::RunOutcome;
use crate::frame::run::clock::Instant;
use crate::frame::run::harness::median_ns;
use crate::frame::run::interrupt::{stop_outcome, Interrupt};
use beff_stamp::POISON_BYTE;

use super::check::compare_bytes;
use super::layout::BufferLayout;
use super::message_buffers::MessageBuffers;
use super::pattern::{MessageLoop, PatternError, PreparedPattern};

const PILOT_LOOP_SECONDS: f64 = 0.5e-3;
const FIRST_ITERATIONS: u64 = 10;
/// Loops of each size and method; the fastest counts, to exclude disturbances.
const LOOPS_PER_METHOD: usize = 2;
/// Bytes compared to measure the time of the comparison.
const SAMPLE_BYTES: u64 = 1 << 20;

/// Shares of the time limit after which each loop is run only once, and after which the remaining sizes are extrapolated.
const SINGLE_LOOP_SHARE: f64 = 0.1;
const EXTRAPOLATION_SHARE: f64 = 0.25;

/// Assumed bandwidth of a rank for extrapolated sizes; the effort is adapted when they are measured.
const ASSUMED_BYTES_PER_SECOND: f64 = 3e8;

/// Limits of the pilot.
pub struct PilotLimits<'a> {
    /// Start of the run.
    pub begin: Instant,
    /// Time limit of the whole run.
    pub seconds: f64,
    /// Requests to end the run.
    pub interrupt: &'a Interrupt,
}

/// Result of the pilot, equal on all ranks.
pub struct PilotOutcome {
    /// Times.
    pub times: PilotTimes,
    /// The loops.
    pub records: Vec<PilotRecord>,
    /// Slots whose memory is touched.
    pub slots: u64,
    /// Elapsed time.
    pub elapsed_seconds: f64,
    /// Why the run stops; None if it continues.
    pub stop: Option<RunOutcome>,
}

/// The pattern of the pilot: a random ring, as most patterns of the average, and the slowest over several hosts; otherwise
/// the most similar pattern of the plan.
fn pilot_pattern(plan: &CommPlan) -> Option<(usize, &CommPattern)> {
    let rank = |p: &CommPattern| match p.family {
        PatternFamily::Random => 3,
        PatternFamily::Ring => 2,
        PatternFamily::PingPong => 0,
        _ => 1,
    };
    plan.patterns.iter().enumerate().max_by_key(|(index, p)| (rank(p), *index))
}

/// Runs the pilot. Collective.
///
/// # Errors
/// A failed MPI call.
pub fn run_pilot(
    comm: &Comm,
    plan: &CommPlan,
    layout: BufferLayout,
    memory: &mut MessageBuffers,
    limits: &PilotLimits<'_>,
) -> Result<PilotOutcome, PatternError> {
    let beside = |error| PatternError { context: "before the first pattern".into(), error };
    let loop_ns =
        median_ns(comm, || comm.bare_barrier().and_then(|()| comm.max_f64(&mut [0.0; 12]))).map_err(beside)?;
    let mut verify = check_seconds_per_byte(layout, comm.rank(), memory);
    comm.max_f64(&mut verify).map_err(beside)?;
    let pilot = PilotTimes {
        iteration_seconds: [[0.0; METHOD_COUNT]; SIZE_COUNT],
        steps: 1,
        loop_overhead_seconds: loop_ns * 1e-9,
        verify_seconds_per_byte: verify[0],
        wipe_seconds_per_byte: if layout.buffers == BufferMode::Cyclic { verify[1] } else { 0.0 },
        sizes_bytes: plan.sizes_bytes.clone(),
    };
    let mut flown = PilotOutcome { times: pilot, records: Vec::new(), slots: 0, elapsed_seconds: 0.0, stop: None };
    let Some((index, example)) = pilot_pattern(plan) else { return Ok(flown) };
    flown.times.steps = example.max_steps();
    let mut pattern = PreparedPattern::new(comm, layout, index as u64, example).map_err(beside)?;
    pattern.first_touch(memory)?;
    flown.slots = example.max_steps();
    let methods: &[MessageMethod] =
        if example.family == PatternFamily::PingPong { &[MessageMethod::PingPong] } else { &MessageMethod::EXCHANGES };
    let mut next = [FIRST_ITERATIONS; METHOD_COUNT];
    for size in 0..SIZE_COUNT {
        let enough = flown.elapsed_seconds > EXTRAPOLATION_SHARE * limits.seconds || flown.stop.is_some();
        if size > 0 && enough {
            let more = (plan.sizes_bytes[size] - plan.sizes_bytes[size - 1]) * flown.times.steps;
            let seconds = more as f64 / ASSUMED_BYTES_PER_SECOND;
            flown.times.iteration_seconds[size] = flown.times.iteration_seconds[size - 1].map(|one| one + seconds);
            continue;
        }
        measure_size(comm, memory, &mut pattern, methods, limits, (size, &mut next), &mut flown)?;
    }
    // Data of the pilot, which was not compared, must not be mistaken for later messages.
    memory.poison();
    Ok(flown)
}

/// Measures all methods with one size and sets the iterations of the next size.
fn measure_size(
    comm: &Comm,
    memory: &mut MessageBuffers,
    pattern: &mut PreparedPattern<'_>,
    methods: &[MessageMethod],
    limits: &PilotLimits<'_>,
    (size, next): (usize, &mut [u64; METHOD_COUNT]),
    flown: &mut PilotOutcome,
) -> Result<(), PatternError> {
    let message_bytes = flown.times.sizes_bytes[size];
    let tries = if flown.elapsed_seconds > SINGLE_LOOP_SHARE * limits.seconds { 1 } else { LOOPS_PER_METHOD };
    // Times of the loops, attempt by attempt, then elapsed time and signal.
    let mut shared = [f64::INFINITY; LOOPS_PER_METHOD * METHOD_COUNT + 2];
    for attempt in 0..tries {
        for (way, method) in methods.iter().copied().enumerate() {
            let (iterations, number) = (next[way], way as u64);
            let l = MessageLoop { method, repetition: 0, number, message_bytes, iterations };
            shared[attempt * METHOD_COUNT + way] = pattern.run_timed(memory, &l)?;
        }
    }
    shared[LOOPS_PER_METHOD * METHOD_COUNT] = limits.begin.elapsed().as_secs_f64();
    shared[LOOPS_PER_METHOD * METHOD_COUNT + 1] = limits.interrupt.request(0.0) as f64;
    comm.max_f64(&mut shared).map_err(|error| PatternError { context: "pilot".into(), error })?;
    flown.elapsed_seconds = shared[LOOPS_PER_METHOD * METHOD_COUNT];
    flown.stop = stop_outcome(shared[LOOPS_PER_METHOD * METHOD_COUNT + 1] as u64);
    for way in 0..METHOD_COUNT {
        // A ping-pong has only one method, whose time is used for the others.
        let Some(method) = methods.get(way) else {
            flown.times.iteration_seconds[size][way] = flown.times.iteration_seconds[size][0];
            continue;
        };
        let seconds = (0..tries).map(|attempt| shared[attempt * METHOD_COUNT + way]).fold(f64::INFINITY, f64::min);
        let one = seconds / next[way] as f64;
        flown.times.iteration_seconds[size][way] = one;
        flown.records.push(PilotRecord { message_bytes, method: *method, iterations: next[way], seconds });
        // The next size is up to four times as long.
        next[way] = iterations(PILOT_LOOP_SECONDS / 2.0, one).min(2 * FIRST_ITERATIONS);
    }
    Ok(())
}

/// Seconds to compare one byte on this rank, and to wipe it.
fn check_seconds_per_byte(layout: BufferLayout, rank: u64, memory: &mut MessageBuffers) -> [f64; 2] {
    let (send, receive) = memory.split();
    let length = send.len().min(SAMPLE_BYTES as usize);
    let begin = Instant::now();
    let compared = std::hint::black_box(compare_bytes(layout.stream(rank), 0, &send[..length]));
    let compare_seconds = begin.elapsed().as_secs_f64();
    debug_assert_eq!(compared.0, 0);
    let begin = Instant::now();
    std::hint::black_box(&mut receive[..length]).fill(POISON_BYTE);
    [compare_seconds, begin.elapsed().as_secs_f64()].map(|seconds| seconds / length.max(1) as f64)
}
