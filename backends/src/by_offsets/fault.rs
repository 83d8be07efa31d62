//! Why a step failed: an error class for the outcome, and what the first complaint says. Nothing is formatted inside the clock.

use std::path::Path;

use beff_trace::ErrorClass;

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) class: ErrorClass,
    pub(super) cause: Cause,
}

/// What the complaint is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A system call and its answer, with the offset where there is one.
    System { call: &'static str, errno: i32, offset_bytes: Option<u64> },
    /// What is said for itself.
    Text(&'static str),
    /// Direct I/O is required, and this access is not aligned; see the file for what it needs.
    NotDirect { offset_bytes: u64 },
    /// Another rank of the file failed.
    OtherRank,
    /// MPI did not let the ranks of a file meet.
    Mpi(Box<str>),
}

/// Result of a step.
pub(super) type Done<T> = Result<T, Fault>;

impl Fault {
    /// A class by its name in the standard.
    pub(super) fn named(class: &str, text: &'static str) -> Self {
        Self { class: named(class), cause: Cause::Text(text) }
    }

    /// The answer of a system call. The classes are those of ROMIO.
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
        Self { class: named(class), cause: Cause::System { call, errno, offset_bytes } }
    }

    /// [`Fault::system`] of an error of the standard library.
    #[cold]
    pub(super) fn io(call: &'static str, error: &std::io::Error) -> Self {
        Self::system(call, error.raw_os_error().unwrap_or(libc::EIO), None)
    }

    /// An error that only other ranks met, with their class.
    pub(super) fn of_others(class: ErrorClass) -> Self {
        Self { class, cause: Cause::OtherRank }
    }

    /// The sentence for the user.
    pub(super) fn describe(&self, path: Option<&Path>, why_not_direct: Option<&str>) -> String {
        let on = path.map(|path| format!(" on {}", path.display())).unwrap_or_default();
        let class = self.class.name();
        match &self.cause {
            Cause::System { call, errno, offset_bytes } => {
                let at = offset_bytes.map(|offset| format!(" at offset {offset}")).unwrap_or_default();
                let error = std::io::Error::from_raw_os_error(*errno);
                format!("{call}{on}{at}: {error} ({class})")
            }
            Cause::Text(text) => format!("{text}{on} ({class})"),
            Cause::NotDirect { offset_bytes } => {
                let why = why_not_direct.unwrap_or("its file offset, memory address or length is not aligned");
                format!("direct I/O is required{on}, but the access at offset {offset_bytes} cannot be: {why}; use --direct auto")
            }
            Cause::OtherRank => format!("another rank of the file failed{on}; its own message says why ({class})"),
            Cause::Mpi(text) => format!("the ranks of the file could not meet{on}: {text}"),
        }
    }
}

/// A class by its name; every name in this module is in the table, see the test.
pub(super) fn named(class: &str) -> ErrorClass {
    ErrorClass::named(class).unwrap_or(ErrorClass::OTHER)
}

/// True if errors of this class come from the arguments of a call, whatever the storage does: repeating the call by other means
/// would do what the recorded one did not.
pub(super) fn is_of_arguments(class: ErrorClass) -> bool {
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
        let source = include_str!("fault.rs").split("#[cfg(test)]").next().unwrap();
        let others =
            [include_str!("files.rs"), include_str!("plan.rs"), include_str!("mover.rs"), include_str!("storage.rs")];
        let meeting = include_str!("meeting.rs");
        let mut found = 0;
        for text in others.into_iter().chain([source, meeting]) {
            for name in text.split('"').filter(|word| word.starts_with("MPI_ERR_")) {
                assert!(ErrorClass::named(name).is_some(), "{name}");
                found += 1;
            }
        }
        assert!(found > 40, "{found}");
    }

    #[test]
    fn kernels_answers_have_the_classes_of_romio() {
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
            let fault = Fault::system("pwrite", errno, Some(7));
            assert_eq!(fault.class.name(), class);
            let said = fault.describe(Some(Path::new("/f")), None);
            assert!(said.starts_with("pwrite on /f at offset 7: ") && said.contains(class), "{said}");
        }
    }
}
