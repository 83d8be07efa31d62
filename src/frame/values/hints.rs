//! Requested hints that are not in force.

use crate::frame::records::{kinds, Warning};
use crate::frame::words::and_more;

pub(crate) type Hints = [(String, String)];

/// Creates the warning from pairs of requested hints and hints listed by the library.
pub(crate) fn ungranted_warning<'a>(
    asked_and_granted: impl Iterator<Item = (&'a Hints, &'a Hints)>,
    backend: &str,
) -> Option<Warning> {
    let mut missing: Vec<(&String, &String, Option<&String>)> = Vec::new();
    for (requested, granted) in asked_and_granted {
        for (key, wanted) in requested {
            let in_force = granted.iter().find(|(k, _)| k == key).map(|(_, value)| value);
            let hint = (key, wanted, in_force);
            if !in_force.is_some_and(|value| is_same(value, wanted)) && !missing.contains(&hint) {
                missing.push(hint);
            }
        }
    }
    let &(key, requested, granted) = missing.first()?;
    let hints = missing.len() as u64;
    let in_force = granted.map_or("the library does not list it".to_owned(), |value| format!("{value} is in force"));
    let warning =
        kinds::HINT_NOT_GRANTED.warning().for_backend(backend).with_figure("hints", hints).with_figure("key", key);
    Some(warning.with_figure("requested", requested).with_figure("granted", granted).with_text(
        format!("the library ignored the hint {key} = {requested}"),
        format!("{backend}: hint {key} = {requested} was requested, {in_force}{}.", and_more(hints, "hint")),
    ))
}

/// Ignores case and padding, which libraries change in values such as "enable".
fn is_same(granted: &str, wanted: &str) -> bool {
    granted.trim().eq_ignore_ascii_case(wanted.trim())
}
