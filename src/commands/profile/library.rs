//! Finds the profiler library for an MPI. One is built for each binary interface (ABI).

use std::path::{Path, PathBuf};

use super::program::Abi;
use crate::frame::paths::quoted_word;

const LIBRARY_NAME: &str = "libbeff_profiler.so";

/// Marker in a profiler, followed by the interface for which it was built.
const ABI_MARKER: &[u8] = b"beff-profiler-abi=";

/// The profiler for `abi`: named by BEFF_PROFILER, or in the directory of this program, in the `lib/beff-raw` of its prefix (the program is
/// in `libexec/beff-raw` or `bin`), or next to a build of it with another MPI.
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

/// Command that builds a profiler where this program finds it; `abi`: for another MPI than that of this program.
pub fn build_command(abi: Option<Abi>) -> String {
    let program = std::env::current_exe().unwrap_or_default();
    command_for(&program, abi, Path::is_file)
}

/// In a checkout each MPI has a target directory, `target-mpich` for `scripts/env.sh mpich`.
fn command_for(program: &Path, abi: Option<Abi>, is_file: impl Fn(&Path) -> bool) -> String {
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
    let (profile, target) = (name(program.parent()), program.parent().and_then(Path::parent));
    let checkout = target.and_then(Path::parent).filter(|root| is_file(&root.join("scripts/env.sh")));
    let own = name(target).and_then(|target| target.strip_prefix("target-").map(str::to_owned));
    let other = match abi {
        None => own.clone(),
        Some(Abi::Mpich) => Some("mpich".to_owned()),
        Some(Abi::OpenMpi) => Some("openmpi".to_owned()),
        Some(Abi::Standard) => Some("abi".to_owned()),
    };
    match (checkout, profile, own, other) {
        (Some(root), Some(profile), Some(_), Some(mpi)) => {
            let profile = if profile == "debug" { "dev" } else { &profile };
            let root = quoted_word(root.as_os_str());
            format!("cd {root} && eval \"$(scripts/env.sh {mpi})\" && cargo build --profile {profile} -p beff-profiler")
        }
        _ => {
            let is_in = |place: &str| program.parent().is_some_and(|directory| directory.ends_with(place));
            let prefix = match (is_in("bin"), is_in("libexec/beff-raw")) {
                (true, _) => target,
                (_, true) => target.and_then(Path::parent),
                _ => None,
            };
            let prefix =
                prefix.map_or_else(String::new, |prefix| format!(" PREFIX={}", quoted_word(prefix.as_os_str())));
            let wrapper = abi.map_or_else(String::new, |abi| format!(" MPICC=<mpicc of {}>", abi.name()));
            format!("make install{prefix}{wrapper}, in the source directory of this program")
        }
    }
}

fn candidate_paths() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("BEFF_PROFILER").into_iter().map(PathBuf::from).collect();
    let Ok(program) = std::env::current_exe() else { return places };
    let Some(directory) = program.parent() else { return places };
    places.push(directory.join(LIBRARY_NAME));
    if let Some(above) = directory.parent() {
        for prefix in [Some(above), above.parent()].into_iter().flatten() {
            places.extend(sorted_entries(&prefix.join("lib/beff-raw")).map(|inner| inner.join(LIBRARY_NAME)));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_builds_where_the_program_looks() {
        let of = |program: &str, abi| command_for(Path::new(program), abi, |path| path.starts_with("/src"));
        assert_eq!(
            of("/src/a b/target-mpich/release/beff-raw", None),
            "cd '/src/a b' && eval \"$(scripts/env.sh mpich)\" && cargo build --profile release -p beff-profiler"
        );
        assert!(of("/src/target-mpich/debug/beff-raw", Some(Abi::OpenMpi))
            .ends_with("env.sh openmpi)\" && cargo build --profile dev -p beff-profiler"));
        assert_eq!(
            of("/opt/x/bin/beff-raw", None),
            "make install PREFIX=/opt/x, in the source directory of this program"
        );
        assert!(of("/opt/x/libexec/beff-raw/beff-raw-mpich", None).starts_with("make install PREFIX=/opt/x, in"));
        assert!(of("/src/target-mpich/release/beff-raw", Some(Abi::Standard)).contains("env.sh abi)\" && cargo build"));
        let other = of("/opt/x/bin/beff-raw", Some(Abi::Standard));
        assert!(other.contains(" MPICC=<mpicc of the standard ABI of MPI-5>"), "{other}");
        assert!(of("beff-raw", None).starts_with("make install, in"));
    }

    /// The documents go on with `beff-raw profile`.
    #[test]
    fn make_run_builds_the_profiler() {
        let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/run.sh")).unwrap();
        let build = script.lines().find(|line| line.starts_with("cargo build")).unwrap();
        assert!(build.contains("-p beff-raw -p beff-profiler"), "{build}");
    }
}
