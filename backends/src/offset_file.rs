//! A file accessed at explicit offsets, by each rank or two-phase: the parts that posix and uring share before and after the transfers.

use crate::direct::{FdPair, TransferPolicy};
use crate::preallocation::{Preallocation, WritePath};
use crate::route::FileRoute;
use crate::two_phase::{BufferPool, TwoPhase};
use crate::walk::check_fits;
use crate::{
    AccessPattern, BackendError, Batch, Direction, DriverOptions, OpenRequest, Result, Support, TransferBuffer,
    TransferStrategy,
};

/// Two-phase for collective patterns where it applies, and independent access for all others.
pub(crate) struct OffsetFile {
    pub(crate) two_phase: TwoPhase,
    pub(crate) files: FdPair,
    preallocation: Preallocation,
    /// Preallocation error in a two-phase pattern, reported after the loop.
    preallocation_error: Option<BackendError>,
}

/// Access method of a prepared pattern.
pub(crate) enum TransferMethod {
    /// Two-phase, with its report.
    TwoPhase(TransferStrategy),
    /// Each rank by itself.
    Independent(FileRoute),
}

impl OffsetFile {
    /// Opens the file of a request. `depth`: domains of a two-phase transfer in flight through io_uring; `shelf`: pool of their buffers.
    pub(crate) fn open(
        request: &OpenRequest<'_>,
        options: &DriverOptions,
        depth: Option<u32>,
        shelf: &BufferPool,
    ) -> Result<Self> {
        // Collective operations come first: no rank may return before them.
        let two_phase = TwoPhase::new(request, options, depth, shelf);
        let files = FdPair::open(request, TransferPolicy::from(options));
        let detected = Preallocation::detect(request, options.preallocate, files.as_ref().ok());
        Ok(Self { two_phase: two_phase?, files: files?, preallocation: detected?, preallocation_error: None })
    }

    #[cfg(test)]
    pub(crate) fn single_rank(files: FdPair) -> Self {
        Self {
            two_phase: TwoPhase::disabled(&DriverOptions::default()),
            files,
            preallocation: Preallocation::disabled(),
            preallocation_error: None,
        }
    }

    /// Implements [`crate::OpenFile::support`]; `refused`: an objection of the driver itself. Two-phase transfers synchronize ranks, and
    /// so does the preallocation of a range of all ranks beyond the end that each has determined.
    pub(crate) fn support(&self, pattern: &AccessPattern, refused: Option<String>) -> Support {
        let synchronizes = pattern.is_interleaved() || self.two_phase.applicability(pattern, &self.files).is_some();
        Support::from_reason(self.unsupported(pattern, refused), synchronizes)
    }

    fn unsupported(&self, pattern: &AccessPattern, refused: Option<String>) -> Option<String> {
        if refused.is_some() {
            return refused;
        }
        let two_phase = self.two_phase.unsupported(pattern, &self.files);
        let direct = match &two_phase {
            Some(_) => self.two_phase.domains(&self.files).is_some_and(|domains| domains.is_direct),
            None => self.files.route(pattern, Direction::Write).is_ok_and(|route| route.is_direct()),
        };
        let refused = two_phase.unwrap_or_else(|| self.files.unsupported(pattern));
        refused.or_else(|| self.preallocation.unsupported().filter(|_| direct))
    }

    /// Prepares a pattern, after all data of the previous one has been written to the file.
    pub(crate) fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        refused: Option<String>,
    ) -> Result<TransferMethod> {
        let Self { two_phase, files, preallocation: allocation, .. } = self;
        check_fits(pattern, buffer, &files.path)?;
        files.check_supported(refused)?;
        files.flush_edges()?;
        Ok(match two_phase.prepare(files, pattern, direction, buffer)? {
            Some(mut transfer) => {
                allocation.prepare(files, pattern, direction, WritePath::aggregated(transfer.direct == Some(true)))?;
                transfer.strategy += allocation.description();
                TransferMethod::TwoPhase(transfer)
            }
            None => {
                let route = files.route_or_error(pattern, direction, buffer)?;
                allocation.prepare(files, pattern, direction, WritePath::individual(&route))?;
                TransferMethod::Independent(route)
            }
        })
    }

    /// How independent patterns are preallocated, for the report.
    pub(crate) fn preallocation_note(&self) -> &str {
        self.preallocation.description()
    }

    /// Implements [`crate::OpenFile::preallocate`].
    pub(crate) fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        let extended = self.preallocation.extend(&self.files, batch);
        if self.two_phase.is_active() {
            // The other ranks wait for this rank in the write, which does not need preallocation.
            self.preallocation_error = self.preallocation_error.take().or(extended.err());
        } else {
            extended?;
        }
        Ok(self.preallocation.covered_calls())
    }

    /// Records that `batch` was written without [`OffsetFile::preallocate`] for some of its calls.
    pub(crate) fn record_written(&mut self, batch: Batch) {
        self.preallocation.record_written(batch);
    }

    /// Implements [`crate::OpenFile::trim`].
    pub(crate) fn trim(&mut self) -> Result<Option<String>> {
        let given_back = self.preallocation.trim(&self.files);
        self.preallocation_error.take().map_or(given_back, Err)?;
        Ok(self.preallocation.stop_reason())
    }

    pub(crate) fn needs_lockstep(&self) -> bool {
        self.preallocation.needs_lockstep()
    }

    /// fsync(2), after the last sectors have been written.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let flushed = self.two_phase.flush(&self.files);
        let settled = self.preallocation.trim_shared(&self.files);
        flushed.and(settled).and(self.files.sync())
    }

    /// Closes the file, after the last sectors have been written.
    pub(crate) fn close(self) -> Result<()> {
        let flushed = self.two_phase.close(&self.files);
        flushed.and(self.files.close())
    }
}
