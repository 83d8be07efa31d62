//! Hints: MPI_Info objects as owned handles.

use std::ffi::{c_char, c_int};

use mpi_sys::MPI_Info;

use crate::error::{c_string, check, Result};
use crate::shim;

/// An info object with hints, or MPI_INFO_NULL if there are none.
#[derive(Debug)]
pub struct Info {
    handle: MPI_Info,
}

impl Info {
    /// An info object with these pairs; MPI_INFO_NULL for none.
    ///
    /// # Errors
    /// MPI_ERR_INFO_KEY or MPI_ERR_INFO_VALUE for pairs that the library rejects.
    pub fn new(pairs: &[(String, String)]) -> Result<Self> {
        if pairs.is_empty() {
            return Ok(Self { handle: constant!(shim::beff_info_null) });
        }
        Self::new_object(pairs)
    }

    /// An info object with these pairs, even if there are none.
    ///
    /// # Errors
    /// As [`Info::new`].
    pub fn new_object(pairs: &[(String, String)]) -> Result<Self> {
        let mut info = Self { handle: constant!(shim::beff_info_null) };
        // SAFETY: the new handle is written and owned by `info`.
        check(unsafe { mpi_sys::MPI_Info_create(&raw mut info.handle) })?;
        for (key, value) in pairs {
            let key = c_string(key.as_bytes(), "MPI_ERR_INFO_KEY")?;
            let value = c_string(value.as_bytes(), "MPI_ERR_INFO_VALUE")?;
            // SAFETY: two NUL-terminated strings that the call copies.
            check(unsafe { mpi_sys::MPI_Info_set(info.handle, key.as_ptr(), value.as_ptr()) })?;
        }
        Ok(info)
    }

    pub(crate) fn from_handle(handle: MPI_Info) -> Self {
        Self { handle }
    }

    pub(crate) fn handle(&self) -> MPI_Info {
        self.handle
    }

    /// All pairs in the order of the library.
    pub fn pairs(&self) -> Result<Vec<(String, String)>> {
        let mut keys: c_int = 0;
        // SAFETY: constants of the shim.
        let (key_max, value_max) = unsafe { (shim::beff_max_info_key, shim::beff_max_info_val) };
        if self.handle == constant!(shim::beff_info_null) {
            return Ok(Vec::new());
        }
        // SAFETY: valid info object, one integer written.
        check(unsafe { mpi_sys::MPI_Info_get_nkeys(self.handle, &raw mut keys) })?;
        let mut pairs = Vec::new();
        for n in 0..keys {
            let mut key = vec![0_u8; usize::try_from(key_max).unwrap_or(255) + 1];
            let mut value = vec![0_u8; usize::try_from(value_max).unwrap_or(1024) + 1];
            let mut found: c_int = 0;
            // SAFETY: both buffers are one longer than the longest key and value of the library.
            unsafe {
                check(mpi_sys::MPI_Info_get_nthkey(self.handle, n, key.as_mut_ptr().cast::<c_char>()))?;
                check(mpi_sys::MPI_Info_get(
                    self.handle,
                    key.as_ptr().cast::<c_char>(),
                    value_max,
                    value.as_mut_ptr().cast::<c_char>(),
                    &raw mut found,
                ))?;
            }
            pairs.push((c_text(&key), c_text(&value)));
        }
        Ok(pairs)
    }
}

/// Text of a C string in a buffer.
fn c_text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|b| *b == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: freed once; the null handle is not freed.
        unsafe {
            if self.handle != shim::beff_info_null {
                mpi_sys::MPI_Info_free(&raw mut self.handle);
            }
        }
    }
}
