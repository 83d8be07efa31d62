//! Text of a profile: comments, head, and the calls of each rank.

use std::fmt::Write;

/// Invented duration of a call, and distance between the begins of two.
const CALL_NS: u64 = 10;
const STEP_NS: u64 = 20;

/// A profile under construction.
pub(super) struct ProfileText {
    text: String,
    types: u64,
    files: u64,
}

impl ProfileText {
    /// For `ranks` ranks: communicator 0 is the world. `comments` name the source of the workload and the command.
    pub(super) fn new(ranks: u64, comments: &[String]) -> Self {
        let mut text = "beff-raw profile,1\n".to_owned();
        comments.iter().for_each(|line| text.extend(["# ", line, "\n"]));
        text += &format!("\nranks, {ranks}\ncomm, 0, world\n");
        Self { text, types: 0, files: 0 }
    }

    /// A communicator of its own for each rank: that of rank r is number r + 1.
    pub(super) fn self_comms(&mut self, ranks: u64) {
        (0..ranks).for_each(|rank| self.line(&format!("comm, {}, {rank}", rank + 1)));
    }

    /// Adds a datatype; returns its number.
    pub(super) fn datatype(&mut self, definition: &str) -> u64 {
        self.line(&format!("type, {}, {definition}", self.types));
        self.types += 1;
        self.types - 1
    }

    /// Adds a file that does not exist; returns its number.
    pub(super) fn file(&mut self, name: &str) -> u64 {
        self.line(&format!("file, {}, {name}", self.files));
        self.files += 1;
        self.files - 1
    }

    pub(super) fn comment(&mut self, text: &str) {
        self.line(&format!("\n# {text}"));
    }

    /// Adds the calls of a rank, each at its step of the workload: those of different ranks at one step overlap in time.
    pub(super) fn calls(&mut self, rank: u64, calls: &CallList) {
        self.line(&format!("\ncalls, {rank}, {}", calls.0.len()));
        for (step, call) in &calls.0 {
            let begin = step * STEP_NS;
            // Infallible for a string.
            let _ = writeln!(self.text, "{begin}, {}, {call}", begin + CALL_NS);
        }
    }

    fn line(&mut self, line: &str) {
        self.text.extend([line, "\n"]);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Calls of one rank with their steps.
#[derive(Default)]
pub(super) struct CallList(Vec<(u64, String)>, u64);

impl CallList {
    /// The next call, at the next step.
    pub(super) fn push(&mut self, call: impl Into<String>) {
        self.0.push((self.1, call.into()));
        self.1 += 1;
    }

    /// The step of the next call.
    pub(super) fn next_step(&self) -> u64 {
        self.1
    }

    /// The next call is at this step or later.
    pub(super) fn skip_to(&mut self, step: u64) {
        self.1 = self.1.max(step);
    }
}
