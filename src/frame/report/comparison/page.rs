//! A comparison on a terminal: 80 columns, some 40 lines unless all of it is asked for.

use super::words::{self, Changes};
use super::View;
use crate::frame::report::text::figure;
use crate::frame::report::text::{wrap, Page};
use crate::frame::values::comparable::Level;
use crate::frame::values::compare::{Compared, Difference};

/// Widest line, in characters.
pub(super) const WIDTH: usize = 80;

/// Facts that differ, rows of a table and changes that are shown without `--full`.
const MOST_FACTS: usize = 7;
const MOST_ROWS: usize = 10;
const MOST_CHANGES: usize = 4;

/// Tables of groups that are shown without `--full`.
const MOST_TABLES: usize = 4;

/// The text.
#[must_use]
pub fn text(view: &View<'_>) -> String {
    let mut page = Page::default();
    head(&mut page, view);
    facts(&mut page, view);
    page.blank();
    words::decides(view).iter().for_each(|said| paragraph(&mut page, "", said));
    values(&mut page, view);
    tables(&mut page, view);
    if view.full {
        every(&mut page, view);
    }
    changes(&mut page, view);
    end(&mut page, view);
    page.finish()
}

/// Text behind a margin, further lines indented as far.
fn paragraph(page: &mut Page, prefix: &str, text: &str) {
    let indent = prefix.chars().count();
    for (number, line) in wrap(text, WIDTH.saturating_sub(indent)).into_iter().enumerate() {
        page.line(if number == 0 { format!("{prefix}{line}") } else { format!("{:indent$}{line}", "") });
    }
}

/// As much as `width` holds; what is cut off is marked by dots.
fn cut(text: &str, width: usize) -> String {
    let text = crate::frame::plain::line(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    text.chars().take(width.saturating_sub(3)).chain("...".chars()).collect()
}

fn head(page: &mut Page, view: &View<'_>) {
    let [a, b] = view.sides;
    page.line(format!("beff-raw compare: {}, {} against {}", view.title, b.name, a.name));
    for side in view.sides {
        let prefix = format!("  {:<3}", side.name);
        if view.full {
            paragraph(page, &prefix, &side.files.join(", "));
        } else {
            page.line(format!("{prefix}{}", cut(&side.files.join(", "), WIDTH - 5)));
        }
        let most = if view.full { usize::MAX } else { 2 };
        side.troubles.iter().take(most).for_each(|trouble| paragraph(page, "     ! ", trouble));
    }
}

fn facts(page: &mut Page, view: &View<'_>) {
    page.blank();
    paragraph(page, "", &words::fairness(view));
    let all = &view.comparison.differences;
    let most = if view.full { all.len() } else { MOST_FACTS };
    all.iter().take(most).for_each(|difference| fact(page, view, difference));
    if all.len() > most {
        page.line(format!("  and {} more: --full", all.len() - most));
    }
}

/// On one line if it fits; else a line for each side.
fn fact(page: &mut Page, view: &View<'_>, difference: &Difference) {
    let label = format!("  {:<20} ", cut(&difference.name, 20));
    let [from, to] = words::values(difference);
    let whole = format!("{label}{from} -> {to}");
    if whole.chars().count() <= WIDTH {
        return page.line(whole);
    }
    for (side, (value, label)) in view.sides.iter().zip([(from, label.clone()), (to, " ".repeat(label.len()))]) {
        let prefix = format!("{label}{}: ", side.name);
        if view.full {
            paragraph(page, &prefix, &value);
        } else {
            page.line(format!("{prefix}{}", cut(&value, WIDTH - prefix.chars().count())));
        }
    }
}

/// Numbers of level value, those with one name below each other.
fn values(page: &mut Page, view: &View<'_>) {
    let mut names: Vec<&str> = Vec::new();
    for compared in view.comparison.at(Level::Value) {
        if !names.contains(&compared.row.as_str()) {
            names.push(&compared.row);
        }
    }
    for name in names {
        let own: Vec<&Compared> = view.comparison.at(Level::Value).filter(|c| c.row == name).collect();
        page.blank();
        headings(page, view, &own, name);
        for compared in own {
            let label = Some(words::section(compared)).filter(|section| !section.is_empty());
            line(page, compared, &label.unwrap_or_else(|| "value".into()), 22);
        }
    }
}

fn headings(page: &mut Page, view: &View<'_>, own: &[&Compared], name: &str) {
    let [a, b] = view.sides.map(|side| side.name.as_str());
    let unit = own.first().map_or("", |c| c.unit.name());
    let [a_unit, b_unit] = [a, b].map(|side| format!("{side} {unit}"));
    let by = format!("{b}/{a}");
    let interval = if own.iter().any(|c| c.interval.is_some()) { "interval" } else { "" };
    page.line(format!("{:<22}{a_unit:>11}{b_unit:>11}{by:>7}  {interval}", cut(name, 22)));
}

fn line(page: &mut Page, compared: &Compared, label: &str, width: usize) {
    let [a, b] = compared.values.map(figure);
    let (ratio, interval) = (words::ratio(compared.ratio), words::interval(compared));
    let label = cut(label, width - 2);
    let width = width - 2;
    page.line(format!("  {label:<width$}{a:>11}{b:>11}{ratio:>7}  {interval:<14} {}", words::call(compared.call)));
}

/// Numbers of level group: a table for each backend and partition.
fn tables(page: &mut Page, view: &View<'_>) {
    let mut sections: Vec<String> = Vec::new();
    for compared in view.comparison.at(Level::Group) {
        let section = words::section(compared);
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    if sections.is_empty() {
        return;
    }
    page.blank();
    paragraph(page, "", &words::legend(view));
    let most = if view.full { sections.len() } else { MOST_TABLES };
    for section in sections.iter().take(most) {
        let own: Vec<&Compared> = view.comparison.at(Level::Group).filter(|c| words::section(c) == *section).collect();
        table(page, view, &own, section);
    }
    if sections.len() > most {
        page.line(format!("  and {} more tables: --full", sections.len() - most));
    }
}

/// Rows and columns of a table in the order in which they are first met. Only the rows with the largest changes, if there are too many.
pub(super) fn grid<'a>(own: &[&'a Compared], most: usize) -> (Vec<&'a str>, Vec<&'a str>, usize) {
    let (mut rows, mut columns): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for compared in own {
        if !rows.contains(&compared.row.as_str()) {
            rows.push(&compared.row);
        }
        if !columns.contains(&compared.column.as_str()) {
            columns.push(&compared.column);
        }
    }
    let more = rows.len().saturating_sub(most);
    if more > 0 {
        let change = |row: &str| own.iter().filter(|c| c.row == row).map(|c| c.ratio.ln().abs()).fold(0.0, f64::max);
        let mut sorted = rows.clone();
        sorted.sort_by(|a, b| change(b).total_cmp(&change(a)));
        sorted.truncate(most);
        rows.retain(|row| sorted.contains(row));
    }
    (rows, columns, more)
}

/// A cell: the ratio and its mark.
pub(super) fn cell(own: &[&Compared], row: &str, column: &str) -> String {
    let found = own.iter().find(|c| c.row == row && c.column == column);
    found.map_or_else(|| "-  ".into(), |c| format!("{} {}", words::ratio(c.ratio), words::mark(c.call)))
}

fn table(page: &mut Page, view: &View<'_>, own: &[&Compared], section: &str) {
    let (rows, columns, more) = grid(own, if view.full { usize::MAX } else { MOST_ROWS });
    let label = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0).clamp(9, 24) + 3;
    // What does not fit beside each other is in the table of all numbers.
    let width = columns.iter().map(|c| c.chars().count()).max().unwrap_or(0).clamp(8, 15) + 2;
    let fitting = ((WIDTH - label) / width).max(1);
    let heading: String = columns.iter().take(fitting).map(|c| format!("{:>width$}", cut(c, width - 1))).collect();
    let caption = match section {
        "" => format!("  {}/{}", view.sides[1].name, view.sides[0].name),
        section => format!("  {section}"),
    };
    if caption.chars().count() < label {
        page.line(format!("{caption:<label$}{heading}"));
    } else {
        page.line(caption);
        page.line(format!("{:<label$}{heading}", ""));
    }
    for row in rows {
        let cells: String = columns.iter().take(fitting).map(|c| format!("{:>width$}", cell(own, row, c))).collect();
        page.line(format!("  {:<w$}{cells}", cut(row, label - 3), w = label - 2));
    }
    if more > 0 {
        page.line(format!("  and {more} rows that changed less: --full"));
    }
}

/// Every number of the tables and every single line, with its interval.
fn every(page: &mut Page, view: &View<'_>) {
    for (level, title) in [(Level::Group, "Means"), (Level::Detail, "Single lines")] {
        let own: Vec<&Compared> = view.comparison.at(level).collect();
        if own.is_empty() {
            continue;
        }
        page.blank();
        page.line(title);
        for compared in own {
            // The name has a line of its own: it may be long.
            paragraph(page, "  ", &words::name(compared, true));
            line(page, compared, &format!("  {}", compared.unit.name()), 20);
        }
    }
}

fn changes(page: &mut Page, view: &View<'_>) {
    let most = if view.full { usize::MAX } else { MOST_CHANGES };
    let Some(Changes { heading, shown, more }) = words::changes(view, most) else { return };
    page.blank();
    page.line(heading);
    let with_section = shown.iter().any(|c| words::section(c) != words::section(shown[0]));
    for compared in shown {
        let ratio = format!("{} {}", words::ratio(compared.ratio), words::mark(compared.call));
        let interval = compared.interval.map(|_| format!(" ({})", words::interval(compared))).unwrap_or_default();
        let text = format!("{}: {}{interval}", words::name(compared, with_section), words::change(compared));
        paragraph(page, &format!("  {ratio:>7}  "), &text);
        if let Some(causes) = words::causes(compared, view) {
            let causes = if view.full { causes } else { cut(&causes, 2 * (WIDTH - 11) - 10) };
            paragraph(page, &" ".repeat(11), &causes);
        }
    }
    if more > 0 {
        page.line(format!("  and {more} more: --full"));
    }
}

fn end(page: &mut Page, view: &View<'_>) {
    let missing = words::missing(view, if view.full { usize::MAX } else { 3 });
    if !missing.is_empty() {
        page.blank();
        let most = if view.full { usize::MAX } else { 3 * WIDTH };
        missing.iter().for_each(|said| paragraph(page, "", &cut(said, most)));
    }
    if let Some(gate) = view.gate {
        page.blank();
        paragraph(page, "", &words::gate(gate, view));
    }
}
