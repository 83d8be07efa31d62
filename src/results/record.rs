//! What the results of all benchmarks can do: grow line by line, as their journals do.

use serde::de::DeserializeOwned;
use serde::Serialize;

use super::comm::{CommLine, CommResult, B_EFF};
use super::imb::{ImbLine, ImbResult, IMB_IO};
use super::{JournalLine, RunResult, Warning, B_EFF_IO};

/// The result of a run that is recorded line by line.
pub trait Record: Sized {
    /// One line of its journal.
    type Line: Serialize + DeserializeOwned;
    /// The benchmark that its start line names; [`B_EFF_IO`] where it names none.
    const BENCHMARK: &'static str;

    /// The result as the start line begins it.
    ///
    /// # Errors
    /// Another line, as it was.
    fn begin(line: Self::Line) -> Result<Self, Self::Line>;

    /// The first line of the journal.
    fn start_line(&self) -> Self::Line;

    /// Takes one line in. A start line inside a run is ignored.
    fn absorb(&mut self, line: Self::Line);

    /// Takes a warning of the run itself in, without a line of the journal.
    fn warn(&mut self, warning: Warning);
}

impl Record for RunResult {
    type Line = JournalLine;
    const BENCHMARK: &'static str = B_EFF_IO;

    fn begin(line: JournalLine) -> Result<Self, JournalLine> {
        match line {
            JournalLine::Start { schema_version, config, manifest, harness, partitions } => {
                Ok(Self { schema_version, ..Self::new(*config, *manifest, harness, partitions) })
            }
            other => Err(other),
        }
    }

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
    const BENCHMARK: &'static str = B_EFF;

    fn begin(line: CommLine) -> Result<Self, CommLine> {
        match line {
            CommLine::Start { schema_version, benchmark, config, setup } => {
                Ok(Self { schema_version, benchmark, ..Self::new(*config, *setup) })
            }
            other => Err(other),
        }
    }

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
    const BENCHMARK: &'static str = IMB_IO;

    fn begin(line: ImbLine) -> Result<Self, ImbLine> {
        match line {
            ImbLine::Start { schema_version, benchmark, config, setup } => {
                Ok(Self { schema_version, benchmark, ..Self::new(*config, *setup) })
            }
            other => Err(other),
        }
    }

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
