//! What a pattern gets of its time: less after earlier overruns in the releases of the papers, all of it in release 2.1.

use serde_json::Value;

use crate::support::{document, items, Launch, Scratch, SHORT};

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no time: {value}"))
}

fn run(release: &str) -> Value {
    let scratch = Scratch::new();
    let args = ["--release", release, "--partitions", "2", "--backend", "posix", "--space", "300M"];
    Launch::new(2).args(SHORT).args(args).into(&scratch).run().expect(0);
    document(&scratch)
}

/// The debt played again from the records: opening, what each pattern took beyond its time, closing.
fn check(result: &Value, subtracted: bool) -> usize {
    let mut cut = 0;
    for access in ["write", "rewrite", "read"] {
        let mut debt = 0.0_f64;
        for file in items(&result["types"]).iter().filter(|t| t["access"] == access) {
            debt += seconds(&file["open_seconds"]);
            let own = |p: &&Value| p["access"] == access && p["pattern_type"] == file["pattern_type"];
            for p in items(&result["patterns"]).iter().filter(own) {
                let scheduled = seconds(&p["scheduled_seconds"]);
                let left = if subtracted { (scheduled - debt).max(0.25 * scheduled) } else { scheduled };
                let budget = seconds(&p["budget_seconds"]);
                assert!((budget - left).abs() < 1e-9, "{access}, pattern {}: {budget}, not {left}", p["pattern"]);
                cut += usize::from(debt > 0.0 && scheduled > 0.0);
                let used: f64 = p["intervals"].as_object().unwrap().values().map(seconds).sum();
                debt = (debt + used - scheduled).max(0.0);
            }
            debt += seconds(&file["close_seconds"]);
        }
    }
    cut
}

#[test]
fn debt_is_taken_from_later_patterns_but_not_with_release_2_1() {
    assert!(check(&run("1"), true) > 0, "opening alone is a debt");
    assert!(check(&run("2.1"), false) > 0, "opening alone would be a debt");
}
