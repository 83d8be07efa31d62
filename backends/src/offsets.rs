//! A file that is reached by offsets, each rank at its own or two-phase: what posix and uring do alike before and after the
//! transfers.

use crate::direct::{FdPair, Policy};
use crate::route::Route;
use crate::two_phase::TwoPhase;
use crate::walk::check_fits;
use crate::{Direction, DriverOptions, InForce, OpenRequest, Pattern, Result, Ring};

/// Both ways to the file: collective patterns may go the first, all others go the second.
pub(crate) struct Offsets {
    pub(crate) two_phase: TwoPhase,
    pub(crate) files: FdPair,
}

/// How a prepared pattern goes.
pub(crate) enum Prepared {
    /// Two-phase, by the module of that name; as it is reported.
    TwoPhase(InForce),
    /// Each rank by itself.
    Alone(Route),
}

impl Offsets {
    /// Opens the file of a request. `depth`: domains of a two-phase transfer under way at once, through io_uring.
    pub(crate) fn open(request: &OpenRequest<'_>, options: &DriverOptions, depth: Option<u32>) -> Result<Self> {
        // What is collective comes first: no rank may leave before.
        let two_phase = TwoPhase::new(request, options, depth);
        let files = FdPair::open(request, Policy::from(options))?;
        Ok(Self { two_phase: two_phase?, files })
    }

    /// The file of one rank.
    #[cfg(test)]
    pub(crate) fn alone(files: FdPair) -> Self {
        Self { two_phase: TwoPhase::never(&DriverOptions::default(), None), files }
    }

    /// The answer of [`crate::OpenFile::unsupported`]; `refused`: what the driver itself has against the pattern.
    pub(crate) fn unsupported(&self, pattern: &Pattern, refused: Option<String>) -> Option<String> {
        if refused.is_some() {
            return refused;
        }
        let two_phase = self.two_phase.unsupported(pattern, &self.files);
        two_phase.unwrap_or_else(|| self.files.unsupported(pattern))
    }

    /// The way of a pattern, with everything of the one before in the file.
    pub(crate) fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        refused: Option<String>,
    ) -> Result<Prepared> {
        let Self { two_phase, files } = self;
        check_fits(pattern, ring, &files.path)?;
        files.check_form(refused)?;
        files.flush_edges()?;
        Ok(match two_phase.prepare(files, pattern, direction, ring)? {
            Some(told) => Prepared::TwoPhase(told),
            None => Prepared::Alone(files.route_or_error(pattern, direction, ring)?),
        })
    }

    /// fsync(2), after what was kept of last sectors.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let flushed = self.two_phase.flush(&self.files);
        flushed.and(self.files.sync())
    }

    /// Closes the file, after the same.
    pub(crate) fn close(self) -> Result<()> {
        let flushed = self.two_phase.close(&self.files);
        flushed.and(self.files.close())
    }
}
