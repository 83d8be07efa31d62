//! Agreement between the ranks of a file, with one communicator for each recorded one.

use beff_ffi::Comm;
use beff_trace::ErrorClass;

use super::step_error::{class_by_name, StepError, StepErrorCause, StepResult};
use crate::error::FailureCause as Broad;
use crate::{BackendError, Result};

#[derive(Debug)]
pub(super) struct FileCommunicators(Vec<Option<Comm>>);

impl FileCommunicators {
    /// Creates a communicator for each list of world ranks. Collective over `world`.
    ///
    /// # Errors
    /// What MPI reports, or a rank outside `world`.
    pub(super) fn new(world: &Comm, lists: &[Vec<u32>]) -> Result<Self> {
        let mut communicators = Vec::with_capacity(lists.len());
        for (number, ranks) in lists.iter().enumerate() {
            if let Some(rank) = ranks.iter().find(|rank| u64::from(**rank) >= world.size()) {
                let text = format!("communicator {number} has rank {rank}, but {} ranks take part", world.size());
                return Err(BackendError::new("replay", "", Broad::Unsupported, text));
            }
            let takes_part = ranks.iter().any(|rank| u64::from(*rank) == world.rank());
            communicators.push(match ranks.len() {
                1 => takes_part.then(Comm::comm_self),
                _ => world.create_group(ranks).map_err(|error| {
                    let text = format!("communicator {number}: {error}");
                    BackendError::new("MPI_Comm_create_group", "", Broad::Io, text)
                })?,
            });
        }
        Ok(Self(communicators))
    }

    fn of(&self, comm: u32) -> Option<&Comm> {
        self.0.get(comm as usize)?.as_ref()
    }

    /// True for the rank that acts for all.
    pub(super) fn is_first(&self, comm: u32) -> bool {
        self.of(comm).is_some_and(Comm::is_root)
    }

    /// Agrees on the outcome: an error of one rank is an error of all. A failed rank keeps its own error; the others receive the error
    /// class with the highest number.
    pub(super) fn agree<T>(&self, comm: u32, mine: StepResult<T>) -> StepResult<T> {
        let Some(comm) = self.of(comm) else {
            return mine
                .and_then(|_| Err(StepError::with_class("MPI_ERR_COMM", "this rank is not in the communicator")));
        };
        let mut worst = [mine.as_ref().map_or_else(|fault| u64::from(fault.class.number()) + 1, |_| 0)];
        if let Err(error) = comm.max_u64(&mut worst) {
            return Err(StepError {
                class: class_by_name(&error.class),
                cause: StepErrorCause::Mpi(error.text.into()),
            });
        }
        let class = worst[0].checked_sub(1).and_then(|number| ErrorClass::from_number(u8::try_from(number).ok()?));
        match class {
            Some(class) => mine.and_then(|_| Err(StepError::from_other_rank(class))),
            None => mine,
        }
    }
}
