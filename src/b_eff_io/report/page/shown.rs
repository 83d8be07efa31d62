//! What the sections of a page are made of: the partition that is shown, its labels, and the values over ranks.

use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::layout::{access_index, one_partition};
use crate::b_eff_io::report::table::values::value;
use crate::b_eff_io::values::{compare_backends, without_ladder, Derived};
use crate::frame::records::Access;
use crate::frame::report::picture::Point;

/// One partition of a run, and nothing else of it: look-ups need not pass over the records and values of all others.
pub(super) struct Shown {
    pub(super) result: RunResult,
    pub(super) derived: Derived,
    pub(super) backends: Vec<String>,
    pub(super) ranks: u64,
}

impl Shown {
    pub(super) fn new(result: &RunResult, backends: &[String], ranks: u64) -> Self {
        let only = one_partition(result, ranks);
        Self { derived: without_ladder(&only), result: only, backends: backends.to_vec(), ranks }
    }

    /// With backends against each other.
    pub(super) fn compared(mut self) -> Self {
        self.derived.ladder = compare_backends(&self.result);
        self
    }
}

/// What the run adds to a picture over ranks: the value and its averages.
pub(in crate::b_eff_io::report) fn over_ranks(result: &RunResult, derived: &Derived) -> Vec<Point> {
    let release: Release = result.config.release;
    let mut points = Vec::new();
    for partition in derived.partitions.iter().filter(|p| result.config.backends.contains(&p.backend)) {
        let values = [Some((format!("value (release {})", release.name()), value(&partition.values, release)))];
        let averages = Access::ALL
            .map(|access| Some((access.name().to_owned(), partition.access_mb_per_second[access_index(access)])));
        for (column, y) in values.into_iter().chain(averages).flatten() {
            points.extend(y.map(|y| Point {
                row: "b_eff_io".into(),
                column,
                curve: partition.backend.clone(),
                is_reference: false,
                x: partition.ranks,
                y,
            }));
        }
    }
    points
}

/// What is named of an access method in pictures.
pub(super) fn access_label(access: Access) -> &'static str {
    match access {
        Access::Write => "first write",
        Access::Rewrite => "rewrite",
        Access::Read => "read",
    }
}
