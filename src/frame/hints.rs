//! MPI-IO hints of options and files: limits of number and length, and recognition of the hints file of `io`.

use std::collections::BTreeSet;

use crate::frame::records::AccessMethod;

/// Words of a line of the hints file of `io`: partition, access, type, chunk size, key, value.
const RULE_WORDS: usize = 6;

/// True if the line is one of the hints file of `io`. Other readers would take it for one strange key.
#[must_use]
pub fn is_rule_line(line: &str) -> bool {
    let is_access = |word: &str| word == "all" || AccessMethod::ALL.iter().any(|access| access.name() == word);
    line.split_whitespace().count() >= RULE_WORDS && line.split_whitespace().nth(1).is_some_and(is_access)
}

/// Maximum lines of a file: every pattern, access and place of every partition of a usual run, many times.
const MAX_RULES: usize = 4096;
/// Maximum number of different keys. Libraries know some dozen; each is set and queried at every open, one after the other.
const MAX_KEYS: usize = 256;
/// MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL of existing libraries are at most these, with the terminator.
const MAX_KEY_BYTES: usize = 255;
const MAX_VALUE_BYTES: usize = 1023;

/// Refuses more or longer hints than any library accepts.
///
/// # Errors
/// A message with the exceeded limit.
pub fn check_limits<'a>(hints: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Result<(), String> {
    let rules = hints.clone().count();
    if rules > MAX_RULES {
        return Err(format!("{rules} hints are given, at most {MAX_RULES} are allowed"));
    }
    if let Some((key, value)) = hints.clone().find(|(k, v)| k.len() > MAX_KEY_BYTES || v.len() > MAX_VALUE_BYTES) {
        let begin: String = key.chars().take(20).collect();
        return Err(format!(
            "the hint that begins with '{begin}' has a key of {} bytes and a value of {}; MPI allows {MAX_KEY_BYTES} and \
             {MAX_VALUE_BYTES}",
            key.len(),
            value.len()
        ));
    }
    let keys = hints.map(|(key, _)| key).collect::<BTreeSet<_>>().len();
    if keys > MAX_KEYS {
        return Err(format!("{keys} different keys are given, at most {MAX_KEYS} are allowed"));
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
            check_limits(keys.iter().flat_map(|key| std::iter::repeat_n((key.as_str(), value), times)))
        };
        assert_eq!(check(256, 16, "v"), Ok(()));
        assert_eq!(check(257, 1, "v").unwrap_err(), "257 different keys are given, at most 256 are allowed");
        assert_eq!(check(241, 17, "v").unwrap_err(), "4097 hints are given, at most 4096 are allowed");
        assert!(check(1, 1, &"v".repeat(1024))
            .unwrap_err()
            .contains("'key0' has a key of 4 bytes and a value of 1024"));
        assert_eq!(check(1, 1, &"v".repeat(1023)), Ok(()));
        assert!(check_limits([("k".repeat(256).as_str(), "v")].into_iter()).unwrap_err().contains("'kkkk"));
    }

    #[test]
    fn lines_of_the_file_of_io_are_distinguished_from_others() {
        assert!(is_rule_line("all all all all key value") && is_rule_line("8 rewrite shared Lmax key a b"));
        for other in ["key value", "key all value", "all all all all key", "key one two three four five", ""] {
            assert!(!is_rule_line(other), "{other}");
        }
    }
}
