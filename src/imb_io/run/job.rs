//! A row of one backend on its way down: what the rank knows of it before it is measured.

use beff_backends::{BackendError, Driver};
use beff_ffi::MpiError;

use super::outcome::Stopped;
use super::team::Team;
use super::Bench;
use crate::frame::run::{agree, trouble};
use crate::imb_io::plan::{Repetitions, Row};

/// One backend of the run.
pub(super) struct Backend {
    pub(super) name: String,
    pub(super) driver: Box<dyn Driver>,
    /// Files have contents; false for null.
    pub(super) moves_data: bool,
    /// Its files are MPI's, with collective calls, shared pointers and hints.
    pub(super) is_mpi: bool,
    /// Why it cannot work here; None: it can.
    pub(super) why_not: Option<String>,
}

/// What is foreseen for a row. Nothing where its kind failed or cannot run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Foreseen {
    /// One repetition.
    pub(super) one_seconds: f64,
    /// Likewise, with what its bytes cost outside the clock.
    pub(super) step_seconds: f64,
    /// What the row costs without any.
    pub(super) fixed_seconds: f64,
    /// The row.
    pub(super) row_seconds: f64,
}

/// Which file of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Not reported.
    Trial,
    /// Of the only run.
    Only,
    /// Of the blocking call beside a non-blocking one.
    Pure,
    /// Of the non-blocking call without a load.
    Alone,
    /// Of the non-blocking call with the load.
    Overlapped,
}

impl Which {
    /// Below [`Which::MOST`]; files of one row have different ones.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Trial => 0,
            Self::Only | Self::Pure => 1,
            Self::Alone => 2,
            Self::Overlapped => 3,
        }
    }

    /// Numbers of files of one row.
    pub(super) const MOST: u64 = 4;

    /// In the name of the file.
    pub(super) fn letter(self) -> char {
        ['t', 'a', 'b', 'c'][self.number() as usize]
    }

    /// Of the row that is reported.
    pub(super) fn counts(self) -> bool {
        self != Self::Trial
    }

    /// The file whose times are the row's.
    pub(super) fn is_last(self) -> bool {
        matches!(self, Self::Only | Self::Overlapped)
    }
}

/// A row for this rank.
#[derive(Clone, Copy)]
pub(super) struct RowJob<'a> {
    pub(super) row: &'a Row,
    pub(super) backend: &'a Backend,
    pub(super) team: &'a Team,
    /// Number of the row, of all backends: names its files and makes their data.
    pub(super) number: u64,
    /// Its files stay.
    pub(super) keep: bool,
    pub(super) rule: &'a Repetitions,
    pub(super) wanted: u64,
    /// What the pilot foresees for all wanted repetitions.
    pub(super) foreseen: Option<Foreseen>,
    /// Repetitions of the size before.
    pub(super) previous: Option<u64>,
    /// As many repetitions as this, whatever the time: the row is measured again.
    pub(super) fixed: Option<u64>,
    /// Where, in words, for errors.
    pub(super) during: &'a str,
}

impl RowJob<'_> {
    /// What every active rank has made, or the error of any. Collective over them.
    pub(super) fn agree<T>(&self, mine: Result<T, BackendError>) -> Result<T, Stopped> {
        trouble::all(&self.team.active, mine, self.during)?.map_err(Stopped::Failed)
    }

    /// Ends the row if a signal came, on any rank. Asked between files: a loop in the clock runs to its end. Collective.
    pub(super) fn go_on(&self, bench: &Bench<'_>) -> Result<(), Stopped> {
        if agree::any(&self.team.active, bench.interrupt.raised())? {
            return Err(Stopped::Interrupted);
        }
        Ok(())
    }

    /// Ends the row where the backend has no such calls.
    pub(super) fn can_run(&self) -> Result<(), Stopped> {
        if let Some(reason) = &self.backend.why_not {
            return Err(Stopped::NotRun(reason.clone()));
        }
        let benchmark = self.row.benchmark;
        let reason = if benchmark.needs_mpi_file() && !self.backend.is_mpi {
            "collective calls, shared pointers and the opening of files are MPI-IO's own"
        } else if benchmark.has_overlap() && !self.backend.moves_data {
            "nothing is moved that could be under way"
        } else {
            return Ok(());
        };
        Err(Stopped::NotRun(reason.into()))
    }

    /// The slowest active rank's time. Collective.
    pub(super) fn slowest(&self, seconds: f64) -> Result<f64, MpiError> {
        let mut slowest = [seconds];
        self.team.active.max_f64(&mut slowest)?;
        Ok(slowest[0])
    }
}
