//! What the results of all benchmarks can do: grow line by line, as their journals do.

use serde::de::DeserializeOwned;
use serde::Serialize;

use super::{ErrorRecord, Outcome, Warning};

/// The result of a run that is recorded line by line.
pub trait Record: Sized {
    /// One line of its journal.
    type Line: Serialize + DeserializeOwned;
    /// Its last line.
    type Ending: RunEnd;
    /// The benchmark that its start line and its document name.
    const BENCHMARK: &'static str;

    /// The result as the start line begins it.
    ///
    /// # Errors
    /// Another line, as it was.
    fn begin(line: Self::Line) -> Result<Self, Self::Line>;

    /// The first line of the journal.
    fn start_line(&self) -> Self::Line;

    /// Takes one line in. A start line inside a run is ignored.
    fn absorb(&mut self, line: Self::Line);

    /// The line of a warning.
    fn warning_line(warning: Warning) -> Self::Line;

    /// Takes a warning of the run itself in, without a line of the journal.
    fn warn(&mut self, warning: Warning) {
        self.absorb(Self::warning_line(warning));
    }

    /// The last line.
    fn end_line(ending: Self::Ending) -> Self::Line;

    /// How the run ended.
    fn outcome(&self) -> Outcome;

    /// The errors that were met.
    fn errors(&self) -> &[ErrorRecord];

    /// True if data was not what was written or sent.
    fn is_corrupt(&self) -> bool;

    /// True if all that was planned was refused, each with its reason.
    fn measured_nothing(&self) -> bool;
}

/// The end of a run.
pub trait RunEnd {
    /// How it ended.
    fn outcome(&self) -> Outcome;

    /// Largest resident memory of a rank; this rank's until the ranks have told each other.
    fn rank_memory_high_water_bytes(&mut self) -> &mut u64;

    /// The files were removed in this time; said only by benchmarks that have some.
    fn cleaned_up(&mut self, _seconds: f64) {}
}

/// A field of a result that takes lines of the journal in: all of a list, of others the last.
pub(crate) trait TakeIn<T> {
    fn take_in(&mut self, record: T);
}

impl<T> TakeIn<T> for Option<T> {
    fn take_in(&mut self, record: T) {
        *self = Some(record);
    }
}

impl<T> TakeIn<T> for Vec<T> {
    fn take_in(&mut self, record: T) {
        self.push(record);
    }
}

impl<T> TakeIn<Box<T>> for Vec<T> {
    fn take_in(&mut self, record: Box<T>) {
        self.push(*record);
    }
}

/// The result of a benchmark and the lines of its journal from one list of what is recorded, in the order of the
/// document: what the start line says, then each field with the line that fills it. Schema version, errors, warnings
/// and end are the same everywhere. A result that is `named` says in this field of which benchmark it is; files are
/// `cleaned up in` that field of the ending. What the macro cannot know is `has_wrong_data`, whether the records count any, and
/// `nothing_was_run`, whether all was refused.
macro_rules! run_record {
    (
        $(#[$of_result:meta])*
        result $Result:ident of $BENCHMARK:ident $(named $benchmark:ident)?,
        $(#[$of_line:meta])*
        line $Line:ident,
        start { $($(#[$of_start:meta])* $start:ident: $Start:ty,)+ }
        records { $($(#[$of_field:meta])* $field:ident: $Field:ty = $(#[$of_variant:meta])* $Variant:ident($Content:ty),)+ }
        ending $Ending:ident $(cleaned up in $cleanup_seconds:ident)?,
    ) => {
        $(#[$of_result])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $Result {
            /// Version of this format; raised when a field changes its meaning or goes away.
            #[schemars(extend("minimum" = 1, "maximum" = $crate::frame::records::SCHEMA_VERSION))]
            pub schema_version: u32,
            $(
                /// Name of the benchmark.
                #[schemars(extend("const" = $BENCHMARK))]
                pub $benchmark: String,
            )?
            $($(#[$of_start])* pub $start: $Start,)+
            $($(#[$of_field])* pub $field: $Field,)+
            /// Errors that ended the run.
            pub errors: Vec<$crate::frame::records::ErrorRecord>,
            /// Warnings of the run itself (the journal broke or is torn, files left, ...); those that follow from the
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
            /// An error.
            Error($crate::frame::records::ErrorRecord),
            /// A warning.
            Warning($crate::frame::records::Warning),
            /// Last line of a run that was not killed.
            End($Ending),
        }

        impl $Result {
            /// An empty result; it is that of a killed run until an end is recorded.
            #[must_use]
            pub fn new($($start: $Start),+) -> Self {
                Self {
                    schema_version: $crate::frame::records::SCHEMA_VERSION,
                    $($benchmark: $BENCHMARK.into(),)?
                    $($start,)+
                    $($field: Default::default(),)+
                    errors: Vec::new(),
                    warnings: Vec::new(),
                    ending: Default::default(),
                }
            }
        }

        impl $crate::frame::records::Record for $Result {
            type Line = $Line;
            type Ending = $Ending;
            const BENCHMARK: &'static str = $BENCHMARK;

            fn begin(line: $Line) -> Result<Self, $Line> {
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

            fn absorb(&mut self, line: $Line) {
                use $crate::frame::records::TakeIn;
                match line {
                    $Line::Start { .. } => {}
                    $($Line::$Variant(record) => self.$field.take_in(record),)+
                    $Line::Error(error) => self.errors.push(error),
                    $Line::Warning(warning) => self.warnings.push(warning),
                    $Line::End(ending) => self.ending = ending,
                }
            }

            fn warning_line(warning: $crate::frame::records::Warning) -> $Line {
                $Line::Warning(warning)
            }

            fn end_line(ending: $Ending) -> $Line {
                $Line::End(ending)
            }

            fn outcome(&self) -> $crate::frame::records::Outcome {
                self.ending.outcome
            }

            fn errors(&self) -> &[$crate::frame::records::ErrorRecord] {
                &self.errors
            }

            fn is_corrupt(&self) -> bool {
                !self.corruptions.is_empty() || self.has_wrong_data()
            }

            fn measured_nothing(&self) -> bool {
                self.nothing_was_run()
            }
        }

        impl $crate::frame::records::RunEnd for $Ending {
            fn outcome(&self) -> $crate::frame::records::Outcome {
                self.outcome
            }

            fn rank_memory_high_water_bytes(&mut self) -> &mut u64 {
                &mut self.rank_memory_high_water_bytes
            }
            $(
                fn cleaned_up(&mut self, seconds: f64) {
                    self.$cleanup_seconds = seconds;
                }
            )?
        }
    };
}
pub(crate) use run_record;
