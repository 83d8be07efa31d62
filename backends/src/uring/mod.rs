//! io_uring: all chunks of a batch pass through one queue, up to the queue depth in flight.
//!
//! `queue.rs` wraps the rings of the kernel. `operation_stream` yields operations, `pump` submits them and reaps completions,
//! `split_pieces` tracks operations on one chunk, `edge_backup` restores memory next to reads, `overlap` runs work during
//! transfers, `pipeline` lets batches follow each other. Asynchronous completion never leaves this module.

mod edge_backup;
mod operation_stream;
mod overlap;
mod pipeline;
#[cfg(test)]
mod pipeline_tests;
mod pump;
mod queue_settings;
#[cfg(test)]
mod queue_settings_tests;
#[cfg(test)]
mod retry_tests;
mod split_pieces;
#[cfg(test)]
mod tests;

use crate::edges::{BatchSpan, EdgeWalk};
use crate::error::FailureCause;
use crate::interface::run_with_computation;
use crate::offset_file::{self, OffsetFile};
use crate::queue::{abandoned_error, Queue, TransferMode, MAX_BUFFER_SHIFT};
use crate::route::FileRoute;
use crate::two_phase::BufferPool;
use crate::walk::{batch_bytes, ChunkWalk, IoRequestSource};
use crate::{
    dontcache, edges, two_phase, AccessKind, AccessPattern, BackendError, Batch, BatchOverlap, Batches, CallStyle,
    Direction, Driver, DriverOptions, Latency, LatencyUnit, OpenFile, OpenRequest, Protocol, ReadWriteMix, Result,
    SubmissionStatistics, Support, TransferBuffer, TransferStrategy, MAX_PENDING_CALLS,
};
use operation_stream::BatchFailure;
use pump::{Pump, PumpJob};
pub(crate) use queue_settings::QueueSettings;

/// Two-phase domains in flight, or parts of them: enough to gather one while others are written.
const DOMAINS_IN_FLIGHT: u32 = 4;
const REGISTERED_BUFFERS: &str = "registered buffers";
type OverlapWork<'a> = &'a mut dyn FnMut();

/// Driver for io_uring. Collective kinds of access use the same offsets, each rank independently.
#[derive(Clone, Debug)]
pub struct UringDriver {
    options: DriverOptions,
    buffer_pool: BufferPool,
}

impl UringDriver {
    /// The options determine route and queue depth.
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { options: options.clone(), buffer_pool: BufferPool::default() }
    }

    fn domains_in_flight(&self) -> Option<u32> {
        Some(self.options.queue_depth.min(DOMAINS_IN_FLIGHT))
    }
}

impl Driver for UringDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        let options = &self.options;
        let file = OffsetFile::open(request, options, self.domains_in_flight(), &self.buffer_pool)?;
        Ok(Box::new(UringFile::new(file, options.into())?))
    }

    fn allocate_buffers(&self, ranks: u64, hosts: u64) {
        two_phase::allocate_buffers(&self.options, self.domains_in_flight(), &self.buffer_pool, (ranks, hosts));
    }
}

pub(crate) struct UringFile {
    // Dropped first: the queue holds references to its memory and descriptors.
    queue: Queue,
    pump: Pump,
    file: OffsetFile,
    settings: QueueSettings,
    prepared: Option<QueuedPattern>,
}

struct QueuedPattern {
    pattern: AccessPattern,
    direction: Direction,
    route: FileRoute,
    /// The buffer whose memory is registered, unless too large.
    buffer_id: u64,
    /// Maximum operations in flight.
    depth: u32,
    /// Completions to wait for in one call while there is more to submit.
    wait_for: u32,
    /// Bytes of the largest operation, if that is less than a chunk.
    operation_bytes: Option<u64>,
    /// Number of consecutive operations before memory is reused: see [`PumpJob::reuse_distance`].
    reuse_distance: u64,
}

impl UringFile {
    pub(crate) fn new(file: OffsetFile, settings: QueueSettings) -> Result<Self> {
        Self::with_piece_shift(file, settings, MAX_BUFFER_SHIFT)
    }

    /// [`UringFile::new`] with operations and registered buffers of at most `1 << piece_shift` bytes.
    pub(crate) fn with_piece_shift(file: OffsetFile, settings: QueueSettings, piece_shift: u32) -> Result<Self> {
        let queue = Queue::for_files(&file.files, settings.largest_depth(), piece_shift)?;
        let pump = Pump::new(queue.depth());
        Ok(Self { queue, pump, file, settings, prepared: None })
    }

    /// Rejects a batch that does not match the prepared pattern; `is_mixed`: of reads and writes.
    fn check_prepared(&self, (direction, is_mixed): (Direction, bool), buffer: &TransferBuffer) -> Result<()> {
        let (operation, path) = (operation_name(direction), &self.file.files.path);
        let prepared = self.prepared.as_ref().ok_or_else(|| BackendError::not_prepared(operation, path))?;
        let text = if prepared.buffer_id != buffer.id() {
            "the buffer is not the one passed to prepare()"
        } else if prepared.direction != direction || prepared.pattern.mix.is_some() != is_mixed {
            "the pattern was prepared for another direction"
        } else {
            return Ok(());
        };
        Err(BackendError::new(operation, path, FailureCause::Unsupported, text))
    }

    /// `base` is the mapping of `ring`, borrowed by the caller until this returns.
    fn run(
        &mut self,
        way: (Direction, bool),
        work: Batches<'_>,
        buffer: &TransferBuffer,
        base: *mut u8,
    ) -> Result<u64> {
        match work {
            Batches { batch, overlap: BatchOverlap::Computation(during), .. } => {
                run_with_computation(during, |during| self.overlapped(way, batch, buffer, base, during))
            }
            Batches { batch, latency, overlap: BatchOverlap::NextBatch(next) } if self.can_pipeline() => {
                self.check_prepared(way, buffer)?;
                self.run_pipelined(batch, buffer, base, latency, next)
            }
            work => work.run_sequentially(|batch, latency| {
                self.check_prepared(way, buffer)?;
                self.run_batch(batch, buffer, base, latency, None)
            }),
        }
    }

    fn run_batch(
        &mut self,
        batch: Batch,
        buffer: &TransferBuffer,
        base: *mut u8,
        latency: &mut Latency,
        during: Option<OverlapWork<'_>>,
    ) -> Result<u64> {
        let Some(QueuedPattern { pattern, direction, route, .. }) = &self.prepared else {
            return Err(BackendError::not_prepared("io_uring", &self.file.files.path));
        };
        let (pattern, direction) = (*pattern, *direction);
        if let FileRoute::DirectEdges { align_bytes } = *route {
            let stretch = BatchSpan::new(&pattern, batch, align_bytes);
            let walk = EdgeWalk::new(&stretch, direction, batch, buffer, &self.file.files.path)?;
            if direction == Direction::Write {
                let mark = latency.begin();
                if self.file.files.write_head(&stretch, buffer)? {
                    latency.end(mark);
                }
            }
            self.pump(walk, base, Some(&stretch), latency, during)?;
            if direction == Direction::Write {
                self.file.files.carry_tail(&stretch, buffer);
            }
        } else {
            let walk = ChunkWalk::new(&pattern, direction, batch, buffer, &self.file.files.path)?;
            self.pump(walk, base, None, latency, during)?;
        }
        Ok(batch_bytes(&pattern, batch))
    }

    /// `base` is the mapping of the buffer of `check`, borrowed by the caller until this returns.
    fn pump(
        &mut self,
        walk: impl IoRequestSource,
        base: *mut u8,
        stretch: Option<&BatchSpan>,
        latency: &mut Latency,
        during: Option<OverlapWork<'_>>,
    ) -> Result<()> {
        let Some(prepared) = &self.prepared else {
            return Err(BackendError::not_prepared("io_uring", &self.file.files.path));
        };
        let job = PumpJob {
            way: TransferMode {
                direction: prepared.direction,
                direct: prepared.route.is_direct(),
                flags: if self.file.files.drops_pages(&prepared.route) { dontcache::FLAG } else { 0 },
            },
            base,
            depth: prepared.depth,
            wait_for: prepared.wait_for,
            operation_bytes: prepared.operation_bytes,
            reuse_distance: prepared.reuse_distance,
            route: &prepared.route,
        };
        // SAFETY: `base` is the start of the mapping of the buffer, which the caller has borrowed for the whole batch, exclusively
        // for reads (`write`, `read` and `transfer_mixed` below); `Walk::new` has checked that every window ends within its bytes, and whole sectors
        // end in its slack (`MAX_SECTOR_BYTES` is less than that); registered memory, if any, is that of this buffer: `check` has
        // compared `ring_id`.
        let outcome = unsafe { self.pump.run(&mut self.queue, &job, walk, latency, during) };
        outcome.map_err(|failure| self.report(prepared, stretch, &failure))
    }

    fn report(&self, prepared: &QueuedPattern, stretch: Option<&BatchSpan>, failure: &BatchFailure) -> BackendError {
        let path = &self.file.files.path;
        let operation = operation_name(failure.direction().unwrap_or(prepared.direction));
        match failure {
            BatchFailure::Operation { offset, errno, .. } => {
                let error = std::io::Error::from_raw_os_error(*errno);
                let io_error = BackendError::from_io(operation, path, Some(*offset), &error);
                if self.file.files.drops_pages(&prepared.route) {
                    dontcache::explain(io_error, Some(*errno))
                } else {
                    io_error
                }
            }
            BatchFailure::Short { offset, expected, got, .. } => match stretch {
                Some(stretch) => stretch.short(operation, path, offset + got),
                None => BackendError::short_transfer(operation, path, *offset, *expected, *got),
            },
            BatchFailure::Enter(error) => BackendError::from_io("io_uring_enter", path, None, error),
            BatchFailure::Abandoned => abandoned_error(operation, path),
        }
    }
}

impl OpenFile for UringFile {
    fn support(&self, pattern: &AccessPattern) -> Support {
        self.file.support(pattern, unsupported_reason(pattern))
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        _hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        let Self { queue, pump, file, settings, .. } = self;
        let route = match file.prepare(pattern, direction, buffer, unsupported_reason(pattern))? {
            offset_file::TransferMethod::TwoPhase(transfer) => return Ok(transfer),
            offset_file::TransferMethod::Independent(route) => route,
        };
        let files = &file.files;
        #[cfg(feature = "test-hooks")]
        if matches!(route, FileRoute::UnsafeReadModifyWrite { .. }) {
            let text = "only posix has this fault injection";
            return Err(BackendError::new(operation_name(direction), &files.path, FailureCause::Unsupported, text));
        }
        queue.register_memory(&mut [&mut *buffer], &files.path)?;
        // The memory restored at the ends of a chunk belongs to one operation.
        let keeps_ends = direction == Direction::Read && matches!(route, FileRoute::DirectEdges { .. });
        // Of a mixed pattern as for most of its calls.
        let tuned_for = pattern.mix.map_or(direction, ReadWriteMix::majority);
        let operation_bytes = settings.operation_bytes(tuned_for, pattern).filter(|_| !keeps_ends);
        let span = reuse_distance(pattern, direction, &route, buffer, operation_bytes);
        let most = span.min(u64::from(queue.depth()));
        let (depth, wait_for) =
            settings.depth_and_wait(tuned_for, pattern.chunk_bytes, operation_bytes.is_none(), most);
        if keeps_ends {
            let result = pump.prepare_edge_backup();
            result.map_err(|e| BackendError::from_io("mmap (edge sectors)", &files.path, None, &e))?;
        }
        let name = if pattern.mix.is_some() { "io_uring read and write" } else { operation_name(direction) };
        let mut transfer = files.in_force(name, pattern.kind, direction, &route);
        transfer.strategy +=
            &format!(", depth {depth}, waits for {wait_for} at once, {}", queue.describe(REGISTERED_BUFFERS));
        if let Some(bytes) = operation_bytes {
            transfer.strategy += &format!(", chunks in operations of {bytes} bytes");
        }
        transfer.latency_unit = LatencyUnit::Operation;
        if pattern.form.style == CallStyle::Request {
            transfer.strategy += submission_note(pattern, depth);
        }
        transfer.strategy += file.preallocation_note();
        let ring_id = buffer.id();
        let pattern = *pattern;
        self.prepared = Some(QueuedPattern {
            pattern,
            direction,
            route,
            buffer_id: ring_id,
            depth,
            wait_for,
            operation_bytes,
            reuse_distance: span,
        });
        Ok(transfer)
    }

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        self.file.preallocate(batch)
    }

    fn trim(&mut self) -> Result<Option<String>> {
        self.file.trim()
    }

    fn submission_statistics(&self) -> Option<SubmissionStatistics> {
        Some(self.queue.submitted + self.file.two_phase.submission_statistics())
    }

    fn protocol(&self) -> Protocol {
        Protocol { lockstep: self.file.needs_lockstep(), pipelined: self.can_pipeline() }
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        let OffsetFile { two_phase, files, .. } = &mut self.file;
        if two_phase.is_active() {
            return work.run_sequentially(|batch, latency| two_phase.write(files, batch, buffer, latency));
        }
        // Only read through.
        let base = buffer.as_ptr().cast_mut();
        self.run((Direction::Write, false), work, buffer, base)
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        let OffsetFile { two_phase, files, .. } = &mut self.file;
        if two_phase.is_active() {
            return work.run_sequentially(|batch, latency| two_phase.read(files, batch, buffer, latency));
        }
        let base = buffer.as_mut_ptr();
        self.run((Direction::Read, false), work, buffer, base)
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        let base = buffer.as_mut_ptr();
        self.run((Direction::Write, true), work, buffer, base)
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { queue, file, .. } = *self;
        // Otherwise close(2) would not release the last reference.
        drop(queue);
        file.close()
    }
}

/// Why the queue cannot replace the calls of a pattern.
fn unsupported_reason(pattern: &AccessPattern) -> Option<String> {
    match (pattern.kind, pattern.form.style) {
        (AccessKind::Independent, CallStyle::Request) => None,
        (AccessKind::Collective | AccessKind::SharedOrdered, CallStyle::Request | CallStyle::Split) => {
            Some("io_uring has no nonblocking or split collective calls; use mpiio".into())
        }
        _ => pattern.offset_access_obstacle(),
    }
}

/// For the report.
fn submission_note(pattern: &AccessPattern, depth: u32) -> &'static str {
    let operations = pattern.max_calls.min(MAX_PENDING_CALLS).saturating_mul(pattern.chunks_per_call);
    if operations > u64::from(depth) {
        "; what exceeds the depth is submitted after the overlapped work"
    } else {
        "; all calls are submitted before the overlapped work"
    }
}

fn operation_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "io_uring write",
        Direction::Read => "io_uring read",
    }
}

/// Number of consecutive operations on distinct memory. Reads in flight must not share any; writes may read the same bytes twice.
fn reuse_distance(
    pattern: &AccessPattern,
    direction: Direction,
    route: &FileRoute,
    buffer: &TransferBuffer,
    operation_bytes: Option<u64>,
) -> u64 {
    let bytes = operation_bytes.unwrap_or(pattern.chunk_bytes);
    match (direction, route) {
        _ if pattern.mix.is_some() => buffer.landing_period_bytes().checked_div(bytes).unwrap_or(u64::MAX).max(1),
        (Direction::Write, _) => u64::MAX,
        (Direction::Read, FileRoute::DirectEdges { align_bytes }) => {
            edges::disjoint_requests(pattern, *align_bytes, buffer)
        }
        // Empty operations share no memory.
        (Direction::Read, _) => buffer.period_bytes().checked_div(bytes).unwrap_or(u64::MAX).max(1),
    }
}
