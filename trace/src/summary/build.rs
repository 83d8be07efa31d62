//! Builds the summary from the totals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::analysis::AnalysisTotals;
use super::collect::{FileTotals, FunctionTotals, ProfileTotals};
use super::costs::{largest_costs, CostContext};
use super::findings::FindingContext;
use super::layer::Layer;
use super::model::{FileSummary, FunctionSummary, Hint, IncompleteProcess, ProfileSummary};
use super::names::function_name;
use super::units::ratio;
use crate::{AccessForm, Direction, OpenedFile, ProfileHead, RecordingStatus, Role};

fn seconds(ns: u64) -> f64 {
    ratio(ns, 1_000_000_000)
}

pub(super) fn build(
    path: &Path,
    head: &ProfileHead,
    (sums, rows, analysis): (ProfileTotals, Vec<FunctionTotals>, Option<AnalysisTotals>),
) -> ProfileSummary {
    let moved = |which| {
        rows.iter()
            .filter(|row| row.key.function.direction() == Some(which))
            .map(|row| row.bytes)
            .fold(0, u64::saturating_add)
    };
    let is_hdf5 = |number| analysis.as_ref().and_then(|all| all.files.get(&number)).is_some_and(|file| file.is_hdf5);
    let layer = |(number, file): (u32, &OpenedFile)| match Layer::of(&file.path) {
        Layer::Direct if is_hdf5(number) => (number, Layer::Hdf5),
        known => (number, known),
    };
    let layers = (0_u32..).zip(&head.files).map(layer).collect();
    let context = analysis.as_ref().map(|analysis| FindingContext {
        head,
        rows: &rows,
        analysis,
        layers: &layers,
        io_ns: sums.io_ns,
        read_bytes: moved(Direction::Read),
        written_bytes: moved(Direction::Write),
    });
    let costs = largest_costs(&rows, &CostContext { head, totals: &sums, layers: &layers }, context.as_ref());
    let (files, others) = summarize_files(head, &sums, &rows);
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for process in &head.processes {
        *hosts.entry(if process.host.is_empty() { "unknown" } else { &process.host }).or_default() += 1;
    }
    ProfileSummary {
        version: 1,
        profile: path.display().to_string(),
        command: head.command.clone(),
        library: head.library.clone(),
        started_unix_ns: head.started_unix_ns,
        cost_ns: head.cost_ns,
        ranks: head.processes.len(),
        hosts: hosts.into_iter().map(|(host, ranks)| (host.to_owned(), ranks)).collect(),
        calls: sums.calls,
        data_calls: sums.data_calls,
        span_seconds: seconds(sums.last_end_ns),
        io_seconds: seconds(sums.io_ns),
        slowest_rank: sums.slowest.map(|(rank, ns)| (rank, seconds(ns))),
        read_bytes: moved(Direction::Read),
        written_bytes: moved(Direction::Write),
        unknown_bytes_calls: sums.unknown_bytes_calls,
        never_completed: sums.never_completed,
        polls: sums.polls,
        storage_bytes: storage_bytes(head),
        cut: incomplete_processes(head, &sums),
        no_places: None,
        costs,
        files,
        others,
    }
}

fn file_path(head: &ProfileHead, file: u32) -> String {
    head.files.get(file as usize).map_or_else(String::new, |file| file.path.clone())
}

fn storage_bytes(head: &ProfileHead) -> Option<[u64; 2]> {
    head.processes.iter().try_fold([0_u64; 2], |sum, process| {
        process.storage_bytes.map(|[read, written]| [sum[0].saturating_add(read), sum[1].saturating_add(written)])
    })
}

fn incomplete_processes(head: &ProfileHead, sums: &ProfileTotals) -> Vec<IncompleteProcess> {
    let ends = (0_u32..).zip(&head.processes).zip(&sums.rank_totals);
    ends.filter(|((_, process), _)| process.end != RecordingStatus::Complete)
        .map(|((rank, process), of_rank)| IncompleteProcess {
            rank,
            end: process.end.name(),
            calls: of_rank.0,
            last_seconds: seconds(of_rank.1),
        })
        .collect()
}

/// Splits the functions into those of each file and those of none.
fn summarize_files(
    head: &ProfileHead,
    sums: &ProfileTotals,
    rows: &[FunctionTotals],
) -> (Vec<FileSummary>, Vec<FunctionSummary>) {
    let mut by_time: Vec<&FunctionTotals> = rows.iter().collect();
    by_time.sort_by_key(|row| std::cmp::Reverse(row.ns));
    let mut of_files: BTreeMap<u32, Vec<&FunctionTotals>> = BTreeMap::new();
    let mut others = Vec::new();
    for row in by_time {
        match row.key.file {
            Some(file) => of_files.entry(file).or_default().push(row),
            None => others.push(summarize_function(row)),
        }
    }
    let nothing = FileTotals::default();
    let mut files: Vec<FileSummary> = of_files
        .iter()
        .map(|(file, rows)| summarize_file(head, *file, sums.files.get(file).unwrap_or(&nothing), rows))
        .collect();
    files.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    (files, others)
}

fn summarize_file(head: &ProfileHead, file: u32, state: &FileTotals, rows: &[&FunctionTotals]) -> FileSummary {
    let data = |row: &&&FunctionTotals| row.key.function.direction().is_some();
    let begun = |row: &&&FunctionTotals| {
        data(row) && !matches!(row.key.function.role(), Role::Data { form: AccessForm::End, .. })
    };
    let collective = |row: &&&FunctionTotals| row.key.function.is_collective();
    let sum = |rows: &mut dyn Iterator<Item = u64>| rows.fold(0, u64::saturating_add);
    let share = |part: u64, whole: u64| (whole > 0).then(|| ratio(part, whole));
    let of =
        |which| sum(&mut rows.iter().filter(|row| row.key.function.direction() == Some(which)).map(|row| row.bytes));
    let in_dictionary = head.files.get(file as usize);
    FileSummary {
        path: file_path(head, file),
        size_before_bytes: in_dictionary.and_then(|file| file.size_bytes),
        fs_type: in_dictionary.map_or_else(String::new, |file| file.fs_type.clone()),
        ranks: state.ranks,
        seconds: seconds(sum(&mut rows.iter().map(|row| row.ns))),
        read_bytes: of(Direction::Read),
        written_bytes: of(Direction::Write),
        collective_calls_share: share(
            sum(&mut rows.iter().filter(begun).filter(collective).map(|row| row.calls)),
            sum(&mut rows.iter().filter(begun).map(|row| row.calls)),
        ),
        collective_bytes_share: share(
            sum(&mut rows.iter().filter(data).filter(collective).map(|row| row.bytes)),
            sum(&mut rows.iter().filter(data).map(|row| row.bytes)),
        ),
        reads: state.reads,
        writes: state.writes,
        hints: hints(head, state),
        functions: rows.iter().map(|row| summarize_function(row)).collect(),
    }
}

fn hints(head: &ProfileHead, state: &FileTotals) -> Vec<Hint> {
    let mut hints = BTreeSet::new();
    for (asked, granted) in &state.infos {
        let granted = granted.and_then(|granted| head.infos.get(granted as usize));
        for (key, value) in head.infos.get(*asked as usize).into_iter().flatten() {
            let in_force = granted.and_then(|info| info.iter().find(|pair| pair.0 == *key)).map(|pair| pair.1.clone());
            hints.insert(Hint { key: key.clone(), asked: value.clone(), granted: in_force, told: granted.is_some() });
        }
    }
    hints.into_iter().collect()
}

fn summarize_function(row: &FunctionTotals) -> FunctionSummary {
    FunctionSummary {
        function: function_name(row.key.function, row.key.large),
        calls: row.calls,
        bytes: row.bytes,
        seconds: seconds(row.ns),
        longest_seconds: seconds(row.longest_ns),
        sizes: row.size_counter.sizes(),
        errors: row.errors.iter().map(|(class, n)| (*class, *n)).collect(),
        short: row.short,
        ranks: row.ranks,
        slowest_rank: (row.slowest.rank, seconds(row.slowest.ns)),
    }
}
