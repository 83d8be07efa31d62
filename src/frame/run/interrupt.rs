//! SIGINT and SIGTERM as a flag that the loops check between batches, and the time limit of the run, which ends it in the same way.
//!
//! The next agreement passes the flag to all ranks. Names of files are removed at once, because launchers that forward a signal may kill
//! soon after; then files are closed and the result is published. A second signal has no effect.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use beff_ffi::{Comm, MpiError};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

use crate::frame::error::Exit;
use crate::frame::records::RunOutcome;
use crate::frame::run::agree;
use crate::frame::run::job_limit::JobLimit;

/// Requests of a rank to end the run, which a reduction over the ranks with MPI_MAX combines: a signal outweighs the limit, an error both.
const NO_REQUEST: u64 = 0;
const LIMIT_REQUEST: u64 = 1;
const SIGNAL_REQUEST: u64 = 2;
const FAILURE_REQUEST: u64 = 3;

/// True while a signal ends the process at once.
static EXITS_AT_ONCE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Until [`Interrupt::watch`] a signal ends the process at once with the exit code of an interrupted run: nothing is measured or created
/// yet, and a call of MPI_Init that waits checks no flag. Launchers report the signal itself as 2.
///
/// # Errors
/// A handler cannot be installed.
pub fn exit_at_once_on_signals() -> std::io::Result<()> {
    let is_early = EXITS_AT_ONCE.get_or_init(|| Arc::new(AtomicBool::new(true)));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(Exit::Interrupted.code());
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(is_early))?;
    }
    Ok(())
}

/// Whether the user or the batch system has requested an end, or the time limit requires one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    limit: Option<Arc<JobLimit>>,
}

impl Interrupt {
    /// Installs handlers of SIGINT and SIGTERM. A second signal has no effect: launchers forward what the terminal has sent already, so
    /// two signals are often one key press. To end a rank that hangs, use the launcher or SIGQUIT.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn watch() -> std::io::Result<Self> {
        let this = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&this.flag))?;
        }
        if let Some(is_early) = EXITS_AT_ONCE.get() {
            is_early.store(false, Ordering::SeqCst);
        }
        Ok(this)
    }

    /// Sets the flag as a signal does.
    #[cfg(test)]
    pub(crate) fn raise(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Adds the time limit of the run, on rank 0.
    #[must_use]
    pub fn with_limit(self, limit: Option<JobLimit>) -> Self {
        Self { limit: limit.map(Arc::new), ..self }
    }

    /// Gives every rank a limit of its own, as far away as that of rank 0, for runs whose ranks do not hear of each other. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn share_limit(self, comm: &Comm) -> Result<Self, MpiError> {
        let left_seconds = agree::broadcast(comm, self.limit().map_or(f64::INFINITY, JobLimit::left_seconds))?;
        let is_missing = self.limit.is_none() && left_seconds.is_finite();
        Ok(if is_missing { self.with_limit(Some(JobLimit::without_reserve(left_seconds))) } else { self })
    }

    /// The time limit of the run, on rank 0.
    #[must_use]
    pub fn limit(&self) -> Option<&JobLimit> {
        self.limit.as_deref()
    }

    /// True once a signal has arrived.
    #[must_use]
    #[inline]
    pub fn has_signal(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// True once a signal has arrived, or the time limit is reached.
    #[must_use]
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.request(0.0) != NO_REQUEST
    }

    /// This rank's request for a reduction over the ranks: [`stop_outcome`] of its maximum. `seconds`: time of what follows before the run
    /// could end.
    #[must_use]
    #[inline]
    pub fn request(&self, seconds: f64) -> u64 {
        if self.has_signal() {
            return SIGNAL_REQUEST;
        }
        match &self.limit {
            Some(limit) if limit.left_seconds() <= seconds => LIMIT_REQUEST,
            _ => NO_REQUEST,
        }
    }

    /// How the run ends, if any rank requests it; `seconds` as in [`Interrupt::request`]. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn agree(&self, comm: &Comm, seconds: f64) -> Result<Option<RunOutcome>, MpiError> {
        let mut request = [self.request(seconds)];
        comm.max_u64(&mut request)?;
        Ok(stop_outcome(request[0]))
    }
}

impl Interrupt {
    /// Why some ranks have stopped; None: none has. A rank may stop because another one has. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn agree_on_cause(&self, comm: &Comm, has_stopped: bool) -> Result<Option<RunOutcome>, MpiError> {
        let mut request = [if has_stopped { self.request(0.0).max(LIMIT_REQUEST) } else { NO_REQUEST }];
        comm.max_u64(&mut request)?;
        Ok(stop_outcome(request[0]))
    }

    /// How the run ends, if it `stops` on any rank, or a signal has arrived. The limit does not count: a run that has completed its last
    /// part before it is complete. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn agree_on_stop(&self, comm: &Comm, stops: Option<RunOutcome>) -> Result<Option<RunOutcome>, MpiError> {
        let mut request = [match stops {
            None if self.has_signal() => SIGNAL_REQUEST,
            None => NO_REQUEST,
            Some(RunOutcome::Limit) => LIMIT_REQUEST,
            Some(RunOutcome::Failed) => FAILURE_REQUEST,
            Some(_) => SIGNAL_REQUEST,
        }];
        comm.max_u64(&mut request)?;
        Ok(stop_outcome(request[0]))
    }
}

/// How the run ends after this request; None: it continues.
#[must_use]
pub fn stop_outcome(request: u64) -> Option<RunOutcome> {
    match request {
        NO_REQUEST => None,
        LIMIT_REQUEST => Some(RunOutcome::Limit),
        SIGNAL_REQUEST => Some(RunOutcome::Interrupted),
        _ => Some(RunOutcome::Failed),
    }
}

/// Makes a write beyond the file-size limit of the process (RLIMIT_FSIZE) fail with EFBIG instead of ending the process by SIGXFSZ. Child
/// programs get the default action again (execve(2)).
///
/// # Errors
/// A handler cannot be installed.
pub fn catch_sigxfsz() -> std::io::Result<()> {
    // An empty handler: an ignored signal would be inherited by child programs.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}
