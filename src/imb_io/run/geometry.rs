//! Access pattern of one rank in a row, with positions of its bytes in memory and in the data of the file.

use beff_backends::{
    AccessKind, AccessPattern, Batch, CallAddressing, CallForm, CallStyle, Direction, ElementUnit, RankPartition,
};

use super::data::RowData;
use crate::imb_io::config::IterationBuffers;
use crate::imb_io::plan::run::period_steps;
use crate::imb_io::plan::tiles::{sample_portion, SamplePortion, UNIT_BYTES};
use crate::imb_io::plan::PlanningError;
use crate::imb_io::plan::{BenchmarkClass, Positioning, SampleLayout, Synchronism, TransferSpec};

#[derive(Clone, Copy, Debug)]
pub(super) struct RowGeometry {
    pub(super) transfer: TransferSpec,
    pub(super) sample_bytes: u64,
    pub(super) steps: u64,
    pub(super) rank: u64,
    pub(super) ranks: u64,
    pub(super) portion: SamplePortion,
    pub(super) file_bytes: u64,
    /// Number of separate windows in memory; later steps reuse them.
    pub(super) windows: u64,
    /// One buffer for all steps: each read overwrites the data of the previous one.
    pub(super) reuses_buffer: bool,
}

impl RowGeometry {
    /// # Errors
    /// As [`SampleLayout::new`].
    pub(super) fn new(
        transfer: TransferSpec,
        sample_bytes: u64,
        steps: u64,
        of: (u64, u64),
        buffers: Option<IterationBuffers>,
    ) -> Result<Self, PlanningError> {
        let place = SampleLayout::new(&transfer, sample_bytes, steps, of)?;
        // MPI forbids that pending reads share a buffer.
        let pending_reads = transfer.direction == Direction::Read && transfer.synchronism == Synchronism::Request;
        let reuses = buffers == Some(IterationBuffers::Reused) && !pending_reads;
        Ok(Self {
            transfer,
            sample_bytes,
            steps,
            rank: of.0,
            ranks: of.1,
            portion: place.portion(),
            file_bytes: place.file_bytes(steps),
            windows: if reuses { 1 } else { period_steps(sample_bytes, steps) },
            reuses_buffer: reuses,
        })
    }

    /// The same steps with separate windows, as many as fit in memory, so that every read can be compared.
    pub(super) fn with_own_windows(&self) -> Self {
        Self { windows: period_steps(self.sample_bytes, self.steps), reuses_buffer: false, ..*self }
    }

    /// Maximum steps of a timed batch: read data is compared before its memory is reused, unless one buffer is measured.
    pub(super) fn batch_steps(&self) -> u64 {
        match self.transfer.direction {
            Direction::Read if !self.reuses_buffer => self.windows,
            _ => self.steps,
        }
    }

    /// Calls that may be pending at the same time: writes may share memory.
    pub(super) fn pending(&self) -> u64 {
        match self.transfer.direction {
            Direction::Read => self.windows,
            Direction::Write => self.steps,
        }
    }

    pub(super) fn is_private(&self) -> bool {
        self.transfer.is_private()
    }

    /// True if the order of data in the file is undefined.
    pub(super) fn is_arrival_ordered(&self) -> bool {
        self.transfer.is_arrival_ordered()
    }

    pub(super) fn step_bytes(&self) -> u64 {
        if self.is_private() {
            self.portion.length_bytes
        } else {
            self.sample_bytes
        }
    }

    /// Geometry of another rank of the group.
    ///
    /// # Errors
    /// As [`SampleLayout::new`].
    pub(super) fn for_rank(&self, rank: u64) -> Result<Self, PlanningError> {
        let place = SampleLayout::new(&self.transfer, self.sample_bytes, self.steps, (rank, self.ranks))?;
        Ok(Self { rank, portion: place.portion(), file_bytes: place.file_bytes(self.steps), ..*self })
    }

    /// Data of the file of this rank. It differs between rows (`row`) and groups (`group`).
    pub(super) fn data(&self, seed: u64, row: u64, group: u64) -> RowData {
        let owner = if self.is_private() { group * self.ranks + self.rank } else { group };
        // Written data repeats with the windows; read data need not.
        let lap_steps = if self.transfer.direction == Direction::Read { self.steps } else { self.windows };
        RowData::new(seed, row, Some(owner), self.step_bytes(), lap_steps)
    }

    /// The timed batch from `first_call` on.
    pub(super) fn batch_from(&self, first_call: u64) -> Batch {
        Batch { first_call, calls: self.batch_steps().min(self.steps - first_call) }
    }

    /// Offset of step `step` of this rank in the file, and in the stream of [`RowGeometry::data`].
    pub(super) fn offset_bytes(&self, step: u64) -> u64 {
        let first = if self.is_private() { 0 } else { self.portion.offset_bytes };
        first + step * self.step_bytes()
    }

    pub(super) fn windows_bytes(&self) -> u64 {
        self.windows * self.portion.length_bytes
    }

    /// Pattern for the backend interface.
    ///
    /// # Errors
    /// Never: the ranks were checked by [`RowGeometry::new`].
    pub(super) fn pattern(&self) -> Result<AccessPattern, PlanningError> {
        let t = &self.transfer;
        let alone = self.is_private() || self.ranks == 1;
        let kind = match (t.class, t.positioning) {
            (BenchmarkClass::Parallel, Positioning::Shared) => AccessKind::SharedArrival,
            (BenchmarkClass::Collective, Positioning::Shared) => AccessKind::SharedOrdered,
            (BenchmarkClass::Collective, _) => AccessKind::Collective,
            _ => AccessKind::Independent,
        };
        let equal = self.sample_bytes.is_multiple_of(UNIT_BYTES * self.ranks);
        let distance = if alone { 0 } else { sample_portion(self.sample_bytes, self.ranks, 0)?.length_bytes };
        Ok(AccessPattern {
            kind,
            chunk_bytes: self.portion.length_bytes,
            chunks_per_call: 1,
            base_bytes: if self.is_private() { 0 } else { self.portion.offset_bytes },
            stride_bytes: self.step_bytes(),
            origin_bytes: 0,
            rank: if alone { 0 } else { self.rank },
            ranks: if alone { 1 } else { self.ranks },
            rank_distance_bytes: distance,
            partition: if alone || equal { RankPartition::Equal } else { RankPartition::Unequal },
            form: CallForm {
                addressing: if t.positioning == Positioning::Expl {
                    CallAddressing::Explicit
                } else {
                    CallAddressing::Pointer
                },
                style: match t.synchronism {
                    Synchronism::Blocking => CallStyle::Blocking,
                    Synchronism::Request => CallStyle::Request,
                    Synchronism::Split => CallStyle::Split,
                },
                unit: ElementUnit::Byte,
            },
            stream_bytes: 0,
            max_calls: self.steps,
            order: None,
            mix: None,
        })
    }

    /// Pattern of the whole file of the group, for page-cache queries by one rank.
    pub(super) fn file_pattern(&self, pattern: &AccessPattern) -> AccessPattern {
        if pattern.ranks == 1 {
            return *pattern;
        }
        // Chunks are shorter than their distance, because ranges of several ranks interleave.
        AccessPattern {
            base_bytes: 0,
            chunk_bytes: 0,
            rank: 0,
            rank_distance_bytes: 0,
            partition: RankPartition::Equal,
            ..*pattern
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::catalogue::all;
    use crate::imb_io::plan::names::find;

    /// The pattern for a backend has the offsets of the plan.
    #[test]
    fn patterns_are_at_the_offsets_of_the_plan() {
        for transfer in all().iter().filter_map(|benchmark| benchmark.transfer()) {
            let counts = if transfer.class == BenchmarkClass::Single { 1..=1 } else { 1..=4 };
            for ranks in counts {
                for rank in 0..ranks {
                    for sample_bytes in [0, 1, 2, 3, 5, 6, 4096, 4097] {
                        let shape =
                            RowGeometry::new(*transfer, sample_bytes, 5, (rank, ranks), Some(IterationBuffers::Cold))
                                .unwrap();
                        let place = SampleLayout::new(transfer, sample_bytes, 5, (rank, ranks)).unwrap();
                        let pattern = shape.pattern().unwrap();
                        assert_eq!(pattern.call_bytes(), place.portion().length_bytes);
                        for step in 0..5 {
                            let Some(offset) = place.offset_bytes(step) else { continue };
                            assert_eq!(shape.offset_bytes(step), offset);
                            assert_eq!(
                                pattern.chunk_offset(step),
                                offset,
                                "{transfer:?} {sample_bytes} {rank}/{ranks}"
                            );
                        }
                        if let Some(tile) = place.tile() {
                            assert_eq!(pattern.stride_bytes, tile.extent_bytes);
                            assert_eq!(
                                (pattern.base_bytes, pattern.chunk_bytes),
                                (tile.portion.offset_bytes, tile.portion.length_bytes)
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn batches_cover_all_steps() {
        let shape = RowGeometry { windows: 4, ..of("S_Read_Indv", 8, 10, IterationBuffers::Cold) };
        let all = [(0, 4), (4, 4), (8, 2)];
        assert_eq!(
            [0, 4, 8].map(|first| shape.batch_from(first)),
            all.map(|(first_call, calls)| Batch { first_call, calls })
        );
    }

    fn of(name: &str, sample_bytes: u64, steps: u64, buffers: IterationBuffers) -> RowGeometry {
        let transfer = find(name).unwrap().transfer().unwrap();
        RowGeometry::new(*transfer, sample_bytes, steps, (0, 1), Some(buffers)).unwrap()
    }

    #[test]
    fn memory_is_reused_where_mpi_allows_it() {
        let (reused, cold) = (IterationBuffers::Reused, IterationBuffers::Cold);
        // 30 samples of 4 MiB: 16 are in memory together.
        for (name, buffers, windows, at_once, pending) in [
            ("S_Read_Indv", reused, 1, 30, 1),
            ("P_Read_Shared", reused, 1, 30, 1),
            ("S_Write_Indv", reused, 1, 30, 30),
            // All write requests may be pending from one buffer, as in the release; read requests may not.
            ("P_IWrite_Priv", reused, 1, 30, 30),
            ("P_IRead_Expl", reused, 16, 16, 16),
            // One at a time.
            ("C_IRead_Indv", reused, 1, 30, 1),
            ("S_Read_Indv", cold, 16, 16, 16),
            ("S_Write_Indv", cold, 16, 30, 30),
            ("P_IRead_Expl", cold, 16, 16, 16),
        ] {
            let shape = of(name, 4 << 20, 30, buffers);
            let found = (shape.windows, shape.batch_steps(), shape.pending());
            assert_eq!(found, (windows, at_once, pending), "{name} {buffers:?}");
            assert_eq!((shape.with_own_windows().windows, shape.with_own_windows().reuses_buffer), (16, false));
            // Every read step has different data; written data is that in memory.
            let lap_bytes = if name.contains("Read") { 30 } else { windows } * (4 << 20);
            assert_eq!(shape.data(1, 2, 0).period_bytes(), lap_bytes, "{name} {buffers:?}");
        }
    }
}
