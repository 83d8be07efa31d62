//! What the tests of every benchmark ask of its document, the published schema and the journal.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::facts::Field;
use super::journal::{read, torn};
use super::place::{Level, Place, Saved};
use super::text::WIDTH;
use super::views::{parse, Views};
use crate::frame::plain;
use crate::frame::records::{kinds, Outcome, Record, Warning};

/// Columns of the terminals that a screen is promised for.
pub(crate) const COLUMNS: usize = 80;

/// The screen of a result with `backends` is as short and narrow as promised: 40 lines, 60 with several backends, of 80 columns, and
/// begins with the whole first error, for which alone there are more lines if it takes more than [`ERROR_LINES`]. The bounds stand
/// here alone: no screen can move its own.
pub(crate) fn assert_fits_a_screen<R: Views>(result: &R, backends: usize, saved: Saved, what: &str) -> String {
    let text = result.sheet(&result.derived(), Level::Screen, &Place { columns: COLUMNS, saved }).render(false);
    let error_lines = assert_begins_with_its_error(result, &text, what);
    let most = if backends > 1 { 60 } else { 40 } + error_lines.saturating_sub(ERROR_LINES);
    assert!(text.lines().count() <= most, "{what}: {} lines\n{text}", text.lines().count());
    for line in text.lines() {
        assert!(line.chars().count() <= COLUMNS, "{what}: {line}\n{text}");
        assert_eq!(line, line.trim_end(), "{what}");
    }
    text
}

/// Lines of a long error of an MPI library, with a path and the next step.
const ERROR_LINES: usize = 8;

/// Every word of the first error and of its next step stands above all numbers; how many lines they take.
fn assert_begins_with_its_error(result: &impl Record, text: &str, what: &str) -> usize {
    let Some(error) = result.errors().first() else { return 0 };
    let begin: Vec<&str> = text.lines().take_while(|line| !line.starts_with("beff-raw ")).collect();
    // Words that are longer than a line are broken, so without blanks.
    let bare = |text: &str| plain::line(text).split_whitespace().collect::<String>();
    let told: String = begin.iter().map(|line| bare(line)).collect();
    for part in [&error.during, &error.message, &error.next_step] {
        let part: String = part.split_whitespace().map(bare).collect();
        assert!(told.contains(&part), "{what}: {part}\n{text}");
    }
    assert!(told.contains(&format!("rank{}", error.rank)), "{what}\n{text}");
    begin.len()
}

/// The full text of a result.
pub(crate) fn full<R: Views>(result: &R, level: Level) -> String {
    result.sheet(&result.derived(), level, &Place::default()).render(false)
}

/// No line of the full text is wider than promised, but for those that scripts look for, and none is padded.
pub(crate) fn assert_full_fits<R: Views>(result: &R, for_scripts: &str, what: &str) -> String {
    let text = full(result, Level::Details);
    for line in text.lines().filter(|line| !line.starts_with(for_scripts)) {
        assert!(line.chars().count() <= WIDTH, "{what}: {line}");
        assert_eq!(line, line.trim_end(), "{what}");
    }
    text
}

/// A name as only somebody hostile gives it: long, of several lines, with what a terminal would obey.
pub(crate) fn hostile_name() -> String {
    "a\u{1b}[31m/very \u{202e}long\nname ".repeat(40)
}

/// Every warning is of a kind that is listed, with the figures that are listed, and its words are sentences.
fn assert_warnings_are_listed<R: Views>(derived: &R::Derived) {
    for warning in R::warnings(derived) {
        let kind = kinds::find(R::KINDS, &warning.kind).unwrap_or_else(|| panic!("{} is not listed", warning.kind));
        assert_eq!(kind.misfits(warning), Vec::<String>::new(), "{warning:?}");
    }
}

/// Kinds have names, places and next steps, and no two of a benchmark the same name.
fn assert_kinds_are_told_apart<R: Views>() {
    let all: Vec<_> = R::KINDS.iter().chain(kinds::KINDS).collect();
    let names: BTreeSet<&str> = all.iter().map(|kind| kind.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(all.iter().all(|kind| kind.next_step.ends_with('.') && !kind.meaning.is_empty()));
}

/// One of each kind, with more words than there is room for.
pub(crate) fn one_of_each<R: Views>() -> Vec<Warning> {
    let words = "more words of it than a line has ".repeat(9);
    let all = R::KINDS.iter().chain(kinds::KINDS);
    all.map(|kind| kind.warning().of("mpiio").told(&words, format!("{words}."))).collect()
}

/// The schema in docs/ is what the types say. It is written anew as goldens are, with `INSTA_UPDATE=always`.
pub(crate) fn assert_published<R: Views>() {
    assert_kinds_are_told_apart::<R>();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(R::SCHEMA);
    let text = R::schema();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        fs::write(&path, &text).unwrap();
    }
    assert!(!text.contains("::") && !text.contains("]("), "{}: a docstring speaks of Rust", R::SCHEMA);
    let published = fs::read_to_string(&path).unwrap();
    assert!(published == text, "{} is out of date: INSTA_UPDATE=always cargo test --profile gate --lib", R::SCHEMA);
    assert!(jsonschema::meta::is_valid(&serde_json::from_str(&text).unwrap()));
}

/// A document fits the schema and reads back, and one with a field of `list` that nobody knows does not fit.
pub(crate) fn assert_fits<R: Views + PartialEq + std::fmt::Debug>(result: &R, list: &str) {
    let derived = result.derived();
    assert_warnings_are_listed::<R>(&derived);
    let bytes = result.document(&derived).unwrap();
    assert_valid::<R>(&bytes);
    assert_eq!(parse::<R>(&bytes).unwrap(), *result);
    let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    without_words(&mut document["warnings"]);
    assert!(validator::<R>().is_valid(&document), "of an older version");
    assert_warnings_are_listed::<R>(&parse::<R>(document.to_string().as_bytes()).unwrap().derived());
    document[list][0]["speed"] = 1.into();
    assert!(!validator::<R>().is_valid(&document));
}

/// As versions recorded warnings that made the words anew whenever they showed them.
fn without_words(warnings: &mut serde_json::Value) {
    for warning in warnings.as_array_mut().unwrap().iter_mut().filter_map(|one| one.as_object_mut()) {
        warning.retain(|name, _| !["summary", "cause", "next_step"].contains(&name.as_str()));
    }
}

/// A field that is missing is named with the schema that describes it.
pub(crate) fn assert_missing_is_named<R: Views + std::fmt::Debug>() {
    let head = serde_json::json!({"program": "beff-raw", "schema_version": 1, "benchmark": R::BENCHMARK});
    let message = parse::<R>(head.to_string().as_bytes()).unwrap_err().to_string();
    assert!(message.contains("missing field") && message.contains(R::SCHEMA), "{message}");
}

/// The document fits the schema.
pub(crate) fn assert_valid<R: Views>(document: &[u8]) {
    let document = serde_json::from_slice(document).unwrap();
    let errors =
        validator::<R>().iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect::<Vec<_>>();
    assert!(errors.is_empty(), "{errors:#?}");
}

fn validator<R: Views>() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(&R::schema()).unwrap()).unwrap()
}

/// The bytes of a journal with these lines.
pub(crate) fn journal_of<L: serde::Serialize>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| [serde_json::to_vec(line).unwrap(), vec![b'\n']].concat()).collect()
}

/// The fifth line of a journal is cut after 100 bytes: what was before it is kept, and the reader is told.
pub(crate) fn assert_a_cut_keeps_the_rest<R: Record + PartialEq + std::fmt::Debug>(lines: &[R::Line]) {
    let before = journal_of(&lines[..4]).len();
    let whole = journal_of(&lines[..5]);
    let mut expected: R = read(&whole[..before]).unwrap();
    assert_eq!(expected.outcome(), Outcome::Killed);
    expected.warn(torn(5, 100));
    assert_eq!(read::<R>(&whole[..before + 100]).unwrap(), expected);
}

/// Fixtures by name, with what is derived from them.
pub(crate) fn with_derived<R: Views, const N: usize>(
    fixtures: [(&'static str, R); N],
) -> Vec<(&'static str, R, R::Derived)> {
    let derive = |(name, result): (&'static str, R)| {
        let derived = result.derived();
        (name, result, derived)
    };
    fixtures.map(derive).into()
}

/// Every field of a configuration is listed with what it means for a comparison, and no other.
pub(crate) fn assert_all_fields_are_known(config: &impl serde::Serialize, fields: &[(&str, Field)]) {
    let value = serde_json::to_value(config).unwrap();
    let mut of_config: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut listed: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    of_config.sort_unstable();
    listed.sort_unstable();
    assert_eq!(of_config, listed);
}

/// The page of a result: written, within its bounds, nothing in it is fetched or run, whatever the names are, and every picture has a
/// table and is a file of its own too.
pub(crate) fn assert_page<R: Views>(result: &R, what: &str) -> String {
    use super::html::{alone, page, Source};
    use super::model::Section;
    let model = result.model(&result.derived_for_page(), Level::Page);
    for picture in model.sections.iter().flat_map(Section::pictures) {
        assert!(!picture.frames.is_empty() && !picture.table.is_empty(), "{what}: {}", picture.name);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        assert!(picture.name.chars().all(is_plain), "{what}: {}", picture.name);
        let file = alone(picture);
        assert_markup(&file, &format!("{what}, {}", picture.name));
    }
    let source = Source { model, file: "<run>\u{1b}.json".into(), records: Some(b"records".to_vec()) };
    let text = page(&[source], &[]);
    assert_markup(&text, what);
    text
}

/// Nothing acts, nothing is fetched, nothing is run, and every number of a drawing is one.
pub(crate) fn assert_markup(text: &str, what: &str) {
    let lower = text.to_lowercase();
    for word in
        ["<script", "<run>", "javascript:", " onload=", " onclick=", "src=", "@import", "url(", "<iframe", "<object"]
    {
        assert!(!lower.contains(word), "{what}: {word}");
    }
    let links = lower.split("href=").skip(1).map(|rest| rest.trim_start_matches('"'));
    for link in links {
        assert!(link.starts_with('#') || link.starts_with("data:"), "{what}: {}", &link[..link.len().min(40)]);
    }
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{what}");
    let drawn: Vec<&str> =
        text.split(['<', '>']).filter(|tag| tag.starts_with("path") || tag.starts_with("rect")).collect();
    assert!(drawn.iter().all(|tag| !tag.contains("NaN") && !tag.contains("inf")), "{what}");
}
