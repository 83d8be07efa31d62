//! A backend that is not available here: detected before the measurement, and reported for each pattern.

use beff_ffi::Comm;

use crate::error::FailureCause;
use crate::{
    AccessPattern, BackendError, Batch, Batches, Direction, Driver, DriverOptions, DriverRow, FilePath, Latency,
    OpenFile, OpenMode, OpenRequest, Result, Support, TransferBuffer, TransferStrategy,
};

/// Length of one chunk of the check: a multiple of every common sector.
const CHUNK_BYTES: u64 = 4096;
/// Number of chunks of the check.
const CHUNKS: u64 = 4;

/// Open MPI 4.1 (sharedfp/lockedfile) writes file names with a suffix into 256 bytes; longer names cause a buffer overflow. Names of a
/// run are up to 30 bytes longer than that of the check.
const MAX_NAME_BYTES: usize = 200;

/// Result of the check of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Available, or no check is needed.
    Available,
    /// Not available on this host, or for files in this directory.
    Unavailable(BackendError),
    /// The storage failed. The error may not recur in the run, and must be reported.
    Failed(BackendError),
}

/// Checks whether a driver is available on this host for files at `path`: creates a small file, writes, reads and removes it.
#[must_use]
pub fn check_availability(row: &DriverRow, options: &DriverOptions, path: &FilePath) -> Availability {
    if let Some(error) = name_length_error(row, path, beff_ffi::built_with()) {
        return Availability::Unavailable(error);
    }
    let is_ambiguous = is_name_ambiguous(row, path);
    if !row.needs_support_check && !is_ambiguous {
        return Availability::Available;
    }
    let tried = exercise_driver((row.create)(options).as_ref(), path);
    // It may not exist.
    let _ = path.remove();
    match tried {
        Ok(()) => Availability::Available,
        Err(e) if is_ambiguous => Availability::Unavailable(ambiguous_name_error(e)),
        // A refused call of this driver does not concern the others.
        Err(e)
            if matches!(e.cause, FailureCause::Unsupported | FailureCause::Refused)
                || e.operation == "io_uring_setup" =>
        {
            Availability::Unavailable(e)
        }
        Err(e) => Availability::Failed(e),
    }
}

fn name_length_error(row: &DriverRow, path: &FilePath, library: &str) -> Option<BackendError> {
    let bytes = path.as_os_str().len();
    let is_so = row.opens_by_name && library.starts_with("Open MPI") && bytes > MAX_NAME_BYTES;
    let text = format!(
        "names of {bytes} bytes are too long for this MPI library (buffer overflow); use a --path with a shorter name"
    );
    is_so.then(|| BackendError::new("MPI_File_open", path, FailureCause::Unsupported, text))
}

/// ROMIO takes the part of a name before a colon for a type of file system, and fails if it knows no such type. Other libraries open the
/// file, so the trial decides.
fn is_name_ambiguous(row: &DriverRow, path: &FilePath) -> bool {
    row.opens_by_name && path.as_os_str().as_encoded_bytes().contains(&b':')
}

fn ambiguous_name_error(error: BackendError) -> BackendError {
    let text = format!(
        "this MPI library takes the part of {} before ':' for a type of file system ({}); use a --path and --run-dir without ':', for \
         example a symbolic link to the directory",
        error.path.display(),
        error.text
    );
    BackendError { cause: FailureCause::Unsupported, text, ..error }
}

fn exercise_driver(driver: &dyn Driver, path: &FilePath) -> Result<()> {
    let own = Comm::comm_self();
    let mut buffer = TransferBuffer::new(CHUNKS * CHUNK_BYTES, CHUNK_BYTES)
        .map_err(|e| BackendError::from_io("mmap (transfer buffer)", path, None, &e))?;
    let pattern = AccessPattern::private(CHUNK_BYTES, 1, CHUNKS);
    let batch = Batch { first_call: 0, calls: CHUNKS };
    let open = |mode| driver.open(&OpenRequest { path, mode, comm: &own, hints: &[] });
    let mut file = open(OpenMode::CreateNew)?;
    if file.support(&pattern).reason().is_some() {
        // Reported for each pattern.
        return file.close();
    }
    file.prepare(&pattern, Direction::Write, &mut buffer, &[])?;
    file.preallocate(batch)?;
    file.write(Batches::new(batch, &mut Latency::off()), &buffer)?;
    file.close()?;
    let mut file = open(OpenMode::ReadOnly)?;
    file.prepare(&pattern, Direction::Read, &mut buffer, &[])?;
    file.read(Batches::new(batch, &mut Latency::off()), &mut buffer)?;
    file.close()
}

/// Replaces a driver that is not available: opens nothing, and returns the reason for every pattern.
#[derive(Clone, Debug)]
pub struct UnavailableDriver {
    /// Reason.
    pub reason: String,
}

impl Driver for UnavailableDriver {
    fn open(&self, _request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        Ok(Box::new(self.clone()))
    }
}

impl UnavailableDriver {
    fn refuse<T>(&self) -> Result<T> {
        Err(BackendError::new("transfer", "", FailureCause::Unsupported, self.reason.clone()))
    }
}

impl OpenFile for UnavailableDriver {
    fn support(&self, _pattern: &AccessPattern) -> Support {
        Support::Unsupported(self.reason.clone())
    }

    fn prepare(
        &mut self,
        _pattern: &AccessPattern,
        _direction: Direction,
        _ring: &mut TransferBuffer,
        _hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        self.refuse()
    }

    fn write(&mut self, _work: Batches<'_>, _ring: &TransferBuffer) -> Result<u64> {
        self.refuse()
    }

    fn read(&mut self, _work: Batches<'_>, _ring: &mut TransferBuffer) -> Result<u64> {
        self.refuse()
    }

    fn transfer_mixed(&mut self, _work: Batches<'_>, _ring: &mut TransferBuffer) -> Result<u64> {
        self.refuse()
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use beff_fake_mpi::{as_rank, error_code, script, ScriptedResult};
    use beff_ffi::Universe;

    use super::*;
    use crate::drivers;

    #[test]
    fn an_unavailable_driver_moves_nothing_and_gives_the_reason() {
        let driver = UnavailableDriver { reason: "because".into() };
        let path = FilePath::unbacked("/no/such/directory/file");
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &Comm::comm_self(), hints: &[] };
        let mut file = driver.open(&request).unwrap();
        let pattern = AccessPattern::private(CHUNK_BYTES, 1, CHUNKS);
        assert_eq!(file.support(&pattern), Support::Unsupported("because".into()));
        let mut buffer = TransferBuffer::new(CHUNK_BYTES, CHUNK_BYTES).unwrap();
        let error = file.prepare(&pattern, Direction::Read, &mut buffer, &[]).unwrap_err();
        assert_eq!((error.cause, error.text.as_str()), (FailureCause::Unsupported, "because"));
        file.close().unwrap();
    }

    #[test]
    fn names_longer_than_the_buffer_of_the_library_are_refused() {
        let long = FilePath::unbacked(format!("/{}/file", "x".repeat(MAX_NAME_BYTES)));
        for row in drivers() {
            assert_eq!(name_length_error(row, &long, "Open MPI 4.1.4").is_some(), row.opens_by_name, "{}", row.name);
            assert_eq!(name_length_error(row, &long, "MPICH 4.0.2"), None);
            assert_eq!(name_length_error(row, &FilePath::unbacked("/scratch/file"), "Open MPI 4.1.4"), None);
        }
    }

    /// ROMIO refuses a name with a colon; OMPIO opens the file.
    #[test]
    fn a_name_with_a_colon_is_tried_by_drivers_that_open_by_name() {
        as_rank(0, 1, || {
            let universe = Universe::init().unwrap();
            let options = DriverOptions::default();
            let path = FilePath::unbacked("/scratch/DIR:Y/run/mpiio/trial");
            for row in drivers().iter().filter(|row| !row.needs_support_check) {
                if row.opens_by_name {
                    script("File_open", &[ScriptedResult::Code(error_code("MPI_ERR_OTHER"))]);
                }
                match check_availability(row, &options, &path) {
                    Availability::Unavailable(error) if row.opens_by_name => {
                        assert_eq!((error.operation, error.cause), ("MPI_File_open", FailureCause::Unsupported));
                        for part in ["DIR:Y/run", "before ':'", "type of file system", "MPI_ERR_OTHER", "use a --path"]
                        {
                            assert!(error.text.contains(part), "no {part}: {error}");
                        }
                    }
                    found => assert!(found == Availability::Available && !row.opens_by_name, "{}: {found:?}", row.name),
                }
                assert_eq!(check_availability(row, &options, &path), Availability::Available, "{}", row.name);
            }
            std::mem::forget(universe);
        });
    }

    /// As a seccomp filter does: only the driver that makes the call cannot work.
    #[derive(Clone, Debug)]
    struct Refused;

    impl Driver for Refused {
        fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
            let error = std::io::Error::from_raw_os_error(libc::EPERM);
            Err(BackendError::from_io("fallocate", request.path, Some(0), &error))
        }
    }

    #[test]
    fn a_refused_call_is_no_failure_of_the_storage() {
        let row = *drivers().iter().find(|row| row.needs_support_check).unwrap();
        let row = DriverRow { create: |_| Box::new(Refused), ..row };
        match check_availability(&row, &DriverOptions::default(), &FilePath::unbacked("/scratch/file")) {
            Availability::Unavailable(error) => {
                assert_eq!((error.operation, error.cause), ("fallocate", FailureCause::Refused));
                assert!(error.text.contains("not permitted"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// A missing directory does not depend on the backend.
    #[test]
    fn storage_failures_are_reported() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for row in drivers().iter().filter(|row| row.needs_support_check) {
            let path = FilePath::of(&directory.path().join(row.name)).unwrap();
            match check_availability(row, &DriverOptions::default(), &path) {
                Availability::Available => {
                    let nowhere = check_availability(
                        row,
                        &DriverOptions::default(),
                        &FilePath::unbacked("/no/such/directory/file"),
                    );
                    assert!(matches!(nowhere, Availability::Failed(_)), "{nowhere:?}");
                }
                Availability::Unavailable(error) => println!("SKIPPED: {} cannot work here: {error}", row.name),
                Availability::Failed(error) => panic!("{}: {error}", row.name),
            }
            assert!(!path.exists(), "{}: the file of the check is removed", row.name);
        }
    }
}
