//! Steps made ready: what each has to do, with the list of its pieces. The lists are kept and filled again.

use std::ops::Range;

use beff_trace::layout::Layouts;
use beff_trace::places::Access;
use beff_trace::{Amode, Call, Completion, Direction, ErrorClass, Form, Function, Role};

use super::fault::{is_of_arguments, Fault};
use super::files::{check_amode, Opening};
use super::mover::{Job, BLOCKING};
use super::pieces::{alignment_bits, flatten, span, Beyond, Piece, Row, MOST_PIECES};
use super::positions::Positions;
use super::unable::unable;
use super::work::{Answer, Pending, Work};
use crate::error::Cause;
use crate::program::numbers::Numbers;
use crate::{BackendError, Result, Step, Tables};

/// What a plan knows of the program around it.
#[derive(Debug)]
pub(super) struct Plan {
    positions: Positions,
    comms: usize,
    paths: usize,
    areas: Areas,
    pub(super) steps: Vec<Step>,
    pub(super) works: Vec<Work>,
    pub(super) pieces: Vec<Piece>,
    pub(super) pending: Vec<Pending>,
    pub(super) files: Numbers<u32>,
    pub(super) requests: Numbers<u64>,
    /// Slots of split accesses by the handle of their file.
    splits: Vec<(u32, u32)>,
    /// Slots of requests that were freed: nothing asks for them any more.
    pub(super) freed: Vec<u32>,
}

/// Bytes of the two areas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Areas {
    pub(super) source_bytes: u64,
    pub(super) landing_bytes: u64,
}

impl Plan {
    /// A plan without steps.
    ///
    /// # Errors
    /// A type that cannot be.
    pub(super) fn new(tables: &Tables, areas: Areas) -> Result<Self> {
        let layouts = Layouts::of_library(&tables.types, &tables.library).map_err(|error| {
            BackendError::new("replay", "", Cause::Unsupported, format!("types of the profile: {error}"))
        })?;
        Ok(Self {
            positions: Positions::new(layouts),
            comms: tables.comms.len(),
            paths: tables.paths.len(),
            areas,
            steps: Vec::new(),
            works: Vec::new(),
            pieces: Vec::new(),
            pending: Vec::new(),
            files: Numbers::default(),
            requests: Numbers::default(),
            splits: Vec::new(),
            freed: Vec::new(),
        })
    }

    /// Replaces the steps.
    ///
    /// # Errors
    /// A number that is in no table, memory outside its area, too many pieces at once.
    pub(super) fn make_ready(&mut self, steps: Vec<Step>) -> Result<()> {
        self.works.clear();
        self.pieces.clear();
        self.pending.clear();
        self.works.reserve(steps.len());
        self.steps.clear();
        for (number, step) in steps.iter().enumerate() {
            let work = self.work(step).map_err(|text| refusal(number, step, &text))?;
            self.works.push(work);
        }
        self.steps = steps;
        Ok(())
    }

    fn work(&mut self, step: &Step) -> std::result::Result<Work, String> {
        let call = &step.call;
        self.check_numbers(call)?;
        if let Some(reason) = unable(call) {
            return Ok(Work::Refused(Fault::named("MPI_ERR_UNSUPPORTED_OPERATION", reason)));
        }
        match call.function.role() {
            Role::Data { form: Form::End, .. } => Ok(self.end(call)),
            Role::Data { direction, form, .. } => self.data(step, direction, form),
            Role::File { .. } => Ok(self.file(call)),
            Role::Request => Ok(self.request(call)),
            Role::Program => Ok(Work::Nothing),
        }
    }

    /// Refuses numbers that are in no table.
    fn check_numbers(&self, call: &Call) -> std::result::Result<(), String> {
        let types = [("type", call.datatype), ("type", call.etype), ("type", call.filetype)]
            .map(|one| (one, self.positions.layouts().len()));
        let others = [(("communicator", call.comm), self.comms), (("file", call.file), self.paths)];
        for ((what, number), known) in types.into_iter().chain(others) {
            if let Some(number) = number.filter(|number| *number as usize >= known) {
                return Err(format!("{what} {number} is in no table: there are {known}"));
            }
        }
        Ok(())
    }

    fn data(&mut self, step: &Step, direction: Direction, form: Form) -> std::result::Result<Work, String> {
        let call = &step.call;
        let placed = self.positions.place(call);
        if let Some(fault) = wrong_arguments(call) {
            return Ok(Work::Refused(fault));
        }
        let Some(file) = self.file_of(call) else {
            return Ok(refused(call, "MPI_ERR_FILE", "the file of this access is not open"));
        };
        let access = match placed {
            Ok(Some(access)) => access,
            Ok(None) => return Ok(refused(call, "MPI_ERR_OTHER", "an access that goes nowhere")),
            Err(reason) => return Ok(refused(call, "MPI_ERR_OTHER", reason)),
        };
        let pieces = self.flatten(step, &access)?;
        let list = &self.pieces[pieces.clone()];
        let bits = alignment_bits(list);
        let is_left = form == Form::Begin || form == Form::Nonblocking && call.request.is_some();
        if !is_left {
            return Ok(Work::Move(Job { direction, file, pieces, bits, memory: 0..0, slot: BLOCKING }));
        }
        let memory = span(list);
        let slot = match (call.request, call.handle) {
            (Some(request), _) if form == Form::Nonblocking => self.requests.give(request),
            (_, handle) => {
                let slot = self.requests.unnamed();
                self.splits.push((handle.unwrap_or(0), slot));
                slot
            }
        };
        Ok(Work::Begin(Job { direction, file, pieces, bits, memory, slot }))
    }

    /// The pieces of an access, appended to the list.
    fn flatten(&mut self, step: &Step, access: &Access) -> std::result::Result<Range<usize>, String> {
        let area_bytes = match access.direction {
            Direction::Read => self.areas.landing_bytes,
            Direction::Write => self.areas.source_bytes,
        };
        let base_bytes = i64::try_from(step.memory_at).map_err(|_| "memory beyond 63 bits".to_owned())?;
        let Access { view, first_byte, asked_bytes, memory, .. } = *access;
        let file = Row { of: view.filetype, first_byte, base_bytes: view.displacement_bytes };
        let memory = Row { of: memory.datatype, first_byte: 0, base_bytes };
        let begin = self.pieces.len();
        flatten(&mut self.pieces, self.positions.layouts(), file, memory, asked_bytes, area_bytes).map_err(
            |beyond| match beyond {
                Beyond::File => "it reaches a place before the file or beyond 63 bits".to_owned(),
                Beyond::Memory => format!("its memory from byte {base_bytes} on leaves the area of {area_bytes} bytes"),
                Beyond::Pieces => format!("more than {MOST_PIECES} pieces are ready at once: make fewer steps ready"),
            },
        )?;
        Ok(begin..self.pieces.len())
    }

    /// The second half of a split access.
    fn end(&mut self, call: &Call) -> Work {
        // The tracker ends it too.
        let _ = self.positions.place(call);
        let begun = self.splits.iter().position(|(handle, _)| call.handle == Some(*handle));
        match begun {
            Some(begun) => {
                let (_, slot) = self.splits.swap_remove(begun);
                self.requests.release(slot);
                Work::End { slot }
            }
            None => refused(call, "MPI_ERR_REQUEST", "the second half of a split access that was not begun"),
        }
    }

    fn request(&mut self, call: &Call) -> Work {
        self.positions.follow(call);
        if call.function == Function::RequestFree {
            let freed: Vec<u32> = call.requests.iter().filter_map(|request| self.requests.take(request)).collect();
            self.freed.extend(freed);
            return Work::Nothing;
        }
        let begin = self.pending.len();
        let unknown = |request: &u64| Completion { request: *request, bytes: None, error: None };
        let all = || call.requests.iter().map(unknown).collect();
        // A profile lists what was completed; a workload written by hand need not.
        let completed: Vec<Completion> = match call.function {
            _ if !call.completions.is_empty() => call.completions.clone(),
            Function::Wait | Function::Waitall | Function::Waitsome if call.error.is_none() => all(),
            Function::Waitany if call.error.is_none() => call.requests.first().map(unknown).into_iter().collect(),
            _ => Vec::new(),
        };
        for recorded in completed {
            // Those of calls that are left out are unknown here.
            if let Some(slot) = self.requests.end(&recorded.request) {
                self.pending.push(Pending { slot, recorded });
            }
        }
        let is_single =
            matches!(call.function, Function::Wait | Function::Waitany | Function::Test | Function::Testany);
        Work::Complete { requests: begin..self.pending.len(), is_single }
    }

    fn file_of(&self, call: &Call) -> Option<u32> {
        self.files.get(&call.handle?)
    }

    fn file(&mut self, call: &Call) -> Work {
        use Function as F;
        let number = self.positions.answer(call);
        self.positions.follow(call);
        if call.function == F::Open {
            return self.open(call);
        }
        if let (F::Delete, Some(path)) = (call.function, call.file) {
            return Work::Delete { path };
        }
        if let Some(class) = call.error.filter(|class| is_of_arguments(*class)) {
            return Work::Refused(as_recorded(class));
        }
        let Some(file) = self.file_of(call) else {
            return refused(call, "MPI_ERR_FILE", "the file of this call is not open");
        };
        let bytes = call.offset.unwrap_or(0);
        match call.function {
            F::Close => {
                call.handle.and_then(|handle| self.files.end(&handle));
                Work::Close { file }
            }
            F::SetSize => Work::SetSize { file, bytes },
            F::Preallocate => Work::Preallocate { file, bytes },
            F::GetSize => Work::GetSize { file },
            F::Sync => Work::Sync { file },
            _ => number.map_or(Work::Nothing, |number| Work::Answer(Answer { bytes: None, number: Some(number) })),
        }
    }

    fn open(&mut self, call: &Call) -> Work {
        let (Some(comm), Some(path)) = (call.comm, call.file) else {
            return refused(call, "MPI_ERR_ARG", "an open without a communicator or a name");
        };
        let is_kept = call.error.is_none();
        let file = match call.handle.filter(|_| is_kept) {
            Some(handle) => self.files.give(handle),
            None => self.files.unnamed(),
        };
        if !is_kept {
            self.files.release(file);
        }
        let amode = call.amode.unwrap_or(Amode(0));
        let refused = call.error.filter(|class| is_of_arguments(*class) && check_amode(amode).is_ok());
        Work::Open(Opening { file, comm, path, amode, refused, is_kept })
    }
}

/// An error that is seen without the file. The recorded class, if there is one: libraries differ.
fn refused(call: &Call, class: &str, text: &'static str) -> Work {
    let fault = Fault::named(class, text);
    Work::Refused(Fault { class: call.error.unwrap_or(fault.class), ..fault })
}

fn as_recorded(class: ErrorClass) -> Fault {
    Fault { class, cause: super::fault::Cause::Text("refused when it was recorded, for its arguments,") }
}

/// What is wrong with the arguments of a data access.
fn wrong_arguments(call: &Call) -> Option<Fault> {
    let told = match call {
        Call { handle: None, .. } => Fault::named("MPI_ERR_FILE", "a data access without a file"),
        Call { count: None, .. } => Fault::named("MPI_ERR_COUNT", "a data access without a count"),
        Call { count: Some(..0), .. } => Fault::named("MPI_ERR_COUNT", "a data access with a negative count"),
        Call { offset: Some(..0), .. } => Fault::named("MPI_ERR_ARG", "a data access with a negative offset"),
        _ => return call.error.filter(|class| is_of_arguments(*class)).map(as_recorded),
    };
    Some(Fault { class: call.error.unwrap_or(told.class), ..told })
}

fn refusal(number: usize, step: &Step, text: &str) -> BackendError {
    let call = &step.call;
    let text = format!("step {number}, MPI_{} at {} ns: {text}", call.function.name(), call.begin_ns);
    BackendError::new("replay", "", Cause::Unsupported, text)
}
