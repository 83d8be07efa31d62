//! The bindings that ship with the source, for builds without libclang, against the mpi.h of the MPIs at hand.

#![allow(clippy::unwrap_used)] // in functions of the test

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of functions of MPI that this crate calls, by its source.
fn called_functions(dir: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            called_functions(&path, into);
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("mpi_sys::").skip(1);
            let name = |rest: &str| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
            into.extend(names.map(name).filter(|name| name.starts_with("MPI_")));
        }
    }
}

/// Builder with the directories that a compiler wrapper names; None: there is no such MPI.
fn builder(mpicc: &str) -> Option<bindgen::Builder> {
    let shown = Command::new(mpicc).arg("-show").output().ok().filter(|shown| shown.status.success())?;
    let shown = String::from_utf8(shown.stdout).unwrap();
    let gcc = Command::new("cc").arg("-print-file-name=include").output().unwrap().stdout;
    let gcc = String::from_utf8(gcc).unwrap();
    let builder =
        bindgen::builder().clang_args(["-idirafter", gcc.trim()]).generate_comments(false).layout_tests(false);
    Some(shown.split_whitespace().filter(|word| word.starts_with("-I")).fold(builder, bindgen::Builder::clang_arg))
}

fn functions(builder: bindgen::Builder) -> String {
    let mut names = BTreeSet::new();
    called_functions(Path::new("src"), &mut names);
    let builder = names.iter().fold(builder.header("shim/constants.h"), |builder, name| {
        builder.allowlist_function(name).allowlist_type(name)
    });
    let handles = "MPI_(Comm|Datatype|Errhandler|Group|Info|Message|Op|Request|Session|Win)";
    let builder = builder.allowlist_var("RSMPI_.*").new_type_alias(handles).derive_partialeq(true);
    builder.generate().unwrap().to_string()
}

fn shim(builder: bindgen::Builder) -> String {
    let builder = builder.header("shim/shim.h").header("shim/replay.h").raw_line("use mpi_sys::*;");
    let builder = builder
        .allowlist_var("beff_.*|BEFF_.*")
        .allowlist_function("beff_.*")
        .allowlist_type("beff_cause|beff_data_functions");
    let builder = builder.blocklist_type("MPI_.*|ompi_.*|ADIOI_.*").prepend_enum_name(false);
    builder.default_macro_constant_type(bindgen::MacroTypeVariation::Signed).generate().unwrap().to_string()
}

/// Without blanks, the line of the generator, and the names of parameters, in which versions of a library differ.
fn normalized(text: &str) -> String {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("/*") && !line.trim_start().starts_with("//"));
    let code: String = code.collect();
    let items: Vec<String> = code
        .split("fn ")
        .map(|item| match item.split_once(')') {
            Some((parameters, rest)) if parameters.contains('(') => {
                let words = parameters.split_whitespace();
                let types: Vec<&str> = words.filter(|word| !word.ends_with(':') || word.ends_with("::")).collect();
                format!("{}){rest}", types.join(" "))
            }
            _ => item.to_owned(),
        })
        .collect();
    items.join("fn ").split_whitespace().collect()
}

/// `BEFF_WRITE_BINDINGS=1` writes them anew.
#[test]
fn shipped_bindings_are_those_of_the_headers_at_hand() {
    let mut compared = 0;
    for (family, wrapper) in [("mpich", "mpicc.mpich"), ("openmpi", "mpicc.openmpi")] {
        let Some(of_functions) = builder(wrapper) else { continue };
        let of_shim = builder(wrapper).unwrap();
        for (name, text) in [(family, functions(of_functions)), ("shim", shim(of_shim))] {
            let path = PathBuf::from(format!("bindings/{name}.rs"));
            if std::env::var_os("BEFF_WRITE_BINDINGS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let shipped = std::fs::read_to_string(&path).unwrap();
            assert!(normalized(&shipped) == normalized(&text), "{} is not that of {wrapper}", path.display());
            compared += 1;
        }
    }
    if compared == 0 {
        println!("SKIPPED: neither mpicc.mpich nor mpicc.openmpi is installed");
    }
}
