//! Creates the result of a run with many partitions, through the program's own derivation and writers, from the published run of four
//! backends: each partition has its 516 records under another number of ranks, with slightly different times. For the cost of large files:
//!
//! ```text
//! cargo run --release --example partitions -- 1000 /dev/shm/many          # many.json and many.jsonl (a sync for each line: not on a disk)
//! perf stat -e task-clock:u target-mpich/release/beff-raw report /dev/shm/many.json --html /dev/shm/many.html
//! ```

use std::path::PathBuf;

use anyhow::{ensure, Context};

use beff_raw::b_eff_io::records::{JournalLine, PartitionRecord, RunResult};
use beff_raw::frame::records::JournaledResult;
use beff_raw::frame::report::journal::Journal;
use beff_raw::frame::report::Views;

/// Backends mpiio, posix, uring and mmap on two ranks.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/runs/mpich-2ranks-60s-ladder.json");

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [partitions, prefix] = words.as_slice() else { anyhow::bail!("usage: partitions COUNT PREFIX") };
    let partitions: u64 = partitions.parse().context("number of partitions")?;
    ensure!(partitions > 0, "at least one partition");
    let source: RunResult = serde_json::from_slice(&std::fs::read(SOURCE)?)?;
    let result = replicate(&source, partitions);
    let path = |suffix: &str| PathBuf::from(format!("{prefix}{suffix}"));
    let document = result.document(&result.derived())?;
    eprintln!("{} patterns, {:.0} MB", result.patterns.len(), document.len() as f64 / 1e6);
    std::fs::write(path(".json"), document)?;
    let mut journal = Journal::create(&path(".jsonl"))?;
    for line in journal_lines(result) {
        journal.append(&line)?;
    }
    Ok(())
}

/// Copies the records of the run for 2, 3, 4 ... ranks.
fn replicate(source: &RunResult, partitions: u64) -> RunResult {
    let planned = |ranks: u64| PartitionRecord { ranks, ..source.partitions[0].clone() };
    let all: Vec<u64> = (2..2 + partitions).collect();
    let mut result = RunResult::new(
        source.config.clone(),
        source.manifest.clone(),
        source.harness,
        all.iter().map(|ranks| planned(*ranks)).collect(),
    );
    result.calibrations.clone_from(&source.calibrations);
    result.queue_calibrations.clone_from(&source.queue_calibrations);
    for ranks in all {
        let factor = 1.0 + 1e-3 * (ranks * 7 % 100) as f64;
        result.types.extend(source.types.iter().cloned().map(|mut record| {
            record.ranks = ranks;
            record
        }));
        result.patterns.extend(source.patterns.iter().cloned().map(|mut record| {
            record.ranks = ranks;
            record.intervals.transfer_seconds *= factor;
            record.batches.iter_mut().for_each(|batch| batch.seconds *= factor);
            record
        }));
    }
    result.ending.clone_from(&source.ending);
    result
}

fn journal_lines(result: RunResult) -> impl Iterator<Item = JournalLine> {
    let start = result.start_line();
    let RunResult { calibrations, queue_calibrations, patterns, types, ending, .. } = result;
    std::iter::once(start)
        .chain(calibrations.into_iter().map(JournalLine::Calibration))
        .chain(queue_calibrations.into_iter().map(JournalLine::QueueCalibration))
        .chain(patterns.into_iter().map(|record| JournalLine::Pattern(Box::new(record))))
        .chain(types.into_iter().map(JournalLine::Type))
        .chain([JournalLine::End(ending)])
}
