//! Sample sizes X: 0 and powers of two, or a list.

use super::tiles::{too_large, LARGEST_SAMPLE_BYTES};
use crate::frame::units::parse_size;
use crate::imb_io::plan::PlanningError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a list: each size is a row of every benchmark, number of ranks and backend.
const MAX_SIZES: usize = 1024;

/// Largest exponent: 2^30 is the largest power of two that fits in an int count.
pub const LARGEST_LOG: u32 = 30;

/// Sample sizes to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SampleSizes {
    /// 0, then every power of two from 2^min to 2^max.
    Powers {
        /// Exponent of the smallest size that is not 0.
        min_log: u32,
        /// Exponent of the largest size.
        max_log: u32,
    },
    /// These sizes in bytes, in this order, duplicates included.
    List(Vec<u64>),
}

impl Default for SampleSizes {
    /// 0, 1, 2, 4, ... 4 MiB.
    fn default() -> Self {
        Self::Powers { min_log: 0, max_log: 22 }
    }
}

impl SampleSizes {
    /// Parses the exponents `max` or `min:max`.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] for exponents that are not numbers, in the wrong order or above [`LARGEST_LOG`].
    pub fn from_logs(text: &str) -> Result<Self, PlanningError> {
        let number = |log: &str| {
            log.trim().parse::<u32>().map_err(|_| {
                PlanningError::argument(format!(
                    "sizes '{text}': expected max or min:max, exponents of two from 0 to {LARGEST_LOG}, e.g. 12:22"
                ))
            })
        };
        let (min, max) = text.split_once(':').unwrap_or(("0", text));
        let sizes = Self::Powers { min_log: number(min)?, max_log: number(max)? };
        sizes.bytes().map(|_| sizes)
    }

    /// Parses the text of a file: sizes with an optional suffix K, M or G (powers of two), separated by blanks, line ends or
    /// commas; `#` begins a comment up to the end of the line.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] with the line number for an invalid size; for an empty list and sizes above
    /// [`LARGEST_SAMPLE_BYTES`].
    pub fn from_list(text: &str) -> Result<Self, PlanningError> {
        let mut list = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            for word in line.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()) {
                let size = parse_size(word);
                list.push(size.map_err(|e| PlanningError::argument(format!("list of sizes, line {number}: {e}")))?);
            }
        }
        let sizes = Self::List(list);
        sizes.bytes().map(|_| sizes)
    }

    /// All sizes in bytes, in the order of measurement.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] for exponents in the wrong order or above [`LARGEST_LOG`], an empty list, and sizes above
    /// [`LARGEST_SAMPLE_BYTES`].
    pub fn bytes(&self) -> Result<Vec<u64>, PlanningError> {
        match self {
            Self::Powers { min_log, max_log } if min_log > max_log => Err(PlanningError::argument(format!(
                "sizes from 2^{min_log} to 2^{max_log}: the first exponent must not be above the second one"
            ))),
            Self::Powers { max_log, .. } if *max_log > LARGEST_LOG => Err(PlanningError::argument(format!(
                "sizes up to 2^{max_log} bytes: the largest exponent is {LARGEST_LOG}, one call of MPI moves less than 2^31"
            ))),
            Self::Powers { min_log, max_log } => {
                Ok(std::iter::once(0).chain((*min_log..=*max_log).map(|log| 1 << log)).collect())
            }
            Self::List(list) if list.is_empty() => {
                Err(PlanningError::argument("the list of sizes is empty; give at least one"))
            }
            Self::List(list) if list.len() > MAX_SIZES => Err(PlanningError::argument(format!(
                "the list has {} sizes; {MAX_SIZES} can be measured in one run",
                list.len()
            ))),
            Self::List(list) => match list.iter().find(|size| **size > LARGEST_SAMPLE_BYTES) {
                Some(size) => Err(too_large(*size)),
                None => Ok(list.clone()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn logs(text: &str) -> Result<Vec<u64>, PlanningError> {
        SampleSizes::from_logs(text).and_then(|sizes| sizes.bytes())
    }

    fn list(text: &str) -> Result<Vec<u64>, PlanningError> {
        SampleSizes::from_list(text).and_then(|sizes| sizes.bytes())
    }

    #[test]
    fn powers_of_two_behind_zero() {
        let default = SampleSizes::default().bytes().unwrap();
        assert_eq!((default.len(), &default[..5], default[23]), (24, &[0, 1, 2, 4, 8][..], 4 << 20));
        assert_eq!(logs("22").unwrap(), default);
        assert_eq!(logs("16:16").unwrap(), [0, 65536]);
        assert_eq!(logs("2:7").unwrap(), [0, 4, 8, 16, 32, 64, 128]);
        assert_eq!(logs(" 0 : 0 ").unwrap(), [0, 1]);
        assert_eq!(logs("30:30").unwrap(), [0, 1 << 30]);
    }

    #[test]
    fn lists_stay_as_they_are() {
        assert_eq!(list("4M\n0, 5\n# nothing\n 4097 # odd\n5\n1K").unwrap(), [4 << 20, 0, 5, 4097, 5, 1024]);
        assert_eq!(list("2147483647").unwrap(), [LARGEST_SAMPLE_BYTES]);
    }

    #[test]
    fn nonsense_is_refused_with_the_cause() {
        for (text, cause) in [
            ("7:2", "must not be above"),
            ("31", "largest exponent is 30"),
            ("4294967296", "min:max"),
            ("", "min:max"),
            (":", "min:max"),
            ("1:2:3", "min:max"),
            ("-1", "min:max"),
            ("4K", "min:max"),
        ] {
            let error = logs(text).unwrap_err().to_string();
            assert!(error.contains(cause), "{text}: {error}");
        }
        for (text, cause) in
            [("", "empty"), ("# 4\n", "empty"), ("1\n2\n4x", "line 3"), ("-4", "line 1"), ("2G", "2^31 - 1")]
        {
            let error = list(text).unwrap_err().to_string();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn sizes_of_powers_ascend_from_zero(min_log in 0..=LARGEST_LOG, more in 0..=LARGEST_LOG) {
            let max_log = (min_log + more).min(LARGEST_LOG);
            let sizes = logs(&format!("{min_log}:{max_log}")).unwrap();
            prop_assert_eq!(sizes.len() as u32, max_log - min_log + 2);
            prop_assert_eq!((sizes[0], sizes[1], sizes[sizes.len() - 1]), (0, 1 << min_log, 1 << max_log));
            prop_assert!(sizes.windows(2).all(|w| w[0] < w[1]));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = (logs(&text), list(&text));
        }
    }
}
