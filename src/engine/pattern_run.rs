//! One pattern through one backend: limits before the clock, verification and records after it.

use std::ops::Range;

use beff_backends::{Direction, Pattern};
use beff_ffi::MpiError;
use hdrhistogram::Histogram;

use crate::config::CachePolicy;
use crate::engine::agree::first_message;
use crate::engine::batching::{CallsEnd, Limits};
use crate::engine::clocked::{self, Measured, Task};
use crate::engine::files::Written;
use crate::engine::run::Run;
use crate::engine::stamp::Generation;
use crate::engine::type_run::{granted, report_findings, OpenHandle, Place};
use crate::engine::{latency, trouble, Standing};
use crate::plan::hints;
use crate::plan::patterns::PatternSpec;
use crate::plan::run::repeats_counts;
use crate::plan::schedule::pattern_seconds;
use crate::plan::segments::Segment;
use crate::results::{
    Access, Ended, ErrorRecord, Evidence, Intervals, JournalLine, Outcome, PatternRecord, RoundRecord, Verification,
};
use crate::units::mb_per_second;

/// Part of the scheduled time that a pattern keeps however late the run is.
const LEAST_BUDGET: f64 = 0.25;
/// A count-driven first write may take this many times its scheduled time.
const GUARD: f64 = 2.0;

/// A round shorter than this would measure barriers and syncs.
const SHORTEST_ROUND_SECONDS: f64 = 0.02;

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

/// Runs pattern number `index` of the type through all open files, round by round in turn. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_pattern(
    run: &mut Run<'_>,
    place: Place<'_>,
    open_files: &mut [Open],
    index: usize,
    spec: &PatternSpec,
) -> Result<(), MpiError> {
    let mut turns = Vec::with_capacity(open_files.len());
    for open in open_files.iter() {
        if run.stop.is_none() {
            turns.push(Turn::new(run, place, open, index, spec)?);
        }
    }
    let rounds = rounds(run, &turns);
    for round in 0..rounds {
        // There and back, so that what drifts with time hits all alike.
        let forth = 0..turns.len();
        let order: Vec<usize> = if round % 2 == 0 { forth.collect() } else { forth.rev().collect() };
        for i in order {
            if run.stop.is_none() && !turns[i].is_over() {
                tell_progress(run, place, &open_files[i], spec);
                turns[i].round(run, place, &mut open_files[i], round, rounds)?;
            }
        }
    }
    for (open, turn) in open_files.iter_mut().zip(turns) {
        conclude(run, place, open, turn)?;
    }
    Ok(())
}

/// Rounds of this pattern: as many as asked for, as long as each is long enough to be a measurement.
fn rounds(run: &Run<'_>, turns: &[Turn]) -> u32 {
    let Some(turn) = turns.iter().find(|turn| !turn.is_over()) else { return 1 };
    if turn.prelude.written.spec.time_units == 0 {
        return 1;
    }
    let by_time = (turn.prelude.scheduled_seconds / SHORTEST_ROUND_SECONDS) as u32;
    run.config.rounds.min(by_time).max(1)
}

/// The record of a pattern that is over, and what follows from it.
fn conclude(run: &mut Run<'_>, place: Place<'_>, open: &mut Open, turn: Turn) -> Result<(), MpiError> {
    let Turn { prelude, ran, rounds, verification, latency, .. } = turn;
    note_written(run, place.access, open, &prelude, ran.calls());
    let during = describe(run, place, open, &prelude);
    let hints_granted = if prelude.hints.is_empty() { Vec::new() } else { granted(run, open.handle.as_ref(), &during) };
    let of = ran.timed();
    let latency = latency.map_or(Ok(None), |histogram| latency::merge(place.comm, &histogram, of))?;
    let record =
        PatternRecord { hints_granted, rounds, latency, ..record(run, place, open, prelude, ran, verification) };
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

/// A pattern on its way through one backend.
struct Turn {
    prelude: Prelude,
    /// This rank's part; None if there is nothing to run.
    pattern: Option<Pattern>,
    index: usize,
    ran: Ran,
    rounds: Vec<RoundRecord>,
    verification: Verification,
    latency: Option<Histogram<u64>>,
}

impl Turn {
    fn new(
        run: &mut Run<'_>,
        place: Place<'_>,
        open: &Open,
        index: usize,
        spec: &PatternSpec,
    ) -> Result<Self, MpiError> {
        let prelude = prelude(run, place, open, index, spec);
        let (pattern, ran) = match can_run(run, place, open, &prelude)? {
            Ok(pattern) => (Some(pattern), Ran::Empty),
            Err(ran) => (None, ran),
        };
        let verification = Verification::default();
        Ok(Self { prelude, pattern, index, ran, rounds: Vec::new(), verification, latency: None })
    }

    /// True if no further round may follow: nothing to run, all calls made, or an end before its time.
    fn is_over(&self) -> bool {
        match (&self.pattern, &self.ran) {
            (None, _) => true,
            (Some(_), Ran::Measured(m)) => {
                m.progress.calls >= self.prelude.max_calls || matches!(m.ended, Ended::Error | Ended::Interrupted)
            }
            (Some(_), _) => false,
        }
    }

    fn round(
        &mut self,
        run: &mut Run<'_>,
        place: Place<'_>,
        open: &mut Open,
        round: u32,
        rounds: u32,
    ) -> Result<(), MpiError> {
        let Some(pattern) = self.pattern else { return Ok(()) };
        let resume = match &self.ran {
            Ran::Measured(m) => Some(m.progress),
            _ => None,
        };
        let first_call = resume.map_or(0, |progress| progress.calls);
        let limits = limits(run, place, open, &self.prelude).until(round, rounds);
        if first_call >= limits.max_calls {
            return Ok(());
        }
        let direction = fill_ring(run, place.access, &pattern, first_call..limits.max_calls);
        let task = Task { pattern: &pattern, direction, limits: &limits, hints: &self.prelude.hints, resume };
        let m = clocked::run(open.handle.as_mut(), place.comm, &mut run.ring, task, &mut run.notes, run.interrupt)?;
        if direction == Direction::Write && m.ended != Ended::Error && m.calls > 0 {
            run.backends[open.backend].sync.learn(m.moved_bytes, m.intervals.sync_seconds);
        }
        let during = describe(run, place, open, &self.prelude);
        if let Some(record) = trouble::agree(place.comm, m.error.as_ref(), &during)? {
            run.fail(record);
        }
        let calls = first_call..m.progress.calls;
        self.take(run, m);
        if direction == Direction::Read && !calls.is_empty() {
            self.verify(run, place, open, &pattern, calls)?;
        }
        Ok(())
    }

    /// Adds what a round has measured.
    fn take(&mut self, run: &Run<'_>, m: Measured) {
        if m.calls > 0 {
            let seconds = m.intervals.total_seconds();
            self.rounds.push(RoundRecord { calls: m.calls, moved_bytes: m.moved_bytes, seconds });
        }
        if let Some(histogram) = run.notes.latency().histogram() {
            match &mut self.latency {
                // The bounds are the same for all: adding cannot fail.
                Some(sum) => sum.add(histogram).unwrap_or_default(),
                None => self.latency = Some(histogram.clone()),
            }
        }
        match &mut self.ran {
            Ran::Measured(sum) => sum.add(m),
            ran => *ran = Ran::Measured(Box::new(m)),
        }
    }

    fn verify(
        &mut self,
        run: &mut Run<'_>,
        place: Place<'_>,
        open: &Open,
        pattern: &Pattern,
        calls: Range<u64>,
    ) -> Result<(), MpiError> {
        // After an error or a signal the ranks may have read less than their calls say.
        if !run.backends[open.backend].moves_data || run.stop == Some(Outcome::Failed) {
            return Ok(());
        }
        let (file, rank) = (&run.files[open.file], part_rank(run, place));
        let findings = run.data.check_ring(&run.ring, file, &file.written[self.index], pattern, rank, calls);
        let found = report_findings(run, place.comm, &findings)?;
        self.verification.words_checked += found.words_checked;
        self.verification.words_wrong += found.words_wrong;
        Ok(())
    }
}

/// Lays out what is written, or poisons what is read into.
fn fill_ring(run: &mut Run<'_>, access: Access, pattern: &Pattern, calls: Range<u64>) -> Direction {
    match access {
        Access::Write => run.hold(Generation::First),
        Access::Rewrite => run.hold(Generation::Second),
        Access::Read => {
            run.data.poison(&mut run.ring, pattern, calls);
            run.spoil();
            return Direction::Read;
        }
    }
    Direction::Write
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
    Measured(Box<Measured>),
    NotRun(String),
    /// Nothing to do: a fill-up of zero bytes, or no round yet.
    Empty,
}

impl Ran {
    fn calls(&self) -> u64 {
        match self {
            Self::Measured(m) => m.calls,
            _ => 0,
        }
    }

    /// What the backend times with `--latency`.
    fn timed(&self) -> &'static str {
        match self {
            Self::Measured(m) => m.in_force.as_ref().map_or("call", |in_force| in_force.timed.name()),
            _ => "call",
        }
    }
}

/// This rank's part of the pattern, or why it is not run. Collective.
fn can_run(run: &mut Run<'_>, place: Place<'_>, open: &Open, p: &Prelude) -> Result<Result<Pattern, Ran>, MpiError> {
    if p.max_calls == 0 {
        let fill_up = p.written.spec.call_bytes == 0;
        return Ok(Err(if fill_up { Ran::Empty } else { Ran::NotRun("its first write was not run".into()) }));
    }
    let rank = part_rank(run, place);
    let pattern = match run.files[open.file].pattern(&p.written, rank, p.max_calls) {
        Ok(pattern) => pattern,
        Err(e) => return Ok(Err(overflow(run, place, open, p, &e.to_string()))),
    };
    Ok(match first_message(place.comm, open.handle.unsupported(&pattern))? {
        Some((_, reason)) => Err(Ran::NotRun(reason)),
        None => Ok(pattern),
    })
}

/// Whose part of the files this rank moves: its own, or with `--cache rank-shift` for reads that of a rank on another
/// host. The order of a shared pointer is that of the ranks and cannot be shifted.
#[must_use]
pub fn part_rank(run: &Run<'_>, place: Place<'_>) -> u64 {
    let own = place.comm.rank();
    let ordered = place.pattern_type == 1 && run.config.shared_pointer;
    if run.config.cache != CachePolicy::RankShift || place.access != Access::Read || ordered {
        return own;
    }
    // On one host there is no better neighbour than the next.
    let shift = match run.plan.rank_shift % place.part.ranks {
        0 => 1,
        shift => shift,
    };
    (own + shift) % place.part.ranks
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
        Ran::Measured(m) => {
            let m = *m;
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
