//! Recorded programs, merged and read back.

mod cases;
mod model;
mod names;
mod order;

use std::path::Path;

use super::{merge, MergeOptions};
use crate::raw::recorder::{head, FixtureRecorder};
use crate::raw::Event;
use crate::{text, Call, Datatype, ProfileHead};

fn types() -> Vec<Datatype> {
    vec![
        Datatype::Named { name: "BYTE".to_owned(), size_bytes: 1, extent_bytes: 1 },
        Datatype::Vector { count: 3, block: 2, stride: 4, of: 0 },
        Datatype::Hindexed { blocks: vec![2, 1], displacements_bytes: vec![5, -3], of: 0 },
        Datatype::Resized { lower_bound_bytes: -4, extent_bytes: 12, of: 2 },
    ]
}

fn merged(
    programs: &[Vec<Call>],
    comms: &[Vec<u32>],
    change: impl Fn(&Path),
    options: &MergeOptions,
) -> (ProfileHead, Vec<Vec<Call>>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let last_ns = programs.iter().flatten().map(|call| call.end_ns).max().unwrap_or(1);
    for (rank, calls) in (0..).zip(programs) {
        let mut recorder =
            FixtureRecorder::new(directory.path(), &head(rank, programs.len() as u32, "Open MPI v5", last_ns)).unwrap();
        for (id, datatype) in (0..).zip(types()) {
            recorder.event(&Event::Type { id, datatype }).unwrap();
        }
        for (id, ranks) in (0..).zip(comms) {
            recorder.event(&Event::Comm { id, ranks: ranks.clone() }).unwrap();
        }
        for call in calls {
            recorder.event(&Event::Call(Box::new(call.clone()))).unwrap();
        }
        recorder.finish().unwrap();
    }
    change(directory.path());
    let out = directory.path().join("all.csv");
    let report = merge(directory.path(), &out, options).unwrap();
    let mut ranks = vec![Vec::new(); programs.len()];
    let (head, calls) = text::read_all_ranks(&out).unwrap();
    for call in calls {
        let (rank, call) = call.unwrap();
        ranks[rank as usize].push(call);
    }
    (head, ranks, report.remarks())
}
