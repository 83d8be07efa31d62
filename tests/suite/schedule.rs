//! What a pattern gets of its time: less after earlier overruns in the releases of the papers, all of it in release 2.1.

use serde_json::Value;

use crate::support::{document, items, Launch, Scratch, SHORT};

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no time: {value}"))
}

fn run(release: &str, args: &[&str]) -> Value {
    let scratch = Scratch::new();
    // Room for what a page cache takes in the time of a pattern, at up to 20 GB/s.
    let launch = Launch::new(2).args(SHORT).args(["--release", release, "--space", "8G"]).args(args);
    launch.into(&scratch).run().expect(0);
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
    let args = ["--backend", "posix", "--partitions", "2"];
    assert!(check(&run("1", &args), true) > 0, "opening alone is a debt");
    assert!(check(&run("2.1", &args), false) > 0, "opening alone would be a debt");
    assert!(check(&run("1", &[&args[..], &["--strict"]].concat()), false) > 0, "strictly nothing is deducted");
}

/// Short, and with an M_PART that is not that of the machine; by the rules of the release in all else.
#[test]
fn a_run_of_release_2_1_keeps_its_rules() {
    let result = run("2.1", &[]);
    let judged = items(&result["derived"]["validity"]).iter().find(|v| v["release"] == "2.1").unwrap();
    for criterion in items(&judged["criteria"]) {
        let text = criterion["text"].as_str().unwrap();
        let expected = !["scheduled time", "M_PART"].iter().any(|begin| text.starts_with(begin));
        assert_eq!(criterion["met"], expected, "{text}");
    }
    let other = items(&result["derived"]["validity"]).iter().find(|v| v["release"] == "1").unwrap();
    let schedule = items(&other["criteria"]).iter().find(|c| c["text"].as_str().unwrap().starts_with("schedule"));
    assert_eq!(schedule.unwrap()["met"], false);
}
