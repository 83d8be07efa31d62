//! Preparation of calls: read from the profile, filtered for the backend, with their memory and the actions before and after them.

use std::collections::{HashMap, HashSet, VecDeque};

use beff_backends::ProgramStep;
use beff_trace::layout::TypeLayouts;
use beff_trace::{AccessForm, Call, CallId, DataOrigin, Direction, Function, OriginRange, PointerKind, Role};

use super::call_location::{CallLocation, LocationTracker};
use super::call_source::SourceCalls;
use super::files::RequiredState;
use super::order::AwaitedCall;
use super::scan::{memory_begin, memory_span, RankScan, ReplaySupport};
use crate::replay::config::Pace;
use crate::replay::plan::landing::{page_misalignment, LandingAllocator};
use crate::replay::plan::matching::SynchronizationTracker;
use crate::replay::plan::memory_image::align_for_direct;
use crate::replay::plan::memory_relocation::MemoryRelocation;
use crate::replay::plan::omission::{CallDisposition, CallFilter};
use crate::replay::plan::preparation::{PreparationPlanner, PREPARED_TAG};
use crate::replay::run::write_source::WriteSources;

const WINDOW_CALLS: usize = 64 * 1024;

/// A read whose data is compared.
#[derive(Clone, Debug)]
pub(super) struct ReadToVerify {
    /// Function, for messages.
    pub function: Function,
    /// Begin in the profile.
    pub begin_ns: u64,
    /// Number of the file, and of its opening.
    pub file: Option<u32>,
    pub handle: Option<u32>,
    /// Address in the landing area.
    pub memory_at: u64,
    /// Extent of its memory below and above that.
    pub span: (u64, u64),
    /// Datatype in memory.
    pub datatype: Option<u32>,
    /// Origin of the bytes.
    pub from: Vec<OriginRange>,
    /// Request of a nonblocking read.
    pub request: Option<u64>,
    /// Location of its data in the file; empty if unknown.
    pub location: CallLocation,
}

/// Barrier of ranks before a collective call, implied by the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SynchronizationPoint {
    /// Communicator of the profile.
    pub comm: u32,
    /// Begin of the call in the profile, and its distance from the time when the last rank was ready.
    pub begin_ns: u64,
    pub since_ready_ns: u64,
}

/// Actions before and after a step.
#[derive(Debug, Default)]
pub(super) struct StepActions {
    /// Before: wait for calls of other ranks.
    pub awaited_calls: Vec<CallId>,
    /// Before: synchronize ranks.
    pub synchronizations: Vec<SynchronizationPoint>,
    /// Before: compare completed reads, whose memory is reused.
    pub is_wrapped: bool,
    /// Before: remove files, as other means had done.
    pub removed_files: Vec<u32>,
    /// Before: bring the file to be opened or deleted into its recorded state.
    pub required_state: Option<RequiredState>,
    /// Before those two: wait for calls of other ranks.
    pub prior_calls: Vec<CallId>,
    /// After those two: notify ranks that wait for the files.
    pub preparation_waiters: Vec<AwaitedCall>,
    /// After: notify ranks that wait for the end of a call.
    pub end_waiters: Vec<AwaitedCall>,
    /// After: completed reads.
    pub completed_reads: Vec<ReadToVerify>,
}

#[derive(Debug, Default)]
pub(super) struct CallWindow {
    pub steps: Vec<ProgramStep>,
    /// In the order of the steps.
    pub actions: VecDeque<(usize, StepActions)>,
    /// For each step, whether it synchronizes ranks.
    pub synchronizes: Vec<bool>,
}

impl CallWindow {
    fn actions_at(&mut self, step: usize) -> &mut StepActions {
        if self.actions.back().is_none_or(|(last, _)| *last != step) {
            self.actions.push_back((step, StepActions::default()));
        }
        // One was pushed if there was none.
        &mut self.actions.make_contiguous().last_mut().unwrap_or_else(|| unreachable!()).1
    }
}

/// Pending actions of a nonblocking or split call.
#[derive(Debug, Default)]
struct PendingCall {
    end_waiters: Vec<AwaitedCall>,
    read: Option<ReadToVerify>,
    landing_at: Option<u64>,
}

/// Prepares windows of the calls of a rank.
pub(super) struct CallWindowBuilder<'a> {
    layouts: &'a TypeLayouts,
    relocation: &'a MemoryRelocation,
    sources: WriteSources,
    rank: u32,
    calls: SourceCalls<'a>,
    remaining: u64,
    scan: &'a RankScan,
    next_awaited: usize,
    filter: CallFilter,
    synchronization: SynchronizationTracker<'a>,
    by_offsets: bool,
    landing: LandingAllocator,
    locations: LocationTracker<'a>,
    file_of_handle: HashMap<u32, u32>,
    preparations: PreparationPlanner<'a>,
    /// Waits of omitted calls.
    deferred_waits: Vec<CallId>,
    comm_of_handle: HashMap<u32, u32>,
    /// Calls have think times: ranks synchronize where the profile implies it.
    synchronizes: bool,
    /// Barriers of omitted calls, which other ranks enter.
    deferred_synchronizations: Vec<SynchronizationPoint>,
    requests: HashMap<u64, PendingCall>,
    split: HashMap<u32, PendingCall>,
    verifies: bool,
    stores: bool,
    /// The library of the recording reports bytes beyond the end of the file as read.
    over_reports: bool,
    /// Memory is aligned to pages, as direct transfers require, whatever the alignment in the program.
    aligns_to_pages: bool,
    /// For each rank, time from which its writes may be omitted.
    first_omitted_write_ns: Vec<u64>,
    waited_for: HashSet<CallId>,
}

pub(super) struct WindowSetup<'a> {
    pub bench: &'a super::ReplayContext<'a>,
    pub rank: u32,
    pub refusal: ReplaySupport,
    pub landing: LandingAllocator,
    pub verifies: bool,
    pub pace: Pace,
    /// The backend stores data.
    pub stores: bool,
    /// Transfers may be direct.
    pub aligns_to_pages: bool,
    pub first_omitted_write_ns: Vec<u64>,
}

impl<'a> CallWindowBuilder<'a> {
    /// State before the first call.
    ///
    /// # Errors
    /// A profile that has changed since the scan.
    pub fn new(making: WindowSetup<'a>) -> Result<Self, String> {
        let WindowSetup {
            bench,
            rank,
            refusal,
            landing,
            verifies: compares,
            pace,
            stores,
            aligns_to_pages: aligns,
            first_omitted_write_ns: unmade_ns,
        } = making;
        let (_, calls) = bench.source.read_rank(rank)?;
        Ok(Self {
            layouts: bench.layouts,
            relocation: bench.relocation,
            sources: bench.sources,
            rank,
            calls,
            remaining: bench.scan.replayed_lines,
            scan: bench.scan,
            next_awaited: 0,
            filter: CallFilter::new(refusal.unsupported),
            synchronization: SynchronizationTracker::new(&bench.head.comms, refusal.by_offsets),
            by_offsets: refusal.by_offsets,
            landing,
            locations: LocationTracker::new(bench.layouts),
            file_of_handle: HashMap::new(),
            preparations: PreparationPlanner::new(bench.head, rank),
            deferred_waits: Vec::new(),
            comm_of_handle: HashMap::new(),
            synchronizes: pace == Pace::Think,
            deferred_synchronizations: Vec::new(),
            requests: HashMap::new(),
            split: HashMap::new(),
            verifies: compares,
            stores,
            over_reports: bench.head.library.starts_with("Open MPI"),
            aligns_to_pages: aligns,
            first_omitted_write_ns: unmade_ns,
            waited_for: HashSet::new(),
        })
    }

    /// The next window; empty after the last call.
    ///
    /// # Errors
    /// A profile that has changed since the scan.
    pub fn next_window(&mut self) -> Result<CallWindow, String> {
        let mut window = CallWindow::default();
        let mut early = Vec::new();
        while window.steps.len() < WINDOW_CALLS && self.remaining > 0 {
            let Some(call) = self.calls.next() else { break };
            self.remaining -= 1;
            let mut call = call.map_err(|e| e.to_string())?;
            self.relocation.relocate(&mut call);
            let begin_ns = call.begin_ns;
            let tells = self.end_waiters(begin_ns);
            self.deferred_waits
                .extend(self.scan.preparation_schedule.awaited_preparations.get(&begin_ns).into_iter().flatten());
            let places = self.locations.locate(&call);
            let meeting = self.synchronization_point(&call);
            self.deferred_synchronizations.extend(meeting);
            let unknown = places.unknown_reason.filter(|_| self.by_offsets);
            if self.filter.classify(&mut call, unknown) == CallDisposition::Replayed {
                let step = window.steps.len();
                window.add_deferred_waiters(step, &mut early);
                if !self.deferred_synchronizations.is_empty() {
                    window.actions_at(step).synchronizations.append(&mut self.deferred_synchronizations);
                }
                self.push_step(&mut window, call, tells, places)?;
            } else {
                // Ranks that wait for an omitted call only wait for the previous call. Later calls rely on what it waits for.
                let after = std::mem::take(&mut call.after).into_iter().filter(|a| !self.scan.lost_calls.contains(a));
                self.deferred_waits.extend(after);
                early.extend(tells);
                early.extend(self.preparation_waiters(begin_ns));
            }
        }
        if !early.is_empty() {
            match window.steps.len() {
                0 => window.actions_at(0).end_waiters.append(&mut early),
                steps => window.actions_at(steps - 1).end_waiters.append(&mut early),
            }
        }
        if self.remaining == 0 && !self.deferred_synchronizations.is_empty() {
            window.actions_at(window.steps.len()).synchronizations.append(&mut self.deferred_synchronizations);
        }
        Ok(window)
    }

    /// Barrier of the ranks of a call before it.
    fn synchronization_point(&mut self, call: &Call) -> Option<SynchronizationPoint> {
        if let (Some(handle), Some(comm)) = (call.handle, call.comm) {
            self.comm_of_handle.insert(handle, comm);
        }
        let met_ns = call.since_barrier_ns.filter(|_| self.synchronizes)?;
        let of_handle = call.handle.and_then(|handle| self.comm_of_handle.get(&handle).copied());
        Some(SynchronizationPoint { comm: call.comm.or(of_handle)?, begin_ns: call.begin_ns, since_ready_ns: met_ns })
    }

    /// Ranks that wait for the call that began then.
    fn end_waiters(&mut self, begin_ns: u64) -> Vec<AwaitedCall> {
        let awaited = &self.scan.calls_awaited_by_others;
        while awaited.get(self.next_awaited).is_some_and(|(begin, _)| *begin < begin_ns) {
            self.next_awaited += 1;
        }
        awaited[self.next_awaited..].iter().take_while(|(begin, _)| *begin == begin_ns).copied().collect()
    }

    fn push_step(
        &mut self,
        window: &mut CallWindow,
        mut call: Call,
        tells: Vec<AwaitedCall>,
        places: CallLocation,
    ) -> Result<(), String> {
        let step = window.steps.len();
        window.synchronizes.push(self.synchronization.observe(&call));
        let after = std::mem::take(&mut call.after).into_iter().filter(|a| !self.scan.lost_calls.contains(a));
        let after = after.chain(std::mem::take(&mut self.deferred_waits));
        let after: Vec<CallId> = after.filter(|a| self.waited_for.insert(*a)).collect();
        if !after.is_empty() {
            window.actions_at(step).awaited_calls = after;
        }
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.file_of_handle.insert(handle, file);
        }
        self.plan_preparation(window, &call);
        let mut begun = PendingCall { end_waiters: tells, ..PendingCall::default() };
        let mut memory_at = 0;
        if let Role::Data { direction, form, .. } = call.function.role() {
            if form != AccessForm::End {
                memory_at = self.assign_memory(window, &mut call, direction, form, places, &mut begun)?;
            }
        }
        self.finish_or_defer(window, step, &call, begun);
        window.steps.push(ProgramStep { call, memory_at });
        Ok(())
    }

    /// Files that this rank prepares before an opening.
    fn plan_preparation(&mut self, window: &mut CallWindow, call: &Call) {
        let (step, begin_ns) = (window.steps.len(), call.begin_ns);
        let work = self.preparations.work_before(call);
        let known = &self.scan.preparation_schedule;
        let required = work.required.map(|(file, state)| RequiredState {
            file,
            state,
            in_flight_end_bytes: known.in_flight_end_bytes.get(&begin_ns).copied().unwrap_or(0),
            only_grows: work.only_grows || known.unclear_states.contains(&begin_ns),
        });
        if self.stores && (required.is_some() || !work.removed.is_empty()) {
            let stop = window.actions_at(step);
            (stop.removed_files, stop.required_state) = (work.removed, required);
            stop.prior_calls = known.prior_calls.get(&begin_ns).cloned().unwrap_or_default();
        }
        let ready: Vec<AwaitedCall> = self.preparation_waiters(begin_ns).collect();
        if !ready.is_empty() {
            window.actions_at(step).preparation_waiters = ready;
        }
    }

    /// Ranks that wait for the prepared files of an opening.
    fn preparation_waiters(&self, begin_ns: u64) -> impl Iterator<Item = AwaitedCall> + 'a {
        let ranks = self.scan.preparation_schedule.notified_ranks.get(&begin_ns).into_iter().flatten();
        ranks.map(move |rank| (PREPARED_TAG | begin_ns, *rank))
    }

    fn assign_memory(
        &mut self,
        window: &mut CallWindow,
        call: &mut Call,
        direction: Direction,
        form: AccessForm,
        places: CallLocation,
        begun: &mut PendingCall,
    ) -> Result<u64, String> {
        let span = memory_span(self.layouts, call)?;
        let holds = form != AccessForm::Blocking;
        let image = self.image_address(call, direction, span, holds);
        if direction == Direction::Write {
            let kept = self.scan.source_bytes(self.sources.bytes())[0];
            return Ok(image.map_or_else(|| self.sources.address(self.rank, call.begin_ns), |at| kept + at));
        }
        let mut from = std::mem::take(&mut call.from);
        call.from.extend(unknown_tail(&from));
        if self.over_reports {
            clear_trailing_holes(&mut from);
        }
        let kept = self.scan.landing_bytes()[0];
        let image = image.map(|at| kept + at);
        if let Some(at) = image.filter(|_| !holds) {
            return Ok(at);
        }
        let misaligned = if self.aligns_to_pages { 0 } else { memory_begin(call, span).map_or(0, page_misalignment) };
        let place = self.landing.allocate(misaligned, span.0 + span.1, holds);
        let place = place.ok_or("the size of its memory overflows")?;
        if place.wrapped {
            window.actions_at(window.steps.len()).is_wrapped = true;
        }
        if holds {
            begun.landing_at = Some(place.at);
        }
        // The cycle advances even if a read uses other memory, so its length is that of the scan.
        let memory_at = image.unwrap_or(place.at + span.0);
        from.iter_mut().for_each(|origin| self.clear_omitted_origin(origin));
        if self.verifies && !from.is_empty() {
            let (function, begin_ns, datatype, request) = (call.function, call.begin_ns, call.datatype, call.request);
            let file = call.handle.and_then(|handle| self.file_of_handle.get(&handle).copied());
            begun.read = Some(ReadToVerify {
                function,
                begin_ns,
                file,
                handle: call.handle,
                memory_at,
                span,
                datatype,
                from,
                request,
                location: places,
            });
        }
        Ok(memory_at)
    }

    /// Address of an access relative to the image of its direction, if there is one. Reads that may be in flight together share no
    /// memory, unless they did in the program.
    fn image_address(&self, call: &Call, direction: Direction, span: (u64, u64), holds: bool) -> Option<u64> {
        if self.verifies {
            return None;
        }
        let image = self.scan.images.of(direction);
        let bytes = span.0 + span.1;
        let at = image.address(memory_begin(call, span)?, bytes)?;
        let at = if self.aligns_to_pages { align_for_direct(at, bytes) } else { at };
        (image.has_unique_addresses() || !holds || direction == Direction::Write).then_some(at + span.0)
    }

    /// The content is unknown where a write named by the profile is omitted, or if an order between ranks is lost.
    fn clear_omitted_origin(&self, origin: &mut OriginRange) {
        if self.scan.has_lost_waits {
            origin.origin = DataOrigin::Unknown;
        }
        if let DataOrigin::Call { rank, begin_ns, .. } = origin.origin {
            if self.first_omitted_write_ns.get(rank as usize).is_some_and(|first| begin_ns >= *first) {
                origin.origin = DataOrigin::Unknown;
            }
        }
    }

    /// Actions of a call are due at its end, or at that of the call that completes it.
    fn finish_or_defer(&mut self, window: &mut CallWindow, step: usize, call: &Call, mut begun: PendingCall) {
        let (form, pointer) = match call.function.role() {
            Role::Data { form, pointer, .. } => (Some(form), Some(pointer)),
            _ => (None, None),
        };
        // Its begin has moved the pointer; calls that depend on its data wait for the call that completes it.
        if pointer == Some(PointerKind::Shared) && !begun.end_waiters.is_empty() {
            window.actions_at(step).end_waiters.append(&mut begun.end_waiters);
        }
        match (form, call.request, call.handle) {
            (Some(AccessForm::Nonblocking), Some(request), _) => drop(self.requests.insert(request, begun)),
            (Some(AccessForm::Begin), _, Some(handle)) => drop(self.split.insert(handle, begun)),
            (Some(AccessForm::End), _, Some(handle)) => {
                self.finish_call(window, step, begun);
                if let Some(first) = self.split.remove(&handle) {
                    self.finish_call(window, step, first);
                }
            }
            _ => self.finish_call(window, step, begun),
        }
        for completion in &call.completions {
            if let Some(first) = self.requests.remove(&completion.request) {
                self.finish_call(window, step, first);
            }
        }
    }

    fn finish_call(&mut self, window: &mut CallWindow, step: usize, begun: PendingCall) {
        if let Some(at) = begun.landing_at {
            self.landing.release(at);
        }
        if !begun.end_waiters.is_empty() {
            window.actions_at(step).end_waiters.extend(begun.end_waiters);
        }
        if let Some(read) = begun.read {
            window.actions_at(step).completed_reads.push(read);
        }
    }
}

/// Earlier recordings call bytes beyond the end of the file, which Open MPI reports as read, a hole.
fn clear_trailing_holes(from: &mut [OriginRange]) {
    for origin in from.iter_mut().rev().take_while(|origin| origin.origin == DataOrigin::Hole) {
        origin.origin = DataOrigin::Unknown;
    }
}

/// Bytes at the end of a read whose content is unknown. The library may have reported more bytes than the file had.
fn unknown_tail(from: &[OriginRange]) -> Option<OriginRange> {
    let tail = from.iter().rev().take_while(|origin| origin.origin == DataOrigin::Unknown);
    let bytes = tail.map(|origin| origin.bytes).fold(0, u64::saturating_add);
    (bytes > 0).then_some(OriginRange { bytes, origin: DataOrigin::Unknown })
}

impl CallWindow {
    /// Omitted calls before a step have ended when the previous step has.
    fn add_deferred_waiters(&mut self, step: usize, early: &mut Vec<AwaitedCall>) {
        if !early.is_empty() {
            // Notifying after the first replayed step would be too late for a step that waits in turn.
            match step {
                0 => self.actions_at(0).end_waiters.append(early),
                _ => self.actions_at(step - 1).end_waiters.append(early),
            }
        }
    }
}
