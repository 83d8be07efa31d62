//! Views of a result: on stdout, in the files of a run, and in `report`.

use std::io;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::Serialize;

use super::display::{DetailLevel, DisplayContext};
use super::journal::JournalError;
use super::json::JsonError;
use super::metrics::ResultMetric;
use super::model::ReportModel;
use super::picture::MeasuredPoint;
use super::system_list::ListedValue;
use super::terminal::TerminalOutput;
use super::{html, journal as jsonl, json, render};
use crate::frame::records::{JournaledResult, Warning, WarningKind};
use crate::frame::values::acceptance::RequiredFigures;
use crate::frame::values::comparable::ComparableRun;

/// Views of the results of a benchmark. Pure functions of the records and their derived values.
pub trait Views: JournaledResult + Serialize + DeserializeOwned + JsonSchema + Send + Sync {
    /// Values derived from the records.
    type Derived: Serialize + JsonSchema + Send + Sync + 'static;
    /// Name of the benchmark in a sentence.
    const TITLE: &'static str;
    /// The file that describes the fields of its document.
    const SCHEMA: &'static str;
    /// Its kinds of warnings in addition to the common ones.
    const KINDS: &'static [WarningKind];

    /// Derives all values, also from an incomplete result.
    fn derived(&self) -> Self::Derived;

    /// Derives the values that [`Views::model`] needs for a page.
    fn derived_for_page(&self) -> Self::Derived {
        self.derived()
    }

    /// Recorded and derived warnings.
    fn warnings(derived: &Self::Derived) -> &[Warning];

    /// Report model of the result at this level.
    fn model(&self, derived: &Self::Derived, level: DetailLevel) -> ReportModel;

    /// Output on stdout.
    fn sheet(&self, derived: &Self::Derived, level: DetailLevel, place: &DisplayContext) -> TerminalOutput {
        render::sheet(&self.model(derived, level), level, place)
    }

    /// The JSON document.
    ///
    /// # Errors
    /// A path of the configuration that is not UTF-8 cannot be represented in JSON.
    fn document(&self, derived: &Self::Derived) -> Result<Vec<u8>, serde_json::Error> {
        write_document(self, derived, None::<NoExtraFields>)
    }

    /// JSON Schema of the document.
    #[must_use]
    fn schema() -> String {
        schema_with::<Self, NoExtraFields>()
    }

    /// The tidy table.
    ///
    /// # Errors
    /// Those of the csv writer.
    fn csv(&self, derived: &Self::Derived) -> Result<Vec<u8>, csv::Error>;

    /// Data for a comparison with other results.
    fn comparable(&self, derived: &Self::Derived) -> ComparableRun;

    /// Sets the Rmax of LINPACK for the balance factor; false if its values have none.
    fn set_rmax(&mut self, _gflops: f64) -> bool {
        false
    }

    /// Replaces the requirements of the acceptance by those of this text, with the first line that is none as error; None if its values have
    /// no requirements.
    fn set_requirements(&mut self, _text: &str) -> Option<Result<(), String>> {
        None
    }

    /// Figures for its requirements; empty without any.
    fn required_figures(&self, _derived: &Self::Derived) -> Vec<RequiredFigures> {
        Vec::new()
    }

    /// Points for the picture of several results; empty if there is none.
    fn points(&self, _derived: &Self::Derived) -> Vec<MeasuredPoint> {
        Vec::new()
    }

    /// Points for the pictures of values over ranks.
    fn over_ranks(&self, derived: &Self::Derived) -> Vec<MeasuredPoint> {
        self.points(derived)
    }

    /// Values for the list of results of a system; empty if the benchmark has no such value.
    fn listed(&self, _derived: &Self::Derived) -> Vec<ListedValue> {
        Vec::new()
    }

    /// Values for monitoring systems; empty if the benchmark has no such value.
    fn metrics(&self, _derived: &Self::Derived) -> Vec<ResultMetric> {
        Vec::new()
    }

    /// Suffixes of the files specific to this benchmark.
    fn own_suffixes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Text of such a file; None if there is no such file.
    fn own_file(&self, _derived: &Self::Derived, _suffix: &str) -> Option<String> {
        None
    }

    /// Suffixes of all files except the journal.
    fn suffixes(&self) -> Vec<String> {
        [".json", ".csv"].map(str::to_owned).into_iter().chain(self.own_suffixes()).collect()
    }

    /// The bytes of the file with this suffix.
    ///
    /// # Errors
    /// A record that the format cannot represent; a suffix not in [`Views::suffixes`].
    fn file_bytes(&self, derived: &Self::Derived, suffix: &str) -> io::Result<Vec<u8>> {
        match suffix {
            ".json" => Ok(self.document(derived)?),
            ".csv" => Ok(self.csv(derived)?),
            own => self.own_file(derived, own).map(String::into_bytes).ok_or_else(|| {
                let message = format!("{} has no file that ends with {own}", Self::TITLE);
                io::Error::new(io::ErrorKind::InvalidInput, message)
            }),
        }
    }

    /// Output of `report --format` for this word; None if this benchmark has no such format.
    fn format(&self, derived: &Self::Derived, word: &str) -> Option<io::Result<Vec<u8>>> {
        let suffix = format!(".{word}");
        self.suffixes().contains(&suffix).then(|| self.file_bytes(derived, &suffix))
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Derived")]
struct DerivedView<'a, D, M> {
    #[serde(flatten)]
    derived: &'a D,
    #[serde(flatten)]
    extra: Option<M>,
}

#[derive(Serialize, JsonSchema)]
struct NoExtraFields {}

/// JSON Schema of a document with the additional, write-only fields of `M`.
pub(crate) fn schema_with<R: Views, M: JsonSchema>() -> String {
    json::document_schema::<R, DerivedView<'static, R::Derived, M>>(R::TITLE, R::KINDS)
}

/// The JSON document with the additional, write-only fields of `more`.
pub(crate) fn write_document<R: Views>(
    result: &R,
    derived: &R::Derived,
    more: Option<impl Serialize>,
) -> Result<Vec<u8>, serde_json::Error> {
    json::write_result(result, DerivedView { derived, extra: more })
}

/// Reads PREFIX.json as a result of this benchmark.
///
/// # Errors
/// [`JsonError`].
pub(crate) fn parse<R: Views>(bytes: &[u8]) -> Result<R, JsonError> {
    json::parse_result(bytes, R::SCHEMA)
}

/// A result of some benchmark, read from a file.
pub trait LoadedReport: std::fmt::Debug + Send + Sync {
    /// Report model of the result at this level.
    fn model(&self, level: DetailLevel) -> ReportModel;

    /// Output on stdout.
    fn sheet(&self, level: DetailLevel, place: &DisplayContext) -> TerminalOutput {
        render::sheet(&self.model(level), level, place)
    }

    /// Sets the Rmax of LINPACK for the balance factor; false if its values have none.
    fn set_rmax(&mut self, _gflops: f64) -> bool {
        false
    }

    /// Replaces the requirements of the acceptance, as [`Views::set_requirements`].
    fn set_requirements(&mut self, _text: &str) -> Option<Result<(), String>> {
        None
    }

    /// Figures for its requirements; empty without any.
    fn required_figures(&self) -> Vec<RequiredFigures> {
        Vec::new()
    }

    /// Output of `report --format` for this word; None if its benchmark has no such format.
    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>>;

    /// Points for the picture of several results; empty if there is none.
    fn points(&self) -> Vec<MeasuredPoint> {
        Vec::new()
    }

    /// Points for the pictures of values over ranks.
    fn over_ranks(&self) -> Vec<MeasuredPoint> {
        self.points()
    }

    /// Values for the list of results of a system; empty if its benchmark has no such value.
    fn listed(&self) -> Vec<ListedValue> {
        Vec::new()
    }

    /// Compressed records; None if they exceed `most_bytes`.
    fn records(&self, most_bytes: usize) -> Option<Vec<u8>>;

    /// Data for a comparison with other results.
    fn comparable(&self) -> ComparableRun;
}

/// A result with its derived values.
#[derive(Debug)]
pub struct ResultReport<R: Views> {
    /// The records.
    pub result: R,
    /// Derived values, computed on first use.
    derived: OnceLock<R::Derived>,
    derived_for_page: OnceLock<R::Derived>,
}

impl<R: Views> ResultReport<R> {
    /// Wraps a result.
    #[must_use]
    pub fn new(result: R) -> Self {
        Self { result, derived: OnceLock::new(), derived_for_page: OnceLock::new() }
    }

    fn derived(&self) -> &R::Derived {
        self.derived.get_or_init(|| self.result.derived())
    }

    fn for_page(&self) -> &R::Derived {
        self.derived_for_page.get_or_init(|| self.result.derived_for_page())
    }
}

impl<R: Views + std::fmt::Debug> LoadedReport for ResultReport<R>
where
    R::Derived: std::fmt::Debug,
{
    fn set_rmax(&mut self, gflops: f64) -> bool {
        (self.derived, self.derived_for_page) = (OnceLock::new(), OnceLock::new());
        self.result.set_rmax(gflops)
    }

    fn sheet(&self, level: DetailLevel, place: &DisplayContext) -> TerminalOutput {
        self.result.sheet(self.derived(), level, place)
    }

    fn set_requirements(&mut self, text: &str) -> Option<Result<(), String>> {
        (self.derived, self.derived_for_page) = (OnceLock::new(), OnceLock::new());
        self.result.set_requirements(text)
    }

    fn required_figures(&self) -> Vec<RequiredFigures> {
        self.result.required_figures(self.derived())
    }

    fn model(&self, level: DetailLevel) -> ReportModel {
        self.result.model(if level == DetailLevel::Page { self.for_page() } else { self.derived() }, level)
    }

    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>> {
        self.result.format(self.derived(), word)
    }

    fn points(&self) -> Vec<MeasuredPoint> {
        self.result.points(self.derived())
    }

    fn over_ranks(&self) -> Vec<MeasuredPoint> {
        self.result.over_ranks(self.for_page())
    }

    fn listed(&self) -> Vec<ListedValue> {
        self.result.listed(self.for_page())
    }

    fn records(&self, most_bytes: usize) -> Option<Vec<u8>> {
        html::records::compressed(most_bytes, |out| json::write_records(&self.result, out))
    }

    fn comparable(&self) -> ComparableRun {
        // Nothing in it depends on the comparison of backends, which takes long.
        self.result.comparable(self.for_page())
    }
}

/// The JSON Schema of PREFIX.json.
#[must_use]
pub fn schema<R: Views>() -> String {
    R::schema()
}

/// Reads PREFIX.jsonl.
///
/// # Errors
/// [`JournalError`].
pub fn journal<R>(bytes: &[u8]) -> Result<Box<dyn LoadedReport>, JournalError>
where
    R: Views + std::fmt::Debug + 'static,
    R::Derived: std::fmt::Debug,
{
    Ok(Box::new(ResultReport::new(jsonl::read_journal::<R>(bytes)?)))
}

/// Reads PREFIX.json.
///
/// # Errors
/// [`JsonError`].
pub fn document<R>(bytes: &[u8]) -> Result<Box<dyn LoadedReport>, JsonError>
where
    R: Views + std::fmt::Debug + 'static,
    R::Derived: std::fmt::Debug,
{
    Ok(Box::new(ResultReport::new(parse::<R>(bytes)?)))
}
