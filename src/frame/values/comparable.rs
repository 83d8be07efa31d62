//! What a result offers to a comparison: facts of its set-up and definition, and named quantities. Each benchmark makes its own.

use serde::Serialize;

/// Factor by which a value measured once with direct I/O may differ from run to run.
pub const NOISE_DIRECT: f64 = 1.14;

/// The same through the page cache.
pub const NOISE_CACHED: f64 = 2.0;

/// What it means that a fact differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Something that one may compare on purpose: another library, kernel, hint, file system, host.
    SetUp,
    /// Something that says what is measured: with another one the values are not comparable.
    Definition,
}

/// One fact of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What.
    pub name: String,
    /// As it was.
    pub value: String,
    /// What another value means.
    pub kind: Kind,
}

impl Fact {
    /// A fact.
    pub fn new(kind: Kind, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), kind }
    }
}

/// How much a quantity stands for. Those of one level are tested together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The value of a benchmark.
    Value,
    /// A mean or total: a cell of a small table.
    Group,
    /// A single pattern, size or row.
    Detail,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// 1e6 bytes per second; more is better.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Microseconds; less is better.
    #[serde(rename = "us")]
    Microseconds,
}

impl Unit {
    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::Microseconds => "us",
        }
    }

    /// Natural logarithm of the speed that a value is: larger is faster. None for what has none.
    #[must_use]
    pub fn log_speed(self, value: f64) -> Option<f64> {
        let log = Some(value).filter(|v| v.is_finite() && *v > 0.0).map(f64::ln);
        match self {
            Self::MegabytesPerSecond => log,
            Self::Microseconds => log.map(|log| -log),
        }
    }
}

/// What the records tell beside a number: what may have made it change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Parts of the time and their shares, 0 to 1.
    pub shares: Vec<(&'static str, f64)>,
    /// Share of a read that came from memory, 0 to 1; None: not known, or no read.
    pub cache_share: Option<f64>,
    /// It rests on few calls or few bytes.
    pub few_calls: bool,
    /// Others had a share of the CPUs.
    pub busy: bool,
    /// The calls, the hints in force and the like, by name.
    pub facts: Vec<(String, String)>,
}

/// One number of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// How much it stands for.
    pub level: Level,
    /// Backend; empty: of none.
    pub backend: String,
    /// Ranks of the partition; 0: not one of several.
    pub ranks: u64,
    /// Its name, or the row of the table it belongs to.
    pub row: String,
    /// The column; empty at level value.
    pub column: String,
    /// What it is measured in.
    pub unit: Unit,
    /// The number.
    pub value: f64,
    /// The same by each round within the run; empty: there were none.
    pub rounds: Vec<f64>,
    /// Factor by which it may differ from run to run, 1 or more.
    pub noise: f64,
    /// What the records tell.
    pub told: Told,
}

impl Quantity {
    /// A number of which nothing else is told.
    pub fn new(level: Level, row: impl Into<String>, column: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self {
            level,
            backend: String::new(),
            ranks: 0,
            row: row.into(),
            column: column.into(),
            unit,
            value,
            rounds: Vec::new(),
            noise: NOISE_CACHED,
            told: Told::default(),
        }
    }

    /// Through this backend on a partition of so many ranks.
    #[must_use]
    pub fn of(mut self, backend: &str, ranks: u64) -> Self {
        backend.clone_into(&mut self.backend);
        self.ranks = ranks;
        self
    }

    /// Of a run whose value differs by this factor from run to run.
    #[must_use]
    pub fn noisy(mut self, factor: f64) -> Self {
        self.noise = noise_at(self.level, factor);
        self
    }
}

/// The noise of a number where that of the value is `factor`. Of some means the farthest is farther off than one value is, of
/// hundreds of single lines, each of which rests on less, much farther: the square, and the square of that.
pub(super) fn noise_at(level: Level, factor: f64) -> f64 {
    match level {
        Level::Value => factor,
        Level::Group => factor.powi(2),
        Level::Detail => factor.powi(4),
    }
}

/// What one run offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparable {
    /// Tells it from other runs.
    pub identity: String,
    /// Its start, UTC, RFC 3339.
    pub started_utc: String,
    /// What must be known before its numbers are used: it was interrupted, data was wrong.
    pub troubles: Vec<String>,
    /// True if data was not what was written or sent.
    pub is_corrupt: bool,
    /// Facts.
    pub facts: Vec<Fact>,
    /// Numbers.
    pub quantities: Vec<Quantity>,
}
