//! Parameters of a pattern before the clock: its calls, time and hints.

use crate::b_eff_io::config::ReadShare;
use crate::b_eff_io::plan::hints;
use crate::b_eff_io::plan::orders::OrderUnit;
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::repetitions::share_of;
use crate::b_eff_io::plan::schedule::{bounds_overruns, budget_seconds, pattern_seconds, time_limit, TimeLimit};
use crate::b_eff_io::run::batching::{CallsEnd, LoopLimits};
use crate::b_eff_io::run::context::{OpenTypeFile, TypeContext, TypeRepetition};
use crate::b_eff_io::run::files::{RankOrders, WrittenPattern};
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::sync_calibration;
use crate::frame::records::AccessMethod;
use beff_stamp::{mix, Generation};

/// Parameters of a pattern before the clock.
pub(super) struct PatternPlan {
    pub(super) written: WrittenPattern,
    pub(super) max_calls: u64,
    pub(super) calls_end: CallsEnd,
    pub(super) scheduled_seconds: f64,
    pub(super) budget_seconds: f64,
    pub(super) hints: Vec<(String, String)>,
    /// Time limit of a repetition.
    pub(super) guard_seconds: Option<f64>,
    /// Another order, in calls of one chunk.
    pub(super) orders: Option<RankOrders>,
}

impl PatternPlan {
    /// Bytes of one call of a rank.
    pub(super) fn call_bytes(&self) -> u64 {
        if self.orders.is_some() {
            self.written.spec.chunk_bytes
        } else {
            self.written.spec.call_bytes
        }
    }
}

pub(super) fn plan_pattern(
    run: &RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    index: usize,
    spec: &PatternSpec,
) -> PatternPlan {
    let TypeContext { access, partition: part, pattern_type, .. } = place;
    let config = run.config;
    let mut guard_seconds = None;
    let (written, max_calls, calls_end) = if let Some(type_repetition) = place.repetition {
        let (written, calls, guard) = plan_repetition(run, place, open, index, spec, type_repetition);
        guard_seconds = Some(guard);
        (written, calls, CallsEnd::Count)
    } else if access == AccessMethod::Write {
        let spec = open.segment.as_ref().map_or(*spec, |s| s.spec(spec));
        let space = part.max_calls[usize::from(spec.number)];
        let (calls, end) = match &open.segment {
            Some(s) => (s.calls[index], if s.by_space[index] { CallsEnd::Space } else { CallsEnd::Count }),
            None if spec.time_units == 0 => (1, CallsEnd::Count),
            None => (space.min(addressable_calls(&spec, open.next_stream_bytes, part.ranks)), CallsEnd::Space),
        };
        (WrittenPattern::empty(spec, open.next_stream_bytes, Generation::First), calls, end)
    } else {
        let written = run.files[open.file].written[index].clone();
        let calls = written.calls;
        (written, calls, CallsEnd::Count)
    };
    let orders = place.order.map(|unit| rank_orders(run.config.seed, unit, spec));
    let max_calls = if orders.is_some() { written.chunks() } else { max_calls };
    let timed_as = place.order.map_or(access, |unit| unit.timed_as());
    let scheduled_seconds =
        pattern_seconds(config.release, config.full_rewrite, run.plan.partition_seconds, spec, timed_as);
    let debt = if orders.is_some() { 0.0 } else { run.backends[open.backend].debt_seconds };
    let rules = &config.of(&run.backends[open.backend].name).hints;
    PatternPlan {
        hints: hints::for_pattern(rules, part.ranks, access, pattern_type, &written.spec, part.m_part_bytes),
        written,
        max_calls,
        calls_end,
        scheduled_seconds,
        budget_seconds: budget_seconds(bounds_overruns(config.release, config.strict), scheduled_seconds, debt),
        guard_seconds,
        orders,
    }
}

/// Rewrites, reads and both together have different orders: a file system may have placed what was rewritten in the order of the rewrite.
pub(super) fn rank_orders(seed: u64, unit: OrderUnit, spec: &PatternSpec) -> RankOrders {
    let seed = [u64::from(spec.number), unit.access as u64].into_iter().fold(mix(seed), |key, fact| mix(key ^ fact));
    let mix = unit.order.mix.map(ReadShare::mix);
    let seed = mix.map_or(seed, |_| beff_stamp::mix(!seed));
    RankOrders { kind: unit.order.order.kind(), seed, is_common: spec.pattern_type.is_strided(), mix }
}

/// A repetition that takes this many times the first measurement is cut, and its rate is that of the completed calls.
const REPETITION_GUARD: f64 = 2.0;
/// Minimum time before it is cut.
const MIN_GUARD_SECONDS: f64 = 0.1;

/// Parameters of a repetition: the calls of the first measurement, whatever ended that, or a share of them.
fn plan_repetition(
    run: &RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    index: usize,
    spec: &PatternSpec,
    type_repetition: TypeRepetition,
) -> (WrittenPattern, u64, f64) {
    let file = &run.files[open.file];
    let passed = run.first_measurement(open.backend, place.partition.ranks, place.access, spec.number);
    let (calls, seconds) = passed.map_or((0, 0.0), |passed| (passed.calls, passed.seconds));
    let calls = if type_repetition.remaining_seconds > 0.0 { share_of(calls, type_repetition.share) } else { 0 };
    let guard_factor = if type_repetition.is_rebuild() { f64::INFINITY } else { REPETITION_GUARD };
    let guard = (guard_factor * seconds.max(f64::MIN_POSITIVE) * type_repetition.share)
        .max(MIN_GUARD_SECONDS)
        .min(type_repetition.remaining_seconds);
    if place.access == AccessMethod::Write {
        let planned = &file.previous[index];
        (
            WrittenPattern::empty(planned.spec, planned.stream_bytes, Generation::Later(type_repetition.generation)),
            calls,
            guard,
        )
    } else {
        let written = file.written[index].clone();
        let calls = calls.min(written.calls);
        (written, calls, guard)
    }
}

/// Calls up to the largest file offset, for a first write without a space limit (the null backend).
fn addressable_calls(spec: &PatternSpec, stream_bytes: u64, ranks: u64) -> u64 {
    let available_bytes = (i64::MAX as u64 / ranks).saturating_sub(stream_bytes);
    available_bytes / spec.call_bytes.max(1)
}

pub(super) fn loop_limits(
    run: &RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    p: &PatternPlan,
) -> LoopLimits {
    let config = run.config;
    if let Some(seconds) = p.guard_seconds {
        return LoopLimits {
            max_calls: p.max_calls,
            calls_end: p.calls_end,
            time_seconds: Some(seconds),
            pattern_seconds: Some(seconds),
            rounds: 1,
            time_is_guard: true,
            sync: None,
            expected_call_seconds: expected_call_seconds(run, place, open, p),
            call_bytes_all_ranks: p.call_bytes() * place.partition.ranks,
            termination: config.termination,
        };
    }
    let rules = (config.release, config.strict);
    let time = if p.orders.is_some() {
        Some(TimeLimit { seconds: p.scheduled_seconds, is_guard: false })
    } else {
        time_limit(rules, place.access, &p.written.spec, p.scheduled_seconds, p.budget_seconds)
    };
    let keeps_sync_time = place.access != AccessMethod::Read && bounds_overruns(config.release, config.strict);
    LoopLimits {
        max_calls: p.max_calls,
        calls_end: p.calls_end,
        time_seconds: time.map(|limit| limit.seconds),
        pattern_seconds: time.map(|limit| limit.seconds),
        rounds: 1,
        time_is_guard: time.is_some_and(|limit| limit.is_guard),
        sync: keeps_sync_time.then_some(run.backends[open.backend].sync),
        expected_call_seconds: expected_call_seconds(run, place, open, p),
        call_bytes_all_ranks: p.call_bytes() * place.partition.ranks,
        termination: config.termination,
    }
}

/// Time of a call in the previous measurement. Before a first write only the calibration is available, which applies to large calls alone.
fn expected_call_seconds(
    run: &RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    p: &PatternPlan,
) -> Option<f64> {
    let spec = &p.written.spec;
    if p.orders.is_some() {
        return None;
    }
    let passed = |access| run.first_measurement(open.backend, place.partition.ranks, access, spec.number);
    let passed = match (place.access, place.repetition) {
        (access, Some(_)) => passed(access),
        (AccessMethod::Read, None) => passed(AccessMethod::Rewrite).or_else(|| passed(AccessMethod::Write)),
        (AccessMethod::Rewrite, None) => passed(AccessMethod::Write),
        (AccessMethod::Write, None) => None,
    };
    let first_call_seconds =
        passed.filter(|passed| passed.calls > 0).map(|passed| passed.calls_seconds / passed.calls as f64);
    first_call_seconds.or_else(|| {
        let rate = run.backends[open.backend].calibrated_bytes_per_second?;
        let bytes = spec.call_bytes * place.partition.ranks;
        (spec.chunk_bytes >= sync_calibration::CALL_BYTES).then_some(bytes as f64 / rate)
    })
}
