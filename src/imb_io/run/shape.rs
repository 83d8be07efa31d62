//! One rank's part of a row as an access pattern, and where its bytes lie in memory and in the data of the file.

use beff_backends::{AccessKind, Batch, CallForm, CallPlace, CallStyle, Direction, Parts, Pattern, Unit};

use super::data::Data;
use crate::imb_io::config::Buffers;
use crate::imb_io::plan::run::lap_steps;
use crate::imb_io::plan::tiles::{part, Part, UNIT_BYTES};
use crate::imb_io::plan::PlanError;
use crate::imb_io::plan::{Group, Place, Pointer, Style, Transfer};

/// One rank in a row of so many steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) transfer: Transfer,
    pub(super) sample_bytes: u64,
    pub(super) steps: u64,
    /// Rank and ranks of the group.
    pub(super) rank: u64,
    pub(super) ranks: u64,
    pub(super) part: Part,
    pub(super) file_bytes: u64,
    /// Steps with windows of their own in memory; the next ones use them again.
    pub(super) windows: u64,
    /// One buffer for all steps: what a read has left there, the next one overwrites.
    pub(super) reuses: bool,
}

impl Shape {
    /// # Errors
    /// As [`Place::new`].
    pub(super) fn new(
        transfer: Transfer,
        sample_bytes: u64,
        steps: u64,
        of: (u64, u64),
        buffers: Option<Buffers>,
    ) -> Result<Self, PlanError> {
        let place = Place::new(&transfer, sample_bytes, steps, of)?;
        // MPI forbids that reads which are under way together have one buffer.
        let pending_reads = transfer.direction == Direction::Read && transfer.style == Style::Request;
        let reuses = buffers == Some(Buffers::Reused) && !pending_reads;
        Ok(Self {
            transfer,
            sample_bytes,
            steps,
            rank: of.0,
            ranks: of.1,
            part: place.part(),
            file_bytes: place.file_bytes(steps),
            windows: if reuses { 1 } else { lap_steps(sample_bytes, steps) },
            reuses,
        })
    }

    /// The same steps with windows of their own, as many as memory holds: for reads that are compared as they came.
    pub(super) fn apart(&self) -> Self {
        Self { windows: lap_steps(self.sample_bytes, self.steps), reuses: false, ..*self }
    }

    /// Steps that the clock may take without a stop: what was read is compared before its memory is used again, unless that is
    /// what is to be measured.
    pub(super) fn at_once(&self) -> u64 {
        match self.transfer.direction {
            Direction::Read if !self.reuses => self.windows,
            _ => self.steps,
        }
    }

    /// Calls that may be under way at the same time: writes may share memory.
    pub(super) fn pending(&self) -> u64 {
        match self.transfer.direction {
            Direction::Read => self.windows,
            Direction::Write => self.steps,
        }
    }

    /// A file for each rank.
    pub(super) fn is_private(&self) -> bool {
        self.transfer.is_private()
    }

    /// The file is in an order that nothing promises.
    pub(super) fn by_arrival(&self) -> bool {
        self.transfer.by_arrival()
    }

    /// Bytes from one step to the next in the file.
    pub(super) fn step_bytes(&self) -> u64 {
        if self.is_private() {
            self.part.length_bytes
        } else {
            self.sample_bytes
        }
    }

    /// The same for another rank of the group.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub(super) fn of_rank(&self, rank: u64) -> Result<Self, PlanError> {
        let place = Place::new(&self.transfer, self.sample_bytes, self.steps, (rank, self.ranks))?;
        Ok(Self { rank, part: place.part(), file_bytes: place.file_bytes(self.steps), ..*self })
    }

    /// What the file holds, this rank's where each has its own. `row` makes the data of every row another, `group` that of
    /// every group.
    pub(super) fn data(&self, seed: u64, row: u64, group: u64) -> Data {
        let owner = if self.is_private() { group * self.ranks + self.rank } else { group };
        // What is written repeats with the windows; what is read need not.
        let lap_steps = if self.transfer.direction == Direction::Read { self.steps } else { self.windows };
        Data::new(seed, row, Some(owner), self.step_bytes(), lap_steps)
    }

    /// The steps from `first_call` on that the clock takes without a stop.
    pub(super) fn lap(&self, first_call: u64) -> Batch {
        Batch { first_call, calls: self.at_once().min(self.steps - first_call) }
    }

    /// Where this rank's bytes of step `step` lie in the file, and stand in the stream of [`Shape::data`].
    pub(super) fn offset_bytes(&self, step: u64) -> u64 {
        let first = if self.is_private() { 0 } else { self.part.offset_bytes };
        first + step * self.step_bytes()
    }

    /// Bytes of all windows.
    pub(super) fn windows_bytes(&self) -> u64 {
        self.windows * self.part.length_bytes
    }

    /// As the backends see it.
    ///
    /// # Errors
    /// Never: the ranks were checked by [`Shape::new`].
    pub(super) fn pattern(&self) -> Result<Pattern, PlanError> {
        let t = &self.transfer;
        let alone = self.is_private() || self.ranks == 1;
        let kind = match (t.group, t.pointer) {
            (Group::Parallel, Pointer::Shared) => AccessKind::SharedArrival,
            (Group::Collective, Pointer::Shared) => AccessKind::SharedOrdered,
            (Group::Collective, _) => AccessKind::Collective,
            _ => AccessKind::Independent,
        };
        let equal = self.sample_bytes.is_multiple_of(UNIT_BYTES * self.ranks);
        let distance = if alone { 0 } else { part(self.sample_bytes, self.ranks, 0)?.length_bytes };
        Ok(Pattern {
            kind,
            chunk_bytes: self.part.length_bytes,
            chunks_per_call: 1,
            base_bytes: if self.is_private() { 0 } else { self.part.offset_bytes },
            stride_bytes: self.step_bytes(),
            origin_bytes: 0,
            rank: if alone { 0 } else { self.rank },
            ranks: if alone { 1 } else { self.ranks },
            rank_distance_bytes: distance,
            parts: if alone || equal { Parts::Equal } else { Parts::Unequal },
            form: CallForm {
                place: if t.pointer == Pointer::Expl { CallPlace::Explicit } else { CallPlace::Pointer },
                style: match t.style {
                    Style::Blocking => CallStyle::Blocking,
                    Style::Request => CallStyle::Request,
                    Style::Split => CallStyle::Split,
                },
                unit: Unit::Byte,
            },
            stream_bytes: 0,
            max_calls: self.steps,
        })
    }

    /// The whole file of the group, for the page cache: one rank asks for what all of them share.
    pub(super) fn range(&self, pattern: &Pattern) -> Pattern {
        if pattern.ranks == 1 {
            return *pattern;
        }
        // Chunks shorter than their distance: ranges of several ranks lie between each other.
        Pattern { base_bytes: 0, chunk_bytes: 0, rank: 0, rank_distance_bytes: 0, parts: Parts::Equal, ..*pattern }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::catalogue::all;
    use crate::imb_io::plan::names::find;

    /// The plan says where bytes go; the pattern that a backend gets must say the same.
    #[test]
    fn patterns_are_at_the_offsets_of_the_plan() {
        for transfer in all().iter().filter_map(|benchmark| benchmark.transfer()) {
            let counts = if transfer.group == Group::Single { 1..=1 } else { 1..=4 };
            for ranks in counts {
                for rank in 0..ranks {
                    for sample_bytes in [0, 1, 2, 3, 5, 6, 4096, 4097] {
                        let shape = Shape::new(*transfer, sample_bytes, 5, (rank, ranks), Some(Buffers::Cold)).unwrap();
                        let place = Place::new(transfer, sample_bytes, 5, (rank, ranks)).unwrap();
                        let pattern = shape.pattern().unwrap();
                        assert_eq!(pattern.call_bytes(), place.part().length_bytes);
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
                                (tile.part.offset_bytes, tile.part.length_bytes)
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn laps_are_all_steps() {
        let shape = Shape { windows: 4, ..of("S_Read_Indv", 8, 10, Buffers::Cold) };
        let all = [(0, 4), (4, 4), (8, 2)];
        assert_eq!([0, 4, 8].map(|first| shape.lap(first)), all.map(|(first_call, calls)| Batch { first_call, calls }));
    }

    fn of(name: &str, sample_bytes: u64, steps: u64, buffers: Buffers) -> Shape {
        let transfer = find(name).unwrap().transfer().unwrap();
        Shape::new(*transfer, sample_bytes, steps, (0, 1), Some(buffers)).unwrap()
    }

    #[test]
    fn memory_is_used_again_where_mpi_allows_it() {
        let (reused, cold) = (Buffers::Reused, Buffers::Cold);
        // 30 samples of 4 MiB: 16 are in memory together.
        for (name, buffers, windows, at_once, pending) in [
            ("S_Read_Indv", reused, 1, 30, 1),
            ("P_Read_Shared", reused, 1, 30, 1),
            ("S_Write_Indv", reused, 1, 30, 30),
            // All requests of a write may be under way from one buffer, as in the release; those of a read may not.
            ("P_IWrite_Priv", reused, 1, 30, 30),
            ("P_IRead_Expl", reused, 16, 16, 16),
            // One at a time.
            ("C_IRead_Indv", reused, 1, 30, 1),
            ("S_Read_Indv", cold, 16, 16, 16),
            ("S_Write_Indv", cold, 16, 30, 30),
            ("P_IRead_Expl", cold, 16, 16, 16),
        ] {
            let shape = of(name, 4 << 20, 30, buffers);
            let found = (shape.windows, shape.at_once(), shape.pending());
            assert_eq!(found, (windows, at_once, pending), "{name} {buffers:?}");
            assert_eq!((shape.apart().windows, shape.apart().reuses), (16, false));
            // Every step of what is read is another's data; what is written is what is in memory.
            let lap_bytes = if name.contains("Read") { 30 } else { windows } * (4 << 20);
            assert_eq!(shape.data(1, 2, 0).lap_bytes(), lap_bytes, "{name} {buffers:?}");
        }
    }
}
