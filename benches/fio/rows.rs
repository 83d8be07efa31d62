//! The rows of the table, and what they come to together.

use beff_raw::frame::units::{format_size, MIB};

use crate::sides::{Access, Method, Room};
use crate::statistics::{median, Estimate};

/// Blocks of common file systems.
const BLOCK_BYTES: u64 = 4096;

/// One row of the table.
pub struct Row {
    pub method: Method,
    pub chunk_bytes: u64,
    pub access: Access,
    pub room: Room,
    /// Processes.
    pub jobs: u32,
    /// They have one file, of which each has a segment.
    pub shared: bool,
}

impl Row {
    /// Beside fio: every chunk, access, policy of room and number of processes. Files that are rewritten and read were made with the same
    /// policy before.
    pub fn beside_fio(m_part_bytes: u64, jobs: &[u32]) -> Vec<Self> {
        let mut rows = Vec::new();
        for method in [Method::UringDirect, Method::PosixDirect, Method::PosixBuffered] {
            for chunk_bytes in chunks(m_part_bytes) {
                for &jobs in jobs {
                    let row = |access, room| Self { method, chunk_bytes, access, room, jobs, shared: false };
                    let rooms = [Room::None, Room::Size, Room::Native];
                    if method == Method::PosixBuffered {
                        rows.push(row(Access::Write, Room::Default));
                        rows.extend([row(Access::Write, Room::None)]);
                    } else {
                        rows.push(row(Access::Write, Room::Default));
                        rows.extend(rooms.map(|room| row(Access::Write, room)));
                        rows.extend((chunk_bytes < BLOCK_BYTES).then(|| row(Access::Write, Room::Zeros)));
                    }
                    rows.extend(rooms.map(|room| row(Access::Rewrite, room)));
                    rows.extend(rooms.map(|room| row(Access::Read, room)));
                }
            }
        }
        rows
    }

    /// Beside IOR: through the page cache, each process in its segment or in its file.
    pub fn beside_ior(m_part_bytes: u64, jobs: &[u32]) -> Vec<Self> {
        let mut rows = Vec::new();
        for shared in [true, false] {
            for chunk_bytes in chunks(m_part_bytes) {
                for &jobs in jobs {
                    let row = |access| Self {
                        method: Method::PosixBuffered,
                        chunk_bytes,
                        access,
                        room: Room::None,
                        jobs,
                        shared,
                    };
                    rows.extend([Access::Write, Access::Rewrite, Access::Read, Access::Cached].map(row));
                }
            }
        }
        rows
    }

    pub fn name(&self) -> String {
        let size = format_size(self.chunk_bytes).replace(' ', "");
        let shared = if self.shared { " shared" } else { "" };
        format!(
            "{:<15} {size:<7} {:<8} {:<7} x{}{shared}",
            self.method.name(),
            self.access.name(),
            self.room.name(),
            self.jobs
        )
    }
}

fn chunks(m_part_bytes: u64) -> Vec<u64> {
    let mut chunks = vec![1 << 10, 32 << 10, MIB, m_part_bytes];
    chunks.dedup();
    chunks
}

/// The rows that were measured, by method.
#[derive(Default)]
pub struct Tally(Vec<(&'static str, Estimate)>);

impl Tally {
    pub fn add(&mut self, method: Method, ratio: Estimate) {
        self.0.push((method.name(), ratio));
    }

    /// A line for each method: cells, how many are below 1 by their interval, and the median of the ratios.
    pub fn lines(&self) -> Vec<String> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        names.dedup();
        let line = |name: &str| {
            let own: Vec<Estimate> = self.0.iter().filter(|(of, _)| *of == name).map(|(_, ratio)| *ratio).collect();
            let number = |verdict: &str| own.iter().filter(|ratio| ratio.verdict() == verdict).count();
            let ratios: Vec<f64> = own.iter().map(|ratio| ratio.middle).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            format!(
                "{name}: {} cells, {} below 1.0 by interval, {} not told from 1.0, {} above; median {:.3}, least {least:.3}",
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
