//! Times of one rank's calls, outcomes of its files, and its log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::frame::run::interrupt::Interrupt;
use crate::frame::system::memory::ProcessIo;

/// Outcome of a file call other than success.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScriptedOutcome {
    Fail,
    Full,
    /// This many bytes, without an error.
    Moved(u64),
    /// Success, and a signal arrives meanwhile.
    Signal,
    /// Success, with one bit flipped in the data read by this call.
    Flip(u64),
    /// Success is reported, and nothing is done.
    Nothing,
}

/// The script of a rank. Calls without an entry take no time and succeed.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Seconds of calls by name, in order; the last value is repeated.
    pub(crate) costs: BTreeMap<&'static str, Vec<f64>>,
    /// Allocations of each call of this name.
    pub(crate) allocations: BTreeMap<&'static str, u64>,
    /// Outcomes by name and number of the call, from 0.
    pub(crate) outcomes: Vec<(&'static str, usize, ScriptedOutcome)>,
    pub(crate) calls: BTreeMap<&'static str, usize>,
    pub lockstep: bool,
    /// Files synchronize ranks; None: as the pattern does.
    pub synchronizes: Option<bool>,
    /// Batches are pipelined, with these numbers of chunks pending at each request for the next batch.
    pub pending_chunks: Option<Vec<u64>>,
    pub preallocated_calls: Option<u64>,
    pub direct: Option<bool>,
    pub unsupported: Option<String>,
    pub preallocation_error: Option<String>,
    /// Operations submitted to a queue with each call of a batch; None: no queue.
    pub submitted: Option<u64>,
    /// Bytes that the kernel counts for each byte moved: by the calls, by the storage.
    pub counted: Option<[u64; 2]>,
    pub hints_in_force: Vec<(String, String)>,
    /// Raised by [`ScriptedOutcome::Signal`].
    pub interrupt: Interrupt,
    pub(crate) now: Duration,
    pub(crate) allocated: u64,
    pub(crate) io: ProcessIo,
    pub(crate) log: Vec<(f64, String)>,
}

impl Script {
    /// Sets the time of every call of this name.
    #[must_use]
    pub fn cost(self, call: &'static str, seconds: f64) -> Self {
        self.costs(call, &[seconds])
    }

    /// Sets the times of calls of this name, in order; later calls take the last one.
    #[must_use]
    pub fn costs(mut self, call: &'static str, seconds: &[f64]) -> Self {
        self.costs.insert(call, seconds.to_vec());
        self
    }

    /// Sets the allocations of every call of this name.
    #[must_use]
    pub fn allocates(mut self, call: &'static str, allocations: u64) -> Self {
        self.allocations.insert(call, allocations);
        self
    }

    /// Sets the outcome of call `number` of this name, from 0.
    #[must_use]
    pub fn outcome(mut self, call: &'static str, number: usize, answer: ScriptedOutcome) -> Self {
        self.outcomes.push((call, number, answer));
        self
    }
}

thread_local! {
    static SCRIPT: RefCell<Option<Script>> = const { RefCell::new(None) };
}

pub(super) fn begin(script: Script) {
    SCRIPT.set(Some(script));
}

/// Reads or changes the script of this thread.
///
/// # Panics
/// If there is none.
pub fn with_script<T>(look: impl FnOnce(&mut Script) -> T) -> T {
    SCRIPT.with_borrow_mut(|script| look(script.as_mut().expect("no script on this thread")))
}

/// Scripted time of this thread, if it has a script.
pub fn now() -> Option<Duration> {
    SCRIPT.with_borrow(|script| script.as_ref().map(|script| script.now))
}

pub fn allocations() -> Option<u64> {
    SCRIPT.with_borrow(|script| script.as_ref().map(|script| script.allocated))
}

/// Scripted counters of the kernel; the inner None: unavailable.
pub fn io() -> Option<Option<ProcessIo>> {
    SCRIPT.with_borrow(|script| script.as_ref().map(|script| script.counted.map(|_| script.io)))
}

/// Logs a call with `detail` and advances the time. Returns its outcome, if scripted.
pub fn scripted_call(call: &'static str, detail: &str) -> Option<ScriptedOutcome> {
    with_script(|script| {
        let line = if detail.is_empty() { call.to_owned() } else { format!("{call} {detail}") };
        script.log.push((script.now.as_secs_f64(), line));
        let count = script.calls.entry(call).or_default();
        let number = std::mem::replace(count, *count + 1);
        let seconds = script.costs.get(call).and_then(|costs| costs.get(number).or(costs.last())).copied();
        script.now += Duration::from_secs_f64(seconds.unwrap_or(0.0));
        script.allocated += script.allocations.get(call).copied().unwrap_or(0);
        let answer = script.outcomes.iter().find(|(of, which, _)| *of == call && *which == number);
        let answer = answer.map(|(.., answer)| *answer);
        if answer == Some(ScriptedOutcome::Signal) {
            script.interrupt.raise();
        }
        answer
    })
}

/// Adds bytes to the scripted counters of the kernel.
pub(super) fn count_bytes(bytes: u64, writes: bool) {
    with_script(|script| {
        let [calls, storage] = script.counted.unwrap_or_default();
        let io = &mut script.io;
        if writes {
            (io.call_written_bytes, io.written_bytes) =
                (io.call_written_bytes + calls * bytes, io.written_bytes + storage * bytes);
        } else {
            (io.call_read_bytes, io.read_bytes) = (io.call_read_bytes + calls * bytes, io.read_bytes + storage * bytes);
        }
    });
}

/// Advances to the time of a rank that this one has waited for.
pub(super) fn wait_until(time: Duration) {
    with_script(|script| script.now = script.now.max(time));
}

/// All calls so far, each with its start time: `1.5 write 0+1`.
pub fn log() -> Vec<String> {
    with_script(|script| script.log.iter().map(|(at, line)| format!("{} {line}", (at * 1e6).round() / 1e6)).collect())
}

/// Calls so far with one of these names, without times.
pub fn log_of(calls: &[&str]) -> Vec<String> {
    let is_one = |line: &str| calls.iter().any(|call| line == *call || line.starts_with(&format!("{call} ")));
    with_script(|script| script.log.iter().map(|(_, line)| line.clone()).filter(|line| is_one(line)).collect())
}

pub fn clear_log() {
    with_script(|script| script.log.clear());
}
