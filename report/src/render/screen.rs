//! One screen of a result: values and their validity, a table or two, what stands out, reliability, and next commands. At most 40 lines of
//! 80 columns, 60 lines with several backends.

use std::path::{Path, PathBuf};

use super::common_text::{caveats, missing_criteria, value_caveats};
use crate::display::{DisplayContext, SaveStatus};
use crate::model::{ReportBlock, ReportHead, ReportModel, TextStyle};
use crate::table::Table;
use crate::terminal::{begin_of, pad_to, styled, Screen, Verbosity, LABEL};
use crate::text::{count, wrap};

/// Maximum number of lines, for one backend and for several.
const MAX_LINES: usize = 40;
const MAX_LINES_OF_SEVERAL: usize = 60;
/// Lines of a small terminal, its prompt included.
const TERMINAL_LINES: usize = 23;
/// Values with a line; a damaged file may name any number of backends.
const MAX_VALUES: usize = 4;
/// Warnings shown; the others are counted.
const MAX_WARNINGS: usize = 3;
const MAX_FINDINGS: usize = 3;

/// Renders the screen.
#[must_use]
pub fn screen(model: &ReportModel, place: &DisplayContext) -> Screen {
    let most = if model.has_several_backends { MAX_LINES_OF_SEVERAL } else { MAX_LINES };
    Screen::fit_lines(place.columns, most, |screen| {
        banner(screen, model);
        head(screen, &model.head);
        values(screen, model);
        model.summary.iter().for_each(|one| block(screen, one));
        findings(screen, model);
        reliability(screen, model);
        end(screen, model, place);
        values_again(screen, model, most);
    })
}

fn max_lines(screen: &Screen) -> usize {
    match screen.verbosity() {
        Verbosity::Whole => usize::MAX,
        Verbosity::Full => 2,
        _ => 1,
    }
}

/// Maximum number of lines of a finding, whose cause is last.
fn max_finding_lines(screen: &Screen) -> usize {
    match screen.verbosity() {
        Verbosity::Whole => usize::MAX,
        Verbosity::Essential => 1,
        _ => 2,
    }
}

/// `most`, or one less at low verbosity.
fn limit(screen: &Screen, most: usize) -> usize {
    if matches!(screen.verbosity(), Verbosity::Shorter | Verbosity::Essential) {
        most - 1
    } else {
        most
    }
}

fn note(screen: &mut Screen, text: &str) {
    let lines = match screen.verbosity() {
        Verbosity::Whole => wrap(text, screen.columns() - 2),
        _ if text.chars().count() > screen.columns() - 2 => vec![begin_of(text, screen.columns() - 2)],
        _ => vec![text.to_owned()],
    };
    for line in lines {
        screen.line([styled(TextStyle::Quiet, format!("  {line}"))]);
    }
}

fn plain(screen: &mut Screen, text: &str) {
    screen.line([styled(TextStyle::Plain, format!("  {text}"))]);
}

/// How it ended, if not as planned, and whether data was wrong; then the first error as a whole, however long it is.
fn banner(screen: &mut Screen, model: &ReportModel) {
    for text in &model.alarms {
        screen.line([styled(TextStyle::Bad, format!("*** {text}"))]);
    }
    if let Some((first, others)) = model.errors.split_first() {
        let more = others.len() as u64;
        let more = if more > 0 { format!(" (and {} more)", count(more, "error")) } else { String::new() };
        screen.field(styled(TextStyle::Strong, "error"), &format!("{}{more}", first.cause), TextStyle::Bad, usize::MAX);
        screen.field(styled(TextStyle::Strong, "next step"), &first.next_step, TextStyle::Plain, usize::MAX);
        if screen.verbosity() != Verbosity::Essential {
            screen.blank();
        }
    }
}

fn head(screen: &mut Screen, head: &ReportHead) {
    let machine: Vec<&str> =
        [&head.ranks, &head.library].into_iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
    let facts = [head.name.clone(), machine.join(", "), truncate_to_minute(&head.started_utc)];
    let facts: String = facts.iter().filter(|fact| !fact.is_empty()).map(|fact| format!("  {fact}")).collect();
    screen.line([styled(TextStyle::Strong, &head.program), styled(TextStyle::Plain, facts)]);
    if let Some([path, place]) = &head.storage {
        plain(screen, &format!("files under {path} ({place})"));
    }
    if let Some(text) = &head.sheet {
        screen.field(styled(TextStyle::Plain, "storage"), text, TextStyle::Plain, max_lines(screen));
    }
    head.about.iter().for_each(|text| note(screen, text));
    if !head.requested_time.is_empty() {
        plain(screen, &format!("{}; {}", head.requested_time, head.elapsed_time));
    }
    if let Some(text) = &head.settings {
        screen.field(styled(TextStyle::Plain, "settings"), text, TextStyle::Plain, max_lines(screen));
    }
}

/// Shortens `2025-01-31T12:00:00Z` to `2025-01-31T12:00Z`, so that the first line fits with the longest names of MPI libraries. Other texts
/// are not changed.
fn truncate_to_minute(started_utc: &str) -> String {
    let minutes = started_utc.strip_suffix('Z').filter(|text| text.len() == "2025-01-31T12:00:00".len());
    minutes
        .and_then(|text| text.get(.."2025-01-31T12:00".len()))
        .map_or_else(|| started_utc.to_owned(), |text| format!("{text}Z"))
}

/// The lines of the values once more, where they have left a terminal of 24 lines.
fn values_again(screen: &mut Screen, model: &ReportModel, most: usize) {
    let is_full = screen.height() + 1 + model.values.len().min(MAX_VALUES) > most;
    if screen.height() < TERMINAL_LINES || (is_full && screen.verbosity() == Verbosity::Essential) {
        return;
    }
    screen.blank();
    // Indented: the lines for grep are unique.
    value_lines(screen, model, " ");
}

fn value_lines(screen: &mut Screen, model: &ReportModel, indent: &str) {
    for value in model.values.iter().filter(|value| !value.screen_line.is_empty()).take(MAX_VALUES) {
        let spans = value.screen_line.iter().map(|(tone, text)| styled(*tone, text));
        let text: String = value.screen_line.iter().map(|(_, text)| text.as_str()).collect();
        if indent.len() + text.chars().count() <= screen.columns() || indent.is_empty() {
            screen.line([styled(TextStyle::Plain, indent)].into_iter().chain(spans));
        } else {
            wrap(&text, screen.columns() - indent.len())
                .into_iter()
                .for_each(|line| screen.line([styled(TextStyle::Plain, format!("{indent}{line}"))]));
        }
    }
}

/// Value lines for grep, and why a value is not valid.
fn values(screen: &mut Screen, model: &ReportModel) {
    screen.blank();
    value_lines(screen, model, "");
    let missing = missing_criteria(model);
    let has_value = model.assessments.iter().any(|judged| judged.is_main);
    if let Some(by) = model.assessed_by.as_ref().filter(|_| missing.is_empty() && has_value && !model.has_failed) {
        screen.field(styled(TextStyle::Good, "valid by"), by, TextStyle::Plain, 1);
    }
    let because = [missing, model.shortcomings.clone()].concat();
    if !because.is_empty() {
        screen.field(
            styled(TextStyle::Warn, "because"),
            &because.join("; "),
            TextStyle::Plain,
            max_finding_lines(screen),
        );
    }
    let caveats = value_caveats(model);
    if !caveats.is_empty() {
        let text = caveats.join("; ");
        screen.field(styled(TextStyle::Warn, "caveats"), &text, TextStyle::Plain, max_finding_lines(screen));
    }
    model.notes.iter().for_each(|text| note(screen, text));
}

fn block(screen: &mut Screen, block: &ReportBlock) {
    match block {
        ReportBlock::Table(one) => table(screen, one),
        ReportBlock::Picture(picture) => table(screen, &picture.table),
        ReportBlock::Pairs(all) => all.iter().for_each(|(label, text)| {
            screen.field(styled(TextStyle::Strong, label), text, TextStyle::Plain, 1);
        }),
        ReportBlock::Text(text) => plain(screen, text),
        ReportBlock::List(texts) => texts.iter().for_each(|text| plain(screen, text)),
        ReportBlock::Notes(texts) if screen.verbosity() != Verbosity::Essential => {
            texts.iter().for_each(|text| note(screen, text))
        }
        ReportBlock::Notes(_) => {}
        ReportBlock::Folded(_, inside) => inside.iter().for_each(|one| self::block(screen, one)),
    }
}

fn table(screen: &mut Screen, table: &Table) {
    screen.blank();
    let most = table.max_rows(screen.verbosity());
    let shown = table.first_rows(most);
    for (headings, lines) in shown.lines(screen.columns()) {
        for (place, line) in lines.iter().enumerate() {
            screen.line([styled(if place < headings { TextStyle::Quiet } else { TextStyle::Plain }, line)]);
        }
    }
    if table.rows.len() > most {
        note(screen, &format!("{} more in --full", count((table.rows.len() - most) as u64, "line")));
    }
    if let Some(text) = shown.marks() {
        screen.field(styled(TextStyle::Quiet, "marks"), &text, TextStyle::Quiet, max_lines(screen));
    }
    table.notes.iter().for_each(|text| note(screen, text));
}

/// The first findings; none for a failed run.
fn findings(screen: &mut Screen, model: &ReportModel) {
    screen.blank();
    if model.has_failed {
        return;
    }
    for (place, text) in model.findings.iter().take(limit(screen, MAX_FINDINGS)).enumerate() {
        let label = if place == 0 { "stands out" } else { "" };
        screen.field(styled(TextStyle::Strong, label), text, TextStyle::Plain, max_finding_lines(screen));
    }
}

/// Reliability: verification, then warnings, the most important first.
fn reliability(screen: &mut Screen, model: &ReportModel) {
    screen.blank();
    for (label, text) in &model.trust {
        screen.field(styled(TextStyle::Strong, label), text, TextStyle::Plain, max_lines(screen));
    }
    let warnings = caveats(model, |caveat| caveat.is_on_screen);
    let shown = limit(screen, MAX_WARNINGS).saturating_sub(model.errors.len().min(1));
    let mut label = "trust";
    if let Some(checked) = model.verification.as_ref().filter(|_| model.corruption.is_none()) {
        screen.field(styled(TextStyle::Strong, label), checked, TextStyle::Plain, 1);
        label = "";
    }
    for text in warnings.iter().take(shown) {
        screen.field(styled(TextStyle::Strong, label), &format!("! {text}"), TextStyle::Warn, max_lines(screen));
        label = "";
    }
    let more = warnings.len().saturating_sub(shown);
    if more > 0 {
        let kinds = if more == 1 { "kind" } else { "kinds" };
        screen.field(
            styled(TextStyle::Strong, label),
            &format!("{more} more {kinds} of warnings: --full"),
            TextStyle::Plain,
            1,
        );
    } else if warnings.is_empty() && !model.has_failed {
        screen.field(styled(TextStyle::Strong, label), "no warnings", TextStyle::Good, 1);
    }
}

/// Files and next commands. For a failed run the command for a valid value is omitted; its error has its own next step.
fn end(screen: &mut Screen, model: &ReportModel, place: &DisplayContext) {
    screen.blank();
    let (saved, tone) = match &place.saved {
        SaveStatus::NotSaved => ("nothing; --out NAME keeps the result".to_owned(), TextStyle::Plain),
        SaveStatus::SavedTo(paths) => (join_file_names(paths), TextStyle::Plain),
        SaveStatus::Failed => ("not completely: see the error message".to_owned(), TextStyle::Bad),
        SaveStatus::LoadedFrom(path) => (path.display().to_string(), TextStyle::Plain),
    };
    let label = if matches!(place.saved, SaveStatus::LoadedFrom(_)) { "read from" } else { "saved" };
    screen.field(styled(TextStyle::Strong, label), &saved, tone, 1);
    let file = match &place.saved {
        SaveStatus::SavedTo(paths) => document_path(paths),
        SaveStatus::LoadedFrom(path) => Some(path.as_path()),
        SaveStatus::NotSaved | SaveStatus::Failed => None,
    };
    let full = file.map(|path| format!("beff-raw report {} --full", shell_word(path)));
    let full = full.unwrap_or_else(|| "the same with --full".to_owned());
    // At full verbosity: the command that shows the effect of a change.
    let others = file
        .filter(|_| matches!(screen.verbosity(), Verbosity::Whole | Verbosity::Full) && !model.has_failed)
        .map(|path| ("", format!("beff-raw compare {} OTHER.json", shell_word(path)), "what changed"));
    let again = model.rerun.clone().filter(|_| !model.has_failed).map(|(what, why)| ("", what, why));
    for (label, what, why) in [("next", full, "all tables")].into_iter().chain(others).chain(again) {
        if LABEL + what.chars().count() + 3 + why.len() > screen.columns() {
            screen.field(styled(TextStyle::Strong, label), &what, TextStyle::Plain, max_finding_lines(screen));
            continue;
        }
        let spans =
            [styled(TextStyle::Strong, format!("  {}", pad_to(label, LABEL - 2))), styled(TextStyle::Plain, what)];
        screen.line(spans.into_iter().chain([styled(TextStyle::Quiet, format!("   {why}"))]));
    }
}

fn join_file_names(paths: &[PathBuf]) -> String {
    let Some(first) = paths.first().map(|path| path.display().to_string()) else { return String::new() };
    let stem = first.strip_suffix(".jsonl").unwrap_or(&first);
    let of = |path: &PathBuf| {
        let name = path.display().to_string();
        name.strip_prefix(stem).map(str::to_owned).unwrap_or(name)
    };
    let others: Vec<String> = paths.iter().skip(1).map(of).collect();
    [first.clone()].into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

fn document_path(paths: &[PathBuf]) -> Option<&Path> {
    paths.iter().map(PathBuf::as_path).find(|path| path.extension().is_some_and(|e| e == "json"))
}

fn shell_word(path: &Path) -> String {
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
    fn file_names_are_joined() {
        let paths = ["a/run1.jsonl", "a/run1.json", "a/run1.csv", "a/run1.mpiio.sum"].map(PathBuf::from);
        assert_eq!(join_file_names(&paths), "a/run1.jsonl .json .csv .mpiio.sum");
        assert_eq!(document_path(&paths), Some(Path::new("a/run1.json")));
        assert_eq!(
            [shell_word(Path::new("a b.json")), shell_word(Path::new("-x")), shell_word(Path::new("a/b.json"))]
                .join(" "),
            "'a b.json' './-x' a/b.json"
        );
    }
}
