//! A pattern on its way through one backend, round by round: what surrounds the clock each time.

use std::ops::Range;

use beff_backends::{Direction, Pattern, Ring};
use beff_ffi::MpiError;
use hdrhistogram::Histogram;

use crate::b_eff_io::config::Verify;
use crate::b_eff_io::plan::memory;
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::records::{Ended, JournalLine, Verification};
use crate::b_eff_io::run::clocked;
use crate::b_eff_io::run::clocked::{Inspector, Task};
#[cfg(feature = "test-hooks")]
use crate::b_eff_io::run::inject;
use crate::b_eff_io::run::measured::Measured;
use crate::b_eff_io::run::place::{Open, Place};
use crate::b_eff_io::run::prelude::{limits, prelude, Prelude};
use crate::b_eff_io::run::recheck;
use crate::b_eff_io::run::state::Run;
use crate::b_eff_io::run::verify::{Data, Findings};
use crate::frame::config::CachePolicy;
use crate::frame::records::{Access, ErrorRecord, Outcome, RoundRecord};
use crate::frame::run::agree::{first_message, of_root};
use crate::frame::run::evidence::{drop_pages, Target, Watch};
use crate::frame::run::machine_share::CpuWatch;
use crate::frame::system::memory::ProcessIo;

/// A pattern on its way through one backend.
pub(super) struct Turn {
    pub(super) prelude: Prelude,
    /// This rank's part; None if there is nothing to run.
    pattern: Option<Pattern>,
    pub(super) index: usize,
    pub(super) ran: Ran,
    pub(super) rounds: Vec<RoundRecord>,
    pub(super) verification: Verification,
    pub(super) latency: Option<Histogram<u64>>,
    pub(super) watch: Option<Watch>,
    pub(super) cpu_watch: CpuWatch,
    /// When it began, since the run did.
    pub(super) at_seconds: f64,
}

impl Turn {
    pub(super) fn new(
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
        let cpu_watch = CpuWatch::default();
        let (rounds, latency, watch) = (Vec::new(), None, None);
        let at_seconds = run.begin.elapsed().as_secs_f64();
        Ok(Self { prelude, pattern, index, ran, rounds, verification, latency, watch, cpu_watch, at_seconds })
    }

    /// True if no further round may follow: nothing to run, all calls made, or an end before its time.
    pub(super) fn is_over(&self) -> bool {
        match (&self.pattern, &self.ran) {
            (None, _) => true,
            (Some(_), Ran::Measured(m)) => {
                m.progress.calls >= self.prelude.max_calls || matches!(m.ended, Ended::Error | Ended::Interrupted)
            }
            (Some(_), _) => false,
        }
    }

    pub(super) fn round(
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
        let mut limits = limits(run, place, open, &self.prelude).until(round, rounds);
        if let Some(repeat) = place.repeat {
            // Other backends had their turns since the pattern began.
            let left = of_root(place.comm, repeat.seconds - repeat.begin.elapsed().as_secs_f64())?;
            if left <= 0.0 {
                return Ok(());
            }
            let end_seconds = resume.map_or(0.0, |progress| progress.elapsed_seconds) + left;
            limits.time_seconds = limits.time_seconds.map(|seconds| seconds.min(end_seconds));
        }
        if first_call >= limits.max_calls {
            return Ok(());
        }
        if resume.is_none() {
            let before = recheck::before_rewrite(run, place, open, self.index)?;
            self.verification.add(before);
            if run.stop.is_some() {
                return Ok(());
            }
        }
        let direction = fill_ring(run, place, open, &pattern, first_call..limits.max_calls);
        if resume.is_none() {
            let path = run.run_dir.file(&run.files[open.file].name(place.part_rank(run)));
            let target = Target { path: &path, pattern: &pattern, calls: self.prelude.max_calls };
            self.watch = watch(run, place, open, &target)?;
        }
        let task = Task { pattern: &pattern, direction, limits: &limits, hints: &self.prelude.hints, resume };
        if let Some(watch) = &mut self.watch {
            watch.resume(place.site);
        }
        self.cpu_watch.resume(place.cpus);
        let (m, inspected) = clocked(run, place, open, self.index, task)?;
        self.cpu_watch.pause(place.cpus);
        if let Some(watch) = &mut self.watch {
            watch.pause(place.site);
        }
        if direction == Direction::Write && m.ended != Ended::Error && m.calls > 0 {
            run.backends[open.backend].sync.learn(m.moved_bytes, m.intervals.sync_seconds);
        }
        let during = describe(run, place, open, &self.prelude);
        run.failed(place.comm, m.error.as_ref(), &during)?;
        let calls = first_call..m.progress.calls;
        self.take(run, m, round + 1);
        if direction == Direction::Read && !calls.is_empty() {
            self.verify(run, place, open, &pattern, calls, inspected)?;
        }
        Ok(())
    }

    /// Adds what round `number` has measured, from 1.
    fn take(&mut self, run: &Run<'_>, m: Measured, number: u32) {
        if m.calls > 0 {
            let seconds = m.intervals.total_seconds();
            self.rounds.push(RoundRecord { number, calls: m.calls, moved_bytes: m.moved_bytes, seconds });
        }
        if let Some(histogram) = run.notes.latency.histogram() {
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
        inspected: Option<Findings>,
    ) -> Result<(), MpiError> {
        // After an error or a signal the ranks may have read less than their calls say.
        if !run.backends[open.backend].moves_data || run.stop == Some(Outcome::Failed) {
            return Ok(());
        }
        let (file, rank) = (&run.files[open.file], place.part_rank(run));
        let written = &file.written[self.index];
        let findings = inspected.unwrap_or_else(|| run.data.check_ring(&run.ring, file, written, pattern, rank, calls));
        self.verification.add(run.report_findings(place.comm, &findings)?.verification);
        Ok(())
    }
}

/// Runs the loop. Where everything is compared, what reads leave in memory is looked at before later ones take its place.
fn clocked(
    run: &mut Run<'_>,
    place: Place<'_>,
    open: &mut Open,
    index: usize,
    task: Task<'_>,
) -> Result<(Measured, Option<Findings>), MpiError> {
    let inspects =
        task.direction == Direction::Read && run.config.verify == Verify::Full && run.backends[open.backend].moves_data;
    let (data, file, rank, pattern) = (run.data, &run.files[open.file], place.part_rank(run), task.pattern);
    let mut findings = Findings::default();
    #[cfg(feature = "test-hooks")]
    let injury = inject::on_the_way(run, place, open, index);
    let most_calls = Data::calls_kept(&run.ring, pattern);
    let mut look = |ring: &mut Ring, calls: Range<u64>| {
        let next = calls.end..calls.end.saturating_add(most_calls);
        #[cfg(feature = "test-hooks")]
        if let Some(injury) = &injury {
            injury.apply(ring, pattern, rank, &calls, &data);
        }
        findings.add(data.check_ring(ring, file, &file.written[index], pattern, rank, calls));
        data.poison(ring, pattern, next);
    };
    let inspector = inspects.then_some(Inspector { most_calls, look: &mut look });
    #[cfg(feature = "test-hooks")]
    let first_call = task.resume.map_or(0, |progress| progress.calls);
    let watches = (run.interrupt, inspector);
    let m = clocked::run(open.handle.as_mut(), place.comm, &mut run.ring, task, &mut run.notes, watches)?;
    #[cfg(feature = "test-hooks")]
    if let Some(injury) = injury.filter(|_| task.direction == Direction::Read) {
        let calls = first_call..m.progress.calls;
        if injury.is_in(&calls) {
            if !inspects {
                injury.apply(&mut run.ring, pattern, rank, &calls, &data);
            }
            run.observer.record(JournalLine::Damage(injury.record));
        }
    }
    Ok((m, inspects.then_some(findings)))
}

/// Lays out what is written, or poisons what is read into. Memory that nobody touches is left alone: with more ranks than cores
/// filling it took longer than the patterns.
fn fill_ring(run: &mut Run<'_>, place: Place<'_>, open: &Open, pattern: &Pattern, calls: Range<u64>) -> Direction {
    let period_bytes = run.data.of(pattern.call_bytes()).period_bytes;
    let moves_data = run.backends[open.backend].moves_data;
    match place.access {
        Access::Write | Access::Rewrite if moves_data => run.hold(place.writes(), period_bytes),
        Access::Write | Access::Rewrite => run.ring.set_period_bytes(period_bytes),
        Access::Read => {
            let under_way = memory::reads_under_way(run.config, &run.backends[open.backend].name);
            let landing_bytes =
                if run.data.reused { memory::landing_bytes(pattern.call_bytes(), under_way) } else { period_bytes };
            run.ring.set_period_bytes(landing_bytes);
            if moves_data {
                run.data.poison(&mut run.ring, pattern, calls);
                run.spoil();
            }
            return Direction::Read;
        }
    }
    Direction::Write
}

/// What became of a pattern.
pub(super) enum Ran {
    Measured(Box<Measured>),
    NotRun(String),
    /// Nothing to do: a fill-up of zero bytes, or no round yet.
    Empty,
}

impl Ran {
    pub(super) fn calls(&self) -> u64 {
        match self {
            Self::Measured(m) => m.calls,
            _ => 0,
        }
    }

    /// Time of the slowest rank.
    pub(super) fn seconds(&self) -> f64 {
        match self {
            Self::Measured(m) => m.intervals.total_seconds(),
            _ => 0.0,
        }
    }

    /// Bytes of all ranks, and what the kernel counted of them.
    pub(super) fn moved(&self) -> (u64, Option<ProcessIo>) {
        match self {
            Self::Measured(m) => (m.moved_bytes, m.io),
            _ => (0, None),
        }
    }

    /// What the backend times with `--latency`.
    pub(super) fn timed(&self) -> &'static str {
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
    let rank = place.part_rank(run);
    let pattern = match run.files[open.file].pattern(&p.written, rank, p.max_calls) {
        Ok(pattern) => pattern,
        Err(e) => return Ok(Err(overflow(run, place, open, p, &e.to_string()))),
    };
    Ok(match first_message(place.comm, open.handle.support(&pattern).reason())? {
        Some((_, reason)) => Err(Ran::NotRun(reason)),
        None => Ok(pattern),
    })
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
    let next_step = "use fewer ranks or a smaller --space; `beff-raw plan` shows the largest offset";
    let error = ErrorRecord::of_rank(0, &during, message.to_owned(), next_step);
    run.fail(ErrorRecord { ranks_affected: place.part.ranks, ..error });
    Ran::NotRun(message.to_owned())
}

pub(super) fn describe(run: &Run<'_>, place: Place<'_>, open: &Open, p: &Prelude) -> String {
    let (spec, access) = (&p.written.spec, place.access.name());
    format!(
        "{}, {access}, {} ranks, type {}, pattern {} (chunk {} bytes)",
        run.backends[open.backend].name, place.part.ranks, spec.pattern_type, spec.number, spec.chunk_bytes
    )
}
