//! What the results of all benchmarks can do: grow line by line, as their journals do.

use serde::de::DeserializeOwned;
use serde::Serialize;

use super::{ErrorRecord, Outcome, Warning};

/// The result of a run that is recorded line by line.
pub trait Record: Sized {
    /// One line of its journal.
    type Line: Serialize + DeserializeOwned;
    /// Its last line.
    type Ending: RunEnd;
    /// The benchmark that its start line and its document name.
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

    /// The line of a warning.
    fn warning_line(warning: Warning) -> Self::Line;

    /// The last line.
    fn end_line(ending: Self::Ending) -> Self::Line;

    /// How the run ended.
    fn outcome(&self) -> Outcome;

    /// The errors that were met.
    fn errors(&self) -> &[ErrorRecord];

    /// True if data was not what was written or sent.
    fn is_corrupt(&self) -> bool;
}

/// The end of a run.
pub trait RunEnd {
    /// How it ended.
    fn outcome(&self) -> Outcome;

    /// Largest resident memory of a rank; this rank's until the ranks have told each other.
    fn rank_memory_high_water_bytes(&mut self) -> &mut u64;

    /// The files were removed in this time.
    fn cleaned_up(&mut self, seconds: f64);
}
