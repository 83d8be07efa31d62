//! Blocks of a report as Markdown, for the summary of a CI job.

use crate::model::ReportBlock;
use crate::table::Table;
use crate::terminal_escape;

/// Renders blocks.
#[must_use]
pub fn markdown(blocks: &[ReportBlock]) -> String {
    let mut out = String::new();
    write(&mut out, blocks);
    out
}

fn write(out: &mut String, blocks: &[ReportBlock]) {
    for block in blocks {
        out.push('\n');
        match block {
            ReportBlock::Table(one) => table(out, one),
            ReportBlock::Picture(picture) => table(out, &picture.table),
            ReportBlock::Pairs(all) => {
                all.iter().for_each(|(name, text)| line(out, &format!("- **{}**: {}", escaped(name), escaped(text))));
            }
            ReportBlock::List(texts) => texts.iter().for_each(|text| line(out, &format!("- {}", escaped(text)))),
            ReportBlock::Text(text) => line(out, &escaped(text)),
            ReportBlock::Notes(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
                line(out, &texts.join(" "));
            }
            ReportBlock::Folded(title, inside) => {
                line(out, &format!("### {}", escaped(title)));
                write(out, inside);
            }
        }
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(&terminal_escape::line(text));
    out.push('\n');
}

fn row(out: &mut String, cells: impl Iterator<Item = String>) {
    line(out, &format!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
}

fn table(out: &mut String, table: &Table) {
    row(out, table.head.iter().map(|head| escaped(head)));
    let rule: Vec<&str> = (0..table.head.len()).map(|n| if table.is_left(n) { "---" } else { "---:" }).collect();
    line(out, &format!("|{}|", rule.join("|")));
    for cells in table.rows.iter().filter(|cells| !cells.is_empty()) {
        let cell =
            |n: usize| cells.get(n).map(|cell| escaped(&format!("{} {}", cell.text, cell.marks))).unwrap_or_default();
        row(out, (0..table.head.len()).map(|n| cell(n).trim_end().to_owned()));
    }
    for text in table.notes.iter().cloned().chain(table.marks()) {
        out.push('\n');
        line(out, &escaped(&text));
    }
}

/// Escapes the markup characters of Markdown and HTML.
pub fn escaped(text: &str) -> String {
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
