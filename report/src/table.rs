//! Tables: names on the left, then numbers, then perhaps words. Columns are as wide as what stands in them.

use super::marks::{letters, Legend, Mark};
use super::sheet::Room;
use super::text::{fit, fit_known, wrap};
use crate::plain;
use crate::words::NONE;

/// Steps of shading.
const SHADES: f64 = 9.0;
/// Columns of a rate in full.
const RATE: usize = 9;
/// Blanks between columns, and before the first.
const GAP: usize = 2;
/// Heading of a column of nothing but this: what stands on both sides of it is kept together where not all fits.
pub const BAR: &str = "|";
/// Words behind the last number have at least so many columns before they are put below each other.
const WORDS: usize = 30;

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub(crate) text: String,
    pub(crate) marks: String,
    pub(crate) shade: Option<u8>,
    pub(crate) is_strong: bool,
    pub(crate) said: Option<String>,
    noted: Vec<Mark>,
}

impl Cell {
    /// A rate in 1e6 bytes per second with as many digits as are known, and its marks; the first mark where there is no number.
    #[must_use]
    pub fn rate(mb_per_second: Option<f64>, known_digits: Option<u32>, marks: &[Mark]) -> Self {
        let shown = |value| known_digits.map_or_else(|| fit(value, RATE), |digits| fit_known(value, digits, RATE));
        Self::number(mb_per_second.map(shown), marks)
    }

    /// A number as it is, and its marks; the mark of what is missing where there is none.
    #[must_use]
    pub fn number(text: Option<String>, marks: &[Mark]) -> Self {
        let is_stand_in = |mark: &&Mark| matches!(mark, Mark::NotMeasured | Mark::NotRun);
        let others: Vec<Mark> = marks.iter().filter(|m| !is_stand_in(m)).copied().collect();
        let stand_in = marks.iter().find(is_stand_in).map_or_else(|| NONE.to_owned(), |mark| mark.letter().to_string());
        let noted = if text.is_some() { others.clone() } else { marks.to_vec() };
        Self { text: text.unwrap_or(stand_in), marks: letters(&others), noted, ..Self::default() }
    }

    /// With letters behind the number, where marks stand.
    #[must_use]
    pub fn beside(mut self, letters: &str) -> Self {
        self.marks.push_str(letters);
        self
    }

    /// The darker, the nearer `share` is to 1.
    #[must_use]
    pub fn shaded(mut self, share: f64) -> Self {
        self.shade = share.is_finite().then(|| (share.clamp(0.0, 1.0) * SHADES).round() as u8);
        self
    }

    /// The one to find first.
    #[must_use]
    pub fn strong(mut self, is_strong: bool) -> Self {
        self.is_strong = is_strong;
        self
    }

    /// With more words for a pointer.
    #[must_use]
    pub fn said(mut self, text: impl Into<String>) -> Self {
        self.said = Some(text.into());
        self
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(crate) caption: String,
    pub(crate) head: Vec<String>,
    pub(crate) names: usize,
    pub(crate) has_words: bool,
    /// A row without cells separates groups.
    pub(crate) rows: Vec<Vec<Cell>>,
    pub(crate) notes: Vec<String>,
    most: Option<[usize; 4]>,
    legend: Legend,
}

impl Table {
    /// An empty one whose first `names` columns are names. A line break in a heading is one where there is no room for it in a line.
    pub fn new<H: Into<String>>(caption: impl Into<String>, names: usize, head: impl IntoIterator<Item = H>) -> Self {
        Self { caption: caption.into(), head: head.into_iter().map(Into::into).collect(), names, ..Self::default() }
    }

    /// The last column holds words.
    #[must_use]
    pub fn with_words(mut self) -> Self {
        self.has_words = true;
        self
    }

    /// With a sentence below it.
    #[must_use]
    pub fn noted(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// With these rows.
    #[must_use]
    pub fn with<C: Into<Cell>, R: IntoIterator<Item = C>>(mut self, rows: impl IntoIterator<Item = R>) -> Self {
        rows.into_iter().for_each(|cells| self.row(cells));
        self
    }

    /// Appends a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        cells.iter().for_each(|cell| self.legend.note_marks(&cell.noted));
        self.rows.push(cells);
    }

    /// Separates the rows above from those below.
    pub fn gap(&mut self) {
        if self.rows.last().is_some_and(|row| !row.is_empty()) {
            self.rows.push(Vec::new());
        }
    }

    /// Explains a mark that words use.
    pub fn note_marks(&mut self, marks: &[Mark]) {
        self.legend.note_marks(marks);
    }

    /// With so many rows on a screen at most, by the room there is; the others are counted.
    #[must_use]
    pub fn at_most(mut self, rows: [usize; 4]) -> Self {
        self.most = Some(rows);
        self
    }

    /// Rows that a screen has room for.
    pub fn most_rows(&self, room: Room) -> usize {
        self.most.map_or(usize::MAX, |most| most[room as usize])
    }

    /// The first rows, and no more of the legend than they need.
    pub fn first(&self, rows: usize) -> Self {
        let mut first = Self { rows: Vec::new(), legend: Legend::default(), ..self.clone() };
        self.rows.iter().take(rows).for_each(|row| first.row(row.iter().cloned()));
        first
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What its marks mean; None: there are none.
    #[must_use]
    pub fn marks(&self) -> Option<String> {
        self.legend.text()
    }

    pub(crate) fn is_left(&self, column: usize) -> bool {
        column < self.names || (self.has_words && column + 1 == self.head.len())
    }

    /// The lines of the table, no wider than `width` as long as its names and one number fit: what has no room beside each other
    /// continues below, with the names again. The first of each part are headings: how many is said with them.
    pub fn lines(&self, width: usize) -> Vec<(usize, Vec<String>)> {
        let longest = 2 * width / 5;
        let numbers: Vec<usize> = (0..self.head.len() - usize::from(self.has_words && !self.head.is_empty())).collect();
        let layout = match Layout::new(self, longest, 1) {
            loose if loose.total(&numbers) <= width => loose,
            // Marks directly behind their numbers: perhaps it has room then.
            _ => Layout::new(self, longest, 0),
        };
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let names: Vec<usize> = (0..self.names.min(self.head.len())).collect();
        let mut part = names.clone();
        let all: Vec<usize> = (0..self.head.len()).collect();
        let is_wide = layout.total(&all) > width;
        for column in names.len()..self.head.len() {
            if is_wide && self.head[column] == BAR {
                parts.push(std::mem::replace(&mut part, names.clone()));
                continue;
            }
            let is_words = self.has_words && column + 1 == self.head.len();
            let own = if is_words { layout.width(column).min(WORDS) } else { layout.width(column) };
            if part.len() > names.len() && layout.total(&part) + GAP + own > width {
                parts.push(std::mem::replace(&mut part, names.clone()));
            }
            part.push(column);
        }
        parts.push(part);
        parts.into_iter().map(|part| layout.part(&part, width)).collect()
    }
}

/// The texts of a table with the widths of its columns.
struct Layout<'t> {
    table: &'t Table,
    /// Longest text in a cell that is not of words, in characters.
    longest: usize,
    /// Blanks between a number and its marks.
    gap: usize,
    /// Characters before and behind the decimal point, and of the marks, of each column.
    widths: Vec<[usize; 3]>,
    head: Vec<Vec<String>>,
}

/// As a terminal shows it, no longer than `longest`.
fn cut(text: &str, longest: usize) -> String {
    const DOTS: &str = " ...";
    let text = plain::line(text);
    if text.chars().count() <= longest {
        return text.into_owned();
    }
    text.chars().take(longest.saturating_sub(DOTS.len())).chain(DOTS.chars()).collect()
}

/// Characters behind the point, the point included; None: it is no number.
fn behind_point(text: &str) -> Option<usize> {
    text.parse::<f64>().ok()?;
    Some(text.find('.').map_or(0, |point| text.len() - point))
}

impl<'t> Layout<'t> {
    fn new(table: &'t Table, longest: usize, gap: usize) -> Self {
        let length = |text: &str| cut(text, longest).chars().count();
        let head: Vec<Vec<String>> =
            table.head.iter().map(|h| h.lines().map(|line| cut(line, longest)).collect()).collect();
        let measure = |column: usize| {
            let cells = || table.rows.iter().filter_map(move |row| row.get(column));
            let behind = cells().filter_map(|cell| behind_point(&cell.text)).max().unwrap_or(0);
            let marks = cells().map(|cell| cell.marks.len()).max().unwrap_or(0);
            let of_head = head[column].iter().map(|line| line.chars().count()).max().unwrap_or(0);
            // A heading may stand above the marks too.
            let of_head = of_head.saturating_sub(if marks > 0 { marks + gap } else { 0 });
            let of_cell = |cell: &Cell| match behind_point(&cell.text) {
                Some(own) if !table.is_left(column) => length(&cell.text) - own + behind,
                _ => length(&cell.text),
            };
            [cells().map(of_cell).max().unwrap_or(0).max(of_head), behind, marks]
        };
        Self { table, longest, gap, widths: (0..table.head.len()).map(measure).collect(), head }
    }

    fn width(&self, column: usize) -> usize {
        let [all, _, marks] = self.widths[column];
        all + if marks > 0 { marks + self.gap } else { 0 }
    }

    fn total(&self, columns: &[usize]) -> usize {
        columns.iter().map(|column| GAP + self.width(*column)).sum()
    }

    fn heading(&self, column: usize, text: &str) -> String {
        let [width, _, _] = self.widths[column];
        if !self.table.is_left(column) && self.head[column].iter().any(|line| line.chars().count() > width) {
            return format!("{text:>all$}", all = self.width(column));
        }
        self.align(column, text, "")
    }

    fn align(&self, column: usize, text: &str, marks: &str) -> String {
        let [width, behind, most_marks] = self.widths[column];
        let text = cut(text, self.longest);
        if self.table.is_left(column) {
            return format!("{text:<width$}");
        }
        let free = behind_point(&text).map_or(0, |own| behind - own);
        let number = format!("{:>width$}", format!("{text}{:free$}", ""));
        if most_marks > 0 {
            format!("{number}{:gap$}{marks:<most_marks$}", "", gap = self.gap)
        } else {
            number
        }
    }

    /// Headings and rows of these columns. Words at the end are wrapped.
    fn part(&self, columns: &[usize], width: usize) -> (usize, Vec<String>) {
        let gap = " ".repeat(GAP);
        let high = columns.iter().map(|column| self.head[*column].len()).max().unwrap_or(0);
        let heading = |line: usize| {
            let text = |column: &usize| {
                let own = &self.head[*column];
                (line + own.len()).checked_sub(high).and_then(|line| own.get(line)).map_or("", String::as_str)
            };
            let cells: String =
                columns.iter().map(|column| format!("{gap}{}", self.heading(*column, text(column)))).collect();
            cells.trim_end().to_owned()
        };
        let mut lines: Vec<String> = (0..high).map(heading).collect();
        if lines.iter().all(String::is_empty) {
            lines.clear();
        }
        let headings = lines.len();
        let last = columns.last().copied().filter(|last| self.table.has_words && last + 1 == self.table.head.len());
        let before: Vec<usize> = columns.iter().copied().filter(|column| Some(*column) != last).collect();
        let indent = self.total(&before) + GAP;
        let mut above: Vec<String> = Vec::new();
        let rows = self.table.rows.len() - self.table.rows.iter().rev().take_while(|row| row.is_empty()).count();
        for row in &self.table.rows[..rows] {
            let names: Vec<String> = row.iter().take(self.table.names).map(|cell| cell.text.clone()).collect();
            let known = names.iter().zip(&above).take_while(|(a, b)| a == b).count().min(names.len().saturating_sub(1));
            above = names;
            let empty = Cell::default();
            let cell = |column: usize| match row.get(column) {
                Some(_) if column < known => &empty,
                Some(cell) => cell,
                None => &empty,
            };
            let cells: String = before
                .iter()
                .map(|column| format!("{gap}{}", self.align(*column, &cell(*column).text, &cell(*column).marks)))
                .collect();
            let words =
                last.map(|last| wrap(&cell(last).text, width.saturating_sub(indent).max(1))).unwrap_or_default();
            let mut words = words.into_iter();
            lines.push(format!("{cells}{gap}{}", words.next().unwrap_or_default()).trim_end().to_owned());
            lines.extend(words.map(|line| format!("{:indent$}{line}", "")));
        }
        (headings, lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(table: &Table, width: usize) -> String {
        table.lines(width).into_iter().flat_map(|(_, lines)| lines).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let mut table = Table::new("", 2, ["access", "type", "MB/s", "share", ""]).with_words();
        table.row([
            Cell::from("write"),
            "scatter".into(),
            Cell::rate(Some(502.25), Some(4), &[Mark::Cache]),
            "7.3 %".into(),
        ]);
        table.row([
            Cell::from("write"),
            "shared".into(),
            Cell::rate(Some(1003.0), Some(2), &[]),
            "63 %".into(),
            "words that are more than there is room for".into(),
        ]);
        table.gap();
        table.row([Cell::from("read"), "shared".into(), Cell::rate(None, None, &[Mark::NotRun]), "-".into()]);
        let expected = "  access  type       MB/s    share\n  write   scatter   502.2 c  7.3 %\n          shared   1000       63 %  words that are more than\n                                    there is room for\n\n  read    shared        x        -";
        assert_eq!(all(&table, 60), expected);
        assert_eq!(table.marks().unwrap(), "c more than 10 % read from cache, not from storage,  x not run");
    }

    #[test]
    fn what_has_no_room_continues_below() {
        let table = Table::new("", 1, ["name", "a long\nheading", "second", "third"]).with([["x", "1", "2", "3"]]);
        let parts = table.lines(26);
        assert_eq!(parts.len(), 2);
        assert_eq!(
            parts[0],
            (2, vec!["         a long".into(), "  name  heading  second".into(), "  x           1       2".into()])
        );
        assert_eq!(parts[1], (1, vec!["  name  third".into(), "  x         3".into()]));
    }

    #[test]
    fn nothing_is_obeyed_by_a_terminal() {
        let table = Table::new("", 1, ["a\u{1b}"]).with([["\u{1b}[2J"]]);
        assert!(!all(&table, 40).contains('\u{1b}'));
    }
}
