//! One rank's way through its calls: windows of calls, what is between them, and the clock.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use beff_backends::{FilePath, Outcome, Program};
use beff_ffi::{alloc, Comm, Gathering};

use super::check::Checker;
use super::compare::Compared;
use super::detail::Details;
use super::files::{self, Grown};
use super::order::Order;
use super::pace::{now_ns, Deadlines};
use super::source::Sources;
use super::standing::{Notes, Place};
use super::window::{Meeting, Read, Reused, Stop, Window, Windows};
use super::Stuck;
use crate::frame::run::interrupt::Interrupt;
use crate::replay::plan::ledger::{Ledger, Took};
use crate::replay::plan::meeting::Counter;
use crate::replay::run::source::Words;
use beff_stamp::POISON_BYTE;

/// Calls made in one go at most: a signal is seen between two.
const GO: usize = 16;
/// How long a rank that stopped waits until it helps others out of a collective call.
const HELP: Duration = Duration::from_millis(200);
/// How long it waits for them at all.
pub(super) const GRACE: Duration = Duration::from_secs(8);

/// All that one pass of one rank works with.
pub(super) struct Player<'a> {
    pub comm: &'a Comm,
    pub rank: u32,
    pub program: Box<dyn Program>,
    pub windows: Windows<'a>,
    pub order: Order<'a>,
    pub notes: Notes,
    /// Where the files are, and what fills them.
    pub paths: Vec<FilePath>,
    pub sources: Sources,
    /// What this rank writes.
    pub words: Words,
    pub deadlines: Deadlines,
    pub checker: Checker<'a>,
    pub interrupt: &'a Interrupt,
    pub details: Option<&'a mut Details>,
    pub name: (&'a str, u64),
    pub ledger: Ledger,
    pub compared: Compared,
    /// Collective calls that were made.
    pub met: Counter,
    /// World ranks of the communicators, and how often those of each have met.
    pub comms: &'a [Vec<u32>],
    pub meetings: HashMap<u32, u64>,
    pub played: Played,
}

/// What it took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Played {
    pub span: Duration,
    pub verify: Duration,
    pub prepare: Duration,
    pub allocations: u64,
    pub interrupted: bool,
}

/// A window under way.
struct Progress {
    outcomes: Vec<Outcome>,
    stops: VecDeque<(usize, Stop)>,
    /// Calls that wait for others.
    alone: Vec<bool>,
    /// Calls made.
    done: usize,
    /// Reads that are complete and not compared, with the step that completed them.
    landed: Vec<(usize, Read)>,
}

impl Player<'_> {
    /// Makes all calls, from the first window, which is ready, to the last.
    ///
    /// # Errors
    /// What leaves others waiting.
    pub fn play(&mut self, first: Window) -> Result<(), Stuck> {
        let mut ready = first;
        loop {
            let mut progress = self.begin(std::mem::take(&mut ready));
            let is_empty = progress.outcomes.is_empty();
            let begin = Instant::now();
            let verify = self.played.verify;
            let went = self.window(&mut progress)?;
            self.played.span += begin.elapsed().saturating_sub(self.played.verify - verify);
            let ended = now_ns();
            if !went {
                self.played.interrupted = true;
                self.order.stop(self.comm)?;
                self.gather(&mut progress, true)?;
                self.account(&mut progress)?;
                return Ok(());
            }
            self.account(&mut progress)?;
            let begin = Instant::now();
            let mut window = self.windows.next().map_err(Stuck::Calls)?;
            if window.steps.is_empty() && (is_empty || window.stops.is_empty()) {
                self.played.prepare += begin.elapsed();
                return self.gather(&mut progress, false);
            }
            let steps = std::mem::take(&mut window.steps);
            self.program.make_ready(steps).map_err(|e| Stuck::Calls(format!("rank {}: {e}", self.rank)))?;
            ready = window;
            self.played.prepare += begin.elapsed();
            self.deadlines.shift(now_ns() - ended);
        }
    }

    /// Room for what comes of the steps.
    fn begin(&self, Window { stops, alone, .. }: Window) -> Progress {
        let room = |step: &beff_backends::Step| Outcome {
            completions: Vec::with_capacity(step.call.requests.len()),
            ..Outcome::default()
        };
        let outcomes = self.program.steps().iter().map(room).collect();
        Progress { outcomes, stops, alone, done: 0, landed: Vec::new() }
    }

    /// Makes the calls of a window. False: a signal came.
    fn window(&mut self, progress: &mut Progress) -> Result<bool, Stuck> {
        while progress.done < progress.outcomes.len() {
            let at = progress.done;
            if self.interrupt.raised() || !self.before(progress, at)? {
                return Ok(false);
            }
            let begin_ns = self.program.steps()[at].call.begin_ns;
            if !self.deadlines.sleep(begin_ns, self.interrupt) {
                return Ok(false);
            }
            let most = if self.deadlines.paced() { 1 } else { GO };
            let end = end_of_go(&mut progress.stops, at, most.min(progress.outcomes.len() - at));
            let end = end_by_others(&progress.alone, at, end);
            self.go(progress, end)?;
        }
        // What is told without a call of its own.
        while let Some((at, _)) = progress.stops.front() {
            let at = *at;
            if !self.meet(progress, at)? {
                return Ok(false);
            }
            if let Some((_, stop)) = progress.stops.pop_front() {
                self.tell(&stop)?;
            }
        }
        Ok(true)
    }

    /// What comes before a step. False: a signal came.
    fn before(&mut self, progress: &mut Progress, at: usize) -> Result<bool, Stuck> {
        let Some((_, stop)) = progress.stops.front().filter(|(step, _)| *step == at) else { return Ok(true) };
        let waits = !stop.after.is_empty();
        self.memory(progress, at)?;
        // Ranks that have met are to call together; but a file that another one still has to delete cannot be made yet.
        if !waits && !self.files(progress, at)? {
            return Ok(false);
        }
        // What is waited for may lie behind the same meeting on its rank, where the collective call let go of that one early.
        Ok(self.meet(progress, at)? && self.wait(progress, at)? && self.files(progress, at)?)
    }

    /// Waits for calls of other ranks. False: a signal came.
    fn wait(&mut self, progress: &mut Progress, at: usize) -> Result<bool, Stuck> {
        let Some((_, stop)) = progress.stops.front_mut().filter(|(step, _)| *step == at) else { return Ok(true) };
        for after in std::mem::take(&mut stop.after) {
            let own = (u64::from(self.rank), self.program.steps()[at].call.begin_ns);
            if !self.order.wait(after, own)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Meets the other ranks of a collective call. False: a signal came.
    fn meet(&mut self, progress: &mut Progress, at: usize) -> Result<bool, Stuck> {
        let Some((_, stop)) = progress.stops.front_mut().filter(|(step, _)| *step == at) else { return Ok(true) };
        for Meeting { comm, begin_ns, met_ns } in std::mem::take(&mut stop.meets) {
            let Some(members) = self.comms.get(comm as usize) else { continue };
            let number = self.meetings.entry(comm).or_default();
            *number += 1;
            if !self.order.meet(members, (comm, *number), (u64::from(self.rank), begin_ns))? {
                return Ok(false);
            }
            self.deadlines.met(begin_ns, met_ns, now_ns());
        }
        Ok(true)
    }

    /// Removes files as the program did, makes one that is about to be opened as long as it was, and tells who waits for that. False: a
    /// signal came.
    ///
    /// # Errors
    /// What the file system says.
    fn files(&mut self, progress: &mut Progress, at: usize) -> Result<bool, Stuck> {
        let Some((_, stop)) = progress.stops.front_mut().filter(|(step, _)| *step == at) else { return Ok(true) };
        let (gone, grown) = (std::mem::take(&mut stop.gone), stop.grown.take());
        let (quiet, ready) = (std::mem::take(&mut stop.quiet), std::mem::take(&mut stop.ready));
        if !gone.is_empty() || self.is_short(grown) {
            let own = (u64::from(self.rank), self.program.steps()[at].call.begin_ns);
            for after in quiet {
                if !self.order.wait(after, own)? {
                    return Ok(false);
                }
            }
        }
        self.remove(&gone)?;
        // What was waited for may have made it as long.
        if let Some(grown) = grown.filter(|grown| self.is_short(Some(*grown))) {
            self.grow(&grown)?;
        }
        for (word, rank) in ready {
            self.order.tell(rank, word)?;
        }
        Ok(true)
    }

    fn is_short(&self, grown: Option<Grown>) -> bool {
        let path = |grown: &Grown| self.paths.get(grown.file as usize);
        grown.is_some_and(|grown| path(&grown).is_some_and(|path| grown.is_short(path)))
    }

    fn grow(&mut self, grown: &Grown) -> Result<(), Stuck> {
        let Some(path) = self.paths.get(grown.file as usize) else { return Ok(()) };
        let begin = Instant::now();
        files::grow(path, grown, &self.sources).map_err(|e| {
            let (path, size_bytes) = (path.display(), grown.size_bytes);
            Stuck::Calls(format!("rank {}: {path} cannot be made {size_bytes} bytes long, as it was: {e}", self.rank))
        })?;
        self.played.verify += begin.elapsed();
        Ok(())
    }

    fn remove(&mut self, gone: &[u32]) -> Result<(), Stuck> {
        if gone.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        for path in gone.iter().filter_map(|file| self.paths.get(*file as usize)) {
            match path.remove() {
                // A call failed that should have made it, or one of the program has removed it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => done.map_err(|e| {
                    let path = path.display();
                    Stuck::Calls(format!("rank {}: {path} cannot be removed, as it was: {e}", self.rank))
                })?,
            }
        }
        self.played.verify += begin.elapsed();
        Ok(())
    }

    /// Makes the memory of a step ready that was used before.
    ///
    /// # Errors
    /// Something is under way in it.
    fn memory(&mut self, progress: &mut Progress, at: usize) -> Result<(), Stuck> {
        let Some((_, stop)) = progress.stops.front_mut().filter(|(step, _)| *step == at) else { return Ok(()) };
        let (wrapped, reused) = (std::mem::take(&mut stop.wrapped), stop.reused.take());
        if wrapped {
            self.check(progress);
        }
        let Some(reused) = reused else { return Ok(()) };
        let begin = Instant::now();
        let refused = |e| Stuck::Calls(format!("rank {}: memory of a call is used again: {e}", self.rank));
        match reused {
            Reused::Source { memory, position } => {
                self.words.fill(position, self.program.source_mut(memory).map_err(refused)?);
            }
            Reused::Landing { memory } => self.program.landed(memory).map_err(refused)?.fill(POISON_BYTE),
        }
        self.played.verify += begin.elapsed();
        Ok(())
    }

    /// Makes the calls up to `end`, and does what comes behind the last of them.
    fn go(&mut self, progress: &mut Progress, end: usize) -> Result<(), Stuck> {
        let at = progress.done;
        let meets = progress.alone.get(at).is_some_and(|alone| *alone);
        let call = &self.program.steps()[at].call;
        self.notes.enter(Place::Calls {
            function: call.function,
            begin_ns: call.begin_ns,
            behind: end - at - 1,
            meets,
        });
        let allocations = alloc::allocations();
        self.program.run(at..end, &mut progress.outcomes[at..end]);
        self.played.allocations += alloc::allocations() - allocations;
        self.notes.leave();
        progress.done = end;
        let (step, outcome) = (&self.program.steps()[end - 1], &progress.outcomes[end - 1]);
        self.deadlines.ended(step.call.end_ns, outcome.end_ns);
        while progress.stops.front().is_some_and(|(step, _)| *step < end) {
            let Some((step, stop)) = progress.stops.pop_front() else { break };
            self.tell(&stop)?;
            progress.landed.extend(stop.landed.into_iter().map(|read| (step, read)));
        }
        Ok(())
    }

    fn tell(&mut self, stop: &Stop) -> Result<(), Stuck> {
        for (begin_ns, rank) in &stop.tells {
            self.order.tell(*rank, *begin_ns)?;
        }
        Ok(())
    }

    /// Compares all that has come.
    fn check(&mut self, progress: &mut Progress) {
        let begin = Instant::now();
        for (step, read) in progress.landed.drain(..) {
            let outcome = &progress.outcomes[step];
            let of_request = |request| outcome.completions.iter().find(|c| c.request == request);
            let moved = match read.request {
                Some(request) => of_request(request).and_then(|c| c.bytes),
                None => outcome.bytes,
            };
            self.checker.check(&mut *self.program, &read, moved.unwrap_or(0));
        }
        self.played.verify += begin.elapsed();
    }

    /// Takes what came of a window into the sums.
    fn account(&mut self, progress: &mut Progress) -> Result<(), Stuck> {
        self.check(progress);
        let begin = Instant::now();
        let steps = self.program.steps();
        let mut lines = Vec::new();
        for (step, outcome) in steps.iter().zip(&progress.outcomes).take(progress.done) {
            let ns = outcome.end_ns.saturating_sub(outcome.begin_ns);
            let took = Took { ns, bytes: outcome.bytes, completions: &outcome.completions };
            self.ledger.take(&step.call, Some(took));
            self.met.take(&step.call);
            let same = self.compared.take(self.rank, &step.call, outcome);
            if self.details.is_some() {
                lines.push((step, outcome, same));
            }
        }
        if let Some(details) = &mut self.details {
            details.write(self.name.0, self.name.1, &lines).map_err(Stuck::Calls)?;
        }
        self.played.prepare += begin.elapsed();
        Ok(())
    }

    /// Waits until all ranks are at an end. One that was stopped by a signal makes further calls up to the next collective one from
    /// time to time, because others may wait for it there.
    fn gather(&mut self, progress: &mut Progress, stopped: bool) -> Result<(), Stuck> {
        let mut gathering = Gathering::enter(self.comm)?;
        let mut helped = Instant::now();
        let mut raised = stopped.then_some(helped);
        while !gathering.is_complete()? {
            if self.interrupt.raised() {
                raised.get_or_insert_with(Instant::now);
            }
            if raised.is_some_and(|raised| raised.elapsed() > GRACE) {
                return Err(Stuck::Interrupted);
            }
            if stopped && helped.elapsed() > HELP {
                self.help(progress)?;
                helped = Instant::now();
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    fn help(&mut self, progress: &mut Progress) -> Result<(), Stuck> {
        while progress.done < progress.outcomes.len() {
            let at = progress.done;
            let is_collective = self.program.steps()[at].call.function.is_collective();
            self.memory(progress, at)?;
            self.go(progress, at + 1)?;
            if is_collective {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Where to stop after a go from `at` on: behind a step with something after it, before one with something before it.
fn end_of_go(stops: &mut VecDeque<(usize, Stop)>, at: usize, most: usize) -> usize {
    if let Some((_, stop)) = stops.front().filter(|(step, _)| *step == at) {
        if !stop.tells.is_empty() || !stop.landed.is_empty() {
            return at + 1;
        }
        stops.pop_front();
    }
    let next = stops.front().map_or(usize::MAX, |(step, stop)| {
        let before = !stop.after.is_empty()
            || !stop.meets.is_empty()
            || stop.wrapped
            || stop.reused.is_some()
            || !stop.gone.is_empty()
            || stop.grown.is_some()
            || !stop.ready.is_empty();
        if before {
            *step
        } else {
            *step + 1
        }
    });
    next.min(at + most)
}

/// A call that waits for others goes alone: so it is known how long that one takes.
fn end_by_others(alone: &[bool], at: usize, end: usize) -> usize {
    let is_alone = |step: usize| alone.get(step).is_some_and(|alone| *alone);
    if is_alone(at) {
        return at + 1;
    }
    (at + 1..end).find(|step| is_alone(*step)).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use beff_trace::After;

    use super::*;

    #[test]
    fn a_go_ends_where_something_has_to_be_done() {
        let after = || Stop { after: vec![After { rank: 0, begin_ns: 1 }], ..Stop::default() };
        let tells = || Stop { tells: vec![(1, 0)], ..Stop::default() };
        let reused = || Stop { reused: Some(Reused::Landing { memory: 0..1 }), ..Stop::default() };
        let end = |list: Vec<(usize, Stop)>, at| end_of_go(&mut list.into(), at, 16);
        assert_eq!(end(vec![], 3), 19);
        assert_eq!(end(vec![(5, after())], 3), 5, "before a step that waits");
        assert_eq!(end(vec![(5, reused())], 3), 5, "before one whose memory is made ready");
        assert_eq!(end(vec![(5, tells())], 3), 6, "behind one that others wait for");
        assert_eq!(end(vec![(3, tells())], 3), 4);
        assert_eq!(end(vec![(3, Stop::default()), (4, tells())], 3), 5, "what was done before it is over");
        let alone = [false, false, true, false];
        assert_eq!(
            [0, 2, 3].map(|at| end_by_others(&alone, at, 4)),
            [2, 3, 4],
            "a call that waits for others goes alone"
        );
    }
}
