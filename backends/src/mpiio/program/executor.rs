//! Executes the calls that move data and those that manage files.

use beff_ffi::replay::{file, DataCall, FileHandle, OpenParameters, Request, ReturnCode, Status, TimedCall};
use beff_trace::ErrorClass;

use super::files::{FileEntry, SplitAccess};
use super::objects::MpiObjects;
use super::prepared_call::{AccessRange, ManagementCall};
use super::requests::RequestTable;
use crate::crash::note_file;
use crate::program::StepOutcome;

/// Fields are dropped in this order: pending requests first, the objects they were started with last.
pub(super) struct CallExecutor {
    pub(super) requests: RequestTable,
    pub(super) files: Vec<FileEntry>,
    pub(super) objects: MpiObjects,
    /// Number of files opened by each communicator.
    pub(super) open_counts: Vec<u64>,
}

pub(super) fn record_call(timed: TimedCall, outcome: &mut StepOutcome) -> ReturnCode {
    outcome.begin_ns = timed.begin_ns;
    outcome.end_ns = timed.end_ns;
    outcome.error = timed.code.class();
    timed.code
}

pub(super) fn skip_call(error: Option<ErrorClass>, outcome: &mut StepOutcome) -> ReturnCode {
    let now = beff_ffi::replay::now_ns();
    (outcome.begin_ns, outcome.end_ns, outcome.error) = (now, now, error);
    ReturnCode::SUCCESS
}

pub(super) fn skip_unopened(outcome: &mut StepOutcome) -> ReturnCode {
    skip_call(ErrorClass::from_name("MPI_ERR_FILE"), outcome)
}

impl CallExecutor {
    fn file(&self, place: u32) -> Option<&FileHandle> {
        let entry = self.files.get(place as usize)?;
        note_file(entry.name.map_or(usize::MAX, |name| name as usize));
        Some(&entry.file).filter(|file| file.is_open())
    }

    pub(super) fn blocking(&mut self, call: &DataCall, place: u32, outcome: &mut StepOutcome) -> ReturnCode {
        let Some(file) = self.file(place) else { return skip_unopened(outcome) };
        let (mut status, mut request) = (Status::empty(), Request::null());
        // SAFETY: an open file; the type lives in `handles`; the memory it accesses was checked to lie in an area of `flight`,
        // which is only read for a write and lent to nobody during this exclusive borrow.
        let timed = unsafe { call.issue(file, &mut status, &mut request) };
        let code = record_call(timed, outcome);
        if code.is_success() {
            outcome.bytes = status.bytes();
        }
        code
    }

    pub(super) fn nonblocking(
        &mut self,
        call: &DataCall,
        (place, slot): (u32, u32),
        lands: AccessRange,
        outcome: &mut StepOutcome,
    ) -> ReturnCode {
        let Some(file) = self.file(place) else {
            self.requests.insert_failed(slot, ErrorClass::from_name("MPI_ERR_REQUEST"));
            return skip_unopened(outcome);
        };
        let mut request = Request::null();
        // SAFETY: as in `blocking`; the request is stored in `flight`, which owns the memory, lends no part of it that is in use,
        // and waits for the request before the memory is freed.
        let timed = unsafe { call.issue(file, &mut Status::empty(), &mut request) };
        let code = record_call(timed, outcome);
        if request.is_pending() {
            let landing = lands.range().map(|part| self.requests.memory().begin_access(lands.area, part));
            self.requests.insert(slot, request, landing);
        } else {
            self.requests.insert_failed(slot, code.class());
        }
        code
    }

    pub(super) fn begin(
        &mut self,
        call: &DataCall,
        place: u32,
        lands: AccessRange,
        outcome: &mut StepOutcome,
    ) -> ReturnCode {
        let Some(file) = self.file(place) else { return skip_unopened(outcome) };
        // SAFETY: as in `nonblocking`: the memory is kept until the call that ends it, and leaked if there is none.
        let timed = unsafe { call.issue(file, &mut Status::empty(), &mut Request::null()) };
        let code = record_call(timed, outcome);
        if code.is_success() {
            let landing = lands.range().map(|part| self.requests.memory().begin_access(lands.area, part));
            let split = SplitAccess { memory: call.memory, access: landing };
            if self.files[place as usize].split.replace(split).is_some() {
                self.requests.leak_memory();
            }
        }
        code
    }

    pub(super) fn end(&mut self, call: &DataCall, place: u32, outcome: &mut StepOutcome) -> ReturnCode {
        // Without a begin call some libraries would dereference a null pointer.
        let Some(it) = self.files.get_mut(place as usize).filter(|it| it.file.is_open()) else {
            return skip_unopened(outcome);
        };
        let Some(split) = it.split.take() else {
            return skip_call(ErrorClass::from_name("MPI_ERR_IO"), outcome);
        };
        let (mut status, call) = (Status::empty(), DataCall { memory: split.memory, ..*call });
        // SAFETY: an open file on which a split collective call with this memory was started and not yet ended.
        let timed = unsafe { call.issue(&it.file, &mut status, &mut Request::null()) };
        let code = record_call(timed, outcome);
        if code.is_success() {
            outcome.bytes = status.bytes();
            if let Some(landing) = split.access {
                self.requests.memory().end_access(landing);
            }
        } else {
            // Whether it has ended is unknown.
            self.requests.leak_memory();
        }
        code
    }

    /// For the end of a split collective read that the library would never complete.
    pub(super) fn skip_split_end(&mut self, place: u32, outcome: &mut StepOutcome) -> ReturnCode {
        let split = self.files.get_mut(place as usize).and_then(|it| it.split.take());
        if split.is_none() {
            return skip_unopened(outcome);
        }
        self.requests.leak_memory();
        skip_call(ErrorClass::from_name("MPI_ERR_PENDING"), outcome)
    }

    fn open(&mut self, place: u32, call: ManagementCall, outcome: &mut StepOutcome) -> ReturnCode {
        let ManagementCall::Open { comm, name, amode, info } = call else { return ReturnCode::SUCCESS };
        let Self { objects: handles, files, open_counts: opened, .. } = self;
        note_file(name as usize);
        let path = handles.safe_name(name);
        let by = comm.and_then(|number| handles.comms().get(number as usize)).and_then(Option::as_ref);
        let (file, timed) = FileHandle::open(&OpenParameters { comm: by, path, amode, info: handles.info(info) });
        if let Some(count) = comm.and_then(|number| opened.get_mut(number as usize)) {
            *count += 1;
            let new =
                FileEntry { file, split: None, open_order: (comm.unwrap_or(u32::MAX), *count - 1), name: Some(name) };
            if files[place as usize].split.is_some() {
                self.requests.leak_memory();
            }
            files[place as usize] = new;
        }
        record_call(timed, outcome)
    }

    /// `representations` are those of the views.
    pub(super) fn manage(
        &mut self,
        place: u32,
        call: ManagementCall,
        representations: &[std::ffi::CString],
        outcome: &mut StepOutcome,
    ) -> ReturnCode {
        let none = FileHandle::null();
        if matches!(call, ManagementCall::Open { .. }) {
            return self.open(place, call, outcome);
        }
        if matches!(call, ManagementCall::Close) {
            return self.close(place, outcome);
        }
        let file = match self.file(place) {
            Some(file) => file,
            None if call.needs_file() => return skip_unopened(outcome),
            None => &none,
        };
        let handles = &self.objects;
        let mut answer = |(timed, number): (TimedCall, i64)| {
            outcome.number = timed.code.is_success().then_some(number);
            timed
        };
        let timed = match call {
            ManagementCall::Open { .. } | ManagementCall::Close => TimedCall::default(),
            ManagementCall::Delete { name, info } => file::delete(handles.safe_name(name), handles.info(info)),
            ManagementCall::SetSize(bytes) => file.set_size(bytes),
            ManagementCall::Preallocate(bytes) => file.preallocate(bytes),
            ManagementCall::GetSize => answer(file.get_size()),
            ManagementCall::GetGroup => file.get_group(),
            ManagementCall::GetAmode => file.get_amode(),
            ManagementCall::SetInfo(info) => file.set_info(handles.info(info)),
            ManagementCall::GetInfo => file.get_info().0,
            ManagementCall::SetView { displacement, etype, filetype, name, info } => {
                let name = representations.get(name as usize).map_or(c"native", |name| name.as_c_str());
                // SAFETY: the types live in `handles`.
                unsafe { file.set_view(displacement, etype, filetype, name, handles.info(info)) }
            }
            ManagementCall::GetView => file.get_view().0,
            ManagementCall::Seek(offset, whence) => file.seek(offset, whence),
            ManagementCall::SeekShared(offset, whence) => file.seek_shared(offset, whence),
            ManagementCall::GetPosition => answer(file.get_position()),
            ManagementCall::GetPositionShared => answer(file.get_position_shared()),
            ManagementCall::GetByteOffset(offset) => answer(file.get_byte_offset(offset)),
            ManagementCall::GetTypeExtent { datatype, large } => {
                // SAFETY: the type lives in `objects`.
                answer(unsafe { file.get_type_extent(datatype, large) })
            }
            ManagementCall::SetAtomicity(atomic) => file.set_atomicity(atomic),
            ManagementCall::GetAtomicity => {
                let (timed, atomic) = file.get_atomicity();
                answer((timed, i64::from(atomic)))
            }
            ManagementCall::Sync => file.sync(),
            ManagementCall::CreateErrhandler => file::create_errhandler(),
            ManagementCall::SetErrhandler => file.set_errhandler(),
            ManagementCall::GetErrhandler => file.get_errhandler(),
            ManagementCall::CallErrhandler => file.call_errhandler(),
        };
        record_call(timed, outcome)
    }

    fn close(&mut self, place: u32, outcome: &mut StepOutcome) -> ReturnCode {
        let Some(it) = self.files.get_mut(place as usize).filter(|it| it.file.is_open()) else {
            return skip_unopened(outcome);
        };
        if it.split.take().is_some() {
            // Never ended: its part of the landing area stays in use.
            self.requests.leak_memory();
        }
        record_call(it.file.close(), outcome)
    }
}
