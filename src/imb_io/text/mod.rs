//! What the released program printed, or what is printed in its format: tables of rows, read, shown and compared.

mod show;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;

use serde::Serialize;

use crate::frame::report::csv::{table, Column, Origin};
use crate::frame::report::html;
use crate::frame::report::{Level, Place, Report, Sheet};
use crate::frame::units::{count, format_size, mb_per_second};
use crate::frame::values::comparable::Unit::{MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{Comparable, Fact, Kind, Level as Depth, Quantity, NOISE_CACHED};

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
    fn at(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Size, and the time of a repetition of the slowest process in microseconds. Of several groups that of the slowest one.
    fn times(&self) -> Vec<(Option<u64>, f64)> {
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

/// Reads one.
///
/// # Errors
/// [`TextError`].
pub fn read(bytes: &[u8]) -> Result<Box<dyn Report>, TextError> {
    Ok(Box::new(parse(&String::from_utf8_lossy(bytes))?))
}

fn parse(text: &str) -> Result<ImbText, TextError> {
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

/// A line of the CSV.
struct Line<'a> {
    section: &'a TextSection,
    row: &'a [f64],
}

impl Line<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.section.at(name).map(|at| self.row[at])
    }
}

fn columns<'r>() -> [Column<Line<'r>>; 14] {
    [
        ("backend", |l| (&l.section.backend).into()),
        ("benchmark", |l| (&l.section.benchmark).into()),
        ("ranks", |l| l.section.ranks.into()),
        ("group", |l| l.number("Group").map(|n| n as u64).into()),
        ("mode", |l| (&l.section.mode).into()),
        ("sample_bytes", |l| l.number("#bytes").map(|n| n as u64).into()),
        ("repetitions", |l| l.number("#repetitions").map(|n| n as u64).into()),
        ("t_min_us", |l| l.number("t_min[usec]").into()),
        ("t_max_us", |l| l.number("t_max[usec]").or_else(|| l.number("t[usec]")).into()),
        ("t_avg_us", |l| l.number("t_avg[usec]").into()),
        ("t_ovrl_us", |l| l.number("t_ovrl[usec]").into()),
        ("t_pure_us", |l| l.number("t_pure[usec]").into()),
        ("t_cpu_us", |l| l.number("t_CPU[usec]").into()),
        ("overlap_percent", |l| l.number("overlap[%]").into()),
    ]
}

impl ImbText {
    fn fact(&self, name: &str) -> &str {
        self.facts.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        let lines = self.sections.iter().flat_map(|section| section.rows.iter().map(move |row| Line { section, row }));
        Ok(table(&Origin::of_words("", self.fact("Date"), "", self.fact("MPI")), &columns(), lines)?)
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Report for ImbText {
    fn sheet(&self, level: Level, place: &Place) -> Sheet {
        show::sheet(self, level, place)
    }

    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>> {
        match word {
            "json" => Some(self.json()),
            "csv" => Some(self.csv()),
            "imb" => Some(Ok(self.text.clone().into_bytes())),
            _ => None,
        }
    }

    fn page(&self) -> html::Run {
        show::page(self)
    }

    fn records(&self, most_bytes: usize) -> Option<Vec<u8>> {
        html::raw::compressed(most_bytes, |out| Ok(serde_json::to_writer(out, self)?))
    }

    /// Rows by the names that results of this program have, so that both can be compared.
    fn comparable(&self) -> Comparable {
        let of_section = |section: &TextSection| {
            let row = format!("{}, {}", section.benchmark, section.mode);
            let (ranks, backend) = (count(section.ranks, "rank"), section.backend.clone());
            let quantity = move |(bytes, us): (Option<u64>, f64)| {
                let rate = mb_per_second(bytes.unwrap_or(0), us / 1e6).filter(|rate| *rate > 0.0);
                let (unit, value) = rate.map_or((Microseconds, us), |rate| (MegabytesPerSecond, rate));
                let size = bytes.map_or_else(|| "files".to_owned(), format_size);
                let quantity = Quantity::new(Depth::Detail, row.clone(), format!("{size}, {ranks}"), unit, value);
                quantity.of(&backend, 0).noisy(NOISE_CACHED)
            };
            section.times().into_iter().filter(|(_, us)| *us > 0.0).map(quantity).collect::<Vec<_>>()
        };
        Comparable {
            identity: self.text.clone(),
            started_utc: self.fact("Date").to_owned(),
            troubles: Vec::new(),
            is_corrupt: false,
            facts: self.facts.iter().map(|(key, value)| Fact::new(Kind::SetUp, key.clone(), value.clone())).collect(),
            quantities: self.sections.iter().flat_map(of_section).collect(),
        }
    }
}
