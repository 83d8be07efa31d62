//! A result as it is shown: on stdout, in the files of a run, and again by `report`.

use std::io;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::Serialize;

use super::journal::JournalError;
use super::json::JsonError;
use super::model::Model;
use super::picture::Point;
use super::place::{Level, Place};
use super::sheet::Sheet;
use super::{html, journal as jsonl, json, render};
use crate::frame::records::{Kind, Record, Warning};
use crate::frame::values::comparable::Comparable;

/// How the results of a benchmark are shown. Pure functions of the records and of what was derived from them.
pub trait Views: Record + Serialize + DeserializeOwned + JsonSchema + Send + Sync {
    /// What follows from the records.
    type Derived: Serialize + JsonSchema + Send + Sync + 'static;
    /// The name of the benchmark in a sentence.
    const TITLE: &'static str;
    /// The file that describes the fields of its document.
    const SCHEMA: &'static str;
    /// What it warns of, besides what every benchmark does.
    const KINDS: &'static [Kind];

    /// Derives everything, also from a result that ended early.
    fn derived(&self) -> Self::Derived;

    /// What [`Views::model`] needs of it for a page.
    fn derived_for_page(&self) -> Self::Derived {
        self.derived()
    }

    /// Warnings of the run and those that follow from the records.
    fn warnings(derived: &Self::Derived) -> &[Warning];

    /// The result as data, as much of it as this level shows.
    fn model(&self, derived: &Self::Derived, level: Level) -> Model;

    /// What a user reads on stdout.
    fn sheet(&self, derived: &Self::Derived, level: Level, place: &Place) -> Sheet {
        render::sheet(&self.model(derived, level), level, place)
    }

    /// The JSON document.
    ///
    /// # Errors
    /// A path of the configuration that is not UTF-8 has no JSON form.
    fn document(&self, derived: &Self::Derived) -> Result<Vec<u8>, serde_json::Error> {
        write_document(self, derived, None::<NoMore>)
    }

    /// The JSON Schema of that.
    #[must_use]
    fn schema() -> String {
        schema_of::<Self, NoMore>()
    }

    /// The tidy table.
    ///
    /// # Errors
    /// What the csv writer reports.
    fn csv(&self, derived: &Self::Derived) -> Result<Vec<u8>, csv::Error>;

    /// What this result offers to a comparison with others.
    fn comparable(&self, derived: &Self::Derived) -> Comparable;

    /// What this result adds to the picture of several; empty: there is none.
    fn points(&self, _derived: &Self::Derived) -> Vec<Point> {
        Vec::new()
    }

    /// What it adds to the pictures of values over ranks.
    fn over_ranks(&self, derived: &Self::Derived) -> Vec<Point> {
        self.points(derived)
    }

    /// Suffixes of the files that only this benchmark has.
    fn own_suffixes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The text of one of them; None: there is no such file.
    fn own_view(&self, _derived: &Self::Derived, _suffix: &str) -> Option<String> {
        None
    }

    /// Suffixes of the files beside the journal.
    fn suffixes(&self) -> Vec<String> {
        [".json", ".csv"].map(str::to_owned).into_iter().chain(self.own_suffixes()).collect()
    }

    /// The bytes of the file with this suffix.
    ///
    /// # Errors
    /// A record that the format cannot hold; a suffix that is none of [`Views::suffixes`].
    fn view(&self, derived: &Self::Derived, suffix: &str) -> io::Result<Vec<u8>> {
        match suffix {
            ".json" => Ok(self.document(derived)?),
            ".csv" => Ok(self.csv(derived)?),
            own => self.own_view(derived, own).map(String::into_bytes).ok_or_else(|| {
                let message = format!("{} has no file that ends with {own}", Self::TITLE);
                io::Error::new(io::ErrorKind::InvalidInput, message)
            }),
        }
    }

    /// What `report --format` prints for this word; None: this benchmark has no such format.
    fn format(&self, derived: &Self::Derived, word: &str) -> Option<io::Result<Vec<u8>>> {
        let suffix = format!(".{word}");
        self.suffixes().contains(&suffix).then(|| self.view(derived, &suffix))
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Derived")]
struct DerivedView<'a, D, M> {
    #[serde(flatten)]
    derived: &'a D,
    #[serde(flatten)]
    more: Option<M>,
}

/// Nothing that is only there to be read.
#[derive(Serialize, JsonSchema)]
struct NoMore {}

/// The JSON Schema of a document with `M` that is only there to be read.
pub(crate) fn schema_of<R: Views, M: JsonSchema>() -> String {
    json::schema::<R, DerivedView<'static, R::Derived, M>>(R::TITLE, R::KINDS)
}

/// The JSON document with `more` that is only there to be read.
pub(crate) fn write_document<R: Views>(
    result: &R,
    derived: &R::Derived,
    more: Option<impl Serialize>,
) -> Result<Vec<u8>, serde_json::Error> {
    json::write(result, DerivedView { derived, more })
}

/// Reads PREFIX.json as the result of this benchmark.
///
/// # Errors
/// [`JsonError`].
pub(crate) fn parse<R: Views>(bytes: &[u8]) -> Result<R, JsonError> {
    json::parse_as(bytes, R::SCHEMA)
}

/// A result of some benchmark, read from a file.
pub trait Report: std::fmt::Debug + Send + Sync {
    /// The result as data, as much of it as this level shows.
    fn model(&self, level: Level) -> Model;

    /// What a user reads on stdout.
    fn sheet(&self, level: Level, place: &Place) -> Sheet {
        render::sheet(&self.model(level), level, place)
    }

    /// What `report --format` prints for this word; None: its benchmark has no such format.
    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>>;

    /// What it adds to the picture of several results; empty: there is none.
    fn points(&self) -> Vec<Point> {
        Vec::new()
    }

    /// What it adds to the pictures of values over ranks.
    fn over_ranks(&self) -> Vec<Point> {
        self.points()
    }

    /// Its records, compressed; None: more than `most_bytes`.
    fn records(&self, most_bytes: usize) -> Option<Vec<u8>>;

    /// What it offers to a comparison with others.
    fn comparable(&self) -> Comparable;
}

/// A result with what follows from it.
#[derive(Debug)]
pub struct Shown<R: Views> {
    /// The records.
    pub result: R,
    /// What follows, as soon as it is asked for.
    derived: OnceLock<R::Derived>,
    for_page: OnceLock<R::Derived>,
}

impl<R: Views> Shown<R> {
    /// Takes a result.
    #[must_use]
    pub fn new(result: R) -> Self {
        Self { result, derived: OnceLock::new(), for_page: OnceLock::new() }
    }

    fn derived(&self) -> &R::Derived {
        self.derived.get_or_init(|| self.result.derived())
    }

    fn for_page(&self) -> &R::Derived {
        self.for_page.get_or_init(|| self.result.derived_for_page())
    }
}

impl<R: Views + std::fmt::Debug> Report for Shown<R>
where
    R::Derived: std::fmt::Debug,
{
    fn model(&self, level: Level) -> Model {
        self.result.model(if level == Level::Page { self.for_page() } else { self.derived() }, level)
    }

    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>> {
        self.result.format(self.derived(), word)
    }

    fn points(&self) -> Vec<Point> {
        self.result.points(self.derived())
    }

    fn over_ranks(&self) -> Vec<Point> {
        self.result.over_ranks(self.for_page())
    }

    fn records(&self, most_bytes: usize) -> Option<Vec<u8>> {
        html::raw::compressed(most_bytes, |out| json::write_records(&self.result, out))
    }

    fn comparable(&self) -> Comparable {
        self.result.comparable(self.derived())
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
pub fn journal<R>(bytes: &[u8]) -> Result<Box<dyn Report>, JournalError>
where
    R: Views + std::fmt::Debug + 'static,
    R::Derived: std::fmt::Debug,
{
    Ok(Box::new(Shown::new(jsonl::read::<R>(bytes)?)))
}

/// Reads PREFIX.json.
///
/// # Errors
/// [`JsonError`].
pub fn document<R>(bytes: &[u8]) -> Result<Box<dyn Report>, JsonError>
where
    R: Views + std::fmt::Debug + 'static,
    R::Derived: std::fmt::Debug,
{
    Ok(Box::new(Shown::new(parse::<R>(bytes)?)))
}
