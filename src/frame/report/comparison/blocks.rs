//! What a comparison shows, as blocks.

use super::view::{Side, View};
use super::words::{self, Changes};
use crate::frame::report::model::Block;
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::figure;
use crate::frame::values::comparable::Level;
use crate::frame::values::compare::Compared;

/// Facts that differ, rows of a table, tables and changes that are shown without `--full`.
const MOST_FACTS: usize = 7;
const MOST_ROWS: usize = 10;
const MOST_TABLES: usize = 4;
const MOST_CHANGES: usize = 4;
/// Names, of what only one side has.
const MOST_MISSING: usize = 3;
/// Characters of a fact or a cause.
const LONGEST: usize = 140;
/// Characters of the name of a row or column.
const NAME: usize = 24;

/// All of it, but for what became of the limit.
pub(super) fn blocks(view: &View<'_>) -> Vec<Block> {
    let mut all = vec![sides(view), Block::Text(words::fairness(view))];
    all.extend(facts(view));
    all.extend(words::decides(view).into_iter().map(Block::Text));
    all.extend(values(view));
    all.extend(tables(view));
    if view.full {
        all.extend(
            [(Level::Group, "Means"), (Level::Detail, "Single lines")]
                .iter()
                .filter_map(|(level, title)| every(view, *level, title)),
        );
    }
    all.extend(changes(view));
    let missing = words::missing(view, most(view, MOST_MISSING));
    all.extend(
        (!missing.is_empty()).then(|| Block::Notes(missing.iter().map(|text| cut(view, text, 2 * LONGEST)).collect())),
    );
    all
}

fn most(view: &View<'_>, most: usize) -> usize {
    if view.full {
        usize::MAX
    } else {
        most
    }
}

/// As much as there is room for, unless all is asked for; what is cut off is marked by dots.
fn cut(view: &View<'_>, text: &str, longest: usize) -> String {
    if view.full || text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(3)).chain("...".chars()).collect()
}

fn sides(view: &View<'_>) -> Block {
    let of = |side: &Side| {
        let files = (side.name.clone(), cut(view, &side.files.join(", "), LONGEST / 2));
        let troubles: Vec<(String, String)> =
            side.troubles.iter().take(most(view, 2)).map(|text| (side.name.clone(), format!("! {text}"))).collect();
        [files].into_iter().chain(troubles).collect::<Vec<_>>()
    };
    Block::Pairs(view.sides.iter().flat_map(|side| of(side)).collect())
}

fn facts(view: &View<'_>) -> Option<Block> {
    let all = &view.comparison.differences;
    let shown = all.iter().take(most(view, MOST_FACTS)).map(|difference| {
        let [from, to] = words::values(difference).map(|value| cut(view, &value, LONGEST / 2));
        (difference.name.clone(), format!("{from} -> {to}"))
    });
    let more = all.len().saturating_sub(most(view, MOST_FACTS));
    let more = (more > 0).then(|| (format!("and {more} more"), "--full".to_owned()));
    (!all.is_empty()).then(|| Block::Pairs(shown.chain(more).collect()))
}

fn headings(view: &View<'_>) -> [String; 3] {
    let [a, b] = view.sides.map(|side| side.name.clone());
    let by = format!("{b}/{a}");
    [a, b, by]
}

/// Numbers of level value.
fn values(view: &View<'_>) -> Option<Block> {
    let [a, b, by] = headings(view);
    let mut table =
        Table::new("", 1, ["value".to_owned(), a, b, "unit".into(), by, "interval".into(), String::new()]).with_words();
    for compared in view.comparison.at(Level::Value) {
        table.row([vec![Cell::from(words::name(compared, true))], numbers(compared)].concat());
    }
    (!table.is_empty()).then_some(Block::Table(table))
}

fn numbers(compared: &Compared) -> Vec<Cell> {
    let [a, b] = compared.values.map(figure);
    let unit = compared.unit.name().to_owned();
    let says = Cell::from(words::call(compared.call)).strong(compared.call.is_different());
    let numbers = [a, b, unit, words::ratio(compared.ratio), words::interval(compared)];
    numbers.into_iter().map(Cell::from).chain([says]).collect()
}

/// Numbers of level group: a table for each backend and partition.
fn tables(view: &View<'_>) -> Vec<Block> {
    let mut sections: Vec<String> = Vec::new();
    for compared in view.comparison.at(Level::Group) {
        let section = words::section(compared);
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    let most_tables = most(view, MOST_TABLES);
    let of = |section: &String| {
        let own: Vec<&Compared> = view.comparison.at(Level::Group).filter(|c| words::section(c) == *section).collect();
        Block::Table(table(view, &own, section))
    };
    let legend = (!sections.is_empty()).then(|| Block::Text(words::legend(view)));
    let more = sections.len().saturating_sub(most_tables);
    let more = (more > 0).then(|| Block::Notes(vec![format!("and {more} more tables: --full")]));
    legend.into_iter().chain(sections.iter().take(most_tables).map(of)).chain(more).collect()
}

/// Rows and columns in the order in which they are first met. Only the rows with the largest changes, if there are too many.
fn table(view: &View<'_>, own: &[&Compared], section: &str) -> Table {
    let (mut rows, mut columns): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for compared in own {
        if !rows.contains(&compared.row.as_str()) {
            rows.push(&compared.row);
        }
        if !columns.contains(&compared.column.as_str()) {
            columns.push(&compared.column);
        }
    }
    let more = rows.len().saturating_sub(most(view, MOST_ROWS));
    if more > 0 {
        let change = |row: &str| own.iter().filter(|c| c.row == row).map(|c| c.ratio.ln().abs()).fold(0.0, f64::max);
        rows.sort_by(|a, b| change(b).total_cmp(&change(a)));
        rows.truncate(MOST_ROWS);
    }
    let section = if section.is_empty() { headings(view)[2].clone() } else { section.to_owned() };
    let names = columns.iter().map(|column| cut(view, column, NAME));
    let mut table = Table::new("", 1, [section].into_iter().chain(names));
    for row in rows {
        let cell = |column: &&str| {
            let found = own.iter().find(|c| c.row == row && c.column == **column);
            found.map_or_else(String::new, |c| format!("{} {}", words::ratio(c.ratio), words::mark(c.call)))
        };
        table.row([cut(view, row, NAME)].into_iter().chain(columns.iter().map(cell)));
    }
    if more > 0 {
        table = table.noted(format!("and {more} rows that changed less: --full"));
    }
    table
}

/// Every number of a level, with its interval; names come last, where they may be long.
fn every(view: &View<'_>, level: Level, title: &str) -> Option<Block> {
    let [a, b, by] = headings(view);
    let head = [a, b, "unit".into(), by, "interval".into(), "says".into(), "of".into()];
    let mut table = Table::new("", 0, head).with_words();
    for compared in view.comparison.at(level) {
        table.row([numbers(compared), vec![Cell::from(words::name(compared, true))]].concat());
    }
    (!table.is_empty()).then(|| Block::Folded(title.to_owned(), vec![Block::Table(table)]))
}

fn changes(view: &View<'_>) -> Option<Block> {
    let Changes { heading, shown, more } = words::changes(view, most(view, MOST_CHANGES))?;
    let change = |compared: &&Compared| {
        let (ratio, mark) = (words::ratio(compared.ratio), words::mark(compared.call));
        let interval = compared.interval.map(|_| format!(" ({})", words::interval(compared))).unwrap_or_default();
        let causes = words::causes(compared, view).map(|causes| format!("; {}", cut(view, &causes, LONGEST)));
        let (name, change) = (words::name(compared, true), words::change(compared));
        format!("{ratio} {mark} {name}: {change}{interval}{}", causes.unwrap_or_default())
    };
    let more = (more > 0).then(|| format!("and {more} more: --full"));
    let texts: Vec<String> = shown.iter().map(change).chain(more).collect();
    let inside = if texts.is_empty() { Vec::new() } else { vec![Block::List(texts)] };
    Some(Block::Folded(heading, inside))
}
