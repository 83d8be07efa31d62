//! Where the profiler library for an MPI is. One is built for each binary interface.

use std::path::{Path, PathBuf};

use super::program::Abi;

/// Its file.
const NAME: &str = "libbeff_profiler.so";

/// A profiler says in its own file for which interface it was built.
const MARK: &[u8] = b"beff-profiler-abi=";

/// The profiler for `abi`: named by BEFF_PROFILER, or beside this program, in its `../lib/beff-raw`, or beside a build of it with another MPI.
pub fn find(abi: Abi) -> Option<PathBuf> {
    places().into_iter().find(|path| abi_of(path) == Some(abi))
}

/// The profilers that are there, each with its interface: this program's own first.
pub fn all() -> Vec<(PathBuf, Abi)> {
    let mut found: Vec<(PathBuf, Abi)> = Vec::new();
    for path in places() {
        match abi_of(&path) {
            Some(abi) if found.iter().all(|(_, other)| *other != abi) => found.push((path, abi)),
            _ => {}
        }
    }
    found
}

/// Any profiler, with its interface: this program's own first.
pub fn any() -> Option<(PathBuf, Abi)> {
    places().into_iter().find_map(|path| abi_of(&path).map(|abi| (path, abi)))
}

fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("BEFF_PROFILER").into_iter().map(PathBuf::from).collect();
    let Ok(program) = std::env::current_exe() else { return places };
    let Some(directory) = program.parent() else { return places };
    places.push(directory.join(NAME));
    if let Some(above) = directory.parent() {
        let installed = above.join("lib/beff-raw");
        places.push(installed.join(NAME));
        places.extend(entries(&installed).map(|inner| inner.join(NAME)));
        // target-mpich/release beside target-openmpi/release.
        let (profile, builds) = (directory.file_name().unwrap_or_default(), above.parent());
        places.extend(builds.into_iter().flat_map(entries).map(|build| build.join(profile).join(NAME)));
    }
    places
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found.into_iter()
}

fn abi_of(library: &Path) -> Option<Abi> {
    let bytes = std::fs::read(library).ok()?;
    let at = memchr::memmem::find(&bytes, MARK)?;
    let name = &bytes[at + MARK.len()..];
    [(&b"mpich"[..], Abi::Mpich), (b"openmpi", Abi::OpenMpi), (b"standard", Abi::Standard)]
        .into_iter()
        .find_map(|(word, abi)| name.starts_with(word).then_some(abi))
}
