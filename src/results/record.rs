//! What the results of all benchmarks can do: grow line by line, as their journals do.

use serde::Serialize;

use super::comm::{CommLine, CommResult};
use super::imb::{ImbLine, ImbResult};
use super::{JournalLine, RunResult, Warning};

/// The result of a run that is recorded line by line.
pub trait Record {
    /// One line of its journal.
    type Line: Serialize;

    /// The first line of the journal.
    fn start_line(&self) -> Self::Line;

    /// Takes one line in. A start line inside a run is ignored.
    fn absorb(&mut self, line: Self::Line);

    /// Takes a warning of the run itself in, without a line of the journal.
    fn warn(&mut self, warning: Warning);
}

impl Record for RunResult {
    type Line = JournalLine;

    fn start_line(&self) -> JournalLine {
        Self::start_line(self)
    }

    fn absorb(&mut self, line: JournalLine) {
        Self::absorb(self, line);
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }
}

impl Record for CommResult {
    type Line = CommLine;

    fn start_line(&self) -> CommLine {
        Self::start_line(self)
    }

    fn absorb(&mut self, line: CommLine) {
        Self::absorb(self, line);
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }
}

impl Record for ImbResult {
    type Line = ImbLine;

    fn start_line(&self) -> ImbLine {
        Self::start_line(self)
    }

    fn absorb(&mut self, line: ImbLine) {
        Self::absorb(self, line);
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }
}
