//! Data of a result for comparisons: facts of its set-up and definition, and named quantities. Each benchmark provides its own.

use beff_statistics::bootstrap::Interval;
use serde::Serialize;

use super::doubt::Doubt;

/// Run-to-run variation of a value measured once with direct I/O, as a factor.
pub const NOISE_DIRECT: f64 = 1.14;

/// The same through the page cache.
pub const NOISE_CACHED: f64 = 2.0;

/// Name of the fact about the steadiness of the storage: evidence of each run, not of its set-up.
pub const STORAGE_DRIFT_FACT: &str = "storage under the run";

/// Meaning of a differing fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// May be compared on purpose: another library, kernel, hint, file system, host.
    SetUp,
    /// Defines what is measured: if it differs, the values are not comparable.
    Definition,
}

/// One fact of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Name.
    pub name: String,
    /// Value in this run.
    pub value: String,
    /// Meaning of a difference.
    pub kind: FactKind,
}

impl Fact {
    /// A fact.
    pub fn new(kind: FactKind, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), kind }
    }
}

/// Aggregation level of a quantity. Quantities of one level are tested together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantityLevel {
    /// The value of a benchmark.
    Value,
    /// A mean or total: a cell of a small table.
    Group,
    /// A single pattern, size or row.
    Detail,
}

/// Unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum QuantityUnit {
    /// 1e6 bytes per second; more is better.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Microseconds; less is better.
    #[serde(rename = "us")]
    Microseconds,
}

impl QuantityUnit {
    /// Printed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::Microseconds => "us",
        }
    }

    /// Natural logarithm of the speed that corresponds to a value: larger is faster; infinite for the value 0. None if it is undefined.
    #[must_use]
    pub fn log_speed(self, value: f64) -> Option<f64> {
        let log = Some(value).filter(|v| v.is_finite() && *v >= 0.0).map(f64::ln);
        match self {
            Self::MegabytesPerSecond => log,
            Self::Microseconds => log.map(|log| -log),
        }
    }
}

/// Circumstances of a quantity that may explain a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasurementContext {
    /// Parts of the time and their shares, 0 to 1.
    pub shares: Vec<(&'static str, f64)>,
    /// Share of cached bytes of a read, 0 to 1; None if unknown or not a read.
    pub cache_share: Option<f64>,
    /// The quantity is based on few calls or few bytes.
    pub few_calls: bool,
    /// Disturbed by interference.
    pub has_interference: bool,
    /// Calls, hints in force and similar facts, by name.
    pub facts: Vec<(String, String)>,
}

/// One number of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Aggregation level.
    pub level: QuantityLevel,
    /// Backend; empty if there is none.
    pub backend: String,
    /// Ranks of the partition; 0 if there is only one partition.
    pub ranks: u64,
    /// Name, or row of its table.
    pub row: String,
    /// Column of its table; empty at level value.
    pub column: String,
    /// Unit.
    pub unit: QuantityUnit,
    /// The number.
    pub value: f64,
    /// 95 % confidence interval within the run, narrow enough to be shown; None if unknown.
    pub interval: Option<[f64; 2]>,
    /// Values of the rounds within the run; may be empty.
    pub rounds: Vec<f64>,
    /// Run-to-run variation as a factor, 1 or more.
    pub noise: f64,
    /// Circumstances of the measurement.
    pub context: MeasurementContext,
}

impl Quantity {
    /// Creates a quantity without further information.
    pub fn new(
        level: QuantityLevel,
        row: impl Into<String>,
        column: impl Into<String>,
        unit: QuantityUnit,
        value: f64,
    ) -> Self {
        Self {
            level,
            backend: String::new(),
            ranks: 0,
            row: row.into(),
            column: column.into(),
            unit,
            value,
            interval: None,
            rounds: Vec::new(),
            noise: NOISE_CACHED,
            context: MeasurementContext::default(),
        }
    }

    /// Sets backend and number of ranks.
    #[must_use]
    pub fn with_backend(mut self, backend: &str, ranks: u64) -> Self {
        backend.clone_into(&mut self.backend);
        self.ranks = ranks;
        self
    }

    /// Sets the interval, if it is narrow enough to be shown.
    #[must_use]
    pub fn with_interval(mut self, ends: Option<[f64; 2]>) -> Self {
        self.interval = ends.filter(|[low, high]| Interval { low: *low, high: *high }.is_resolved());
        self
    }

    /// Sets the noise from the run-to-run variation of the value.
    #[must_use]
    pub fn with_noise(mut self, factor: f64) -> Self {
        self.noise = noise_for_level(self.level, factor);
        self
    }
}

/// The noise of a quantity where that of the value is `factor`. The largest deviation of several means exceeds that of one value, that of
/// hundreds of single lines, each based on less data, even more: the square, and the fourth power.
pub(super) fn noise_for_level(level: QuantityLevel, factor: f64) -> f64 {
    match level {
        QuantityLevel::Value => factor,
        QuantityLevel::Group => factor.powi(2),
        QuantityLevel::Detail => factor.powi(4),
    }
}

/// Data of one run for comparisons.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparableRun {
    /// Identifies the run.
    pub identity: String,
    /// Its start, UTC, RFC 3339.
    pub started_utc: String,
    /// Problems to be known before its numbers are used: interruption, wrong data.
    pub troubles: Vec<String>,
    /// Evidence that its differences prove nothing.
    pub doubts: Vec<Doubt>,
    /// True if data differed from what was written or sent.
    pub is_corrupt: bool,
    /// Facts.
    pub facts: Vec<Fact>,
    /// Numbers.
    pub quantities: Vec<Quantity>,
}
