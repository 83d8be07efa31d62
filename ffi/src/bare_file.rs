//! Loops of MPI-IO in C, with no check of anything but the last transfer: what the loops of IMB-IO are compared with.

use std::ffi::{c_char, c_int, c_long};
use std::path::Path;

use mpi_sys::{MPI_Aint, MPI_File, MPI_Offset};

use crate::comm::Comm;
use crate::error::{c_string, check, Result};
use crate::info::Info;
use crate::shim;

/// Which call a bare loop makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareCall {
    /// With an offset of its own (`_at`), or wherever the individual pointer is.
    pub explicit: bool,
    /// By all ranks together (`_all`).
    pub collective: bool,
}

/// How often, how much and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareLoop {
    /// Bytes of one call.
    pub bytes: usize,
    /// The buffer has so many windows of `bytes` behind each other; call i moves window i modulo this.
    pub windows: u64,
    /// Offset of the first call in the view; of calls with explicit offsets.
    pub offset_bytes: u64,
    /// From one offset to the next.
    pub stride_bytes: u64,
    /// Calls.
    pub calls: u64,
}

/// A file for bare loops. Closing is collective and therefore explicit, as with [`crate::MpiFile`].
#[derive(Debug)]
pub struct BareFile {
    handle: MPI_File,
}

impl BareFile {
    /// MPI_File_open, for reads only or for both, then also of a file that does not exist. Collective over `comm`.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn open(comm: &Comm, path: &Path, read_only: bool, hints: &Info) -> Result<Self> {
        // SAFETY: constants of the shim.
        let mode = unsafe {
            if read_only {
                shim::beff_mode_rdonly
            } else {
                shim::beff_mode_create | shim::beff_mode_rdwr
            }
        };
        let name = c_string(path.as_os_str().as_encoded_bytes(), "MPI_ERR_BAD_FILE")?;
        // SAFETY: a predefined constant.
        let mut file = Self { handle: unsafe { mpi_sys::RSMPI_FILE_NULL } };
        // SAFETY: collective call; the name is a C string that outlives it; the handle is owned by `file`.
        check(unsafe {
            mpi_sys::MPI_File_open(comm.handle(), name.as_ptr(), mode, hints.handle(), &raw mut file.handle)
        })?;
        Ok(file)
    }

    /// MPI_File_set_view: `part_bytes` every `extent_bytes` from `displacement_bytes` on; all bytes if they are equal or the
    /// part is empty. Rewinds the pointer, so it stands before every loop that uses it. Collective.
    ///
    /// # Errors
    /// What MPI reports.
    ///
    /// # Panics
    /// If the part is no C integer or longer than the extent, or an offset is beyond 2^63 - 1.
    pub fn view(&self, displacement_bytes: u64, part_bytes: u64, extent_bytes: u64) -> Result<()> {
        assert!(part_bytes <= extent_bytes, "a tile longer than its extent");
        let extent = MPI_Aint::try_from(extent_bytes).unwrap_or_else(|_| panic!("{extent_bytes} is no extent"));
        let (displacement, part) = (offset(displacement_bytes), int(part_bytes));
        // SAFETY: open file; the types that are made are freed there.
        check(unsafe { shim::beff_bare_file_view(self.handle, displacement, part, extent) })
    }

    /// Seconds of a loop of writes on this rank (MPI_Wtime); None if a call failed or the last one moved fewer bytes.
    ///
    /// # Panics
    /// If the buffer is shorter than its windows, there are none, or a number is none of C.
    #[must_use]
    pub fn write(&self, call: BareCall, buffer: &[u8], what: &BareLoop) -> Option<f64> {
        let args = Args::new(call, buffer.len(), what);
        // SAFETY: open file; the buffer has all windows, as asserted, and is borrowed for the blocking calls.
        let seconds = unsafe {
            shim::beff_bare_file_write(
                self.handle,
                buffer.as_ptr().cast::<c_char>(),
                args.bytes,
                args.windows,
                args.offset,
                args.stride,
                args.calls,
                args.explicit,
                args.collective,
            )
        };
        (seconds >= 0.0).then_some(seconds)
    }

    /// Seconds of a loop of reads on this rank (MPI_Wtime); None if a call failed or the last one moved fewer bytes.
    ///
    /// # Panics
    /// As [`BareFile::write`].
    #[must_use]
    pub fn read(&self, call: BareCall, buffer: &mut [u8], what: &BareLoop) -> Option<f64> {
        let args = Args::new(call, buffer.len(), what);
        // SAFETY: as above; the buffer is exclusively borrowed.
        let seconds = unsafe {
            shim::beff_bare_file_read(
                self.handle,
                buffer.as_mut_ptr().cast::<c_char>(),
                args.bytes,
                args.windows,
                args.offset,
                args.stride,
                args.calls,
                args.explicit,
                args.collective,
            )
        };
        (seconds >= 0.0).then_some(seconds)
    }

    /// MPI_File_close; collective.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn close(mut self) -> Result<()> {
        // SAFETY: open file, closed once: the value is consumed.
        check(unsafe { mpi_sys::MPI_File_close(&raw mut self.handle) })
    }
}

/// A loop as C takes it.
struct Args {
    bytes: c_int,
    windows: c_long,
    offset: MPI_Offset,
    stride: MPI_Offset,
    calls: c_long,
    explicit: c_int,
    collective: c_int,
}

impl Args {
    fn new(call: BareCall, buffer_bytes: usize, what: &BareLoop) -> Self {
        let windows_bytes = what.windows.checked_mul(what.bytes as u64);
        assert!(what.windows > 0, "no window");
        assert!(windows_bytes.is_some_and(|bytes| bytes <= buffer_bytes as u64), "buffer shorter than its windows");
        let behind = what.stride_bytes.checked_mul(what.calls).and_then(|all| all.checked_add(what.offset_bytes));
        assert!(behind.is_some_and(|end| MPI_Offset::try_from(end).is_ok()), "offsets beyond 2^63 - 1");
        let long = |value: u64| c_long::try_from(value).unwrap_or_else(|_| panic!("{value} is no C integer"));
        Self {
            bytes: int(what.bytes as u64),
            windows: long(what.windows),
            offset: offset(what.offset_bytes),
            stride: offset(what.stride_bytes),
            calls: long(what.calls),
            explicit: c_int::from(call.explicit),
            collective: c_int::from(call.collective),
        }
    }
}

fn int(value: u64) -> c_int {
    c_int::try_from(value).unwrap_or_else(|_| panic!("{value} is no C integer"))
}

fn offset(value: u64) -> MPI_Offset {
    MPI_Offset::try_from(value).unwrap_or_else(|_| panic!("{value} is no file offset"))
}
