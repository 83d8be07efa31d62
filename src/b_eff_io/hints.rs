//! The hints file of release 2.1 of b_eff_io: which MPI-IO hints are given where.
//!
//! Each line is `<proc_num> <access> <pat_type> <chunk_size> <info_key> <info_value>`; lines that are blank or have
//! `#` in column 1 are skipped; the value is the rest of the line without trailing blanks, so it may hold blanks.
//!
//! Where a key goes follows from `<chunk_size>`: `on_open` to the opening of the file only; a size or `Lmax` (M_PART)
//! to the patterns with this chunk size only; `all` to both, as the word says. Of several lines for the same key in the
//! same place the last one wins. Fill-ups have no chunk size of their own, so only `all` reaches them; the warm-ups
//! have one, 1048576.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::checks::join;
use crate::frame::records::Access;

const ACCESS_WORDS: &str = "all, write, rewrite, read";
const CHUNK_SIZES: [u64; 6] = [1024, 1032, 32768, 32776, 1_048_576, 1_048_584];

/// Which part of a run a hint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HintPlace {
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
    pub access: Option<Access>,
    /// Pattern type; `None`: all.
    pub pattern_type: Option<PatternType>,
    /// Opening or which patterns.
    pub place: HintPlace,
    /// Key of the hint.
    pub key: String,
    /// Value of the hint.
    pub value: String,
}

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the hints file: {cause}")]
pub struct HintError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong and which words are allowed.
    pub cause: String,
}

/// Reads the text of a hints file.
///
/// # Errors
/// The first bad line.
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
        (!word.is_empty()).then_some(word).ok_or_else(|| missing(name))
    };
    let ranks = parse_ranks(word("<proc_num>")?)?;
    let access = parse_access(word("<access>")?)?;
    let pattern_type = parse_type(word("<pat_type>")?)?;
    let place = parse_place(word("<chunk_size>")?)?;
    let key = word("<info_key>")?.to_owned();
    let value = rest.trim().to_owned();
    if value.is_empty() {
        return Err(missing("<info_value>"));
    }
    Ok(HintRule { ranks, access, pattern_type, place, key, value })
}

fn missing(name: &str) -> String {
    format!("{name} is missing; a line is <proc_num> <access> <pat_type> <chunk_size> <info_key> <info_value>")
}

/// None for `all`, else what the word means.
fn unless_all<T>(word: &str, meaning: Option<T>, name: &str, allowed: &str) -> Result<Option<T>, String> {
    if word == "all" {
        return Ok(None);
    }
    meaning.map(Some).ok_or_else(|| format!("'{word}' is no {name}; allowed: {allowed}"))
}

fn parse_ranks(word: &str) -> Result<Option<u64>, String> {
    let ranks = word.parse().ok().filter(|ranks| *ranks > 0);
    unless_all(word, ranks, "<proc_num>", "all or a number of ranks")
}

fn parse_access(word: &str) -> Result<Option<Access>, String> {
    unless_all(word, Access::ALL.into_iter().find(|a| a.name() == word), "<access>", ACCESS_WORDS)
}

fn parse_type(word: &str) -> Result<Option<PatternType>, String> {
    let of_word = |t: &PatternType| t.descriptor().hint_word == word;
    let words = join(PatternType::ALL.map(|t| t.descriptor().hint_word));
    unless_all(word, PatternType::ALL.into_iter().find(of_word), "<pat_type>", &format!("all, {words}"))
}

fn parse_place(word: &str) -> Result<HintPlace, String> {
    match word {
        "all" => return Ok(HintPlace::All),
        "on_open" => return Ok(HintPlace::OnOpen),
        "Lmax" => return Ok(HintPlace::Lmax),
        _ => {}
    }
    let bytes = word.parse().ok().filter(|bytes| CHUNK_SIZES.contains(bytes));
    bytes.map(HintPlace::ChunkBytes).ok_or_else(|| {
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
