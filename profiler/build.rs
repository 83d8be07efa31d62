//! Compiles the C shim with the wrapper of the chosen MPI ($MPICC, else `mpicc`) and finds the functions of its mpi.h. The library is not
//! linked, because processes without MPI must run with the preload; the unit tests load it.

use std::env;
use std::process::Command;

/// Functions that some MPI versions lack, and the cfg for each.
const OPTIONAL: [(&str, &str); 4] = [
    ("MPI_File_read_at_c", "mpi_large"),
    ("MPI_Session_init", "mpi_sessions"),
    // Open MPI only: determines the types of handles and statuses.
    ("ompi_file_errhandler_fn", "open_mpi"),
    ("MPI_Request_get_status_any", "mpi_request_get_status_any"),
];

fn main() {
    println!("cargo:rerun-if-env-changed=MPICC");
    println!("cargo:rerun-if-changed=shim/shim.c");
    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    cc::Build::new().compiler(&mpicc).file("shim/shim.c").opt_level(2).warnings(true).compile("beff_profiler_shim");

    println!("cargo:rustc-env=BEFF_TEST_MPI={}", libraries(&mpicc).join(":"));

    let output = Command::new(&mpicc).args(["-E", "-include", "mpi.h", "-x", "c", "/dev/null"]).output();
    let header = output.expect("the wrapper that has just compiled the shim runs").stdout;
    let header = String::from_utf8_lossy(&header);
    println!("cargo:rustc-check-cfg=cfg(open_mpi, standard_abi)");
    if header.contains("MPI_ABI_Comm") {
        println!("cargo:rustc-cfg=standard_abi");
    } else if header.contains("ompi_communicator_t") {
        println!("cargo:rustc-cfg=open_mpi");
    }
    for (function, cfg) in OPTIONAL {
        println!("cargo:rustc-check-cfg=cfg({cfg})");
        if header.contains(&format!("{function}(")) || header.contains(&format!("({function})")) {
            println!("cargo:rustc-cfg={cfg}");
        }
    }
}

/// Candidate paths of the library, from the compiler command of the wrapper.
fn libraries(mpicc: &str) -> Vec<String> {
    let shown = Command::new(mpicc).arg("-show").output().map(|output| output.stdout).unwrap_or_default();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let words = shell_words::split(&shown).unwrap_or_default();
    let of =
        |prefix: &str| words.iter().filter_map(|word| word.strip_prefix(prefix)).map(str::to_owned).collect::<Vec<_>>();
    let names = of("-l").into_iter().filter(|name| name.starts_with("mpi")).map(|name| format!("lib{name}.so"));
    let in_dirs = |name: String| of("-L").into_iter().map(move |dir| format!("{dir}/{name}")).collect::<Vec<_>>();
    names.flat_map(in_dirs).collect()
}
