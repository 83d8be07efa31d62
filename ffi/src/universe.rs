//! Initialization and finalization of MPI.

use std::ffi::{c_int, CStr};
use std::marker::PhantomData;

use crate::comm::Comm;
use crate::error::{check, read_text, MpiError, Result};
use crate::{constants, shim};

/// MPI between MPI_Init_thread and MPI_Finalize, called on drop. The program's structure, not the borrow of [`Universe::world`], ensures
/// that communicators, datatypes and files are released before.
#[derive(Debug)]
pub struct Universe {
    // MPI_THREAD_SINGLE: only the initializing thread may call MPI, so the value must not be sent to another one.
    _not_send: PhantomData<*const ()>,
}

/// The MPI library whose header was used for the build, e.g. `MPICH 4.0.2`.
#[must_use]
pub fn built_with() -> &'static str {
    // SAFETY: the shim's constant points to a string literal.
    unsafe { CStr::from_ptr(shim::beff_built_with) }.to_str().unwrap_or("an MPI library with an unreadable name")
}

/// True if this program is built for the standard ABI of MPI-5, and may run with any library that implements it.
#[must_use]
pub fn is_standard_abi() -> bool {
    constant!(shim::beff_standard_abi) != 0
}

/// MPI_Get_library_version on one line, at most `max_chars` characters. May be called before MPI_Init.
pub fn library_version(max_chars: usize) -> Result<String> {
    // SAFETY: the memory is longer than MPI_MAX_LIBRARY_VERSION_STRING.
    let line = read_text(constant!(shim::beff_max_library_version_string), |text, len| unsafe {
        mpi_sys::MPI_Get_library_version(text, len)
    });
    Ok(line.map_err(MpiError::from_code)?.chars().take(max_chars).collect())
}

impl Universe {
    /// Initializes MPI with MPI_THREAD_SINGLE: only this thread calls it, and needless locks cost Open MPI more than 0.1 us per message.
    ///
    /// # Errors
    /// The error of MPI_Init_thread (most libraries abort the process instead). MPI_ERR_ABI if the library has other constants than this
    /// program.
    pub fn init() -> Result<Self> {
        let mut provided: c_int = 0;
        // SAFETY: MPI-3.1 section 8.7 allows null for argc and argv; the thread level is a constant of the library.
        check(unsafe {
            mpi_sys::MPI_Init_thread(
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                mpi_sys::RSMPI_THREAD_SINGLE,
                &raw mut provided,
            )
        })?;
        let universe = Self { _not_send: PhantomData };
        if is_standard_abi() {
            constants::verify()?;
        }
        universe.world().return_errors()?;
        Comm::comm_self().return_errors()?;
        Ok(universe)
    }

    /// MPI_COMM_WORLD.
    #[must_use]
    #[allow(clippy::unused_self)] // the borrow shows that MPI is running
    pub fn world(&self) -> Comm {
        Comm::world()
    }

    /// The provided thread level: `single` unless the library provides more than requested.
    pub fn thread_level(&self) -> Result<&'static str> {
        let mut level: c_int = 0;
        // SAFETY: one integer is written.
        check(unsafe { mpi_sys::MPI_Query_thread(&raw mut level) })?;
        let named = [
            (constant!(mpi_sys::RSMPI_THREAD_SINGLE), "single"),
            (constant!(mpi_sys::RSMPI_THREAD_FUNNELED), "funneled"),
            (constant!(mpi_sys::RSMPI_THREAD_SERIALIZED), "serialized"),
            (constant!(mpi_sys::RSMPI_THREAD_MULTIPLE), "multiple"),
        ];
        Ok(named.iter().find(|(number, _)| *number == level).map_or("unknown", |(_, name)| name))
    }

    /// Version of the MPI standard that the library implements, e.g. `4.0`.
    pub fn standard_version(&self) -> Result<String> {
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        // SAFETY: two integers are written.
        check(unsafe { mpi_sys::MPI_Get_version(&raw mut major, &raw mut minor) })?;
        Ok(format!("{major}.{minor}"))
    }
}

impl Drop for Universe {
    fn drop(&mut self) {
        // SAFETY: MPI was initialized by this value and is finalized once. The return code is ignored.
        unsafe { mpi_sys::MPI_Finalize() };
    }
}

/// Ends all ranks (MPI_Abort), for a rank that panics while others are in collective calls.
pub fn abort(code: i32) {
    let mut running: c_int = 0;
    // SAFETY: MPI_Initialized may be called at any time; MPI_Abort only while MPI is initialized.
    unsafe {
        mpi_sys::MPI_Initialized(&raw mut running);
        let mut ended: c_int = 0;
        mpi_sys::MPI_Finalized(&raw mut ended);
        if running != 0 && ended == 0 {
            mpi_sys::MPI_Abort(mpi_sys::RSMPI_COMM_WORLD, code);
        }
    }
}
