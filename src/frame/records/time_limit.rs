//! Record of the time limit of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Part of a run that is beyond the first measurement and can be omitted, in the order of omission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OmittedPart {
    /// Repetitions after the first measurement.
    Repetitions,
    /// Rounds of a pattern: later patterns have one.
    Rounds,
    /// Samples of the verification: the files of later patterns are not reread.
    VerificationSamples,
}

impl OmittedPart {
    /// Words for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Repetitions => "repetitions",
            Self::Rounds => "rounds",
            Self::VerificationSamples => "samples of the verification",
        }
    }
}

/// Time limit of a run (`--time-limit`), and what was omitted for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeLimitRecord {
    /// `--time-limit`, or the variable or command that reported the end of the batch job: `SLURM_JOB_END_TIME`, `squeue`, `qstat`, ...
    pub source: String,
    /// Time to the limit when it was determined, at the start of the run; None: the batch job has no limit.
    pub seconds: Option<f64>,
    /// Time reserved for the end of the run: closing and removing files, writing results, MPI_Finalize. During the run that for the
    /// existing files is added.
    pub reserve_seconds: f64,
    /// T (`--time`) that would fit, if the given one does not; None: it does, or is not scheduled.
    pub fitting_time_seconds: Option<f64>,
    /// What was omitted, in this order.
    pub omitted: Vec<OmittedPart>,
}
