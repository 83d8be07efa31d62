//! Execution of the calls of one rank: windows of calls, actions between them, and the clock.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use beff_backends::{FilePath, ReplayProgram, StepOutcome};
use beff_ffi::{alloc, Comm, PendingBarrier};
use beff_trace::{Function, PointerKind, Role};

use super::call_csv::CallCsvWriter;
use super::call_window::{CallWindow, CallWindowBuilder, ReadToVerify, StepActions, SynchronizationPoint};
use super::files::{self, RequiredState};
use super::order::CallOrder;
use super::pace::{now_ns, Deadlines};
use super::result_comparison::ResultComparison;
use super::stall_watch::{ActivityNote, RankActivity};
use super::verify::ReadVerifier;
use super::write_source::WriteSources;
use super::ReplayAbort;
use crate::frame::run::interrupt::Interrupt;
use crate::replay::plan::collective_counts::CollectiveCounter;
use crate::replay::plan::ledger::{CallResult, Ledger};
use crate::replay::plan::preparation::FileState;

/// Maximum number of calls without a check for signals.
const MAX_BURST_CALLS: usize = 16;
/// Interval at which a stopped rank issues calls to release others from a collective call.
const HELP_INTERVAL: Duration = Duration::from_millis(200);
/// Timeout of that.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(8);

pub(super) struct RankReplay<'a> {
    pub comm: &'a Comm,
    pub rank: u32,
    pub program: Box<dyn ReplayProgram>,
    pub windows: CallWindowBuilder<'a>,
    pub order: CallOrder<'a>,
    pub activity: ActivityNote,
    /// Paths of the files, and their content.
    pub paths: Vec<FilePath>,
    pub sources: WriteSources,
    pub deadlines: Deadlines,
    pub checker: ReadVerifier<'a>,
    pub interrupt: &'a Interrupt,
    pub details: Option<&'a mut CallCsvWriter>,
    pub label: (&'a str, u64),
    pub ledger: Ledger,
    pub comparison: ResultComparison,
    /// Message of the backend about the first call that failed and succeeded when recorded.
    pub failure: Option<String>,
    /// Openings whose individual file pointer may be elsewhere than recorded, because a call had another error.
    pub lost_pointers: HashSet<u32>,
    /// Collective calls issued.
    pub collectives: CollectiveCounter,
    /// World ranks of the communicators, and the number of barriers of each.
    pub comms: &'a [Vec<u32>],
    pub synchronization_counts: HashMap<u32, u64>,
    pub timing: RankTiming,
}

/// Times and counts of a rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RankTiming {
    pub span: Duration,
    pub verify: Duration,
    pub prepare: Duration,
    pub allocations: u64,
    pub interrupted: bool,
}

struct WindowProgress {
    outcomes: Vec<StepOutcome>,
    actions: VecDeque<(usize, StepActions)>,
    /// Calls that synchronize ranks.
    synchronizes: Vec<bool>,
    done: usize,
    /// Steps before this one have been examined for errors that were not recorded.
    examined: usize,
    /// Completed reads not yet compared, with the step that completed them.
    completed_reads: Vec<(usize, ReadToVerify)>,
}

impl RankReplay<'_> {
    /// Issues all calls; the first window is prepared.
    ///
    /// # Errors
    /// Errors that leave others waiting.
    pub fn run(&mut self, first: CallWindow) -> Result<(), ReplayAbort> {
        let mut ready = first;
        loop {
            let mut progress = self.start_window(std::mem::take(&mut ready));
            let is_empty = progress.outcomes.is_empty();
            let begin = Instant::now();
            let verify = self.timing.verify;
            let went = self.run_window(&mut progress)?;
            self.timing.span += begin.elapsed().saturating_sub(self.timing.verify - verify);
            let ended = now_ns();
            if !went {
                self.timing.interrupted = true;
                self.order.notify_stop(self.comm)?;
                self.wait_for_all_ranks(&mut progress, true)?;
                self.account_window(&mut progress)?;
                return Ok(());
            }
            self.account_window(&mut progress)?;
            let begin = Instant::now();
            let mut window = self.windows.next_window().map_err(ReplayAbort::Calls)?;
            if window.steps.is_empty() && (is_empty || window.actions.is_empty()) {
                self.timing.prepare += begin.elapsed();
                return self.wait_for_all_ranks(&mut progress, false);
            }
            let steps = std::mem::take(&mut window.steps);
            self.program.prepare(steps).map_err(|e| ReplayAbort::Calls(format!("rank {}: {e}", self.rank)))?;
            ready = window;
            self.timing.prepare += begin.elapsed();
            self.deadlines.shift(now_ns() - ended);
        }
    }

    /// Allocates the outcomes of the steps.
    fn start_window(&self, CallWindow { actions: stops, synchronizes: alone, .. }: CallWindow) -> WindowProgress {
        let room = |step: &beff_backends::ProgramStep| StepOutcome {
            completions: Vec::with_capacity(step.call.requests.len()),
            ..StepOutcome::default()
        };
        let outcomes = self.program.steps().iter().map(room).collect();
        WindowProgress {
            outcomes,
            actions: stops,
            synchronizes: alone,
            done: 0,
            examined: 0,
            completed_reads: Vec::new(),
        }
    }

    /// Issues the calls of a window. False after a signal.
    fn run_window(&mut self, progress: &mut WindowProgress) -> Result<bool, ReplayAbort> {
        while progress.done < progress.outcomes.len() {
            let at = progress.done;
            if self.interrupt.is_raised() || !self.run_actions_before(progress, at)? {
                return Ok(false);
            }
            let begin_ns = self.program.steps()[at].call.begin_ns;
            if !self.deadlines.sleep_until(begin_ns, self.interrupt) {
                return Ok(false);
            }
            let most = if self.deadlines.is_paced() { 1 } else { MAX_BURST_CALLS };
            let end = burst_end(&mut progress.actions, at, most.min(progress.outcomes.len() - at));
            let end = end_at_synchronizing_call(&progress.synchronizes, at, end);
            self.run_burst(progress, end)?;
        }
        // Notifications after the last call.
        while let Some((at, _)) = progress.actions.front() {
            let at = *at;
            if !self.synchronize(progress, at)? {
                return Ok(false);
            }
            if let Some((_, stop)) = progress.actions.pop_front() {
                self.notify_waiters(&stop)?;
            }
        }
        Ok(true)
    }

    /// Actions before a step. False after a signal.
    fn run_actions_before(&mut self, progress: &mut WindowProgress, at: usize) -> Result<bool, ReplayAbort> {
        let Some((_, stop)) = progress.actions.front().filter(|(step, _)| *step == at) else { return Ok(true) };
        let waits = !stop.awaited_calls.is_empty();
        self.verify_reused_memory(progress, at);
        // Synchronized ranks should call together; but a file that another rank still has to delete cannot be created yet.
        if !waits && !self.prepare_files(progress, at)? {
            return Ok(false);
        }
        // The awaited call may follow the same barrier on its rank, if the collective call returned early there.
        Ok(self.synchronize(progress, at)? && self.wait_for_calls(progress, at)? && self.prepare_files(progress, at)?)
    }

    fn wait_for_calls(&mut self, progress: &mut WindowProgress, at: usize) -> Result<bool, ReplayAbort> {
        let Some((_, stop)) = progress.actions.front_mut().filter(|(step, _)| *step == at) else { return Ok(true) };
        for after in std::mem::take(&mut stop.awaited_calls) {
            let own = (u64::from(self.rank), self.program.steps()[at].call.begin_ns);
            if !self.order.wait(after, own)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Synchronizes with the other ranks of a collective call. False after a signal.
    fn synchronize(&mut self, progress: &mut WindowProgress, at: usize) -> Result<bool, ReplayAbort> {
        let Some((_, stop)) = progress.actions.front_mut().filter(|(step, _)| *step == at) else { return Ok(true) };
        for SynchronizationPoint { comm, begin_ns, since_ready_ns: met_ns } in
            std::mem::take(&mut stop.synchronizations)
        {
            let Some(members) = self.comms.get(comm as usize) else { continue };
            let number = self.synchronization_counts.entry(comm).or_default();
            *number += 1;
            if !self.order.barrier(members, (comm, *number), (u64::from(self.rank), begin_ns))? {
                return Ok(false);
            }
            self.deadlines.ranks_synchronized(begin_ns, met_ns, now_ns());
        }
        Ok(true)
    }

    /// Removes files as the program did, brings a file into its recorded state, and notifies the waiting ranks. False after a signal.
    ///
    /// # Errors
    /// The error of the file system.
    fn prepare_files(&mut self, progress: &mut WindowProgress, at: usize) -> Result<bool, ReplayAbort> {
        let Some((_, stop)) = progress.actions.front_mut().filter(|(step, _)| *step == at) else { return Ok(true) };
        let (gone, required) = (std::mem::take(&mut stop.removed_files), stop.required_state.take());
        let (quiet, ready) = (std::mem::take(&mut stop.prior_calls), std::mem::take(&mut stop.preparation_waiters));
        let own = (u64::from(self.rank), self.program.steps()[at].call.begin_ns);
        for after in quiet {
            if !self.order.wait(after, own)? {
                return Ok(false);
            }
        }
        self.remove_files(&gone)?;
        if let Some(required) = required {
            self.establish_state(&required)?;
        }
        for (word, rank) in ready {
            self.order.notify(rank, word)?;
        }
        Ok(true)
    }

    fn establish_state(&mut self, required: &RequiredState) -> Result<(), ReplayAbort> {
        let Some(path) = self.paths.get(required.file as usize) else { return Ok(()) };
        let begin = Instant::now();
        files::establish_state(path, required, &self.sources).map_err(|e| {
            let path = path.display();
            let state = match required.state {
                FileState::Absent => "removed, as it was absent when recorded".to_owned(),
                FileState::Present => "created, as it existed when recorded".to_owned(),
                FileState::Size(bytes) => format!("given its recorded size of {bytes} bytes"),
            };
            ReplayAbort::Calls(format!("rank {}: {path} cannot be {state}: {e}", self.rank))
        })?;
        self.timing.verify += begin.elapsed();
        Ok(())
    }

    fn remove_files(&mut self, gone: &[u32]) -> Result<(), ReplayAbort> {
        if gone.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        for path in gone.iter().filter_map(|file| self.paths.get(*file as usize)) {
            match path.remove() {
                // The call that should have created it failed, or a call of the program has removed it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => done.map_err(|e| {
                    let path = path.display();
                    ReplayAbort::Calls(format!("rank {}: {path} cannot be removed as recorded: {e}", self.rank))
                })?,
            }
        }
        self.timing.verify += begin.elapsed();
        Ok(())
    }

    /// Compares completed reads before a step that reuses their memory.
    fn verify_reused_memory(&mut self, progress: &mut WindowProgress, at: usize) {
        let Some((_, stop)) = progress.actions.front_mut().filter(|(step, _)| *step == at) else { return };
        if std::mem::take(&mut stop.is_wrapped) {
            self.verify_reads(progress);
        }
    }

    /// Issues the calls up to `end` and performs the actions after them.
    fn run_burst(&mut self, progress: &mut WindowProgress, end: usize) -> Result<(), ReplayAbort> {
        let at = progress.done;
        let is_synchronizing = progress.synchronizes.get(at).is_some_and(|alone| *alone);
        let call = &self.program.steps()[at].call;
        self.activity.enter(RankActivity::InCalls {
            function: call.function,
            begin_ns: call.begin_ns,
            following: end - at - 1,
            synchronizes: is_synchronizing,
        });
        let allocations = alloc::allocations();
        self.program.run(at..end, &mut progress.outcomes[at..end]);
        // The text of an error is allocated.
        if progress.outcomes[at..end].iter().all(|outcome| outcome.error.is_none()) {
            self.timing.allocations += alloc::allocations() - allocations;
        }
        self.activity.leave();
        progress.done = end;
        let (step, outcome) = (&self.program.steps()[end - 1], &progress.outcomes[end - 1]);
        self.deadlines.call_ended(step.call.end_ns, outcome.end_ns);
        while progress.actions.front().is_some_and(|(step, _)| *step < end) {
            let Some((step, stop)) = progress.actions.pop_front() else { break };
            self.notify_waiters(&stop)?;
            progress.completed_reads.extend(stop.completed_reads.into_iter().map(|read| (step, read)));
        }
        Ok(())
    }

    fn notify_waiters(&mut self, stop: &StepActions) -> Result<(), ReplayAbort> {
        for (begin_ns, rank) in &stop.end_waiters {
            self.order.notify(*rank, *begin_ns)?;
        }
        Ok(())
    }

    fn verify_reads(&mut self, progress: &mut WindowProgress) {
        let begin = Instant::now();
        self.find_lost_pointers(progress);
        for (step, read) in progress.completed_reads.drain(..) {
            let outcome = &progress.outcomes[step];
            let of_request = |request| outcome.completions.iter().find(|c| c.request == request);
            let moved = match read.request {
                Some(request) => of_request(request).and_then(|c| c.bytes),
                None => outcome.bytes,
            };
            let moved_bytes = moved.unwrap_or(0);
            if uses_individual_pointer(read.function) && read.handle.is_some_and(|of| self.lost_pointers.contains(&of))
            {
                self.checker.unknown_bytes += moved_bytes;
                continue;
            }
            self.checker.verify(&mut *self.program, &read, moved_bytes);
        }
        self.timing.verify += begin.elapsed();
    }

    /// A seek or an access that failed only when recorded, or only now, leaves the file pointer elsewhere.
    fn find_lost_pointers(&mut self, progress: &mut WindowProgress) {
        let examined = std::mem::replace(&mut progress.examined, progress.done)..progress.done;
        for (step, outcome) in
            self.program.steps().iter().zip(&progress.outcomes).take(examined.end).skip(examined.start)
        {
            let call = &step.call;
            let moves = uses_individual_pointer(call.function) || call.function == Function::Seek;
            if moves && call.error.is_some() != outcome.error.is_some() {
                self.lost_pointers.extend(call.handle);
            }
        }
    }

    /// Adds the outcomes of a window to the totals.
    fn account_window(&mut self, progress: &mut WindowProgress) -> Result<(), ReplayAbort> {
        self.verify_reads(progress);
        let begin = Instant::now();
        let steps = self.program.steps();
        let mut lines = Vec::new();
        for (step, outcome) in steps.iter().zip(&progress.outcomes).take(progress.done) {
            let ns = outcome.end_ns.saturating_sub(outcome.begin_ns);
            let took = CallResult { ns, bytes: outcome.bytes, completions: &outcome.completions };
            self.ledger.record(&step.call, Some(took));
            self.collectives.count_call(&step.call);
            let same = self.comparison.compare_call(self.rank, &step.call, outcome);
            if self.details.is_some() {
                lines.push((step, outcome, same));
            }
        }
        if let Some(details) = &mut self.details {
            details.write(self.label.0, self.label.1, &lines).map_err(ReplayAbort::Calls)?;
        }
        if self.failure.is_none() {
            self.failure = self.program.unexpected_error();
        }
        self.timing.prepare += begin.elapsed();
        Ok(())
    }

    /// Waits until all ranks have finished. A rank stopped by a signal occasionally issues calls up to the next collective one, because
    /// others may wait for it there.
    fn wait_for_all_ranks(&mut self, progress: &mut WindowProgress, stopped: bool) -> Result<(), ReplayAbort> {
        let mut gathering = PendingBarrier::post(self.comm)?;
        let mut helped = Instant::now();
        let mut raised = stopped.then_some(helped);
        while !gathering.is_complete()? {
            if self.interrupt.is_raised() {
                raised.get_or_insert_with(Instant::now);
            }
            if raised.is_some_and(|raised| raised.elapsed() > STOP_TIMEOUT) {
                return Err(ReplayAbort::Interrupted);
            }
            if stopped && helped.elapsed() > HELP_INTERVAL {
                self.advance_to_collective(progress)?;
                helped = Instant::now();
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    fn advance_to_collective(&mut self, progress: &mut WindowProgress) -> Result<(), ReplayAbort> {
        while progress.done < progress.outcomes.len() {
            let at = progress.done;
            let is_collective = self.program.steps()[at].call.function.is_collective();
            self.verify_reused_memory(progress, at);
            self.run_burst(progress, at + 1)?;
            if is_collective {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn uses_individual_pointer(function: Function) -> bool {
    matches!(function.role(), Role::Data { pointer: PointerKind::Individual, .. })
}

/// End of a burst that begins at `at`: after a step with actions after it, before one with actions before it.
fn burst_end(stops: &mut VecDeque<(usize, StepActions)>, at: usize, most: usize) -> usize {
    if let Some((_, stop)) = stops.front().filter(|(step, _)| *step == at) {
        if !stop.end_waiters.is_empty() || !stop.completed_reads.is_empty() {
            return at + 1;
        }
        stops.pop_front();
    }
    let next = stops.front().map_or(usize::MAX, |(step, stop)| {
        let before = !stop.awaited_calls.is_empty()
            || !stop.synchronizations.is_empty()
            || stop.is_wrapped
            || !stop.removed_files.is_empty()
            || stop.required_state.is_some()
            || !stop.preparation_waiters.is_empty();
        if before {
            *step
        } else {
            *step + 1
        }
    });
    next.min(at + most)
}

/// A synchronizing call is issued alone, so that its duration is known.
fn end_at_synchronizing_call(alone: &[bool], at: usize, end: usize) -> usize {
    let is_alone = |step: usize| alone.get(step).is_some_and(|alone| *alone);
    if is_alone(at) {
        return at + 1;
    }
    (at + 1..end).find(|step| is_alone(*step)).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use beff_trace::CallId;

    use super::*;

    #[test]
    fn a_burst_ends_at_required_actions() {
        let after = || StepActions { awaited_calls: vec![CallId { rank: 0, begin_ns: 1 }], ..StepActions::default() };
        let tells = || StepActions { end_waiters: vec![(1, 0)], ..StepActions::default() };
        let wrapped = || StepActions { is_wrapped: true, ..StepActions::default() };
        let end = |list: Vec<(usize, StepActions)>, at| burst_end(&mut list.into(), at, 16);
        assert_eq!(end(vec![], 3), 19);
        assert_eq!(end(vec![(5, after())], 3), 5, "before a step that waits");
        assert_eq!(end(vec![(5, wrapped())], 3), 5, "before one that reuses memory of reads");
        assert_eq!(end(vec![(5, tells())], 3), 6, "after one that others wait for");
        assert_eq!(end(vec![(3, tells())], 3), 4);
        assert_eq!(end(vec![(3, StepActions::default()), (4, tells())], 3), 5, "actions before it are complete");
        let alone = [false, false, true, false];
        assert_eq!(
            [0, 2, 3].map(|at| end_at_synchronizing_call(&alone, at, 4)),
            [2, 3, 4],
            "a synchronizing call is issued alone"
        );
    }
}
