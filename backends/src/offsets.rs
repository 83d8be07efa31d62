//! A file that is reached by offsets, each rank at its own or two-phase: what posix and uring do alike before and after the
//! transfers.

use crate::direct::{FdPair, Policy};
use crate::room::{Room, Writes};
use crate::route::Route;
use crate::two_phase::{Shelf, TwoPhase};
use crate::walk::check_fits;
use crate::{BackendError, Batch, Direction, DriverOptions, InForce, OpenRequest, Pattern, Result, Ring, Support};

/// Both ways to the file: collective patterns may go the first, all others go the second.
pub(crate) struct Offsets {
    pub(crate) two_phase: TwoPhase,
    pub(crate) files: FdPair,
    room: Room,
    /// Why room failed in a two-phase pattern: told behind the loop.
    room_failed: Option<BackendError>,
}

/// How a prepared pattern goes.
pub(crate) enum Prepared {
    /// Two-phase, by the module of that name; as it is reported.
    TwoPhase(InForce),
    /// Each rank by itself.
    Alone(Route),
}

impl Offsets {
    /// Opens the file of a request. `depth`: domains of a two-phase transfer under way at once, through io_uring; `shelf`: their memory.
    pub(crate) fn open(
        request: &OpenRequest<'_>,
        options: &DriverOptions,
        depth: Option<u32>,
        shelf: &Shelf,
    ) -> Result<Self> {
        // What is collective comes first: no rank may leave before.
        let two_phase = TwoPhase::new(request, options, depth, shelf);
        let files = FdPair::open(request, Policy::from(options));
        let room = Room::find(request, options.preallocate, files.as_ref().ok());
        Ok(Self { two_phase: two_phase?, files: files?, room: room?, room_failed: None })
    }

    /// The file of one rank.
    #[cfg(test)]
    pub(crate) fn alone(files: FdPair) -> Self {
        Self { two_phase: TwoPhase::never(&DriverOptions::default()), files, room: Room::none(), room_failed: None }
    }

    /// The answer of [`crate::OpenFile::support`]; `refused`: what the driver itself has against the pattern. Ranks need each other in two-phase
    /// transfers, and where a stretch of all ranks is preallocated behind the end that each has found.
    pub(crate) fn support(&self, pattern: &Pattern, refused: Option<String>) -> Support {
        let synchronizes = pattern.is_interleaved() || self.two_phase.takes(pattern, &self.files).is_some();
        Support::of(self.unsupported(pattern, refused), synchronizes)
    }

    fn unsupported(&self, pattern: &Pattern, refused: Option<String>) -> Option<String> {
        if refused.is_some() {
            return refused;
        }
        let two_phase = self.two_phase.unsupported(pattern, &self.files);
        let direct = match &two_phase {
            Some(_) => self.two_phase.domains(&self.files).is_some_and(|domains| domains.direct),
            None => self.files.route(pattern, Direction::Write).is_ok_and(|route| route.is_direct()),
        };
        let refused = two_phase.unwrap_or_else(|| self.files.unsupported(pattern));
        refused.or_else(|| self.room.unsupported().filter(|_| direct))
    }

    /// The way of a pattern, with everything of the one before in the file.
    pub(crate) fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        refused: Option<String>,
    ) -> Result<Prepared> {
        let Self { two_phase, files, room, .. } = self;
        check_fits(pattern, ring, &files.path)?;
        files.check_form(refused)?;
        files.flush_edges()?;
        Ok(match two_phase.prepare(files, pattern, direction, ring)? {
            Some(mut told) => {
                room.prepare(files, pattern, direction, Writes::combined(told.direct == Some(true)))?;
                told.strategy += room.told();
                Prepared::TwoPhase(told)
            }
            None => {
                let route = files.route_or_error(pattern, direction, ring)?;
                room.prepare(files, pattern, direction, Writes::alone(&route))?;
                Prepared::Alone(route)
            }
        })
    }

    /// For the report of a pattern that goes alone: how room is made.
    pub(crate) fn room_told(&self) -> &str {
        self.room.told()
    }

    /// The answer of [`crate::OpenFile::preallocate`].
    pub(crate) fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        let made = self.room.make(&self.files, batch);
        if self.two_phase.is_active() {
            // The others wait for this rank in the write, which needs no room.
            self.room_failed = self.room_failed.take().or(made.err());
        } else {
            made?;
        }
        Ok(self.room.calls())
    }

    /// `batch` was written, with no [`Offsets::preallocate`] for some of its calls.
    pub(crate) fn used_room(&mut self, batch: Batch) {
        self.room.used(batch);
    }

    /// The answer of [`crate::OpenFile::trim`].
    pub(crate) fn trim(&mut self) -> Result<Option<String>> {
        let given_back = self.room.give_back(&self.files);
        self.room_failed.take().map_or(given_back, Err)?;
        Ok(self.room.ended())
    }

    /// True if batches are made in lockstep.
    pub(crate) fn keeps_step(&self) -> bool {
        self.room.keeps_step()
    }

    /// fsync(2), after what was kept of last sectors.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let flushed = self.two_phase.flush(&self.files);
        let settled = self.room.settle(&self.files);
        flushed.and(settled).and(self.files.sync())
    }

    /// Closes the file, after the same.
    pub(crate) fn close(self) -> Result<()> {
        let flushed = self.two_phase.close(&self.files);
        flushed.and(self.files.close())
    }
}
