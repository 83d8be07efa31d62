//! Replays programs by their own calls.
//!
//! Steps are made ready (`prepare.rs`, `ready.rs`) with what their numbers mean (`tables.rs`): what is left for the run is an
//! array of calls with their arguments. `machine.rs` makes those that move data or manage files, `asking.rs` those on requests.
//! Files are in `opened.rs`; requests and their memory in `flight.rs`, which lets no request outlive its memory.

mod asking;
mod flight;
mod machine;
mod opened;
mod prepare;
mod ready;
mod tables;
mod unable;

use std::ops::Range;
use std::path::Path;

use beff_ffi::replay::Code;
use beff_ffi::stranded;
use beff_trace::{ErrorClass, Function};

use super::outcome::mpi_error;
use crate::error::{BackendError, Cause, Result};
use crate::program::{Memory, Outcome, Program, ProgramRequest, Replay, Step};
use asking::Asking;
use flight::Flight;
use machine::Machine;
use opened::Opened;
use prepare::Plan;
use ready::Ready;
use tables::Handles;

/// How MPI-IO replays programs.
pub(crate) const REPLAY: Replay = Replay { begin, unable: unable::unable };

/// One rank's part of a program.
struct MpiProgram {
    machine: Machine,
    asking: Asking,
    plan: Plan,
    steps: Vec<Step>,
    complaint: Option<Complaint>,
    /// One complaint was asked for.
    complained: bool,
}

fn begin(request: ProgramRequest<'_>) -> Result<Box<dyn Program>> {
    let ProgramRequest { world, tables, source, landing_bytes, .. } = request;
    let no_memory = |e: std::io::Error| BackendError::from_io("mmap", "", None, &e);
    let memory = Memory::new(source, landing_bytes).map_err(no_memory);
    // Collective: a rank without memory makes its part of the communicators all the same.
    let handles = Handles::new(world, tables)?;
    let opened = vec![0; handles.comms().len()];
    let machine = Machine { flight: Flight::new(memory?), files: Vec::new(), handles, opened };
    Ok(Box::new(MpiProgram {
        machine,
        asking: Asking::default(),
        plan: Plan::default(),
        steps: Vec::new(),
        complaint: None,
        complained: false,
    }))
}

impl MpiProgram {
    fn step(&mut self, number: usize, outcome: &mut Outcome) -> Code {
        let Self { machine, asking, plan, .. } = self;
        match plan.ready[number] {
            Ready::Blocking { call, file } => machine.blocking(&call, file, outcome),
            Ready::Nonblocking { call, file, slot, lands } => machine.nonblocking(&call, (file, slot), lands, outcome),
            Ready::Begin { call, file, lands } => machine.begin(&call, file, lands, outcome),
            Ready::End { call, file } => machine.end(&call, file, outcome),
            Ready::Endless { file } => machine.endless(file, outcome),
            Ready::One { function, slot, expects, endless, room } => {
                let room = &mut plan.rooms[room as usize];
                asking.one(&mut machine.flight, (function, slot, expects, endless), room, outcome)
            }
            Ready::List(list) => {
                let list = &plan.lists[list as usize];
                let room = &mut plan.rooms[list.room as usize];
                asking.list(&mut machine.flight, list, &plan.slots, room, outcome)
            }
            Ready::Manage { file, call } => machine.manage(file, call, &plan.representations, outcome),
            Ready::Nothing => machine::not_made(None, outcome),
            Ready::Refused(error) => machine::not_made(Some(error), outcome),
        }
    }

    /// A call that failed, where.
    fn failed(&self, number: usize, code: Code) -> String {
        let call = &self.steps[number].call;
        let file = self.plan.ready[number].file().and_then(|place| self.machine.files.get(place as usize)?.name);
        let path = file.and_then(|name| self.machine.handles.path(name));
        let path = path.map_or_else(String::new, |path| format!(", {}", path.display()));
        let offset = call.offset.map_or_else(String::new, |offset| format!(", offset {offset}"));
        let (name, begin_ns) = (call.function.name(), call.begin_ns);
        format!("MPI_{name}{path}{offset}, recorded at {begin_ns} ns: {}", code.error())
    }

    /// Keeps what is to be said of the first step whose error was not recorded. In words later: this is inside the clock.
    #[cold]
    fn complain(&mut self, number: usize, code: Code, outcome: &Outcome) {
        let call = &self.steps[number].call;
        if call.error.is_none() && !code.is_success() && call.function.is_collective() {
            stranded::expect_others(self.failed(number, code));
        }
        if self.complained || self.complaint.is_some() || call.error.is_some() {
            return;
        }
        let (function, begin_ns, error, polls) = (call.function, call.begin_ns, outcome.error, outcome.polls);
        self.complaint = Some(Complaint { function, begin_ns, code, error, polls });
    }
}

/// A step whose error was not recorded.
#[derive(Clone, Copy, Debug)]
struct Complaint {
    function: Function,
    begin_ns: u64,
    code: Code,
    error: Option<ErrorClass>,
    polls: u64,
}

impl Complaint {
    fn words(&self) -> String {
        let told = match (self.code.is_success(), self.error) {
            (false, _) => self.code.error().to_string(),
            (true, Some(error)) if error.name() == "MPI_ERR_PENDING" => format!(
                "not complete after {} tests, though it was when it was recorded. Open MPI 4.1 never completes a non-blocking \
                 or split collective read that the end of the file cuts off, MPICH 4.0 some MPI_Request_get_status",
                self.polls + 1
            ),
            (true, error) => {
                let error = error.map_or("", |error| error.name());
                format!("{error}: not called, because what it needs was not opened or begun")
            }
        };
        format!("MPI_{}, recorded at {} ns: {told}", self.function.name(), self.begin_ns)
    }
}

impl Program for MpiProgram {
    fn make_ready(&mut self, steps: Vec<Step>) -> Result<()> {
        self.steps = steps;
        let Machine { flight, files, handles, .. } = &mut self.machine;
        let made = self.plan.make(&self.steps, handles, flight.memory_ref());
        if made.is_err() {
            self.plan.ready.clear();
            self.steps.clear();
        }
        let (requests, opened) = self.plan.room();
        // A file has one split call at most.
        flight.reserve(requests, opened);
        if files.len() < opened {
            files.resize_with(opened, Opened::none);
        }
        self.asking.several.reserve(self.plan.longest);
        made
    }

    fn run(&mut self, range: Range<usize>, outcomes: &mut [Outcome]) {
        for (number, outcome) in range.zip(outcomes) {
            outcome.error = None;
            outcome.bytes = None;
            outcome.number = None;
            outcome.polls = 0;
            outcome.completions.clear();
            let code = self.step(number, outcome);
            match outcome.error {
                Some(_) => self.complain(number, code, outcome),
                None => stranded::goes_on(),
            }
        }
    }

    fn complaint(&mut self) -> Option<String> {
        let told = self.complaint.take();
        self.complained |= told.is_some();
        told.map(|complaint| complaint.words())
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn landed(&mut self, range: Range<u64>) -> Result<&mut [u8]> {
        let refused = |text| BackendError::new("replay", "", Cause::Unsupported, text);
        self.machine.flight.memory().landed(range).map_err(refused)
    }

    fn source(&self) -> &[u8] {
        self.machine.flight.memory_ref().source()
    }

    fn source_mut(&mut self, range: Range<u64>) -> Result<&mut [u8]> {
        let refused = |text| BackendError::new("replay", "", Cause::Unsupported, text);
        self.machine.flight.memory().source_mut(range).map_err(refused)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut machine = self.machine;
        let (pending, error) = machine.flight.complete_all();
        let failed = |e: &beff_ffi::MpiError| mpi_error("MPI_File_close", Path::new(""), None, e);
        if machine.files.iter().any(|it| it.split.is_some()) {
            machine.flight.keep_for_ever();
        }
        let left = opened::close_all(&mut machine.files, machine.handles.comms()).map_err(|e| failed(&e))?;
        if pending > 0 {
            let text = format!("{pending} requests of the program are still pending after 30 s: their memory is kept");
            return Err(BackendError::new("MPI_Test", "", Cause::Io, text));
        }
        if let Some(code) = error {
            return Err(mpi_error("MPI_Test", Path::new(""), None, &code.error()));
        }
        if left > 0 {
            let text = format!(
                "{left} files stay open: not all ranks of their communicator have them, or a split call was not ended"
            );
            return Err(BackendError::new("MPI_File_close", "", Cause::Io, text));
        }
        Ok(())
    }
}
