//! One screen of a result: the values and whether they count, a table or two, what stands out, what to trust, and what to type next. At
//! most 40 lines of 80 columns, 60 lines with several backends.

use std::path::{Path, PathBuf};

use super::said::{caveats, lacks};
use crate::model::{Block, Head, Model, Tone};
use crate::place::{Place, Saved};
use crate::sheet::{fixed, span, Room, Screen, LABEL};
use crate::table::Table;
use crate::text::count;

/// Lines at most, of one backend and of several.
const LINES: usize = 40;
const LINES_OF_SEVERAL: usize = 60;
/// Values that have a line; a damaged file may name any number of backends.
const VALUES: usize = 4;
/// Warnings shown; the others are counted.
const WARNINGS: usize = 3;
/// Findings shown.
const FINDINGS: usize = 3;

/// The screen.
#[must_use]
pub fn screen(model: &Model, place: &Place) -> Screen {
    let most = if model.has_several { LINES_OF_SEVERAL } else { LINES };
    Screen::within(place.columns, most, |screen| {
        banner(screen, model);
        head(screen, &model.head);
        values(screen, model);
        model.summary.iter().for_each(|one| block(screen, one));
        findings(screen, model);
        trust(screen, model);
        end(screen, model, place);
    })
}

/// Lines of a text that can be long.
fn lines(screen: &Screen) -> usize {
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

fn note(screen: &mut Screen, text: &str) {
    screen.line([span(Tone::Quiet, format!("  {text}"))]);
}

fn plain(screen: &mut Screen, text: &str) {
    screen.line([span(Tone::Plain, format!("  {text}"))]);
}

/// How it ended, if not as planned, and whether data was wrong; then the first error as a whole, however long it is.
fn banner(screen: &mut Screen, model: &Model) {
    for text in &model.alarms {
        screen.line([span(Tone::Bad, format!("*** {text}"))]);
    }
    if let Some((first, others)) = model.errors.split_first() {
        let more = others.len() as u64;
        let more = if more > 0 { format!(" (and {} more)", count(more, "error")) } else { String::new() };
        screen.field(span(Tone::Strong, "error"), &format!("{}{more}", first.cause), Tone::Bad, usize::MAX);
        screen.field(span(Tone::Strong, "next step"), &first.next_step, Tone::Plain, usize::MAX);
        if screen.room() != Room::Bare {
            screen.blank();
        }
    }
}

fn head(screen: &mut Screen, head: &Head) {
    let machine: Vec<&str> =
        [&head.ranks, &head.library].into_iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
    let facts = [head.name.clone(), machine.join(", "), to_the_minute(&head.started_utc)];
    let facts: String = facts.iter().filter(|fact| !fact.is_empty()).map(|fact| format!("  {fact}")).collect();
    screen.line([span(Tone::Strong, &head.program), span(Tone::Plain, facts)]);
    if let Some([path, place]) = &head.storage {
        plain(screen, &format!("files under {path} ({place})"));
    }
    head.about.iter().for_each(|text| note(screen, text));
    if !head.asked.is_empty() {
        plain(screen, &format!("{}; {}", head.asked, head.took));
    }
    if let Some(text) = &head.settings {
        screen.field(span(Tone::Plain, "settings"), text, Tone::Plain, 1);
    }
}

/// `2025-01-31T12:00Z` of `2025-01-31T12:00:00Z`: the first line is to fit with the longest names of MPI libraries. Anything else as it is.
fn to_the_minute(started_utc: &str) -> String {
    let minutes = started_utc.strip_suffix('Z').filter(|text| text.len() == "2025-01-31T12:00:00".len());
    minutes
        .and_then(|text| text.get(.."2025-01-31T12:00".len()))
        .map_or_else(|| started_utc.to_owned(), |text| format!("{text}Z"))
}

/// The lines for grep, and why a value does not count.
fn values(screen: &mut Screen, model: &Model) {
    screen.blank();
    for value in model.values.iter().filter(|value| !value.line.is_empty()).take(VALUES) {
        screen.line(value.line.iter().map(|(tone, text)| span(*tone, text)));
    }
    let because = [lacks(model), model.because.clone()].concat();
    if !because.is_empty() {
        screen.field(span(Tone::Warn, "because"), &because.join("; "), Tone::Plain, lines_of_finding(screen));
    }
    model.notes.iter().for_each(|text| note(screen, text));
}

fn block(screen: &mut Screen, block: &Block) {
    match block {
        Block::Table(one) => table(screen, one),
        Block::Picture(picture) => table(screen, &picture.table),
        Block::Pairs(all) => all.iter().for_each(|(label, text)| {
            screen.field(span(Tone::Strong, label), text, Tone::Plain, 1);
        }),
        Block::Text(text) => plain(screen, text),
        Block::List(texts) => texts.iter().for_each(|text| plain(screen, text)),
        Block::Notes(texts) if screen.room() != Room::Bare => texts.iter().for_each(|text| note(screen, text)),
        Block::Notes(_) => {}
        Block::Folded(_, inside) => inside.iter().for_each(|one| self::block(screen, one)),
    }
}

fn table(screen: &mut Screen, table: &Table) {
    screen.blank();
    let most = table.most_rows(screen.room());
    let shown = table.first(most);
    for (headings, lines) in shown.lines(screen.columns()) {
        for (place, line) in lines.iter().enumerate() {
            screen.line([span(if place < headings { Tone::Quiet } else { Tone::Plain }, line)]);
        }
    }
    if table.rows.len() > most {
        note(screen, &format!("{} more in --full", count((table.rows.len() - most) as u64, "line")));
    }
    if let Some(text) = shown.marks() {
        screen.field(span(Tone::Quiet, "marks"), &text, Tone::Quiet, lines(screen));
    }
    table.notes.iter().for_each(|text| note(screen, text));
}

/// What stands out, the first few; nothing of a run that failed.
fn findings(screen: &mut Screen, model: &Model) {
    screen.blank();
    if model.has_failed {
        return;
    }
    for (place, text) in model.findings.iter().take(number(screen, FINDINGS)).enumerate() {
        let label = if place == 0 { "stands out" } else { "" };
        screen.field(span(Tone::Strong, label), text, Tone::Plain, lines_of_finding(screen));
    }
}

/// What to trust and what not: what was compared, then warnings, the most important first.
fn trust(screen: &mut Screen, model: &Model) {
    screen.blank();
    for (label, text) in &model.trust {
        screen.field(span(Tone::Strong, label), text, Tone::Plain, lines(screen));
    }
    let warnings = caveats(model, |caveat| caveat.is_on_screen);
    let told = number(screen, WARNINGS).saturating_sub(model.errors.len().min(1));
    let mut label = "trust";
    if let Some(checked) = model.checked.as_ref().filter(|_| model.corruption.is_none()) {
        screen.field(span(Tone::Strong, label), checked, Tone::Plain, 1);
        label = "";
    }
    for text in warnings.iter().take(told) {
        screen.field(span(Tone::Strong, label), &format!("! {text}"), Tone::Warn, lines(screen));
        label = "";
    }
    let more = warnings.len().saturating_sub(told);
    if more > 0 {
        let kinds = if more == 1 { "kind" } else { "kinds" };
        screen.field(span(Tone::Strong, label), &format!("{more} more {kinds} of warnings: --full"), Tone::Plain, 1);
    } else if warnings.is_empty() && !model.has_failed {
        screen.field(span(Tone::Strong, label), "no warnings", Tone::Good, 1);
    }
}

/// Files, and what to type next: what would make a valid value is not said of a run that failed, whose error has its own next step.
fn end(screen: &mut Screen, model: &Model, place: &Place) {
    screen.blank();
    let (saved, tone) = match &place.saved {
        Saved::Nothing => ("nothing; --out NAME keeps the result".to_owned(), Tone::Plain),
        Saved::Files(paths) => (together(paths), Tone::Plain),
        Saved::Failed => ("not all of it: see the message about it".to_owned(), Tone::Bad),
        Saved::From(path) => (path.display().to_string(), Tone::Plain),
    };
    let label = if matches!(place.saved, Saved::From(_)) { "read from" } else { "saved" };
    screen.field(span(Tone::Strong, label), &saved, tone, 1);
    let file = match &place.saved {
        Saved::Files(paths) => document(paths),
        Saved::From(path) => Some(path.as_path()),
        Saved::Nothing | Saved::Failed => None,
    };
    let full = file.map(|path| format!("beff-raw report {} --full", word(path)));
    let full = full.unwrap_or_else(|| "the same with --full".to_owned());
    // Where there is room: who has changed something wants to know what it brought.
    let others = file
        .filter(|_| screen.room() == Room::Ample && !model.has_failed)
        .map(|path| ("", format!("beff-raw compare {} OTHER.json", word(path)), "what changed"));
    let again = model.again.clone().filter(|_| !model.has_failed).map(|(what, why)| ("", what, why));
    for (label, what, why) in [("next", full, "all tables")].into_iter().chain(others).chain(again) {
        let spans = [span(Tone::Strong, format!("  {}", fixed(label, LABEL - 2))), span(Tone::Plain, what)];
        screen.line(spans.into_iter().chain([span(Tone::Quiet, format!("   {why}"))]));
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
}
