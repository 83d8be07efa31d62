//! What the backends of this build can do, by their names. Results may name backends that this build has not.

use beff_backends::{driver, drivers, DriverRow};

/// True if the backend of this name can do `what`.
pub(crate) fn can(name: &str, what: impl Fn(&DriverRow) -> bool) -> bool {
    driver(name).is_some_and(what)
}

/// True if one of these backends can do `what`.
pub(crate) fn any_can(names: &[String], what: impl Fn(&DriverRow) -> bool) -> bool {
    names.iter().any(|name| can(name, &what))
}

/// The backends of this kind in a sentence of the help.
pub(crate) fn listed(which: impl Fn(&DriverRow) -> bool) -> String {
    let note = |row: &DriverRow| if row.uses_space { "" } else { " (moves nothing: cost of the program itself)" };
    let names: Vec<_> =
        drivers().iter().filter(|row| which(row)).map(|row| format!("{}{}", row.name, note(row))).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}
