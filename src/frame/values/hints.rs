//! Hints asked for and not in force.

use crate::frame::records::{kinds, Warning};
use crate::frame::words::others;

/// Hints as key and value.
pub(crate) type Hints = [(String, String)];

/// The warning that follows from pairs of what was asked for and what the library lists.
pub(crate) fn missing<'a>(
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
    let warning = kinds::HINT_NOT_GRANTED.warning().of(backend).figure("hints", hints).figure("key", key);
    Some(warning.figure("requested", requested).figure("granted", granted).told(
        format!("the library did not take the hint {key} = {requested}"),
        format!("{backend}: hint {key} = {requested} was asked for, {in_force}{}.", others(hints, "hint")),
    ))
}

/// Libraries change the case of words such as "enable" and pad values.
fn is_same(granted: &str, wanted: &str) -> bool {
    granted.trim().eq_ignore_ascii_case(wanted.trim())
}
