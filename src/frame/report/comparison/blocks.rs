//! A comparison as blocks of a report.

use beff_statistics::bootstrap::Interval;

use super::view::{ComparisonSide, ComparisonView};
use super::wording::{self, ChangeList};
use crate::frame::report::model::ReportBlock;
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::figure;
use crate::frame::values::comparable::QuantityLevel;
use crate::frame::values::compare::ComparedQuantity;

/// Differing facts, rows of a table, tables and changes shown without `--full`.
const MAX_FACTS: usize = 7;
const MAX_ROWS: usize = 10;
const MAX_TABLES: usize = 4;
const MAX_CHANGES: usize = 4;
const MAX_MISSING: usize = 3;
const MAX_TEXT: usize = 140;
const MAX_NAME: usize = 24;

/// The comparison without the result of the gate.
pub(super) fn comparison_blocks(view: &ComparisonView<'_>) -> Vec<ReportBlock> {
    let mut all = vec![sides(view), ReportBlock::Text(wording::comparability(view))];
    all.extend(facts(view));
    all.extend(wording::inference_notes(view).into_iter().map(ReportBlock::Text));
    all.extend(values(view));
    all.extend(tables(view));
    if view.full {
        all.extend(
            [(QuantityLevel::Group, "Means"), (QuantityLevel::Detail, "Single lines")]
                .iter()
                .filter_map(|(level, title)| all_quantities(view, *level, title)),
        );
    }
    all.extend(changes(view));
    let missing = wording::missing_text(view, limit(view, MAX_MISSING));
    all.extend(
        (!missing.is_empty())
            .then(|| ReportBlock::Notes(missing.iter().map(|text| truncate(view, text, 2 * MAX_TEXT)).collect())),
    );
    all
}

fn limit(view: &ComparisonView<'_>, most: usize) -> usize {
    if view.full {
        usize::MAX
    } else {
        most
    }
}

/// Truncates a text with dots, unless the full comparison is requested.
fn truncate(view: &ComparisonView<'_>, text: &str, longest: usize) -> String {
    if view.full || text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(3)).chain("...".chars()).collect()
}

fn sides(view: &ComparisonView<'_>) -> ReportBlock {
    let of = |side: &ComparisonSide| {
        let files = (side.name.clone(), truncate(view, &side.files.join(", "), MAX_TEXT / 2));
        let troubles: Vec<(String, String)> =
            side.troubles.iter().take(limit(view, 2)).map(|text| (side.name.clone(), format!("! {text}"))).collect();
        [files].into_iter().chain(troubles).collect::<Vec<_>>()
    };
    ReportBlock::Pairs(view.sides.iter().flat_map(|side| of(side)).collect())
}

fn facts(view: &ComparisonView<'_>) -> Option<ReportBlock> {
    let all = &view.comparison.differences;
    let shown = all.iter().take(limit(view, MAX_FACTS)).map(|difference| {
        let [from, to] = wording::fact_values(difference).map(|value| truncate(view, &value, MAX_TEXT / 2));
        (difference.name.clone(), format!("{from} -> {to}"))
    });
    let more = all.len().saturating_sub(limit(view, MAX_FACTS));
    let more = (more > 0).then(|| (format!("and {more} more"), "--full".to_owned()));
    (!all.is_empty()).then(|| ReportBlock::Pairs(shown.chain(more).collect()))
}

fn headings(view: &ComparisonView<'_>) -> [String; 3] {
    let [a, b] = view.sides.map(|side| side.name.clone());
    let by = format!("{b}/{a}");
    [a, b, by]
}

fn values(view: &ComparisonView<'_>) -> Option<ReportBlock> {
    let [a, b, by] = headings(view);
    let mut table =
        Table::new("", 1, ["value".to_owned(), a, b, "unit".into(), by, "interval".into(), String::new()]).with_words();
    for compared in view.comparison.at_level(QuantityLevel::Value) {
        table.row([vec![TableCell::from(wording::quantity_name(compared, true))], numbers(compared)].concat());
    }
    (!table.is_empty()).then_some(ReportBlock::Table(table))
}

fn numbers(compared: &ComparedQuantity) -> Vec<TableCell> {
    let [a, b] = compared.values.map(figure);
    let unit = compared.unit.name().to_owned();
    let says = TableCell::from(wording::verdict_text(compared.call)).strong(compared.call.is_different());
    let numbers = [a, b, unit, wording::format_ratio(compared.ratio), wording::format_interval(compared)];
    numbers.into_iter().map(TableCell::from).chain([says]).collect()
}

/// Numbers of level group: a table for each backend and partition.
fn tables(view: &ComparisonView<'_>) -> Vec<ReportBlock> {
    let mut sections: Vec<String> = Vec::new();
    for compared in view.comparison.at_level(QuantityLevel::Group) {
        let section = wording::section_name(compared);
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    let most_tables = limit(view, MAX_TABLES);
    let of = |section: &String| {
        let own: Vec<&ComparedQuantity> =
            view.comparison.at_level(QuantityLevel::Group).filter(|c| wording::section_name(c) == *section).collect();
        ReportBlock::Table(table(view, &own, section))
    };
    let legend = (!sections.is_empty()).then(|| ReportBlock::Text(wording::legend(view)));
    let more = sections.len().saturating_sub(most_tables);
    let more = (more > 0).then(|| ReportBlock::Notes(vec![format!("and {more} more tables: --full")]));
    legend.into_iter().chain(sections.iter().take(most_tables).map(of)).chain(more).collect()
}

/// Rows and columns in order of first occurrence. If there are too many rows, only those with the largest changes.
fn table(view: &ComparisonView<'_>, own: &[&ComparedQuantity], section: &str) -> Table {
    let (mut rows, mut columns): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for compared in own {
        if !rows.contains(&compared.row.as_str()) {
            rows.push(&compared.row);
        }
        if !columns.contains(&compared.column.as_str()) {
            columns.push(&compared.column);
        }
    }
    let more = rows.len().saturating_sub(limit(view, MAX_ROWS));
    if more > 0 {
        let change = |row: &str| own.iter().filter(|c| c.row == row).map(|c| c.ratio.ln().abs()).fold(0.0, f64::max);
        rows.sort_by(|a, b| change(b).total_cmp(&change(a)));
        rows.truncate(MAX_ROWS);
    }
    let section = if section.is_empty() { headings(view)[2].clone() } else { section.to_owned() };
    let names = columns.iter().map(|column| truncate(view, column, MAX_NAME));
    let mut table = Table::new("", 1, [section].into_iter().chain(names));
    for row in rows {
        let cell = |column: &&str| {
            let found = own.iter().find(|c| c.row == row && c.column == **column);
            found.map_or_else(String::new, |c| {
                format!("{} {}", wording::format_ratio(c.ratio), wording::verdict_symbol(c.call))
            })
        };
        table.row([truncate(view, row, MAX_NAME)].into_iter().chain(columns.iter().map(cell)));
    }
    if more > 0 {
        table = table.with_note(format!("and {more} rows that changed less: --full"));
    }
    table
}

/// Every number of a level with its interval; names are in the last column, where they may be long.
fn all_quantities(view: &ComparisonView<'_>, level: QuantityLevel, title: &str) -> Option<ReportBlock> {
    let [a, b, by] = headings(view);
    let head = [a, b, "unit".into(), by, "interval".into(), "verdict".into(), "of".into()];
    let mut table = Table::new("", 0, head).with_words();
    for compared in view.comparison.at_level(level) {
        table.row([numbers(compared), vec![TableCell::from(wording::quantity_name(compared, true))]].concat());
    }
    (!table.is_empty()).then(|| ReportBlock::Folded(title.to_owned(), vec![ReportBlock::Table(table)]))
}

fn changes(view: &ComparisonView<'_>) -> Option<ReportBlock> {
    let ChangeList { heading, shown, more } = wording::changes(view, limit(view, MAX_CHANGES))?;
    let change = |compared: &&ComparedQuantity| {
        let (ratio, mark) = (wording::format_ratio(compared.ratio), wording::verdict_symbol(compared.call));
        let interval = compared.interval.filter(|ends| Interval::from(*ends).is_resolved());
        let interval = interval.map(|_| format!(" ({})", wording::format_interval(compared))).unwrap_or_default();
        let causes =
            wording::causes_text(compared, view).map(|causes| format!("; {}", truncate(view, &causes, MAX_TEXT)));
        let (name, change) = (wording::quantity_name(compared, true), wording::change_text(compared));
        format!("{ratio} {mark} {name}: {change}{interval}{}", causes.unwrap_or_default())
    };
    let more = (more > 0).then(|| format!("and {more} more: --full"));
    let texts: Vec<String> = shown.iter().map(change).chain(more).collect();
    let inside = if texts.is_empty() { Vec::new() } else { vec![ReportBlock::List(texts)] };
    Some(ReportBlock::Folded(heading, inside))
}
