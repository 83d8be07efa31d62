//! A comparison as Markdown, for the page of a build.

use super::page::{cell, grid};
use super::words::{self, Changes};
use super::View;
use crate::frame::plain;
use crate::frame::report::text::figure;
use crate::frame::values::comparable::Level;
use crate::frame::values::compare::Compared;

/// Changes shown without `--full`.
const MOST_CHANGES: usize = 10;

/// The text.
#[must_use]
pub fn markdown(view: &View<'_>) -> String {
    let mut text = Text::default();
    let [a, b] = view.sides;
    text.line(&format!("## {}: {} against {}", escaped(view.title), b.name, a.name));
    if let Some(gate) = view.gate {
        text.paragraph(&format!("**{}**", escaped(&words::gate(gate, view))));
    }
    text.blank();
    for side in view.sides {
        text.line(&format!("- **{}**: {}", side.name, escaped(&side.files.join(", "))));
        side.troubles.iter().for_each(|trouble| text.line(&format!("  - {}", escaped(trouble))));
    }
    text.paragraph(&escaped(&words::fairness(view)));
    facts(&mut text, view);
    words::decides(view).iter().for_each(|said| text.paragraph(&escaped(said)));
    values(&mut text, view);
    tables(&mut text, view);
    changes(&mut text, view);
    words::missing(view, if view.full { usize::MAX } else { 10 })
        .iter()
        .for_each(|said| text.paragraph(&escaped(said)));
    if view.full {
        every(&mut text, view);
    }
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(&plain::line(line));
        self.0.push('\n');
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    fn paragraph(&mut self, text: &str) {
        self.blank();
        self.line(text);
    }

    fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Headings; the first column is text, the others are numbers.
    fn headings(&mut self, cells: &[String]) {
        self.blank();
        self.row(cells);
        let rule: Vec<&str> = (0..cells.len()).map(|n| if n == 0 { "---" } else { "---:" }).collect();
        self.line(&format!("|{}|", rule.join("|")));
    }
}

/// What Markdown or HTML would take for markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn facts(text: &mut Text, view: &View<'_>) {
    if view.comparison.differences.is_empty() {
        return;
    }
    let [a, b] = view.sides.map(|side| side.name.clone());
    text.headings(&["differs".into(), a, b]);
    for difference in &view.comparison.differences {
        let [from, to] = words::values(difference);
        text.row(&[&difference.name, &from, &to].map(|cell| escaped(cell)));
    }
}

fn headings(view: &View<'_>, first: &str) -> Vec<String> {
    let [a, b] = view.sides.map(|side| side.name.as_str());
    let by = format!("{b}/{a}");
    [first, a, b, "unit", &by, "interval", "says"].map(escaped).into()
}

fn row(text: &mut Text, compared: &Compared, name: &str) {
    let [a, b] = compared.values.map(figure);
    let says = match compared.call.is_different() {
        true => format!("**{}**", words::call(compared.call)),
        false => words::call(compared.call).to_owned(),
    };
    let unit = compared.unit.name().to_owned();
    text.row(&[escaped(name), a, b, unit, words::ratio(compared.ratio), words::interval(compared), says]);
}

fn values(text: &mut Text, view: &View<'_>) {
    let own: Vec<&Compared> = view.comparison.at(Level::Value).collect();
    if own.is_empty() {
        return;
    }
    text.headings(&headings(view, "value"));
    own.iter().for_each(|compared| row(text, compared, &words::name(compared, true)));
}

fn tables(text: &mut Text, view: &View<'_>) {
    let mut sections: Vec<String> = Vec::new();
    for compared in view.comparison.at(Level::Group) {
        let section = words::section(compared);
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    if !sections.is_empty() {
        text.paragraph(&escaped(&words::legend(view)));
    }
    for section in sections {
        let own: Vec<&Compared> = view.comparison.at(Level::Group).filter(|c| words::section(c) == section).collect();
        let (rows, columns, _) = grid(&own, usize::MAX);
        let cells = |first: &str, of: &dyn Fn(&str) -> String| {
            [escaped(first)].into_iter().chain(columns.iter().map(|c| escaped(of(c).trim_end()))).collect::<Vec<_>>()
        };
        text.headings(&cells(&section, &|column| column.to_owned()));
        rows.iter().for_each(|row| text.row(&cells(row, &|column| cell(&own, row, column))));
    }
}

fn changes(text: &mut Text, view: &View<'_>) {
    let most = if view.full { usize::MAX } else { MOST_CHANGES };
    let Some(Changes { heading, shown, more }) = words::changes(view, most) else { return };
    text.paragraph(&format!("### {}", escaped(&heading)));
    text.blank();
    for compared in shown {
        let causes = words::causes(compared, view).map(|causes| format!(". {causes}")).unwrap_or_default();
        let said = format!("{}: {}{causes}", words::name(compared, true), words::change(compared));
        let (ratio, interval) = (words::ratio(compared.ratio), words::interval(compared));
        text.line(&format!("- **{ratio}** ({interval}, {}) {}", words::call(compared.call), escaped(&said)));
    }
    if more > 0 {
        text.line(&format!("- and {more} more"));
    }
}

fn every(text: &mut Text, view: &View<'_>) {
    for (level, title) in [(Level::Group, "mean"), (Level::Detail, "line")] {
        let own: Vec<&Compared> = view.comparison.at(level).collect();
        if !own.is_empty() {
            text.headings(&headings(view, title));
            own.iter().for_each(|compared| row(text, compared, &words::name(compared, true)));
        }
    }
}
