//! io_uring: all chunks of a batch flow through one queue, up to the queue depth in flight.
//!
//! `setup` makes the ring and registers memory, `flight` keeps in-flight operations from outliving the batch,
//! `pump` feeds chunks in and takes completions out. Asynchronous completion never leaves this module.

pub(crate) mod flight;
mod pump;
pub(crate) mod setup;
#[cfg(test)]
mod tests;

use std::os::fd::AsRawFd;

use crate::direct::{in_force, not_prepared, FdPair, Route};
use crate::error::Cause;
use crate::two_phase::TwoPhase;
use crate::walk::{batch_bytes, check_fits, Walk};
use crate::{
    direct, BackendError, Batch, Direction, Driver, DriverOptions, InForce, Latency, OpenFile, OpenRequest, Pattern,
    Result, Ring,
};
use pump::{Failure, Job, Pump};
use setup::Queue;

/// Domains of a two-phase transfer under way at once: enough to gather one while others are written.
const DOMAINS_IN_FLIGHT: u32 = 4;
/// Place of the buffered descriptor among the registered files.
const BUFFERED: u32 = 0;
/// Place of the descriptor with O_DIRECT.
const DIRECT: u32 = 1;

/// Driver for io_uring. Collective kinds of access use the same offsets, each rank on its own.
#[derive(Clone, Debug)]
pub struct UringDriver {
    options: DriverOptions,
}

impl UringDriver {
    /// Takes direct-I/O policy and queue depth from the options.
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { options: options.clone() }
    }
}

impl Driver for UringDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        let options = &self.options;
        // What is collective comes first: no rank may leave before.
        let two_phase = TwoPhase::new(request, options, Some(options.queue_depth.min(DOMAINS_IN_FLIGHT)));
        let files = FdPair::open(request, options.direct)?;
        let file = UringFile::new(files, options.queue_depth)?;
        Ok(Box::new(UringFile { two_phase: two_phase?, ..file }))
    }
}

/// An open file with a queue of its own.
pub(crate) struct UringFile {
    // Before the files: the queue lets go of its memory and descriptors first.
    queue: Queue,
    pump: Pump,
    two_phase: TwoPhase,
    files: FdPair,
    prepared: Option<Prepared>,
}

struct Prepared {
    pattern: Pattern,
    route: Route,
    /// The ring whose memory is registered, or was looked at and found too large to be.
    ring_id: u64,
    /// Operations in flight at most.
    depth: u32,
}

impl UringFile {
    /// Makes a queue of `queue_depth` for the file.
    pub(crate) fn new(files: FdPair, queue_depth: u32) -> Result<Self> {
        Self::with_pieces(files, queue_depth, setup::MAX_PIECE_SHIFT)
    }

    /// [`UringFile::new`] with operations and registered buffers of at most `1 << piece_shift` bytes.
    fn with_pieces(files: FdPair, queue_depth: u32, piece_shift: u32) -> Result<Self> {
        let buffered = files.buffered.as_raw_fd();
        let fds = [buffered, files.direct_file().map_or(buffered, AsRawFd::as_raw_fd)];
        let queue = Queue::new(queue_depth, &fds, piece_shift, &files.path)?;
        let pump = Pump::new(queue.depth());
        let two_phase = TwoPhase::never(&DriverOptions::default(), None);
        Ok(Self { queue, pump, two_phase, files, prepared: None })
    }

    fn run(
        &mut self,
        direction: Direction,
        batch: Batch,
        ring: &Ring,
        base: *mut u8,
        latency: &mut Latency,
    ) -> Result<u64> {
        let operation = operation(direction);
        let path = &self.files.path;
        let prepared = self.prepared.as_ref().ok_or_else(|| not_prepared(operation, path))?;
        if prepared.ring_id != ring.id() {
            let text = "the ring is not the one given to prepare()".into();
            return Err(direct::failure(operation, path, Cause::Unsupported, text));
        }
        let pattern = &prepared.pattern;
        let walk = Walk::new(pattern, batch, ring, path)?;
        let job = Job {
            direction,
            file: if matches!(prepared.route, Route::Direct { .. }) { DIRECT } else { BUFFERED },
            base,
            chunk_bytes: pattern.chunk_bytes,
            depth: prepared.depth,
            span_chunks: match direction {
                // The same bytes may be on their way out twice.
                Direction::Write => u64::MAX,
                Direction::Read => windows(pattern, ring),
            },
            route: &prepared.route,
        };
        // SAFETY: `base` is the start of the memory of `ring`, which the caller has borrowed for the whole batch, for
        // reads exclusively (`write` and `read` below); `Walk::new` has checked that every window of the pattern ends
        // inside of it; and if the queue has registered memory, `ring_id` says it is this ring's.
        let outcome = unsafe { self.pump.run(&mut self.queue, &job, walk, latency) };
        outcome.map_err(|failure| self.report(operation, &failure))?;
        Ok(batch_bytes(&prepared.pattern, batch))
    }

    fn report(&self, operation: &'static str, failure: &Failure) -> BackendError {
        let path = &self.files.path;
        match failure {
            Failure::Chunk { offset, errno, .. } => {
                let error = std::io::Error::from_raw_os_error(*errno);
                BackendError::from_io(operation, path, Some(*offset), &error)
            }
            Failure::Short { offset, expected, got, .. } => {
                BackendError::short(operation, path, *offset, *expected, *got)
            }
            Failure::Enter(error) => BackendError::from_io("io_uring_enter", path, None, error),
            Failure::Abandoned => {
                let text = "the queue was given up after an earlier error: close the file and open it again".into();
                direct::failure(operation, path, Cause::Io, text)
            }
        }
    }
}

impl OpenFile for UringFile {
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
        self.queue.register_memory(ring, &self.files.path)?;
        // Reads in flight must not share memory; writes may.
        let windows = if direction == Direction::Read { windows(pattern, ring) } else { u64::MAX };
        let depth = u64::from(self.queue.depth()).min(windows) as u32;
        let told = in_force(operation(direction), pattern.kind, &route);
        let strategy = format!("{}, depth {depth}, {}", told.strategy, self.queue.describe());
        self.prepared = Some(Prepared { pattern: *pattern, route, ring_id: ring.id(), depth });
        Ok(InForce { strategy, ..told })
    }

    fn write(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        if self.two_phase.is_active() {
            return self.two_phase.write(&self.files, batch, ring, latency);
        }
        // Only ever read through: the kernel takes bytes out of the memory of a write.
        let base = ring.bytes().as_ptr().cast_mut();
        self.run(Direction::Write, batch, ring, base, latency)
    }

    fn read(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        if self.two_phase.is_active() {
            return self.two_phase.read(&self.files, batch, ring, latency);
        }
        let base = ring.bytes_mut().as_mut_ptr();
        self.run(Direction::Read, batch, ring, base, latency)
    }

    fn sync(&mut self) -> Result<()> {
        let flushed = self.two_phase.flush(&self.files);
        flushed.and(self.files.sync())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { queue, files, two_phase, .. } = *self;
        // The queues hold references to the file: without letting go first, close(2) would not be the last one.
        drop(queue);
        let flushed = two_phase.close(&files);
        flushed.and(files.close())
    }
}

fn operation(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "io_uring write",
        Direction::Read => "io_uring read",
    }
}

/// Consecutive chunks whose windows in the ring do not overlap.
fn windows(pattern: &Pattern, ring: &Ring) -> u64 {
    (ring.period_bytes() / pattern.chunk_bytes).max(1)
}
