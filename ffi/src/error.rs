//! MPI error codes as errors with class and text.

use std::ffi::{c_char, c_int, CStr, CString};

use crate::shim;

/// Result of an MPI call. Where nothing else is said, the error is what MPI reports.
pub type Result<T> = std::result::Result<T, MpiError>;

/// Broad cause of an MPI error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// MPI_ERR_NO_SPACE, MPI_ERR_QUOTA, or an MPI_ERR_IO whose text says so.
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
    pub cause: Cause,
}

impl MpiError {
    pub(crate) fn from_code(code: c_int) -> Self {
        let mut class: c_int = 0;
        // SAFETY: both arguments are plain integers; MPI_Error_class accepts any code an MPI call returned.
        unsafe { mpi_sys::MPI_Error_class(code, &raw mut class) };
        // SAFETY: the memory is longer than MPI_MAX_ERROR_STRING, the longest text the call writes.
        let told = text_of(constant!(shim::beff_max_error_string), |text, len| unsafe {
            mpi_sys::MPI_Error_string(code, text, len)
        });
        // A code without a text has its class all the same.
        let text = told.unwrap_or_default();
        // SAFETY: returns a pointer to a string literal for every argument.
        let class_name = unsafe { CStr::from_ptr(shim::beff_class_name(class)) };
        // SAFETY: pure function of an integer.
        let cause = match unsafe { shim::beff_cause_of_class(class) } {
            1 => Cause::NoSpace,
            2 => Cause::Path,
            3 => Cause::Unsupported,
            // Some libraries report a full disk as MPI_ERR_IO or MPI_ERR_OTHER and say it only in words.
            _ if ["No space left", "quota exceeded", "Disk quota", "File too large"]
                .iter()
                .any(|w| text.contains(w)) =>
            {
                Cause::NoSpace
            }
            _ => Cause::Other,
        };
        Self { class: class_name.to_string_lossy().into_owned(), text, cause }
    }
}

/// The text that a call writes, on one line: into memory for `most` characters and a NUL byte, its length behind it.
///
/// # Errors
/// The code of the call.
pub(crate) fn text_of(
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

/// A number that a call of MPI takes as a C integer.
///
/// # Errors
/// `class`, if it is too large for one.
pub(crate) fn c_integer(value: u64, class: &str) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| refused(class, format!("{value} does not fit a C integer")))
}

/// The error of what MPI is not even asked for.
pub(crate) fn refused(class: &str, text: String) -> MpiError {
    MpiError { class: class.into(), text, cause: Cause::Unsupported }
}

/// A text for C; one with a NUL byte inside is refused as MPI would refuse it.
pub(crate) fn c_string(text: &[u8], class: &str) -> Result<CString> {
    CString::new(text).map_err(|e| MpiError { class: class.into(), text: e.to_string(), cause: Cause::Other })
}

/// Folds the white space of multi-line library messages.
fn one_line(text: &str) -> String {
    text.trim_matches(['\0', '\n', ' ']).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Turns a return code into a result. MPI_SUCCESS is 0 by the standard (MPI-3.1 section 8.4).
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
