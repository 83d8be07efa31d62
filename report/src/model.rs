//! A result as data, from which the screen, the full text and the page for a browser are rendered. A benchmark returns a [`ReportModel`]; only
//! [`super::render`] and [`super::html`] define its appearance. Texts are plain and are escaped when written.

use crate::criterion::Criterion;
use crate::picture::Picture;
use crate::table::Table;
pub use crate::terminal::TextStyle;

/// A label and its text.
pub type LabelledText = (String, String);

/// A result.
#[derive(Clone, Debug, Default)]
pub struct ReportModel {
    /// Name of the benchmark and prefix of file names.
    pub benchmark: &'static str,
    /// Subject, place and time of the measurements.
    pub head: ReportHead,
    /// Notices before all numbers: abnormal end, wrong data.
    pub alarms: Vec<String>,
    /// True if an error ended the run early: hints for better values are omitted then.
    pub has_failed: bool,
    /// Errors.
    pub errors: Vec<Problem>,
    /// Wrong data.
    pub corruption: Option<CorruptionReport>,
    /// The values.
    pub values: Vec<HeadlineValue>,
    /// Deficiencies of the values in addition to unmet criteria; also on the screen of a failed run.
    pub shortcomings: Vec<String>,
    /// Notes on all values, a line each on the screen.
    pub notes: Vec<String>,
    /// Definition that has the criteria, if other rules are caveats.
    pub assessed_by: Option<String>,
    /// Criteria of validity.
    pub assessments: Vec<ValidityAssessment>,
    /// Criteria of other definitions, with their names; only differing criteria are shown.
    pub alternative_assessments: Vec<(String, Vec<ValidityAssessment>)>,
    /// Findings that stand out, the most important first.
    pub findings: Vec<String>,
    /// Facts about the reliability of the numbers, with their labels.
    pub trust: Vec<LabelledText>,
    /// Amount of verified data; not shown if data was wrong.
    pub verification: Option<String>,
    /// Warnings.
    pub warnings: Vec<ReportWarning>,
    /// True if there are several backends.
    pub has_several_backends: bool,
    /// Tables of the screen.
    pub summary: Vec<ReportBlock>,
    /// Results in full.
    pub sections: Vec<ReportSection>,
    /// Overheads and set-up.
    pub method: Vec<ReportSection>,
    /// Final line for a complete run.
    pub complete: String,
    /// Command for a better value, and its purpose.
    pub rerun: Option<(String, &'static str)>,
}

/// Subject, place and time of the measurements.
#[derive(Clone, Debug, Default)]
pub struct ReportHead {
    /// Program and version.
    pub program: String,
    /// Source revision.
    pub revision: String,
    /// Short name of the benchmark.
    pub name: String,
    /// Full name of the benchmark.
    pub subject: String,
    /// Explanation of the units.
    pub units: String,
    /// Start time.
    pub started_utc: String,
    /// Ranks and hosts.
    pub ranks: String,
    /// MPI library.
    pub library: String,
    /// First host, and the number of others.
    pub hosts: String,
    /// Directory and file system of the files.
    pub storage: Option<[String; 2]>,
    /// Parameters of the storage in one line.
    pub sheet: Option<String>,
    /// Description of the measurements, in a few lines of the screen.
    pub about: Vec<String>,
    /// Requested time.
    pub requested_time: String,
    /// Elapsed time.
    pub elapsed_time: String,
    /// Non-default settings that change the meaning of the numbers.
    pub settings: Option<String>,
    /// Head of the full text, a line each.
    pub facts: Vec<LabelledText>,
}

/// A value and its validity.
#[derive(Clone, Debug)]
pub struct HeadlineValue {
    /// Name.
    pub label: String,
    /// The number, or a text instead.
    pub value: String,
    /// Unit; may be empty.
    pub unit: &'static str,
    /// Validity as text.
    pub verdict: (TextStyle, String),
    /// Numbers from which it is computed.
    pub numbers: Vec<LabelledText>,
    /// Line of the screen, for grep; may be empty.
    pub screen_line: Vec<(TextStyle, String)>,
    /// Line at the end of the full text, for grep.
    pub closing_line: String,
}

/// Validity of a value by criteria.
#[derive(Clone, Debug)]
pub struct ValidityAssessment {
    /// Name of the value.
    pub name: String,
    /// Criteria of the definition.
    pub criteria: Vec<Criterion>,
    /// Deviations from rules of this program alone, which do not make the value invalid.
    pub caveats: Vec<String>,
    /// True if its unmet criteria are shown with the values.
    pub is_main: bool,
}

/// A problem and its remedy.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Cause, with figures.
    pub cause: String,
    /// Suggested remedy.
    pub next_step: String,
}

/// A warning.
#[derive(Clone, Debug)]
pub struct ReportWarning {
    /// Kind.
    pub kind: String,
    /// Importance of the kind, smallest first.
    pub rank: u8,
    /// Backend concerned, if there are several.
    pub backend: Option<String>,
    /// Short text.
    pub summary: String,
    /// Full text.
    pub problem: Problem,
    /// False if the screen shows it elsewhere.
    pub is_on_screen: bool,
}

/// Wrong data.
#[derive(Clone, Debug)]
pub struct CorruptionReport {
    /// Heading.
    pub title: &'static str,
    /// Amount of wrong data among the verified data.
    pub amount: String,
    /// The first recorded locations.
    pub locations: Vec<String>,
    /// Number of further locations.
    pub more: usize,
    /// Suggested remedy.
    pub next_step: String,
}

/// Locations of wrong data that are shown; all are in the JSON document.
const MAX_LOCATIONS: usize = 20;

impl CorruptionReport {
    /// Creates the report of all recorded locations.
    pub fn of<C>(title: &'static str, amount: String, all: &[C], place: fn(&C) -> String, next_step: &str) -> Self {
        let locations = all.iter().take(MAX_LOCATIONS).map(place).collect();
        Self {
            title,
            amount,
            locations,
            more: all.len().saturating_sub(MAX_LOCATIONS),
            next_step: next_step.to_owned(),
        }
    }
}

/// A part of a report with a heading.
#[derive(Clone, Debug)]
pub struct ReportSection {
    /// Name in URL fragments.
    pub name: &'static str,
    /// Heading.
    pub title: String,
    /// Explanation in a sentence or two; may be empty.
    pub note: String,
    /// Content.
    pub blocks: Vec<ReportBlock>,
}

impl ReportSection {
    /// Creates a section; None without blocks.
    pub fn of(
        name: &'static str,
        title: impl Into<String>,
        note: impl Into<String>,
        blocks: Vec<ReportBlock>,
    ) -> Option<Self> {
        let has_content = !blocks.is_empty();
        has_content.then(|| Self { name, title: title.into(), note: note.into(), blocks })
    }

    /// Its pictures, including those in folded blocks.
    #[must_use]
    pub fn pictures(&self) -> Vec<&Picture> {
        pictures(&self.blocks)
    }
}

fn pictures(blocks: &[ReportBlock]) -> Vec<&Picture> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            ReportBlock::Picture(picture) => all.push(picture),
            ReportBlock::Folded(_, inside) => all.extend(pictures(inside)),
            _ => {}
        }
    }
    all
}

/// A block of a section.
#[derive(Clone, Debug)]
pub enum ReportBlock {
    /// A picture with its table.
    Picture(Picture),
    /// A table.
    Table(Table),
    /// Labels and texts.
    Pairs(Vec<LabelledText>),
    /// Sentences.
    List(Vec<String>),
    /// A paragraph.
    Text(String),
    /// Sentences that explain the block above.
    Notes(Vec<String>),
    /// Several blocks that a page shows on demand.
    Folded(String, Vec<ReportBlock>),
}

/// Pairs of labels and texts; None is omitted.
pub fn labelled_texts<'a>(all: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<LabelledText> {
    all.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
}
