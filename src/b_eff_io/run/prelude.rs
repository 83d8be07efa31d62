//! What is known about a pattern before the clock: its calls, its time, its hints.

use crate::b_eff_io::plan::hints;
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::repeats::share_of;
use crate::b_eff_io::plan::schedule::{budget_seconds, pattern_seconds, repeats_counts, time_limit};
use crate::b_eff_io::run::batching::{CallsEnd, Limits};
use crate::b_eff_io::run::calibrate;
use crate::b_eff_io::run::files::Written;
use crate::b_eff_io::run::place::{Open, Place, Repeat};
use crate::b_eff_io::run::state::Run;
use crate::frame::records::Access;
use beff_stamp::Generation;

/// Everything about a pattern that is known before the clock.
pub(super) struct Prelude {
    pub(super) written: Written,
    pub(super) max_calls: u64,
    pub(super) calls_end: CallsEnd,
    pub(super) scheduled_seconds: f64,
    pub(super) budget_seconds: f64,
    pub(super) hints: Vec<(String, String)>,
    /// A repeat ends after this, however slow it is.
    pub(super) guard_seconds: Option<f64>,
}

pub(super) fn prelude(run: &Run<'_>, place: Place<'_>, open: &Open, index: usize, spec: &PatternSpec) -> Prelude {
    let Place { access, part, pattern_type, .. } = place;
    let config = run.config;
    let mut guard_seconds = None;
    let (written, max_calls, calls_end) = if let Some(repeat) = place.repeat {
        let (written, calls, guard) = again(run, place, open, index, spec, repeat);
        guard_seconds = Some(guard);
        (written, calls, CallsEnd::Count)
    } else if access == Access::Write {
        let spec = open.segment.as_ref().map_or(*spec, |s| s.spec(spec));
        let space = part.max_calls[usize::from(spec.number)];
        let (calls, end) = match &open.segment {
            Some(s) => (s.calls[index], if s.by_space[index] { CallsEnd::Space } else { CallsEnd::Count }),
            None if spec.time_units == 0 => (1, CallsEnd::Count),
            None => (space.min(addressable_calls(&spec, open.next_stream_bytes, part.ranks)), CallsEnd::Space),
        };
        (Written::nothing(spec, open.next_stream_bytes, Generation::First), calls, end)
    } else {
        let written = run.files[open.file].written[index].clone();
        let calls = written.calls;
        (written, calls, CallsEnd::Count)
    };
    let scheduled_seconds =
        pattern_seconds(config.release, config.full_rewrite, run.plan.partition_seconds, spec, access);
    let debt = run.backends[open.backend].debt_seconds;
    Prelude {
        hints: hints::for_pattern(&config.hints, part.ranks, access, pattern_type, &written.spec, part.m_part_bytes),
        written,
        max_calls,
        calls_end,
        scheduled_seconds,
        budget_seconds: budget_seconds(config.release, scheduled_seconds, debt),
        guard_seconds,
    }
}

/// A repeat is not slower than this many times the first pass: it is cut, and its rate is what it was until then.
const REPEAT_GUARD: f64 = 2.0;
/// But never cut before this.
const LEAST_GUARD_SECONDS: f64 = 0.1;

/// What a repeat does: the calls of the first pass, no matter what ended that, or a share of them.
fn again(
    run: &Run<'_>,
    place: Place<'_>,
    open: &Open,
    index: usize,
    spec: &PatternSpec,
    repeat: Repeat,
) -> (Written, u64, f64) {
    let file = &run.files[open.file];
    let passed = run.passed(open.backend, place.part.ranks, place.access, spec.number);
    let (calls, seconds) = passed.map_or((0, 0.0), |passed| (passed.calls, passed.seconds));
    let calls = if repeat.left_seconds > 0.0 { share_of(calls, repeat.share) } else { 0 };
    let guard = (REPEAT_GUARD * seconds * repeat.share).max(LEAST_GUARD_SECONDS).min(repeat.left_seconds);
    if place.access == Access::Write {
        let planned = &file.planned[index];
        (Written::nothing(planned.spec, planned.stream_bytes, Generation::Later(repeat.writing)), calls, guard)
    } else {
        let written = file.written[index].clone();
        let calls = calls.min(written.calls);
        (written, calls, guard)
    }
}

/// Calls until the file offsets end, for a first write that no space limit bounds (the null backend).
fn addressable_calls(spec: &PatternSpec, stream_bytes: u64, ranks: u64) -> u64 {
    let room = (i64::MAX as u64 / ranks).saturating_sub(stream_bytes);
    room / spec.call_bytes.max(1)
}

pub(super) fn limits(run: &Run<'_>, place: Place<'_>, open: &Open, p: &Prelude) -> Limits {
    let config = run.config;
    let as_2_1 = repeats_counts(config.release);
    if let Some(seconds) = p.guard_seconds {
        return Limits {
            max_calls: p.max_calls,
            calls_end: p.calls_end,
            time_seconds: Some(seconds),
            whole_seconds: Some(seconds),
            rounds: 1,
            time_is_guard: true,
            sync: None,
            expected_call_seconds: expected_call_seconds(run, place, open, p),
            call_bytes_all_ranks: p.written.spec.call_bytes * place.part.ranks,
            termination: config.termination,
        };
    }
    let time = time_limit(config.release, place.access, &p.written.spec, p.scheduled_seconds, p.budget_seconds);
    Limits {
        max_calls: p.max_calls,
        calls_end: p.calls_end,
        time_seconds: time.map(|limit| limit.seconds),
        whole_seconds: time.map(|limit| limit.seconds),
        rounds: 1,
        time_is_guard: time.is_some_and(|limit| limit.is_guard),
        sync: (place.access != Access::Read && !as_2_1).then_some(run.backends[open.backend].sync),
        expected_call_seconds: expected_call_seconds(run, place, open, p),
        call_bytes_all_ranks: p.written.spec.call_bytes * place.part.ranks,
        termination: config.termination,
    }
}

/// What a call of this pattern took in the pass before. Before a first write only the calibration has been, which tells of large calls alone.
fn expected_call_seconds(run: &Run<'_>, place: Place<'_>, open: &Open, p: &Prelude) -> Option<f64> {
    let spec = &p.written.spec;
    let passed = |access| run.passed(open.backend, place.part.ranks, access, spec.number);
    let passed = match (place.access, place.repeat) {
        (access, Some(_)) => passed(access),
        (Access::Read, None) => passed(Access::Rewrite).or_else(|| passed(Access::Write)),
        (Access::Rewrite, None) => passed(Access::Write),
        (Access::Write, None) => None,
    };
    let of_pass = passed.filter(|passed| passed.calls > 0).map(|passed| passed.calls_seconds / passed.calls as f64);
    of_pass.or_else(|| {
        let rate = run.backends[open.backend].calibrated_bytes_per_second?;
        let bytes = spec.call_bytes * place.part.ranks;
        (spec.chunk_bytes >= calibrate::CALL_BYTES).then_some(bytes as f64 / rate)
    })
}
