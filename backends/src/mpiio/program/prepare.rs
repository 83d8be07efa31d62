//! Prepares steps as calls: every number resolved, every address checked.

use std::ffi::CString;

use beff_ffi::replay::{DataCall, DataFunction, TypeHandle};
use beff_trace::{AccessForm, Call, Completion, Direction, ErrorClass, Function, Role};

use super::objects::{MpiObjects, SpanPair};
use super::prepared_call::{AccessRange, ManagementCall, PreparedCall, RequestList};
use crate::error::{BackendError, FailureCause, Result};
use crate::program::memory::{MemoryArea, ProgramMemory};
use crate::program::slot_numbers::{SlotNumbers, NO_SLOT};
use crate::program::ProgramStep;

#[derive(Debug, Default)]
pub(super) struct CallList {
    pub(super) calls: Vec<PreparedCall>,
    pub(super) lists: Vec<RequestList>,
    /// Slots of the lists.
    pub(super) slots: Vec<u32>,
    pub(super) completion_buffers: Vec<Vec<Completion>>,
    pub(super) representations: Vec<CString>,
    /// Requests of the longest list.
    pub(super) longest_list: usize,
    requests: SlotNumbers<u64>,
    files: SlotNumbers<u32>,
    /// Bytes requested by the read in each slot.
    requested_bytes: Vec<u64>,
    /// Bytes requested by the split collective read on each file.
    split_requested_bytes: Vec<u64>,
    completion_buffers_used: usize,
}

/// Open MPI 4.1 never completes a nonblocking or split collective read that the end of the file cuts off.
fn short_reads_never_complete() -> bool {
    beff_ffi::built_with().starts_with("Open MPI")
}

/// MPICH 4.0 queries ROMIO in every MPI_Testall for all requests of the list, also complete ones: these are completed twice, and
/// the library aborts. MPI_Testsome removes complete requests from the list at once.
fn testall_aborts() -> bool {
    !beff_ffi::built_with().starts_with("Open MPI")
}

/// Extends the list with zeros as needed.
fn set_at(list: &mut Vec<u64>, place: u32, number: u64) {
    let place = place as usize;
    if list.len() <= place {
        list.resize(place + 1, 0);
    }
    list[place] = number;
}

impl CallList {
    /// Number of slots of requests and of files.
    pub(super) fn capacity(&self) -> (usize, usize) {
        (self.requests.bound(), self.files.bound())
    }

    /// Replaces the previous steps.
    pub(super) fn prepare(
        &mut self,
        steps: &[ProgramStep],
        handles: &mut MpiObjects,
        memory: &ProgramMemory,
    ) -> Result<()> {
        self.calls.clear();
        self.lists.clear();
        self.slots.clear();
        self.representations.clear();
        self.completion_buffers_used = 0;
        self.calls.reserve(steps.len());
        for (number, step) in steps.iter().enumerate() {
            let ready = self.step(step, handles, memory).map_err(|e| with_step(e, number, &step.call, handles))?;
            self.calls.push(ready);
        }
        Ok(())
    }

    fn step(&mut self, step: &ProgramStep, handles: &mut MpiObjects, memory: &ProgramMemory) -> Result<PreparedCall> {
        let call = &step.call;
        match call.function.role() {
            Role::Data { direction, form, .. } => self.data(step, direction, form, handles, memory),
            Role::File { .. } => self.manage(call, handles),
            Role::Request => Ok(self.request(call)),
            Role::Program if call.function == Function::CreateErrhandler => {
                Ok(PreparedCall::Manage { file: NO_SLOT, call: ManagementCall::CreateErrhandler })
            }
            Role::Program | Role::Posix => Ok(PreparedCall::Skip),
        }
    }

    /// Slot of the file of a call, if it was opened.
    fn file(&self, call: &Call) -> Option<u32> {
        self.files.get(&call.handle?)
    }

    fn data(
        &mut self,
        step: &ProgramStep,
        direction: Direction,
        form: AccessForm,
        handles: &mut MpiObjects,
        memory: &ProgramMemory,
    ) -> Result<PreparedCall> {
        let call = &step.call;
        let count = call.count.unwrap_or(0);
        let Some(function) = DataFunction::new(call.function, call.large_count, count) else {
            return Err(unsupported(super::unsupported::unsupported_reason(call).unwrap_or("no such function")));
        };
        let (datatype, span) = handles.datatype(call.datatype)?;
        if (count < 0 || (span.is_none() && form != AccessForm::End)) && call.error.is_none() {
            return Err(unsupported("a negative count, or no type, in a call that succeeded"));
        }
        let (at, touched) = access_address(step.memory_at, count, span, direction, memory)?;
        let offset = call.offset.unwrap_or(0);
        let ready = DataCall { function, memory: at, datatype, offset };
        // A request without a file is a failed one.
        let slot = call.request.map_or(NO_SLOT, |number| self.requests.assign(number));
        let file = self.file(call);
        let asked = match (direction, span, u64::try_from(count)) {
            (Direction::Read, Some([span, _]), Ok(count)) => span.size_bytes.saturating_mul(count),
            _ => 0,
        };
        set_at(&mut self.requested_bytes, slot, asked);
        let Some(file) = file else { return Ok(unopened_file()) };
        if form == AccessForm::Begin {
            set_at(&mut self.split_requested_bytes, file, asked);
        }
        let begun = self.split_requested_bytes.get(file as usize).copied().unwrap_or(0);
        if form == AccessForm::End && call.bytes.is_some_and(|bytes| bytes < begun) && short_reads_never_complete() {
            return Ok(PreparedCall::SkipSplitEnd { file });
        }
        Ok(match form {
            AccessForm::Blocking => PreparedCall::Blocking { call: ready, file },
            AccessForm::Nonblocking => PreparedCall::Nonblocking { call: ready, file, slot, lands: touched },
            AccessForm::Begin => PreparedCall::Begin { call: ready, file, lands: touched },
            AccessForm::End => PreparedCall::End { call: ready, file },
        })
    }

    fn manage(&mut self, call: &Call, handles: &mut MpiObjects) -> Result<PreparedCall> {
        let known = self.file(call);
        let prepared = self.manage_call(call, handles)?;
        let file = match (prepared, call.handle) {
            (ManagementCall::Open { .. }, Some(handle)) => self.files.assign(handle),
            (ManagementCall::Open { .. }, None) => return Err(unsupported("an open without a number for its file")),
            (ManagementCall::Close, Some(handle)) if call.error.is_none() => {
                self.files.remove(&handle);
                known.unwrap_or(NO_SLOT)
            }
            _ => known.unwrap_or(NO_SLOT),
        };
        if file == NO_SLOT && prepared.needs_file() {
            return Ok(unopened_file());
        }
        Ok(PreparedCall::Manage { file, call: prepared })
    }

    fn manage_call(&mut self, call: &Call, handles: &mut MpiObjects) -> Result<ManagementCall> {
        let offset = call.offset.unwrap_or(0);
        let name = |handles: &MpiObjects| match call.file {
            Some(file) => handles.check_name(file),
            None => Err(unsupported("the file is not named")),
        };
        let whence = || call.whence.ok_or_else(|| unsupported("a seek without `whence`"));
        let flag = || call.flag.ok_or_else(|| unsupported("an atomicity without `flag`"));
        let info = handles.check_info(call.info)?;
        Ok(match call.function {
            Function::Open => {
                let comm = call.comm.map(|comm| handles.check_comm(comm)).transpose()?;
                ManagementCall::Open { comm, name: name(handles)?, amode: call.amode.unwrap_or_default(), info }
            }
            Function::Close => ManagementCall::Close,
            Function::Delete => ManagementCall::Delete { name: name(handles)?, info },
            Function::SetSize => ManagementCall::SetSize(offset),
            Function::Preallocate => ManagementCall::Preallocate(offset),
            Function::GetSize => ManagementCall::GetSize,
            Function::GetGroup => ManagementCall::GetGroup,
            Function::GetAmode => ManagementCall::GetAmode,
            Function::SetInfo => ManagementCall::SetInfo(info),
            Function::GetInfo => ManagementCall::GetInfo,
            Function::SetView => {
                let (etype, filetype) =
                    (datatype_handle(call, call.etype, handles)?, datatype_handle(call, call.filetype, handles)?);
                let name = self.representation(call.name.as_deref())?;
                ManagementCall::SetView { displacement: offset, etype, filetype, name, info }
            }
            Function::GetView => ManagementCall::GetView,
            Function::Seek => ManagementCall::Seek(offset, whence()?),
            Function::SeekShared => ManagementCall::SeekShared(offset, whence()?),
            Function::GetPosition => ManagementCall::GetPosition,
            Function::GetPositionShared => ManagementCall::GetPositionShared,
            Function::GetByteOffset => ManagementCall::GetByteOffset(offset),
            Function::GetTypeExtent => ManagementCall::GetTypeExtent {
                datatype: datatype_handle(call, call.datatype, handles)?,
                large: call.large_count,
            },
            Function::SetAtomicity => ManagementCall::SetAtomicity(flag()?),
            Function::GetAtomicity => ManagementCall::GetAtomicity,
            Function::Sync => ManagementCall::Sync,
            Function::SetErrhandler => ManagementCall::SetErrhandler,
            Function::GetErrhandler => ManagementCall::GetErrhandler,
            Function::CallErrhandler => ManagementCall::CallErrhandler,
            _ => return Err(unsupported("no call with a file")),
        })
    }

    fn representation(&mut self, name: Option<&str>) -> Result<u32> {
        let name =
            CString::new(name.unwrap_or("native")).map_err(|_| unsupported("a data representation with a NUL byte"))?;
        let known = self.representations.iter().position(|other| *other == name);
        let at = known.unwrap_or_else(|| {
            self.representations.push(name);
            self.representations.len() - 1
        });
        // Fewer than steps.
        Ok(at as u32)
    }

    fn request(&mut self, call: &Call) -> PreparedCall {
        let function = call.function;
        let gone = function == Function::RequestFree && call.error.is_none();
        let stays = matches!(
            function,
            Function::RequestGetStatus
                | Function::RequestGetStatusAny
                | Function::RequestGetStatusAll
                | Function::RequestGetStatusSome
        );
        // Query calls list no completions: they are recorded if they found one, or failed.
        let found = stays && call.flag != Some(false) && call.error.is_none();
        let expects = !call.completions.is_empty() || found;
        let begin = self.slots.len();
        let slot = |number| self.requests.get(number).unwrap_or(NO_SLOT);
        self.slots.extend(call.requests.iter().map(slot));
        let middle = self.slots.len();
        self.slots.extend(call.completions.iter().map(|done| slot(&done.request)));
        let end = self.slots.len();
        let one = self.slots[begin..middle].first().copied().unwrap_or(NO_SLOT);
        let asked =
            self.slots[middle..end].iter().map(|slot| self.requested_bytes.get(*slot as usize).copied().unwrap_or(0));
        let short = call.completions.iter().zip(asked).any(|(done, asked)| done.bytes.is_some_and(|got| got < asked));
        let endless = short && short_reads_never_complete();
        let one_by_one = function == Function::Testall && middle - begin > 1 && testall_aborts();
        let function = if endless || one_by_one { polling_variant(function) } else { function };
        let completed = call.completions.iter().map(|done| &done.request).filter(|_| !stays);
        for number in completed.chain(call.requests.iter().filter(|_| gone)) {
            self.requests.remove(number);
        }
        let buffer = self.completion_buffer(&call.completions);
        match function {
            Function::Wait | Function::Test | Function::RequestFree | Function::Cancel | Function::RequestGetStatus => {
                self.slots.truncate(begin);
                PreparedCall::OnRequest { function, slot: one, expects, endless, room: buffer }
            }
            _ => {
                self.longest_list = self.longest_list.max(middle - begin);
                let (slots, recorded) = (begin..middle, middle..end);
                self.lists.push(RequestList {
                    function,
                    slots,
                    recorded_slots: recorded,
                    found_when_recorded: expects,
                    never_completes: endless,
                    completion_buffer: buffer,
                });
                // Fewer than steps.
                PreparedCall::OnList((self.lists.len() - 1) as u32)
            }
        }
    }

    /// Index of a buffer with the numbers of the recorded completions.
    fn completion_buffer(&mut self, recorded: &[Completion]) -> u32 {
        if self.completion_buffers_used == self.completion_buffers.len() {
            self.completion_buffers.push(Vec::new());
        }
        let buffer = &mut self.completion_buffers[self.completion_buffers_used];
        buffer.clear();
        buffer.extend(recorded.iter().map(|done| Completion { bytes: None, error: None, ..*done }));
        self.completion_buffers_used += 1;
        (self.completion_buffers_used - 1) as u32
    }
}

/// The equivalent call that does not wait.
fn polling_variant(function: Function) -> Function {
    match function {
        Function::Wait => Function::Test,
        Function::Waitall | Function::Waitany | Function::Waitsome | Function::Testall => Function::Testsome,
        other => other,
    }
}

/// A call on a file that was never opened.
fn unopened_file() -> PreparedCall {
    PreparedCall::Fail(ErrorClass::from_name("MPI_ERR_FILE").unwrap_or(ErrorClass::OTHER))
}

fn unsupported(text: &str) -> BackendError {
    BackendError::new("replay", "", FailureCause::Unsupported, text)
}

fn with_step(mut error: BackendError, number: usize, call: &Call, handles: &MpiObjects) -> BackendError {
    error.operation = call.function.name();
    if let Some(path) = call.file.and_then(|file| handles.paths.get(file as usize)) {
        error.path = path.into();
    }
    error.text = format!("step {number}, recorded at {} ns: {}", call.begin_ns, error.text);
    error
}

/// The type of a call, or the null type in a call that failed.
fn datatype_handle(call: &Call, number: Option<u32>, handles: &mut MpiObjects) -> Result<TypeHandle> {
    if number.is_none() && call.error.is_none() {
        return Err(unsupported("no type in a call that succeeded"));
    }
    Ok(handles.datatype(number)?.0)
}

/// Address for MPI, and memory range of the access, which must lie in the area.
fn access_address(
    memory_at: u64,
    count: i64,
    spans: Option<SpanPair>,
    direction: Direction,
    memory: &ProgramMemory,
) -> Result<(*mut u8, AccessRange)> {
    let (area, bytes) = match direction {
        Direction::Read => (memory.landing_at(), memory.landing_bytes()),
        // Writes only read from it.
        Direction::Write => (memory.source_at().cast_mut(), memory.source_bytes()),
    };
    // Absolute addresses in types yield one before the area; two's complement is correct for them.
    let address = area.wrapping_offset(memory_at as isize);
    let (Some(spans), Ok(count)) = (spans, u64::try_from(count)) else { return Ok((address, AccessRange::default())) };
    let beyond = || unsupported("the type extends beyond 63 bits");
    let (a, b) = (spans[0].byte_range(count).ok_or_else(beyond)?, spans[1].byte_range(count).ok_or_else(beyond)?);
    let (first, end) = (a.0.min(b.0), a.1.max(b.1));
    if first == end {
        return Ok((address, AccessRange::default()));
    }
    let at = memory_at as i64;
    let (first, end) = (at.checked_add(first).ok_or_else(beyond)?, at.checked_add(end).ok_or_else(beyond)?);
    match (u64::try_from(first), u64::try_from(end)) {
        (Ok(first), Ok(end)) if first <= end && end <= bytes => {
            Ok((address, AccessRange { area: MemoryArea::of(direction), begin: first, end }))
        }
        _ => Err(unsupported(&format!("bytes {first} to {end} are outside the area of {bytes} bytes"))),
    }
}
