//! Interface of all benchmark results: they are built line by line, like their journals.

use serde::de::DeserializeOwned;
use serde::Serialize;

use super::{ErrorRecord, RunOutcome, TimeLimitRecord, Warning};

/// The result of a run that is recorded line by line.
pub trait JournaledResult: Sized {
    /// Line of the journal.
    type JournalLine: Serialize + DeserializeOwned;
    /// Last line of the journal.
    type EndRecord: RunEnd;
    /// Name of the benchmark in the start line and in the document.
    const BENCHMARK: &'static str;

    /// Creates the result from the start line.
    ///
    /// # Errors
    /// Returns any other line unchanged.
    fn from_start_line(line: Self::JournalLine) -> Result<Self, Self::JournalLine>;

    /// The first line of the journal.
    fn start_line(&self) -> Self::JournalLine;

    /// Adds one line. A start line inside a run is ignored.
    fn apply(&mut self, line: Self::JournalLine);

    /// Line for a warning.
    fn warning_line(warning: Warning) -> Self::JournalLine;

    /// Line for the time limit, which replaces an earlier one.
    fn time_limit_line(record: TimeLimitRecord) -> Self::JournalLine;

    /// The time limit, if there is one.
    fn time_limit(&self) -> Option<&TimeLimitRecord>;

    /// Adds a warning without a line of the journal.
    fn add_warning(&mut self, warning: Warning) {
        self.apply(Self::warning_line(warning));
    }

    /// The last line.
    fn end_line(ending: Self::EndRecord) -> Self::JournalLine;

    /// How the run ended.
    fn outcome(&self) -> RunOutcome;

    /// Recorded errors.
    fn errors(&self) -> &[ErrorRecord];

    /// True if data differed from what was written or sent.
    fn is_corrupt(&self) -> bool;

    /// True if every planned measurement was refused, each with its reason.
    fn has_no_measurement(&self) -> bool;
}

/// The end of a run.
pub trait RunEnd {
    /// Outcome of the run.
    fn outcome(&self) -> RunOutcome;

    /// Largest resident memory of a rank; the local rank's value until it is reduced over the ranks.
    fn rank_memory_high_water_bytes(&mut self) -> &mut u64;

    /// Sets the time taken to remove the files; only benchmarks with files implement it.
    fn set_cleanup_seconds(&mut self, _seconds: f64) {}

    /// Sets the time taken to write the journal; only benchmarks with an account of their time implement it.
    fn set_journal_seconds(&mut self, _seconds: f64) {}
}

/// A field of a result that is filled from lines of the journal: a list keeps all records, other fields keep the last.
pub(crate) trait Accumulate<T> {
    fn accumulate(&mut self, record: T);
}

impl<T> Accumulate<T> for Option<T> {
    fn accumulate(&mut self, record: T) {
        *self = Some(record);
    }
}

impl<T> Accumulate<T> for Vec<T> {
    fn accumulate(&mut self, record: T) {
        self.push(record);
    }
}

impl<T> Accumulate<Box<T>> for Vec<T> {
    fn accumulate(&mut self, record: Box<T>) {
        self.push(*record);
    }
}

/// Defines the result of a benchmark and its journal lines from one list, in the order of the document: fields of the start line,
/// then each field with the line that fills it. Schema version, errors, warnings and end are common to all. `named` gives the field
/// with the benchmark's name, `cleaned up in` the field of the ending with the cleanup time, `set up in` that with
/// the time of the journal. The benchmark itself implements
/// `has_wrong_data` (the records count wrong data) and `nothing_was_run` (everything was refused).
macro_rules! run_record {
    (
        $(#[$of_result:meta])*
        result $Result:ident of $BENCHMARK:ident $(named $benchmark:ident)?,
        $(#[$of_line:meta])*
        line $Line:ident,
        start { $($(#[$of_start:meta])* $start:ident: $Start:ty,)+ }
        records { $($(#[$of_field:meta])* $field:ident: $Field:ty = $(#[$of_variant:meta])* $Variant:ident($Content:ty),)+ }
        ending $Ending:ident $(cleaned up in $cleanup_seconds:ident)?, $(set up in $set_up:ident,)?
    ) => {
        $(#[$of_result])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $Result {
            /// Version of this format; raised when a field changes its meaning or is removed.
            #[schemars(extend("minimum" = 1, "maximum" = $crate::frame::records::SCHEMA_VERSION))]
            pub schema_version: u32,
            $(
                /// Name of the benchmark.
                #[schemars(extend("const" = $BENCHMARK))]
                pub $benchmark: String,
            )?
            $($(#[$of_start])* pub $start: $Start,)+
            $($(#[$of_field])* pub $field: $Field,)+
            /// Time limit of the run; None without `--time-limit`.
            #[serde(default)]
            pub time_limit: Option<$crate::frame::records::TimeLimitRecord>,
            /// Errors that ended the run.
            pub errors: Vec<$crate::frame::records::ErrorRecord>,
            /// Warnings of the run itself (incomplete or truncated journal, files not removed, ...); warnings that follow from the
            /// records are derived.
            pub warnings: Vec<$crate::frame::records::Warning>,
            /// How the run ended.
            pub ending: $Ending,
        }

        $(#[$of_line])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case", tag = "record")]
        pub enum $Line {
            /// First line.
            Start {
                /// [`SCHEMA_VERSION`](crate::frame::records::SCHEMA_VERSION) of the writer.
                schema_version: u32,
                $(
                    #[doc = concat!("[`", stringify!($BENCHMARK), "`].")]
                    $benchmark: String,
                )?
                $($(#[$of_start])* $start: Box<$Start>,)+
            },
            $(
                #[doc = concat!("For [`", stringify!($Result), "::", stringify!($field), "`].")]
                $(#[$of_variant])*
                $Variant($Content),
            )+
            /// The time limit; again when something is omitted.
            TimeLimit($crate::frame::records::TimeLimitRecord),
            /// An error.
            Error($crate::frame::records::ErrorRecord),
            /// A warning.
            Warning($crate::frame::records::Warning),
            /// Last line of a run that was not killed.
            End($Ending),
        }

        impl $Result {
            /// An empty result; its outcome is that of a killed run until an end is recorded.
            #[must_use]
            pub fn new($($start: $Start),+) -> Self {
                Self {
                    schema_version: $crate::frame::records::SCHEMA_VERSION,
                    $($benchmark: $BENCHMARK.into(),)?
                    $($start,)+
                    $($field: Default::default(),)+
                    time_limit: None,
                    errors: Vec::new(),
                    warnings: Vec::new(),
                    ending: Default::default(),
                }
            }
        }

        impl $crate::frame::records::JournaledResult for $Result {
            type JournalLine = $Line;
            type EndRecord = $Ending;
            const BENCHMARK: &'static str = $BENCHMARK;

            fn from_start_line(line: $Line) -> Result<Self, $Line> {
                match line {
                    $Line::Start { schema_version, $($benchmark,)? $($start),+ } => {
                        Ok(Self { schema_version, $($benchmark,)? ..Self::new($(*$start),+) })
                    }
                    other => Err(other),
                }
            }

            fn start_line(&self) -> $Line {
                $Line::Start {
                    schema_version: self.schema_version,
                    $($benchmark: self.$benchmark.clone(),)?
                    $($start: Box::new(self.$start.clone()),)+
                }
            }

            fn apply(&mut self, line: $Line) {
                use $crate::frame::records::Accumulate;
                match line {
                    $Line::Start { .. } => {}
                    $($Line::$Variant(record) => self.$field.accumulate(record),)+
                    $Line::TimeLimit(record) => self.time_limit.accumulate(record),
                    $Line::Error(error) => self.errors.push(error),
                    $Line::Warning(warning) => self.warnings.push(warning),
                    $Line::End(ending) => self.ending = ending,
                }
            }

            fn warning_line(warning: $crate::frame::records::Warning) -> $Line {
                $Line::Warning(warning)
            }

            fn time_limit_line(record: $crate::frame::records::TimeLimitRecord) -> $Line {
                $Line::TimeLimit(record)
            }

            fn time_limit(&self) -> Option<&$crate::frame::records::TimeLimitRecord> {
                self.time_limit.as_ref()
            }

            fn end_line(ending: $Ending) -> $Line {
                $Line::End(ending)
            }

            fn outcome(&self) -> $crate::frame::records::RunOutcome {
                self.ending.outcome
            }

            fn errors(&self) -> &[$crate::frame::records::ErrorRecord] {
                &self.errors
            }

            fn is_corrupt(&self) -> bool {
                !self.corruptions.is_empty() || self.has_wrong_data()
            }

            fn has_no_measurement(&self) -> bool {
                self.nothing_was_run()
            }
        }

        impl $crate::frame::records::RunEnd for $Ending {
            fn outcome(&self) -> $crate::frame::records::RunOutcome {
                self.outcome
            }

            fn rank_memory_high_water_bytes(&mut self) -> &mut u64 {
                &mut self.rank_memory_high_water_bytes
            }
            $(
                fn set_cleanup_seconds(&mut self, seconds: f64) {
                    self.$cleanup_seconds = seconds;
                }
            )?
            $(
                fn set_journal_seconds(&mut self, seconds: f64) {
                    if let Some(times) = &mut self.$set_up {
                        times.journal_seconds = seconds;
                    }
                }
            )?
        }
    };
}
pub(crate) use run_record;
