//! The plan of a program: the action of each step and its list of extents. The lists are reused.

use std::ops::Range;

use beff_trace::access::ResolvedAccess;
use beff_trace::layout::TypeLayouts;
use beff_trace::{AccessForm, Amode, Call, Completion, Direction, ErrorClass, Function, Role};

use super::action::{CompletedRequest, StepAction, StepOutput};
use super::extents::{alignment_bits, flatten, memory_span, ExtentError, IoExtent, TypedSequence, MAX_EXTENTS};
use super::files::{check_amode, OpenArguments};
use super::positions::FilePositions;
use super::step_error::{is_argument_error, StepError};
use super::transfer_engine::{PlannedAccess, NO_SLOT};
use super::unsupported::unsupported_reason;
use crate::error::FailureCause;
use crate::program::slot_numbers::SlotNumbers;
use crate::{BackendError, ProgramStep, ProgramTables, Result};

/// Actions of the current steps, and the state of the program.
#[derive(Debug)]
pub(super) struct ProgramPlan {
    positions: FilePositions,
    comms: usize,
    paths: usize,
    areas: AreaSizes,
    pub(super) steps: Vec<ProgramStep>,
    pub(super) actions: Vec<StepAction>,
    pub(super) extents: Vec<IoExtent>,
    pub(super) completed_requests: Vec<CompletedRequest>,
    pub(super) files: SlotNumbers<u32>,
    pub(super) requests: SlotNumbers<u64>,
    /// Slots of split accesses by the handle of their file.
    splits: Vec<(u32, u32)>,
    /// Slots of freed requests, which no later call completes.
    pub(super) freed: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AreaSizes {
    pub(super) source_bytes: u64,
    pub(super) landing_bytes: u64,
}

impl ProgramPlan {
    pub(super) fn new(tables: &ProgramTables, areas: AreaSizes) -> Result<Self> {
        let layouts = TypeLayouts::for_library(&tables.types, &tables.library).map_err(|error| {
            BackendError::new("replay", "", FailureCause::Unsupported, format!("types of the profile: {error}"))
        })?;
        Ok(Self {
            positions: FilePositions::new(layouts),
            comms: tables.comms.len(),
            paths: tables.paths.len(),
            areas,
            steps: Vec::new(),
            actions: Vec::new(),
            extents: Vec::new(),
            completed_requests: Vec::new(),
            files: SlotNumbers::default(),
            requests: SlotNumbers::default(),
            splits: Vec::new(),
            freed: Vec::new(),
        })
    }

    /// Replaces the steps.
    ///
    /// # Errors
    /// A number that is in no table, memory outside its area, too many extents at once.
    pub(super) fn replace_steps(&mut self, steps: Vec<ProgramStep>) -> Result<()> {
        self.actions.clear();
        self.extents.clear();
        self.completed_requests.clear();
        self.actions.reserve(steps.len());
        self.steps.clear();
        for (number, step) in steps.iter().enumerate() {
            let work = self.plan_step(step).map_err(|text| step_refusal(number, step, &text))?;
            self.actions.push(work);
        }
        self.steps = steps;
        Ok(())
    }

    fn plan_step(&mut self, step: &ProgramStep) -> std::result::Result<StepAction, String> {
        let call = &step.call;
        self.check_numbers(call)?;
        if let Some(reason) = unsupported_reason(call) {
            return Ok(StepAction::Fail(StepError::with_class("MPI_ERR_UNSUPPORTED_OPERATION", reason)));
        }
        match call.function.role() {
            Role::Data { form: AccessForm::End, .. } => Ok(self.plan_split_end(call)),
            Role::Data { direction, form, .. } => self.plan_access(step, direction, form),
            Role::File { .. } => Ok(self.plan_file_call(call)),
            Role::Request => Ok(self.plan_request_call(call)),
            Role::Program | Role::Posix => Ok(StepAction::None),
        }
    }

    /// Refuses numbers that are in no table.
    fn check_numbers(&self, call: &Call) -> std::result::Result<(), String> {
        let types = [("type", call.datatype), ("type", call.etype), ("type", call.filetype)]
            .map(|one| (one, self.positions.layouts().len()));
        let others = [(("communicator", call.comm), self.comms), (("file", call.file), self.paths)];
        for ((what, number), known) in types.into_iter().chain(others) {
            if let Some(number) = number.filter(|number| *number as usize >= known) {
                return Err(format!("{what} {number} is not defined: the table has {known}"));
            }
        }
        Ok(())
    }

    fn plan_access(
        &mut self,
        step: &ProgramStep,
        direction: Direction,
        form: AccessForm,
    ) -> std::result::Result<StepAction, String> {
        let call = &step.call;
        let placed = self.positions.locate(call);
        if let Some(fault) = argument_error(call) {
            return Ok(StepAction::Fail(fault));
        }
        let Some(file) = self.file_of(call) else {
            return Ok(failed_action(call, "MPI_ERR_FILE", "the file of this access is not open"));
        };
        let access = match placed {
            Ok(Some(access)) => access,
            Ok(None) => return Ok(failed_action(call, "MPI_ERR_OTHER", "an access without a file position")),
            Err(reason) => return Ok(failed_action(call, "MPI_ERR_OTHER", reason)),
        };
        let pieces = self.flatten(step, &access)?;
        let list = &self.extents[pieces.clone()];
        let bits = alignment_bits(list);
        let is_left = form == AccessForm::Begin || form == AccessForm::Nonblocking && call.request.is_some();
        if !is_left {
            return Ok(StepAction::Transfer(PlannedAccess {
                direction,
                file,
                extents: pieces,
                alignment_bits: bits,
                memory: 0..0,
                slot: NO_SLOT,
            }));
        }
        let memory = memory_span(list);
        let slot = match (call.request, call.handle) {
            (Some(request), _) if form == AccessForm::Nonblocking => self.requests.assign(request),
            (_, handle) => {
                let slot = self.requests.allocate();
                self.splits.push((handle.unwrap_or(0), slot));
                slot
            }
        };
        Ok(StepAction::BeginTransfer(PlannedAccess {
            direction,
            file,
            extents: pieces,
            alignment_bits: bits,
            memory,
            slot,
        }))
    }

    /// Appends the extents of an access to the list.
    fn flatten(&mut self, step: &ProgramStep, access: &ResolvedAccess) -> std::result::Result<Range<usize>, String> {
        let area_bytes = match access.direction {
            Direction::Read => self.areas.landing_bytes,
            Direction::Write => self.areas.source_bytes,
        };
        let base_bytes = i64::try_from(step.memory_at).map_err(|_| "memory beyond 63 bits".to_owned())?;
        let ResolvedAccess { view, first_byte, requested_bytes: asked_bytes, memory, .. } = *access;
        let file = TypedSequence { datatype: view.filetype, first_byte, base_bytes: view.displacement_bytes };
        let memory = TypedSequence { datatype: memory.datatype, first_byte: 0, base_bytes };
        let begin = self.extents.len();
        flatten(&mut self.extents, self.positions.layouts(), file, memory, asked_bytes, area_bytes).map_err(
            |beyond| match beyond {
                ExtentError::File => "it has a file offset below 0 or beyond 63 bits".to_owned(),
                ExtentError::Memory => {
                    format!("its memory from byte {base_bytes} on exceeds the area of {area_bytes} bytes")
                }
                ExtentError::TooMany => {
                    format!("more than {MAX_EXTENTS} extents are prepared at once: prepare fewer steps")
                }
            },
        )?;
        Ok(begin..self.extents.len())
    }

    /// The second half of a split access.
    fn plan_split_end(&mut self, call: &Call) -> StepAction {
        // Also ends it in the tracker.
        let _ = self.positions.locate(call);
        let begun = self.splits.iter().position(|(handle, _)| call.handle == Some(*handle));
        match begun {
            Some(begun) => {
                let (_, slot) = self.splits.swap_remove(begun);
                self.requests.release(slot);
                StepAction::EndTransfer { slot }
            }
            None => failed_action(call, "MPI_ERR_REQUEST", "the end of a split access that was not begun"),
        }
    }

    fn plan_request_call(&mut self, call: &Call) -> StepAction {
        self.positions.follow(call);
        if call.function == Function::RequestFree {
            let freed: Vec<u32> = call.requests.iter().filter_map(|request| self.requests.detach(request)).collect();
            self.freed.extend(freed);
            return StepAction::None;
        }
        let begin = self.completed_requests.len();
        let unknown = |request: &u64| Completion { request: *request, bytes: None, error: None };
        let all = || call.requests.iter().map(unknown).collect();
        // A profile lists completed requests; a handwritten workload need not.
        let completed: Vec<Completion> = match call.function {
            _ if !call.completions.is_empty() => call.completions.clone(),
            Function::Wait | Function::Waitall | Function::Waitsome if call.error.is_none() => all(),
            Function::Waitany if call.error.is_none() => call.requests.first().map(unknown).into_iter().collect(),
            _ => Vec::new(),
        };
        for recorded in completed {
            // Requests of omitted calls are unknown here.
            if let Some(slot) = self.requests.remove(&recorded.request) {
                self.completed_requests.push(CompletedRequest { slot, recorded });
            }
        }
        let is_single =
            matches!(call.function, Function::Wait | Function::Waitany | Function::Test | Function::Testany);
        StepAction::Complete { requests: begin..self.completed_requests.len(), is_single }
    }

    fn file_of(&self, call: &Call) -> Option<u32> {
        self.files.get(&call.handle?)
    }

    fn plan_file_call(&mut self, call: &Call) -> StepAction {
        use Function as F;
        let number = self.positions.query_result(call);
        self.positions.follow(call);
        if call.function == F::Open {
            return self.plan_open(call);
        }
        if let (F::Delete, Some(path)) = (call.function, call.file) {
            return StepAction::Delete { path };
        }
        if let Some(class) = call.error.filter(|class| is_argument_error(*class)) {
            return StepAction::Fail(recorded_error(class));
        }
        let Some(file) = self.file_of(call) else {
            return failed_action(call, "MPI_ERR_FILE", "the file of this call is not open");
        };
        let bytes = call.offset.unwrap_or(0);
        match call.function {
            F::Close => {
                call.handle.and_then(|handle| self.files.remove(&handle));
                StepAction::Close { file }
            }
            F::SetSize => StepAction::SetSize { file, bytes },
            F::Preallocate => StepAction::Preallocate { file, bytes },
            F::GetSize => StepAction::GetSize { file },
            F::Sync => StepAction::Sync { file },
            _ => number.map_or(StepAction::None, |number| {
                StepAction::Return(StepOutput { bytes: None, number: Some(number) })
            }),
        }
    }

    fn plan_open(&mut self, call: &Call) -> StepAction {
        let (Some(comm), Some(path)) = (call.comm, call.file) else {
            return failed_action(call, "MPI_ERR_ARG", "an open without a communicator or a file name");
        };
        let is_kept = call.error.is_none();
        let file = match call.handle.filter(|_| is_kept) {
            Some(handle) => self.files.assign(handle),
            None => self.files.allocate(),
        };
        if !is_kept {
            self.files.release(file);
        }
        let amode = call.amode.unwrap_or(Amode(0));
        let refused = call.error.filter(|class| is_argument_error(*class) && check_amode(amode).is_ok());
        StepAction::Open(OpenArguments { file, comm, path, amode, refused, is_kept })
    }
}

/// An error that is independent of the file. A recorded class takes precedence, because libraries differ.
fn failed_action(call: &Call, class: &str, text: &'static str) -> StepAction {
    let fault = StepError::with_class(class, text);
    StepAction::Fail(StepError { class: call.error.unwrap_or(fault.class), ..fault })
}

fn recorded_error(class: ErrorClass) -> StepError {
    StepError { class, cause: super::step_error::StepErrorCause::Text("arguments that were refused when recorded,") }
}

/// Returns the error in the arguments of a data access.
fn argument_error(call: &Call) -> Option<StepError> {
    let default_error = match call {
        Call { handle: None, .. } => StepError::with_class("MPI_ERR_FILE", "a data access without a file"),
        Call { count: None, .. } => StepError::with_class("MPI_ERR_COUNT", "a data access without a count"),
        Call { count: Some(..0), .. } => StepError::with_class("MPI_ERR_COUNT", "a data access with a negative count"),
        Call { offset: Some(..0), .. } => StepError::with_class("MPI_ERR_ARG", "a data access with a negative offset"),
        _ => return call.error.filter(|class| is_argument_error(*class)).map(recorded_error),
    };
    Some(StepError { class: call.error.unwrap_or(default_error.class), ..default_error })
}

fn step_refusal(number: usize, step: &ProgramStep, text: &str) -> BackendError {
    let call = &step.call;
    let text = format!("step {number}, MPI_{} at {} ns: {text}", call.function.name(), call.begin_ns);
    BackendError::new("replay", "", FailureCause::Unsupported, text)
}
