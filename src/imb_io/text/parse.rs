//! The text taken apart.

use std::collections::HashMap;

use serde::Serialize;

/// What a table of it begins with.
const SECTION: &str = "# Benchmarking ";
/// How far into a file the first table is looked for.
const LOOK_BYTES: usize = 1 << 20;
/// Rows at most: more no run prints.
const MOST_ROWS: usize = 1_000_000;
/// That program knew nothing but MPI-IO.
const BACKEND: &str = "mpiio";
/// The time that a repetition of the slowest process took: the first of these columns that a table has.
const TIMES: [&str; 4] = ["t_max[usec]", "t[usec]", "t_ovrl[usec]", "t_avg[usec]"];

/// Why such a text could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A row has more or fewer numbers than its table has columns.
    #[error("line {0} does not have the columns of its table: \"{1}\"")]
    Line(usize, String),
    /// Too much of it.
    #[error("more than {MOST_ROWS} rows: no run printed that")]
    TooLong,
    /// It was cut.
    #[error("no row of numbers in it: it was cut, or the run that printed it was")]
    Empty,
}

/// A text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ImbText {
    /// Names and values above the tables: date, system, MPI.
    pub facts: Vec<(String, String)>,
    /// Tables, in the order of the text.
    pub sections: Vec<TextSection>,
    /// All of it as it was.
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
    /// Processes of each group; 0: not told.
    pub ranks: u64,
    /// `aggregate` or `non-aggregate`.
    pub mode: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Their numbers.
    pub rows: Vec<Vec<f64>>,
}

impl TextSection {
    pub(super) fn at(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Size, and the time of a repetition of the slowest process in microseconds. Of several groups that of the slowest one.
    pub(super) fn times(&self) -> Vec<(Option<u64>, f64)> {
        let Some(time) = TIMES.iter().find_map(|name| self.at(name)) else { return Vec::new() };
        let size = self.at("#bytes");
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
    let begin = &bytes[..bytes.len().min(LOOK_BYTES)];
    begin.starts_with(b"#") && memchr::memmem::find(begin, SECTION.as_bytes()).is_some()
}

/// Takes a text apart.
pub(super) fn parse(text: &str) -> Result<ImbText, TextError> {
    let mut all = ImbText { text: text.to_owned(), ..ImbText::default() };
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix(SECTION) {
            let benchmark = name.trim().trim_start_matches("Multi-").to_owned();
            all.sections.push(TextSection { benchmark, backend: BACKEND.into(), ..TextSection::default() });
            continue;
        }
        let Some(section) = all.sections.last_mut() else {
            all.facts.extend(fact(line));
            continue;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.contains(&"#repetitions") {
            let columns: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            if section.rows.is_empty() {
                section.columns = columns;
            } else if section.columns != columns {
                // Another table of the same benchmark: rows belong to the columns above them.
                let next = TextSection { columns, rows: Vec::new(), ..section.clone() };
                all.sections.push(next);
            }
        } else if let Some(comment) = line.strip_prefix('#') {
            about(section, comment.trim());
        } else if !words.is_empty() && !section.columns.is_empty() {
            let numbers: Option<Vec<f64>> = words.iter().map(|word| word.parse().ok()).collect();
            let is_row = |numbers: &Vec<f64>| numbers.len() == section.columns.len();
            let sound = |n: &f64| n.is_finite() && *n >= 0.0;
            match numbers.filter(|numbers| is_row(numbers) && numbers.iter().all(sound)) {
                Some(numbers) => section.rows.push(numbers),
                None => return Err(TextError::Line(index + 1, line.to_owned())),
            }
            rows += 1;
            if rows > MOST_ROWS {
                return Err(TextError::TooLong);
            }
        }
    }
    all.sections.retain(|section| !section.rows.is_empty());
    // What has one mode does not name it.
    for section in all.sections.iter_mut().filter(|section| section.mode.is_empty()) {
        section.mode = "aggregate".into();
    }
    if rows == 0 {
        return Err(TextError::Empty);
    }
    Ok(all)
}

/// `# Date                  : Wed Mar  1 ...`.
fn fact(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix('#')?.split_once(" : ")?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// A comment of a table. Behind the mode of one comes another table of the same benchmark.
fn about(section: &mut TextSection, comment: &str) {
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
