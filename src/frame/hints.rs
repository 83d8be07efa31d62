//! MPI-IO hints as options and files give them: how many and how long, and what tells the file of `io` from others.

use std::collections::BTreeSet;

use crate::frame::records::Access;

/// Words of a line of the hints file of `io`: partition, access, type, chunk size, key, value.
const RULE_WORDS: usize = 6;

/// True if the line is one of the hints file of `io`. Other files would read it as one strange key.
#[must_use]
pub fn is_rule(line: &str) -> bool {
    let is_access = |word: &str| word == "all" || Access::ALL.iter().any(|access| access.name() == word);
    line.split_whitespace().count() >= RULE_WORDS && line.split_whitespace().nth(1).is_some_and(is_access)
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn lines_of_the_file_of_io_are_told_from_others() {
        assert!(is_rule("all all all all key value") && is_rule("8 rewrite shared Lmax key a b"));
        for other in ["key value", "key all value", "all all all all key", "key one two three four five", ""] {
            assert!(!is_rule(other), "{other}");
        }
    }
}
