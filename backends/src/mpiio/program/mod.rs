//! Replays recorded programs by their own MPI-IO calls.
//!
//! `prepare.rs` prepares steps as an array of calls (`prepared_call.rs`) and resolves their numbers (`objects.rs`). `executor.rs`
//! makes the calls that move data or manage files (`files.rs`), `completion.rs` those on requests. `requests.rs` lets no request
//! outlive its memory.

mod completion;
mod executor;
mod files;
mod objects;
mod prepare;
mod prepared_call;
mod requests;
mod unsupported;

use std::ops::Range;
use std::path::Path;

use beff_ffi::collective_timeout;
use beff_ffi::replay::ReturnCode;
use beff_trace::{ErrorClass, Function};

use super::outcome::mpi_error;
use crate::error::{BackendError, FailureCause, Result};
use crate::program::{ProgramMemory, ProgramRequest, ProgramStep, Replay, ReplayProgram, StepOutcome};
use completion::CompletionCalls;
use executor::CallExecutor;
use files::FileEntry;
use objects::MpiObjects;
use prepare::CallList;
use prepared_call::PreparedCall;
use requests::RequestTable;

pub(crate) const REPLAY: Replay = Replay { begin, unsupported_reason: unsupported::unsupported_reason };

/// One rank's part of a program.
struct MpiProgram {
    executor: CallExecutor,
    completion: CompletionCalls,
    call_list: CallList,
    steps: Vec<ProgramStep>,
    unexpected_error: Option<UnexpectedError>,
    /// The first unexpected error was returned.
    is_error_reported: bool,
}

fn begin(request: ProgramRequest<'_>) -> Result<Box<dyn ReplayProgram>> {
    let ProgramRequest { world, tables, source, landing_bytes, .. } = request;
    let no_memory = |e: std::io::Error| BackendError::from_io("mmap", "", None, &e);
    let memory = ProgramMemory::new(source, landing_bytes).map_err(no_memory);
    // Collective: also on a rank without memory.
    let handles = MpiObjects::new(world, tables)?;
    let opened = vec![0; handles.comms().len()];
    let machine =
        CallExecutor { requests: RequestTable::new(memory?), files: Vec::new(), objects: handles, open_counts: opened };
    Ok(Box::new(MpiProgram {
        executor: machine,
        completion: CompletionCalls::default(),
        call_list: CallList::default(),
        steps: Vec::new(),
        unexpected_error: None,
        is_error_reported: false,
    }))
}

impl MpiProgram {
    fn step(&mut self, number: usize, outcome: &mut StepOutcome) -> ReturnCode {
        let Self { executor: machine, completion: asking, call_list: plan, .. } = self;
        match plan.calls[number] {
            PreparedCall::Blocking { call, file } => machine.blocking(&call, file, outcome),
            PreparedCall::Nonblocking { call, file, slot, lands } => {
                machine.nonblocking(&call, (file, slot), lands, outcome)
            }
            PreparedCall::Begin { call, file, lands } => machine.begin(&call, file, lands, outcome),
            PreparedCall::End { call, file } => machine.end(&call, file, outcome),
            PreparedCall::SkipSplitEnd { file } => machine.skip_split_end(file, outcome),
            PreparedCall::OnRequest { function, slot, expects, endless, room: buffer } => {
                let buffer = &mut plan.completion_buffers[buffer as usize];
                asking.call_on_request(&mut machine.requests, (function, slot, expects, endless), buffer, outcome)
            }
            PreparedCall::OnList(list) => {
                let list = &plan.lists[list as usize];
                let buffer = &mut plan.completion_buffers[list.completion_buffer as usize];
                asking.call_on_list(&mut machine.requests, list, &plan.slots, buffer, outcome)
            }
            PreparedCall::Manage { file, call } => machine.manage(file, call, &plan.representations, outcome),
            PreparedCall::Skip => executor::skip_call(None, outcome),
            PreparedCall::Fail(error) => executor::skip_call(Some(error), outcome),
        }
    }

    fn describe_failure(&self, number: usize, code: ReturnCode) -> String {
        let call = &self.steps[number].call;
        let place = call_place(&self.executor.objects, self.file_name(number), call.offset);
        format!("MPI_{}{place}, recorded at {} ns: {}", call.function.name(), call.begin_ns, code.error())
    }

    /// Index of the name of the file of a call.
    fn file_name(&self, number: usize) -> Option<u32> {
        self.call_list.calls[number].file().and_then(|place| self.executor.files.get(place as usize)?.name)
    }

    /// Records the first unexpected error. Formatted later: this runs inside the clock.
    #[cold]
    fn record_unexpected_error(&mut self, number: usize, code: ReturnCode, outcome: &StepOutcome) {
        let call = &self.steps[number].call;
        if call.error.is_none() && !code.is_success() && call.function.is_collective() {
            collective_timeout::expect_peers(self.describe_failure(number, code));
        }
        if self.is_error_reported || self.unexpected_error.is_some() || call.error.is_some() {
            return;
        }
        let (function, begin_ns, error, polls) = (call.function, call.begin_ns, outcome.error, outcome.polls);
        let (file_name, offset) = (self.file_name(number), call.offset);
        self.unexpected_error = Some(UnexpectedError { function, begin_ns, file_name, offset, code, error, polls });
    }
}

/// File and offset of a call, for messages.
fn call_place(objects: &MpiObjects, file_name: Option<u32>, offset: Option<i64>) -> String {
    let path = file_name.and_then(|name| objects.path(name));
    let path = path.map_or_else(String::new, |path| format!(", {}", path.display()));
    let offset = offset.map_or_else(String::new, |offset| format!(", offset {offset}"));
    format!("{path}{offset}")
}

/// A step whose error was not recorded.
#[derive(Clone, Copy, Debug)]
struct UnexpectedError {
    function: Function,
    begin_ns: u64,
    /// Index of the name of its file.
    file_name: Option<u32>,
    offset: Option<i64>,
    code: ReturnCode,
    error: Option<ErrorClass>,
    polls: u64,
}

impl UnexpectedError {
    fn message(&self, objects: &MpiObjects) -> String {
        let detail = match (self.code.is_success(), self.error) {
            (false, _) => self.code.error().to_string(),
            (true, Some(error)) if error.name() == "MPI_ERR_PENDING" => format!(
                "not complete after {} tests, although it was complete when recorded. Open MPI 4.1 never completes a non-blocking \
                 or split collective read that the end of the file cuts off, MPICH 4.0 some MPI_Request_get_status",
                self.polls + 1
            ),
            (true, error) => {
                let error = error.map_or("", |error| error.name());
                format!("{error}: not called, because its file or request was not opened or started")
            }
        };
        let place = call_place(objects, self.file_name, self.offset);
        format!("MPI_{}{place}, recorded at {} ns: {detail}", self.function.name(), self.begin_ns)
    }
}

impl ReplayProgram for MpiProgram {
    fn prepare(&mut self, steps: Vec<ProgramStep>) -> Result<()> {
        self.steps = steps;
        let CallExecutor { requests: flight, files, objects: handles, .. } = &mut self.executor;
        let result = self.call_list.prepare(&self.steps, handles, flight.memory_ref());
        if result.is_err() {
            self.call_list.calls.clear();
            self.steps.clear();
        }
        let (requests, opened) = self.call_list.capacity();
        // A file has at most one split collective call.
        flight.reserve(requests, opened);
        if files.len() < opened {
            files.resize_with(opened, FileEntry::unopened);
        }
        self.completion.request_list.reserve(self.call_list.longest_list);
        result
    }

    fn run(&mut self, range: Range<usize>, outcomes: &mut [StepOutcome]) {
        for (number, outcome) in range.zip(outcomes) {
            outcome.error = None;
            outcome.bytes = None;
            outcome.number = None;
            outcome.polls = 0;
            outcome.completions.clear();
            let code = self.step(number, outcome);
            match outcome.error {
                Some(_) => self.record_unexpected_error(number, code, outcome),
                None => collective_timeout::record_progress(),
            }
        }
    }

    fn unexpected_error(&mut self) -> Option<String> {
        let error = self.unexpected_error.take();
        self.is_error_reported |= error.is_some();
        error.map(|complaint| complaint.message(&self.executor.objects))
    }

    fn steps(&self) -> &[ProgramStep] {
        &self.steps
    }

    fn landing_range(&mut self, range: Range<u64>) -> Result<&mut [u8]> {
        let refused = |text| BackendError::new("replay", "", FailureCause::Unsupported, text);
        self.executor.requests.memory().landing_range(range).map_err(refused)
    }

    fn source(&self) -> &[u8] {
        self.executor.requests.memory_ref().source()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut machine = self.executor;
        let (pending, error) = machine.requests.complete_all();
        let failed = |e: &beff_ffi::MpiError| mpi_error("MPI_File_close", Path::new(""), None, e);
        if machine.files.iter().any(|it| it.split.is_some()) {
            machine.requests.leak_memory();
        }
        let left = files::close_all(&mut machine.files, machine.objects.comms()).map_err(|e| failed(&e))?;
        if pending > 0 {
            let text = format!("{pending} requests of the program are still pending after 30 s: their memory is kept");
            return Err(BackendError::new("MPI_Test", "", FailureCause::Io, text));
        }
        if let Some(code) = error {
            return Err(mpi_error("MPI_Test", Path::new(""), None, &code.error()));
        }
        if left > 0 {
            let text = format!(
                "{left} files stay open: not all ranks of their communicator have them, or a split call was not ended"
            );
            return Err(BackendError::new("MPI_File_close", "", FailureCause::Io, text));
        }
        Ok(())
    }
}
