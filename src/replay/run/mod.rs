//! Execution of a replay: a scan of the profile before any file is created, then repetitions of its calls.
//!
//! From outside to inside: `execution` (all repetitions), `repetition` (files, program, reductions), `rank_replay` (windows and clock),
//! `call_window` (prepared calls). `collective_check` and `preparation` examine the calls of all ranks together before. `order` keeps the
//! order between ranks, `verify` compares read data, `stall_watch` reports a rank that does not proceed.

mod call_csv;
mod call_location;
pub mod call_source;
mod call_window;
mod collective_check;
pub mod derived_calls;
pub mod execution;
mod files;
mod hints;
mod order;
mod pace;
mod preparation;
mod rank_replay;
#[cfg(test)]
mod ranks_tests;
mod repetition;
mod result_comparison;
pub mod scan;
mod stall_watch;
#[cfg(test)]
mod state_tests;
mod verify;
pub mod what_if;
pub mod write_source;

use std::collections::BTreeMap;
use std::path::Path;

use beff_backends::FilePath;
use beff_trace::layout::TypeLayouts;
use beff_trace::ProfileHead;

use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::replay::config::ReplayConfig;
use crate::replay::plan::memory_relocation::MemoryRelocation;
use crate::replay::plan::sieving_gaps::SievingGaps;
use crate::replay::run::write_source::WriteSources;

/// Why a replay cannot continue. Other ranks may wait for this one, so all ranks must end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayAbort {
    /// MPI between the ranks.
    #[error("MPI failed between the ranks: {0}")]
    Mpi(#[from] beff_ffi::MpiError),
    /// This rank cannot issue its next calls.
    #[error("{0}")]
    Calls(String),
    /// A signal, while other ranks wait in calls that will not end.
    #[error("interrupted; some ranks waited in a collective call whose other ranks had stopped, so the last repetition has no sums")]
    Interrupted,
}

/// Data used by all repetitions. Equal on all ranks, except for the scan.
#[derive(Debug)]
struct ReplayContext<'a> {
    config: &'a ReplayConfig,
    head: &'a ProfileHead,
    layouts: &'a TypeLayouts,
    relocation: &'a MemoryRelocation,
    source: call_source::CallSource<'a>,
    scan: &'a scan::RankScan,
    /// Gaps that an MPI library may have overwritten, by file.
    sieving_gaps: &'a BTreeMap<u32, SievingGaps>,
    sources: WriteSources,
    /// Cache-cold memory that reads use cyclically.
    cold_bytes: u64,
    run_dir: &'a RunDir,
    interrupt: &'a Interrupt,
    print: fn(&str),
    /// Ends this process, and with it all ranks, while its main thread is in a call.
    terminate: fn(&ReplayAbort, &RunDir),
}

impl ReplayContext<'_> {
    fn paths(&self, backend: &str) -> Vec<FilePath> {
        let name = |n: usize| self.run_dir.file(&Path::new(backend).join(format!("file-{n:04}")));
        (1..=self.head.files.len()).map(name).collect()
    }
}
