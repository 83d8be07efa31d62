//! Begin and end of MPI.

use std::ffi::{c_int, CStr};
use std::marker::PhantomData;

use crate::comm::Comm;
use crate::error::{check, text_of, MpiError, Result};
use crate::shim;

/// MPI between MPI_Init_thread and MPI_Finalize. Dropping it finalizes; every communicator, datatype and file must
/// be gone by then, which the borrow of [`Universe::world`] does not enforce but the program's structure does.
#[derive(Debug)]
pub struct Universe {
    // MPI_THREAD_SINGLE: calls come from the thread that initialized, so the value must not move to another one.
    _not_send: PhantomData<*const ()>,
}

/// The MPI library whose header this program was built with, e.g. `MPICH 4.0.2`.
#[must_use]
pub fn built_with() -> &'static str {
    // SAFETY: the shim's constant points to a string literal.
    unsafe { CStr::from_ptr(shim::beff_built_with) }.to_str().unwrap_or("an MPI library with an unreadable name")
}

/// MPI_Get_library_version on one line, at most `max_chars` characters. May be called before MPI is started.
pub fn library_version(max_chars: usize) -> Result<String> {
    // SAFETY: the memory is longer than MPI_MAX_LIBRARY_VERSION_STRING.
    let line = text_of(constant!(shim::beff_max_library_version_string), |text, len| unsafe {
        mpi_sys::MPI_Get_library_version(text, len)
    });
    Ok(line.map_err(MpiError::from_code)?.chars().take(max_chars).collect())
}

impl Universe {
    /// Starts MPI for one thread (MPI_THREAD_SINGLE): no other one of this program calls it, and locks that nobody needs
    /// cost Open MPI a good tenth of a microsecond for each message.
    ///
    /// # Errors
    /// What MPI_Init_thread reports (most libraries abort the process instead).
    pub fn init() -> Result<Self> {
        let mut provided: c_int = 0;
        // SAFETY: MPI-3.1 section 8.7 allows null for argc and argv; the thread level is the library's own constant.
        check(unsafe {
            mpi_sys::MPI_Init_thread(
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                mpi_sys::RSMPI_THREAD_SINGLE,
                &raw mut provided,
            )
        })?;
        let universe = Self { _not_send: PhantomData };
        universe.world().return_errors()?;
        Comm::own().return_errors()?;
        Ok(universe)
    }

    /// The communicator of all ranks.
    #[must_use]
    #[allow(clippy::unused_self)] // the borrow shows that MPI is running
    pub fn world(&self) -> Comm {
        Comm::world()
    }

    /// The level of support for threads that the library gives: `single` unless it gives more than it was asked for.
    pub fn thread_level(&self) -> Result<&'static str> {
        let mut level: c_int = 0;
        // SAFETY: one integer to be written.
        check(unsafe { mpi_sys::MPI_Query_thread(&raw mut level) })?;
        let named = [
            (constant!(mpi_sys::RSMPI_THREAD_SINGLE), "single"),
            (constant!(mpi_sys::RSMPI_THREAD_FUNNELED), "funneled"),
            (constant!(mpi_sys::RSMPI_THREAD_SERIALIZED), "serialized"),
            (constant!(mpi_sys::RSMPI_THREAD_MULTIPLE), "multiple"),
        ];
        Ok(named.iter().find(|(number, _)| *number == level).map_or("unknown", |(_, name)| name))
    }

    /// The MPI standard the library implements, e.g. `4.0`.
    pub fn standard(&self) -> Result<String> {
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        // SAFETY: two integers to be written.
        check(unsafe { mpi_sys::MPI_Get_version(&raw mut major, &raw mut minor) })?;
        Ok(format!("{major}.{minor}"))
    }
}

impl Drop for Universe {
    fn drop(&mut self) {
        // SAFETY: MPI was initialized by this value and is finalized once. The return code has no reader left.
        unsafe { mpi_sys::MPI_Finalize() };
    }
}

/// Ends all ranks at once; for a rank that cannot go on (a panic) and would leave the others in a collective call.
pub fn abort(code: i32) {
    let mut running: c_int = 0;
    // SAFETY: MPI_Initialized may be called at any time; MPI_Abort only while MPI runs.
    unsafe {
        mpi_sys::MPI_Initialized(&raw mut running);
        let mut ended: c_int = 0;
        mpi_sys::MPI_Finalized(&raw mut ended);
        if running != 0 && ended == 0 {
            mpi_sys::MPI_Abort(mpi_sys::RSMPI_COMM_WORLD, code);
        }
    }
}
