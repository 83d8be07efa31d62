//! pread and pwrite, one system call per chunk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::direct::{in_force, not_prepared, FdPair, Route};
use crate::latency::Mark;
use crate::two_phase::TwoPhase;
use crate::walk::{batch_bytes, check_fits, Walk};
use crate::{
    BackendError, Batch, Direction, Driver, DriverOptions, InForce, Latency, OpenFile, OpenRequest, Pattern, Result,
    Ring,
};

/// Driver for pread(2) and pwrite(2). Collective kinds of access use the same offsets, each rank on its own.
#[derive(Clone, Debug)]
pub struct PosixDriver {
    options: DriverOptions,
}

impl PosixDriver {
    /// Takes the direct-I/O policy from the options.
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { options: options.clone() }
    }
}

impl Driver for PosixDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        // What is collective comes first: no rank may leave before.
        let two_phase = TwoPhase::new(request, &self.options, None);
        let file = PosixFile::new(FdPair::open(request, self.options.direct)?);
        Ok(Box::new(PosixFile { two_phase: two_phase?, ..file }))
    }
}

/// An open file and its prepared pattern.
pub(crate) struct PosixFile {
    two_phase: TwoPhase,
    files: FdPair,
    prepared: Option<(Pattern, Route)>,
}

impl PosixFile {
    pub(crate) fn new(files: FdPair) -> Self {
        Self { two_phase: TwoPhase::never(&DriverOptions::default(), None), files, prepared: None }
    }

    /// What a batch needs: pattern, route, descriptor.
    fn prepared(&self, operation: &'static str) -> Result<(&Pattern, &Route, &File)> {
        let (pattern, route) = self.prepared.as_ref().ok_or_else(|| not_prepared(operation, &self.files.path))?;
        Ok((pattern, route, self.files.file(route)))
    }

    /// The error of a chunk that ended after `got` bytes: by `error`, or by an end of file or a short write.
    fn chunk_error(
        &self,
        operation: &'static str,
        offset: u64,
        len: usize,
        got: usize,
        error: Option<&io::Error>,
    ) -> BackendError {
        match error {
            Some(error) => BackendError::from_io(operation, &self.files.path, Some(offset + got as u64), error),
            None => BackendError::short(operation, &self.files.path, offset, len as u64, got as u64),
        }
    }
}

impl OpenFile for PosixFile {
    fn unsupported(&self, pattern: &Pattern) -> Option<String> {
        let two_phase = self.two_phase.unsupported(pattern, &self.files);
        two_phase.unwrap_or_else(|| self.files.route(pattern).err())
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        _hints: &[(String, String)],
    ) -> Result<InForce> {
        check_fits(pattern, ring, &self.files.path)?;
        if let Some(told) = self.two_phase.prepare(&self.files, pattern, direction, ring)? {
            return Ok(told);
        }
        let route = self.files.route_or_error(pattern)?;
        let call = match direction {
            Direction::Write => "pwrite",
            Direction::Read => "pread",
        };
        let told = in_force(call, pattern.kind, &route);
        self.prepared = Some((*pattern, route));
        Ok(told)
    }

    fn write(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        if self.two_phase.is_active() {
            return self.two_phase.write(&self.files, batch, ring, latency);
        }
        let (pattern, route, file) = self.prepared("pwrite")?;
        let len = pattern.chunk_bytes as usize;
        let mut timer = CallTimer::new(latency, pattern.chunks_per_call);
        for (offset, index) in Walk::new(pattern, batch, ring, &self.files.path)? {
            let chunk = &ring.bytes()[index..index + len];
            transfer(len, route, |got| file.write_at(&chunk[got..], offset + got as u64))
                .map_err(|(got, error)| self.chunk_error("pwrite", offset, len, got, error.as_ref()))?;
            timer.chunk_done();
        }
        Ok(batch_bytes(pattern, batch))
    }

    fn read(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        if self.two_phase.is_active() {
            return self.two_phase.read(&self.files, batch, ring, latency);
        }
        let (pattern, route, file) = self.prepared("pread")?;
        let len = pattern.chunk_bytes as usize;
        let mut timer = CallTimer::new(latency, pattern.chunks_per_call);
        for (offset, index) in Walk::new(pattern, batch, ring, &self.files.path)? {
            let chunk = &mut ring.bytes_mut()[index..index + len];
            transfer(len, route, |got| file.read_at(&mut chunk[got..], offset + got as u64))
                .map_err(|(got, error)| self.chunk_error("pread", offset, len, got, error.as_ref()))?;
            timer.chunk_done();
        }
        Ok(batch_bytes(pattern, batch))
    }

    fn sync(&mut self) -> Result<()> {
        let flushed = self.two_phase.flush(&self.files);
        flushed.and(self.files.sync())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { two_phase, files, .. } = *self;
        let flushed = two_phase.close(&files);
        flushed.and(files.close())
    }
}

/// Times the calls of a batch, chunk after chunk.
struct CallTimer<'a> {
    latency: &'a mut Latency,
    chunks_per_call: u64,
    left: u64,
    mark: Mark,
}

impl<'a> CallTimer<'a> {
    fn new(latency: &'a mut Latency, chunks_per_call: u64) -> Self {
        let mark = latency.begin();
        Self { latency, chunks_per_call, left: chunks_per_call, mark }
    }

    #[inline]
    fn chunk_done(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.chunks_per_call;
            self.latency.end(self.mark);
            self.mark = self.latency.begin();
        }
    }
}

/// Repeats `call(bytes moved so far)` until `len` bytes have moved. One call does it, unless the chunk is longer than
/// the kernel takes at once (0x7ffff000 bytes), a signal came in between, or the file or the space ends.
///
/// # Errors
/// Bytes moved so far, with the error of the call, or without one if nothing more came.
#[inline]
fn transfer(
    len: usize,
    route: &Route,
    mut call: impl FnMut(usize) -> io::Result<usize>,
) -> std::result::Result<(), (usize, Option<io::Error>)> {
    let mut got = 0;
    loop {
        match call(got) {
            Ok(0) => return Err((got, None)),
            Ok(moved) => got += moved,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((got, Some(error))),
        }
        if got >= len {
            return Ok(());
        }
        if !route.can_continue(got as u64) {
            return Err((got, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Cause;
    use crate::testing::pattern;
    use crate::{Direct, OpenMode};
    use std::path::Path;

    const BUFFERED: Route = Route::Buffered { reason: None };

    #[test]
    fn continues_after_short_transfers_and_signals() {
        let mut asked = Vec::new();
        let mut answers = vec![Ok(3), Err(io::ErrorKind::Interrupted.into()), Ok(5)].into_iter();
        transfer(8, &BUFFERED, |got| {
            asked.push(got);
            answers.next().unwrap()
        })
        .unwrap();
        assert_eq!(asked, [0, 3, 3]);
    }

    #[test]
    fn end_and_error_tell_how_far_it_came() {
        let mut answers = vec![Ok(3), Ok(0)].into_iter();
        assert!(matches!(transfer(8, &BUFFERED, |_| answers.next().unwrap()), Err((3, None))));
        let mut answers = vec![Ok(3), Err(io::Error::from_raw_os_error(libc::ENOSPC))].into_iter();
        let (got, error) = transfer(8, &BUFFERED, |_| answers.next().unwrap()).unwrap_err();
        assert_eq!((got, error.unwrap().raw_os_error()), (3, Some(libc::ENOSPC)));
        let direct = Route::Direct { align_bytes: 512 };
        assert!(matches!(transfer(4096, &direct, |_| Ok(1000)), Err((1000, None))));
    }

    #[test]
    fn full_device_is_no_space() {
        let files = FdPair::open_alone(Path::new("/dev/full"), OpenMode::Update, Direct::Off).unwrap();
        let mut file = PosixFile::new(files);
        let mut ring = Ring::new(4096, 4096).unwrap();
        let p = Pattern { base_bytes: 8192, ..pattern(4096, 1, 4) };
        let batch = Batch { first_call: 0, calls: 4 };
        assert!(file.write(batch, &ring, &mut Latency::off()).unwrap_err().text.contains("prepare"));
        file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
        let error = file.write(batch, &ring, &mut Latency::off()).unwrap_err();
        assert_eq!((error.operation, error.cause, error.offset_bytes), ("pwrite", Cause::NoSpace, Some(8192)));
    }
}
