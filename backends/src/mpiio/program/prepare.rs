//! From steps to calls that are ready: every number looked up, every address checked.

use std::ffi::CString;

use beff_ffi::replay::{DataCall, DataFunction, TypeHandle};
use beff_trace::{Call, Completion, Direction, ErrorClass, Form, Function, Role};

use super::ready::{Lands, List, Manage, Ready};
use super::tables::{Handles, Spans};
use crate::error::{BackendError, Cause, Result};
use crate::program::memory::{Area, Memory};
use crate::program::numbers::{Numbers, NOBODY};
use crate::program::Step;

/// The steps made ready, and which slot and which place belongs to what is pending and open.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) ready: Vec<Ready>,
    pub(super) lists: Vec<List>,
    /// Slots of the lists.
    pub(super) slots: Vec<u32>,
    /// Room for the completions of a step.
    pub(super) rooms: Vec<Vec<Completion>>,
    /// Representations of views.
    pub(super) representations: Vec<CString>,
    /// Requests of the longest list.
    pub(super) longest: usize,
    requests: Numbers<u64>,
    files: Numbers<u32>,
    /// Bytes that the read in each slot asked for.
    asked: Vec<u64>,
    /// Bytes that the split collective read on each file asked for.
    asked_of_split: Vec<u64>,
    rooms_used: usize,
}

/// Open MPI 4.1 never completes a non-blocking or split collective read that the end of the file cuts off.
fn short_reads_are_endless() -> bool {
    beff_ffi::built_with().starts_with("Open MPI")
}

/// MPICH 4.0 asks ROMIO about each request of the list in every MPI_Testall, also about those that were complete before: these are
/// completed twice, and the library aborts. MPI_Testsome takes what is complete out of the list at once.
fn tests_of_all_abort() -> bool {
    !beff_ffi::built_with().starts_with("Open MPI")
}

/// Puts a number at a place, with zeros before it.
fn put(list: &mut Vec<u64>, place: u32, number: u64) {
    let place = place as usize;
    if list.len() <= place {
        list.resize(place + 1, 0);
    }
    list[place] = number;
}

impl Plan {
    /// Places of requests, and of files.
    pub(super) fn room(&self) -> (usize, usize) {
        (self.requests.len(), self.files.len())
    }

    /// Makes steps ready in the place of those before.
    pub(super) fn make(&mut self, steps: &[Step], handles: &mut Handles, memory: &Memory) -> Result<()> {
        self.ready.clear();
        self.lists.clear();
        self.slots.clear();
        self.representations.clear();
        self.rooms_used = 0;
        self.ready.reserve(steps.len());
        for (number, step) in steps.iter().enumerate() {
            let ready = self.step(step, handles, memory).map_err(|e| of_step(e, number, &step.call, handles))?;
            self.ready.push(ready);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, handles: &mut Handles, memory: &Memory) -> Result<Ready> {
        let call = &step.call;
        match call.function.role() {
            Role::Data { direction, form, .. } => self.data(step, direction, form, handles, memory),
            Role::File { .. } => self.manage(call, handles),
            Role::Request => Ok(self.request(call)),
            Role::Program if call.function == Function::CreateErrhandler => {
                Ok(Ready::Manage { file: NOBODY, call: Manage::CreateErrhandler })
            }
            Role::Program => Ok(Ready::Nothing),
        }
    }

    /// The place of the file of a call, if it was opened.
    fn file(&self, call: &Call) -> Option<u32> {
        self.files.get(&call.handle?)
    }

    fn data(
        &mut self,
        step: &Step,
        direction: Direction,
        form: Form,
        handles: &mut Handles,
        memory: &Memory,
    ) -> Result<Ready> {
        let call = &step.call;
        let count = call.count.unwrap_or(0);
        let Some(function) = DataFunction::of(call.function, call.large, count) else {
            return Err(refused(super::unable::unable(call).unwrap_or("no such function")));
        };
        let (datatype, span) = handles.datatype(call.datatype)?;
        if (count < 0 || (span.is_none() && form != Form::End)) && call.error.is_none() {
            return Err(refused("a count below 0, or no type, in a call that succeeded"));
        }
        let (at, touched) = place(step.memory_at, count, span, direction, memory)?;
        let offset = call.offset.unwrap_or(0);
        let ready = DataCall { function, memory: at, datatype, offset };
        // Requests count also where there is no file: then they are failed ones.
        let slot = call.request.map_or(NOBODY, |number| self.requests.give(number));
        let file = self.file(call);
        let asked = match (direction, span, u64::try_from(count)) {
            (Direction::Read, Some([span, _]), Ok(count)) => span.size_bytes.saturating_mul(count),
            _ => 0,
        };
        put(&mut self.asked, slot, asked);
        let Some(file) = file else { return Ok(no_file()) };
        if form == Form::Begin {
            put(&mut self.asked_of_split, file, asked);
        }
        let begun = self.asked_of_split.get(file as usize).copied().unwrap_or(0);
        if form == Form::End && call.bytes.is_some_and(|bytes| bytes < begun) && short_reads_are_endless() {
            return Ok(Ready::Endless { file });
        }
        Ok(match form {
            Form::Blocking => Ready::Blocking { call: ready, file },
            Form::Nonblocking => Ready::Nonblocking { call: ready, file, slot, lands: touched },
            Form::Begin => Ready::Begin { call: ready, file, lands: touched },
            Form::End => Ready::End { call: ready, file },
        })
    }

    fn manage(&mut self, call: &Call, handles: &mut Handles) -> Result<Ready> {
        let known = self.file(call);
        let made = self.manage_call(call, handles)?;
        let file = match (made, call.handle) {
            (Manage::Open { .. }, Some(handle)) => self.files.give(handle),
            (Manage::Open { .. }, None) => return Err(refused("an open without a number for its file")),
            (Manage::Close, Some(handle)) if call.error.is_none() => {
                self.files.end(&handle);
                known.unwrap_or(NOBODY)
            }
            _ => known.unwrap_or(NOBODY),
        };
        if file == NOBODY && made.needs_file() {
            return Ok(no_file());
        }
        Ok(Ready::Manage { file, call: made })
    }

    fn manage_call(&mut self, call: &Call, handles: &mut Handles) -> Result<Manage> {
        let offset = call.offset.unwrap_or(0);
        let name = |handles: &Handles| match call.file {
            Some(file) => handles.check_name(file),
            None => Err(refused("the file is not named")),
        };
        let whence = || call.whence.ok_or_else(|| refused("a seek without `whence`"));
        let flag = || call.flag.ok_or_else(|| refused("an atomicity without `flag`"));
        let info = handles.check_info(call.info)?;
        Ok(match call.function {
            Function::Open => {
                let comm = call.comm.map(|comm| handles.check_comm(comm)).transpose()?;
                Manage::Open { comm, name: name(handles)?, amode: call.amode.unwrap_or_default(), info }
            }
            Function::Close => Manage::Close,
            Function::Delete => Manage::Delete { name: name(handles)?, info },
            Function::SetSize => Manage::SetSize(offset),
            Function::Preallocate => Manage::Preallocate(offset),
            Function::GetSize => Manage::GetSize,
            Function::GetGroup => Manage::GetGroup,
            Function::GetAmode => Manage::GetAmode,
            Function::SetInfo => Manage::SetInfo(info),
            Function::GetInfo => Manage::GetInfo,
            Function::SetView => {
                let (etype, filetype) = (type_of(call, call.etype, handles)?, type_of(call, call.filetype, handles)?);
                let name = self.representation(call.name.as_deref())?;
                Manage::SetView { displacement: offset, etype, filetype, name, info }
            }
            Function::GetView => Manage::GetView,
            Function::Seek => Manage::Seek(offset, whence()?),
            Function::SeekShared => Manage::SeekShared(offset, whence()?),
            Function::GetPosition => Manage::GetPosition,
            Function::GetPositionShared => Manage::GetPositionShared,
            Function::GetByteOffset => Manage::GetByteOffset(offset),
            Function::GetTypeExtent => {
                Manage::GetTypeExtent { datatype: type_of(call, call.datatype, handles)?, large: call.large }
            }
            Function::SetAtomicity => Manage::SetAtomicity(flag()?),
            Function::GetAtomicity => Manage::GetAtomicity,
            Function::Sync => Manage::Sync,
            Function::SetErrhandler => Manage::SetErrhandler,
            Function::GetErrhandler => Manage::GetErrhandler,
            Function::CallErrhandler => Manage::CallErrhandler,
            _ => return Err(refused("no call with a file")),
        })
    }

    fn representation(&mut self, name: Option<&str>) -> Result<u32> {
        let name =
            CString::new(name.unwrap_or("native")).map_err(|_| refused("a data representation with a NUL byte"))?;
        let known = self.representations.iter().position(|other| *other == name);
        let at = known.unwrap_or_else(|| {
            self.representations.push(name);
            self.representations.len() - 1
        });
        // Fewer than steps.
        Ok(at as u32)
    }

    fn request(&mut self, call: &Call) -> Ready {
        let function = call.function;
        let gone = function == Function::RequestFree && call.error.is_none();
        let stays = matches!(
            function,
            Function::RequestGetStatus
                | Function::RequestGetStatusAny
                | Function::RequestGetStatusAll
                | Function::RequestGetStatusSome
        );
        // Calls that only ask name no completions: they are recorded where they found something, or failed.
        let found = stays && call.flag != Some(false) && call.error.is_none();
        let expects = !call.completions.is_empty() || found;
        let begin = self.slots.len();
        let slot = |number| self.requests.get(number).unwrap_or(NOBODY);
        self.slots.extend(call.requests.iter().map(slot));
        let middle = self.slots.len();
        self.slots.extend(call.completions.iter().map(|done| slot(&done.request)));
        let end = self.slots.len();
        let one = self.slots[begin..middle].first().copied().unwrap_or(NOBODY);
        let asked = self.slots[middle..end].iter().map(|slot| self.asked.get(*slot as usize).copied().unwrap_or(0));
        let short = call.completions.iter().zip(asked).any(|(done, asked)| done.bytes.is_some_and(|got| got < asked));
        let endless = short && short_reads_are_endless();
        let one_by_one = function == Function::Testall && middle - begin > 1 && tests_of_all_abort();
        let function = if endless || one_by_one { asking_instead(function) } else { function };
        let completed = call.completions.iter().map(|done| &done.request).filter(|_| !stays);
        for number in completed.chain(call.requests.iter().filter(|_| gone)) {
            self.requests.end(number);
        }
        let room = self.completions(&call.completions);
        match function {
            Function::Wait | Function::Test | Function::RequestFree | Function::Cancel | Function::RequestGetStatus => {
                self.slots.truncate(begin);
                Ready::One { function, slot: one, expects, endless, room }
            }
            _ => {
                self.longest = self.longest.max(middle - begin);
                let (slots, recorded) = (begin..middle, middle..end);
                self.lists.push(List { function, slots, recorded, expects, endless, room });
                // Fewer than steps.
                Ready::List((self.lists.len() - 1) as u32)
            }
        }
    }

    /// Room for the recorded completions, with their numbers in it.
    fn completions(&mut self, recorded: &[Completion]) -> u32 {
        if self.rooms_used == self.rooms.len() {
            self.rooms.push(Vec::new());
        }
        let room = &mut self.rooms[self.rooms_used];
        room.clear();
        room.extend(recorded.iter().map(|done| Completion { bytes: None, error: None, ..*done }));
        self.rooms_used += 1;
        (self.rooms_used - 1) as u32
    }
}

/// What asks for the same and does not wait.
fn asking_instead(function: Function) -> Function {
    match function {
        Function::Wait => Function::Test,
        Function::Waitall | Function::Waitany | Function::Waitsome | Function::Testall => Function::Testsome,
        other => other,
    }
}

/// What a call on a file that was never opened comes to.
fn no_file() -> Ready {
    Ready::Refused(ErrorClass::named("MPI_ERR_FILE").unwrap_or(ErrorClass::OTHER))
}

fn refused(text: &str) -> BackendError {
    BackendError::new("replay", "", Cause::Unsupported, text)
}

/// Says which call it was.
fn of_step(mut error: BackendError, number: usize, call: &Call, handles: &Handles) -> BackendError {
    error.operation = call.function.name();
    if let Some(path) = call.file.and_then(|file| handles.paths.get(file as usize)) {
        error.path = path.into();
    }
    error.text = format!("step {number}, recorded at {} ns: {}", call.begin_ns, error.text);
    error
}

/// A type that a call needs, or the null type in a call that failed.
fn type_of(call: &Call, number: Option<u32>, handles: &mut Handles) -> Result<TypeHandle> {
    if number.is_none() && call.error.is_none() {
        return Err(refused("no type in a call that succeeded"));
    }
    Ok(handles.datatype(number)?.0)
}

/// The address that is given to MPI, and what the access will use. All that is touched lies in the area.
fn place(
    memory_at: u64,
    count: i64,
    spans: Option<Spans>,
    direction: Direction,
    memory: &Memory,
) -> Result<(*mut u8, Lands)> {
    let (area, bytes) = match direction {
        Direction::Read => (memory.landing_at(), memory.landing_bytes()),
        // Writes only read from it.
        Direction::Write => (memory.source_at().cast_mut(), memory.source_bytes()),
    };
    // Types of absolute addresses have their place before the area, so to say: two's complement is right for them.
    let address = area.wrapping_offset(memory_at as isize);
    let (Some(spans), Ok(count)) = (spans, u64::try_from(count)) else { return Ok((address, Lands::default())) };
    let beyond = || refused("the type reaches beyond 63 bits");
    let (a, b) = (spans[0].of(count).ok_or_else(beyond)?, spans[1].of(count).ok_or_else(beyond)?);
    let (first, end) = (a.0.min(b.0), a.1.max(b.1));
    if first == end {
        return Ok((address, Lands::default()));
    }
    let at = memory_at as i64;
    let (first, end) = (at.checked_add(first).ok_or_else(beyond)?, at.checked_add(end).ok_or_else(beyond)?);
    match (u64::try_from(first), u64::try_from(end)) {
        (Ok(first), Ok(end)) if first <= end && end <= bytes => {
            Ok((address, Lands { area: Area::of(direction), begin: first, end }))
        }
        _ => Err(refused(&format!("bytes {first} to {end} lie outside of the area of {bytes} bytes"))),
    }
}
