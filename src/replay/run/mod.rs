//! Replaying: a scan of the profile before anything is made, then passes through its calls.
//!
//! From outside to inside: `whole` (all passes), `pass` (files, program, sums), `player` (windows and the clock), `window` (calls
//! made ready). `matching` and `ready` look at the calls of all ranks together before. `order` keeps the order between ranks, `check` compares what was read, `standing`
//! says where a rank is that stays in one place.

mod check;
mod compare;
mod detail;
mod files;
mod hints;
mod matching;
mod order;
mod pace;
mod pass;
mod places;
mod player;
#[cfg(test)]
mod ranks_tests;
mod ready;
pub mod scan;
pub mod source;
mod standing;
pub mod whole;
mod window;

use std::collections::BTreeMap;
use std::path::Path;

use beff_backends::FilePath;
use beff_trace::layout::Layouts;
use beff_trace::Head;

use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::replay::config::ReplayConfig;
use crate::replay::plan::gaps::Gaps;
use crate::replay::run::source::Sources;

/// Why a replay cannot go on. Others may wait for this rank: nothing but an end of all ranks helps.
#[derive(Debug, thiserror::Error)]
pub enum Stuck {
    /// MPI between the ranks.
    #[error("MPI failed between the ranks: {0}")]
    Mpi(#[from] beff_ffi::MpiError),
    /// This rank cannot make its next calls.
    #[error("{0}")]
    Calls(String),
    /// A signal came, and other ranks wait in calls that will not end.
    #[error("interrupted; some ranks waited in a collective call whose other ranks had stopped, so the last pass has no sums")]
    Interrupted,
}

/// What all passes work with. The same on all ranks, but for the rank.
#[derive(Debug)]
struct Bench<'a> {
    config: &'a ReplayConfig,
    head: &'a Head,
    layouts: &'a Layouts,
    profile: &'a Path,
    /// What this rank found in its calls.
    scan: &'a scan::Scan,
    /// Where an MPI library may have written into gaps, by file.
    gaps: &'a BTreeMap<u32, Gaps>,
    sources: Sources,
    /// Memory that reads go through in a round.
    cold_bytes: u64,
    run_dir: &'a RunDir,
    interrupt: &'a Interrupt,
    say: fn(&str),
    /// Ends this process, and with it all ranks, while its own thread is in a call.
    end: fn(&Stuck, &RunDir),
}

impl Bench<'_> {
    /// Where the files of a backend are: named by us.
    fn paths(&self, backend: &str) -> Vec<FilePath> {
        let name = |n: usize| self.run_dir.file(&Path::new(backend).join(format!("file-{n:04}")));
        (1..=self.head.files.len()).map(name).collect()
    }
}
