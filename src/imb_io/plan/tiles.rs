//! Division of a sample among ranks, and file offsets of each step.

use super::benchmark::{BenchmarkClass, Positioning, TransferSpec};
use crate::imb_io::plan::PlanningError;

/// Samples are divided in units of this size; only the last unit may be shorter.
pub const UNIT_BYTES: u64 = 4;

/// Largest sample: counts of MPI calls are ints, and S moves a sample in one call.
pub const LARGEST_SAMPLE_BYTES: u64 = i32::MAX as u64;

/// Portion of one rank in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplePortion {
    /// Offset from the beginning of the sample; the end of the sample if the portion is empty.
    pub offset_bytes: u64,
    /// Length; 0 for high ranks if the sample is small.
    pub length_bytes: u64,
}

/// The portion of `rank` in a sample of `sample_bytes` over `ranks`: whole units, one more for each of the lowest ranks if
/// the division has a remainder, cut at the end of the sample.
///
/// # Errors
/// [`PlanningError::Argument`] if `rank` is not below `ranks`.
pub fn sample_portion(sample_bytes: u64, ranks: u64, rank: u64) -> Result<SamplePortion, PlanningError> {
    if rank >= ranks {
        return Err(PlanningError::argument(format!("rank {rank} has no portion in a sample of {ranks} rank(s)")));
    }
    let units = sample_bytes.div_ceil(UNIT_BYTES);
    let (base, more) = (units / ranks, units % ranks);
    // The units below a rank are at most `units`; in bytes they may exceed 64 bits because the last unit may be cut.
    let begin_of = |rank: u64| (rank * base + rank.min(more)).saturating_mul(UNIT_BYTES).min(sample_bytes);
    let offset_bytes = begin_of(rank);
    Ok(SamplePortion { offset_bytes, length_bytes: begin_of(rank + 1) - offset_bytes })
}

/// File view of a rank with P_*_Indv and C_*_Indv: its own portion of every sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Visible portion of each sample. Never empty.
    pub portion: SamplePortion,
    /// Distance from one tile to the next, X.
    pub extent_bytes: u64,
}

/// Transfers of one rank in a row: bytes and offset of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLayout {
    transfer: TransferSpec,
    sample_bytes: u64,
    steps: u64,
    portion: SamplePortion,
}

impl SampleLayout {
    /// Layout of `rank` among `ranks` for at most `steps` samples of X = `sample_bytes`.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] if `rank` is not below `ranks`, for several ranks with class S, for a sample larger than
    /// [`LARGEST_SAMPLE_BYTES`], and for a file longer than 2^63 - 1 bytes.
    pub fn new(
        transfer: &TransferSpec,
        sample_bytes: u64,
        steps: u64,
        (rank, ranks): (u64, u64),
    ) -> Result<Self, PlanningError> {
        if transfer.class == BenchmarkClass::Single && ranks != 1 {
            return Err(PlanningError::argument(format!("a benchmark of one rank on {ranks} ranks")));
        }
        if sample_bytes > LARGEST_SAMPLE_BYTES {
            return Err(too_large(sample_bytes));
        }
        if sample_bytes.checked_mul(steps).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(PlanningError::argument(format!(
                "{steps} samples of {sample_bytes} bytes end beyond the largest file offset (2^63 - 1): use fewer \
                 iterations or smaller samples"
            )));
        }
        let part = sample_portion(sample_bytes, ranks, rank)?;
        Ok(Self { transfer: *transfer, sample_bytes, steps, portion: part })
    }

    /// Portion of each sample. Its length is the count of every call; a rank with 0 participates, too.
    #[must_use]
    pub fn portion(&self) -> SamplePortion {
        self.portion
    }

    /// Maximum number of steps.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The view that is set before the first step; `None` if the default view (bytes from 0) stays: without tiles for this
    /// pointer, or with an empty tile, which cannot be a file type.
    #[must_use]
    pub fn tile(&self) -> Option<Tile> {
        let TransferSpec { class: group, positioning: pointer, .. } = self.transfer;
        let tiled = pointer == Positioning::Indv && group != BenchmarkClass::Single && self.portion.length_bytes > 0;
        tiled.then_some(Tile { portion: self.portion, extent_bytes: self.sample_bytes })
    }

    /// File offset in bytes of this rank's portion in step `step`, below [`SampleLayout::steps`]. `None` if the order of arrival
    /// determines it (P_*_Shared); the bytes of all ranks fill the file without a gap there, too.
    #[must_use]
    pub fn offset_bytes(&self, step: u64) -> Option<u64> {
        debug_assert!(step < self.steps, "step {step} of {}", self.steps);
        let first_bytes = if self.transfer.is_private() { 0 } else { self.portion.offset_bytes };
        (!self.transfer.is_arrival_ordered()).then(|| first_bytes + step * self.step_bytes())
    }

    /// Stride of the steps in the file of this rank.
    #[must_use]
    pub fn step_bytes(&self) -> u64 {
        if self.transfer.is_private() {
            self.portion.length_bytes
        } else {
            self.sample_bytes
        }
    }

    /// Length in bytes of the file of this rank after `steps` steps of all ranks, which is also required before reads. At
    /// most [`SampleLayout::steps`] are counted.
    #[must_use]
    pub fn file_bytes(&self, steps: u64) -> u64 {
        self.step_bytes() * steps.min(self.steps)
    }
}

pub(super) fn too_large(sample_bytes: u64) -> PlanningError {
    PlanningError::argument(format!(
        "a sample of {sample_bytes} bytes: one call of MPI moves at most {LARGEST_SAMPLE_BYTES} (2^31 - 1)"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::names::find;
    use super::*;
    use proptest::prelude::*;

    fn place(name: &str, sample_bytes: u64, steps: u64, rank: u64, ranks: u64) -> SampleLayout {
        SampleLayout::new(find(name).unwrap().transfer().unwrap(), sample_bytes, steps, (rank, ranks)).unwrap()
    }

    #[test]
    fn parts_computed_by_hand() {
        let check = |sample_bytes: u64, parts: &[(u64, u64)]| {
            let ranks = parts.len() as u64;
            for (rank, (offset_bytes, length_bytes)) in (0..).zip(parts.iter().copied()) {
                let expected = SamplePortion { offset_bytes, length_bytes };
                assert_eq!(
                    sample_portion(sample_bytes, ranks, rank).unwrap(),
                    expected,
                    "X {sample_bytes}, {rank} of {ranks}"
                );
            }
        };
        for ranks in 1..=5 {
            check(0, &vec![(0, 0); ranks]);
            // One unit: rank 0 alone.
            for sample_bytes in 1..=3 {
                let mut parts = vec![(sample_bytes, 0); ranks];
                parts[0] = (0, sample_bytes);
                check(sample_bytes, &parts);
            }
            // Two units, the second cut to 1 or 2 bytes: ranks 0 and 1.
            for sample_bytes in 5..=6 {
                let mut parts = vec![(sample_bytes, 0); ranks];
                parts[0] = (0, if ranks == 1 { sample_bytes } else { 4 });
                if ranks > 1 {
                    parts[1] = (4, sample_bytes - 4);
                }
                check(sample_bytes, &parts);
            }
        }
        // 1025 units, the last one of 1 byte.
        check(4097, &[(0, 4097)]);
        check(4097, &[(0, 2052), (2052, 2045)]);
        check(4097, &[(0, 1368), (1368, 1368), (2736, 1361)]);
        check(4097, &[(0, 1028), (1028, 1024), (2052, 1024), (3076, 1021)]);
        check(4097, &[(0, 820), (820, 820), (1640, 820), (2460, 820), (3280, 817)]);
        assert!(sample_portion(16, 4, 4).is_err());
        assert!(sample_portion(16, 0, 0).is_err());
    }

    #[test]
    fn offsets_of_every_pointer() {
        let offsets = |name: &str| {
            let place = place(name, 4097, 3, 1, 3);
            (0..3).map(|step| place.offset_bytes(step)).collect::<Vec<_>>()
        };
        let tiles = [Some(1368), Some(1368 + 4097), Some(1368 + 8194)];
        for name in ["P_Write_Indv", "P_Read_Expl", "C_Write_Indv", "C_IRead_Expl", "C_Write_Shared"] {
            assert_eq!(offsets(name), tiles, "{name}");
        }
        assert_eq!(offsets("P_Read_Priv"), [Some(0), Some(1368), Some(2736)]);
        assert_eq!(offsets("P_IWrite_Shared"), [None; 3]);
        for name in ["S_Write_Indv", "S_IRead_Expl"] {
            let alone = place(name, 4097, 3, 0, 1);
            assert_eq!((alone.portion().length_bytes, alone.offset_bytes(2), alone.tile()), (4097, Some(8194), None));
        }
    }

    #[test]
    fn a_file_is_as_long_as_its_reads() {
        assert_eq!(place("S_Read_Indv", 65536, 640, 0, 1).file_bytes(640), 640 * 65536);
        assert_eq!(place("P_Read_Expl", 4097, 10, 2, 3).file_bytes(10), 40970);
        assert_eq!(place("P_Read_Shared", 4097, 10, 2, 3).file_bytes(4), 4 * 4097);
        assert_eq!(place("P_Read_Priv", 4097, 10, 2, 3).file_bytes(10), 13610);
        assert_eq!(place("P_Read_Priv", 3, 10, 2, 3).file_bytes(10), 0);
        assert_eq!(place("C_Read_Expl", 8, 10, 0, 2).file_bytes(99), 80);
    }

    #[test]
    fn tiles_are_for_individual_pointers_of_several_ranks() {
        let tile = |name: &str, rank| place(name, 5, 1, rank, 3).tile();
        let own = |offset_bytes, length_bytes| Tile {
            portion: SamplePortion { offset_bytes, length_bytes },
            extent_bytes: 5,
        };
        assert_eq!([0, 1, 2].map(|r| tile("P_Write_Indv", r)), [Some(own(0, 4)), Some(own(4, 1)), None]);
        assert_eq!(tile("C_IRead_Indv", 1), Some(own(4, 1)));
        assert_eq!((tile("P_Write_Expl", 0), tile("C_Read_Shared", 0), tile("P_Write_Priv", 0)), (None, None, None));
        assert_eq!(place("P_Write_Indv", 0, 1, 0, 1).tile(), None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let new = |name: &str, x, steps, at| SampleLayout::new(find(name).unwrap().transfer().unwrap(), x, steps, at);
        assert!(new("S_Write_Indv", 8, 1, (0, 2)).is_err());
        assert!(new("P_Write_Indv", 8, 1, (2, 2)).is_err());
        assert!(new("P_Write_Indv", LARGEST_SAMPLE_BYTES + 1, 1, (0, 2)).is_err());
        assert!(new("P_Write_Indv", LARGEST_SAMPLE_BYTES, 1, (0, 2)).is_ok());
        assert!(new("P_Write_Indv", 1 << 30, (1 << 33) - 1, (0, 2)).is_ok());
        assert!(new("P_Write_Indv", 1 << 30, 1 << 33, (0, 2)).unwrap_err().to_string().contains("2^63 - 1"));
    }

    proptest! {
        #[test]
        fn parts_tile_any_sample(sample_bytes in 0_u64..1 << 22, ranks in 1_u64..300) {
            let mut end = 0;
            let mut longest = u64::MAX;
            for rank in 0..ranks {
                let part = sample_portion(sample_bytes, ranks, rank).unwrap();
                prop_assert_eq!(part.offset_bytes, end);
                // Low ranks have no less than high ones.
                prop_assert!(part.length_bytes <= longest);
                longest = part.length_bytes;
                end += part.length_bytes;
            }
            prop_assert_eq!(end, sample_bytes);
        }

        #[test]
        fn small_samples_are_for_low_ranks(sample_bytes in 0_u64..400, ranks in 1_u64..300) {
            let used = sample_bytes.div_ceil(UNIT_BYTES).min(ranks);
            for rank in 0..ranks {
                prop_assert_eq!(sample_portion(sample_bytes, ranks, rank).unwrap().length_bytes > 0, rank < used);
            }
        }

        /// Checks the definition and that neighbours are adjacent, for any number of ranks and bytes.
        #[test]
        fn parts_are_those_of_the_definition(sample_bytes: u64, ranks in 1_u64..=10_000_000, share in 0.0..1.0_f64) {
            let rank = ((ranks - 1) as f64 * share) as u64;
            let (x, n, r) = (u128::from(sample_bytes), u128::from(ranks), u128::from(rank));
            let (base, more) = (x.div_ceil(4) / n, x.div_ceil(4) % n);
            let (length, offset) =
                if r < more { ((base + 1) * 4, r * (base + 1) * 4) } else { (base * 4, (r * base + more) * 4) };
            let (begin, end) = (offset.min(x), (offset + length).min(x));
            let own = sample_portion(sample_bytes, ranks, rank).unwrap();
            prop_assert_eq!((u128::from(own.offset_bytes), u128::from(own.length_bytes)), (begin, end - begin));
            let end = own.offset_bytes + own.length_bytes;
            let next = sample_portion(sample_bytes, ranks, rank + 1).map_or(sample_bytes, |next| next.offset_bytes);
            prop_assert_eq!(end, next);
        }

        /// All steps of all ranks fill the file, for every pointer with known offsets.
        #[test]
        fn steps_tile_the_file(sample_bytes in 0_u64..5000, ranks in 1_u64..9, steps in 1_u64..6) {
            for name in ["P_Write_Indv", "P_Write_Expl", "C_Write_Indv", "C_Write_Shared", "P_Write_Priv"] {
                let mut extents = Vec::new();
                let mut file_bytes = 0;
                for rank in 0..ranks {
                    let place = place(name, sample_bytes, steps, rank, ranks);
                    let length_bytes = place.portion().length_bytes;
                    let own = (0..steps).map(|step| (place.offset_bytes(step).unwrap(), length_bytes));
                    if name == "P_Write_Priv" {
                        let end = own.fold(0, |end, (offset, length)| if offset == end { end + length } else { u64::MAX });
                        prop_assert_eq!(end, place.file_bytes(steps));
                    } else {
                        extents.extend(own);
                        file_bytes = place.file_bytes(steps);
                    }
                }
                extents.sort_unstable();
                let end = extents.iter().try_fold(0, |end, (offset, length)| (*offset == end).then_some(end + length));
                prop_assert_eq!(end, Some(file_bytes), "{}", name);
            }
        }
    }
}
