//! What one rank's calls take, how its files answer, and what it was asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::frame::run::interrupt::Interrupt;
use crate::frame::system::memory::ProcessIo;

/// How a call of a file ends other than well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// An error.
    Fail,
    /// No space is left.
    Full,
    /// So many bytes, without an error.
    Moved(u64),
    /// Well, and meanwhile a signal came.
    Signal,
    /// Well, with one bit of what was read turned over, in the window of this call.
    Flip(u64),
    /// Well, it says, and nothing was done.
    Nothing,
}

/// The script of a rank. What is not said takes no time and goes well.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Seconds of a call by its name, in turn; the last one for all that follow.
    pub(crate) costs: BTreeMap<&'static str, Vec<f64>>,
    /// Allocations of each call of this name.
    pub(crate) allocations: BTreeMap<&'static str, u64>,
    /// Answers by name and number of the call, from 0.
    pub(crate) answers: Vec<(&'static str, usize, Answer)>,
    pub(crate) calls: BTreeMap<&'static str, usize>,
    /// Files keep step, whatever the pattern.
    pub keeps_step: bool,
    /// Files meet; None: as the pattern says.
    pub meets: Option<bool>,
    /// Batches flow, and so many chunks are under way at each question.
    pub flows: Option<Vec<u64>>,
    /// Calls of a flow that have room.
    pub calls_with_room: Option<u64>,
    /// Whether the transfers are direct.
    pub direct: Option<bool>,
    /// Why no pattern can be run.
    pub unsupported: Option<String>,
    /// Why room was not made.
    pub without_room: Option<String>,
    /// Operations that go to a queue with each call of a batch; None: there is no queue.
    pub submitted: Option<u64>,
    /// What the kernel counts of each byte that is moved: of the calls, of the storage.
    pub counted: Option<[u64; 2]>,
    /// Hints in force.
    pub granted: Vec<(String, String)>,
    /// Raised by [`Answer::Signal`].
    pub interrupt: Interrupt,
    pub(crate) now: Duration,
    pub(crate) allocated: u64,
    pub(crate) io: ProcessIo,
    pub(crate) log: Vec<(f64, String)>,
}

impl Script {
    /// Every call of this name takes so long.
    #[must_use]
    pub fn cost(self, call: &'static str, seconds: f64) -> Self {
        self.costs(call, &[seconds])
    }

    /// Calls of this name take so long in turn, later ones as the last.
    #[must_use]
    pub fn costs(mut self, call: &'static str, seconds: &[f64]) -> Self {
        self.costs.insert(call, seconds.to_vec());
        self
    }

    /// Every call of this name allocates so often.
    #[must_use]
    pub fn allocates(mut self, call: &'static str, allocations: u64) -> Self {
        self.allocations.insert(call, allocations);
        self
    }

    /// Call number `number` of this name, from 0, answers so.
    #[must_use]
    pub fn answer(mut self, call: &'static str, number: usize, answer: Answer) -> Self {
        self.answers.push((call, number, answer));
        self
    }
}

thread_local! {
    static SCRIPT: RefCell<Option<Script>> = const { RefCell::new(None) };
}

/// From now on this thread goes by the script.
pub(super) fn begin(script: Script) {
    SCRIPT.set(Some(script));
}

/// Looks at the script of this thread, or changes it.
///
/// # Panics
/// If it has none.
pub fn with<T>(look: impl FnOnce(&mut Script) -> T) -> T {
    SCRIPT.with_borrow_mut(|script| look(script.as_mut().expect("no script on this thread")))
}

/// The time of this thread's script, if it has one.
pub fn now() -> Option<Duration> {
    SCRIPT.with_borrow(|script| script.as_ref().map(|script| script.now))
}

/// Allocations by the script.
pub fn allocations() -> Option<u64> {
    SCRIPT.with_borrow(|script| script.as_ref().map(|script| script.allocated))
}

/// What the kernel has counted by the script; the inner None: it tells nothing.
pub fn io() -> Option<Option<ProcessIo>> {
    SCRIPT.with_borrow(|script| script.as_ref().map(|script| script.counted.map(|_| script.io)))
}

/// A call of this name is made: it is in the log with `detail`, and takes its time. How it answers, if not well.
pub fn passes(call: &'static str, detail: &str) -> Option<Answer> {
    with(|script| {
        let line = if detail.is_empty() { call.to_owned() } else { format!("{call} {detail}") };
        script.log.push((script.now.as_secs_f64(), line));
        let count = script.calls.entry(call).or_default();
        let number = std::mem::replace(count, *count + 1);
        let seconds = script.costs.get(call).and_then(|costs| costs.get(number).or(costs.last())).copied();
        script.now += Duration::from_secs_f64(seconds.unwrap_or(0.0));
        script.allocated += script.allocations.get(call).copied().unwrap_or(0);
        let answer = script.answers.iter().find(|(of, which, _)| *of == call && *which == number);
        let answer = answer.map(|(.., answer)| *answer);
        if answer == Some(Answer::Signal) {
            script.interrupt.raise();
        }
        answer
    })
}

/// A call of the kernel moves so many bytes.
pub(super) fn moves(bytes: u64, writes: bool) {
    with(|script| {
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

/// Time of other ranks, which this one has waited for.
pub(super) fn wait_until(time: Duration) {
    with(|script| script.now = script.now.max(time));
}

/// All calls so far, each with the time of its begin: `1.5 write 0+1`.
pub fn log() -> Vec<String> {
    with(|script| script.log.iter().map(|(at, line)| format!("{} {line}", (at * 1e6).round() / 1e6)).collect())
}

/// Of them the calls with one of these names, without times.
pub fn log_of(calls: &[&str]) -> Vec<String> {
    let is_one = |line: &str| calls.iter().any(|call| line == *call || line.starts_with(&format!("{call} ")));
    with(|script| script.log.iter().map(|(_, line)| line.clone()).filter(|line| is_one(line)).collect())
}

/// Forgets the log.
pub fn clear_log() {
    with(|script| script.log.clear());
}
