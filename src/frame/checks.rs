//! Checks of the command lines of several benchmarks: unknown backends, options without effect, names that lead elsewhere.

use std::fmt::Display;
use std::path::{Component, Path};

use crate::frame::backends::nearest_name;
use crate::frame::config::DirectPolicy;
use crate::frame::error::UsageError;
use crate::frame::options::StorageArgs;
use crate::frame::records::StorageKey;

/// Capabilities of a backend for the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendCapabilities<'a> {
    /// Name on the command line.
    pub name: &'a str,
    /// Supports direct I/O.
    pub direct: bool,
    /// Accepts MPI-IO hints and open modes.
    pub mpi: bool,
    /// Keeps several operations in flight.
    pub queue: bool,
    /// Supports two-phase collective patterns.
    pub two_phase: bool,
    /// Has a shared file pointer.
    pub shared_pointer: bool,
    /// Buffered transfers can drop their pages (RWF_DONTCACHE).
    pub drops_pages: bool,
    /// Preallocates before direct writes of new files.
    pub preallocates: bool,
    /// Files grow by writes beyond their end.
    pub grows_files: bool,
}

/// Parameters of the storage, in the order of the sheet.
///
/// # Errors
/// One that is given twice.
pub(crate) fn storage_parameters(args: &StorageArgs) -> Result<Vec<(StorageKey, String)>, UsageError> {
    let mut all = args.storage.clone();
    all.sort_by_key(|(key, _)| *key);
    match all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(UsageError::new(
            format!("--storage: {} is given twice, as {} and {}", pair[0].0.name(), pair[0].1, pair[1].1),
            "Give each parameter once.",
        )),
        None => Ok(all),
    }
}

pub(crate) fn join<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

pub(crate) fn backend_names(
    known: &[BackendCapabilities<'_>],
    which: impl Fn(&BackendCapabilities<'_>) -> bool,
) -> String {
    join(known.iter().filter(|backend| which(backend)).map(|backend| backend.name))
}

pub(crate) fn backends<'a>(
    asked: &[String],
    known: &[BackendCapabilities<'a>],
) -> Result<Vec<BackendCapabilities<'a>>, UsageError> {
    let mut chosen: Vec<BackendCapabilities<'a>> = Vec::new();
    for name in asked {
        let Some(backend) = known.iter().find(|backend| backend.name == name) else {
            let near = nearest_name(name, known.iter().map(|backend| backend.name));
            let near = near.map_or(String::new(), |near| format!("Did you mean {near}? "));
            return Err(UsageError::new(
                format!("--backend: there is no backend '{name}' in this build"),
                format!("{near}Choose from: {}.", backend_names(known, |_| true)),
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

/// Refuses `required` for backends without direct I/O.
pub(crate) fn check_direct(
    direct: DirectPolicy,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    let unable = backend_names(chosen, |backend| !backend.direct);
    if direct != DirectPolicy::Required || unable.is_empty() {
        return Ok(());
    }
    Err(UsageError::new(
        format!("--direct required: {unable} cannot do direct I/O"),
        format!("Use only backends that can ({}), or --direct auto.", backend_names(known, |backend| backend.direct)),
    ))
}

/// Refuses `--dio-align` if no transfer can be direct.
pub(crate) fn check_dio_align(
    given: Option<u64>,
    direct: DirectPolicy,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    check_option_effect(given.is_some(), "--dio-align", chosen, known, |backend| backend.direct)?;
    let may_be_direct =
        |backend: &BackendCapabilities<'_>| backend.direct && direct.of(backend.name) != DirectPolicy::Off;
    if given.is_none() || chosen.iter().any(may_be_direct) {
        return Ok(());
    }
    Err(UsageError::new(
        "--dio-align has no effect: no transfer is direct with these --backend and --direct",
        "Omit it, or add --direct auto.",
    ))
}

/// Refuses an option that no backend uses, instead of ignoring it.
pub(crate) fn check_option_effect(
    given: bool,
    option: &str,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
    able: impl Fn(&BackendCapabilities<'_>) -> bool,
) -> Result<(), UsageError> {
    if !given || chosen.iter().any(&able) {
        return Ok(());
    }
    Err(no_effect(option, chosen, &backend_names(known, able)))
}

pub(crate) fn no_effect(option: &str, chosen: &[BackendCapabilities<'_>], able: &str) -> UsageError {
    UsageError::new(
        format!("{option} has no effect with --backend {}", backend_names(chosen, |_| true).replace(", ", ",")),
        format!("Omit it, or add a backend that uses it: {able}."),
    )
}

/// The directory is created directly under --path and removed afterwards: a path could lead anywhere.
pub(crate) fn check_run_dir(name: &str) -> Result<(), UsageError> {
    let mut parts = Path::new(name).components();
    let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    if plain {
        return Ok(());
    }
    Err(UsageError::new(
        format!("--run-dir '{name}': not a plain name"),
        "Give one name without '/'; its parent directory is --path.",
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
