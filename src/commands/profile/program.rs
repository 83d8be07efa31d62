//! Determines which MPI a command uses, without running any of it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::words::setting_values;

/// Binary interfaces of MPI libraries: a program compiled for one does not work with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// MPICH, Intel MPI, MVAPICH, Cray MPI.
    Mpich,
    /// Open MPI.
    OpenMpi,
    /// Standard ABI of MPI-5.
    Standard,
}

impl Abi {
    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH",
            Self::OpenMpi => "Open MPI",
            Self::Standard => "the standard ABI of MPI-5",
        }
    }

    fn from_soname(soname: &str) -> Option<Self> {
        let is = |prefix: &str| soname.starts_with(prefix);
        if is("libmpi_abi.so") {
            Some(Self::Standard)
        } else if is("libmpich.so") || is("libmpi.so.12") || is("libmpi_intel.so") || is("libmpi_cray.so") {
            Some(Self::Mpich)
        } else if is("libmpi.so.40") || is("libmpi.so.20") || is("libmpi.so.80") {
            Some(Self::OpenMpi)
        } else {
            None
        }
    }
}

/// How the program of a command uses MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MpiLinkage {
    /// A program that links this MPI.
    Links(Abi, PathBuf),
    /// A statically linked program.
    Static(PathBuf),
    /// The program or its interpreter links no MPI, but may load one.
    Loads(PathBuf),
    /// No word is a program.
    NotFound,
}

/// Examines the words after the launcher: the first program that links MPI, also through a script, an interpreter or `env`.
pub fn find(words: &[OsString], is_launched: bool) -> MpiLinkage {
    let mut first = MpiLinkage::NotFound;
    let mut rest = words.iter().skip(usize::from(is_launched));
    while let Some(word) = rest.next() {
        if let (Some(last_value), true) = (setting_values(word).checked_sub(1), is_launched) {
            rest.nth(last_value);
            continue;
        }
        let Some(path) = executable(word).filter(|path| !is_shared_library(path)) else { continue };
        let found = inspect(&path, 4);
        if matches!(found, MpiLinkage::Links(..)) {
            return found;
        }
        if first == MpiLinkage::NotFound {
            first = found;
        }
        // The value of an option may be the name of a program, but arguments of a static program are not examined.
        if matches!(first, MpiLinkage::Static(_)) {
            break;
        }
    }
    first
}

/// File of a word, as the shell would find it.
pub fn executable(word: &OsStr) -> Option<PathBuf> {
    if word.to_string_lossy().starts_with('-') {
        return None;
    }
    let runs = |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if word.to_string_lossy().contains('/') {
        return Some(PathBuf::from(word)).filter(|path| runs(path));
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|directory| directory.join(word)).find(|path| runs(path))
}

fn inspect(path: &Path, depth: u32) -> MpiLinkage {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(1 << 12).read_to_end(&mut begin));
    if read.is_err() {
        return MpiLinkage::Loads(path.to_owned());
    }
    if let Some(line) = begin.strip_prefix(b"#!") {
        return inspect_script(path, line, depth);
    }
    match dynamic_linker(path) {
        Some(loader) => inspect_dynamic(&loader, path),
        None if begin.starts_with(b"\x7fELF") => MpiLinkage::Static(path.to_owned()),
        None => MpiLinkage::Loads(path.to_owned()),
    }
}

/// A script links what its interpreter links, and may start anything.
fn inspect_script(path: &Path, line: &[u8], depth: u32) -> MpiLinkage {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let interpreters = line.split_whitespace().filter_map(|word| executable(OsStr::new(word)));
    let links = |interpreter: PathBuf| match inspect(&interpreter, depth - 1) {
        MpiLinkage::Links(abi, _) => Some(MpiLinkage::Links(abi, path.to_owned())),
        _ => None,
    };
    let found = if depth == 0 { None } else { interpreters.into_iter().find_map(links) };
    found.unwrap_or_else(|| MpiLinkage::Loads(path.to_owned()))
}

/// True for a shared library without a dynamic linker of its own. A static program that can be loaded at any address says that it is a
/// program.
fn is_shared_library(path: &Path) -> bool {
    let flags = || {
        let mut file = File::open(path).ok()?;
        let mut elf = elf::ElfStream::<elf::endian::AnyEndian, _>::open_stream(&mut file).ok()?;
        let is_program = elf.segments().iter().any(|segment| segment.p_type == elf::abi::PT_INTERP);
        if is_program || elf.ehdr.e_type != elf::abi::ET_DYN {
            return None;
        }
        let table = elf.dynamic().ok()??;
        Some(table.iter().find(|entry| entry.d_tag == elf::abi::DT_FLAGS_1).map_or(0, |entry| entry.d_val()))
    };
    flags().is_some_and(|flags| flags & elf::abi::DF_1_PIE.unsigned_abs() == 0)
}

/// The dynamic linker that a program names; None for anything else.
fn dynamic_linker(path: &Path) -> Option<PathBuf> {
    let mut file = File::open(path).ok()?;
    let elf = elf::ElfStream::<elf::endian::AnyEndian, _>::open_stream(&mut file).ok()?;
    let segment = *elf.segments().iter().find(|segment| segment.p_type == elf::abi::PT_INTERP)?;
    // File names are shorter than this; a damaged program may contain any length.
    let mut name = vec![0; usize::try_from(segment.p_filesz.min(4096)).ok()?];
    file.read_exact_at(&mut name, segment.p_offset).ok()?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

/// Queries the dynamic linker for the libraries of a program: it follows run paths, the cache and the environment, and runs nothing.
fn inspect_dynamic(loader: &Path, path: &Path) -> MpiLinkage {
    let output = Command::new(loader).arg("--list").arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Ok(output) = output else { return MpiLinkage::Loads(path.to_owned()) };
    let libraries = String::from_utf8_lossy(&output.stdout).into_owned();
    let abi = libraries.lines().filter_map(|line| line.split_whitespace().next()).find_map(|library| {
        Abi::from_soname(Path::new(library).file_name().unwrap_or_default().to_string_lossy().as_ref())
    });
    abi.map_or_else(|| MpiLinkage::Loads(path.to_owned()), |abi| MpiLinkage::Links(abi, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn libraries_have_their_interface() {
        for (soname, abi) in [
            ("libmpich.so.12", Some(Abi::Mpich)),
            ("libmpi.so.12", Some(Abi::Mpich)),
            ("libmpi.so.40", Some(Abi::OpenMpi)),
            ("libmpi_abi.so.1", Some(Abi::Standard)),
            ("libmpi_mpifh.so.40", None),
            ("libc.so.6", None),
        ] {
            assert_eq!(Abi::from_soname(soname), abi, "{soname}");
        }
    }

    #[test]
    fn this_test_links_the_mpi_it_was_built_with() {
        let me = std::env::current_exe().unwrap();
        let expected = match beff_ffi::built_with() {
            mpi if mpi.starts_with("Open MPI") => Abi::OpenMpi,
            mpi if mpi.starts_with("the standard ABI") => Abi::Standard,
            _ => Abi::Mpich,
        };
        assert_eq!(inspect(&me, 4), MpiLinkage::Links(expected, me.clone()));
        let line = [OsString::from("mpirun"), "-n".into(), "2".into(), "env".into(), "A=1".into(), me.clone().into()];
        assert_eq!(find(&line, true), MpiLinkage::Links(expected, me));
    }

    #[test]
    fn scripts_and_plain_programs_may_load_one() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("run me");
        std::fs::write(&script, "#!/bin/sh\nexec true\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(inspect(&script, 4), MpiLinkage::Loads(script.clone()));
        assert!(matches!(find(&words("true"), false), MpiLinkage::Loads(_)));
        assert_eq!(find(&words("mpirun -n 2 ./surely-not-there"), true), MpiLinkage::NotFound);
    }

    /// Compiles a program or library of C without MPI; None if there is no static C library.
    fn compiled(directory: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
        let (source, program) = (directory.join("main.c"), directory.join(name));
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let done = Command::new("cc").args(options).arg(&source).arg("-o").arg(&program).output().unwrap();
        done.status.success().then_some(program)
    }

    #[test]
    fn a_library_or_the_value_of_an_option_is_not_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let library = compiled(directory.path(), "x.so", &["-shared", "-fPIC"]).unwrap();
        let me = std::env::current_exe().unwrap();
        assert!(is_shared_library(&library) && !is_shared_library(&me));
        let line = |option: &str, name: &str, value: &Path, program: &Path| {
            ["mpirun", option, name].map(OsString::from).into_iter().chain([value.into(), program.into()]).collect()
        };
        let find = |line: Vec<OsString>| find(&line, true);
        assert!(matches!(find(line("-genv", "LD_PRELOAD", &library, &me)), MpiLinkage::Links(_, path) if path == me));
        assert_eq!(find(line("-n", "2", &library, Path::new("./not-there"))), MpiLinkage::NotFound);
        for (name, options) in [("static", &["-static"][..]), ("static-pie", &["-static-pie", "-fPIE"])] {
            match compiled(directory.path(), name, options) {
                Some(program) => {
                    assert_eq!(find(line("-n", "2", &library, &program)), MpiLinkage::Static(program.clone()));
                    let found = find(line("-env", "SHELL", &program, &me));
                    assert!(matches!(found, MpiLinkage::Links(..)), "{found:?}");
                }
                None => eprintln!("SKIPPED: no static C library: {name}"),
            }
        }
    }
}
