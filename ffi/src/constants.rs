//! Constants on which libraries of the standard ABI of MPI-5 disagree.
//!
//! The program has those of the mpi.h it was built with, but runs with any library of the ABI. MPICH 5.0.2 and Intel MPI 2021.19, both of
//! version 1.0, number MPI_ERRORS_RETURN and MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END differently, so their effect decides.

use beff_trace::{Amode, Whence};

use crate::comm::Comm;
use crate::error::{check, rejection, Result};
use crate::info::Info;
use crate::replay::{FileHandle, OpenParameters};

/// Verifies the constants. To be called after MPI_Init, and before any error handler is set.
///
/// # Errors
/// A constant of another meaning in this library (MPI_ERR_ABI); any MPI error.
pub(crate) fn verify() -> Result<()> {
    if !file_errors_return()? {
        return Err(refusal("MPI_ERRORS_RETURN"));
    }
    if !seeks_agree()? {
        return Err(refusal("MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END"));
    }
    Ok(())
}

fn refusal(constants: &str) -> crate::MpiError {
    let text = format!(
        "its values of {constants} are not those of the mpi.h with which this program was built; build it for this library: \
         make install MPICC=<its compiler wrapper for the standard ABI>"
    );
    rejection("MPI_ERR_ABI", text)
}

/// True if the error handler of files is MPI_ERRORS_RETURN, as by default (MPI-5.0 section 14.7). To set a handler and cause an error would
/// end the program where the constant means MPI_ERRORS_ABORT.
fn file_errors_return() -> Result<bool> {
    let mut handler = constant!(mpi_sys::RSMPI_ERRORS_ARE_FATAL);
    // SAFETY: a predefined handle; one handle is written.
    check(unsafe { mpi_sys::MPI_File_get_errhandler(mpi_sys::RSMPI_FILE_NULL, &raw mut handler) })?;
    let returns = handler == constant!(mpi_sys::RSMPI_ERRORS_RETURN);
    // SAFETY: a reference owned here, released once (MPI-4.0 section 9.3.4), also for a predefined handler.
    check(unsafe { mpi_sys::MPI_Errhandler_free(&raw mut handler) })?;
    Ok(returns)
}

/// True if seeks in an empty file lead to the positions of the standard, or if no file can be opened and nothing will be sought.
fn seeks_agree() -> Result<bool> {
    const READ_ONLY: Amode = Amode(1);
    let (world, info) = (Comm::comm_self(), Info::new(&[])?);
    let with = OpenParameters { comm: Some(&world), path: c"/dev/null", amode: READ_ONLY, info: &info };
    let (mut file, opened) = FileHandle::open(&with);
    if !opened.code.is_success() {
        return Ok(true);
    }
    let agrees =
        [(Whence::Set, 5, 5), (Whence::Current, 2, 7), (Whence::End, 3, 3)].iter().all(|(whence, offset, then)| {
            let (told, position) = (file.seek(*offset, *whence), file.get_position());
            told.code.is_success() && position.0.code.is_success() && position.1 == *then
        });
    let _ = file.close();
    Ok(agrees)
}

#[cfg(test)]
mod tests {
    use beff_fake_mpi::{as_rank, error_code, script, set_fatal_file_errors, take_log, ScriptedResult};

    use super::*;

    fn verify_with(seeks: &[ScriptedResult], positions: &[u64]) -> Result<()> {
        as_rank(1, 2, || {
            script("File_seek", seeks);
            script("File_get_position", &positions.iter().map(|n| ScriptedResult::Bytes(*n)).collect::<Vec<_>>());
            let result = verify();
            assert_eq!(take_log().last().map(String::as_str), Some("File_close"));
            result
        })
    }

    #[test]
    fn seeks_decide_by_their_effect() {
        assert_eq!((verify_with(&[], &[]), verify_with(&[], &[5, 7, 3])), (Ok(()), Ok(())));
        let refused = ScriptedResult::Refused(error_code("MPI_ERR_OTHER"));
        for (seeks, positions) in [
            (&[][..], &[5, 2, 3][..]),
            (&[], &[0, 2, 3]),
            (&[], &[5, 7, 10]),
            (&[ScriptedResult::Success, ScriptedResult::Success, refused], &[5, 7, 3]),
        ] {
            let error = verify_with(seeks, positions).unwrap_err();
            assert!(error.class == "MPI_ERR_ABI" && error.text.contains("MPI_SEEK_SET"), "{error}");
            assert!(error.text.contains("make install MPICC="), "{error}");
        }
    }

    #[test]
    fn an_error_handler_of_another_number_is_refused_before_it_is_used() {
        let log = as_rank(0, 2, || {
            set_fatal_file_errors();
            let error = verify().unwrap_err();
            assert!(error.class == "MPI_ERR_ABI" && error.text.contains("MPI_ERRORS_RETURN"), "{error}");
            take_log()
        });
        assert_eq!(log, Vec::<String>::new());
    }

    #[test]
    fn without_files_there_is_nothing_to_seek() {
        as_rank(0, 2, || {
            script("File_open", &[ScriptedResult::Refused(error_code("MPI_ERR_ACCESS"))]);
            assert_eq!(verify(), Ok(()));
        });
    }
}
