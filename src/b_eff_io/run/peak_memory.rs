//! Peak memory of a rank, by kind, compared with the plan.

use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::plan::memory::RankMemory;
use crate::b_eff_io::records::RankMemoryRecord;
use crate::frame::system::memory::{resident_memory, ResidentMemory};

/// Maximum of each kind so far. The kernel keeps a high-water mark of the sum only.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeakMemory {
    peak: Option<ResidentMemory>,
}

impl PeakMemory {
    /// Samples the resident memory. Outside every clock.
    pub fn sample(&mut self) {
        let Some(now) = resident_memory() else { return };
        let before = self.peak.unwrap_or_default();
        self.peak = Some(ResidentMemory {
            private_bytes: before.private_bytes.max(now.private_bytes),
            shared_bytes: before.shared_bytes.max(now.shared_bytes),
            file_bytes: before.file_bytes.max(now.file_bytes),
            proportional_bytes: before.proportional_bytes.max(now.proportional_bytes),
        });
    }

    /// Maxima over all ranks, with the plan; None if the kernel reports nothing. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn reduce(&self, world: &Comm, planned: &RankMemory) -> Result<Option<RankMemoryRecord>, MpiError> {
        let mine = self.peak.unwrap_or_default();
        let proportional = mine.proportional_bytes.unwrap_or(0);
        let mut most = [mine.private_bytes, mine.shared_bytes, mine.file_bytes, proportional];
        world.max_u64(&mut most)?;
        let [private_bytes, shared_bytes, file_bytes, proportional] = most;
        Ok((private_bytes > 0).then_some(RankMemoryRecord {
            planned_own_bytes: planned.own_bytes,
            planned_neighbours_bytes: planned.neighbours_bytes,
            planned_file_bytes: planned.file_bytes,
            private_bytes,
            shared_bytes,
            file_bytes,
            proportional_bytes: Some(proportional).filter(|bytes| *bytes > 0),
        }))
    }
}
