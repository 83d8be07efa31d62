//! Preview of a run, for any number of ranks.

use serde::{Deserialize, Serialize};

use super::layout::{rank_pattern, RankLayout};
use super::memory::{RankMemory, RankMemoryParts};
use super::outlook::{AccessOutlook, Outlook};
use super::patterns::{check_types, m_part_bytes, of_type, patterns};
use super::segments::{check_reference, segment};
use super::space::{plan_space, PartitionSpace};
use super::strict_cost::StrictCost;
use super::time_limit::fitting_time_seconds;
use super::{memory, orders, partitions, schedule, PatternSpec, PlanError, Role, PATTERNS};
use crate::b_eff_io::config::{ChunkOrder, Partitions, ReadShare, Release, Variant};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;

/// Input of the preview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviewInput {
    /// Ranks of the world.
    pub ranks: u64,
    /// Definition.
    pub release: Release,
    /// Without the bounds of overruns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Requested partitions.
    pub partitions: Partitions,
    /// Scheduled time T.
    pub time_seconds: f64,
    /// Time limit of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<f64>,
    /// Pattern types, ascending.
    pub types: Vec<PatternType>,
    /// Rewrite all types.
    pub full_rewrite: bool,
    /// Other orders of access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<ChunkOrder>,
    /// Share of reads of the measurements with reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<ReadShare>,
    /// Type 1 through the shared file pointer.
    pub shared_pointer: bool,
    /// Memory of the unit one rank runs on.
    pub memory_per_rank_bytes: u64,
    /// Maximum size of all files; `None`: unlimited.
    pub limit_bytes: Option<u64>,
    /// Number of backends and variants that write.
    pub backends: u64,
    /// Their names; empty without variants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contestants: Vec<String>,
    /// Variants with their options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// L_SEG is rounded up to a multiple of this.
    pub segment_multiple_bytes: u64,
    /// Ranks assumed to share a host: one for each core of this one.
    pub ranks_of_host: u64,
    /// A rank's share of the caches of a host, if that many ranks are spread evenly over the caches of this one.
    pub cache_share_bytes: u64,
    /// Maximum number of files of ranks in a directory.
    pub files_per_directory: u64,
    /// Maximum size of a rank's two-phase domains.
    pub domain_bytes: u64,
    /// Ranks of a host map each other's transfer buffer.
    pub shares_memory: bool,
    /// A backend maps files.
    pub maps_files: bool,
    /// With one window of memory for all calls: maximum number of reads of a backend in flight; `None`: each call has separate memory.
    pub reused_reads: Option<u64>,
    /// Assumed bandwidth of every partition, all its ranks together, for all patterns alike.
    pub rate_bytes_per_second: f64,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// One pattern of one partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatternPreview {
    /// 0 to 42.
    pub number: u8,
    /// 0 to 4.
    pub pattern_type: PatternType,
    /// Its role.
    pub role: Role,
    /// l; for a fill-up at the assumed rate.
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
    /// Write, rewrite, read at the assumed rate; `None`: not rewritten.
    pub outlook: [Option<Outlook>; 3],
}

/// The file(s) of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilePreview {
    /// 0 to 4.
    pub pattern_type: PatternType,
    /// Number of files: one, for type 2 one per rank.
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
    pub m_part_defined_bytes: u64,
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

/// The complete run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    /// The input.
    pub input: PreviewInput,
    /// Partitions, ascending.
    pub partitions: Vec<PartitionPreview>,
    /// Scheduled time of the patterns that run, over all partitions, for one backend.
    pub scheduled_seconds: f64,
    /// Scheduled time of the measurements in other orders, beside the definition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub orders_seconds: f64,
    /// T that would fit into the time limit, if the given one does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitting_time_seconds: Option<f64>,
    /// What `--strict` can cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_cost: Option<StrictCost>,
    /// Bytes all files take at the end of the first writes, all partitions and backends.
    pub total_bytes: u64,
    /// Period of the data stream.
    pub period_bytes: u64,
    /// A rank's own memory.
    pub rank_memory_bytes: u64,
    /// Neighbours' memory that it maps, allocated once on a host.
    pub neighbours_memory_bytes: u64,
    /// Maximum size of file pages that it maps, which belong to the page cache.
    pub file_memory_bytes: u64,
}

/// Plans a run as if every pattern reached the assumed rate.
///
/// # Errors
/// Everything that would prevent the run: [`PlanError::Partition`], [`super::Obstacle::NoSpace`], [`super::Obstacle::Overflow`],
/// [`super::Obstacle::NoReference`], [`PlanError::Argument`].
pub fn preview(input: &PreviewInput) -> Result<Preview, PlanError> {
    check(input)?;
    let sizes = partitions::sizes(&input.partitions, input.ranks)?;
    let wanted = m_part_bytes(input.memory_per_rank_bytes, input.release);
    let space =
        plan_space(input.limit_bytes, &sizes, input.backends, wanted, &input.types, input.segment_multiple_bytes)?;
    let time_seconds = schedule::partition_seconds(input.release, input.time_seconds, sizes.len());
    let partitions = space
        .iter()
        .map(|space| PartitionPlanner { input, space, time_seconds, specs: patterns(space.m_part_bytes) }.preview())
        .collect::<Result<Vec<_>, _>>()?;
    let one_backend: u128 = partitions.iter().map(|p| u128::from(p.first_write_bytes)).sum();
    let total_bytes = checked_bytes(one_backend * u128::from(input.backends))?;
    let specs = patterns(space.iter().map(|s| s.m_part_bytes).max().unwrap_or(wanted));
    let max_call_bytes = memory::max_call_bytes(&specs, &input.types, input.segment_multiple_bytes);
    let period_bytes = match input.reused_reads {
        None => memory::period_bytes(input.cache_share_bytes, input.memory_per_rank_bytes),
        Some(reads) => memory::reused_period_bytes(reads, max_call_bytes),
    };
    let rank_memory = RankMemory::of(RankMemoryParts {
        period_bytes,
        tail_bytes: memory::tail_bytes(period_bytes, max_call_bytes, input.mix.is_some()),
        domain_bytes: input.domain_bytes,
        // On several hosts no rank maps another's memory.
        sharing_ranks: if input.shares_memory && input.ranks_of_host == input.ranks { input.ranks } else { 1 },
        file_bytes: memory::mapped_bytes(input.maps_files, &input.types, &space),
    });
    let scheduled = partitions.iter().flat_map(|p| &p.patterns).flat_map(|p| p.scheduled_seconds);
    let scheduled_seconds: f64 = scheduled.sum();
    let units = orders::units_of((&input.orders, input.mix), &input.types, input.full_rewrite);
    let orders_seconds = orders::scheduled_seconds(&units, (input.release, input.full_rewrite), time_seconds, &space);
    let planned_seconds = (scheduled_seconds + orders_seconds) * input.backends as f64;
    let fitting_time_seconds =
        input.limit_seconds.and_then(|limit| fitting_time_seconds(input.time_seconds, planned_seconds, limit));
    Ok(Preview {
        scheduled_seconds,
        orders_seconds,
        fitting_time_seconds,
        strict_cost: input.strict.then(|| strict_cost(&partitions, input)),
        partitions,
        total_bytes,
        period_bytes,
        rank_memory_bytes: rank_memory.own_bytes,
        neighbours_memory_bytes: rank_memory.neighbours_bytes,
        file_memory_bytes: rank_memory.file_bytes,
        input: input.clone(),
    })
}

/// Sums over files are not limited by file offsets.
fn checked_bytes(bytes: u128) -> Result<u64, PlanError> {
    u64::try_from(bytes).map_err(|_| {
        PlanError::argument(format!(
            "files of {bytes} bytes together, 2^64 or more; use less memory per process (a smaller M_PART), fewer \
             ranks, a shorter time or a lower assumed rate"
        ))
    })
}

fn strict_cost(partitions: &[PartitionPreview], input: &PreviewInput) -> StrictCost {
    let mut cost = StrictCost::default();
    for partition in partitions {
        let memory_bytes = partition.ranks as f64 * input.memory_per_rank_bytes as f64;
        for p in partition.patterns.iter().filter(|p| p.role == Role::Timed) {
            cost.add(p.pattern_type, (p.bytes, &p.outlook), memory_bytes, input.rate_bytes_per_second);
        }
    }
    cost
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

impl PatternPreview {
    fn spec(&self) -> PatternSpec {
        PatternSpec {
            number: self.number,
            pattern_type: self.pattern_type,
            chunk_bytes: self.chunk_bytes,
            call_bytes: self.call_bytes,
            time_units: self.time_units,
            role: self.role,
        }
    }
}

/// State of the forecast of the first write.
struct FirstWriteState {
    course: AccessOutlook,
    counts: [u64; PATTERNS],
    rows: Vec<PatternPreview>,
}

struct PartitionPlanner<'a> {
    input: &'a PreviewInput,
    space: &'a PartitionSpace,
    time_seconds: f64,
    specs: [PatternSpec; PATTERNS],
}

impl PartitionPlanner<'_> {
    fn preview(&self) -> Result<PartitionPreview, PlanError> {
        let mut first_write = FirstWriteState {
            course: self.course(AccessMethod::Write),
            counts: [0; PATTERNS],
            rows: Vec::with_capacity(PATTERNS),
        };
        let mut files = Vec::new();
        for &t in &self.input.types {
            files.push(self.preview_type(t, &mut first_write)?);
        }
        let mut rows = first_write.rows;
        self.add_later_accesses(&mut rows);
        Ok(PartitionPreview {
            ranks: self.space.ranks,
            m_part_bytes: self.space.m_part_bytes,
            m_part_defined_bytes: self.space.m_part_defined_bytes,
            space_bytes: self.space.space_bytes,
            time_seconds: self.time_seconds,
            first_write_bytes: checked_bytes(rows.iter().map(|r| u128::from(r.bytes)).sum())?,
            patterns: rows,
            files,
        })
    }

    fn course(&self, access: AccessMethod) -> AccessOutlook {
        AccessOutlook {
            release: self.input.release,
            strict: self.input.strict,
            full_rewrite: self.input.full_rewrite,
            partition_seconds: self.time_seconds,
            ranks: self.space.ranks,
            rate_bytes_per_second: self.input.rate_bytes_per_second,
            access,
            debt_seconds: 0.0,
        }
    }

    fn preview_type(&self, t: PatternType, first_write: &mut FirstWriteState) -> Result<FilePreview, PlanError> {
        let ranks = self.space.ranks;
        let max_calls = &self.space.max_calls;
        let multiple = self.input.segment_multiple_bytes;
        let segment = match t {
            _ if t.has_segments() => {
                Some(segment(t, &self.specs, &first_write.counts, &self.input.types, max_calls, multiple)?)
            }
            _ => None,
        };
        let last = RankLayout {
            ranks,
            rank: ranks - 1,
            shared_pointer: self.input.shared_pointer,
            segment_bytes: segment.map(|s| s.segment_bytes),
        };
        let mut stream_bytes = 0;
        for (position, row) in of_type(&self.specs, t).iter().enumerate() {
            let number = usize::from(row.number);
            let spec = segment.map_or(*row, |s| s.spec(row));
            let (most, by_space) =
                segment.map_or((max_calls[number], true), |s| (s.calls[position], s.by_space[position]));
            let outlook = first_write.course.next_pattern(&spec, most, by_space);
            if most > 0 {
                // The run prepares all calls that it may ever make; checked for the last rank.
                rank_pattern(&last, &spec, stream_bytes, most)?;
            }
            first_write.counts[number] = outlook.calls;
            // A segment keeps the range of calls cut by the guard.
            let placed = if segment.is_some() { most } else { outlook.calls };
            stream_bytes += placed * spec.call_bytes;
            first_write.rows.push(self.row(&spec, outlook)?);
        }
        let (files, file_bytes) = if t.has_private_files() { (ranks, stream_bytes) } else { (1, stream_bytes * ranks) };
        Ok(FilePreview { pattern_type: t, files, file_bytes, segment_bytes: segment.map(|s| s.segment_bytes) })
    }

    /// Adds rewrites and reads of the written data.
    fn add_later_accesses(&self, rows: &mut [PatternPreview]) {
        for (i, access) in schedule::accesses().into_iter().enumerate().skip(1) {
            let mut course = self.course(access);
            for row in rows.iter_mut() {
                if access != AccessMethod::Rewrite || schedule::is_rewritten(self.input.full_rewrite, row.pattern_type)
                {
                    row.outlook[i] = Some(course.next_pattern(&row.spec(), row.calls, false));
                }
            }
        }
    }

    fn seconds(&self, spec: &PatternSpec, access: AccessMethod) -> f64 {
        schedule::pattern_seconds(self.input.release, self.input.full_rewrite, self.time_seconds, spec, access)
    }

    fn row(&self, spec: &PatternSpec, first_write: Outlook) -> Result<PatternPreview, PlanError> {
        // The files of type 2 together may exceed the size of any one file; the layout has been checked for one rank.
        let rank_bytes = u128::from(first_write.calls * spec.call_bytes);
        Ok(PatternPreview {
            number: spec.number,
            pattern_type: spec.pattern_type,
            role: spec.role,
            chunk_bytes: spec.chunk_bytes,
            call_bytes: spec.call_bytes,
            time_units: spec.time_units,
            scheduled_seconds: schedule::accesses().map(|access| self.seconds(spec, access)),
            calls: first_write.calls,
            bytes: checked_bytes(rank_bytes * u128::from(self.space.ranks))?,
            outlook: [Some(first_write), None, None],
        })
    }
}

#[cfg(test)]
#[path = "preview_tests.rs"]
mod tests;
