//! io_uring: all chunks of a batch flow through one queue, up to the queue depth in flight.
//!
//! `queue.rs` is the ring of the kernel, `stream` says what is next, `pump` feeds it in and takes completions out, `parts` are operations that
//! move one chunk together, `kept` restores memory beside what is read, `overlap` runs work under the transfers, `flow` lets batches
//! follow each other. Asynchronous completion never leaves this module.

#[cfg(test)]
mod again_tests;
mod flow;
#[cfg(test)]
mod flow_tests;
mod kept;
mod overlap;
mod parts;
mod pump;
mod settings;
#[cfg(test)]
mod settings_tests;
mod stream;
#[cfg(test)]
mod tests;

use crate::edges::{EdgeWalk, Stretch};
use crate::error::Cause;
use crate::offsets::{self, Offsets};
use crate::queue::{abandoned, Queue, Way, MAX_PIECE_SHIFT};
use crate::route::Route;
use crate::seam::in_any_case;
use crate::two_phase::Shelf;
use crate::walk::{batch_bytes, Pieces, Walk};
use crate::{
    dontcache, edges, two_phase, AccessKind, BackendError, Batch, Batches, Beside, CallStyle, Direction, Driver,
    DriverOptions, InForce, Latency, OpenFile, OpenRequest, Pattern, Protocol, Result, Ring, Submitted, Support, Timed,
    MOST_PENDING,
};
use pump::{Job, Pump};
pub(crate) use settings::Settings;
use stream::Failure;

/// Domains of a two-phase transfer under way at once, or parts of them: enough to gather one while others are written.
const DOMAINS_IN_FLIGHT: u32 = 4;
/// What is registered: the memory of all transfers.
const REGISTERED: &str = "registered buffers";
/// Batches under the transfers of a batch.
type During<'a> = &'a mut dyn FnMut();

/// Driver for io_uring. Collective kinds of access use the same offsets, each rank on its own.
#[derive(Clone, Debug)]
pub struct UringDriver {
    options: DriverOptions,
    shelf: Shelf,
}

impl UringDriver {
    /// Takes from the options what decides the way of the transfers and the depth of the queue.
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { options: options.clone(), shelf: Shelf::default() }
    }

    /// Domains of a two-phase transfer under way at once.
    fn domains_in_flight(&self) -> Option<u32> {
        Some(self.options.queue_depth.min(DOMAINS_IN_FLIGHT))
    }
}

impl Driver for UringDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        let options = &self.options;
        let file = Offsets::open(request, options, self.domains_in_flight(), &self.shelf)?;
        Ok(Box::new(UringFile::new(file, options.into())?))
    }

    fn provide(&self, ranks: u64, hosts: u64) {
        two_phase::provide(&self.options, self.domains_in_flight(), &self.shelf, (ranks, hosts));
    }
}

/// An open file with a queue of its own.
pub(crate) struct UringFile {
    // Before the file: the queue lets go of its memory and descriptors first.
    queue: Queue,
    pump: Pump,
    file: Offsets,
    settings: Settings,
    prepared: Option<Prepared>,
}

struct Prepared {
    pattern: Pattern,
    direction: Direction,
    route: Route,
    /// The ring whose memory is registered, or was looked at and found too large to be.
    ring_id: u64,
    /// Operations in flight at most.
    depth: u32,
    /// Completions to wait for in one call while there is more to begin.
    wait_for: u32,
    /// Bytes of the largest operation, if that is less than a chunk.
    operation_bytes: Option<u64>,
    /// Operations that may follow each other before memory is used again: see [`Job::span`].
    span: u64,
}

impl UringFile {
    /// Makes a queue for the file.
    pub(crate) fn new(file: Offsets, settings: Settings) -> Result<Self> {
        Self::with_pieces(file, settings, MAX_PIECE_SHIFT)
    }

    /// [`UringFile::new`] with operations and registered buffers of at most `1 << piece_shift` bytes.
    pub(crate) fn with_pieces(file: Offsets, settings: Settings, piece_shift: u32) -> Result<Self> {
        let queue = Queue::of(&file.files, settings.largest_depth(), piece_shift)?;
        let pump = Pump::new(queue.depth());
        Ok(Self { queue, pump, file, settings, prepared: None })
    }

    /// Refuses a batch that is not what was prepared.
    fn check(&self, direction: Direction, ring: &Ring) -> Result<()> {
        let (operation, path) = (operation(direction), &self.file.files.path);
        let prepared = self.prepared.as_ref().ok_or_else(|| BackendError::not_prepared(operation, path))?;
        let text = if prepared.ring_id != ring.id() {
            "the ring is not the one given to prepare()"
        } else if prepared.direction != direction {
            "the pattern was prepared for the other direction"
        } else {
            return Ok(());
        };
        Err(BackendError::new(operation, path, Cause::Unsupported, text))
    }

    /// Moves the batches of `work` through the queue. `base` is the mapping of `ring`, borrowed by the caller until this returns.
    fn run(&mut self, direction: Direction, work: Batches<'_>, ring: &Ring, base: *mut u8) -> Result<u64> {
        match work {
            Batches { batch, beside: Beside::Computation(during), .. } => {
                in_any_case(during, |during| self.overlapped(direction, batch, ring, base, during))
            }
            Batches { batch, latency, beside: Beside::Next(next) } if self.can_flow() => {
                self.check(direction, ring)?;
                self.run_on(batch, ring, base, latency, next)
            }
            work => work.each(|batch, latency| {
                self.check(direction, ring)?;
                self.run_batch(batch, ring, base, latency, None)
            }),
        }
    }

    /// Moves a batch by any route.
    fn run_batch(
        &mut self,
        batch: Batch,
        ring: &Ring,
        base: *mut u8,
        latency: &mut Latency,
        during: Option<During<'_>>,
    ) -> Result<u64> {
        let Some(Prepared { pattern, direction, route, .. }) = &self.prepared else {
            return Err(BackendError::not_prepared("io_uring", &self.file.files.path));
        };
        let (pattern, direction) = (*pattern, *direction);
        if let Route::DirectEdges { align_bytes } = *route {
            let stretch = Stretch::new(&pattern, batch, align_bytes);
            let walk = EdgeWalk::new(&stretch, direction, batch, ring, &self.file.files.path)?;
            if direction == Direction::Write {
                let mark = latency.begin();
                if self.file.files.write_head(&stretch, ring)? {
                    latency.end(mark);
                }
            }
            self.pump(walk, base, Some(&stretch), latency, during)?;
            if direction == Direction::Write {
                self.file.files.carry_tail(&stretch, ring);
            }
        } else {
            let walk = Walk::new(&pattern, batch, ring, &self.file.files.path)?;
            self.pump(walk, base, None, latency, during)?;
        }
        Ok(batch_bytes(&pattern, batch))
    }

    /// Moves the pieces of a walk over the prepared pattern. `base` is the mapping of the ring of `check`, borrowed by the
    /// caller until this returns.
    fn pump(
        &mut self,
        walk: impl Pieces,
        base: *mut u8,
        stretch: Option<&Stretch>,
        latency: &mut Latency,
        during: Option<During<'_>>,
    ) -> Result<()> {
        let Some(prepared) = &self.prepared else {
            return Err(BackendError::not_prepared("io_uring", &self.file.files.path));
        };
        let job = Job {
            way: Way {
                direction: prepared.direction,
                direct: prepared.route.is_direct(),
                flags: if self.file.files.drops_pages(&prepared.route) { dontcache::FLAG } else { 0 },
            },
            base,
            depth: prepared.depth,
            wait_for: prepared.wait_for,
            operation_bytes: prepared.operation_bytes,
            span: prepared.span,
            route: &prepared.route,
        };
        // SAFETY: `base` is the start of the mapping of the ring, which the caller has borrowed for the whole batch, for
        // reads exclusively (`write` and `read` below); `Walk::new` has checked that every window ends
        // inside of its bytes, whole sectors end in its slack at most (`MAX_SECTOR_BYTES` is less than that); and if
        // the queue has registered memory, `check` has seen by `ring_id` that it is this ring's.
        let outcome = unsafe { self.pump.run(&mut self.queue, &job, walk, latency, during) };
        outcome.map_err(|failure| self.report(prepared, stretch, &failure))
    }

    fn report(&self, prepared: &Prepared, stretch: Option<&Stretch>, failure: &Failure) -> BackendError {
        let (operation, path) = (operation(prepared.direction), &self.file.files.path);
        match failure {
            Failure::Chunk { offset, errno, .. } => {
                let error = std::io::Error::from_raw_os_error(*errno);
                let told = BackendError::from_io(operation, path, Some(*offset), &error);
                if self.file.files.drops_pages(&prepared.route) {
                    dontcache::explain(told, Some(*errno))
                } else {
                    told
                }
            }
            Failure::Short { offset, expected, got, .. } => match stretch {
                Some(stretch) => stretch.short(operation, path, offset + got),
                None => BackendError::short(operation, path, *offset, *expected, *got),
            },
            Failure::Enter(error) => BackendError::from_io("io_uring_enter", path, None, error),
            Failure::Abandoned => abandoned(operation, path),
        }
    }
}

impl OpenFile for UringFile {
    fn support(&self, pattern: &Pattern) -> Support {
        self.file.support(pattern, refuses(pattern))
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        _hints: &[(String, String)],
    ) -> Result<InForce> {
        let Self { queue, pump, file, settings, .. } = self;
        let route = match file.prepare(pattern, direction, ring, refuses(pattern))? {
            offsets::Prepared::TwoPhase(told) => return Ok(told),
            offsets::Prepared::Alone(route) => route,
        };
        let files = &file.files;
        #[cfg(feature = "test-hooks")]
        if matches!(route, Route::UnsafeReadModifyWrite { .. }) {
            let text = "of the drivers that lose data on purpose there is posix alone";
            return Err(BackendError::new(operation(direction), &files.path, Cause::Unsupported, text));
        }
        queue.register_memory(&mut [&mut *ring], &files.path)?;
        // What is put back at the ends of a chunk that is read belongs to one operation.
        let keeps_ends = direction == Direction::Read && matches!(route, Route::DirectEdges { .. });
        let operation_bytes = settings.operation_bytes(direction, pattern).filter(|_| !keeps_ends);
        let span = span(pattern, direction, &route, ring, operation_bytes);
        let most = span.min(u64::from(queue.depth()));
        let (depth, wait_for) =
            settings.depth_and_wait(direction, pattern.chunk_bytes, operation_bytes.is_none(), most);
        if keeps_ends {
            let made = pump.prepare_guards();
            made.map_err(|e| BackendError::from_io("mmap (edge sectors)", &files.path, None, &e))?;
        }
        let mut told = files.in_force(operation(direction), pattern.kind, direction, &route);
        told.strategy += &format!(", depth {depth}, waits for {wait_for} at once, {}", queue.describe(REGISTERED));
        if let Some(bytes) = operation_bytes {
            told.strategy += &format!(", chunks in operations of {bytes} bytes");
        }
        told.timed = Timed::Operation;
        if pattern.form.style == CallStyle::Request {
            told.strategy += calls_under_work(pattern, depth);
        }
        told.strategy += file.room_told();
        let ring_id = ring.id();
        let pattern = *pattern;
        self.prepared = Some(Prepared { pattern, direction, route, ring_id, depth, wait_for, operation_bytes, span });
        Ok(told)
    }

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        self.file.preallocate(batch)
    }

    fn trim(&mut self) -> Result<Option<String>> {
        self.file.trim()
    }

    fn submitted(&self) -> Option<Submitted> {
        Some(self.queue.submitted + self.file.two_phase.submitted())
    }

    fn protocol(&self) -> Protocol {
        Protocol { lockstep: self.file.keeps_step(), pipelined: self.can_flow() }
    }

    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> Result<u64> {
        let Offsets { two_phase, files, .. } = &mut self.file;
        if two_phase.is_active() {
            return work.each(|batch, latency| two_phase.write(files, batch, ring, latency));
        }
        // Only ever read through: the kernel takes bytes out of the memory of a write.
        let base = ring.as_ptr().cast_mut();
        self.run(Direction::Write, work, ring, base)
    }

    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> Result<u64> {
        let Offsets { two_phase, files, .. } = &mut self.file;
        if two_phase.is_active() {
            return work.each(|batch, latency| two_phase.read(files, batch, ring, latency));
        }
        let base = ring.as_mut_ptr();
        self.run(Direction::Read, work, ring, base)
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { queue, file, .. } = *self;
        // The queue holds references to the file: without letting go first, close(2) would not be the last one.
        drop(queue);
        file.close()
    }
}

/// Why the queue cannot take the place of the calls of a pattern.
fn refuses(pattern: &Pattern) -> Option<String> {
    match (pattern.kind, pattern.form.style) {
        (AccessKind::Independent, CallStyle::Request) => None,
        (AccessKind::Collective | AccessKind::SharedOrdered, CallStyle::Request | CallStyle::Split) => {
            Some("io_uring has no collective calls to begin and to end; use mpiio".into())
        }
        _ => pattern.needs_more_than_offsets(),
    }
}

/// For the report: which operations are under way while there is work.
fn calls_under_work(pattern: &Pattern, depth: u32) -> &'static str {
    let operations = pattern.max_calls.min(MOST_PENDING).saturating_mul(pattern.chunks_per_call);
    if operations > u64::from(depth) {
        "; what exceeds the depth is submitted after the work under it"
    } else {
        "; all calls are submitted before the work under them"
    }
}

fn operation(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "io_uring write",
        Direction::Read => "io_uring read",
    }
}

/// Consecutive operations that touch different memory. Reads in flight must not share any; writes may take the same bytes
/// twice.
fn span(pattern: &Pattern, direction: Direction, route: &Route, ring: &Ring, operation_bytes: Option<u64>) -> u64 {
    let bytes = operation_bytes.unwrap_or(pattern.chunk_bytes);
    match (direction, route) {
        (Direction::Write, _) => u64::MAX,
        (Direction::Read, Route::DirectEdges { align_bytes }) => edges::windows(pattern, *align_bytes, ring),
        // Without bytes there is nothing to share.
        (Direction::Read, _) => ring.period_bytes().checked_div(bytes).unwrap_or(u64::MAX).max(1),
    }
}
