//! Markers of HDF5, with a small library of the same functions.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use beff_trace::raw::Event;
use support::TestProgram;

/// Builds a library from the source of the program.
fn build(dir: &Path, name: &str, options: &[&str]) -> PathBuf {
    let library = dir.join(name);
    let mut command = Command::new(support::mpicc());
    command.args(["-shared", "-fPIC"]).arg(support::source("hdf5.c")).args(options).arg("-o").arg(&library);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// Functions of all calls, with names and flags of markers.
fn recorded(scene: &TestProgram) -> Vec<String> {
    let show = |event| match event {
        Event::Call(call) => match (call.name, call.flag) {
            (Some(name), Some(true)) => Some(format!("({name}")),
            (None, Some(false)) => Some(")".to_owned()),
            _ => Some(call.function.name().to_owned()),
        },
        _ => None,
    };
    scene.file(0).events().filter_map(show).collect()
}

#[test]
fn calls_of_hdf5_enclose_those_of_mpi() {
    let dir = tempfile::tempdir().unwrap();
    let library = build(dir.path(), "libhdf5.so", &["-DLIBRARY=1"]);
    let run_path = format!("-Wl,-rpath,{}", dir.path().display());
    let scene = TestProgram::new("hdf5.c", &["-DLINKED", library.to_str().unwrap(), &run_path]).unwrap();
    let run = scene.record(1, &[], &["linked"]);
    assert_eq!((run.code, run.stdout.concat()), (Some(0), "right".to_owned()), "{:?}", run.stderr);
    let expected =
        "Init File_open (H5Fcreate a.h5 ) (H5Dcreate /set ) (H5Dcreate /old ) (H5Dwrite /group/set File_write_at ) \
                    (H5Dread /group/set ) (H5Fclose ) (H5Fopen b.h5 ) File_close Finalize";
    assert_eq!(recorded(&scene).join(" "), expected);
}

/// As extensions of Python do: the linker would bind each to its own library.
#[test]
fn each_caller_reaches_its_own_hdf5() {
    let dir = tempfile::tempdir().unwrap();
    let run_path = format!("-Wl,-rpath,{}", dir.path().display());
    let mut extensions = Vec::new();
    for number in ["1", "2"] {
        let name = format!("libhdf5-{number}.so");
        let library = build(dir.path(), &name, &[&format!("-DLIBRARY={number}"), &format!("-Wl,-soname,{name}")]);
        let options = ["-DEXTENSION", library.to_str().unwrap(), &run_path];
        extensions.push(build(dir.path(), &format!("extension-{number}.so"), &options));
    }
    let scene = TestProgram::new("hdf5.c", &["-ldl"]).unwrap();
    let [one, two] = [&extensions[0], &extensions[1]].map(|path| path.to_str().unwrap());
    let run = scene.record(1, &[], &["private", one, two]);
    assert_eq!((run.code, run.stdout.concat()), (Some(0), "right".to_owned()), "{:?} {:?}", run.stdout, run.stderr);
    assert!(recorded(&scene).iter().any(|call| call == "(H5Dwrite /group/set"), "{:?}", recorded(&scene));
}

#[test]
fn a_program_without_hdf5_has_no_markers() {
    let scene = TestProgram::new("hdf5.c", &["-ldl"]).unwrap();
    let run = scene.record(1, &[], &["absent"]);
    assert_eq!((run.code, run.stdout.concat()), (Some(0), "right".to_owned()), "{:?}", run.stderr);
    assert_eq!(recorded(&scene), ["Init", "Finalize"]);
}
