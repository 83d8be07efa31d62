//! Checks of document, published schema and journal for the tests of all benchmarks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::display::{DetailLevel, DisplayContext, SaveStatus};
use super::facts::ConfigFieldRole;
use super::journal::{read_journal, truncated_warning};
use super::text::WIDTH;
use super::views::{parse, Views};
use crate::frame::records::{kinds, JournaledResult, RunOutcome, Warning};
use crate::frame::terminal_escape;

/// Width of the terminal for which a screen is guaranteed to fit.
pub(crate) const COLUMNS: usize = 80;

/// Asserts that the screen of a result with `backends` has at most 40 lines, 60 with several backends, of 80 columns, and begins with the
/// complete first error, which may add lines if it takes more than [`ERROR_LINES`]. The bounds are independent of the screen's code.
pub(crate) fn assert_screen_fits<R: Views>(result: &R, backends: usize, saved: SaveStatus, what: &str) -> String {
    let text =
        result.sheet(&result.derived(), DetailLevel::Screen, &DisplayContext { columns: COLUMNS, saved }).render(false);
    let error_lines = assert_error_comes_first(result, &text, what);
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

/// Asserts that the complete first error and its next step precede all numbers; returns their number of lines.
fn assert_error_comes_first(result: &impl JournaledResult, text: &str, what: &str) -> usize {
    let Some(error) = result.errors().first() else { return 0 };
    let begin: Vec<&str> = text.lines().take_while(|line| !line.starts_with("beff-raw ")).collect();
    // Words longer than a line are broken, so blanks are removed.
    let bare = |text: &str| terminal_escape::line(text).split_whitespace().collect::<String>();
    let shown: String = begin.iter().map(|line| bare(line)).collect();
    for part in [&error.during, &error.message, &error.next_step] {
        let part: String = part.split_whitespace().map(bare).collect();
        assert!(shown.contains(&part), "{what}: {part}\n{text}");
    }
    assert!(shown.contains(&format!("rank{}", error.rank)), "{what}\n{text}");
    begin.len()
}

pub(crate) fn full_text<R: Views>(result: &R, level: DetailLevel) -> String {
    result.sheet(&result.derived(), level, &DisplayContext::default()).render(false)
}

/// Asserts that no line of the full text exceeds the width, except those intended for scripts, and none has trailing blanks.
pub(crate) fn assert_full_fits<R: Views>(result: &R, for_scripts: &str, what: &str) -> String {
    let text = full_text(result, DetailLevel::Details);
    for line in text.lines().filter(|line| !line.starts_with(for_scripts)) {
        assert!(line.chars().count() <= WIDTH, "{what}: {line}");
        assert_eq!(line, line.trim_end(), "{what}");
    }
    text
}

/// A hostile name: long, of several lines, with terminal escape sequences.
pub(crate) fn hostile_name() -> String {
    "a\u{1b}[31m/very \u{202e}long\nname ".repeat(40)
}

/// Asserts that every warning is of a listed kind, with the listed figures and complete sentences.
fn assert_warnings_are_listed<R: Views>(derived: &R::Derived) {
    for warning in R::warnings(derived) {
        let kind =
            kinds::find_kind(R::KINDS, &warning.kind).unwrap_or_else(|| panic!("{} is not listed", warning.kind));
        assert_eq!(kind.mismatches(warning), Vec::<String>::new(), "{warning:?}");
    }
}

/// Asserts that the kinds of a benchmark have unique names, meanings and next steps.
fn assert_kind_names_are_unique<R: Views>() {
    let all: Vec<_> = R::KINDS.iter().chain(kinds::KINDS).collect();
    let names: BTreeSet<&str> = all.iter().map(|kind| kind.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(all.iter().all(|kind| kind.next_step.ends_with('.') && !kind.meaning.is_empty()));
}

pub(crate) fn one_warning_of_each_kind<R: Views>() -> Vec<Warning> {
    let words = "more words of it than a line has ".repeat(9);
    let all = R::KINDS.iter().chain(kinds::KINDS);
    all.map(|kind| kind.warning().for_backend("mpiio").with_text(&words, format!("{words}."))).collect()
}

/// Asserts that the schema in docs/ corresponds to the types. `INSTA_UPDATE=always` rewrites it, as it does golden files.
pub(crate) fn assert_schema_is_current<R: Views>() {
    assert_kind_names_are_unique::<R>();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(R::SCHEMA);
    let text = R::schema();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        fs::write(&path, &text).unwrap();
    }
    assert!(!text.contains("::") && !text.contains("]("), "{}: a docstring has Rust terms", R::SCHEMA);
    let published = fs::read_to_string(&path).unwrap();
    assert!(published == text, "{} is out of date: INSTA_UPDATE=always cargo test --profile gate --lib", R::SCHEMA);
    assert!(jsonschema::meta::is_valid(&serde_json::from_str(&text).unwrap()));
}

/// Asserts that a document matches the schema and round-trips, and that an unknown field in `list` is rejected.
pub(crate) fn assert_document_matches_schema<R: Views + PartialEq + std::fmt::Debug>(result: &R, list: &str) {
    let derived = result.derived();
    assert_warnings_are_listed::<R>(&derived);
    let bytes = result.document(&derived).unwrap();
    assert_valid::<R>(&bytes);
    assert_eq!(parse::<R>(&bytes).unwrap(), *result);
    let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    remove_warning_text(&mut document["warnings"]);
    assert!(validator::<R>().is_valid(&document), "of an older version");
    assert_warnings_are_listed::<R>(&parse::<R>(document.to_string().as_bytes()).unwrap().derived());
    document[list][0]["speed"] = 1.into();
    assert!(!validator::<R>().is_valid(&document));
}

/// Removes the texts, which older versions did not record.
fn remove_warning_text(warnings: &mut serde_json::Value) {
    for warning in warnings.as_array_mut().unwrap().iter_mut().filter_map(|one| one.as_object_mut()) {
        warning.retain(|name, _| !["summary", "cause", "next_step"].contains(&name.as_str()));
    }
}

/// Asserts that the error for a missing field names the field and the schema.
pub(crate) fn assert_missing_field_is_named<R: Views + std::fmt::Debug>() {
    let head = serde_json::json!({"program": "beff-raw", "schema_version": 1, "benchmark": R::BENCHMARK});
    let message = parse::<R>(head.to_string().as_bytes()).unwrap_err().to_string();
    assert!(message.contains("missing field") && message.contains(R::SCHEMA), "{message}");
}

pub(crate) fn assert_valid<R: Views>(document: &[u8]) {
    let document = serde_json::from_slice(document).unwrap();
    let errors =
        validator::<R>().iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect::<Vec<_>>();
    assert!(errors.is_empty(), "{errors:#?}");
}

fn validator<R: Views>() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(&R::schema()).unwrap()).unwrap()
}

pub(crate) fn journal_of<L: serde::Serialize>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| [serde_json::to_vec(line).unwrap(), vec![b'\n']].concat()).collect()
}

/// Asserts that a journal truncated after 100 bytes of its fifth line keeps the earlier lines and has a warning.
pub(crate) fn assert_truncated_journal_keeps_earlier_lines<R: JournaledResult + PartialEq + std::fmt::Debug>(
    lines: &[R::JournalLine],
) {
    let before = journal_of(&lines[..4]).len();
    let whole = journal_of(&lines[..5]);
    let mut expected: R = read_journal(&whole[..before]).unwrap();
    assert_eq!(expected.outcome(), RunOutcome::Killed);
    expected.add_warning(truncated_warning(5, 100));
    assert_eq!(read_journal::<R>(&whole[..before + 100]).unwrap(), expected);
}

pub(crate) fn with_derived<R: Views, const N: usize>(
    fixtures: [(&'static str, R); N],
) -> Vec<(&'static str, R, R::Derived)> {
    let derive = |(name, result): (&'static str, R)| {
        let derived = result.derived();
        (name, result, derived)
    };
    fixtures.map(derive).into()
}

/// Asserts that exactly the fields of a configuration are listed with their role in a comparison.
pub(crate) fn assert_all_config_fields_are_listed(config: &impl serde::Serialize, fields: &[(&str, ConfigFieldRole)]) {
    let value = serde_json::to_value(config).unwrap();
    let mut of_config: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut listed: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    of_config.sort_unstable();
    listed.sort_unstable();
    assert_eq!(of_config, listed);
}

/// Asserts that the page of a result fetches and runs nothing for any names, and that every picture has a table and can be written as a
/// separate file.
pub(crate) fn assert_page<R: Views>(result: &R, what: &str) -> String {
    use super::html::{page, standalone_svg, PageRun};
    use super::model::ReportSection;
    let model = result.model(&result.derived_for_page(), DetailLevel::Page);
    for picture in model.sections.iter().flat_map(ReportSection::pictures) {
        assert!(!picture.frames.is_empty() && !picture.table.is_empty(), "{what}: {}", picture.name);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        assert!(picture.name.chars().all(is_plain), "{what}: {}", picture.name);
        let file = standalone_svg(picture);
        assert_markup(&file, &format!("{what}, {}", picture.name));
    }
    let source = PageRun { model, file: "<run>\u{1b}.json".into(), records: Some(b"records".to_vec()) };
    let text = page(&[source], &[]);
    assert_markup(&text, what);
    text
}

/// Asserts that the markup has no active content or external references and that all numbers of drawings are finite.
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
