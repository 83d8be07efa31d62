//! Rows of the table, and their summary by method.

use beff_raw::frame::units::{format_size, MIB};

use crate::sides::{FileWorkload, IoMethod, PreallocationPolicy};
use crate::statistics::{median, MedianEstimate};

/// Block size of common file systems.
const BLOCK_BYTES: u64 = 4096;

pub struct ComparedCase {
    pub method: IoMethod,
    pub chunk_bytes: u64,
    pub access: FileWorkload,
    pub preallocation: PreallocationPolicy,
    pub jobs: u32,
    /// The processes have a segment each of one file.
    pub shared: bool,
}

impl ComparedCase {
    /// Rows of the comparison with fio: every chunk, access, preallocation policy and number of processes. Files for rewrites and reads
    /// were written with the same policy.
    pub fn for_fio(m_part_bytes: u64, jobs: &[u32]) -> Vec<Self> {
        let mut rows = Vec::new();
        for method in [IoMethod::UringDirect, IoMethod::PosixDirect, IoMethod::PosixBuffered] {
            for chunk_bytes in chunks(m_part_bytes) {
                for &jobs in jobs {
                    let row = |access, policy| Self {
                        method,
                        chunk_bytes,
                        access,
                        preallocation: policy,
                        jobs,
                        shared: false,
                    };
                    let rooms = [PreallocationPolicy::None, PreallocationPolicy::Size, PreallocationPolicy::Native];
                    if method == IoMethod::PosixBuffered {
                        rows.push(row(FileWorkload::Write, PreallocationPolicy::Default));
                        rows.extend([row(FileWorkload::Write, PreallocationPolicy::None)]);
                    } else {
                        rows.push(row(FileWorkload::Write, PreallocationPolicy::Default));
                        rows.extend(rooms.map(|policy| row(FileWorkload::Write, policy)));
                        rows.extend(
                            (chunk_bytes < BLOCK_BYTES).then(|| row(FileWorkload::Write, PreallocationPolicy::Zeros)),
                        );
                    }
                    rows.extend(rooms.map(|policy| row(FileWorkload::Rewrite, policy)));
                    rows.extend(rooms.map(|policy| row(FileWorkload::Read, policy)));
                }
            }
        }
        rows.extend(random_rows(jobs));
        rows
    }

    /// Rows of the comparison with IOR: through the page cache, each process in its segment or in its file.
    pub fn for_ior(m_part_bytes: u64, jobs: &[u32]) -> Vec<Self> {
        let mut rows = Vec::new();
        for shared in [true, false] {
            for chunk_bytes in chunks(m_part_bytes) {
                for &jobs in jobs {
                    let row = |access| Self {
                        method: IoMethod::PosixBuffered,
                        chunk_bytes,
                        access,
                        preallocation: PreallocationPolicy::None,
                        jobs,
                        shared,
                    };
                    rows.extend(
                        [FileWorkload::Write, FileWorkload::Rewrite, FileWorkload::Read, FileWorkload::Cached].map(row),
                    );
                }
            }
        }
        rows
    }

    pub fn name(&self) -> String {
        let size = format_size(self.chunk_bytes).replace(' ', "");
        let shared = if self.shared { " shared" } else { "" };
        format!(
            "{:<15} {size:<7} {:<9} {:<7} x{}{shared}",
            self.method.name(),
            self.access.name(),
            self.preallocation.name(),
            self.jobs
        )
    }
}

/// Each chunk once in random order, rewritten, read, or either, in preallocated files.
fn random_rows(jobs: &[u32]) -> Vec<ComparedCase> {
    let mut rows = Vec::new();
    for method in [IoMethod::UringDirect, IoMethod::PosixDirect, IoMethod::PosixBuffered] {
        for chunk_bytes in [1 << 10, BLOCK_BYTES, 32 << 10, MIB] {
            for &jobs in jobs {
                let row = |access| ComparedCase {
                    method,
                    chunk_bytes,
                    access,
                    preallocation: PreallocationPolicy::Native,
                    jobs,
                    shared: false,
                };
                rows.extend(
                    [FileWorkload::RandomRewrite, FileWorkload::RandomRead, FileWorkload::RandomMixed].map(row),
                );
            }
        }
    }
    rows
}

fn chunks(m_part_bytes: u64) -> Vec<u64> {
    let mut chunks = vec![1 << 10, 32 << 10, MIB, m_part_bytes];
    chunks.dedup();
    chunks
}

/// Ratios of the measured rows, by method.
#[derive(Default)]
pub struct MethodRatios(Vec<(&'static str, MedianEstimate)>);

impl MethodRatios {
    pub fn add(&mut self, method: IoMethod, ratio: MedianEstimate) {
        self.0.push((method.name(), ratio));
    }

    /// One line per method: cells, number of cells whose interval is below 1, and the median of the ratios.
    pub fn lines(&self) -> Vec<String> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        names.dedup();
        let line = |name: &str| {
            let own: Vec<MedianEstimate> =
                self.0.iter().filter(|(of, _)| *of == name).map(|(_, ratio)| *ratio).collect();
            let number = |verdict: &str| own.iter().filter(|ratio| ratio.verdict() == verdict).count();
            let ratios: Vec<f64> = own.iter().map(|ratio| ratio.median).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            format!(
                "{name}: {} cells, {} below 1.0 by interval, {} undecided, {} above; median {:.3}, least {least:.3}",
                own.len(),
                number("BEHIND"),
                number("equal"),
                number("ahead"),
                median(&ratios)
            )
        };
        names.into_iter().map(line).collect()
    }
}
