//! Environment variables with limits, for libraries that do not return from a call.

use beff_ffi::collective_timeout;

use crate::frame::error::UsageError;

/// Seconds after which ranks that an MPI library leaves waiting are ended: [`collective_timeout`].
const STRANDED: &str = "BEFF_RAW_STRANDED_SECONDS";
/// Seconds that MPI_Finalize may take.
pub(super) const FINALIZE: &str = "BEFF_RAW_FINALIZE_SECONDS";

/// The limits of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub stranded_seconds: u64,
    /// As given; the default depends on the library.
    pub finalize_seconds: Option<u64>,
}

impl Limits {
    /// # Errors
    /// A value that is not a number of seconds: ignored, it would silently become the default.
    pub fn of(env: impl Fn(&str) -> Option<String>) -> Result<Self, UsageError> {
        let seconds = |name: &str| env(name).map(|text| parse(name, &text)).transpose();
        Ok(Self {
            stranded_seconds: seconds(STRANDED)?.unwrap_or(collective_timeout::DEFAULT_LIMIT_SECONDS),
            finalize_seconds: seconds(FINALIZE)?,
        })
    }
}

fn parse(name: &str, text: &str) -> Result<u64, UsageError> {
    text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
        UsageError::new(
            format!("{name}={text} is not a number of seconds"),
            "Give a whole number above 0, or unset the variable.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_seconds_or_refused() {
        let default = Limits { stranded_seconds: collective_timeout::DEFAULT_LIMIT_SECONDS, finalize_seconds: None };
        assert_eq!(Limits::of(|_| None).unwrap(), default);
        for name in [STRANDED, FINALIZE] {
            let given = |text: &'static str| Limits::of(move |asked| (asked == name).then(|| text.to_owned()));
            let limits = given("600").unwrap();
            assert!(limits != default && (limits.stranded_seconds == 600 || limits.finalize_seconds == Some(600)));
            for odd in ["", "0", "-1", "5s", "1e9"] {
                let error = given(odd).unwrap_err();
                assert!(error.to_string().contains(name), "{error}");
                assert!(error.next_step.contains("above 0"), "{error}");
            }
        }
    }
}
