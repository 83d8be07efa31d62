//! Makes the calls that move data and those that manage files.

use beff_ffi::replay::{file, Code, DataCall, File, Opening, Request, Status, Timed};
use beff_trace::ErrorClass;

use super::flight::Flight;
use super::opened::{Opened, Split};
use super::ready::{Lands, Manage};
use super::tables::Handles;
use crate::program::Outcome;

/// Everything that calls need. Fields are dropped in this order: first what is under way, last what it was begun with.
pub(super) struct Machine {
    pub(super) flight: Flight,
    pub(super) files: Vec<Opened>,
    pub(super) handles: Handles,
    /// Files that the ranks of each communicator have opened together.
    pub(super) opened: Vec<u64>,
}

/// Tells when a call was made and what it returned.
pub(super) fn tell(timed: Timed, outcome: &mut Outcome) -> Code {
    outcome.begin_ns = timed.begin_ns;
    outcome.end_ns = timed.end_ns;
    outcome.error = timed.code.class();
    timed.code
}

/// A call that is not made.
pub(super) fn not_made(error: Option<ErrorClass>, outcome: &mut Outcome) -> Code {
    let now = beff_ffi::replay::now_ns();
    (outcome.begin_ns, outcome.end_ns, outcome.error) = (now, now, error);
    Code::SUCCESS
}

/// A call on a file that is not open.
pub(super) fn no_file(outcome: &mut Outcome) -> Code {
    not_made(ErrorClass::named("MPI_ERR_FILE"), outcome)
}

impl Machine {
    fn file(&self, place: u32) -> Option<&File> {
        self.files.get(place as usize).map(|it| &it.file).filter(|file| file.is_open())
    }

    pub(super) fn blocking(&mut self, call: &DataCall, place: u32, outcome: &mut Outcome) -> Code {
        let Some(file) = self.file(place) else { return no_file(outcome) };
        let (mut status, mut request) = (Status::none(), Request::none());
        // SAFETY: an open file; the type lives in `handles`; what it touches was checked to lie in an area of `flight`, which is
        // only read for a write and lent to nobody while this is borrowed alone.
        let timed = unsafe { call.make(file, &mut status, &mut request) };
        let code = tell(timed, outcome);
        if code.is_success() {
            outcome.bytes = status.bytes();
        }
        code
    }

    pub(super) fn nonblocking(
        &mut self,
        call: &DataCall,
        (place, slot): (u32, u32),
        lands: Lands,
        outcome: &mut Outcome,
    ) -> Code {
        let Some(file) = self.file(place) else {
            self.flight.failed(slot, ErrorClass::named("MPI_ERR_REQUEST"));
            return no_file(outcome);
        };
        let mut request = Request::none();
        // SAFETY: as in `blocking`; the request is given to `flight`, which owns the memory, hands out no part of it that is
        // under way, and waits for the request before the memory goes.
        let timed = unsafe { call.make(file, &mut Status::none(), &mut request) };
        let code = tell(timed, outcome);
        if request.is_pending() {
            let landing = lands.range().map(|part| self.flight.memory().begin(lands.area, part));
            self.flight.begun(slot, request, landing);
        } else {
            self.flight.failed(slot, code.class());
        }
        code
    }

    pub(super) fn begin(&mut self, call: &DataCall, place: u32, lands: Lands, outcome: &mut Outcome) -> Code {
        let Some(file) = self.file(place) else { return no_file(outcome) };
        // SAFETY: as in `nonblocking`: the memory is kept until the call that ends it, and for ever if that never comes.
        let timed = unsafe { call.make(file, &mut Status::none(), &mut Request::none()) };
        let code = tell(timed, outcome);
        if code.is_success() {
            let landing = lands.range().map(|part| self.flight.memory().begin(lands.area, part));
            let split = Split { memory: call.memory, landing };
            if self.files[place as usize].split.replace(split).is_some() {
                self.flight.keep_for_ever();
            }
        }
        code
    }

    pub(super) fn end(&mut self, call: &DataCall, place: u32, outcome: &mut Outcome) -> Code {
        // Without a beginning some libraries would follow a null pointer.
        let Some(it) = self.files.get_mut(place as usize).filter(|it| it.file.is_open()) else {
            return no_file(outcome);
        };
        let Some(split) = it.split.take() else {
            return not_made(ErrorClass::named("MPI_ERR_IO"), outcome);
        };
        let (mut status, call) = (Status::none(), DataCall { memory: split.memory, ..*call });
        // SAFETY: an open file on which a split collective call with this memory was begun and not yet ended.
        let timed = unsafe { call.make(&it.file, &mut status, &mut Request::none()) };
        let code = tell(timed, outcome);
        if code.is_success() {
            outcome.bytes = status.bytes();
            if let Some(landing) = split.landing {
                self.flight.memory().end(landing);
            }
        } else {
            // Nobody knows whether it has ended.
            self.flight.keep_for_ever();
        }
        code
    }

    /// The end of a split collective read that the library would never end.
    pub(super) fn endless(&mut self, place: u32, outcome: &mut Outcome) -> Code {
        let split = self.files.get_mut(place as usize).and_then(|it| it.split.take());
        if split.is_none() {
            return no_file(outcome);
        }
        self.flight.keep_for_ever();
        not_made(ErrorClass::named("MPI_ERR_PENDING"), outcome)
    }

    fn open(&mut self, place: u32, call: Manage, outcome: &mut Outcome) -> Code {
        let Manage::Open { comm, name, amode, info } = call else { return Code::SUCCESS };
        let Self { handles, files, opened, .. } = self;
        let path = handles.safe_name(name);
        let by = comm.and_then(|number| handles.comms().get(number as usize)).and_then(Option::as_ref);
        let (file, timed) = File::open(&Opening { comm: by, path, amode, info: handles.info(info) });
        if let Some(count) = comm.and_then(|number| opened.get_mut(number as usize)) {
            *count += 1;
            let new = Opened { file, split: None, by: (comm.unwrap_or(u32::MAX), *count - 1), name: Some(name) };
            if files[place as usize].split.is_some() {
                self.flight.keep_for_ever();
            }
            files[place as usize] = new;
        }
        tell(timed, outcome)
    }

    /// A call with a file that moves no data. `representations` are those of the views.
    pub(super) fn manage(
        &mut self,
        place: u32,
        call: Manage,
        representations: &[std::ffi::CString],
        outcome: &mut Outcome,
    ) -> Code {
        let none = File::none();
        if matches!(call, Manage::Open { .. }) {
            return self.open(place, call, outcome);
        }
        if matches!(call, Manage::Close) {
            return self.close(place, outcome);
        }
        let file = match self.file(place) {
            Some(file) => file,
            None if call.needs_file() => return no_file(outcome),
            None => &none,
        };
        let handles = &self.handles;
        let mut answer = |(timed, number): (Timed, i64)| {
            outcome.number = timed.code.is_success().then_some(number);
            timed
        };
        let timed = match call {
            Manage::Open { .. } | Manage::Close => Timed::default(),
            Manage::Delete { name, info } => file::delete(handles.safe_name(name), handles.info(info)),
            Manage::SetSize(bytes) => file.set_size(bytes),
            Manage::Preallocate(bytes) => file.preallocate(bytes),
            Manage::GetSize => answer(file.get_size()),
            Manage::GetGroup => file.get_group(),
            Manage::GetAmode => file.get_amode(),
            Manage::SetInfo(info) => file.set_info(handles.info(info)),
            Manage::GetInfo => file.get_info().0,
            Manage::SetView { displacement, etype, filetype, name, info } => {
                let name = representations.get(name as usize).map_or(c"native", |name| name.as_c_str());
                // SAFETY: the types live in `handles`.
                unsafe { file.set_view(displacement, etype, filetype, name, handles.info(info)) }
            }
            Manage::GetView => file.get_view().0,
            Manage::Seek(offset, whence) => file.seek(offset, whence),
            Manage::SeekShared(offset, whence) => file.seek_shared(offset, whence),
            Manage::GetPosition => answer(file.get_position()),
            Manage::GetPositionShared => answer(file.get_position_shared()),
            Manage::GetByteOffset(offset) => answer(file.get_byte_offset(offset)),
            // SAFETY: the type lives in `handles`.
            Manage::GetTypeExtent { datatype, large } => answer(unsafe { file.get_type_extent(datatype, large) }),
            Manage::SetAtomicity(atomic) => file.set_atomicity(atomic),
            Manage::GetAtomicity => {
                let (timed, atomic) = file.get_atomicity();
                answer((timed, i64::from(atomic)))
            }
            Manage::Sync => file.sync(),
            Manage::CreateErrhandler => file::create_errhandler(),
            Manage::SetErrhandler => file.set_errhandler(),
            Manage::GetErrhandler => file.get_errhandler(),
            Manage::CallErrhandler => file.call_errhandler(),
        };
        tell(timed, outcome)
    }

    fn close(&mut self, place: u32, outcome: &mut Outcome) -> Code {
        let Some(it) = self.files.get_mut(place as usize).filter(|it| it.file.is_open()) else {
            return no_file(outcome);
        };
        if it.split.take().is_some() {
            // Never ended. Its part of the landing area stays under way.
            self.flight.keep_for_ever();
        }
        tell(it.file.close(), outcome)
    }
}
