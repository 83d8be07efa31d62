//! Why a step failed: the error class for the outcome, and the text of the first complaint. Nothing is formatted inside the timed
//! section.

use std::path::Path;

use beff_trace::ErrorClass;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepError {
    pub(super) class: ErrorClass,
    pub(super) cause: StepErrorCause,
}

/// Reason for the complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepErrorCause {
    /// A system call and its `errno`, with the offset if there is one.
    System { call: &'static str, errno: i32, offset_bytes: Option<u64> },
    /// A complete text.
    Text(&'static str),
    /// Direct I/O is required, and this access is not aligned; the file holds the reason.
    NotDirect { offset_bytes: u64 },
    /// Another rank of the file failed.
    OtherRank,
    /// An MPI call between the ranks of a file failed.
    Mpi(Box<str>),
}

pub(super) type StepResult<T> = Result<T, StepError>;

impl StepError {
    /// With a class by its name in the standard.
    pub(super) fn with_class(class: &str, text: &'static str) -> Self {
        Self { class: class_by_name(class), cause: StepErrorCause::Text(text) }
    }

    /// The error of a system call. The classes are those of ROMIO.
    #[cold]
    pub(super) fn system(call: &'static str, errno: i32, offset_bytes: Option<u64>) -> Self {
        let class = match errno {
            libc::EACCES | libc::EPERM => "MPI_ERR_ACCESS",
            libc::ENAMETOOLONG | libc::EISDIR | libc::ENOTDIR => "MPI_ERR_BAD_FILE",
            libc::ENOENT => "MPI_ERR_NO_SUCH_FILE",
            libc::EROFS => "MPI_ERR_READ_ONLY",
            libc::EEXIST => "MPI_ERR_FILE_EXISTS",
            libc::ENOSPC => "MPI_ERR_NO_SPACE",
            libc::EDQUOT => "MPI_ERR_QUOTA",
            libc::ENOMEM => "MPI_ERR_NO_MEM",
            _ => "MPI_ERR_IO",
        };
        Self { class: class_by_name(class), cause: StepErrorCause::System { call, errno, offset_bytes } }
    }

    /// [`StepError::system`] of an error of the standard library.
    #[cold]
    pub(super) fn io(call: &'static str, error: &std::io::Error) -> Self {
        Self::system(call, error.raw_os_error().unwrap_or(libc::EIO), None)
    }

    /// An error that occurred on other ranks only, with their class.
    pub(super) fn from_other_rank(class: ErrorClass) -> Self {
        Self { class, cause: StepErrorCause::OtherRank }
    }

    pub(super) fn describe(&self, path: Option<&Path>, why_not_direct: Option<&str>) -> String {
        let on = path.map(|path| format!(" on {}", path.display())).unwrap_or_default();
        let class = self.class.name();
        match &self.cause {
            StepErrorCause::System { call, errno, offset_bytes } => {
                let at = offset_bytes.map(|offset| format!(" at offset {offset}")).unwrap_or_default();
                let error = std::io::Error::from_raw_os_error(*errno);
                format!("{call}{on}{at}: {error} ({class})")
            }
            StepErrorCause::Text(text) => format!("{text}{on} ({class})"),
            StepErrorCause::NotDirect { offset_bytes } => {
                let why = why_not_direct.unwrap_or("its file offset, memory address or length is not aligned");
                format!("direct I/O is required{on}, but not possible for the access at offset {offset_bytes}: {why}; use --direct auto")
            }
            StepErrorCause::OtherRank => format!("another rank of the file failed{on}; see its own message ({class})"),
            StepErrorCause::Mpi(text) => format!("the ranks of the file could not synchronize{on}: {text}"),
        }
    }
}

/// A class by its name. A test checks that every name in this module is in the table.
pub(super) fn class_by_name(class: &str) -> ErrorClass {
    ErrorClass::from_name(class).unwrap_or(ErrorClass::OTHER)
}

/// True if errors of this class are caused by the arguments of a call and not by the storage: a replay of such a call by other means
/// would have effects that the recorded call did not have.
pub(super) fn is_argument_error(class: ErrorClass) -> bool {
    const NAMES: [&str; 15] = [
        "MPI_ERR_AMODE",
        "MPI_ERR_ARG",
        "MPI_ERR_BUFFER",
        "MPI_ERR_COMM",
        "MPI_ERR_COUNT",
        "MPI_ERR_FILE",
        "MPI_ERR_GROUP",
        "MPI_ERR_INFO",
        "MPI_ERR_NOT_SAME",
        "MPI_ERR_OP",
        "MPI_ERR_RANK",
        "MPI_ERR_REQUEST",
        "MPI_ERR_TYPE",
        "MPI_ERR_UNSUPPORTED_DATAREP",
        "MPI_ERR_UNSUPPORTED_OPERATION",
    ];
    NAMES.contains(&class.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_in_the_table() {
        let source = include_str!("step_error.rs").split("#[cfg(test)]").next().unwrap();
        let others = [
            include_str!("files.rs"),
            include_str!("plan.rs"),
            include_str!("transfer_engine.rs"),
            include_str!("storage.rs"),
        ];
        let meeting = include_str!("communicators.rs");
        let mut found = 0;
        for text in others.into_iter().chain([source, meeting]) {
            for name in text.split('"').filter(|word| word.starts_with("MPI_ERR_")) {
                assert!(ErrorClass::from_name(name).is_some(), "{name}");
                found += 1;
            }
        }
        assert!(found > 40, "{found}");
    }

    #[test]
    fn errno_values_have_the_classes_of_romio() {
        for (errno, class) in [
            (libc::ENOENT, "MPI_ERR_NO_SUCH_FILE"),
            (libc::EEXIST, "MPI_ERR_FILE_EXISTS"),
            (libc::EACCES, "MPI_ERR_ACCESS"),
            (libc::EROFS, "MPI_ERR_READ_ONLY"),
            (libc::ENOSPC, "MPI_ERR_NO_SPACE"),
            (libc::EDQUOT, "MPI_ERR_QUOTA"),
            (libc::EISDIR, "MPI_ERR_BAD_FILE"),
            (libc::EIO, "MPI_ERR_IO"),
        ] {
            let fault = StepError::system("pwrite", errno, Some(7));
            assert_eq!(fault.class.name(), class);
            let said = fault.describe(Some(Path::new("/f")), None);
            assert!(said.starts_with("pwrite on /f at offset 7: ") && said.contains(class), "{said}");
        }
    }
}
