//! The parts of a screen that every benchmark has: head, verdict, what stands out, what to trust, files, what to type next.

use std::path::{Path, PathBuf};

use crate::frame::records::{Machine, Outcome, Record, StorageRecord, Warning};
use crate::frame::values::Criterion;

use super::columns::NONE;
use super::ending;
use super::library::short_name;
use super::machine::took;
use super::marks::{Cell, Legend, Mark};
use super::place::{Place, Saved};
use super::sheet::{fixed, span, Look, Room, Screen, Span, LABEL};
use super::text::{count, list};
use super::warnings::by_kind;
use super::Views;
use crate::frame::digits::shown;

/// Backends with lines or columns of their own; a damaged file may name any number.
pub(crate) const BACKENDS: usize = 4;
/// Lines at most, of one backend and of several.
const LINES: usize = 40;
const LINES_OF_SEVERAL: usize = 60;
/// Warnings shown; the others are counted.
const WARNINGS: usize = 3;
/// Findings shown.
const FINDINGS: usize = 3;

/// Lines of a screen of so many backends at most.
pub(crate) fn most_lines(backends: usize) -> usize {
    if backends > 1 {
        LINES_OF_SEVERAL
    } else {
        LINES
    }
}

/// Lines of a warning or a legend.
pub(crate) fn lines(screen: &Screen) -> usize {
    if screen.room() == Room::Ample {
        2
    } else {
        1
    }
}

/// Lines of a finding, whose cause comes last.
fn lines_of_finding(screen: &Screen) -> usize {
    if screen.room() == Room::Bare {
        1
    } else {
        2
    }
}

/// So many of them, or fewer where there is no room.
fn number(screen: &Screen, most: usize) -> usize {
    if matches!(screen.room(), Room::Least | Room::Bare) {
        most - 1
    } else {
        most
    }
}

/// Marks beside a number.
pub(crate) const MARKS: usize = 2;
/// Digits shown of a number, if as many are known.
const DIGITS: u32 = 4;

/// The first lines: program, benchmark, ranks, hosts, MPI; where the files are; how long it took.
pub(crate) fn head(screen: &mut Screen, machine: &Machine, title: &str, storage: Option<&StorageRecord>) {
    let hosts = count(machine.hosts.len() as u64, "host");
    let facts = format!(
        "  {title}  {} on {hosts}, {}  {}",
        count(machine.ranks, "rank"),
        short_name(&machine.mpi_library),
        to_the_minute(&machine.started_utc)
    );
    screen.line([span(Look::Strong, format!("beff-raw {}", machine.program_version)), span(Look::Plain, facts)]);
    if let Some(storage) = storage {
        let text = format!("files under {} ({} on {})", storage.path, storage.fs_type, storage.source);
        screen.line([span(Look::Plain, format!("  {text}"))]);
    }
}

/// `2025-01-31T12:00Z` of `2025-01-31T12:00:00Z`: the first line is to fit with the longest names of MPI libraries. Anything else as it is.
fn to_the_minute(started_utc: &str) -> String {
    let minutes = started_utc.strip_suffix('Z').filter(|text| text.len() == "2025-01-31T12:00:00".len());
    minutes
        .and_then(|text| text.get(.."2025-01-31T12:00".len()))
        .map_or_else(|| started_utc.to_owned(), |text| format!("{text}Z"))
}

/// How long it took, beside the time that was asked for, in words.
pub(crate) fn times(screen: &mut Screen, asked: &str, outcome: Outcome, real_seconds: f64) {
    screen.line([span(Look::Plain, format!("  {asked}; {}", took(outcome, real_seconds)))]);
}

/// What was chosen otherwise than by default, if there is any.
pub(crate) fn settings(screen: &mut Screen, text: Option<String>) {
    if let Some(text) = text {
        screen.field(span(Look::Plain, "settings"), &text, Look::Plain, 1);
    }
}

/// How it ended, if not as planned, and whether data was wrong; then the first error as a whole, however long it is.
pub(crate) fn banner(screen: &mut Screen, result: &impl Record, wrong_data: &str) {
    let wrong_data = result.is_corrupt().then_some(wrong_data);
    for text in ending::sentence(result.outcome()).into_iter().chain(wrong_data) {
        screen.line([span(Look::Bad, format!("*** {text}"))]);
    }
    if let Some(error) = result.errors().first() {
        let others = result.errors().len() - 1;
        let others = if others > 0 { format!(" (and {} more)", count(others as u64, "error")) } else { String::new() };
        screen.field(span(Look::Strong, "error"), &(ending::told(error) + &others), Look::Bad, usize::MAX);
        screen.field(span(Look::Strong, "next step"), &error.next_step, Look::Plain, usize::MAX);
        if screen.room() != Room::Bare {
            screen.blank();
        }
    }
}

/// True if an error cut the run short: what would make a finished run better is no help then.
pub(crate) fn has_failed(result: &impl Record) -> bool {
    result.outcome() == Outcome::Failed || !result.errors().is_empty()
}

/// `VALID` or `NOT VALID`, and what the end has to say, for the line of a value.
pub(crate) fn verdict(valid: bool, result: &impl Record) -> [Span; 2] {
    let (look, word) = if valid { (Look::Good, "VALID") } else { (Look::Bad, "NOT VALID") };
    [span(look, word), span(Look::Bad, ending::marks(result))]
}

/// What is missing of each judged thing (a backend), in words: what all of them miss first and without their names. Nothing of a run
/// that failed: the error is the reason.
pub(crate) fn missing<'a>(
    screen: &mut Screen,
    result: &impl Record,
    judged: impl IntoIterator<Item = (&'a str, &'a [Criterion])>,
) {
    if has_failed(result) {
        return;
    }
    let judged: Vec<(&str, &[Criterion])> = judged.into_iter().collect();
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, criteria) in &judged {
        for words in criteria.iter().filter(|c| !c.met).map(Criterion::lack) {
            match found.iter_mut().find(|(known, _)| *known == words) {
                Some((_, names)) => names.push((*name).to_owned()),
                None => found.push((words, vec![(*name).to_owned()])),
            }
        }
    }
    found.sort_by_key(|(_, names)| names.len() != judged.len());
    let texts: Vec<String> = found
        .iter()
        .map(|(words, names)| match names.len() == judged.len() {
            true => (*words).to_owned(),
            false => format!("{}: {words}", list(names)),
        })
        .collect();
    if !texts.is_empty() {
        screen.field(span(Look::Warn, "because"), &texts.join("; "), Look::Plain, lines_of_finding(screen));
    }
}

/// What stands out, the first few; nothing of a run that failed.
pub(crate) fn findings(screen: &mut Screen, result: &impl Record, texts: &[String]) {
    screen.blank();
    if has_failed(result) {
        return;
    }
    for (place, text) in texts.iter().take(number(screen, FINDINGS)).enumerate() {
        let label = if place == 0 { "stands out" } else { "" };
        screen.field(span(Look::Strong, label), text, Look::Plain, lines_of_finding(screen));
    }
}

/// What to trust and what not: `checked` is what was compared, then warnings, the most important first.
pub(crate) fn trust<'w, R: Views>(
    screen: &mut Screen,
    result: &R,
    checked: Option<String>,
    warnings: impl IntoIterator<Item = &'w Warning>,
    several: bool,
) {
    screen.blank();
    let warnings = by_kind(warnings, R::KINDS, several);
    let told = number(screen, WARNINGS).saturating_sub(result.errors().len().min(1));
    let mut label = "trust";
    if let Some(checked) = checked.filter(|_| !result.is_corrupt()) {
        screen.field(span(Look::Strong, label), &checked, Look::Plain, 1);
        label = "";
    }
    for text in warnings.iter().take(told) {
        screen.field(span(Look::Strong, label), &format!("! {text}"), Look::Warn, lines(screen));
        label = "";
    }
    let more = warnings.len().saturating_sub(told);
    if more > 0 {
        let kinds = if more == 1 { "kind" } else { "kinds" };
        screen.field(span(Look::Strong, label), &format!("{more} more {kinds} of warnings: --full"), Look::Plain, 1);
    } else if warnings.is_empty() && !has_failed(result) {
        screen.field(span(Look::Strong, label), "no warnings", Look::Good, 1);
    }
}

/// Files, and what to type next. `again` is what would make a valid value, if that can be said; not said of a run that failed, whose
/// error has its own next step.
pub(crate) fn end(screen: &mut Screen, place: &Place, has_failed: bool, again: Option<(String, &'static str)>) {
    screen.blank();
    let (saved, look) = match &place.saved {
        Saved::Nothing => ("nothing; --out NAME keeps the result".to_owned(), Look::Plain),
        Saved::Files(paths) => (together(paths), Look::Plain),
        Saved::Failed => ("not all of it: see the message about it".to_owned(), Look::Bad),
        Saved::From(path) => (path.display().to_string(), Look::Plain),
    };
    let label = if matches!(place.saved, Saved::From(_)) { "read from" } else { "saved" };
    screen.field(span(Look::Strong, label), &saved, look, 1);
    let file = match &place.saved {
        Saved::Files(paths) => document(paths),
        Saved::From(path) => Some(path.as_path()),
        Saved::Nothing | Saved::Failed => None,
    };
    let full = file.map(|path| format!("beff-raw report {} --full", word(path)));
    let full = full.unwrap_or_else(|| "the same with --full".to_owned());
    // Where there is room: who has changed something wants to know what it brought.
    let others = file
        .filter(|_| screen.room() == Room::Ample && !has_failed)
        .map(|path| ("", format!("beff-raw compare {} OTHER.json", word(path)), "what changed"));
    let again = again.filter(|_| !has_failed).map(|(what, why)| ("", what, why));
    for (label, what, why) in [("next", full, "all tables")].into_iter().chain(others).chain(again) {
        let spans = [span(Look::Strong, format!("  {}", fixed(label, LABEL - 2))), span(Look::Plain, what)];
        screen.line(spans.into_iter().chain([span(Look::Quiet, format!("   {why}"))]));
    }
}

/// `dir/run1.jsonl, .json, .csv`: what is common to the names once.
fn together(paths: &[PathBuf]) -> String {
    let Some(first) = paths.first().map(|path| path.display().to_string()) else { return String::new() };
    let stem = first.strip_suffix(".jsonl").unwrap_or(&first);
    let of = |path: &PathBuf| {
        let name = path.display().to_string();
        name.strip_prefix(stem).map(str::to_owned).unwrap_or(name)
    };
    let others: Vec<String> = paths.iter().skip(1).map(of).collect();
    [first.clone()].into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

fn document(paths: &[PathBuf]) -> Option<&Path> {
    paths.iter().map(PathBuf::as_path).find(|path| path.extension().is_some_and(|e| e == "json"))
}

/// A path as a word for a shell.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        text
    } else if text.starts_with('-') {
        format!("'./{}'", text.replace('\'', "'\\''"))
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A rate in MB/s with no more than four digits, and none that is not known.
pub(crate) fn rate(mb_per_second: f64, known_digits: Option<u32>) -> String {
    // Rounded once: no more digits than are shown.
    let (decimals, digits) = match mb_per_second {
        v if v >= 999.5 => (0, DIGITS),
        v if v >= 99.95 => (0, 3),
        v if v >= 9.995 => (1, 3),
        v if v >= 0.995 => (2, 3),
        v if v >= 0.0995 => (2, 2),
        _ => (3, 2),
    };
    let text = shown(mb_per_second, known_digits.unwrap_or(digits).min(digits), decimals);
    // Beyond any machine: only a damaged file has it.
    if text.len() > 7 {
        format!("{mb_per_second:.0e}")
    } else {
        text
    }
}

/// A number with its first marks in `width` columns; the marks are noted.
pub(crate) fn cell(cell: &Cell, width: usize, legend: &mut Legend) -> String {
    let number = cell.mb_per_second.map(|value| rate(value, cell.known_digits));
    let others = |mark: &&Mark| !matches!(mark, Mark::NotMeasured | Mark::NotRun);
    let stand_in = if cell.marks.contains(&Mark::NotRun) { "x" } else { NONE };
    let mut marks: Vec<Mark> = cell.marks.iter().filter(others).copied().collect();
    marks.sort();
    marks.truncate(MARKS);
    legend.note_marks(&marks);
    if number.is_none() {
        let mark = if cell.marks.contains(&Mark::NotRun) { Mark::NotRun } else { Mark::NotMeasured };
        legend.note_marks(&[mark]);
    }
    let letters = super::marks::letters(&marks);
    format!("{:>width$}{letters:<MARKS$}", number.as_deref().unwrap_or(stand_in), width = width - MARKS)
}

/// The lines below a table: what its marks mean.
pub(crate) fn legend(screen: &mut Screen, legend: &Legend) {
    if let Some(text) = legend.text() {
        screen.field(span(Look::Quiet, "marks"), &text, Look::Quiet, lines(screen));
    }
}

/// Plain words below a table.
pub(crate) fn note(screen: &mut Screen, text: &str) {
    screen.line([span(Look::Quiet, format!("  {text}"))]);
}

/// That there are more of something than the screen has room for, if so.
pub(crate) fn not_shown(screen: &mut Screen, more: usize, noun: &str) {
    if more > 0 {
        note(screen, &format!("{} more in --full", count(more as u64, noun)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_together() {
        let paths = ["a/run1.jsonl", "a/run1.json", "a/run1.csv", "a/run1.mpiio.sum"].map(PathBuf::from);
        assert_eq!(together(&paths), "a/run1.jsonl .json .csv .mpiio.sum");
        assert_eq!(document(&paths), Some(Path::new("a/run1.json")));
        assert_eq!(
            [word(Path::new("a b.json")), word(Path::new("-x")), word(Path::new("a/b.json"))].join(" "),
            "'a b.json' './-x' a/b.json"
        );
    }

    #[test]
    fn rates_have_four_digits_at_most() {
        let shown = [0.0434, 0.5, 12.345, 123.45, 1234.5, 123_456.0].map(|v| rate(v, None));
        assert_eq!(shown, ["0.043", "0.50", "12.3", "123", "1234", "123500"]);
        assert_eq!(rate(1234.5, Some(2)), "1200");
        assert!(rate(1e300, None).len() <= 7);
    }
}
