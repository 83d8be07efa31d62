//! Capabilities of the backends of this build, by name. Results may name backends that this build does not have.

use std::convert::Infallible;

use beff_backends::{driver, drivers, DriverRow};

/// Other spellings: those of io_uring, and those of MPI-IO in papers and other programs.
const ALIASES: [(&str, &str); 7] = [
    ("io_uring", "uring"),
    ("io-uring", "uring"),
    ("iouring", "uring"),
    ("liburing", "uring"),
    ("mpi-io", "mpiio"),
    ("mpi_io", "mpiio"),
    ("mpi", "mpiio"),
];

/// Name of a backend as this program writes it, for any spelling. Other words are unchanged.
///
/// # Errors
/// None.
pub(crate) fn canonical_name(typed: &str) -> Result<String, Infallible> {
    let small = typed.to_ascii_lowercase();
    let name = ALIASES.iter().find(|(alias, _)| *alias == small).map_or(small.as_str(), |(_, name)| name);
    Ok(driver(name).map_or(typed, |row| row.name).to_owned())
}

/// The name most similar to a wrong one; None if none is similar.
pub(crate) fn nearest_name<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(&wrong.to_ascii_lowercase(), name);
    let near = names.into_iter().map(|name| (name, likeness(name))).filter(|(_, likeness)| *likeness > 0.7);
    near.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(name, _)| name)
}

/// Between the backend and the name of a variant in the name of a contestant: `posix+deep`. Valid in names of files.
pub(crate) const VARIANT_MARK: char = '+';

/// Backend of a contestant, which is a backend or a variant of one.
pub(crate) fn backend_of(contestant: &str) -> &str {
    contestant.split_once(VARIANT_MARK).map_or(contestant, |(backend, _)| backend)
}

/// Name of a variant without its backend; None for a backend.
pub(crate) fn variant_name(contestant: &str) -> Option<&str> {
    contestant.split_once(VARIANT_MARK).map(|(_, name)| name)
}

/// True for a variant, false for a backend.
pub(crate) fn is_variant(contestant: &str) -> bool {
    contestant.contains(VARIANT_MARK)
}

/// Driver of a contestant.
pub(crate) fn row(contestant: &str) -> Option<&'static DriverRow> {
    driver(backend_of(contestant))
}

/// True if the backend of this contestant has the capability `what`.
pub(crate) fn supports(name: &str, what: impl Fn(&DriverRow) -> bool) -> bool {
    row(name).is_some_and(what)
}

/// True if one of these backends has the capability `what`.
pub(crate) fn any_supports(names: &[String], what: impl Fn(&DriverRow) -> bool) -> bool {
    names.iter().any(|name| supports(name, &what))
}

/// The backends of this kind as a phrase of the help.
pub(crate) fn list_for_help(which: impl Fn(&DriverRow) -> bool) -> String {
    let note = |row: &DriverRow| if row.uses_space { "" } else { " (transfers nothing: overhead of the harness)" };
    let names: Vec<_> =
        drivers().iter().filter(|row| which(row)).map(|row| format!("{}{}", row.name, note(row))).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ways_to_write_a_name_mean_the_same() {
        for (typed, name) in
            [("io_uring", "uring"), ("MPI-IO", "mpiio"), ("POSIX", "posix"), ("mmap", "mmap"), ("x", "x")]
        {
            assert_eq!(canonical_name(typed).as_deref(), Ok(name));
        }
        assert!(ALIASES.iter().all(|(alias, name)| driver(alias).is_none() && driver(name).is_some()));
    }

    #[test]
    fn a_variant_has_the_capabilities_of_its_backend() {
        assert_eq!((backend_of("uring+deep-2"), backend_of("uring")), ("uring", "uring"));
        assert!(is_variant("uring+deep") && !is_variant("uring"));
        assert!(supports("uring+deep", |row| row.has_queue) && !supports("deep", |row| row.has_queue));
        // Otherwise a backend would be read as a variant of another.
        assert!(drivers().iter().all(|row| !is_variant(row.name)));
    }

    #[test]
    fn the_nearest_name_is_near() {
        let nearest = |wrong| nearest_name(wrong, ["mpiio", "posix", "uring", "mmap", "null"]);
        for (wrong, name) in [("posxi", "posix"), ("urnig", "uring"), ("Mpio", "mpiio"), ("map", "mmap")] {
            assert_eq!(nearest(wrong), Some(name), "{wrong}");
        }
        assert_eq!((nearest("hdf5"), nearest("")), (None, None));
    }
}
