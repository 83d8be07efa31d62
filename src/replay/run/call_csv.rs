//! PREFIX.RANK.calls.csv: one line for each call, written during the repetition between its windows.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use beff_backends::{ProgramStep, StepOutcome};

use crate::replay::plan::CallClass;

const HEADER: [&str; 12] = [
    "backend",
    "repetition",
    "rank",
    "begin_ns",
    "function",
    "class",
    "recorded_ns",
    "replayed_ns",
    "recorded_bytes",
    "replayed_bytes",
    "replayed_error",
    "as_recorded",
];

pub(super) struct CallCsvWriter {
    writer: csv::Writer<File>,
    path: PathBuf,
    rank: u32,
}

impl CallCsvWriter {
    /// Creates the file; an existing one is not overwritten.
    ///
    /// # Errors
    /// The error of the file system, in words.
    pub fn create(prefix: &Path, rank: u32) -> Result<Self, String> {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!(".{rank}.calls.csv"));
        let path = PathBuf::from(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let message = |e: &dyn std::fmt::Display| format!("{}: {e}; choose another --out", path.display());
        let mut writer = csv::Writer::from_writer(file.map_err(|e| message(&e))?);
        writer.write_record(HEADER).map_err(|e| message(&e))?;
        Ok(Self { writer, path, rank })
    }

    /// Writes the calls of a window.
    ///
    /// # Errors
    /// The error of the file system, in words.
    pub fn write(
        &mut self,
        backend: &str,
        repetition: u64,
        calls: &[(&ProgramStep, &StepOutcome, bool)],
    ) -> Result<(), String> {
        let mut write = || -> csv::Result<()> {
            for (ProgramStep { call, .. }, outcome, as_recorded) in calls {
                let number = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| bytes.to_string());
                let all = |bytes: Option<u64>, completions: &[beff_trace::Completion]| {
                    let of_requests = completions.iter().filter_map(|c| c.bytes).reduce(|a, b| a + b);
                    number(bytes.or(of_requests))
                };
                self.writer.write_record([
                    backend,
                    &repetition.to_string(),
                    &self.rank.to_string(),
                    &call.begin_ns.to_string(),
                    call.function.name(),
                    CallClass::of(call.function).name(),
                    &call.end_ns.saturating_sub(call.begin_ns).to_string(),
                    &outcome.end_ns.saturating_sub(outcome.begin_ns).to_string(),
                    &all(call.bytes, &call.completions),
                    &all(outcome.bytes, &outcome.completions),
                    outcome.error.map_or("", |error| error.name()),
                    if *as_recorded { "true" } else { "false" },
                ])?;
            }
            self.writer.flush()?;
            Ok(())
        };
        write().map_err(|e| format!("{}: {e}", self.path.display()))
    }
}
