//! The hints file of release 2.1 of b_eff_io, which assigns MPI-IO hints to files and patterns.
//!
//! Each line is `<proc_num> <access> <pat_type> <chunk_size> <info_key> <info_value>`; lines that are blank or have `#` in column 1 are
//! skipped; the value is the rest of the line without trailing blanks, so it may contain blanks.
//!
//! `<chunk_size>` determines where a key applies: `on_open` to the opening of the file only; a size or `Lmax` (M_PART) to the patterns with
//! this chunk size only; `all` to both. Of several lines for the same key and scope the last one wins. Fill-ups have no chunk size of their
//! own, so only `all` applies to them; that of the warm-ups is 1048576.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::checks::join;
use crate::frame::records::AccessMethod;

const ACCESS_WORDS: &str = "all, write, rewrite, read";
const CHUNK_SIZES: [u64; 6] = [1024, 1032, 32768, 32776, 1_048_576, 1_048_584];

/// Scope of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HintScope {
    /// Opening of the file.
    OnOpen,
    /// Patterns with chunks of M_PART bytes.
    Lmax,
    /// Patterns with chunks of this many bytes.
    ChunkBytes(#[schemars(range(min = 8))] u64),
    /// Opening and all patterns.
    All,
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HintRule {
    /// Partition size; `None`: all.
    pub ranks: Option<u64>,
    /// Access method; `None`: all.
    pub access: Option<AccessMethod>,
    /// Pattern type; `None`: all.
    pub pattern_type: Option<PatternType>,
    /// Opening or which patterns.
    pub place: HintScope,
    /// Key of the hint.
    pub key: String,
    /// Value of the hint.
    pub value: String,
}

impl HintRule {
    /// A hint for all files and patterns.
    #[must_use]
    pub fn everywhere(key: &str, value: &str) -> Self {
        let (key, value) = (key.to_owned(), value.to_owned());
        Self { ranks: None, access: None, pattern_type: None, place: HintScope::All, key, value }
    }
}

/// A line that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the hints file: {cause}")]
pub struct HintError {
    /// Line number, from 1.
    pub line: usize,
    /// Cause and permitted words.
    pub cause: String,
}

/// Parses the text of a hints file.
///
/// # Errors
/// The first invalid line.
pub fn parse(text: &str) -> Result<Vec<HintRule>, HintError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty())
        .map(|(index, line)| parse_line(line).map_err(|cause| HintError { line: index + 1, cause }))
        .collect()
}

fn parse_line(line: &str) -> Result<HintRule, String> {
    let mut rest = line;
    let mut word = |name: &str| {
        let text = rest.trim_start();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (word, behind) = text.split_at(end);
        rest = behind;
        (!word.is_empty()).then_some(word).ok_or_else(|| missing_field(name))
    };
    let ranks = parse_ranks(word("<proc_num>")?)?;
    let access = parse_access(word("<access>")?)?;
    let pattern_type = parse_type(word("<pat_type>")?)?;
    let place = parse_scope(word("<chunk_size>")?)?;
    let key = word("<info_key>")?.to_owned();
    let value = rest.trim().to_owned();
    if value.is_empty() {
        return Err(missing_field("<info_value>"));
    }
    Ok(HintRule { ranks, access, pattern_type, place, key, value })
}

fn missing_field(name: &str) -> String {
    format!("{name} is missing; a line is <proc_num> <access> <pat_type> <chunk_size> <info_key> <info_value>")
}

/// Returns None for `all`, else the meaning of the word.
fn none_if_all<T>(word: &str, meaning: Option<T>, name: &str, allowed: &str) -> Result<Option<T>, String> {
    if word == "all" {
        return Ok(None);
    }
    meaning.map(Some).ok_or_else(|| format!("'{word}' is no {name}; allowed: {allowed}"))
}

fn parse_ranks(word: &str) -> Result<Option<u64>, String> {
    let ranks = word.parse().ok().filter(|ranks| *ranks > 0);
    none_if_all(word, ranks, "<proc_num>", "all or a number of ranks")
}

fn parse_access(word: &str) -> Result<Option<AccessMethod>, String> {
    none_if_all(word, AccessMethod::ALL.into_iter().find(|a| a.name() == word), "<access>", ACCESS_WORDS)
}

fn parse_type(word: &str) -> Result<Option<PatternType>, String> {
    let of_word = |t: &PatternType| t.descriptor().hint_word == word;
    let words = join(PatternType::ALL.map(|t| t.descriptor().hint_word));
    none_if_all(word, PatternType::ALL.into_iter().find(of_word), "<pat_type>", &format!("all, {words}"))
}

fn parse_scope(word: &str) -> Result<HintScope, String> {
    match word {
        "all" => return Ok(HintScope::All),
        "on_open" => return Ok(HintScope::OnOpen),
        "Lmax" => return Ok(HintScope::Lmax),
        _ => {}
    }
    let bytes = word.parse().ok().filter(|bytes| CHUNK_SIZES.contains(bytes));
    bytes.map(HintScope::ChunkBytes).ok_or_else(|| {
        let sizes = CHUNK_SIZES.map(|s| s.to_string()).join(", ");
        format!("'{word}' is no <chunk_size>; allowed: on_open, Lmax, {sizes}, all")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bad_lines_name_line_cause_and_words() {
        for (line, cause) in [
            ("some all all all k v", "allowed: all or a number of ranks"),
            ("0 all all all k v", "allowed: all or a number of ranks"),
            ("all writ all all k v", "'writ' is no <access>; allowed: all, write, rewrite, read"),
            ("all all separate all k v", "allowed: all, scatter, shared, separated, segmented, seg_coll"),
            ("all all all 2048 k v", "allowed: on_open, Lmax, 1024, 1032, 32768, 32776, 1048576, 1048584, all"),
            ("all all all all k", "<info_value> is missing"),
            ("all all", "<pat_type> is missing"),
        ] {
            let error = parse(&format!("# first\nall all all all k v\n{line}\n")).unwrap_err();
            assert_eq!(error.line, 3);
            assert!(error.to_string().contains(cause) && error.to_string().contains("line 3"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[ -~\\n\\ta-z]{0,80}|(all|8|x| |\\n|#|é){0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn values_keep_their_inner_blanks(value in "[a-z0-9=,]{1,8}( {1,3}[a-z0-9=,]{1,8}){0,3}", tail in " {0,4}") {
            let rules = parse(&format!("all  all\tall all  key   {value}{tail}")).unwrap();
            prop_assert_eq!(&rules[0].value, &value);
        }
    }
}
