//! Configuration of `beff-raw tune`: validated, immutable, part of every result.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::config::TimeLimit;
use crate::frame::trials::TrialConfig;

/// Shortest budget, in seconds: the noise alone takes a part of it.
pub const MIN_BUDGET_SECONDS: f64 = 5.0;

/// Configuration of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneConfig {
    /// What is measured.
    pub trials: TrialConfig,
    /// Wall-clock time of the search, with files and syncs.
    pub budget_seconds: f64,
    /// Keys and values to try, from a file; None: those that this program knows.
    #[serde(default)]
    pub space: Option<Vec<SpaceLine>>,
    /// Time limit of the run; None: no limit.
    #[serde(default)]
    pub time_limit: Option<TimeLimit>,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
}

/// A line of the space file: a key and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpaceLine {
    /// Key.
    pub key: String,
    /// Values, without that of the default.
    pub values: Vec<String>,
}

/// Parses a space file: a key and its values on each line, separated by blanks; `#` begins a comment.
///
/// # Errors
/// The line, and what is wrong with it.
pub fn parse_space(text: &str) -> Result<Vec<SpaceLine>, String> {
    let mut lines: Vec<SpaceLine> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace().map(str::to_owned);
        let Some(key) = words.next() else { continue };
        let values: Vec<String> = words.collect();
        let number = number + 1;
        if key.contains('=') {
            return Err(format!("line {number}: '{key}' is not a key; write KEY VALUE VALUE ..., separated by blanks"));
        }
        if values.is_empty() {
            return Err(format!("line {number}: {key} has no value"));
        }
        if lines.iter().any(|known| known.key == key) {
            return Err(format!("line {number}: {key} has a line above; write all of its values on one line"));
        }
        lines.push(SpaceLine { key, values });
    }
    if lines.is_empty() {
        return Err("it has no key".to_owned());
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_file_has_a_key_and_its_values_on_each_line() {
        let text = "# hints\ncb_nodes 1 2\n\nromio_cb_write disable # not enable\n";
        let found = parse_space(text).unwrap();
        let line = |key: &str, values: &[&str]| SpaceLine {
            key: key.into(),
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        assert_eq!(found, [line("cb_nodes", &["1", "2"]), line("romio_cb_write", &["disable"])]);
        for (text, cause) in [
            ("", "no key"),
            ("a", "line 1: a has no value"),
            ("a=1", "line 1: 'a=1' is not a key"),
            ("a 1\na 2", "line 2: a has a line above"),
        ] {
            assert!(parse_space(text).unwrap_err().contains(cause), "{text}");
        }
    }
}
