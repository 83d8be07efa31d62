//! Summaries (PREFIX.sum) that the program of December 2001 wrote, or that are written in its format: read, shown and compared. What
//! they do not tell is not made up.

mod show;

use std::io;

use serde::Serialize;

use crate::b_eff_io::plan::patterns::type_name;
use crate::frame::records::Access;
use crate::frame::report::csv::{table, Column, Origin};
use crate::frame::report::html;
use crate::frame::report::{Level, Place, Report, Sheet};
use crate::frame::values::comparable::Unit::MegabytesPerSecond;
use crate::frame::values::comparable::{Comparable, Fact, Kind, Level as Depth, Quantity};

/// What such a file begins with.
const BEGIN: &str = "b_eff_io.c, Revision ";
/// The library is not told; that program knew nothing but MPI-IO.
const BACKEND: &str = "mpiio";
/// Partitions, and rows of each: more is no file of that program.
const MOST_ROWS: usize = 100_000;

/// Why a summary could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OldError {
    /// A line with a place for numbers has something else.
    #[error("line {0} of the summary has something else than numbers: \"{1}\"")]
    Line(usize, String),
    /// Too much of it.
    #[error("the summary has more than {MOST_ROWS} rows of numbers: no program wrote that")]
    TooLong,
    /// It was cut.
    #[error("the summary has no rows of numbers: it was cut, or the run that wrote it was")]
    Empty,
}

/// A summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OldSummary {
    /// Revision of the program, as it names itself.
    pub revision: String,
    /// Options, as it prints them.
    pub command: String,
    /// Beginning of the names of its files.
    pub prefix: String,
    /// System, host, release and version of the kernel, machine.
    pub system: Vec<(String, String)>,
    /// When, in its own words.
    pub date: String,
    /// Memory of a process in 2^20 bytes.
    pub memory_mib: Option<f64>,
    /// Numbers of processes.
    pub partitions: Vec<OldPartition>,
    /// All of it as it was.
    #[serde(skip)]
    pub text: String,
}

/// What was measured on one number of processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OldPartition {
    /// Processes.
    pub ranks: u64,
    /// Rows of its table, totals last in each access method.
    pub rows: Vec<OldRow>,
    /// Weighted averages of write, rewrite and read in 1e6 bytes/s.
    pub averages_mb_per_second: [Option<f64>; 3],
    /// b_eff_io in 1e6 bytes/s.
    pub b_eff_io_mb_per_second: Option<f64>,
    /// Scheduled time, as printed.
    pub scheduled: String,
    /// What it says of the validity; None: nothing.
    pub valid: Option<bool>,
    /// Its criteria, as printed.
    pub criteria: Vec<String>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OldRow {
    /// Access method.
    pub access: Access,
    /// Chunk size; None: the total of the access method.
    pub chunk_bytes: Option<u64>,
    /// Of types 0 to 4 in 1e6 bytes/s; None: no number there.
    pub mb_per_second: [Option<f64>; 5],
}

/// True if these are the bytes of such a file.
#[must_use]
pub fn is_summary(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGIN.as_bytes())
}

/// Reads one.
///
/// # Errors
/// [`OldError`].
pub fn read(bytes: &[u8]) -> Result<Box<dyn Report>, OldError> {
    Ok(Box::new(parse(&String::from_utf8_lossy(bytes))?))
}

fn access(word: &str) -> Option<Access> {
    Access::ALL.into_iter().find(|access| access.name() == word)
}

/// A number, or `-` and the like for none.
fn number(word: &str) -> Option<Option<f64>> {
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Some(Some(value)),
        Ok(_) => Some(None),
        Err(_) => word.chars().all(|c| c == '-').then_some(None),
    }
}

fn parse(text: &str) -> Result<OldSummary, OldError> {
    let mut summary = OldSummary { text: text.to_owned(), ..OldSummary::default() };
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some((ranks, row)) = row(&words).map_err(|()| OldError::Line(index + 1, line.to_owned()))? {
            rows += 1;
            if rows > MOST_ROWS {
                return Err(OldError::TooLong);
            }
            let known =
                summary.partitions.last().is_some_and(|p| p.ranks == ranks && p.b_eff_io_mb_per_second.is_none());
            if !known {
                summary.partitions.push(OldPartition { ranks, ..OldPartition::default() });
            }
            if let Some(partition) = summary.partitions.last_mut() {
                partition.rows.push(row);
            }
        } else if !line.starts_with('#') {
            field(&mut summary, line.trim(), &words);
        }
    }
    if rows == 0 {
        return Err(OldError::Empty);
    }
    Ok(summary)
}

/// `4 PEs 1 1024 write v v v v v` or `4 PEs total-write v v v v v`; an error where one of these has no numbers.
fn row(words: &[&str]) -> Result<Option<(u64, OldRow)>, ()> {
    let [ranks, "PEs", rest @ ..] = words else { return Ok(None) };
    let Ok(ranks) = ranks.parse::<u64>() else { return Ok(None) };
    let (chunk, access, values) = match rest {
        [total, values @ ..] if total.starts_with("total-") => (None, access(&total[6..]).ok_or(())?, values),
        [_, chunk, word, values @ ..] => (Some(chunk.parse().map_err(|_| ())?), access(word).ok_or(())?, values),
        _ => return Err(()),
    };
    let values: Vec<Option<f64>> = values.iter().map(|word| number(word)).collect::<Option<_>>().ok_or(())?;
    let mb_per_second: [Option<f64>; 5] = values.try_into().map_err(|_| ())?;
    Ok(Some((ranks, OldRow { access, chunk_bytes: chunk, mb_per_second })))
}

/// Everything that is no row.
fn field(summary: &mut OldSummary, line: &str, words: &[&str]) {
    if let Some(revision) = line.strip_prefix(BEGIN) {
        revision.clone_into(&mut summary.revision);
    } else if line.starts_with("MEMORY_PER_PROCESSOR") {
        summary.memory_mib = words.iter().find_map(|word| word.parse().ok());
    } else if line.starts_with("-N ") {
        line.clone_into(&mut summary.command);
    } else if let (true, Some((_, prefix))) = (line.starts_with("PATH="), line.split_once("PREFIX=")) {
        prefix.clone_into(&mut summary.prefix);
    } else if let Some(date) = line.strip_prefix("Date of measurement:") {
        date.trim().clone_into(&mut summary.date);
    } else if let (true, Some((name, value))) = (summary.partitions.is_empty(), line.split_once(" : ")) {
        summary.system.push((name.trim().to_owned(), value.trim().to_owned()));
    } else if let Some(partition) = summary.partitions.last_mut() {
        of_partition(partition, line, words);
    }
}

fn of_partition(partition: &mut OldPartition, line: &str, words: &[&str]) {
    let behind =
        |sign: &str| words.iter().position(|w| *w == sign).and_then(|at| words.get(at + 1)?.parse::<f64>().ok());
    if line.starts_with("weighted average bandwidth for ") {
        let of = words.get(4).and_then(|word| access(word));
        if let Some(at) = of.and_then(|access| Access::ALL.iter().position(|known| *known == access)) {
            partition.averages_mb_per_second[at] = behind(":");
        }
    } else if line.starts_with("b_eff_io of these measurements") {
        partition.b_eff_io_mb_per_second = behind("=");
        let (_, scheduled) = line.split_once("scheduled time=").unwrap_or_default();
        scheduled.clone_into(&mut partition.scheduled);
    } else if partition.b_eff_io_mb_per_second.is_some() && partition.valid.is_none() {
        if line.starts_with("NOT VALID") {
            partition.valid = Some(false);
        } else if line.starts_with("VALID") {
            partition.valid = Some(true);
        }
    } else if line.starts_with("criterion ") {
        partition.criteria.push(line.to_owned());
    }
}

/// A line of the CSV.
struct Line<'a> {
    partition: &'a OldPartition,
    row: &'a OldRow,
    pattern_type: u8,
}

fn columns<'r>() -> [Column<Line<'r>>; 7] {
    [
        ("backend", |_| BACKEND.into()),
        ("ranks", |l| l.partition.ranks.into()),
        ("access", |l| l.row.access.name().into()),
        ("pattern_type", |l| l.pattern_type.into()),
        ("type_name", |l| type_name(l.pattern_type).into()),
        ("chunk_bytes", |l| l.row.chunk_bytes.into()),
        ("mb_per_second", |l| l.row.mb_per_second[usize::from(l.pattern_type)].into()),
    ]
}

impl OldSummary {
    fn fact(&self, name: &str) -> &str {
        self.system.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        let lines = self.partitions.iter().flat_map(|partition| {
            let of_row = move |row| (0..5).map(move |pattern_type| Line { partition, row, pattern_type });
            partition.rows.iter().flat_map(of_row)
        });
        Ok(table(&Origin::of_words(&self.prefix, &self.date, self.fact("hostname"), ""), &columns(), lines)?)
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Report for OldSummary {
    fn sheet(&self, _level: Level, place: &Place) -> Sheet {
        show::sheet(self, place)
    }

    fn format(&self, word: &str) -> Option<io::Result<Vec<u8>>> {
        match word {
            "json" => Some(self.json()),
            "csv" => Some(self.csv()),
            "sum" => Some(Ok(self.text.clone().into_bytes())),
            _ => None,
        }
    }

    fn page(&self) -> html::Run {
        show::page(self)
    }

    fn records(&self, most_bytes: usize) -> Option<Vec<u8>> {
        html::raw::compressed(most_bytes, |out| Ok(serde_json::to_writer(out, self)?))
    }

    fn comparable(&self) -> Comparable {
        let mut quantities = Vec::new();
        let best = self.partitions.iter().filter_map(|p| p.b_eff_io_mb_per_second).reduce(f64::max);
        quantities.extend(best.map(|value| {
            Quantity::new(Depth::Value, "b_eff_io (release 2.1)", "", MegabytesPerSecond, value).of(BACKEND, 0)
        }));
        for partition in &self.partitions {
            let of = |depth, access: Access, column: String, value: Option<f64>| {
                let quantity = Quantity::new(depth, access.name(), column, MegabytesPerSecond, value?);
                Some(quantity.of(BACKEND, partition.ranks))
            };
            for (access, average) in Access::ALL.into_iter().zip(partition.averages_mb_per_second) {
                quantities.extend(of(Depth::Group, access, "mean".into(), average));
            }
            for row in &partition.rows {
                for (pattern_type, value) in (0..5).zip(row.mb_per_second) {
                    let (depth, column) = match row.chunk_bytes {
                        None => (Depth::Group, type_name(pattern_type).to_owned()),
                        Some(bytes) => (Depth::Detail, format!("{bytes} bytes, {}", type_name(pattern_type))),
                    };
                    quantities.extend(of(depth, row.access, column, value));
                }
            }
        }
        let ranks: Vec<String> = self.partitions.iter().map(|p| p.ranks.to_string()).collect();
        let mut facts = vec![
            Fact::new(Kind::Definition, "release", "2.1"),
            Fact::new(Kind::Definition, "partitions (ranks)", ranks.join(", ")),
            Fact::new(Kind::SetUp, "options", self.command.clone()),
        ];
        facts.extend(self.system.iter().map(|(key, value)| Fact::new(Kind::SetUp, key.clone(), value.clone())));
        Comparable {
            identity: format!("{} {} {}", self.date, self.command, self.prefix),
            started_utc: self.date.clone(),
            troubles: Vec::new(),
            is_corrupt: false,
            facts,
            quantities: quantities
                .into_iter()
                .map(|q| q.noisy(crate::frame::values::comparable::NOISE_CACHED))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
