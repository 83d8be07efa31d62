//! The launcher that `make install` puts into `bin`: it starts the program of the MPI whose launcher started it. Programs are substitutes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::Scratch;

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// An installation with programs that print their name and arguments; those of `broken` do not start.
fn installation(scratch: &Scratch, names: &[&str], broken: &[&str]) -> PathBuf {
    let launcher = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/beff-raw.sh")).unwrap();
    let prefix = scratch.join("a prefix");
    executable(&prefix.join("bin/beff-raw"), &launcher);
    let programs = prefix.join("libexec/beff-raw");
    for name in names {
        executable(&programs.join(format!("beff-raw-{name}")), &format!("#!/bin/sh\necho {name} \"$#:$*\"\n"));
    }
    for name in broken {
        let text = "#!/bin/sh\necho libmpi.so.12: cannot open shared object file >&2\nexit 127\n";
        executable(&programs.join(format!("beff-raw-{name}")), text);
    }
    prefix.join("bin/beff-raw")
}

fn start(program: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
    command.args(["io", "--path", "a b", "--"]).output().unwrap()
}

#[test]
fn the_launcher_of_each_mpi_starts_its_program() {
    let scratch = Scratch::new();
    let program = installation(&scratch, &["mpich", "openmpi"], &[]);
    let link = scratch.join("beff-raw");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    for (variables, name) in [
        (&[][..], "mpich"),
        (&[("PMI_SIZE", "2"), ("PMI_RANK", "1")], "mpich"),
        (&[("MPI_LOCALNRANKS", "2")], "mpich"),
        (&[("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_RANK", "0")], "openmpi"),
        (&[("BEFF_RAW_MPI", "openmpi"), ("PMI_SIZE", "2")], "openmpi"),
        (&[("BEFF_RAW_MPI", "openmpi"), ("SLURM_STEP_NUM_TASKS", "2")], "openmpi"),
    ] {
        for program in [&program, &link] {
            let found = start(program, variables);
            let text = String::from_utf8_lossy(&found.stdout).into_owned();
            assert_eq!(text, format!("{name} 4:io --path a b --\n"), "{variables:?}: {found:?}");
        }
    }
}

#[test]
fn the_program_of_the_standard_abi_stands_in_for_those_that_are_missing() {
    let abi = ("BEFF_RAW_MPI", "abi");
    let (pmi, open_mpi) = (("PMI_SIZE", "2"), ("OMPI_COMM_WORLD_SIZE", "2"));
    for (names, broken, variables, name) in [
        (&["abi", "mpich", "openmpi"][..], &[][..], &[][..], "mpich"),
        (&["abi", "mpich", "openmpi"], &[], &[pmi], "mpich"),
        (&["abi", "mpich", "openmpi"], &[], &[pmi, abi], "abi"),
        (&["abi", "openmpi"], &[], &[pmi], "abi"),
        (&["abi", "mpich"], &[], &[open_mpi], "abi"),
        // The native library is missing on this host.
        (&["abi"], &["openmpi"], &[open_mpi], "abi"),
        (&["abi"], &[], &[], "abi"),
    ] {
        let scratch = Scratch::new();
        let found = start(&installation(&scratch, names, broken), variables);
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(text.starts_with(&format!("{name} 4:io")), "{names:?} {variables:?}: {found:?}");
        let said = String::from_utf8_lossy(&found.stderr).into_owned();
        let expected =
            "beff-raw: the program for openmpi does not start here: libmpi.so.12: cannot open shared object file; \
                        that of the standard ABI is started instead\n";
        assert_eq!(said, if broken.is_empty() { "" } else { expected }, "{names:?} {variables:?}");
    }
    let scratch = Scratch::new();
    let found = start(&installation(&scratch, &["abi", "mpich"], &[]), &[("SLURM_STEP_NUM_TASKS", "2")]);
    let text = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(text.contains("programs for mpich abi; choose one: BEFF_RAW_MPI=mpich"), "{text}");
}

#[test]
fn what_cannot_be_decided_or_started_is_one_sentence() {
    for (names, broken, variables, parts) in [
        (
            &["mpich", "openmpi"][..],
            &[][..],
            &[("SLURM_STEP_NUM_TASKS", "2")][..],
            &["several MPIs", "BEFF_RAW_MPI=mpich"][..],
        ),
        (&["openmpi"], &[], &[("PMI_SIZE", "2")], &["mpich or intel", "programs for openmpi", "make install"]),
        (
            &["mpich"],
            &["openmpi"],
            &[("OMPI_COMM_WORLD_SIZE", "2")],
            &["for openmpi does not start here", "libmpi.so.12"],
        ),
        (&["mpich"], &[], &[("BEFF_RAW_MPI", "cray")], &["cray", "programs for mpich"]),
        (&[], &[], &[], &["no program is installed", "make install"]),
    ] {
        let scratch = Scratch::new();
        let found = start(&installation(&scratch, names, broken), variables);
        let text = String::from_utf8_lossy(&found.stderr).into_owned();
        assert_eq!((found.status.code(), text.lines().count()), (Some(2), 1), "{variables:?}: {text}");
        assert!(
            text.starts_with("beff-raw: ") && parts.iter().all(|part| text.contains(part)),
            "{variables:?}: {text}"
        );
    }
    // One program for all launchers; a program that starts, if there is no launcher.
    let scratch = Scratch::new();
    let found = start(&installation(&scratch, &["openmpi"], &[]), &[("SLURM_STEP_NUM_TASKS", "2")]);
    assert!(found.stdout.starts_with(b"openmpi "), "{found:?}");
    let scratch = Scratch::new();
    let found = start(&installation(&scratch, &["openmpi"], &["mpich"]), &[]);
    assert!(found.stdout.starts_with(b"openmpi "), "{found:?}");
}

/// A program that needs a library of MPI, which is then gone.
#[test]
fn without_any_mpi_what_calls_none_works_and_the_rest_says_why() {
    let scratch = Scratch::new();
    let launcher = installation(&scratch, &[], &[]);
    let directory = launcher.parent().unwrap().with_file_name("libexec").join("beff-raw");
    let cc = |text: &str, to: &Path, options: &[&str]| {
        let source = scratch.join("source.c");
        fs::write(&source, text).unwrap();
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let status = Command::new("cc").arg(&source).arg("-o").arg(to).args(options).status().unwrap();
        assert!(status.success(), "{options:?}");
    };
    let library = scratch.join("lib/libmpi_x.so.1");
    cc("void MPI_Init(void) {} int MPI_UNIVERSE;", &library, &["-shared", "-fPIC", "-Wl,-soname,libmpi_x.so.1"]);
    let program = directory.join("beff-raw-mpich");
    let text = "#include <stdio.h>\n#include <stdlib.h>\nvoid MPI_Init(void); extern int MPI_UNIVERSE;\n\
        int main(int n, char **argument) { const char *path = getenv(\"LD_LIBRARY_PATH\");\n\
        if (n > 4) MPI_Init(); printf(\"%s %d\\n\", path ? path : \"unset\", &MPI_UNIVERSE != 0); return 0; }";
    cc(text, &program, &["-fPIC", library.to_str().unwrap(), "-Wl,-z,now"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/without-mpi.sh");
    let status = Command::new(script).arg(&program).arg(directory.join("without-mpi")).status().unwrap();
    assert!(status.success());
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(&launcher);
        command.env_clear().env("PATH", "/usr/bin:/bin").envs(variables.iter().copied()).args(arguments);
        command.output().unwrap()
    };
    let of_library = [("LD_LIBRARY_PATH", library.parent().unwrap().to_str().unwrap())];
    assert!(run(&["a", "b", "c", "d"], &of_library).status.success());
    fs::remove_file(&library).unwrap();
    let shown = |variables: &[(&str, &str)]| String::from_utf8(run(&["report"], variables).stdout).unwrap();
    // Programs that this one starts do not find the substitute.
    assert_eq!((shown(&[]), shown(&[("LD_LIBRARY_PATH", "/x")])), ("unset 1\n".to_owned(), "/x 1\n".to_owned()));
    for (arguments, variables, lines) in
        [(&["a", "b", "c", "d"][..], &[][..], 2), (&["report"], &[("PMI_SIZE", "2")], 1)]
    {
        let refused = run(arguments, variables);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!((refused.status.code(), said.lines().count()), (Some(2), lines), "{said}");
        assert!(
            said.contains("the program for mpich does not start here: ") && said.contains("libmpi_x.so.1"),
            "{said}"
        );
    }
}
