//! What the command lines of several benchmarks are refused for: backends that are not there, options without an effect,
//! names that would lead elsewhere.

use std::fmt::Display;
use std::path::{Component, Path};

use crate::frame::backends::nearest;
use crate::frame::config::DirectPolicy;
use crate::frame::error::UsageError;

/// What the command line must know of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownBackend<'a> {
    /// Name as it is typed.
    pub name: &'a str,
    /// Can be asked for direct I/O.
    pub direct: bool,
    /// Takes MPI-IO hints and open modes.
    pub mpi: bool,
    /// Keeps several operations in flight.
    pub queue: bool,
    /// Collective patterns can be moved in two phases.
    pub two_phase: bool,
    /// Has a shared file pointer.
    pub shared_pointer: bool,
    /// Buffered transfers can drop their pages themselves (RWF_DONTCACHE).
    pub drops_pages: bool,
    /// Makes room before direct writes of new files.
    pub preallocates: bool,
    /// Files become longer by writing behind their end.
    pub grows_files: bool,
}

pub(crate) fn join<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

pub(crate) fn names(known: &[KnownBackend<'_>], which: impl Fn(&KnownBackend<'_>) -> bool) -> String {
    join(known.iter().filter(|backend| which(backend)).map(|backend| backend.name))
}

pub(crate) fn backends<'a>(asked: &[String], known: &[KnownBackend<'a>]) -> Result<Vec<KnownBackend<'a>>, UsageError> {
    let mut chosen: Vec<KnownBackend<'a>> = Vec::new();
    for name in asked {
        let Some(backend) = known.iter().find(|backend| backend.name == name) else {
            let near = nearest(name, known.iter().map(|backend| backend.name));
            let near = near.map_or(String::new(), |near| format!("Did you mean {near}? "));
            return Err(UsageError::new(
                format!("--backend: there is no backend '{name}' in this build"),
                format!("{near}Choose from: {}.", names(known, |_| true)),
            ));
        };
        if chosen.contains(backend) {
            return Err(UsageError::new(
                format!("--backend: '{name}' is listed twice"),
                "Name each backend once; several results of one backend come from several runs.",
            ));
        }
        chosen.push(*backend);
    }
    Ok(chosen)
}

/// Direct I/O can be required only of those that can be asked for it.
pub(crate) fn check_direct(
    direct: DirectPolicy,
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
) -> Result<(), UsageError> {
    let unable = names(chosen, |backend| !backend.direct);
    if direct != DirectPolicy::Required || unable.is_empty() {
        return Ok(());
    }
    Err(UsageError::new(
        format!("--direct required: {unable} cannot be asked for direct I/O"),
        format!("Take only backends that can ({}), or --direct auto.", names(known, |backend| backend.direct)),
    ))
}

/// An option that none of the backends looks at would be ignored silently: refused instead.
pub(crate) fn check_effect(
    given: bool,
    option: &str,
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
    able: impl Fn(&KnownBackend<'_>) -> bool,
) -> Result<(), UsageError> {
    if !given || chosen.iter().any(&able) {
        return Ok(());
    }
    Err(no_effect(option, chosen, &names(known, able)))
}

pub(crate) fn no_effect(option: &str, chosen: &[KnownBackend<'_>], able: &str) -> UsageError {
    UsageError::new(
        format!("{option} has no effect with --backend {}", names(chosen, |_| true).replace(", ", ",")),
        format!("Leave it out, or add a backend that uses it: {able}."),
    )
}

/// The directory is made directly under --path and removed afterwards: a path could lead anywhere.
pub(crate) fn check_run_dir(name: &str) -> Result<(), UsageError> {
    let mut parts = Path::new(name).components();
    let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    if plain {
        return Ok(());
    }
    Err(UsageError::new(
        format!("--run-dir '{name}': not a plain name"),
        "Give one name without '/'; the place is given with --path.",
    ))
}

pub(crate) fn check_out(prefix: &Path) -> Result<(), UsageError> {
    let text = prefix.as_os_str().to_string_lossy();
    if prefix.file_name().is_some() && !text.ends_with('/') && !text.ends_with("/.") {
        return Ok(());
    }
    Err(UsageError::new(
        format!("--out '{text}': names a directory, but the names of the output files begin with it"),
        "Give a prefix such as results/scratch, which becomes results/scratch.json.",
    ))
}
