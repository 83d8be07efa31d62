//! Records every MPI-IO call of the program it is preloaded into.
//!
//! Every function of the MPI-IO chapter stands here under its own name (`table`) and passes the call on to the library behind
//! (`original`); the program sees nothing of it. What was called goes into a buffer (`lane`) of the thread (`thread`), which is a part of
//! the file of the process (`sink`). `data`, `files`, `requests` and `program` know what is to be recorded of a call, `dictionary`
//! has a number for each thing that a handle stands for, `decode` finds out what that is, and `handles` asks both. The file is read with `beff_trace::raw`.
//!
//! Set by the launcher: `BEFF_PROFILE_DIR` (where the files go; without it nothing is recorded), `BEFF_PROFILE_LIMIT_BYTES` (most bytes of
//! a file), `BEFF_PROFILE_PMPI=0` (calls by `PMPI_` names are not recorded), `BEFF_PROFILE_OUT` and `BEFF_PROFILE_MERGER` (the profile that
//! rank 0 has made behind MPI_Finalize, and the program that makes it).

mod clock;
mod cost;
mod data;
mod decode;
mod dictionary;
mod files;
mod handles;
mod hosts;
mod lane;
mod merge;
mod message;
mod mpi;
mod name;
mod original;
mod program;
mod requests;
mod sink;
mod storage;
mod table;
#[cfg(test)]
mod testing;
mod thread;

/// What `beff-raw profile` looks for in the file, to choose the library that fits the program.
#[no_mangle]
pub static BEFF_PROFILER_ABI: [u8; 26] =
    if cfg!(open_mpi) { *b"beff-profiler-abi=openmpi\0" } else { *b"beff-profiler-abi=mpich\0\0\0" };

extern "C" fn load() {
    message::loaded();
    name::loaded();
    program::loaded();
}

#[used]
#[link_section = ".init_array"]
static LOAD: extern "C" fn() = load;
