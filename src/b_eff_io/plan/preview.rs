//! What would run, for any number of ranks, before anything runs.

use serde::{Deserialize, Serialize};

use super::layout::{place, Place};
use super::patterns::{check_types, m_part_bytes, of_type, patterns};
use super::segments::{check_reference, segment, wanted_calls, Segment};
use super::space::{plan_space, PartitionSpace};
use super::{memory, partitions, schedule, PatternSpec, PlanError, Role, PATTERNS};
use crate::b_eff_io::config::{Partitions, Release};
use crate::frame::records::Access;

/// What the preview is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviewInput {
    /// Ranks of the world.
    pub ranks: u64,
    /// Definition.
    pub release: Release,
    /// Partitions asked for.
    pub partitions: Partitions,
    /// T.
    pub time_seconds: f64,
    /// Pattern types, ascending.
    pub types: Vec<u8>,
    /// Rewrite all types.
    pub full_rewrite: bool,
    /// Type 1 through the shared file pointer.
    pub shared_pointer: bool,
    /// Memory of the unit one rank runs on.
    pub memory_per_rank_bytes: u64,
    /// Bytes all files may take; `None`: unlimited.
    pub limit_bytes: Option<u64>,
    /// Backends that really write.
    pub backends: u64,
    /// L_SEG is rounded up to a multiple of this.
    pub segment_multiple_bytes: u64,
    /// Last-level cache of a host.
    pub last_level_cache_bytes: u64,
    /// Assumed bandwidth of every partition, all its ranks together, for all patterns alike.
    pub rate_bytes_per_second: f64,
}

/// One pattern of one partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatternPreview {
    /// 0 to 42.
    pub number: u8,
    /// 0 to 4.
    pub pattern_type: u8,
    /// What it is there for.
    pub role: Role,
    /// l; of a fill-up at the assumed rate.
    pub chunk_bytes: u64,
    /// L.
    pub call_bytes: u64,
    /// U.
    pub time_units: u32,
    /// Scheduled time of write, rewrite, read.
    pub scheduled_seconds: [f64; 3],
    /// Calls per rank of the first write at the assumed rate.
    pub calls: u64,
    /// Bytes of the first write, all ranks.
    pub bytes: u64,
    /// True if the space, not the time or the segment, ends it.
    pub ended_by_space: bool,
}

/// The file(s) of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilePreview {
    /// 0 to 4.
    pub pattern_type: u8,
    /// How many: one, for type 2 one per rank.
    pub files: u64,
    /// Size of each.
    pub file_bytes: u64,
    /// L_SEG of types 3 and 4.
    pub segment_bytes: Option<u64>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionPreview {
    /// Its ranks.
    pub ranks: u64,
    /// M_PART in force.
    pub m_part_bytes: u64,
    /// M_PART of the definition.
    pub m_part_wanted_bytes: u64,
    /// Space for one backend; `None`: unlimited.
    pub space_bytes: Option<u64>,
    /// Scheduled time of the partition by the definition, all types.
    pub time_seconds: f64,
    /// Patterns in order.
    pub patterns: Vec<PatternPreview>,
    /// Files in order of the types.
    pub files: Vec<FilePreview>,
    /// Bytes of the first write through one backend.
    pub first_write_bytes: u64,
}

/// The whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    /// What was asked.
    pub input: PreviewInput,
    /// Partitions, ascending.
    pub partitions: Vec<PartitionPreview>,
    /// Scheduled time of the patterns that run, over all partitions, for one backend.
    pub scheduled_seconds: f64,
    /// Bytes all files take at the end of the first writes, all partitions and backends.
    pub total_bytes: u64,
    /// Period of the data stream.
    pub period_bytes: u64,
    /// Memory one rank needs.
    pub rank_memory_bytes: u64,
}

/// Plans a run as if every pattern reached the assumed rate.
///
/// # Errors
/// Everything that would keep the run from starting: [`PlanError::Partition`], [`super::Obstacle::NoSpace`],
/// [`super::Obstacle::Overflow`], [`super::Obstacle::NoReference`], [`PlanError::Argument`].
pub fn preview(input: &PreviewInput) -> Result<Preview, PlanError> {
    check(input)?;
    let sizes = partitions::sizes(&input.partitions, input.ranks)?;
    let wanted = m_part_bytes(input.memory_per_rank_bytes, input.release);
    let space =
        plan_space(input.limit_bytes, &sizes, input.backends, wanted, &input.types, input.segment_multiple_bytes)?;
    let time_seconds = schedule::partition_seconds(input.release, input.time_seconds, sizes.len());
    let partitions = space
        .iter()
        .map(|space| Partition { input, space, time_seconds, specs: patterns(space.m_part_bytes) }.preview())
        .collect::<Result<Vec<_>, _>>()?;
    let one_backend: u128 = partitions.iter().map(|p| u128::from(p.first_write_bytes)).sum();
    let total_bytes = countable(one_backend * u128::from(input.backends))?;
    let period_bytes = memory::period_bytes(input.last_level_cache_bytes, input.memory_per_rank_bytes);
    let specs = patterns(space.first().map_or(wanted, |s| s.m_part_bytes));
    let max_call_bytes = memory::max_call_bytes(&specs, &input.types, input.segment_multiple_bytes);
    let scheduled = partitions.iter().flat_map(|p| &p.patterns).flat_map(|p| p.scheduled_seconds);
    Ok(Preview {
        scheduled_seconds: scheduled.sum(),
        partitions,
        total_bytes,
        period_bytes,
        rank_memory_bytes: memory::rank_memory_bytes(period_bytes, max_call_bytes),
        input: input.clone(),
    })
}

/// Sums over files have no file offset to bound them.
fn countable(bytes: u128) -> Result<u64, PlanError> {
    u64::try_from(bytes).map_err(|_| {
        PlanError::argument(format!(
            "files of {bytes} bytes together, 2^64 or more; use less memory per process (a smaller M_PART), fewer \
             ranks, a shorter time or a lower assumed rate"
        ))
    })
}

fn check(input: &PreviewInput) -> Result<(), PlanError> {
    check_types(&input.types)?;
    check_reference(&input.types)?;
    for (name, value) in [("T", input.time_seconds), ("assumed rate", input.rate_bytes_per_second)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(PlanError::argument(format!("{name} = {value}; it must be finite and larger than 0")));
        }
    }
    Ok(())
}

struct Partition<'a> {
    input: &'a PreviewInput,
    space: &'a PartitionSpace,
    time_seconds: f64,
    specs: [PatternSpec; PATTERNS],
}

impl Partition<'_> {
    fn preview(&self) -> Result<PartitionPreview, PlanError> {
        let mut counts = [0; PATTERNS];
        let mut rows = Vec::with_capacity(PATTERNS);
        let mut files = Vec::new();
        for &t in &self.input.types {
            files.push(self.preview_type(t, &mut counts, &mut rows)?);
        }
        Ok(PartitionPreview {
            ranks: self.space.ranks,
            m_part_bytes: self.space.m_part_bytes,
            m_part_wanted_bytes: self.space.m_part_wanted_bytes,
            space_bytes: self.space.space_bytes,
            time_seconds: self.time_seconds,
            first_write_bytes: countable(rows.iter().map(|r| u128::from(r.bytes)).sum())?,
            patterns: rows,
            files,
        })
    }

    /// Adds the patterns of one type to `rows` and their calls to `counts`.
    fn preview_type(
        &self,
        t: u8,
        counts: &mut [u64; PATTERNS],
        rows: &mut Vec<PatternPreview>,
    ) -> Result<FilePreview, PlanError> {
        let ranks = self.space.ranks;
        let max_calls = &self.space.max_calls;
        let multiple = self.input.segment_multiple_bytes;
        let segment = match t {
            3 | 4 => Some(segment(t, &self.specs, counts, &self.input.types, max_calls, multiple)?),
            _ => None,
        };
        let last = Place {
            ranks,
            rank: ranks - 1,
            shared_pointer: self.input.shared_pointer,
            segment_bytes: segment.map(|s| s.segment_bytes),
        };
        let mut stream_bytes = 0;
        for (position, row) in of_type(&self.specs, t).iter().enumerate() {
            let number = usize::from(row.number);
            let spec = segment.map_or(*row, |s| s.spec(row));
            let wanted = self.wanted(&spec, position, segment.as_ref(), counts);
            let (calls, most) = match segment {
                Some(s) => (s.calls[position], s.calls[position]),
                None => (wanted.min(max_calls[number]), max_calls[number]),
            };
            if calls > 0 {
                // What the run will prepare: all calls it may ever make, by the last rank.
                place(&last, &spec, stream_bytes, most)?;
            }
            counts[number] = calls;
            stream_bytes += calls * spec.call_bytes;
            rows.push(self.row(&spec, calls, wanted > calls)?);
        }
        let (files, file_bytes) = if t == 2 { (ranks, stream_bytes) } else { (1, stream_bytes * ranks) };
        Ok(FilePreview { pattern_type: t, files, file_bytes, segment_bytes: segment.map(|s| s.segment_bytes) })
    }

    /// Calls if space did not matter.
    fn wanted(&self, spec: &PatternSpec, position: usize, segment: Option<&Segment>, counts: &[u64; PATTERNS]) -> u64 {
        match (spec.role, segment) {
            (Role::WarmUp, _) => 1,
            (Role::FillUp, _) => u64::from(spec.call_bytes > 0),
            (Role::Timed, Some(_)) => wanted_calls(position, &self.specs, counts, &self.input.types).unwrap_or(0),
            (Role::Timed, None) => {
                let one_call = self.space.ranks as f64 * spec.call_bytes as f64;
                let bytes = self.seconds(spec, Access::Write) * self.input.rate_bytes_per_second;
                // `as` saturates, and space bounds the result.
                ((bytes / one_call) as u64).max(1)
            }
        }
    }

    fn seconds(&self, spec: &PatternSpec, access: Access) -> f64 {
        schedule::pattern_seconds(self.input.release, self.input.full_rewrite, self.time_seconds, spec, access)
    }

    fn row(&self, spec: &PatternSpec, calls: u64, ended_by_space: bool) -> Result<PatternPreview, PlanError> {
        // The files of type 2 may be longer together than any one file can be; place has checked one rank.
        let rank_bytes = u128::from(calls * spec.call_bytes);
        Ok(PatternPreview {
            number: spec.number,
            pattern_type: spec.pattern_type,
            role: spec.role,
            chunk_bytes: spec.chunk_bytes,
            call_bytes: spec.call_bytes,
            time_units: spec.time_units,
            scheduled_seconds: schedule::accesses().map(|access| self.seconds(spec, access)),
            calls,
            bytes: countable(rank_bytes * u128::from(self.space.ranks))?,
            ended_by_space,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Obstacle;
    use super::*;
    use crate::frame::units::MIB;
    use std::time::Instant;

    fn input(ranks: u64) -> PreviewInput {
        PreviewInput {
            ranks,
            release: Release::R2_1,
            partitions: Partitions::SmallMediumAll,
            time_seconds: 5400.0,
            types: vec![0, 1, 2, 3, 4],
            full_rewrite: false,
            shared_pointer: true,
            memory_per_rank_bytes: 4 << 30,
            limit_bytes: Some(300 << 40),
            backends: 1,
            segment_multiple_bytes: MIB,
            last_level_cache_bytes: 32 * MIB,
            rate_bytes_per_second: 2e9,
        }
    }

    fn assert_consistent(p: &Preview) {
        for partition in &p.partitions {
            let files: u64 = partition.files.iter().map(|f| f.files * f.file_bytes).sum();
            assert_eq!(files, partition.first_write_bytes);
            for file in partition.files.iter().filter(|f| f.pattern_type >= 3) {
                assert_eq!(file.segment_bytes.unwrap() * partition.ranks, file.file_bytes);
            }
            if let Some(space) = partition.space_bytes {
                assert!(partition.first_write_bytes <= space);
            }
        }
        let bytes: u64 = p.partitions.iter().map(|q| q.first_write_bytes).sum();
        assert_eq!(p.total_bytes, bytes * p.input.backends);
    }

    #[test]
    fn an_ordinary_run() {
        let p = preview(&input(32)).unwrap();
        assert_consistent(&p);
        assert_eq!(p.partitions.iter().map(|q| q.ranks).collect::<Vec<_>>(), [4, 16, 32]);
        assert!((p.scheduled_seconds - 5400.0).abs() < 1e-6);
        let first = &p.partitions[0];
        assert_eq!((first.m_part_bytes, first.patterns.len()), (32 * MIB, 43));
        // Tn = 1800 s, 4 of 150 units, 2e9 bytes/s, 4 ranks with 32 MiB each: 715.25 calls.
        assert_eq!(first.patterns[1].scheduled_seconds, [48.0; 3]);
        assert_eq!((first.patterns[1].calls, first.patterns[1].ended_by_space), (715, false));
        assert_eq!(p.period_bytes, 8209 * 4096);
        assert_eq!(p.rank_memory_bytes, 8209 * 4096 + 80 * MIB);
    }

    #[test]
    fn little_space_ends_patterns() {
        let p = preview(&PreviewInput { limit_bytes: Some(1 << 30), ..input(2) }).unwrap();
        assert_consistent(&p);
        assert!(p.total_bytes <= 1 << 30);
        assert!(p.partitions[1].patterns[4].ended_by_space);
        assert!(p.partitions[1].m_part_bytes <= 32 * MIB);
    }

    #[test]
    fn ten_million_ranks_at_once() {
        let started = Instant::now();
        for limit_bytes in [None, Some(300 << 50)] {
            let p = preview(&PreviewInput { limit_bytes, ..input(10_000_000) }).unwrap();
            assert_consistent(&p);
            assert_eq!(p.partitions.last().unwrap().ranks, 10_000_000);
            assert_eq!(p.partitions.last().unwrap().files[2].files, 10_000_000);
        }
        assert!(started.elapsed().as_secs_f64() < 1.0);
    }

    #[test]
    fn what_cannot_run_is_an_error() {
        let huge = PreviewInput {
            release: Release::R1,
            full_rewrite: true,
            memory_per_rank_bytes: 1 << 60,
            limit_bytes: None,
            ..input(10_000_000)
        };
        let error = preview(&huge).unwrap_err();
        assert!(matches!(error, PlanError::Own(Obstacle::Overflow { pattern: 1, .. })), "{error}");
        // Each file of a rank is possible, all of them together are not.
        let separate = PreviewInput { types: vec![2], memory_per_rank_bytes: 1 << 57, ..huge };
        let error = preview(&separate).unwrap_err();
        assert!(error.to_string().contains("together"), "{error}");
        assert!(matches!(
            preview(&PreviewInput { limit_bytes: Some(300 * MIB), ..input(1000) }),
            Err(PlanError::Own(Obstacle::NoSpace { .. }))
        ));
        assert!(matches!(
            preview(&PreviewInput { types: vec![4], ..input(4) }),
            Err(PlanError::Own(Obstacle::NoReference { pattern_type: 4 }))
        ));
        assert!(preview(&PreviewInput { rate_bytes_per_second: f64::NAN, ..input(4) }).is_err());
        assert!(preview(&PreviewInput { partitions: Partitions::List(vec![5]), ..input(4) }).is_err());
    }

    #[test]
    fn it_serializes() {
        let p = preview(&input(3)).unwrap();
        let text = serde_json::to_string(&p).unwrap();
        assert_eq!(serde_json::from_str::<Preview>(&text).unwrap(), p);
    }
}
