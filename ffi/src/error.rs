//! MPI error codes as errors with class and text.

use std::ffi::{c_char, c_int, CStr, CString};

use crate::shim;

/// Result of an MPI call. Unless stated otherwise, the error is the one that MPI reports.
pub type Result<T> = std::result::Result<T, MpiError>;

/// Broad cause of an MPI error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiErrorCause {
    /// MPI_ERR_NO_SPACE, MPI_ERR_QUOTA, or an MPI_ERR_IO with such a text.
    NoSpace,
    /// The file or directory cannot be used.
    Path,
    /// Not supported by the library.
    Unsupported,
    /// Anything else.
    Other,
}

/// A failed MPI call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {text}")]
pub struct MpiError {
    /// Name of the error class (MPI-3.1 section 8.4 and 13.7).
    pub class: String,
    /// Text of MPI_Error_string, on one line.
    pub text: String,
    /// Broad cause.
    pub cause: MpiErrorCause,
}

impl MpiError {
    pub(crate) fn from_code(code: c_int) -> Self {
        let mut class: c_int = 0;
        // SAFETY: both arguments are plain integers; MPI_Error_class accepts any code an MPI call returned.
        unsafe { mpi_sys::MPI_Error_class(code, &raw mut class) };
        // SAFETY: the memory is longer than MPI_MAX_ERROR_STRING.
        let message = read_text(constant!(shim::beff_max_error_string), |text, len| unsafe {
            mpi_sys::MPI_Error_string(code, text, len)
        });
        // A code without a text still has a class.
        let text = message.unwrap_or_default();
        // SAFETY: returns a pointer to a string literal for every argument.
        let class_name = unsafe { CStr::from_ptr(shim::beff_class_name(class)) };
        // SAFETY: pure function of an integer.
        let cause = match unsafe { shim::beff_cause_of_class(class) } {
            1 => MpiErrorCause::NoSpace,
            2 => MpiErrorCause::Path,
            3 => MpiErrorCause::Unsupported,
            // Some libraries report a full disk as MPI_ERR_IO or MPI_ERR_OTHER, with the reason in the text only.
            _ if ["No space left", "quota exceeded", "Disk quota", "File too large"]
                .iter()
                .any(|w| text.contains(w)) =>
            {
                MpiErrorCause::NoSpace
            }
            _ => MpiErrorCause::Other,
        };
        Self { class: class_name.to_string_lossy().into_owned(), text, cause }
    }
}

/// The text that a call writes into memory for `most` characters and a NUL byte, on one line.
///
/// # Errors
/// The code of the call.
pub(crate) fn read_text(
    most: c_int,
    call: impl FnOnce(*mut c_char, *mut c_int) -> c_int,
) -> std::result::Result<String, c_int> {
    let mut buffer = vec![0_u8; usize::try_from(most).unwrap_or(8192) + 1];
    let mut len: c_int = 0;
    let code = call(buffer.as_mut_ptr().cast(), &raw mut len);
    buffer.truncate(usize::try_from(len).unwrap_or(0));
    if code == 0 {
        Ok(one_line(&String::from_utf8_lossy(&buffer)))
    } else {
        Err(code)
    }
}

/// An MPI argument as a C integer.
///
/// # Errors
/// `class`, if it does not fit.
pub(crate) fn c_integer(value: u64, class: &str) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| rejection(class, format!("{value} does not fit a C integer")))
}

pub(crate) fn rejection(class: &str, text: String) -> MpiError {
    MpiError { class: class.into(), text, cause: MpiErrorCause::Unsupported }
}

/// A C string; one with a NUL byte is rejected, as by MPI.
pub(crate) fn c_string(text: &[u8], class: &str) -> Result<CString> {
    CString::new(text).map_err(|e| MpiError { class: class.into(), text: e.to_string(), cause: MpiErrorCause::Other })
}

/// Joins the lines of a library message.
fn one_line(text: &str) -> String {
    text.trim_matches(['\0', '\n', ' ']).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Converts a return code to a result. MPI_SUCCESS is 0 by the standard (MPI-3.1 section 8.4).
#[inline]
pub(crate) fn check(code: c_int) -> Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(MpiError::from_code(code))
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn library_texts_become_one_line() {
        assert_eq!(one_line("Other I/O error ,\n error stack:\nADIOI: x\0"), "Other I/O error , error stack: ADIOI: x");
    }
}
