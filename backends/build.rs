//! Run path of the MPI library for this crate's own test programs.

fn main() {
    for dir in std::env::var("DEP_BEFF_MPI_LIBDIRS").unwrap_or_default().split(':').filter(|d| !d.is_empty()) {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
    }
}
