//! Parser of the text of a summary.

use serde::Serialize;

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;

/// First characters of such a file.
pub(super) const MAGIC: &str = "b_eff_io.c, Revision ";
pub(super) const MAX_ROWS: usize = 100_000;

pub(super) const TYPES: [PatternType; 5] = {
    use PatternType::{Scatter, Segmented, SegmentedCollective, Separate, Shared};
    [Scatter, Shared, Separate, Segmented, SegmentedCollective]
};

/// Why a summary could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LegacySummaryError {
    /// A line of numbers contains other text.
    #[error("line {0} of the summary contains something other than numbers: \"{1}\"")]
    Line(usize, String),
    /// Too many rows.
    #[error("the summary has more than {MAX_ROWS} rows of numbers")]
    TooLong,
    /// No rows: the file is truncated.
    #[error("the summary has no rows of numbers: it, or the run that wrote it, was cut short")]
    Empty,
}

/// A summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LegacySummary {
    /// Revision of the program, as printed.
    pub revision: String,
    /// Options, as printed.
    pub command: String,
    /// Prefix of the names of its files.
    pub prefix: String,
    /// System, host, release and version of the kernel, machine.
    pub system: Vec<(String, String)>,
    /// Date, as printed.
    pub date: String,
    /// Memory of a process in 2^20 bytes.
    pub memory_mib: Option<f64>,
    /// Partitions.
    pub partitions: Vec<LegacyPartition>,
    /// The whole text.
    #[serde(skip)]
    pub text: String,
}

/// Measurements on one number of processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LegacyPartition {
    /// Processes.
    pub ranks: u64,
    /// Rows of the table, totals last in each access method.
    pub rows: Vec<LegacyRow>,
    /// Weighted averages of write, rewrite and read in 1e6 bytes/s.
    pub averages_mb_per_second: [Option<f64>; 3],
    /// b_eff_io in 1e6 bytes/s.
    pub b_eff_io_mb_per_second: Option<f64>,
    /// Scheduled time, as printed.
    pub scheduled: String,
    /// Validity; None if not printed.
    pub valid: Option<bool>,
    /// Its criteria, as printed.
    pub criteria: Vec<String>,
    /// True after its b_eff_io, which may be no number.
    #[serde(skip)]
    pub is_complete: bool,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LegacyRow {
    /// Access method.
    pub access: AccessMethod,
    /// Chunk size; None: the total of the access method.
    pub chunk_bytes: Option<u64>,
    /// Types 0 to 4 in 1e6 bytes/s; None: no number.
    pub mb_per_second: [Option<f64>; TYPES.len()],
}

/// True if the bytes are those of such a file.
#[must_use]
pub fn is_summary(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC.as_bytes())
}

fn parse_access(word: &str) -> Option<AccessMethod> {
    AccessMethod::ALL.into_iter().find(|access| access.name() == word)
}

/// A number, or `-` and the like for none.
fn parse_number(word: &str) -> Option<Option<f64>> {
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Some(Some(value)),
        Ok(_) => Some(None),
        Err(_) => word.chars().all(|c| c == '-').then_some(None),
    }
}

pub(super) fn parse(text: &str) -> Result<LegacySummary, LegacySummaryError> {
    let mut summary = LegacySummary { text: text.to_owned(), ..LegacySummary::default() };
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some((ranks, row)) =
            parse_row(&words).map_err(|()| LegacySummaryError::Line(index + 1, line.to_owned()))?
        {
            rows += 1;
            if rows > MAX_ROWS {
                return Err(LegacySummaryError::TooLong);
            }
            let known = summary.partitions.last().is_some_and(|p| p.ranks == ranks && !p.is_complete);
            if !known {
                summary.partitions.push(LegacyPartition { ranks, ..LegacyPartition::default() });
            }
            if let Some(partition) = summary.partitions.last_mut() {
                partition.rows.push(row);
            }
        } else if !line.starts_with('#') {
            parse_field(&mut summary, line.trim(), &words);
        }
    }
    if rows == 0 {
        return Err(LegacySummaryError::Empty);
    }
    Ok(summary)
}

/// Parses `4 PEs 1 1024 write v v v v v` or `4 PEs total-write v v v v v`; an error if the numbers are missing.
fn parse_row(words: &[&str]) -> Result<Option<(u64, LegacyRow)>, ()> {
    let [ranks, "PEs", rest @ ..] = words else { return Ok(None) };
    let Ok(ranks) = ranks.parse::<u64>() else { return Ok(None) };
    let (chunk, access, values) = match rest {
        [total, values @ ..] if total.starts_with("total-") => (None, parse_access(&total[6..]).ok_or(())?, values),
        [_, chunk, word, values @ ..] => (Some(chunk.parse().map_err(|_| ())?), parse_access(word).ok_or(())?, values),
        _ => return Err(()),
    };
    let values: Vec<Option<f64>> = values.iter().map(|word| parse_number(word)).collect::<Option<_>>().ok_or(())?;
    let mb_per_second: [Option<f64>; TYPES.len()] = values.try_into().map_err(|_| ())?;
    Ok(Some((ranks, LegacyRow { access, chunk_bytes: chunk, mb_per_second })))
}

fn parse_field(summary: &mut LegacySummary, line: &str, words: &[&str]) {
    if let Some(revision) = line.strip_prefix(MAGIC) {
        revision.clone_into(&mut summary.revision);
    } else if line.starts_with("MEMORY_PER_PROCESSOR") {
        summary.memory_mib = words.iter().find_map(|word| parse_number(word)).flatten();
    } else if line.starts_with("-N ") {
        line.clone_into(&mut summary.command);
    } else if let (true, Some((_, prefix))) = (line.starts_with("PATH="), line.split_once("PREFIX=")) {
        prefix.clone_into(&mut summary.prefix);
    } else if let Some(date) = line.strip_prefix("Date of measurement:") {
        date.trim().clone_into(&mut summary.date);
    } else if let (true, Some((name, value))) = (summary.partitions.is_empty(), line.split_once(" : ")) {
        summary.system.push((name.trim().to_owned(), value.trim().to_owned()));
    } else if let Some(partition) = summary.partitions.last_mut() {
        parse_partition_field(partition, line, words);
    }
}

fn parse_partition_field(partition: &mut LegacyPartition, line: &str, words: &[&str]) {
    let behind =
        |sign: &str| words.iter().position(|w| *w == sign).and_then(|at| parse_number(words.get(at + 1)?).flatten());
    if line.starts_with("weighted average bandwidth for ") {
        let of = words.get(4).and_then(|word| parse_access(word));
        if let Some(at) = of.and_then(|access| AccessMethod::ALL.iter().position(|known| *known == access)) {
            partition.averages_mb_per_second[at] = behind(":");
        }
    } else if line.starts_with("b_eff_io of these measurements") {
        partition.b_eff_io_mb_per_second = behind("=");
        partition.is_complete = true;
        let (_, scheduled) = line.split_once("scheduled time=").unwrap_or_default();
        scheduled.clone_into(&mut partition.scheduled);
    } else if partition.is_complete && partition.valid.is_none() {
        if line.starts_with("NOT VALID") {
            partition.valid = Some(false);
        } else if line.starts_with("VALID") {
            partition.valid = Some(true);
        }
    } else if line.starts_with("criterion ") {
        partition.criteria.push(line.to_owned());
    }
}
