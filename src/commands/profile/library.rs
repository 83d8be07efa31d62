//! Finds the profiler library for an MPI. One is built for each binary interface (ABI).

use std::path::{Path, PathBuf};

use super::program::Abi;

const LIBRARY_NAME: &str = "libbeff_profiler.so";

/// Marker in a profiler, followed by the interface for which it was built.
const ABI_MARKER: &[u8] = b"beff-profiler-abi=";

/// The profiler for `abi`: named by BEFF_PROFILER, or in the directory of this program, in its `../lib/beff-raw`, or next to a build of
/// it with another MPI.
pub fn find(abi: Abi) -> Option<PathBuf> {
    candidate_paths().into_iter().find(|path| read_abi(path) == Some(abi))
}

/// All available profilers, each with its interface; that of this program first.
pub fn find_all() -> Vec<(PathBuf, Abi)> {
    let mut found: Vec<(PathBuf, Abi)> = Vec::new();
    for path in candidate_paths() {
        match read_abi(&path) {
            Some(abi) if found.iter().all(|(_, other)| *other != abi) => found.push((path, abi)),
            _ => {}
        }
    }
    found
}

pub fn find_any() -> Option<(PathBuf, Abi)> {
    candidate_paths().into_iter().find_map(|path| read_abi(&path).map(|abi| (path, abi)))
}

fn candidate_paths() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("BEFF_PROFILER").into_iter().map(PathBuf::from).collect();
    let Ok(program) = std::env::current_exe() else { return places };
    let Some(directory) = program.parent() else { return places };
    places.push(directory.join(LIBRARY_NAME));
    if let Some(above) = directory.parent() {
        let installed = above.join("lib/beff-raw");
        places.push(installed.join(LIBRARY_NAME));
        places.extend(sorted_entries(&installed).map(|inner| inner.join(LIBRARY_NAME)));
        // target-mpich/release next to target-openmpi/release.
        let (profile, builds) = (directory.file_name().unwrap_or_default(), above.parent());
        places.extend(builds.into_iter().flat_map(sorted_entries).map(|build| build.join(profile).join(LIBRARY_NAME)));
    }
    places
}

fn sorted_entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found.into_iter()
}

fn read_abi(library: &Path) -> Option<Abi> {
    let bytes = std::fs::read(library).ok()?;
    let at = memchr::memmem::find(&bytes, ABI_MARKER)?;
    let name = &bytes[at + ABI_MARKER.len()..];
    [(&b"mpich"[..], Abi::Mpich), (b"openmpi", Abi::OpenMpi), (b"standard", Abi::Standard)]
        .into_iter()
        .find_map(|(word, abi)| name.starts_with(word).then_some(abi))
}
