//! Where the ranks of a file meet: one communicator for each of the recorded ones.

use beff_ffi::Comm;
use beff_trace::ErrorClass;

use super::fault::{named, Cause, Done, Fault};
use crate::error::Cause as Broad;
use crate::{BackendError, Result};

/// The communicators of the program, by number.
#[derive(Debug)]
pub(super) struct Meetings(Vec<Option<Comm>>);

impl Meetings {
    /// Makes a communicator for each list of world ranks. Collective over `world`.
    ///
    /// # Errors
    /// What MPI reports, or a rank that does not take part.
    pub(super) fn new(world: &Comm, lists: &[Vec<u32>]) -> Result<Self> {
        let mut made = Vec::with_capacity(lists.len());
        for (number, ranks) in lists.iter().enumerate() {
            if let Some(rank) = ranks.iter().find(|rank| u64::from(**rank) >= world.size()) {
                let text = format!("communicator {number} has rank {rank}, but {} ranks take part", world.size());
                return Err(BackendError::new("replay", "", Broad::Unsupported, text));
            }
            let takes_part = ranks.iter().any(|rank| u64::from(*rank) == world.rank());
            made.push(match ranks.len() {
                1 => takes_part.then(Comm::own),
                _ => world.of_ranks(ranks).map_err(|error| {
                    let text = format!("communicator {number}: {error}");
                    BackendError::new("MPI_Comm_create_group", "", Broad::Io, text)
                })?,
            });
        }
        Ok(Self(made))
    }

    fn of(&self, comm: u32) -> Option<&Comm> {
        self.0.get(comm as usize)?.as_ref()
    }

    /// True for the one that acts for all.
    pub(super) fn is_first(&self, comm: u32) -> bool {
        self.of(comm).is_some_and(Comm::is_root)
    }

    /// Meets the others. What one rank failed in, all have failed in. A rank keeps its own error; the others get the class
    /// that comes last in the table.
    pub(super) fn agree<T>(&self, comm: u32, mine: Done<T>) -> Done<T> {
        let Some(comm) = self.of(comm) else {
            return mine.and_then(|_| Err(Fault::named("MPI_ERR_COMM", "this rank is not in the communicator")));
        };
        let mut worst = [mine.as_ref().map_or_else(|fault| u64::from(fault.class.number()) + 1, |_| 0)];
        if let Err(error) = comm.max_u64(&mut worst) {
            return Err(Fault { class: named(&error.class), cause: Cause::Mpi(error.text.into()) });
        }
        let class = worst[0].checked_sub(1).and_then(|number| ErrorClass::from_number(u8::try_from(number).ok()?));
        match class {
            Some(class) => mine.and_then(|_| Err(Fault::of_others(class))),
            None => mine,
        }
    }
}
