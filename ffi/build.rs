//! Compiles the C shim with the wrapper of the chosen MPI ($MPICC, else `mpicc`, as mpi-sys does) and generates its bindings.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=MPICC");
    println!("cargo:rerun-if-changed=shim");

    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let shown = show(&mpicc);
    let with_prefix = |prefix: &str| -> Vec<String> {
        shown.iter().filter_map(|a| a.strip_prefix(prefix)).map(|a| a.trim_matches(['"', '\'']).to_owned()).collect()
    };

    let sources = ["shim.c", "bare.c", "bare_file.c", "replay.c", "named.c"].map(|name| format!("shim/{name}"));
    cc::Build::new().compiler(&mpicc).files(sources).warnings(true).compile("beff_shim");

    let mut builder = bindgen::builder()
        .header("shim/shim.h")
        .header("shim/replay.h")
        .allowlist_var("beff_.*")
        .allowlist_var("BEFF_.*")
        .allowlist_function("beff_.*")
        .blocklist_type("MPI_.*|ompi_.*")
        .raw_line("use mpi_sys::*;")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Signed);
    // libclang without its own headers (libclang1-N, Python wheel) takes gcc's; searched last, so they change nothing elsewhere.
    if let Some(dir) = gcc_headers() {
        builder = builder.clang_args(["-idirafter", &dir]);
    }
    for dir in with_prefix("-I") {
        builder = builder.clang_arg(format!("-I{dir}"));
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("shim.rs");
    builder.generate().expect("bindgen reads shim.h").write_to_file(out).expect("OUT_DIR is writable");

    // Passed to the root package and the tests as DEP_BEFF_MPI_LIBDIRS, for the run path.
    let libdirs = with_prefix("-L");
    println!("cargo:libdirs={}", libdirs.join(":"));
    for dir in &libdirs {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
    }
}

/// Directory of the headers of the C compiler.
fn gcc_headers() -> Option<String> {
    let output = Command::new("cc").arg("-print-file-name=include").output().ok()?;
    let dir = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    Path::new(&dir).is_absolute().then_some(dir)
}

/// Words of the compiler command that `mpicc -show` prints.
fn show(mpicc: &str) -> Vec<String> {
    let output = Command::new(mpicc).arg("-show").output().unwrap_or_else(|e| {
        panic!(
            "no MPI: the compiler wrapper `{mpicc}` cannot be started ({e}).\n\
             Install one (Debian: libmpich-dev or libopenmpi-dev), or set MPICC to the wrapper of your MPI, \
             or type `make run`, which finds or installs one."
        )
    });
    let text = String::from_utf8_lossy(&output.stdout);
    shell_words::split(&text).unwrap_or_else(|e| panic!("`{mpicc} -show` printed invalid words: {e}\n{text}"))
}
