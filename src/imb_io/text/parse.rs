//! Parser of the text.

use std::collections::HashMap;

use serde::Serialize;

const SECTION: &str = "# Benchmarking ";
/// Bytes of a file that are searched for the first table.
const SEARCH_BYTES: usize = 1 << 20;
/// Maximum number of rows; no run prints more.
const MAX_ROWS: usize = 1_000_000;
/// The released program uses MPI-IO only.
const BACKEND: &str = "mpiio";
/// Columns with the time of an iteration of the slowest process; the first that a table has is used.
const TIMES: [&str; 4] = ["t_max[usec]", "t[usec]", "t_ovrl[usec]", "t_avg[usec]"];

/// Error of parsing such a text.
#[derive(Debug, thiserror::Error)]
pub enum ImbTextError {
    /// A row has more or fewer numbers than its table has columns.
    #[error("line {0} does not have the columns of its table: \"{1}\"")]
    Line(usize, String),
    /// Too many rows.
    #[error("more than {MAX_ROWS} rows: no run prints that many")]
    TooLong,
    /// No rows.
    #[error("no row of numbers in it: it was cut, or the run that printed it was")]
    Empty,
}

/// A parsed text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ImbText {
    /// Names and values above the tables: date, system, MPI.
    pub facts: Vec<(String, String)>,
    /// Tables, in the order of the text.
    pub sections: Vec<TextSection>,
    /// The unchanged text.
    #[serde(skip)]
    pub text: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TextSection {
    /// Benchmark.
    pub benchmark: String,
    /// Backend; the released program has one.
    pub backend: String,
    /// Processes of each group; 0 if unknown.
    pub ranks: u64,
    /// `aggregate` or `non-aggregate`.
    pub mode: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Numbers by row and column.
    pub rows: Vec<Vec<f64>>,
}

impl TextSection {
    pub(super) fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Size, and the time of an iteration of the slowest process in microseconds; of several groups that of the slowest.
    pub(super) fn times(&self) -> Vec<(Option<u64>, f64)> {
        let Some(time) = TIMES.iter().find_map(|name| self.column_index(name)) else { return Vec::new() };
        let size = self.column_index("#bytes");
        let mut all: Vec<(Option<u64>, f64)> = Vec::new();
        let mut known: HashMap<Option<u64>, usize> = HashMap::new();
        for row in &self.rows {
            let bytes = size.map(|at| row[at] as u64);
            let place = *known.entry(bytes).or_insert(all.len());
            match all.get_mut(place) {
                Some((_, slowest)) => *slowest = slowest.max(row[time]),
                None => all.push((bytes, row[time])),
            }
        }
        all
    }
}

/// True if these are the bytes of such a text.
#[must_use]
pub fn is_text(bytes: &[u8]) -> bool {
    let begin = &bytes[..bytes.len().min(SEARCH_BYTES)];
    begin.starts_with(b"#") && memchr::memmem::find(begin, SECTION.as_bytes()).is_some()
}

pub(super) fn parse(text: &str) -> Result<ImbText, ImbTextError> {
    let mut all = ImbText { text: text.to_owned(), ..ImbText::default() };
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix(SECTION) {
            let benchmark = name.trim().trim_start_matches("Multi-").to_owned();
            all.sections.push(TextSection { benchmark, backend: BACKEND.into(), ..TextSection::default() });
            continue;
        }
        let Some(section) = all.sections.last_mut() else {
            all.facts.extend(parse_fact(line));
            continue;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.contains(&"#repetitions") {
            let columns: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            if section.rows.is_empty() {
                section.columns = columns;
            } else if section.columns != columns {
                // Another table of the same benchmark.
                let next = TextSection { columns, rows: Vec::new(), ..section.clone() };
                all.sections.push(next);
            }
        } else if let Some(comment) = line.strip_prefix('#') {
            parse_comment(section, comment.trim());
        } else if !words.is_empty() && !section.columns.is_empty() {
            let numbers: Option<Vec<f64>> = words.iter().map(|word| word.parse().ok()).collect();
            let is_row = |numbers: &Vec<f64>| numbers.len() == section.columns.len();
            let sound = |n: &f64| n.is_finite() && *n >= 0.0;
            match numbers.filter(|numbers| is_row(numbers) && numbers.iter().all(sound)) {
                Some(numbers) => section.rows.push(numbers),
                None => return Err(ImbTextError::Line(index + 1, line.to_owned())),
            }
            rows += 1;
            if rows > MAX_ROWS {
                return Err(ImbTextError::TooLong);
            }
        }
    }
    all.sections.retain(|section| !section.rows.is_empty());
    // Benchmarks with a single mode do not print it.
    for section in all.sections.iter_mut().filter(|section| section.mode.is_empty()) {
        section.mode = "aggregate".into();
    }
    if rows == 0 {
        return Err(ImbTextError::Empty);
    }
    Ok(all)
}

/// `# Date                  : Wed Mar  1 ...`.
fn parse_fact(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix('#')?.split_once(" : ")?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// Evaluates a comment of a table.
fn parse_comment(section: &mut TextSection, comment: &str) {
    let number = |text: &str| text.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0);
    if let Some(ranks) = comment.strip_prefix("#processes =") {
        section.ranks = number(ranks);
    } else if let Some((_, of_groups)) = comment.split_once("groups of ") {
        section.ranks = number(of_groups);
    } else if let Some(backend) = comment.strip_prefix("backend ") {
        backend.trim().clone_into(&mut section.backend);
    } else if let Some(mode) = comment.strip_prefix("MODE:") {
        section.mode = mode.trim().to_lowercase();
    }
}
