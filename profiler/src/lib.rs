//! Records every MPI-IO call of the program into which it is preloaded.
//!
//! Calls of POSIX that change its files by name or size are recorded too (`posix`). Every function of the MPI-IO chapter is defined here under its own name (`table`) and calls the original of the MPI library
//! (`original`), transparently for the program. Calls are recorded in a buffer (`thread_buffer`) of the thread (`thread`), part of the
//! process file (`sink`). `data`, `files`, `requests` and `program` define the recorded values, `dictionary` numbers the objects of
//! handles, `decode` decodes them, `handles` uses both. `hdf5` marks the calls of HDF5. `beff_trace::raw` reads the file.
//!
//! Set by the launcher: `BEFF_PROFILE_DIR` (directory of the files; nothing is recorded without it, as a message says), `BEFF_PROFILE_LIMIT_BYTES` (maximum
//! size of a file), `BEFF_PROFILE_PMPI=0` (calls by `PMPI_` names are not recorded), `BEFF_PROFILE_OUT` and `BEFF_PROFILE_MERGER`
//! (profile that rank 0 creates after MPI_Finalize, and the program for it), `BEFF_PROFILE_LAUNCHED` (`beff-raw profile` started the
//! program). A rank has none of them after MPI_Init (`environment`). The library itself sets `BEFF_PROFILE_WORLD` in launchers that the program starts: it names the directory of their ranks
//! (`world`).

mod bus_error;
mod clock;
mod cost;
mod data;
mod decode;
mod dictionary;
mod environment;
mod files;
mod handles;
mod hdf5;
mod hosts;
mod merge;
mod message;
mod mpi;
mod name;
mod original;
mod posix;
mod program;
mod recording;
mod requests;
mod sink;
mod storage;
mod table;
#[cfg(test)]
mod testing;
mod thread;
mod thread_buffer;
mod world;

/// Identifies the library for `beff-raw profile`, which selects the one that fits the program.
#[no_mangle]
pub static BEFF_PROFILER_ABI: [u8; 27] = if cfg!(open_mpi) {
    *b"beff-profiler-abi=openmpi\0\0"
} else if cfg!(standard_abi) {
    *b"beff-profiler-abi=standard\0"
} else {
    *b"beff-profiler-abi=mpich\0\0\0\0"
};

extern "C" fn load() {
    message::on_load();
    bus_error::on_load();
    name::on_load();
    program::on_load();
    world::on_load();
}

#[used]
#[link_section = ".init_array"]
static LOAD: extern "C" fn() = load;
