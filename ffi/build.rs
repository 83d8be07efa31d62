//! Compiles the C shim with the wrapper of the chosen MPI ($MPICC, else `mpicc`, as mpi-sys does) and generates its bindings.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=MPICC");
    println!("cargo:rerun-if-changed=shim");

    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let shown = show(&mpicc);
    let with_prefix = |prefix: &str| -> Vec<String> {
        shown.iter().filter_map(|a| a.strip_prefix(prefix)).map(|a| a.trim_matches(['"', '\'']).to_owned()).collect()
    };

    let mut sources =
        ["shim.c", "bare.c", "bare_file.c", "replay.c", "named.c"].map(|name| format!("shim/{name}")).to_vec();
    if cfg!(not(feature = "libclang")) {
        sources.push("shim/constants.c".into());
    }
    cc::Build::new().compiler(&mpicc).files(sources).warnings(true).compile("beff_shim");
    bind(&mpicc, &with_prefix);

    // Passed to the root package and the tests as DEP_BEFF_MPI_LIBDIRS, for the run path.
    let libdirs = with_prefix("-L");
    println!("cargo:libdirs={}", libdirs.join(":"));
    for dir in &libdirs {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
    }
}

fn out_file(name: &str) -> PathBuf {
    PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join(name)
}

/// Generates the bindings of the shim.
#[cfg(feature = "libclang")]
fn bind(_mpicc: &str, with_prefix: &dyn Fn(&str) -> Vec<String>) {
    let mut builder = bindgen::builder()
        .header("shim/shim.h")
        .header("shim/replay.h")
        .allowlist_var("beff_.*")
        .allowlist_var("BEFF_.*")
        .allowlist_function("beff_.*")
        .allowlist_type("beff_cause|beff_data_functions")
        .blocklist_type("MPI_.*|ompi_.*|ADIOI_.*")
        .prepend_enum_name(false)
        .raw_line("use mpi_sys::*;")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Signed);
    // libclang without its own headers (libclang1-N, Python wheel) takes gcc's; searched last, so they change nothing elsewhere.
    if let Some(dir) = gcc_headers() {
        builder = builder.clang_args(["-idirafter", &dir]);
    }
    for dir in with_prefix("-I") {
        builder = builder.clang_arg(format!("-I{dir}"));
    }
    builder.generate().expect("bindgen reads shim.h").write_to_file(out_file("shim.rs")).expect("OUT_DIR is writable");
}

/// Copies the bindings that ship with the source, and links with the library as mpi-sys does.
#[cfg(not(feature = "libclang"))]
fn bind(mpicc: &str, with_prefix: &dyn Fn(&str) -> Vec<String>) {
    println!("cargo:rerun-if-changed=bindings");
    let family = family(mpicc).unwrap_or_else(|| {
        panic!(
            "the mpi.h of `{mpicc}` is neither that of MPICH nor of Open MPI, whose bindings ship with the source.\n\
             Build with the default features, for which libclang is needed."
        )
    });
    for (from, to) in [(family, "mpi.rs"), ("shim", "shim.rs")] {
        let copied = std::fs::copy(format!("bindings/{from}.rs"), out_file(to));
        copied.unwrap_or_else(|error| panic!("bindings/{from}.rs cannot be copied: {error}"));
    }
    with_prefix("-L").iter().for_each(|dir| println!("cargo:rustc-link-search=native={dir}"));
    with_prefix("-l").iter().for_each(|library| println!("cargo:rustc-link-lib={library}"));
}

/// The family of the mpi.h at hand. Intel's header names MPICH, too, and that of the standard ABI may.
#[cfg(not(feature = "libclang"))]
fn family(mpicc: &str) -> Option<&'static str> {
    let macros = Command::new(mpicc).args(["-E", "-dM", "-x", "c", "-include", "mpi.h", "/dev/null"]).output().ok()?;
    let macros = String::from_utf8_lossy(&macros.stdout).into_owned();
    let value = |name: &str| macros.lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")));
    let is_abi = value("MPI_ABI_VERSION").is_some_and(|version| !version.starts_with('-') && version != "0");
    match (value("OMPI_MAJOR_VERSION"), value("MPICH_VERSION"), value("I_MPI_VERSION")) {
        _ if is_abi => None,
        (Some(_), ..) => Some("openmpi"),
        (_, Some(_), None) => Some("mpich"),
        _ => None,
    }
}

/// Directory of the headers of the C compiler.
#[cfg(feature = "libclang")]
fn gcc_headers() -> Option<String> {
    let output = Command::new("cc").arg("-print-file-name=include").output().ok()?;
    let dir = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    PathBuf::from(&dir).is_absolute().then_some(dir)
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
