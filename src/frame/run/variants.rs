//! Variants whose hints change nothing, because the library grants them what another contestant has.

use beff_backends::DriverOptions;
use beff_ffi::{Comm, MpiError};

use crate::frame::backends;
use crate::frame::run::availability::{skip_reason, SkippedBackend};
use crate::frame::run::granted_hints::granted_hints;
use crate::frame::run::run_dir::RunDir;

type Hints = Vec<(String, String)>;

/// Hints of a contestant, in the order of their keys.
struct GrantedHints {
    contestant: String,
    /// What it requests of a file.
    requested: Hints,
    /// What the library lists after the open; None if it could not be opened, which the run will report.
    granted: Option<Hints>,
}

/// What the contestants of a run request.
pub(crate) struct ContestantRequests<'a> {
    /// Names of the contestants: backends, then variants.
    pub(crate) contestants: &'a [String],
    /// Hints that a contestant requests of a file that is written.
    pub(crate) hints: &'a dyn Fn(&str) -> Hints,
    /// Options of its driver.
    pub(crate) driver: &'a dyn Fn(&str) -> DriverOptions,
    /// True if two contestants have the same options apart from hints.
    pub(crate) are_alike: &'a dyn Fn(&str, &str) -> bool,
}

/// The variants that would measure the same as a contestant before them with other hints: the library lists the same hints for both. Those
/// that request the same are controls, and run. Collective.
///
/// # Errors
/// MPI errors.
pub(crate) fn find_ineffective(
    world: &Comm,
    run_dir: &RunDir,
    requests: &ContestantRequests<'_>,
    not_run: &[SkippedBackend],
) -> Result<Vec<SkippedBackend>, MpiError> {
    let base = |name: &str| (requests.hints)(backends::backend_of(name));
    let has_own_hints = |name: &&String| backends::is_variant(name) && (requests.hints)(name) != base(name);
    if !requests.contestants.iter().any(|name| has_own_hints(&name)) {
        return Ok(Vec::new());
    }
    let can_ask =
        |name: &&String| backends::supports(name, |row| row.has_hints) && skip_reason(not_run, name).is_none();
    let mut all = Vec::new();
    for contestant in requests.contestants.iter().filter(can_ask) {
        let mut requested = (requests.hints)(contestant);
        let granted = match backends::row(contestant) {
            Some(row) => {
                let driver = (row.create)(&(requests.driver)(contestant));
                granted_hints(world, run_dir, driver.as_ref(), contestant, &requested)?
            }
            None => None,
        };
        requested.sort();
        all.push(GrantedHints { contestant: contestant.clone(), requested, granted });
    }
    Ok(ineffective(&all, requests.are_alike))
}

fn ineffective(all: &[GrantedHints], are_alike: &dyn Fn(&str, &str) -> bool) -> Vec<SkippedBackend> {
    let mut found: Vec<SkippedBackend> = Vec::new();
    for (place, own) in all.iter().enumerate().filter(|(_, own)| backends::is_variant(&own.contestant)) {
        let is_same = |before: &&GrantedHints| {
            skip_reason(&found, &before.contestant).is_none()
                && own.granted.is_some()
                && before.granted == own.granted
                && before.requested != own.requested
                && are_alike(&before.contestant, &own.contestant)
        };
        if let Some(before) = all[..place].iter().find(is_same) {
            let reason = format!("the library grants it the same hints as {}{}", before.contestant, refused(own));
            found.push(SkippedBackend { backend: own.contestant.clone(), reason });
        }
    }
    found
}

/// The requested hints that are not granted.
fn refused(own: &GrantedHints) -> String {
    let granted = |hint: &&(String, String)| own.granted.iter().flatten().any(|found| found == *hint);
    let missing: Vec<String> =
        own.requested.iter().filter(|hint| !granted(hint)).map(|(key, value)| format!("{key}={value}")).collect();
    match missing.len() {
        0 => String::new(),
        _ => format!(", without {}", missing.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(text: &str) -> Hints {
        let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        text.split_whitespace().filter_map(pair).collect()
    }

    /// Contestants with what they request and what is granted; a name with `-2` has another option, too.
    fn skipped(all: &[(&str, &str, Option<&str>)]) -> Vec<(String, String)> {
        let asked = all.iter().map(|(name, requested, granted)| GrantedHints {
            contestant: (*name).to_owned(),
            requested: hints(requested),
            granted: granted.map(hints),
        });
        let are_alike = |one: &str, other: &str| one.ends_with("-2") == other.ends_with("-2");
        let found = ineffective(&asked.collect::<Vec<_>>(), &are_alike);
        found.into_iter().map(|skipped| (skipped.backend, skipped.reason)).collect()
    }

    #[test]
    fn a_variant_with_the_hints_of_another_is_not_run() {
        let base = ("mpiio", "", Some("cb_nodes=1"));
        assert_eq!(skipped(&[base, ("mpiio+a", "cb_nodes=2", Some("cb_nodes=2"))]), []);
        let same_as = |name: &str, other: &str, without: &str| {
            (name.to_owned(), format!("the library grants it the same hints as {other}{without}"))
        };
        let unknown = ("mpiio+b", "nonsense=1", Some("cb_nodes=1"));
        assert_eq!(skipped(&[base, unknown]), [same_as("mpiio+b", "mpiio", ", without nonsense=1")]);
        assert_eq!(skipped(&[base, ("mpiio+c", "cb_nodes=1", Some("cb_nodes=1"))]), [same_as("mpiio+c", "mpiio", "")]);
        let two = ("mpiio+two", "cb_nodes=2", Some("cb_nodes=2"));
        let clipped = ("mpiio+nine", "cb_nodes=9", Some("cb_nodes=2"));
        assert_eq!(skipped(&[base, two, clipped]), [same_as("mpiio+nine", "mpiio+two", ", without cb_nodes=9")]);
    }

    #[test]
    fn what_may_differ_is_run() {
        let base = ("mpiio", "", Some("cb_nodes=1"));
        assert_eq!(skipped(&[base, ("mpiio+same", "", Some("cb_nodes=1"))]), [], "a control");
        assert_eq!(skipped(&[base, ("mpiio+a-2", "x=1", Some("cb_nodes=1"))]), [], "other options differ");
        assert_eq!(skipped(&[("mpiio", "", None), ("mpiio+a", "x=1", None)]), [], "nothing is known");
    }
}
