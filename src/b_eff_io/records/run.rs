//! A whole run as one record, and as lines of its journal.

use serde::{Deserialize, Serialize};

use super::{
    Calibration, CorruptionRecord, Ending, IoWarning, PartitionRecord, PatternRecord, TuningRecord, TypeRecord,
    B_EFF_IO,
};
use crate::b_eff_io::config::Config;
use crate::frame::records::{ErrorRecord, HarnessCost, Manifest, Outcome, Record, RunEnd, Warning, SCHEMA_VERSION};

/// Everything about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// What was asked.
    pub config: Config,
    /// Where it ran.
    pub manifest: Manifest,
    /// Cost of the harness.
    pub harness: HarnessCost,
    /// Partitions as planned.
    pub partitions: Vec<PartitionRecord>,
    /// Calibrations, one per backend.
    pub calibrations: Vec<Calibration>,
    /// Calibrations of the queue (uring).
    #[serde(default)]
    pub tunings: Vec<TuningRecord>,
    /// Patterns in order of measurement.
    pub patterns: Vec<PatternRecord>,
    /// Types in order of measurement.
    pub types: Vec<TypeRecord>,
    /// Corruption found.
    pub corruptions: Vec<CorruptionRecord>,
    /// Errors.
    pub errors: Vec<ErrorRecord>,
    /// Warnings of the run itself; those that follow from the records are derived ([`crate::b_eff_io::values::warnings`]).
    pub warnings: Vec<IoWarning>,
    /// The end.
    pub ending: Ending,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "record")]
pub enum JournalLine {
    /// First line.
    Start {
        /// [`SCHEMA_VERSION`].
        schema_version: u32,
        /// What was asked.
        config: Box<Config>,
        /// Where it runs.
        manifest: Box<Manifest>,
        /// Cost of the harness.
        harness: HarnessCost,
        /// Partitions as planned.
        partitions: Vec<PartitionRecord>,
    },
    /// A calibration.
    Calibration(Calibration),
    /// A calibration of the queue.
    Tuning(TuningRecord),
    /// A pattern that ended.
    Pattern(Box<PatternRecord>),
    /// A type that ended.
    Type(TypeRecord),
    /// Corruption.
    Corruption(CorruptionRecord),
    /// An error.
    Error(ErrorRecord),
    /// A warning.
    Warning(IoWarning),
    /// Last line of a run that was not killed.
    End(Ending),
}

impl RunResult {
    /// An empty result, as it is before the first pattern; the outcome is [`Outcome::Killed`] until an end is recorded.
    #[must_use]
    pub fn new(config: Config, manifest: Manifest, harness: HarnessCost, partitions: Vec<PartitionRecord>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            config,
            manifest,
            harness,
            partitions,
            calibrations: Vec::new(),
            tunings: Vec::new(),
            patterns: Vec::new(),
            types: Vec::new(),
            corruptions: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            ending: Ending {
                outcome: Outcome::Killed,
                real_seconds: 0.0,
                full_verify_seconds: 0.0,
                calibrate_seconds: 0.0,
                cleanup_seconds: 0.0,
                rank_memory_high_water_bytes: 0,
                rank_memory_planned_bytes: 0,
            },
        }
    }
}

impl Record for RunResult {
    type Line = JournalLine;
    type Ending = Ending;
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
        JournalLine::Start {
            schema_version: self.schema_version,
            config: Box::new(self.config.clone()),
            manifest: Box::new(self.manifest.clone()),
            harness: self.harness,
            partitions: self.partitions.clone(),
        }
    }

    fn absorb(&mut self, line: JournalLine) {
        match line {
            JournalLine::Start { .. } => {}
            JournalLine::Calibration(c) => self.calibrations.push(c),
            JournalLine::Tuning(t) => self.tunings.push(t),
            JournalLine::Pattern(p) => self.patterns.push(*p),
            JournalLine::Type(t) => self.types.push(t),
            JournalLine::Corruption(c) => self.corruptions.push(c),
            JournalLine::Error(e) => self.errors.push(e),
            JournalLine::Warning(w) => self.warnings.push(w),
            JournalLine::End(e) => self.ending = e,
        }
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning.into());
    }

    fn warning_line(warning: Warning) -> JournalLine {
        JournalLine::Warning(warning.into())
    }

    fn end_line(ending: Ending) -> JournalLine {
        JournalLine::End(ending)
    }

    fn outcome(&self) -> Outcome {
        self.ending.outcome
    }

    fn errors(&self) -> &[ErrorRecord] {
        &self.errors
    }

    fn is_corrupt(&self) -> bool {
        let full = self.types.iter().filter_map(|t| t.full_verification);
        let mut all = self.patterns.iter().map(|p| p.verification).chain(full);
        !self.corruptions.is_empty() || all.any(|v| v.words_wrong > 0)
    }
}

impl RunEnd for Ending {
    fn outcome(&self) -> Outcome {
        self.outcome
    }

    fn rank_memory_high_water_bytes(&mut self) -> &mut u64 {
        &mut self.rank_memory_high_water_bytes
    }

    fn cleaned_up(&mut self, seconds: f64) {
        self.cleanup_seconds = seconds;
    }
}
