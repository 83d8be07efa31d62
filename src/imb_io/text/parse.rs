//! Parser of the text.

use std::collections::HashMap;

use serde::Serialize;

use crate::frame::units::mb_per_second;
use crate::imb_io::plan::names::find;

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
    /// A table of a benchmark that is not one of IMB-IO.
    #[error("line {line}: \"{benchmark}\" is not a benchmark of IMB-IO{}; name a file with the output of IMB-IO, whose benchmarks \
        `beff-raw imb --list` shows", .program.as_ref().map_or_else(String::new, |program| format!(", the text is of {program}")))]
    OtherBenchmark {
        /// Number of the line.
        line: usize,
        /// The benchmark.
        benchmark: String,
        /// Program that the text names.
        program: Option<String>,
    },
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
    /// Processes of each group; None if unknown.
    pub ranks: Option<u64>,
    /// `aggregate` or `non-aggregate`.
    pub mode: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Numbers by row and column; None where the row has no number.
    pub rows: Vec<Vec<Option<f64>>>,
    /// Rows for which the program printed a reason instead of times (`time-out.`), as printed.
    pub without_times: Vec<String>,
}

impl TextSection {
    pub(super) fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Size, and the time of an iteration of the slowest process in microseconds; of several groups that of the slowest. None: a group has
    /// no time.
    pub(super) fn times(&self) -> Vec<(Option<u64>, Option<f64>)> {
        let Some(time) = TIMES.iter().find_map(|name| self.column_index(name)) else { return Vec::new() };
        let size = self.column_index("#bytes");
        let mut all: Vec<(Option<u64>, Option<f64>)> = Vec::new();
        let mut known: HashMap<Option<u64>, usize> = HashMap::new();
        for row in &self.rows {
            let bytes = size.and_then(|at| row[at]).map(|bytes| bytes as u64);
            let place = *known.entry(bytes).or_insert(all.len());
            match all.get_mut(place) {
                Some((_, slowest)) => *slowest = slowest.zip(row[time]).map(|(a, b)| a.max(b)),
                None => all.push((bytes, row[time])),
            }
        }
        all
    }

    /// Adds a row of numbers, or of a size and the reason why it has none.
    ///
    /// # Errors
    /// The words do not fit the columns.
    fn add_row(&mut self, words: &[&str]) -> Result<(), ()> {
        let cells: Option<Vec<Option<f64>>> = words.iter().map(|word| parse_cell(word)).collect();
        if let Some(cells) = cells.filter(|cells| cells.len() == self.columns.len()) {
            self.rows.push(cells);
            return Ok(());
        }
        // The release prints the group, the size, also where there is no column for it, and the reason.
        let keys: Vec<Option<usize>> =
            self.column_index("Group").map(Some).into_iter().chain([self.column_index("#bytes")]).collect();
        let reason = words.get(keys.len()).ok_or(())?;
        if !reason.as_bytes().iter().take(2).all(u8::is_ascii_alphabetic) {
            return Err(());
        }
        let mut row = vec![None; self.columns.len()];
        for (column, word) in keys.iter().zip(words) {
            let number = parse_cell(word).flatten().ok_or(())?;
            if let Some(cell) = column.and_then(|at| row.get_mut(at)) {
                *cell = Some(number);
            }
        }
        self.rows.push(row);
        self.without_times.push(words.join(" "));
        Ok(())
    }
}

/// A number, or none (`nan`, `inf`, `-`). None if it is neither.
fn parse_cell(word: &str) -> Option<Option<f64>> {
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() => (value >= 0.0).then_some(Some(value)),
        Ok(_) => Some(None),
        Err(_) => word.chars().all(|c| c == '-').then_some(None),
    }
}

/// Rate in MB/s of a sample of which an iteration takes `us`; 0 for a time of 0, as the release prints it. None for a sample without
/// bytes.
pub(super) fn sample_rate(bytes: Option<u64>, us: f64) -> Option<f64> {
    let bytes = bytes.filter(|bytes| *bytes > 0)?;
    Some(mb_per_second(bytes, us / 1e6).unwrap_or(0.0))
}

/// True if these are the bytes of such a text: a line begins a table. Lines of a launcher may precede it.
#[must_use]
pub fn is_text(bytes: &[u8]) -> bool {
    let begin = &bytes[..bytes.len().min(SEARCH_BYTES)];
    memchr::memmem::find_iter(begin, SECTION).any(|at| at == 0 || begin[at - 1] == b'\n')
}

pub(super) fn parse(text: &str) -> Result<ImbText, ImbTextError> {
    let mut all = ImbText { text: text.to_owned(), ..ImbText::default() };
    let mut rows = 0;
    let mut program = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix(SECTION) {
            let name = name.trim().trim_start_matches("Multi-");
            let found = find(name).map_err(|_| ImbTextError::OtherBenchmark {
                line: index + 1,
                benchmark: name.to_owned(),
                program: program.take(),
            })?;
            let benchmark = found.name.to_owned();
            all.sections.push(TextSection { benchmark, backend: BACKEND.into(), ..TextSection::default() });
            continue;
        }
        let Some(section) = all.sections.last_mut() else {
            program = program.or_else(|| parse_program(line));
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
                let next = TextSection { columns, rows: Vec::new(), without_times: Vec::new(), ..section.clone() };
                all.sections.push(next);
            }
        } else if let Some(comment) = line.strip_prefix('#') {
            parse_comment(section, comment.trim());
        } else if !section.columns.is_empty() && is_row(&words) {
            section.add_row(&words).map_err(|()| ImbTextError::Line(index + 1, line.to_owned()))?;
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

/// True for the words of a row, which begins with a number; other lines are of the launcher or the shell.
fn is_row(words: &[&str]) -> bool {
    words.first().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()) || word.parse::<f64>().is_ok())
}

/// `#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part`.
fn parse_program(line: &str) -> Option<String> {
    let name = line.strip_prefix('#')?.trim();
    name.contains("MPI Benchmark").then(|| name.trim_end_matches('-').to_owned())
}

/// `# Date                  : Wed Mar  1 ...`.
fn parse_fact(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix('#')?.split_once(" : ")?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// Evaluates a comment of a table.
fn parse_comment(section: &mut TextSection, comment: &str) {
    // The release prints `2` or, for a grid of processes, `4; rank order (rowwise):`.
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
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
