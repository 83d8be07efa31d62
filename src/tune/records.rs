//! Records of `tune`: trials. Ratios are derived ([`crate::tune::values`]).

use beff_tuning::search::SearchPlan;
use beff_tuning::trial::{Factor, PlannedTrial, Trial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::{run_record, InterferenceRecord, MachineRecord, RunOutcome, StorageRecord};
use crate::frame::run::trials::TrialOutcome;
use crate::frame::trials::Setting;
use crate::tune::config::TuneConfig;

/// Value of the field `benchmark` in the files of `tune`.
pub const TUNE: &str = "tune";

/// A key, or one of its values, that is not tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OmittedKey {
    /// Key, or key and value.
    pub key: String,
    /// Why.
    pub reason: String,
}

/// Set-up of a search beyond its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneSetup {
    /// Hosts and software.
    pub machine: MachineRecord,
    /// Storage.
    pub storage: StorageRecord,
    /// Implementation of MPI-IO.
    pub mpi_io_layer: String,
    /// The work of a trial in words.
    pub work: String,
    /// Hints that the library lists for a file without hints.
    pub default_hints: Setting,
    /// Keys and values to try.
    pub factors: Vec<Factor>,
    /// Keys and values that are not tried.
    pub omitted: Vec<OmittedKey>,
    /// True if the best setting is also measured with other work: other chunk sizes.
    pub has_others: bool,
}

impl TuneSetup {
    /// The plan of the search.
    #[must_use]
    pub fn search_plan(&self, config: &TuneConfig) -> SearchPlan {
        SearchPlan { factors: self.factors.clone(), budget_seconds: config.budget_seconds, has_others: self.has_others }
    }
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// As planned.
    pub planned: PlannedTrial,
    /// Begin since that of the search, in seconds.
    pub begin_seconds: f64,
    /// End, after the removal of its files.
    pub end_seconds: f64,
    /// Result.
    pub outcome: TrialOutcome,
}

impl TrialRecord {
    /// The trial as the search sees it: a setting with wrong data, or one that is refused, has no figure.
    #[must_use]
    pub fn judged(&self) -> Trial {
        let outcome = &self.outcome;
        let is_usable = outcome.refusal.is_none() && outcome.words_wrong == 0;
        Trial {
            planned: self.planned.clone(),
            begin_seconds: self.begin_seconds,
            end_seconds: self.end_seconds,
            measured_seconds: outcome.parts.iter().map(|part| part.seconds).sum(),
            bytes_per_second: Some(outcome.bytes_per_second).filter(|rate| is_usable && *rate > 0.0),
        }
    }
}

/// A setting with wrong data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialCorruption {
    /// Number of the trial, from 0.
    pub trial: u32,
    /// Its setting.
    pub setting: Setting,
    /// Words compared.
    pub words_checked: u64,
    /// Wrong words.
    pub words_wrong: u64,
}

/// End of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneEnding {
    /// Outcome.
    pub outcome: RunOutcome,
    /// Time of the search.
    pub real_seconds: f64,
    /// Largest peak resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// CPU times over all trials, of the host that lost the largest share; None: unknown.
    #[serde(default)]
    pub interference: Option<InterferenceRecord>,
}

run_record! {
    /// Result of one search.
    result TuneResult of TUNE named benchmark,
    /// One line of the journal of a search.
    line TuneLine,
    start {
        /// Configuration.
        config: TuneConfig,
        /// Set-up.
        setup: TuneSetup,
    }
    records {
        /// Trials in the order of measurement.
        trials: Vec<TrialRecord> = Trial(Box<TrialRecord>),
        /// Settings with wrong data.
        corruptions: Vec<TrialCorruption> = Corruption(TrialCorruption),
    }
    ending TuneEnding,
}

impl TuneResult {
    fn has_wrong_data(&self) -> bool {
        self.trials.iter().any(|trial| trial.outcome.words_wrong > 0)
    }

    /// The default itself was refused.
    fn nothing_was_run(&self) -> bool {
        !self.trials.is_empty() && self.trials.iter().all(|trial| trial.outcome.refusal.is_some())
    }
}
