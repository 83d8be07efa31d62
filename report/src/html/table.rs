//! Markup of tables.

use std::fmt::Write;

use super::escape::escape;
use crate::table::{Table, TableCell};

/// Writes the markup of a table. Names equal to those of the row above are hidden visually.
pub fn write(table: &Table, out: &mut String) {
    let words = if table.has_words { " w" } else { "" };
    let marks = table.marks().map(|text| format!("; {text}")).unwrap_or_default();
    let caption = format!("{}{marks}", table.caption);
    let caption = escape(&caption);
    let _ = write!(
        out,
        "<div class=scroll tabindex=0 role=region aria-label=\"{caption}\"><table class=\"n{}{words}\"><caption>{caption}</caption><thead><tr>",
        table.names.min(5)
    );
    for name in &table.head {
        let _ = write!(out, "<th scope=col>{}", escape(&name.replace('\n', " ")));
    }
    out.push_str("<tbody>");
    for row in table.rows.iter().filter(|row| !row.is_empty()) {
        out.push_str("\n<tr>");
        for (place, cell) in row.iter().enumerate() {
            write_cell(cell, out, place + 1 == table.names);
        }
    }
    out.push_str("</table></div>\n");
    for note in &table.notes {
        let _ = writeln!(out, "<p class=note>{}</p>", escape(note));
    }
}

fn write_cell(cell: &TableCell, out: &mut String, is_name: bool) {
    out.push_str(if is_name { "<th scope=row" } else { "<td" });
    match (cell.shade, cell.is_strong) {
        (Some(shade), true) => {
            let _ = write!(out, " class=\"h{shade} b\"");
        }
        (Some(shade), false) => {
            let _ = write!(out, " class=h{shade}");
        }
        (None, true) => out.push_str(" class=b"),
        (None, false) => {}
    }
    if let Some(said) = &cell.tooltip {
        let _ = write!(out, " title=\"{}\"", escape(said));
    }
    out.push('>');
    out.push_str(&escape(&cell.text));
    if !cell.marks.is_empty() {
        let _ = write!(out, " {}", escape(&cell.marks));
    }
}
