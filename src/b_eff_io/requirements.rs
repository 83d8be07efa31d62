//! Requirements of an acceptance (`--require FILE`): one in a line, with its unit.

use std::fmt::{self, Display};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::backends::{self, VARIANT_MARK};
use crate::frame::records::AccessMethod;
use crate::frame::values::acceptance::Limit;
use crate::frame::values::MPI_IO;

/// Times the cache that an access method must move: the yardstick of the paper.
pub const CACHE_TIMES: f64 = 20.0;

/// Minutes in which the memory must be written: the coffee-cup rule of the paper.
pub const COFFEE_CUP_MINUTES: f64 = 10.0;

/// Most requirements of a file: their protocol has two sheets of paper.
pub const MAX_REQUIREMENTS: usize = 40;

/// Forms of a line.
pub const FORMS: [&str; 11] = [
    "value >= 5 GB/s",
    "mean write >= 3 GB/s",
    "type 0 write >= 3 GB/s",
    "smallest chunk write >= 100 MB/s",
    "spread <= 5 %",
    "mpiio / posix write >= 0.9",
    "wrong words = 0",
    "T >= 15 min",
    "cache 20x",
    "coffee cup",
    "valid",
];

/// Unit of a rate, and its size in MB/s.
const RATE_UNITS: [(&str, f64); 8] = [
    ("kB/s", 1e-3),
    ("MB/s", 1.0),
    ("GB/s", 1e3),
    ("TB/s", 1e6),
    ("KiB/s", 1.024e-3),
    ("MiB/s", 1.048_576),
    ("GiB/s", 1_073.741_824),
    ("TiB/s", 1_099_511.627_776),
];

/// Unit of a time, and its size in seconds.
const TIME_UNITS: [(&str, f64); 3] = [("s", 1.0), ("min", 60.0), ("h", 3600.0)];

/// What is required.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// b_eff_io.
    Value {
        /// Backend.
        backend: String,
    },
    /// Mean of an access method over the types.
    Mean {
        /// Access method; None: each.
        access: Option<AccessMethod>,
        /// Backend.
        backend: String,
    },
    /// Value of a pattern type.
    Type {
        /// Pattern type; None: each.
        pattern_type: Option<PatternType>,
        /// Access method; None: each.
        access: Option<AccessMethod>,
        /// Backend.
        backend: String,
    },
    /// Bandwidth with the smallest chunk, all types together.
    SmallestChunk {
        /// Access method; None: each.
        access: Option<AccessMethod>,
        /// Backend.
        backend: String,
    },
    /// Half-width of the 95 % interval of b_eff_io.
    Spread {
        /// Backend.
        backend: String,
    },
    /// Rate of one backend divided by that of another.
    Ratio {
        /// Numerator and denominator.
        backends: [String; 2],
        /// Pattern type; None: all together.
        pattern_type: Option<PatternType>,
        /// Access method; None: each.
        access: Option<AccessMethod>,
    },
    /// Data was compared, and none of it was wrong.
    WrongWords,
    /// Scheduled time of each partition.
    Time,
    /// Twenty times the cache.
    Cache {
        /// Access method; None: each.
        access: Option<AccessMethod>,
    },
    /// All memory is written in ten minutes.
    CoffeeCup,
    /// The value is valid by the definition of the run.
    Valid,
}

/// A requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "RequirementText", try_from = "RequirementText")]
pub struct Requirement {
    /// Line of the file, from 1.
    pub line: u64,
    /// What is required.
    pub subject: Subject,
    /// The required number, in `unit`; that of the yardstick where it is fixed.
    pub number: f64,
    /// Unit as it is written; empty for a plain number.
    pub unit: String,
}

/// A requirement as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Requirement")]
struct RequirementText {
    /// Line of the file, from 1.
    line: u64,
    /// The requirement.
    text: String,
}

impl From<Requirement> for RequirementText {
    fn from(requirement: Requirement) -> Self {
        Self { line: requirement.line, text: requirement.to_string() }
    }
}

impl TryFrom<RequirementText> for Requirement {
    type Error = String;

    fn try_from(recorded: RequirementText) -> Result<Self, String> {
        Ok(Self { line: recorded.line, ..parse_line(&recorded.text)? })
    }
}

impl Requirement {
    /// Its limit, in its unit.
    #[must_use]
    pub fn limit(&self) -> Limit {
        match self.subject {
            Subject::Spread { .. } | Subject::WrongWords | Subject::CoffeeCup => Limit::AtMost(self.number),
            _ => Limit::AtLeast(self.number),
        }
    }

    /// Size of its unit: MB/s of rates, seconds of times, else 1.
    #[must_use]
    pub fn unit_size(&self) -> f64 {
        let known = RATE_UNITS.iter().chain(&TIME_UNITS).find(|(name, _)| *name == self.unit);
        known.map_or(1.0, |(_, size)| *size)
    }
}

impl Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |op: &str| {
            let gap = if self.unit.is_empty() { "" } else { " " };
            format!("{op} {}{gap}{}", self.number, self.unit)
        };
        let words = match &self.subject {
            Subject::Value { backend } => words(["value", backend_word(backend)]),
            Subject::Mean { access, backend } => words(["mean", access_word(*access), backend_word(backend)]),
            Subject::Type { pattern_type, access, backend } => {
                let number = pattern_type.map_or_else(|| "all".to_owned(), |t| t.to_string());
                words(["type", &number, access_word(*access), backend_word(backend)])
            }
            Subject::SmallestChunk { access, backend } => {
                words(["smallest", "chunk", access_word(*access), backend_word(backend)])
            }
            Subject::Spread { backend } => words(["spread", backend_word(backend)]),
            Subject::Ratio { backends: [a, b], pattern_type, access } => {
                let of_type = pattern_type.map_or_else(String::new, |t| format!("type {t}"));
                words([a, "/", b, &of_type, access_word(*access)])
            }
            Subject::WrongWords => return f.write_str("wrong words = 0"),
            Subject::Time => "T".to_owned(),
            Subject::Cache { access } => return f.write_str(&words(["cache 20x", access_word(*access)])),
            Subject::CoffeeCup => return f.write_str("coffee cup"),
            Subject::Valid => return f.write_str("valid"),
        };
        let op = if matches!(self.limit(), Limit::AtMost(_)) { "<=" } else { ">=" };
        write!(f, "{words} {}", limit(op))
    }
}

fn words<const N: usize>(all: [&str; N]) -> String {
    all.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn access_word(access: Option<AccessMethod>) -> &'static str {
    access.map_or("", AccessMethod::name)
}

fn backend_word(backend: &str) -> &str {
    if backend == MPI_IO {
        ""
    } else {
        backend
    }
}

/// A line that is no requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct RequirementError {
    /// Line, from 1.
    pub line: u64,
    /// What is wrong, and what is allowed.
    pub cause: String,
}

/// Parses a file: a requirement in each line, `#` begins a comment.
///
/// # Errors
/// The first line that is no requirement; a file without any.
pub fn parse(text: &str) -> Result<Vec<Requirement>, RequirementError> {
    let mut all: Vec<Requirement> = Vec::new();
    let mut last = 1;
    for (number, content) in (1..).zip(text.lines()) {
        last = number;
        let refused = |cause: String| RequirementError { line: number, cause };
        let content = content.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let found = Requirement { line: number, ..parse_line(content).map_err(refused)? };
        if let Some(known) = all.iter().find(|known| known.subject == found.subject) {
            return Err(refused(format!("'{found}': line {} requires something of the same figure", known.line)));
        }
        if all.len() == MAX_REQUIREMENTS {
            return Err(refused(format!("more than {MAX_REQUIREMENTS} requirements")));
        }
        all.push(found);
    }
    if all.is_empty() {
        return Err(RequirementError { line: last, cause: format!("no requirement; a line is one of: {}", forms()) });
    }
    Ok(all)
}

fn forms() -> String {
    FORMS.join(", ")
}

fn parse_line(line: &str) -> Result<Requirement, String> {
    let spaced = [">=", "<=", "="].into_iter().find(|op| line.contains(op)).map(|op| (line.split_once(op), op));
    let (subject, limit) = match spaced {
        Some((Some((subject, limit)), op)) => (subject, Some((op, limit.trim()))),
        _ => (line, None),
    };
    if let Some(op) = ['<', '>', '≥', '≤'].into_iter().find(|op| subject.contains(*op)) {
        return Err(format!("'{line}': '{op}' is no comparison; write >= for at least, <= for at most"));
    }
    let subject = subject.replace('/', " / ");
    let mut words: Vec<&str> = subject.split_whitespace().collect();
    let subject = parse_subject(line, &mut words)?;
    if let Some(word) = words.first() {
        return Err(unexpected_word(line, word));
    }
    let (number, unit) = parse_limit(line, &subject, limit)?;
    Ok(Requirement { line: 0, subject, number, unit: unit.to_owned() })
}

fn parse_subject(line: &str, words: &mut Vec<&str>) -> Result<Subject, String> {
    if words.get(1) == Some(&"/") {
        return parse_ratio(line, words);
    }
    let first = if words.is_empty() { "" } else { words.remove(0) };
    let mut second_is = |word: &str| {
        let is_it = words.first().is_some_and(|next| next.eq_ignore_ascii_case(word));
        is_it.then(|| words.remove(0)).is_some()
    };
    Ok(match first.to_ascii_lowercase().as_str() {
        "value" => Subject::Value { backend: take_backend(words) },
        "mean" => Subject::Mean { access: take_access(words), backend: take_backend(words) },
        "type" => Subject::Type {
            pattern_type: take_type(line, words)?,
            access: take_access(words),
            backend: take_backend(words),
        },
        "smallest" if second_is("chunk") => {
            Subject::SmallestChunk { access: take_access(words), backend: take_backend(words) }
        }
        "spread" => Subject::Spread { backend: take_backend(words) },
        "wrong" if second_is("words") => Subject::WrongWords,
        "t" => Subject::Time,
        "cache" if second_is("20x") => Subject::Cache { access: take_access(words) },
        "coffee" if second_is("cup") => Subject::CoffeeCup,
        "valid" => Subject::Valid,
        _ => {
            let near = backends::nearest_name(first, ["value", "mean", "type", "smallest", "spread", "wrong", "cache"]);
            let near = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
            return Err(format!("'{line}' is no requirement{near}; a line is one of: {}", forms()));
        }
    })
}

fn parse_ratio(line: &str, words: &mut Vec<&str>) -> Result<Subject, String> {
    let a = words.remove(0);
    words.remove(0);
    let [a, b] = [Some(a), (!words.is_empty()).then(|| words.remove(0))].map(|word| word.and_then(known_backend));
    let (Some(a), Some(b)) = (a, b) else {
        return Err(format!("'{line}': a ratio is of two backends, {}; write mpiio / posix >= 0.9", backend_names()));
    };
    if a == b {
        return Err(format!("'{line}': the ratio of {a} to itself is 1; name two backends"));
    }
    let has_type = words.first().is_some_and(|word| word.eq_ignore_ascii_case("type"));
    let pattern_type = match has_type {
        true => {
            words.remove(0);
            take_type(line, words)?
        }
        false => None,
    };
    Ok(Subject::Ratio { backends: [a, b], pattern_type, access: take_access(words) })
}

/// The number of a pattern type; None for `all`.
fn take_type(line: &str, words: &mut Vec<&str>) -> Result<Option<PatternType>, String> {
    let word = if words.is_empty() { "" } else { words.remove(0) };
    if word.eq_ignore_ascii_case("all") {
        return Ok(None);
    }
    let number = word.parse::<u8>().ok().and_then(|number| PatternType::try_from(number).ok());
    number.map(Some).ok_or_else(|| format!("'{line}': '{word}' is no pattern type; allowed: 0, 1, 2, 3, 4, all"))
}

fn take_access(words: &mut Vec<&str>) -> Option<AccessMethod> {
    let word = words.first()?;
    let access = AccessMethod::ALL.into_iter().find(|access| word.eq_ignore_ascii_case(access.name()))?;
    words.remove(0);
    Some(access)
}

fn take_backend(words: &mut Vec<&str>) -> String {
    let known = words.first().copied().and_then(known_backend);
    if known.is_some() {
        words.remove(0);
    }
    known.unwrap_or_else(|| MPI_IO.to_owned())
}

/// A backend that moves data, or a variant of one.
fn known_backend(word: &str) -> Option<String> {
    let (backend, variant) = word.split_once(VARIANT_MARK).map_or((word, None), |(name, rest)| (name, Some(rest)));
    let Ok(name) = backends::canonical_name(backend);
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let is_known = backends::supports(&name, |row| row.uses_space) && variant.is_none_or(is_name);
    is_known.then(|| variant.map_or(name.clone(), |variant| format!("{name}{VARIANT_MARK}{variant}")))
}

fn backend_names() -> String {
    backends::list_for_help(|row| row.uses_space)
}

fn unexpected_word(line: &str, word: &str) -> String {
    let access = AccessMethod::ALL.map(AccessMethod::name).join(", ");
    format!("'{line}': '{word}' is not expected; allowed words here are {access}, and a backend: {}", backend_names())
}

/// The number and the unit of a requirement that has a limit.
fn parse_limit(line: &str, subject: &Subject, limit: Option<(&str, &str)>) -> Result<(f64, &'static str), String> {
    let (op, units, example): (&str, &[(&'static str, f64)], &str) = match subject {
        Subject::Value { .. } | Subject::Mean { .. } | Subject::Type { .. } | Subject::SmallestChunk { .. } => {
            (">=", &RATE_UNITS, ">= 5 GB/s")
        }
        Subject::Spread { .. } => ("<=", &[("%", 1.0)], "<= 5 %"),
        Subject::Ratio { .. } => (">=", &[], ">= 0.9"),
        Subject::Time => (">=", &TIME_UNITS, ">= 15 min"),
        Subject::WrongWords => {
            return match limit {
                Some(("=" | "<=", "0")) => Ok((0.0, "")),
                _ => Err(format!("'{line}': wrong data is not tolerated; write wrong words = 0")),
            }
        }
        Subject::Cache { .. } => return without_limit(line, limit, (CACHE_TIMES, "x")),
        Subject::CoffeeCup => return without_limit(line, limit, (COFFEE_CUP_MINUTES, "min")),
        Subject::Valid => return without_limit(line, limit, (1.0, "")),
    };
    let Some((found, text)) = limit else {
        return Err(format!("'{line}': the limit is missing; write e.g. {example}"));
    };
    if found != op {
        return Err(format!("'{line}': '{found}' is not possible here; write {op}, e.g. {example}"));
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let number = number.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    let Some(number) = number else {
        return Err(format!("'{line}': '{text}' does not begin with a number above 0; write e.g. {example}"));
    };
    if units.is_empty() && unit.is_empty() {
        return Ok((number, ""));
    }
    match units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((name, _)) => Ok((number, name)),
        None => Err(wrong_unit(line, unit, units, example)),
    }
}

fn wrong_unit(line: &str, unit: &str, units: &[(&str, f64)], example: &str) -> String {
    let what = if unit.is_empty() { "the unit is missing".to_owned() } else { format!("'{unit}' is no unit here") };
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    let allowed = if names.is_empty() { "none, it is a plain number".to_owned() } else { names.join(", ") };
    format!("'{line}': {what}; allowed: {allowed}, e.g. {example}")
}

fn without_limit(
    line: &str,
    limit: Option<(&str, &str)>,
    fixed: (f64, &'static str),
) -> Result<(f64, &'static str), String> {
    match limit {
        None => Ok(fixed),
        Some((op, _)) => Err(format!("'{line}': it has a limit of its own; omit what begins with {op}")),
    }
}

#[cfg(test)]
#[path = "requirements_tests.rs"]
mod tests;
