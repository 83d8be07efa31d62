//! b_eff_io: intervals, counts of calls, the slowest rank, time debt.

use serde_json::Value;

use crate::planted::{largest, same, seconds, Call, Planted, Session, STEP_SECONDS};
use crate::support::{items, number};

/// M_PART = 2 MiB.
const SMALL: [&str; 5] = ["--memory-per-process", "64M", "--release", "1", "--quiet"];

/// What the calls of MPI take. Rank 1 is slower in opening, its transfers and syncs, rank 0 in closing, views and decisions.
const MPI: [&str; 19] = [
    "MPI_Barrier=1000000",
    "MPI_Ibarrier=1000000",
    "MPI_Iallreduce=50000",
    // Odd, so that no two ranks take equally long.
    "MPI_Iallreduce@0=90007",
    "MPI_Bcast=0",
    "MPI_File_open=3000000",
    "MPI_File_open@1=4000000+100000",
    "MPI_File_close=2000000",
    "MPI_File_close@0=2500000+100000",
    "MPI_File_set_view=700000",
    "MPI_File_set_view@0=900000+50000",
    "MPI_File_sync=5000000+100000",
    "MPI_File_sync@1=6000000+100000",
    "MPI_File_write*=2000000+30000",
    "MPI_File_write*@1=2500000+30000",
    "MPI_File_read*=1500000+20000",
    "MPI_File_read*@1=1900000+20000",
    // Not always the same rank.
    "MPI_File_write_ordered@0=3000000+10000",
    "MPI_File_read_ordered@0=2800000+10000",
];

/// What the calls of the kernel take.
pub(super) const KERNEL: [&str; 10] = [
    "openat=1000000",
    "openat@1=1500000+10000",
    "close=700000",
    "close@0=800000+20000",
    "pwrite64=400000+7000",
    "pwrite64@1=500000+7000",
    "pread64=300000+9000",
    "pread64@1=350000+9000",
    "fsync=6000000+50000",
    "fsync@0=8000000+50000",
];

pub(super) fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let space = if args.iter().any(|arg| arg.starts_with("--space")) { None } else { Some("--space=300M") };
    // The calls of a kind are counted from the first one of the patterns.
    let patterns_only = ["--set", "connection-setup=off"];
    SMALL.iter().chain(args).copied().chain(patterns_only).chain(space).collect()
}

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

pub(super) fn part(record: &Value, name: &str) -> f64 {
    record["intervals"][name].as_f64().unwrap_or_else(|| panic!("no {name} in {record}"))
}

pub(super) fn total(record: &Value) -> f64 {
    ["view_seconds", "preallocate_seconds", "transfer_seconds", "decide_seconds", "sync_seconds"]
        .iter()
        .map(|name| part(record, name))
        .sum()
}

/// The records of the patterns of one type with one access.
pub(super) fn patterns_of<'a>(run: &'a Planted, of: &Value) -> Vec<&'a Value> {
    let same = |p: &&Value| ["backend", "ranks", "access", "pattern_type"].iter().all(|key| p[*key] == of[*key]);
    items(&run.result["patterns"]).iter().filter(same).collect()
}

/// The session of a rank that a record of a type tells of: the first one that writes, the second one, or the one that reads.
fn session<'a>(run: &'a Planted, rank: usize, of: &Value) -> Session<'a> {
    let name = format!("/{}/n{}-type{}-", text(of, "backend"), of["ranks"], of["pattern_type"]);
    // A sample is read from a descriptor of its own, in blocks of a page; every type has larger chunks.
    let is_sample = |s: &Session<'_>| s.open.is("openat") && s.moves().all(|call| call.count <= 4096);
    let moving: Vec<_> =
        run.sessions(rank, &name).into_iter().filter(|s| s.moves().count() > 0 && !is_sample(s)).collect();
    let writes = |s: &&Session<'_>| s.moves().any(Call::writes);
    let found = match text(of, "access") {
        "write" => moving.iter().find(writes),
        "rewrite" => moving.iter().filter(writes).nth(1),
        _ => moving.iter().find(|s| !writes(s)),
    };
    found.unwrap_or_else(|| panic!("rank {rank} has no file for {of}")).clone()
}

/// The sessions of all ranks of a record's partition.
pub(super) fn sessions<'a>(run: &'a Planted, of: &Value) -> Vec<Session<'a>> {
    (0..number(&of["ranks"]) as usize).map(|rank| session(run, rank, of)).collect()
}

/// Parts of a pattern's time on one rank.
#[derive(Clone, Debug, Default)]
struct Spent {
    view: f64,
    transfer: f64,
    decide: f64,
    sync: f64,
    /// By call.
    moves: Vec<f64>,
    /// By decision.
    decisions: Vec<f64>,
}

impl Spent {
    fn total(&self) -> f64 {
        self.view + self.transfer + self.decide + self.sync
    }

    /// Of the calls of one rank from a view to the next one.
    #[track_caller]
    fn of(calls: &[&Call], file: i64, record: &Value, per_call: bool, what: &str) -> Self {
        let own = || calls.iter().copied().filter(|call| call.file == file);
        let count = |name: &str| own().filter(|call| call.is(name)).count();
        let rounds = items(&record["rounds"]).len();
        assert_eq!(count("MPI_File_set_view"), 1, "{what}: views");
        let moves: Vec<f64> = own().filter(|call| call.moves()).map(Call::seconds).collect();
        assert_eq!(moves.len() as u64, number(&record["calls"]), "{what}: calls");
        let expected = if record["access"] == "read" { 0 } else { rounds };
        assert_eq!(count("MPI_File_sync"), expected, "{what}: syncs");
        // The sync comes behind the last call.
        if expected > 0 {
            let last = own().next_back().expect("a call");
            assert!(last.is("MPI_File_sync"), "{what}: {last:?} behind the sync");
        }
        let decisions: Vec<f64> =
            decisions(calls, per_call).into_iter().take(number(&record["decisions"]) as usize).collect();
        Self {
            view: seconds(own().filter(|call| call.is("MPI_File_set_view"))),
            transfer: moves.iter().sum(),
            decide: decisions.iter().sum(),
            sync: seconds(own().filter(|call| call.is("MPI_File_sync"))),
            moves,
            decisions,
        }
    }
}

/// What the agreements took from a view on, also those behind the pattern: with a decision after each call a barrier and the
/// word of the root, but for the first one.
fn decisions(calls: &[&Call], per_call: bool) -> Vec<f64> {
    let all = |name: &'static str| calls.iter().filter(move |call| call.is(name)).map(|call| call.seconds());
    if !per_call {
        return all("MPI_Iallreduce").collect();
    }
    let words = all("MPI_Barrier").zip(all("MPI_Bcast")).map(|(barrier, word)| barrier + word);
    all("MPI_Iallreduce").take(1).chain(words).collect()
}

/// Calls of a session from each view on.
fn from_view_to_view<'a>(session: &Session<'a>) -> Vec<Vec<&'a Call>> {
    let mut groups: Vec<Vec<&Call>> = Vec::new();
    for call in session.calls {
        if call.is("MPI_File_set_view") && call.file == session.open.file {
            groups.push(Vec::new());
        }
        if let Some(group) = groups.last_mut() {
            group.push(call);
        }
    }
    groups
}

/// One pattern: the intervals are those of the slowest rank, each what its calls took; batches and decisions likewise.
#[track_caller]
fn check_pattern(record: &Value, spent: &[Spent], per_call: bool, what: &str) {
    let totals: Vec<f64> = spent.iter().map(Spent::total).collect();
    let slowest = &spent[largest(&totals)];
    let planted = [
        ("view_seconds", slowest.view),
        ("preallocate_seconds", 0.0),
        ("transfer_seconds", slowest.transfer),
        ("decide_seconds", slowest.decide),
        ("sync_seconds", slowest.sync),
    ];
    for (name, planted) in planted {
        same(&record["intervals"][name], planted, &format!("{what}: {name}"));
    }
    let decisions = slowest.decisions.len();
    assert_eq!(number(&record["decisions"]) as usize, decisions, "{what}: decisions");
    let least = |n: usize| spent.iter().map(|s| s.decisions[n]).fold(f64::INFINITY, f64::min);
    let cost: f64 = (0..decisions).map(least).sum();
    same(&record["decision_cost_seconds"], cost, &format!("{what}: cost of the decisions"));
    let own = spent.iter().map(|s| s.total() - s.decide).fold(0.0, f64::max);
    same(&record["imbalance_seconds"], slowest.total() - own, &format!("{what}: beyond the slowest rank's own part"));
    check_slowest_rank(record, spent, what);
    let (mut done, batches) = (0, items(&record["batches"]));
    for (n, batch) in batches.iter().enumerate() {
        let calls = done..done + number(&batch["calls"]) as usize;
        let of_ranks = spent.iter().map(|s| s.moves[calls.clone()].iter().sum::<f64>());
        // The root tells its own clock, as in release 2.1; the last batch is agreed on behind the clock.
        let ranks = if per_call && n + 1 < batches.len() { 1 } else { spent.len() };
        let worst = of_ranks.take(ranks).fold(0.0, f64::max);
        same(&batch["seconds"], worst, &format!("{what}: batch of calls {calls:?}"));
        done = calls.end;
    }
    assert_eq!(done as u64, number(&record["calls"]), "{what}: calls of the batches");
    let rounds: Vec<&Value> = items(&record["rounds"]).iter().collect();
    let sum = |key: &str| rounds.iter().map(|r| r[key].as_f64().unwrap()).sum::<f64>();
    assert!((sum("seconds") - slowest.total()).abs() < STEP_SECONDS, "{what}: rounds");
    assert_eq!(sum("calls") as u64, number(&record["calls"]), "{what}: calls of the rounds");
}

/// The rank with the longest own time in each round; of a pattern of one round with its time and that of all ranks.
#[track_caller]
fn check_slowest_rank(record: &Value, spent: &[Spent], what: &str) {
    let found = items(&record["slowest_ranks"]);
    assert_eq!(found.len(), items(&record["rounds"]).len(), "{what}: a slowest rank in each round");
    if let [one] = found {
        let own: Vec<f64> = spent.iter().map(|s| s.total() - s.decide).collect();
        // Of ranks that take equally long, any.
        let named = own[number(&one["rank"]) as usize];
        assert!(named + STEP_SECONDS > own[largest(&own)], "{what}: the slowest rank of {own:?}, not {one}");
        same(&one["seconds"], own[largest(&own)], &format!("{what}: own time of the slowest rank"));
        same(&one["all_ranks_seconds"], own.iter().sum(), &format!("{what}: own times of all ranks"));
    }
}

/// Opening and closing: each the slowest rank's.
#[track_caller]
pub(super) fn check_file(of: &Value, sessions: &[Session<'_>], what: &str) {
    let worst = |call: fn(&Session<'_>) -> f64| sessions.iter().map(call).fold(0.0, f64::max);
    same(&of["open_seconds"], worst(|s| s.open.seconds()), &format!("{what}: open"));
    same(&of["close_seconds"], worst(|s| s.close.seconds()), &format!("{what}: close"));
}

/// The calibration tells the last of its rounds (two, where there is space), of the slowest rank.
#[track_caller]
fn check_calibration(run: &Planted) {
    let calibration = &items(&run.result["calibrations"])[0];
    let of_rank = |rank| {
        let session = run.sessions(rank, "/calibration-rank").remove(0);
        let groups = from_view_to_view(&session);
        let last = groups.last().expect("a round");
        let of = |fits: fn(&Call) -> bool| seconds(last.iter().copied().filter(|call| fits(call)));
        let sync = last.iter().position(|call| call.is("MPI_File_sync")).expect("a sync");
        let decided = seconds(last[..sync].iter().copied().filter(|call| call.is("MPI_Iallreduce")));
        let [view, written] = [of(|call| call.is("MPI_File_set_view")), of(Call::writes)];
        let synced = last[sync].seconds();
        (view + written + decided + synced, written, synced)
    };
    let spent: Vec<_> = (0..run.ranks.len()).map(of_rank).collect();
    let (_, written, synced) = spent[largest(&spent.iter().map(|s| s.0).collect::<Vec<_>>())];
    same(&calibration["write_seconds"], written, "calibration: write");
    same(&calibration["sync_seconds"], synced, "calibration: sync");
}

/// Everything that MPI-IO alone was measured with.
#[track_caller]
fn check_mpiio(run: &Planted) {
    check_calibration(run);
    let per_call = run.result["config"]["termination"] == "per-call";
    let types = items(&run.result["types"]);
    assert!(!types.is_empty());
    let mut slowest_ranks = [0; 8];
    for of in types {
        let what = format!("{} ranks, {}, type {}", of["ranks"], text(of, "access"), of["pattern_type"]);
        let sessions = sessions(run, of);
        check_file(of, &sessions, &what);
        let groups: Vec<_> = sessions.iter().map(from_view_to_view).collect();
        let records: Vec<_> = patterns_of(run, of).into_iter().filter(|p| number(&p["calls"]) > 0).collect();
        for (rank, groups) in groups.iter().enumerate() {
            assert_eq!(groups.len(), records.len(), "{what}: patterns of rank {rank} with a view");
        }
        for (n, record) in records.into_iter().enumerate() {
            let what = format!("{what}, pattern {}", record["pattern"]);
            let spent: Vec<Spent> = groups
                .iter()
                .zip(&sessions)
                .enumerate()
                .map(|(rank, (groups, s))| {
                    Spent::of(&groups[n], s.open.file, record, per_call, &format!("{what}, rank {rank}"))
                })
                .collect();
            check_pattern(record, &spent, per_call, &what);
            slowest_ranks[largest(&spent.iter().map(Spent::total).collect::<Vec<_>>())] += 1;
        }
    }
    assert!(
        slowest_ranks[..2].iter().all(|patterns| *patterns > 0),
        "one rank is always the slowest: {slowest_ranks:?}"
    );
}

#[test]
fn intervals_of_mpiio_are_what_the_calls_took() {
    let run = Planted::run(2, &MPI, &with(&["-T", "6s"]));
    check_mpiio(&run);
    assert_eq!(items(&run.result["types"]).len(), 15, "{}", run.run);
}

#[test]
fn intervals_are_those_of_the_partition() {
    let rules: Vec<&str> = MPI.into_iter().chain(["MPI_File_w*@2=2200000", "MPI_File_sync@2=9000000"]).collect();
    let run = Planted::run(3, &rules, &with(&["-T", "3s", "--partitions", "2,3", "--types", "0,1,2"]));
    check_mpiio(&run);
    assert_eq!(items(&run.result["types"]).len(), 18, "{}", run.run);
}

/// Slow enough that the space is no limit.
const SLOW: [&str; 6] = [
    "MPI_File_write*=16000000+200000",
    "MPI_File_write*@1=18000000+200000",
    "MPI_File_read*=15000000+100000",
    "MPI_File_read*@1=17000000+100000",
    "MPI_File_open@1#3=150000000",
    "MPI_File_close@1#3=120000000",
];

/// A pattern has what the ones before have left of its time, a quarter at least, and ends when no further call fits.
#[test]
fn an_overrun_shortens_what_follows() {
    // Late by their views: a late sync would be believed of the next ones.
    let rules: Vec<&str> = MPI.into_iter().chain(SLOW).chain(["MPI_File_set_view@0=900000+45000000"]).collect();
    let run = Planted::run(2, &rules, &with(&["-T", "40s", "--types", "1,2", "--space=2G"]));
    check_mpiio(&run);
    let (mut shortened, mut at_least, mut by_time, mut several) = (0, 0, 0, 0);
    for access in ["write", "rewrite", "read"] {
        let mut debt = 0.0;
        for of in items(&run.result["types"]).iter().filter(|of| of["access"] == access) {
            debt += of["open_seconds"].as_f64().unwrap();
            for p in patterns_of(&run, of) {
                let what = format!("{access}, pattern {}", p["pattern"]);
                let scheduled = p["scheduled_seconds"].as_f64().unwrap();
                let budget = (scheduled - debt).max(0.25 * scheduled);
                same(&p["budget_seconds"], budget, &format!("{what}: budget"));
                let (is_short, is_timed) = (budget < scheduled, check_end(p, budget, &what));
                shortened += u32::from(is_short);
                at_least += u32::from(scheduled > 0.0 && budget == 0.25 * scheduled);
                by_time += u32::from(is_timed);
                several += u32::from(is_short && is_timed && number(&p["calls"]) > 1);
                debt = (debt + total(p) - scheduled).max(0.0);
            }
            debt += of["close_seconds"].as_f64().unwrap();
        }
    }
    let seen = [shortened, at_least, by_time, several];
    assert!(seen.iter().zip([15, 5, 10, 3]).all(|(seen, least)| *seen >= least), "not looked at: {seen:?}");
}

/// What a sync took is expected of the next ones: fast in the calibration and slow ever since, it is in the time soon.
#[test]
fn a_slow_sync_is_expected_of_the_next_ones() {
    let syncs = ["MPI_File_sync*=300000000", "MPI_File_sync#0=1000000", "MPI_File_sync#1=1000000"];
    let rules: Vec<&str> = MPI.into_iter().chain(SLOW).chain(syncs).collect();
    let run = Planted::run(2, &rules, &with(&["-T", "120s", "--types", "2", "--space=2G"]));
    let writes: Vec<_> = items(&run.result["patterns"])
        .iter()
        .filter(|p| p["access"] == "write" && p["ended"]["by"] == "time")
        .collect();
    assert!(writes.len() >= 6, "{}", run.run);
    for p in &writes[3..] {
        let budget = p["budget_seconds"].as_f64().unwrap();
        assert!(total(p) < budget + 0.1, "pattern {}: {} s of {budget}", p["pattern"], total(p));
    }
}

/// True if it ended by its time: then it is used, and not exceeded, but for what one call and the guess of the sync take.
#[track_caller]
fn check_end(p: &Value, budget: f64, what: &str) -> bool {
    let budget = match p["ended"]["by"].as_str() {
        Some("time") => budget,
        // First writes of types 3 and 4.
        Some("time_guard") => 2.0 * p["scheduled_seconds"].as_f64().unwrap(),
        _ => return false,
    };
    let call = part(p, "transfer_seconds") / number(&p["calls"]) as f64;
    let guess = 0.25 * part(p, "sync_seconds") + 1e-3;
    let used = total(p);
    assert!(number(&p["calls"]) == 1 || used < budget + guess, "{what}: {used} s of {budget}: {p}");
    assert!(used + 1.3 * call + guess > budget, "{what}: only {used} s of {budget}: {p}");
    true
}

/// Decisions after each call, as release 2.1 makes them.
#[test]
fn a_decision_after_each_call() {
    let rules: Vec<&str> = MPI.into_iter().chain(["MPI_Bcast=30000", "MPI_Bcast@1=40000"]).collect();
    let run = Planted::run(2, &rules, &with(&["-T", "6s", "--types", "0,1", "--termination", "per-call"]));
    assert_eq!(run.result["config"]["termination"], "per-call");
    check_mpiio(&run);
    let most = items(&run.result["patterns"]).iter().map(|p| items(&p["batches"]).len()).max();
    assert!(most > Some(5), "{most:?}");
    for p in items(&run.result["patterns"]) {
        assert!(items(&p["batches"]).iter().all(|b| b["calls"] == 1), "{p}");
    }
}

/// Backends in turns: every round of a write has its sync, and they add up.
#[test]
fn every_round_ends_with_its_sync() {
    let rules: Vec<&str> = MPI.into_iter().chain(KERNEL).collect();
    let args = ["-T", "12s", "--types", "0,2", "--backend", "mpiio,posix", "--rounds", "3", "--direct", "off"];
    let args = [&args[..], &["--repeat", "off"]].concat();
    let run = Planted::run(2, &rules, &with(&args));
    let mut most = 0;
    for of in items(&run.result["types"]).iter().filter(|of| of["backend"] == "mpiio") {
        let sessions = sessions(&run, of);
        let groups: Vec<_> = sessions.iter().map(from_view_to_view).collect();
        for (n, p) in patterns_of(&run, of).into_iter().enumerate() {
            let what = format!("{}, pattern {}", text(of, "access"), p["pattern"]);
            for (session, groups) in sessions.iter().zip(&groups) {
                Spent::of(&groups[n], session.open.file, p, false, &what);
            }
            let rounds = items(&p["rounds"]);
            let seconds: f64 = rounds.iter().map(|r| r["seconds"].as_f64().unwrap()).sum();
            assert!((seconds - total(p)).abs() < STEP_SECONDS, "{what}: {seconds} s in rounds: {p}");
            most = most.max(rounds.len());
        }
    }
    assert_eq!(most, 3);
}
