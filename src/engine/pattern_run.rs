//! One pattern through one backend: limits before the clock, verification and records after it.

use beff_backends::{Direction, Pattern};
use beff_ffi::MpiError;

use crate::config::CachePolicy;
use crate::engine::agree::first_message;
use crate::engine::batching::{CallsEnd, Limits};
use crate::engine::clocked::{self, Measured, Task};
use crate::engine::evidence::{drop_pages, Target, Watch};
use crate::engine::files::Written;
use crate::engine::run::Run;
use crate::engine::stamp::Generation;
use crate::engine::type_run::{granted, report_findings, OpenHandle, Place};
use crate::engine::{trouble, Standing};
use crate::plan::hints;
use crate::plan::patterns::PatternSpec;
use crate::plan::run::repeats_counts;
use crate::plan::schedule::pattern_seconds;
use crate::plan::segments::Segment;
use crate::results::{
    Access, Ended, ErrorRecord, Evidence, Intervals, JournalLine, Outcome, PatternRecord, Verification,
};
use crate::units::mb_per_second;

/// Part of the scheduled time that a pattern keeps however late the run is.
const LEAST_BUDGET: f64 = 0.25;
/// A count-driven first write may take this many times its scheduled time.
const GUARD: f64 = 2.0;

/// An open file of one backend.
pub struct Open {
    /// Which backend of the run.
    pub backend: usize,
    /// The file.
    pub handle: OpenHandle,
    /// Which file of the run.
    pub file: usize,
    /// Counts of types 3 and 4, in a first write.
    pub segment: Option<Segment>,
    /// Where the next pattern begins in each rank's stream, in a first write.
    pub next_stream_bytes: u64,
    /// Slowest rank's time to open.
    pub open_seconds: f64,
    /// Hints asked at open.
    pub hints_requested: Vec<(String, String)>,
    /// Hints in force after it.
    pub hints_granted: Vec<(String, String)>,
}

/// Everything about a pattern that is known before the clock.
struct Prelude {
    written: Written,
    max_calls: u64,
    calls_end: CallsEnd,
    scheduled_seconds: f64,
    budget_seconds: f64,
    hints: Vec<(String, String)>,
}

/// Runs pattern number `index` of the type. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_pattern(
    run: &mut Run<'_>,
    place: Place<'_>,
    open: &mut Open,
    index: usize,
    spec: &PatternSpec,
) -> Result<(), MpiError> {
    let prelude = prelude(run, place, open, index, spec);
    tell_progress(run, place, open, spec);
    let outcome = prepare_and_run(run, place, open, &prelude)?;
    note_written(run, place.access, open, &prelude, outcome.calls());
    let verification = match &outcome {
        Ran::Measured(pattern, m) if place.access == Access::Read => {
            verify(run, place, open, index, pattern, m.0.calls)?
        }
        _ => Verification::default(),
    };
    let during = describe(run, place, open, &prelude);
    let granted = if prelude.hints.is_empty() { Vec::new() } else { granted(run, open.handle.as_ref(), &during) };
    let record = PatternRecord { hints_granted: granted, ..record(run, place, open, prelude, outcome, verification) };
    let backend = &mut run.backends[open.backend];
    backend.debt_seconds = (backend.debt_seconds + record.seconds() - record.scheduled_seconds).max(0.0);
    run.done_seconds += record.scheduled_seconds;
    run.last_mb_per_second = mb_per_second(record.moved_bytes, record.seconds());
    let ended = record.ended.clone();
    run.observer.record(JournalLine::Pattern(Box::new(record)));
    if ended == Ended::Interrupted {
        run.stop = Some(Outcome::Interrupted);
    }
    Ok(())
}

fn prelude(run: &Run<'_>, place: Place<'_>, open: &Open, index: usize, spec: &PatternSpec) -> Prelude {
    let Place { access, part, pattern_type, .. } = place;
    let config = run.config;
    let (written, max_calls, calls_end) = if access == Access::Write {
        let spec = open.segment.as_ref().map_or(*spec, |s| s.spec(spec));
        let space = part.max_calls[usize::from(spec.number)];
        let (calls, end) = match &open.segment {
            Some(s) => (s.calls[index], if s.by_space[index] { CallsEnd::Space } else { CallsEnd::Count }),
            None if spec.time_units == 0 => (1, CallsEnd::Count),
            None => (space.min(addressable_calls(&spec, open.next_stream_bytes, part.ranks)), CallsEnd::Space),
        };
        (Written { spec, stream_bytes: open.next_stream_bytes, calls: 0, rewritten_calls: 0 }, calls, end)
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
        budget_seconds: (scheduled_seconds - debt).max(LEAST_BUDGET * scheduled_seconds),
    }
}

/// Calls until the file offsets end, for a first write that no space limit bounds (the null backend).
fn addressable_calls(spec: &PatternSpec, stream_bytes: u64, ranks: u64) -> u64 {
    let room = (i64::MAX as u64 / ranks).saturating_sub(stream_bytes);
    room / spec.call_bytes.max(1)
}

fn limits(run: &Run<'_>, place: Place<'_>, open: &Open, p: &Prelude) -> Limits {
    let access = place.access;
    let timed = p.written.spec.time_units > 0;
    let as_2_1 = repeats_counts(run.config.release);
    let segmented_write = access == Access::Write && place.pattern_type >= 3;
    let time_seconds = match (timed, segmented_write) {
        (false, _) => None,
        (true, true) => (!as_2_1).then_some(GUARD * p.scheduled_seconds),
        (true, false) if access == Access::Write => Some(p.budget_seconds),
        (true, false) => (!as_2_1).then_some(p.budget_seconds),
    };
    Limits {
        max_calls: p.max_calls,
        calls_end: p.calls_end,
        time_seconds,
        time_is_guard: segmented_write,
        sync: (access != Access::Read && !as_2_1).then_some(run.backends[open.backend].sync),
        call_bytes_all_ranks: p.written.spec.call_bytes * place.part.ranks,
        termination: run.config.termination,
    }
}

/// What became of a pattern.
enum Ran {
    Measured(Pattern, Box<(Measured, Evidence)>),
    NotRun(String),
    /// Nothing to do: a fill-up of zero bytes.
    Empty,
}

impl Ran {
    fn calls(&self) -> u64 {
        match self {
            Self::Measured(_, m) => m.0.calls,
            _ => 0,
        }
    }
}

fn prepare_and_run(run: &mut Run<'_>, place: Place<'_>, open: &mut Open, p: &Prelude) -> Result<Ran, MpiError> {
    let Place { access, comm, .. } = place;
    if p.max_calls == 0 {
        let fill_up = p.written.spec.call_bytes == 0;
        return Ok(if fill_up { Ran::Empty } else { Ran::NotRun("its first write was not run".into()) });
    }
    let pattern = match run.files[open.file].pattern(&p.written, comm.rank(), p.max_calls) {
        Ok(pattern) => pattern,
        Err(e) => return Ok(overflow(run, place, open, p, &e.to_string())),
    };
    if let Some((_, reason)) = first_message(comm, open.handle.unsupported(&pattern))? {
        return Ok(Ran::NotRun(reason));
    }
    match access {
        Access::Write => run.hold(Generation::First),
        Access::Rewrite => run.hold(Generation::Second),
        Access::Read => {
            run.data.poison(&mut run.ring, &pattern, p.max_calls);
            run.spoil();
        }
    }
    let direction = if access == Access::Read { Direction::Read } else { Direction::Write };
    let limits = limits(run, place, open, p);
    let task = Task { pattern: &pattern, direction, limits: &limits, hints: &p.hints };
    let path = run.run_dir.path().join(run.files[open.file].name(comm.rank()));
    let target = Target { path: &path, pattern: &pattern, calls: p.max_calls };
    let mut watch = watch(run, place, open, &target)?;
    if let Some(watch) = &mut watch {
        watch.resume(place.site);
    }
    let m = clocked::run(open.handle.as_mut(), comm, &mut run.ring, task, &mut run.notes, run.interrupt)?;
    if let Some(watch) = &mut watch {
        watch.pause(place.site);
    }
    let evidence = watch.map_or_else(|| Ok(Evidence::default()), |w| w.end(place.site, comm, m.calls))?;
    if direction == Direction::Write && m.ended != Ended::Error {
        run.backends[open.backend].sync.learn(m.moved_bytes, m.intervals.sync_seconds);
    }
    let during = describe(run, place, open, p);
    if let Some(record) = trouble::agree(comm, m.error.as_ref(), &during)? {
        run.fail(record);
    }
    Ok(Ran::Measured(pattern, Box::new((m, evidence))))
}

/// Drops cached pages, where that is the policy, and begins to watch; None for a backend that moves nothing.
fn watch(run: &mut Run<'_>, place: Place<'_>, open: &Open, target: &Target<'_>) -> Result<Option<Watch>, MpiError> {
    let backend = &run.backends[open.backend];
    if !backend.moves_data {
        return Ok(None);
    }
    if place.access != Access::Write && run.config.cache == CachePolicy::Drop {
        if let Some(warning) = drop_pages(place.site, place.comm, target, &backend.name)? {
            run.observer.record(JournalLine::Warning(warning));
        }
    }
    Ok(Some(Watch::begin(place.site, place.comm, target)))
}

fn overflow(run: &mut Run<'_>, place: Place<'_>, open: &Open, p: &Prelude, message: &str) -> Ran {
    let during = describe(run, place, open, p);
    run.fail(ErrorRecord {
        during,
        rank: 0,
        ranks_affected: place.part.ranks,
        message: message.to_owned(),
        next_step: "use fewer ranks or a smaller --space; `beff-raw plan` shows the largest offset".into(),
        no_space: false,
    });
    Ran::NotRun(message.to_owned())
}

fn describe(run: &Run<'_>, place: Place<'_>, open: &Open, p: &Prelude) -> String {
    let (spec, access) = (&p.written.spec, place.access.name());
    format!(
        "{}, {access}, {} ranks, type {}, pattern {} (chunk {} bytes)",
        run.backends[open.backend].name, place.part.ranks, spec.pattern_type, spec.number, spec.chunk_bytes
    )
}

/// Keeps what is in the file now.
fn note_written(run: &mut Run<'_>, access: Access, open: &mut Open, p: &Prelude, calls: u64) {
    let file = &mut run.files[open.file];
    let spec = p.written.spec;
    match access {
        Access::Write => {
            // A segment keeps its reserved place, also where a pattern was cut.
            let placed = if open.segment.is_some() { p.max_calls } else { calls };
            open.next_stream_bytes += placed * spec.call_bytes;
            file.written.push(Written { calls, ..p.written.clone() });
        }
        Access::Rewrite => {
            if let Some(w) = file.written.iter_mut().find(|w| w.spec.number == spec.number) {
                w.rewritten_calls = calls;
            }
        }
        Access::Read => {}
    }
}

fn verify(
    run: &mut Run<'_>,
    place: Place<'_>,
    open: &Open,
    index: usize,
    pattern: &Pattern,
    calls: u64,
) -> Result<Verification, MpiError> {
    // After an error or a signal the ranks may have read less than their calls say.
    if !run.backends[open.backend].moves_data || run.stop == Some(Outcome::Failed) {
        return Ok(Verification::default());
    }
    let file = &run.files[open.file];
    let findings = run.data.check_ring(&run.ring, file, &file.written[index], pattern, place.comm.rank(), calls);
    report_findings(run, place.comm, &findings)
}

fn record(
    run: &Run<'_>,
    place: Place<'_>,
    open: &Open,
    p: Prelude,
    ran: Ran,
    verification: Verification,
) -> PatternRecord {
    let spec = p.written.spec;
    let mut record = PatternRecord {
        backend: run.backends[open.backend].name.clone(),
        ranks: place.part.ranks,
        access: place.access,
        pattern_type: spec.pattern_type,
        pattern: spec.number,
        chunk_bytes: spec.chunk_bytes,
        call_bytes: spec.call_bytes,
        time_units: spec.time_units,
        calls: 0,
        moved_bytes: 0,
        scheduled_seconds: p.scheduled_seconds,
        budget_seconds: p.budget_seconds,
        intervals: Intervals::default(),
        decisions: 0,
        decision_cost_seconds: 0.0,
        batches: Vec::new(),
        rounds: Vec::new(),
        ended: Ended::Count,
        verification,
        strategy: String::new(),
        direct: None,
        hints_granted: Vec::new(),
        hints_requested: p.hints,
        storage_read_bytes: None,
        storage_written_bytes: None,
        evidence: Evidence::default(),
        latency: None,
        allocations_in_clock: 0,
    };
    match ran {
        Ran::Measured(_, m) => {
            let (m, evidence) = *m;
            record.evidence = evidence;
            record.calls = m.calls;
            record.moved_bytes = m.moved_bytes;
            record.intervals = m.intervals;
            record.decisions = m.decisions;
            record.decision_cost_seconds = m.decision_cost_seconds;
            record.batches = m.batches;
            record.ended = m.ended;
            record.storage_read_bytes = m.storage_bytes.map(|s| s.0);
            record.storage_written_bytes = m.storage_bytes.map(|s| s.1);
            record.allocations_in_clock = m.allocations_in_clock;
            let in_force = m.in_force.unwrap_or_default();
            record.strategy = in_force.strategy;
            record.direct = in_force.direct;
        }
        Ran::NotRun(reason) => record.ended = Ended::NotRun(reason),
        Ran::Empty => {}
    }
    record
}

fn tell_progress(run: &mut Run<'_>, place: Place<'_>, open: &Open, spec: &PatternSpec) {
    let standing = Standing {
        access: place.access,
        ranks: place.part.ranks,
        backend: run.backends[open.backend].name.clone(),
        pattern_type: spec.pattern_type,
        pattern: spec.number,
        done_seconds: run.done_seconds,
        all_seconds: run.all_seconds,
        last_mb_per_second: run.last_mb_per_second,
    };
    run.observer.progress(&standing);
}
