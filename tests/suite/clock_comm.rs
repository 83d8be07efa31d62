//! b_eff: a loop's time is that of the slowest rank, its iterations are those that were made, and the best of all loops counts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::planted::{same, Call, Planted, STEP_SECONDS};
use crate::support::{items, number};

/// What messages take. Which rank is the slowest depends on the method.
const MESSAGES: [&str; 12] = [
    "MPI_Barrier=1000000",
    "MPI_Ibarrier=1000000",
    "MPI_Iallreduce=1000000",
    "MPI_Sendrecv=300000+3000",
    "MPI_Sendrecv@1=400000+3000",
    "MPI_Alltoallv=450000+20000",
    "MPI_Alltoallv@0=600000+13000",
    "MPI_Waitall=500000+2000",
    "MPI_Waitall@1=420000+2000",
    "MPI_Send=160000+1000",
    "MPI_Recv=170000+1000",
    "MPI_Recv@1=180000+1000",
];

/// Calls between a barrier and the next agreement of the ranks.
#[derive(Debug, Default)]
struct Loop {
    /// By function: calls and their length.
    calls: BTreeMap<String, (u64, u64)>,
    seconds: f64,
}

/// The loops of a rank, one for each barrier.
fn loops(calls: &[Call]) -> Vec<Loop> {
    let mut all: Vec<Loop> = Vec::new();
    let mut open = false;
    for call in calls {
        if call.is("MPI_Barrier") {
            all.push(Loop::default());
            open = true;
        } else if call.is("MPI_Iallreduce") {
            open = false;
        } else if let (Some(last), true) = (all.last_mut(), open) {
            let of = last.calls.entry(call.function.clone()).or_default();
            *of = (of.0 + call.calls, call.count);
            last.seconds += call.seconds();
        }
    }
    all
}

/// A loop as all ranks made it.
#[derive(Debug)]
struct MadeCalls {
    method: &'static str,
    message_bytes: u64,
    /// Calls of all ranks.
    calls: u64,
    /// Ranks that made any.
    ranks: u64,
    slowest_seconds: f64,
}

/// The loops of all ranks: they all make the same barriers.
fn made(run: &Planted) -> Vec<MadeCalls> {
    let by_rank: Vec<Vec<Loop>> = run.ranks.iter().map(|calls| loops(calls)).collect();
    let barriers = by_rank[0].len();
    assert!(by_rank.iter().all(|loops| loops.len() == barriers), "barriers of the ranks differ");
    let all = (0..barriers).map(|n| by_rank.iter().map(|loops| &loops[n]).collect::<Vec<_>>());
    all.filter_map(|of_ranks| {
        let names = [
            ("MPI_Send", "ping_pong"),
            ("MPI_Sendrecv", "sendrecv"),
            ("MPI_Alltoallv", "alltoallv"),
            ("MPI_Waitall", "nonblocking"),
        ];
        let has = |name: &str| of_ranks.iter().any(|l| l.calls.contains_key(name));
        let (name, method) = *names.iter().find(|(name, _)| has(name))?;
        let own = || of_ranks.iter().filter_map(|l| l.calls.get(name));
        Some(MadeCalls {
            method,
            message_bytes: own().map(|(_, bytes)| *bytes).max()?,
            calls: own().map(|(calls, _)| *calls).sum(),
            ranks: own().count() as u64,
            slowest_seconds: of_ranks.iter().map(|l| l.seconds).fold(0.0, f64::max),
        })
    })
    .collect()
}

impl MadeCalls {
    /// The method, length and iterations of a record.
    fn fits(&self, record: &Value, message_bytes: u64, messages: u64) -> bool {
        let per_iteration = match self.method {
            // One call for each message, and for the other messages of a rank.
            "sendrecv" | "ping_pong" => messages,
            _ => self.ranks,
        };
        self.method == record["method"].as_str().unwrap()
            && self.message_bytes == message_bytes
            && self.calls == number(&record["iterations"]) * per_iteration
    }
}

/// Takes the loop out that a record tells of: the same messages, and the time of the slowest rank.
#[track_caller]
fn take(measured: &mut Vec<MadeCalls>, record: &Value, message_bytes: u64, messages: u64, what: &str) {
    let seconds = record["seconds"].as_f64().unwrap();
    let off = |m: &MadeCalls| (m.slowest_seconds - seconds).abs();
    let fit = (0..measured.len()).filter(|at| measured[*at].fits(record, message_bytes, messages));
    let nearest = fit.min_by(|a, b| off(&measured[*a]).total_cmp(&off(&measured[*b])));
    let at = nearest.unwrap_or_else(|| panic!("{what}: no such loop was made: {record}"));
    assert!(off(&measured[at]) < STEP_SECONDS, "{what}: not what the loop took: {record}; nearest {:?}", measured[at]);
    measured.remove(at);
}

/// Loops of one repetition: of ping-pong one for each size, of the six rings one for each size and method.
const LOOPS: usize = 21 + 6 * 21 * 3;

/// Takes out the loops of these records; how many they are.
#[track_caller]
fn take_all(measured: &mut Vec<MadeCalls>, patterns: &[Value]) -> usize {
    let mut loops = 0;
    for p in patterns {
        for size in items(&p["sizes"]) {
            let (bytes, messages) = (number(&size["message_bytes"]), number(&p["messages"]));
            for l in items(&size["loops"]) {
                take(measured, l, bytes, messages, &format!("{}, {bytes} bytes", p["pattern"]));
                loops += 1;
            }
        }
    }
    loops
}

#[track_caller]
fn check(run: &Planted) {
    let mut measured = made(run);
    let result = &run.result;
    let patterns = items(&result["patterns"]);
    assert_eq!(patterns.len(), 7, "{}", run.run);
    assert_eq!(take_all(&mut measured, patterns), 3 * LOOPS, "{}", run.run);
    // What is measured again is measured in the same way.
    assert_eq!(take_all(&mut measured, items(&result["repetitions"])), LOOPS, "{}", run.run);
    // What is left are the loops of the pilot and of the warm-up, few beside the others.
    let buffer = patterns.iter().find(|p| p["family"] == "ring").unwrap();
    let pilot = items(&result["announcement"]["pilot"]);
    assert_eq!(pilot.len(), 3 * 21);
    let messages = number(&buffer["messages"]);
    let mut differ = 0;
    for l in pilot {
        // The faster of two tries.
        let bytes = number(&l["message_bytes"]);
        let tries = || measured.iter().filter(|m| m.fits(l, bytes, messages)).map(|m| m.slowest_seconds);
        let fastest = tries().fold(f64::INFINITY, f64::min);
        differ += u32::from(tries().fold(0.0, f64::max) > fastest + 2.0 * STEP_SECONDS);
        same(&l["seconds"], fastest, &format!("pilot: {l}"));
    }
    assert!(differ > 0, "all tries of the pilot took the same");
    check_best(result);
}

/// The rate of a size is that of the fastest of its loops.
#[track_caller]
fn check_best(result: &Value) {
    for (p, curve) in items(&result["patterns"]).iter().zip(items(&result["derived"]["curves"])) {
        assert_eq!(p["pattern"], curve["pattern"]);
        for (size, point) in items(&p["sizes"]).iter().zip(items(&curve["points"])) {
            let bytes = number(&size["message_bytes"]) * number(&p["messages"]);
            let rate = |l: &Value| (bytes * number(&l["iterations"])) as f64 / l["seconds"].as_f64().unwrap();
            let best = items(&size["loops"]).iter().map(rate).fold(0.0, f64::max);
            let reported = point["bytes_per_second"].as_f64().unwrap();
            assert!((reported / best - 1.0).abs() < 1e-12, "{}: {reported} {best}", p["pattern"]);
        }
    }
}

/// One round of repeats: the time stands still, so there would be no end of them.
const ARGS: [&str; 10] = [
    "comm",
    "--memory-per-process",
    "16M",
    "--families",
    "ping-pong,ring",
    "--quiet",
    "--time",
    "100m",
    "--repeat",
    "1",
];

#[track_caller]
fn comm(ranks: u64, more: &[&str]) -> Planted {
    let rules: Vec<&str> = MESSAGES.iter().chain(more).copied().collect();
    Planted::launch(ranks, &rules, |launch, scratch| launch.args(ARGS).arg("--out").arg(scratch.join("out")))
}

#[test]
fn loops_of_two_ranks_take_what_the_slower_one_spent() {
    check(&comm(2, &[]));
}

#[test]
fn loops_of_three_ranks_take_what_the_slowest_one_spent() {
    check(&comm(3, &["MPI_Sendrecv@2=350000+1000", "MPI_Waitall@2=900000+1000"]));
}
