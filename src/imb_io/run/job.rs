//! Job of a row with one backend, for this rank.

use beff_backends::{BackendError, Driver, DriverOptions};
use beff_ffi::MpiError;

use super::outcome::RowAbort;
use super::team::Team;
use super::RowContext;
use crate::frame::records::RunOutcome;
use crate::frame::run::error_agreement;
use crate::imb_io::plan::{IterationRule, PlannedRow};

pub(super) struct ConfiguredBackend {
    pub(super) name: String,
    /// Hints of its files; empty if it has none.
    pub(super) hints: Vec<(String, String)>,
    pub(super) driver: Box<dyn Driver>,
    pub(super) options: DriverOptions,
    /// True if files have contents; false for null.
    pub(super) moves_data: bool,
    /// True if its files are MPI files, with collective calls, shared pointers and hints.
    pub(super) is_mpi: bool,
    /// Reason why it cannot be used here; None: it can.
    pub(super) unavailable_reason: Option<String>,
}

/// Estimated times of a row. There is none if its kind failed or cannot run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RowEstimate {
    /// One iteration.
    pub(super) iteration_seconds: f64,
    /// One iteration with the untimed cost of its bytes.
    pub(super) iteration_total_seconds: f64,
    /// The row without any iteration.
    pub(super) fixed_seconds: f64,
    /// The row.
    pub(super) row_seconds: f64,
}

/// Purpose of a file of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilePurpose {
    /// Pilot measurement, not reported.
    Pilot,
    /// The only run.
    Only,
    /// The blocking call of a non-blocking benchmark.
    Pure,
    /// The non-blocking call without a load.
    Alone,
    /// The non-blocking call with the load.
    Overlapped,
}

impl FilePurpose {
    /// Number below [`FilePurpose::COUNT`], unique among the files of a row.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Pilot => 0,
            Self::Only | Self::Pure => 1,
            Self::Alone => 2,
            Self::Overlapped => 3,
        }
    }

    pub(super) const COUNT: u64 = 4;

    pub(super) fn letter(self) -> char {
        ['t', 'a', 'b', 'c'][self.number() as usize]
    }

    /// True unless it is a pilot measurement.
    pub(super) fn is_reported(self) -> bool {
        self != Self::Pilot
    }

    /// True if the times of the row are those of this file.
    pub(super) fn is_primary(self) -> bool {
        matches!(self, Self::Only | Self::Overlapped)
    }
}

/// Job of a row for this rank.
#[derive(Clone, Copy)]
pub(super) struct RowJob<'a> {
    pub(super) row: &'a PlannedRow,
    pub(super) backend: &'a ConfiguredBackend,
    pub(super) team: &'a Team,
    /// Number of the row over all backends: determines names and data of its files.
    pub(super) number: u64,
    /// Keep its files.
    pub(super) keep_files: bool,
    pub(super) rule: &'a IterationRule,
    pub(super) requested_iterations: u64,
    /// Estimate of the pilot for all requested iterations.
    pub(super) estimate: Option<RowEstimate>,
    /// Iterations of the previous size.
    pub(super) previous_iterations: Option<u64>,
    /// Fixed number of iterations, whatever the time: this is a repetition of the row.
    pub(super) fixed_iterations: Option<u64>,
    /// Description of the row for error messages.
    pub(super) during: &'a str,
}

impl RowJob<'_> {
    /// The value of this rank, or the error of any active rank. Collective over them.
    pub(super) fn agree<T>(&self, mine: Result<T, BackendError>) -> Result<T, RowAbort> {
        error_agreement::all_or_error(&self.team.active, mine, self.during)?.map_err(RowAbort::Failed)
    }

    /// Ends the row after a signal on any rank, or at the time limit. Called between files: a timed loop runs to its end. Collective.
    pub(super) fn check_interrupt(&self, bench: &RowContext<'_>) -> Result<(), RowAbort> {
        match bench.interrupt.agree(&self.team.active, 0.0)? {
            None => Ok(()),
            Some(RunOutcome::Limit) => Err(RowAbort::Limit),
            Some(_) => Err(RowAbort::Interrupted),
        }
    }

    /// Ends the row if the backend does not support it.
    pub(super) fn check_support(&self) -> Result<(), RowAbort> {
        if let Some(reason) = &self.backend.unavailable_reason {
            return Err(RowAbort::NotRun(reason.clone()));
        }
        let benchmark = self.row.benchmark;
        let reason = if benchmark.needs_mpi_file() && !self.backend.is_mpi {
            "collective calls, shared pointers and opening exist in MPI-IO only"
        } else if benchmark.has_overlap() && !self.backend.moves_data {
            "no data is moved that could be in flight"
        } else {
            return Ok(());
        };
        Err(RowAbort::NotRun(reason.into()))
    }

    /// Time of the slowest active rank. Collective.
    pub(super) fn max_over_ranks(&self, seconds: f64) -> Result<f64, MpiError> {
        let mut slowest = [seconds];
        self.team.active.max_f64(&mut slowest)?;
        Ok(slowest[0])
    }
}
