//! Loops of MPI-IO in C that check the last transfer only, the reference for the loops of IMB-IO.

use std::ffi::{c_int, c_long};
use std::path::Path;

use mpi_sys::{MPI_Aint, MPI_Offset};

use crate::bare::to_c_int;
use crate::comm::Comm;
use crate::error::{check, Result};
use crate::file::MpiFile;
use crate::info::Info;
use crate::shim;

/// Data access routine of a bare loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareCall {
    /// Explicit offsets (`_at`) instead of the individual file pointer.
    pub explicit: bool,
    /// Collective (`_all`).
    pub collective: bool,
}

/// Parameters of a bare loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareLoop {
    /// Bytes of a call.
    pub bytes: usize,
    /// Number of contiguous windows of `bytes` in the buffer; call i uses window i modulo this.
    pub windows: u64,
    /// Offset of the first call in the view, for explicit offsets.
    pub offset_bytes: u64,
    /// Distance of successive offsets.
    pub stride_bytes: u64,
    /// Number of calls.
    pub calls: u64,
}

/// A file for bare loops. Closing is collective and therefore explicit, as with [`crate::MpiFile`].
#[derive(Debug)]
pub struct BareFile {
    file: MpiFile,
}

impl BareFile {
    /// MPI_File_open, read-only, or read-write and created if missing. Collective over `comm`.
    pub fn open(comm: &Comm, path: &Path, read_only: bool, hints: &Info) -> Result<Self> {
        // SAFETY: constants of the shim.
        let mode = unsafe {
            if read_only {
                shim::beff_mode_rdonly
            } else {
                shim::beff_mode_create | shim::beff_mode_rdwr
            }
        };
        MpiFile::open_with_mode(comm, path, mode, hints).map(|file| Self { file })
    }

    /// MPI_File_set_view: `part_bytes` every `extent_bytes` from `displacement_bytes` on; all bytes if they are equal or the part is
    /// empty. Resets the file pointer, so call it before every loop. Collective.
    ///
    /// # Panics
    /// If the part does not fit a C integer or exceeds the extent, or an offset is beyond 2^63 - 1.
    pub fn set_view(&self, displacement_bytes: u64, part_bytes: u64, extent_bytes: u64) -> Result<()> {
        assert!(part_bytes <= extent_bytes, "the part exceeds the extent");
        let extent = MPI_Aint::try_from(extent_bytes).unwrap_or_else(|_| panic!("{extent_bytes} is no MPI_Aint"));
        let (displacement, part) = (to_offset(displacement_bytes), to_c_int(part_bytes));
        // SAFETY: open file; the C function frees the types that it creates.
        check(unsafe { shim::beff_bare_file_view(self.file.handle, displacement, part, extent) })
    }

    /// Seconds of a loop of writes on this rank (MPI_Wtime); None after an error or a short last transfer.
    ///
    /// # Panics
    /// If the buffer is shorter than its windows, there are none, or a number does not fit its C type.
    #[must_use]
    pub fn write(&self, call: BareCall, buffer: &[u8], what: &BareLoop) -> Option<f64> {
        let bare = c_loop(call, buffer.len(), what);
        // SAFETY: open file; the buffer holds all windows, as asserted, and is borrowed for the blocking calls.
        let seconds = unsafe { shim::beff_bare_file_write(self.file.handle, buffer.as_ptr().cast(), bare) };
        (seconds >= 0.0).then_some(seconds)
    }

    /// As [`BareFile::write`], for reads.
    ///
    /// # Panics
    /// As [`BareFile::write`].
    #[must_use]
    pub fn read(&self, call: BareCall, buffer: &mut [u8], what: &BareLoop) -> Option<f64> {
        let bare = c_loop(call, buffer.len(), what);
        // SAFETY: as above; the buffer is exclusively borrowed.
        let seconds = unsafe { shim::beff_bare_file_read(self.file.handle, buffer.as_mut_ptr().cast(), bare) };
        (seconds >= 0.0).then_some(seconds)
    }

    /// MPI_File_close; collective.
    pub fn close(self) -> Result<()> {
        self.file.close()
    }
}

fn c_loop(call: BareCall, buffer_bytes: usize, what: &BareLoop) -> shim::beff_bare_loop {
    let windows_bytes = what.windows.checked_mul(what.bytes as u64);
    assert!(what.windows > 0, "no window");
    assert!(windows_bytes.is_some_and(|bytes| bytes <= buffer_bytes as u64), "buffer shorter than its windows");
    let behind = what.stride_bytes.checked_mul(what.calls).and_then(|all| all.checked_add(what.offset_bytes));
    assert!(behind.is_some_and(|end| MPI_Offset::try_from(end).is_ok()), "offsets beyond 2^63 - 1");
    let long = |value: u64| c_long::try_from(value).unwrap_or_else(|_| panic!("{value} does not fit a C integer"));
    shim::beff_bare_loop {
        bytes: to_c_int(what.bytes as u64),
        windows: long(what.windows),
        offset: to_offset(what.offset_bytes),
        stride: to_offset(what.stride_bytes),
        n: long(what.calls),
        explicit_offsets: c_int::from(call.explicit),
        collective: c_int::from(call.collective),
    }
}

fn to_offset(value: u64) -> MPI_Offset {
    MPI_Offset::try_from(value).unwrap_or_else(|_| panic!("{value} is not a valid file offset"))
}
