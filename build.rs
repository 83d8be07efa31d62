//! Stamps the binary: run path of the MPI it is built with, and the revision of the source.

use std::process::Command;

fn main() {
    for dir in std::env::var("DEP_BEFF_MPI_LIBDIRS").unwrap_or_default().split(':').filter(|d| !d.is_empty()) {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
    }
    let git = |args: &[&str]| {
        Command::new("git")
            .args(args)
            .output()
            .ok()
            .filter(|o| o.status.success())
            .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
    };
    let revision = git(&["describe", "--always", "--dirty", "--abbrev=12"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=BEFF_GIT_REVISION={revision}");
    // A commit or a checkout moves one of these; without a repository there is nothing to watch.
    for watched in [".git/HEAD", ".git/index"] {
        if std::path::Path::new(watched).exists() {
            println!("cargo:rerun-if-changed={watched}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
