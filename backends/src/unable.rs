//! A backend that cannot work here: found out before anything is measured, and told for each pattern.

use beff_ffi::Comm;

use crate::error::Cause;
use crate::{
    BackendError, Batch, Batches, Direction, Driver, DriverOptions, DriverRow, FilePath, InForce, Latency, OpenFile,
    OpenMode, OpenRequest, Pattern, Result, Ring, Support,
};

/// Bytes of one chunk of the trial: a multiple of every common sector.
const CHUNK_BYTES: u64 = 4096;
/// Chunks of the trial.
const CHUNKS: u64 = 4;

/// Open MPI 4.1 (sharedfp/lockedfile) writes names of files with an addition into 256 bytes, and ends with a buffer overflow if they
/// do not fit. Names of a run are up to 30 bytes longer than that of the trial.
const MOST_NAME_BYTES: usize = 200;

/// What a trial of a driver brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It can work here, or needs no trial.
    Works,
    /// It cannot work on this host, or with files at this place.
    Unable(BackendError),
    /// The storage failed. The run may not meet that again, so it is not to be forgotten.
    Failed(BackendError),
}

/// Tries whether a driver can work on this host with files at `path`: it makes a small file of its own, writes, reads and removes it.
#[must_use]
pub fn trial(row: &DriverRow, options: &DriverOptions, path: &FilePath) -> Trial {
    if let Some(error) = too_long(row, path, beff_ffi::built_with()) {
        return Trial::Unable(error);
    }
    if !row.may_be_missing {
        return Trial::Works;
    }
    let tried = try_out((row.make)(options).as_ref(), path);
    // It may not be there.
    let _ = path.remove();
    match tried {
        Ok(()) => Trial::Works,
        Err(e) if e.cause == Cause::Unsupported || e.operation == "io_uring_setup" => Trial::Unable(e),
        Err(e) => Trial::Failed(e),
    }
}

fn too_long(row: &DriverRow, path: &FilePath, library: &str) -> Option<BackendError> {
    let bytes = path.as_os_str().len();
    let is_so = row.opens_by_name && library.starts_with("Open MPI") && bytes > MOST_NAME_BYTES;
    let text = format!(
        "names of {bytes} bytes are too long for this MPI library, which ends in a buffer overflow; take a --path with a shorter name"
    );
    is_so.then(|| BackendError::new("MPI_File_open", path, Cause::Unsupported, text))
}

fn try_out(driver: &dyn Driver, path: &FilePath) -> Result<()> {
    let own = Comm::own();
    let mut ring = Ring::new(CHUNKS * CHUNK_BYTES, CHUNK_BYTES)
        .map_err(|e| BackendError::from_io("mmap (transfer memory)", path, None, &e))?;
    let pattern = Pattern::private(CHUNK_BYTES, 1, CHUNKS);
    let batch = Batch { first_call: 0, calls: CHUNKS };
    let open = |mode| driver.open(&OpenRequest { path, mode, comm: &own, hints: &[] });
    let mut file = open(OpenMode::CreateNew)?;
    if file.support(&pattern).reason().is_some() {
        // It says so for each pattern.
        return file.close();
    }
    file.prepare(&pattern, Direction::Write, &mut ring, &[])?;
    file.preallocate(batch)?;
    file.write(Batches::new(batch, &mut Latency::off()), &ring)?;
    file.close()?;
    let mut file = open(OpenMode::ReadOnly)?;
    file.prepare(&pattern, Direction::Read, &mut ring, &[])?;
    file.read(Batches::new(batch, &mut Latency::off()), &mut ring)?;
    file.close()
}

/// Stands for a driver that cannot work here: opens nothing, and gives the reason for every pattern.
#[derive(Clone, Debug)]
pub struct Unable {
    /// Why.
    pub reason: String,
}

impl Driver for Unable {
    fn open(&self, _request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        Ok(Box::new(self.clone()))
    }
}

impl Unable {
    fn refuse<T>(&self) -> Result<T> {
        Err(BackendError::new("transfer", "", Cause::Unsupported, self.reason.clone()))
    }
}

impl OpenFile for Unable {
    fn support(&self, _pattern: &Pattern) -> Support {
        Support::Unsupported(self.reason.clone())
    }

    fn prepare(
        &mut self,
        _pattern: &Pattern,
        _direction: Direction,
        _ring: &mut Ring,
        _hints: &[(String, String)],
    ) -> Result<InForce> {
        self.refuse()
    }

    fn write(&mut self, _work: Batches<'_>, _ring: &Ring) -> Result<u64> {
        self.refuse()
    }

    fn read(&mut self, _work: Batches<'_>, _ring: &mut Ring) -> Result<u64> {
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
    use super::*;
    use crate::drivers;

    #[test]
    fn what_stands_for_a_driver_moves_nothing_and_says_why() {
        let driver = Unable { reason: "because".into() };
        let path = FilePath::nowhere("/no/such/directory/file");
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &Comm::own(), hints: &[] };
        let mut file = driver.open(&request).unwrap();
        let pattern = Pattern::private(CHUNK_BYTES, 1, CHUNKS);
        assert_eq!(file.support(&pattern), Support::Unsupported("because".into()));
        let mut ring = Ring::new(CHUNK_BYTES, CHUNK_BYTES).unwrap();
        let error = file.prepare(&pattern, Direction::Read, &mut ring, &[]).unwrap_err();
        assert_eq!((error.cause, error.text.as_str()), (Cause::Unsupported, "because"));
        file.close().unwrap();
    }

    #[test]
    fn names_that_a_library_has_no_room_for_are_refused() {
        let long = FilePath::nowhere(format!("/{}/file", "x".repeat(MOST_NAME_BYTES)));
        for row in drivers() {
            assert_eq!(too_long(row, &long, "Open MPI 4.1.4").is_some(), row.opens_by_name, "{}", row.name);
            assert_eq!(too_long(row, &long, "MPICH 4.0.2"), None);
            assert_eq!(too_long(row, &FilePath::nowhere("/scratch/file"), "Open MPI 4.1.4"), None);
        }
    }

    /// A missing directory is no property of a backend.
    #[test]
    fn failures_of_the_storage_are_told() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for row in drivers().iter().filter(|row| row.may_be_missing) {
            let path = FilePath::of(&directory.path().join(row.name)).unwrap();
            match trial(row, &DriverOptions::default(), &path) {
                Trial::Works => {
                    let nowhere = trial(row, &DriverOptions::default(), &FilePath::nowhere("/no/such/directory/file"));
                    assert!(matches!(nowhere, Trial::Failed(_)), "{nowhere:?}");
                }
                Trial::Unable(error) => println!("SKIPPED: {} cannot work here: {error}", row.name),
                Trial::Failed(error) => panic!("{}: {error}", row.name),
            }
            assert!(!path.exists(), "{}: the file of the trial is gone", row.name);
        }
    }
}
