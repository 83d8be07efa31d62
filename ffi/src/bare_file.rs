//! Loops of MPI-IO in C, with no check of anything but the last transfer: what the loops of IMB-IO are compared with.

use std::ffi::{c_int, c_long};
use std::path::Path;

use mpi_sys::{MPI_Aint, MPI_Offset};

use crate::bare::int;
use crate::comm::Comm;
use crate::error::{check, Result};
use crate::file::MpiFile;
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
    file: MpiFile,
}

impl BareFile {
    /// MPI_File_open, for reads only or for both, then also of a file that does not exist. Collective over `comm`.
    pub fn open(comm: &Comm, path: &Path, read_only: bool, hints: &Info) -> Result<Self> {
        // SAFETY: constants of the shim.
        let mode = unsafe {
            if read_only {
                shim::beff_mode_rdonly
            } else {
                shim::beff_mode_create | shim::beff_mode_rdwr
            }
        };
        MpiFile::open_as(comm, path, mode, hints).map(|file| Self { file })
    }

    /// MPI_File_set_view: `part_bytes` every `extent_bytes` from `displacement_bytes` on; all bytes if they are equal or the
    /// part is empty. Rewinds the pointer, so it stands before every loop that uses it. Collective.
    ///
    /// # Panics
    /// If the part is no C integer or longer than the extent, or an offset is beyond 2^63 - 1.
    pub fn view(&self, displacement_bytes: u64, part_bytes: u64, extent_bytes: u64) -> Result<()> {
        assert!(part_bytes <= extent_bytes, "a tile longer than its extent");
        let extent = MPI_Aint::try_from(extent_bytes).unwrap_or_else(|_| panic!("{extent_bytes} is no extent"));
        let (displacement, part) = (offset(displacement_bytes), int(part_bytes));
        // SAFETY: open file; the types that are made are freed there.
        check(unsafe { shim::beff_bare_file_view(self.file.handle, displacement, part, extent) })
    }

    /// Seconds of a loop of writes on this rank (MPI_Wtime); None if a call failed or the last one moved fewer bytes.
    ///
    /// # Panics
    /// If the buffer is shorter than its windows, there are none, or a number is none of C.
    #[must_use]
    pub fn write(&self, call: BareCall, buffer: &[u8], what: &BareLoop) -> Option<f64> {
        let bare = bare(call, buffer.len(), what);
        // SAFETY: open file; the buffer has all windows, as asserted, and is borrowed for the blocking calls.
        let seconds = unsafe { shim::beff_bare_file_write(self.file.handle, buffer.as_ptr().cast(), bare) };
        (seconds >= 0.0).then_some(seconds)
    }

    /// Seconds of a loop of reads on this rank (MPI_Wtime); None if a call failed or the last one moved fewer bytes.
    ///
    /// # Panics
    /// As [`BareFile::write`].
    #[must_use]
    pub fn read(&self, call: BareCall, buffer: &mut [u8], what: &BareLoop) -> Option<f64> {
        let bare = bare(call, buffer.len(), what);
        // SAFETY: as above; the buffer is exclusively borrowed.
        let seconds = unsafe { shim::beff_bare_file_read(self.file.handle, buffer.as_mut_ptr().cast(), bare) };
        (seconds >= 0.0).then_some(seconds)
    }

    /// MPI_File_close; collective.
    pub fn close(self) -> Result<()> {
        self.file.close()
    }
}

/// A loop as C takes it.
fn bare(call: BareCall, buffer_bytes: usize, what: &BareLoop) -> shim::beff_bare_loop {
    let windows_bytes = what.windows.checked_mul(what.bytes as u64);
    assert!(what.windows > 0, "no window");
    assert!(windows_bytes.is_some_and(|bytes| bytes <= buffer_bytes as u64), "buffer shorter than its windows");
    let behind = what.stride_bytes.checked_mul(what.calls).and_then(|all| all.checked_add(what.offset_bytes));
    assert!(behind.is_some_and(|end| MPI_Offset::try_from(end).is_ok()), "offsets beyond 2^63 - 1");
    let long = |value: u64| c_long::try_from(value).unwrap_or_else(|_| panic!("{value} is no C integer"));
    shim::beff_bare_loop {
        bytes: int(what.bytes as u64),
        windows: long(what.windows),
        offset: offset(what.offset_bytes),
        stride: offset(what.stride_bytes),
        n: long(what.calls),
        explicit_offsets: c_int::from(call.explicit),
        collective: c_int::from(call.collective),
    }
}

fn offset(value: u64) -> MPI_Offset {
    MPI_Offset::try_from(value).unwrap_or_else(|_| panic!("{value} is no file offset"))
}
