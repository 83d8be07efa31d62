//! Several backends take turns within each pattern, and every call can be timed.

use crate::support::{document, items, number, Launch, Scratch};

/// Long enough for several rounds of every timed pattern of type 2.
const RUN: [&str; 14] = [
    "--backend",
    "posix,uring,null",
    "-T",
    "6s",
    "--types",
    "2",
    "--rounds",
    "3",
    "--latency",
    "--memory-per-process",
    "64M",
    "--space=1G",
    // Edges of sectors would be operations of their own.
    "--direct",
    "off",
];

#[test]
fn rounds_add_up_and_every_call_is_timed() {
    let scratch = Scratch::new();
    Launch::new(2).args(RUN).args(["--verify", "full"]).into(&scratch).run().expect(0);
    let result = document(&scratch);
    assert!(result["harness"]["latency_record_ns"].as_f64().unwrap() > 0.0);
    let mut most = 0;
    for p in items(&result["patterns"]) {
        let what = format!("{} {} pattern {}", p["backend"], p["access"], p["pattern"]);
        let rounds = items(&p["rounds"]);
        most = most.max(rounds.len());
        let sum = |key: &str| rounds.iter().map(|r| number(&r[key])).sum::<u64>();
        assert_eq!(sum("calls"), number(&p["calls"]), "{what}");
        assert_eq!(sum("moved_bytes"), number(&p["moved_bytes"]), "{what}");
        let seconds: f64 = rounds.iter().map(|r| r["seconds"].as_f64().unwrap()).sum();
        let parts = p["intervals"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).sum::<f64>();
        let numbers: Vec<u64> = rounds.iter().map(|r| number(&r["number"])).collect();
        assert!(
            numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|n| (1..=3).contains(n)),
            "{what}: {numbers:?}"
        );
        assert!((seconds - parts).abs() < 1e-6 + 1e-6 * parts, "{what}: {seconds} s in rounds, {parts} s in intervals");
        assert_eq!(p["allocations_in_clock"], 0, "{what}");
        assert_eq!(p["verification"]["words_wrong"], 0, "{what}");
        // One rank's calls each; type 2 has one chunk in a call, so a call is one operation too.
        assert_eq!(number(&p["latency"]["count"]), 2 * number(&p["calls"]), "{what}");
        assert!(number(&p["latency"]["p50_ns"]) <= number(&p["latency"]["max_ns"]), "{what}");
    }
    assert_eq!(most, 3, "patterns are divided as asked");
}
