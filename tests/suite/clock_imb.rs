//! IMB-IO: a row is n calls with the syncs of its mode, divided by n; fastest, slowest and mean over the ranks.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::planted::{seconds, Call, Planted, Session, STEP_SECONDS};
use crate::support::{items, number, skip};

/// What the calls take. Rank 1 is slower in its transfers, rank 0 in syncs and closing.
pub const CALLS: [&str; 15] = [
    "MPI_Barrier=1000000",
    "MPI_Ibarrier=1000000",
    "MPI_Iallreduce=50000",
    "MPI_File_open=3000000",
    "MPI_File_open@1=3500000+100000",
    "MPI_File_close=2000000",
    "MPI_File_close@0=2500000+100000",
    "MPI_File_set_view=700000",
    "MPI_File_sync=5000000+100000",
    "MPI_File_sync@0=5200000+100000",
    "MPI_File_*write*=2000000+30000",
    "MPI_File_*write*@1=3500000+40000",
    "MPI_File_*read*=1500000+20000",
    "MPI_File_*read*@1=1700000+30000",
    "MPI_Wait*=900000+10000",
];

/// From the first call of a file that moves something to its last one or the sync behind: what the clock has to show.
#[derive(Clone, Debug)]
pub struct OfRank {
    rank: usize,
    /// The functions on the file, in order, with barriers between.
    order: Vec<String>,
    views: usize,
    pub moves: Vec<Call>,
    moved: u64,
    seconds: f64,
    /// From the first sync to the last one.
    sync_seconds: f64,
    /// Repetition by repetition.
    laps: Vec<f64>,
    /// Between the begin of calls and their completion.
    pub between_seconds: f64,
}

impl OfRank {
    /// Of the calls of a rank from the first one of a pass, with the views before it.
    fn new(rank: usize, file: i64, calls: &[Call], views: usize) -> Self {
        let last = |c: &Call| c.moves() || c.is("MPI_File_sync") || c.function.ends_with("_end") || waits(c);
        let end = calls.iter().rposition(|c| (c.file == file || waits(c)) && last(c)).expect("a call");
        let clocked = &calls[..=end];
        let own = || clocked.iter().filter(|c| c.file == file || waits(c));
        let syncs: Vec<&Call> = own().filter(|c| c.is("MPI_File_sync")).collect();
        let moves: Vec<Call> = own().filter(|c| c.moves()).cloned().collect();
        let between = |a: &Call, b: &Call| (b.end_ns - a.begin_ns) as f64 * 1e-9;
        let each = syncs.len() == 2 * moves.len();
        let ends: Vec<u64> = if each {
            syncs.chunks(2).map(|pair| pair[1].end_ns).collect()
        } else {
            moves.iter().map(|call| call.end_ns).collect()
        };
        let begins = std::iter::once(clocked[0].begin_ns).chain(ends.iter().copied());
        Self {
            rank,
            order: clocked
                .iter()
                .filter(|c| c.file == file || c.is("MPI_Barrier"))
                .map(|c| c.function.clone())
                .collect(),
            views,
            moved: moves.iter().map(|call| call.count).sum(),
            seconds: between(&clocked[0], &clocked[clocked.len() - 1]),
            sync_seconds: syncs.first().map_or(0.0, |first| between(first, syncs[syncs.len() - 1])),
            laps: ends.iter().zip(begins).map(|(end, begin)| (end - begin) as f64 * 1e-9).collect(),
            between_seconds: gaps(clocked),
            moves,
        }
    }
}

/// A file while it was open, of one rank. The clock may see its calls once, and others compare them behind it.
#[derive(Debug)]
pub struct Opened {
    rank: usize,
    file: i64,
    calls: Vec<Call>,
    /// Where the calls that move something are.
    moves: Vec<usize>,
}

impl Opened {
    fn new(rank: usize, session: &Session<'_>) -> Self {
        let (file, calls) = (session.open.file, session.calls.to_vec());
        let moves = (0..calls.len()).filter(|at| calls[*at].file == file && calls[*at].moves()).collect();
        Self { rank, file, calls, moves }
    }

    /// The calls of pass number `pass`, of `n` each.
    fn pass(&self, index: usize, n: usize) -> OfRank {
        let begin = self.moves[index * n];
        let end = self.moves.get((index + 1) * n).copied().unwrap_or(self.calls.len());
        let before = if index == 0 { 0 } else { self.moves[index * n - 1] };
        let views =
            self.calls[before..begin].iter().filter(|c| c.file == self.file && c.is("MPI_File_set_view")).count();
        OfRank::new(self.rank, self.file, &self.calls[begin..end], views)
    }
}

fn waits(call: &Call) -> bool {
    call.is("MPI_Waitall") || call.is("MPI_Wait")
}

/// What passes between the begin of transfers and their completion.
fn gaps(calls: &[Call]) -> f64 {
    let ends = |c: &Call| waits(c) || c.function.ends_with("_end");
    let gap = |pair: &[Call]| if ends(&pair[1]) { (pair[1].begin_ns - pair[0].end_ns) as f64 * 1e-9 } else { 0.0 };
    calls.windows(2).map(gap).sum()
}

/// A file that was worked through, by rank; private files of the ranks count as one.
pub fn made(run: &Planted) -> Vec<Vec<Opened>> {
    let mut files: BTreeMap<(String, usize), Vec<Opened>> = BTreeMap::new();
    for rank in 0..run.ranks.len() {
        let mut opened: BTreeMap<String, usize> = BTreeMap::new();
        for session in run.sessions(rank, "/mpiio/") {
            let name = session.path.split("-rank").next().unwrap_or(session.path).to_owned();
            let nth = opened.entry(name.clone()).or_default();
            *nth += 1;
            files.entry((name, *nth)).or_default().push(Opened::new(rank, &session));
        }
    }
    files.into_values().collect()
}

pub fn slowest(ranks: &[OfRank], seconds: impl Fn(&OfRank) -> f64) -> f64 {
    ranks.iter().map(seconds).fold(0.0, f64::max)
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("no {key} in {row}"))
}

pub fn name(row: &Value) -> String {
    format!("{}, {} ranks, {}, {} bytes", text(row, "benchmark"), row["ranks"], text(row, "mode"), row["sample_bytes"])
}

/// A time per repetition, `step` off at most.
#[track_caller]
pub fn near(recorded: &Value, expected: f64, step: f64, what: &str) {
    let recorded = recorded.as_f64().unwrap_or_else(|| panic!("{what}: no number: {recorded}"));
    assert!((recorded - expected).abs() < step, "{what}: recorded {recorded} s, planted {expected} s");
}

/// Takes the file out whose slowest rank took `seconds` for each of the row's repetitions: these.
#[track_caller]
pub fn take(opened: &mut Vec<Vec<Opened>>, row: &Value, seconds: &Value, step: f64) -> Vec<OfRank> {
    let (ranks, repetitions) = (number(&row["ranks"]) as usize, number(&row["iterations"]) as usize);
    let recorded = seconds.as_f64().unwrap_or_else(|| panic!("{}: no times", name(row)));
    let mut others = Vec::new();
    for at in 0..opened.len() {
        let moves = opened[at][0].moves.len();
        let alike = opened[at].iter().all(|of| of.moves.len() == moves);
        if opened[at].len() != ranks || !alike || !moves.is_multiple_of(repetitions) {
            continue;
        }
        for index in 0..moves / repetitions {
            let of_ranks: Vec<OfRank> = opened[at].iter().map(|of| of.pass(index, repetitions)).collect();
            let time = slowest(&of_ranks, |of| of.seconds) / repetitions as f64;
            let moved: u64 = of_ranks.iter().map(|of| of.moved).sum();
            if moved == number(&row["moved_bytes"]) && (time - recorded).abs() < step {
                opened.remove(at);
                return of_ranks;
            }
            others.push((time, moved, of_ranks[0].order.clone()));
        }
    }
    panic!("{}: no file took {recorded} s: {row}; there were {others:?}", name(row));
}

/// In aggregate mode one sync triple behind all calls, else one behind each; none behind reads.
#[track_caller]
fn check_order(row: &Value, of: &OfRank) {
    let what = format!("{}, rank {}", name(row), of.rank);
    let triple = ["MPI_File_sync", "MPI_Barrier", "MPI_File_sync"];
    let triple = || triple.into_iter().filter(|call| row["ranks"] != 1 || *call != "MPI_Barrier");
    let call = of.moves[0].function.as_str();
    let n = of.moves.len();
    let expected: Vec<&str> = match (call.contains("write"), text(row, "mode")) {
        (false, _) => vec![call; n],
        (true, "aggregate") => std::iter::repeat_n(call, n).chain(triple()).collect(),
        (true, _) => (0..n).flat_map(|_| std::iter::once(call).chain(triple())).collect(),
    };
    assert_eq!(of.order, expected, "{what}");
    assert!(text(row, "strategy").starts_with(call), "{what}: {row}");
    // An offset needs no view; a pointer begins where its view does.
    assert_eq!(of.views, usize::from(!call.contains("_at")), "{what}: views");
}

/// The value that `share` of the repetitions do not exceed, slowest rank.
fn quantile(ranks: &[OfRank], share: f64) -> f64 {
    slowest(ranks, |of| {
        let mut laps = of.laps.clone();
        laps.sort_by(f64::total_cmp);
        laps[((share * laps.len() as f64).ceil() as usize).max(1) - 1]
    })
}

/// Fastest and slowest rank, and the mean of all.
#[track_caller]
pub fn check_times(row: &Value, file: &[OfRank], step: f64) {
    let (what, n) = (name(row), number(&row["iterations"]) as f64);
    let times = items(&row["times"]);
    assert_eq!(times.len(), 1, "{what}");
    let mean = file.iter().map(|of| of.seconds).sum::<f64>() / file.len() as f64;
    let least = file.iter().map(|of| of.seconds).fold(f64::INFINITY, f64::min);
    near(&times[0]["min_seconds"], least / n, step, &format!("{what}: fastest rank"));
    near(&times[0]["max_seconds"], slowest(file, |of| of.seconds) / n, step, &format!("{what}: slowest rank"));
    near(&times[0]["mean_seconds"], mean / n, step, &format!("{what}: mean"));
}

/// A row of blocking calls.
#[track_caller]
fn check_row(row: &Value, file: &[OfRank], has_cycles: bool) {
    let what = name(row);
    file.iter().for_each(|of| check_order(row, of));
    let n = number(&row["iterations"]) as f64;
    check_times(row, file, STEP_SECONDS);
    let behind = if row["mode"] == "aggregate" { slowest(file, |of| of.sync_seconds) / n } else { 0.0 };
    near(&row["sync_seconds"], behind, STEP_SECONDS, &format!("{what}: sync"));
    if has_cycles {
        for (key, share) in [("median_seconds", 0.5), ("p99_seconds", 0.99), ("max_seconds", 1.0)] {
            near(&row["iteration_times"][key], quantile(file, share), STEP_SECONDS, &format!("{what}: {key}"));
        }
    }
}

#[track_caller]
fn imb(ranks: u64, benchmarks: &[&str], more: &[&str]) -> Planted {
    let args: Vec<&str> = ["imb"].iter().chain(benchmarks).chain(more).copied().chain(["--quiet"]).collect();
    let rules: Vec<&str> = CALLS.into_iter().chain(["cycles"]).collect();
    Planted::run(ranks, &rules, &args)
}

#[track_caller]
fn check_blocking(run: &Planted, rows: usize) {
    let (mut opened, has_cycles) = (made(run), run.has_cycles());
    if !has_cycles {
        skip("the cycle counter cannot be planted here: the times of single repetitions are not looked at");
    }
    let all = items(&run.result["rows"]);
    assert_eq!(all.len(), rows, "{}", run.run);
    for row in all {
        assert_eq!(row["ended"]["by"], "complete", "{}: {row}", name(row));
        let file = take(&mut opened, row, &row["times"][0]["max_seconds"], STEP_SECONDS);
        check_row(row, &file, has_cycles);
    }
}

/// Seven repetitions of each size, five with a sync behind each; sizes of nothing, 1 and 2 KiB.
const REPEATED: [&str; 6] = ["--msglog", "10:11", "--iter", "7,1,5,off", "--cache", "keep"];

#[test]
fn rows_of_two_ranks_are_their_calls_divided_by_their_number() {
    let names = ["S_Write_Indv", "S_Write_Expl", "P_Write_Indv", "P_Write_Expl", "P_Write_Shared", "C_Write_Indv"];
    let run = imb(2, &names, &[&REPEATED[..], &["--npmin", "2"]].concat());
    check_blocking(&run, 6 * 2 * 3);
}

#[test]
fn reads_of_three_ranks_have_no_sync() {
    let names = ["S_Read_Indv", "P_Read_Priv", "P_Read_Expl", "C_Read_Shared", "C_Read_Expl"];
    let run = imb(3, &names, &[&REPEATED[..], &["--npmin", "2"]].concat());
    // S on one rank, the others on two and on three.
    check_blocking(&run, 3 + 4 * 2 * 3);
}

#[test]
fn one_mode_alone_and_three_ranks() {
    let names = ["P_Write_Priv", "C_Write_Shared", "C_Write_Expl"];
    let run = imb(3, &names, &[&REPEATED[..], &["--npmin", "3", "--aggregate-mode", "aggregate"]].concat());
    check_blocking(&run, 3 * 3);
}

/// A time limit that the calls would exceed: fewer repetitions, judged by what a trial took, and the row is still their mean.
#[test]
fn a_row_that_would_take_too_long_has_fewer_repetitions() {
    let names = ["P_Write_Expl"];
    let run = imb(2, &names, &["--npmin", "2", "--msglog", "10:11", "--iter", "100,1,100,dynamic", "--time", "0.4s"]);
    check_blocking(&run, 2 * 3);
    for row in items(&run.result["rows"]) {
        let (iterations, wanted) = (number(&row["iterations"]), number(&row["iterations_requested"]));
        let seconds = iterations as f64 * row["times"][0]["max_seconds"].as_f64().unwrap();
        assert!(iterations > 1 && iterations < wanted, "{row}");
        assert!(seconds > 0.15 && seconds < 0.45, "{}: {seconds} s of 0.4: {row}", name(row));
    }
}

/// Open_Close: from the first open to the last close, every rank by itself.
#[test]
fn opening_and_closing_are_one_repetition() {
    let run = imb(2, &["Open_Close"], &["--npmin", "2", "--iter", "7,1,5,off"]);
    let rows = items(&run.result["rows"]);
    assert_eq!(rows.len(), 1, "{}", run.run);
    let row = &rows[0];
    let n = number(&row["iterations"]) as usize;
    assert_eq!(n, 7);
    // The last n that belong to one file: the ones before are the pilot's.
    let of_rank = |rank| {
        let sessions = run.sessions(rank, "/mpiio/");
        let last = sessions[sessions.len() - n..].to_vec();
        assert!(last.iter().all(|s| s.path == last[0].path && s.moves().count() == 1), "{last:?}");
        last
    };
    let spent: Vec<f64> = (0..2)
        .map(of_rank)
        .map(|all| {
            let calls = seconds(all.iter().flat_map(|s| s.own()));
            let begin_to_end = (all[n - 1].close.end_ns - all[0].open.begin_ns) as f64 * 1e-9;
            let parts = calls + all.iter().map(|s| s.open.seconds() + s.close.seconds()).sum::<f64>();
            assert!((parts - begin_to_end).abs() < STEP_SECONDS, "something else is in the clock");
            begin_to_end / n as f64
        })
        .collect();
    let times = &row["times"][0];
    near(&times["min_seconds"], spent[0].min(spent[1]), STEP_SECONDS, "fastest rank");
    near(&times["max_seconds"], spent[0].max(spent[1]), STEP_SECONDS, "slowest rank");
    near(&times["mean_seconds"], (spent[0] + spent[1]) / 2.0, STEP_SECONDS, "mean");
}
