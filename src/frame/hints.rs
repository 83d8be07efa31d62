//! The hints file of release 2.1 of b_eff_io: which MPI-IO hints are given where. Other benchmarks look whether a file is one.
//!
//! Each line is `<proc_num> <access> <pat_type> <chunk_size> <info_key> <info_value>`; lines that are blank or have
//! `#` in column 1 are skipped; the value is the rest of the line without trailing blanks, so it may hold blanks.
//!
//! Where a key goes follows from `<chunk_size>`: `on_open` to the opening of the file only; a size or `Lmax` (M_PART)
//! to the patterns with this chunk size only; `all` to both, as the word says. Of several lines for the same key in the
//! same place the last one wins. Fill-ups have no chunk size of their own, so only `all` reaches them; the warm-ups
//! have one, 1048576.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::frame::records::Access;

const ACCESS_WORDS: &str = "all, write, rewrite, read";
const TYPE_WORDS: [&str; 5] = ["scatter", "shared", "separated", "segmented", "seg_coll"];
const CHUNK_SIZES: [u64; 6] = [1024, 1032, 32768, 32776, 1_048_576, 1_048_584];

/// Which part of a run a hint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HintPlace {
    /// Opening of the file.
    OnOpen,
    /// Patterns with chunks of M_PART bytes.
    Lmax,
    /// Patterns with chunks of this many bytes.
    ChunkBytes(u64),
    /// Opening and all patterns.
    All,
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintRule {
    /// Partition size; `None`: all.
    pub ranks: Option<u64>,
    /// Access method; `None`: all.
    pub access: Option<Access>,
    /// Pattern type; `None`: all.
    pub pattern_type: Option<u8>,
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

/// Lines of a file at most: every pattern, access and place of every partition of a usual run, many times.
const MOST_RULES: usize = 4096;
/// Different keys at most. Libraries know some dozen; each is set and asked for at every opening, one after the other.
const MOST_KEYS: usize = 256;
/// MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL are at most these in the libraries there are, with the end of the text.
const MOST_KEY_BYTES: usize = 255;
const MOST_VALUE_BYTES: usize = 1023;

/// Refuses more hints, or longer ones, than any library takes.
///
/// # Errors
/// What is too much, in words.
pub fn check_amount<'a>(hints: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Result<(), String> {
    let rules = hints.clone().count();
    if rules > MOST_RULES {
        return Err(format!("{rules} hints are given, {MOST_RULES} can be"));
    }
    if let Some((key, value)) = hints.clone().find(|(k, v)| k.len() > MOST_KEY_BYTES || v.len() > MOST_VALUE_BYTES) {
        let begin: String = key.chars().take(20).collect();
        return Err(format!(
            "the hint that begins with '{begin}' has a key of {} bytes and a value of {}; MPI takes {MOST_KEY_BYTES} and \
             {MOST_VALUE_BYTES}",
            key.len(),
            value.len()
        ));
    }
    let keys = hints.map(|(key, _)| key).collect::<BTreeSet<_>>().len();
    if keys > MOST_KEYS {
        return Err(format!("{keys} different keys are given, {MOST_KEYS} can be"));
    }
    Ok(())
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

fn parse_type(word: &str) -> Result<Option<u8>, String> {
    let number = (0_u8..).zip(TYPE_WORDS).find(|(_, name)| *name == word).map(|(number, _)| number);
    unless_all(word, number, "<pat_type>", &format!("all, {}", TYPE_WORDS.join(", ")))
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

    #[test]
    fn hints_are_as_many_and_as_long_as_a_library_takes() {
        let check = |keys: usize, times: usize, value: &str| {
            let keys: Vec<String> = (0..keys).map(|n| format!("key{n}")).collect();
            check_amount(keys.iter().flat_map(|key| std::iter::repeat_n((key.as_str(), value), times)))
        };
        assert_eq!(check(256, 16, "v"), Ok(()));
        assert_eq!(check(257, 1, "v").unwrap_err(), "257 different keys are given, 256 can be");
        assert_eq!(check(241, 17, "v").unwrap_err(), "4097 hints are given, 4096 can be");
        assert!(check(1, 1, &"v".repeat(1024))
            .unwrap_err()
            .contains("'key0' has a key of 4 bytes and a value of 1024"));
        assert_eq!(check(1, 1, &"v".repeat(1023)), Ok(()));
        assert!(check_amount([("k".repeat(256).as_str(), "v")].into_iter()).unwrap_err().contains("'kkkk"));
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
