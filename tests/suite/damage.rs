//! Damage of every kind, at rest and on the way, in every pattern through every backend: what `--verify full` finds and names,
//! and what share of it `--verify sample`. A few of each kind always; the campaign by
//!
//! ```text
//! BEFF_DAMAGES=1000 cargo test --test tests -- --ignored --nocapture damage::campaign
//! ```
//!
//! The program damages one place of each pattern at one moment (`--inject KIND --inject-at MOMENT`), as the seed says, and tells in
//! `injected_faults` of the document where. Found and named is a damage with an element of `corruptions` of its backend, pattern and file
//! that begins inside of it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{document, items, number, Launch, Scratch};

const KINDS: [&str; 6] = ["flip", "zero", "hole", "swap", "stale", "misplaced"];
const MOMENTS: [&str; 6] = ["write", "after-write", "rewrite", "after-rewrite", "read", "after-read"];
const ACCESSES: [&str; 3] = ["write", "rewrite", "read"];
const BACKENDS: [&str; 4] = ["mpiio", "posix", "uring", "mmap"];

/// A run with damage of one kind at one moment.
fn damaged(verify: &str, kind: &str, moment: &str, seed: u64, args: &[&str]) -> Value {
    let scratch = Scratch::new();
    let seed = seed.to_string();
    let own = ["--inject", kind, "--inject-at", moment, "--verify", verify, "--seed", &seed];
    let launch = Launch::new(2).args(["--memory-per-process", "64M", "--space", "400M"]).args(own).args(args);
    let run = launch.into(&scratch).run();
    assert!([0, 3].contains(&run.code()), "{run}");
    let result = document(&scratch);
    assert_eq!(items(&result["errors"]), [] as [Value; 0], "{run}");
    let wrong = !items(&result["corruptions"]).is_empty();
    assert_eq!(run.code(), if wrong { 3 } else { 0 }, "{run}");
    result
}

/// True if the result names this damage, by a check at one of these accesses.
fn is_named(result: &Value, damage: &Value, accesses: &[&str]) -> bool {
    let (begin, bytes) = (number(&damage["offset_bytes"]), number(&damage["bytes"]));
    items(&result["corruptions"]).iter().any(|c| {
        ["backend", "ranks", "pattern", "file"].iter().all(|key| c[*key] == damage[*key])
            && accesses.iter().any(|access| c["access"] == *access)
            && (begin..begin + bytes).contains(&number(&c["offset_bytes"]))
    })
}

/// Damage after a measurement with reads and writes, whichever of the two its place got: found, with the order in the record.
#[test]
fn damage_in_a_mix_is_found_and_named() {
    for (kind, types, backends) in [("flip", "2", "posix,uring"), ("swap", "0", "mpiio")] {
        let args = ["-T", "1s", "--types", types, "--backend", backends, "--mix", "70:30"];
        let result = damaged("full", kind, "mixed", 7, &args);
        let damages = items(&result["injected_faults"]);
        assert!(!damages.is_empty());
        for damage in damages {
            assert!(damage["at"] == "mixed" && is_named(&result, damage, &["rewrite"]), "{kind}: {damage}");
        }
        for found in items(&result["corruptions"]) {
            assert_eq!((&found["order"], &found["mix"]["read_percent"]), (&"random".into(), &70.into()), "{found}");
        }
    }
}

/// What is wrong and nobody did.
fn invented(result: &Value) -> Vec<&Value> {
    let damages = items(&result["injected_faults"]);
    let done = |c: &&Value| !damages.iter().any(|d| d["backend"] == c["backend"] && d["pattern"] == c["pattern"]);
    items(&result["corruptions"]).iter().filter(done).collect()
}

/// What a damage of this kind may look like; of a swap the other place's data.
fn looks_like(kind: &str) -> &'static [&'static str] {
    match kind {
        "flip" => &["one bit flipped"],
        "zero" | "hole" => &["hole (zeros)", "missing"],
        "stale" => &["first write, stale", "unknown data"],
        _ => &["from another location", "data of rank"],
    }
}

/// Damages done, found and named; with the rows of the table.
#[derive(Default)]
struct Tally {
    tried: u64,
    named: u64,
    rows: BTreeMap<(String, String), (u64, u64)>,
    lost: Vec<String>,
}

impl Tally {
    fn take(&mut self, result: &Value, kind: &str, moment: &str) {
        for damage in items(&result["injected_faults"]) {
            let named = is_named(result, damage, &ACCESSES);
            let backend = damage["backend"].as_str().unwrap().to_owned();
            let row = self.rows.entry((format!("{kind} {moment}"), backend)).or_default();
            (row.0, row.1) = (row.0 + 1, row.1 + u64::from(named));
            self.tried += 1;
            self.named += u64::from(named);
            if !named {
                self.lost.push(format!("{kind} {moment}: {damage}"));
            }
        }
        assert_eq!(invented(result), [] as [&Value; 0], "{kind} {moment}");
        let words = looks_like(kind);
        for c in items(&result["corruptions"]) {
            let diagnosis = c["diagnosis"].as_str().unwrap();
            assert!(words.iter().any(|word| diagnosis.contains(word)), "{kind} {moment} looks like {diagnosis}");
        }
    }

    fn show(&self) {
        for ((what, backend), (tried, named)) in &self.rows {
            println!("{what:<24} {backend:<8} {named:>5} of {tried:>5}");
        }
        println!("{:<24} {:<8} {:>5} of {:>5}", "all", "", self.named, self.tried);
    }
}

#[test]
fn every_kind_at_every_moment_is_found_and_named() {
    let mut tally = Tally::default();
    for (n, (kind, moment)) in KINDS.into_iter().zip(MOMENTS).enumerate() {
        let backend = BACKENDS[n % BACKENDS.len()];
        let args = ["-T", "2s", "--types", "0,2", "--backend", backend];
        let result = damaged("full", kind, moment, 7 + n as u64, &args);
        tally.take(&result, kind, moment);
    }
    tally.show();
    assert!(tally.tried >= 60, "{}", tally.tried);
    assert_eq!(tally.lost, [] as [String; 0]);
}

#[test]
fn data_that_is_right_is_not_called_wrong() {
    for (verify, backends) in [("sample", "posix,uring"), ("full", "mpiio,mmap")] {
        let scratch = Scratch::new();
        let args = ["-T", "2s", "--memory-per-process", "64M", "--space", "400M", "--verify", verify];
        Launch::new(3).args(args).args(["--backend", backends]).into(&scratch).run().expect(0);
        let result = document(&scratch);
        for p in items(&result["patterns"]).iter().filter(|p| number(&p["calls"]) > 0) {
            assert_eq!(p["sample"].is_null(), verify == "full", "{p}");
            let in_file = number(&p["sample"]["of_bytes"].as_u64().unwrap_or(1).into());
            if verify == "sample" {
                let read = number(&p["sample"]["bytes"]);
                assert!(read > 0 && read <= in_file && number(&p["sample"]["past_cache_bytes"]) <= read, "{p}");
                assert!(in_file >= number(&p["moved_bytes"]) && p["sample"]["unread_reason"].is_null(), "{p}");
            } else if p["access"] == "read" {
                // All of it, also what later reads took the place of.
                assert_eq!(8 * number(&p["verification"]["words_checked"]), number(&p["moved_bytes"]), "{p}");
            }
        }
    }
}

/// Of flips in first writes, which the rewrite covers, the sample after the write finds its share.
fn sample_finds_its_share(damages: u64) {
    let (mut tried, mut found, mut later, mut expected, mut spread) = (0_u64, 0_u64, 0_u64, 0.0, 0.0);
    let mut seed = 100;
    while tried < damages {
        let args = ["-T", "8s", "--types", "0,2", "--backend", "posix,mpiio"];
        let result = damaged("sample", "flip", "write", seed, &args);
        seed += 1;
        for damage in items(&result["injected_faults"]) {
            let same = |p: &&Value| {
                p["access"] == "write" && p["backend"] == damage["backend"] && p["pattern"] == damage["pattern"]
            };
            let sample = &items(&result["patterns"]).iter().find(same).unwrap()["sample"];
            let share = number(&sample["bytes"]) as f64 / number(&sample["of_bytes"]) as f64;
            // Where the rewrite did not come that far, later checks have their own chance.
            tried += 1;
            found += u64::from(is_named(&result, damage, &["write"]));
            later += u64::from(is_named(&result, damage, &ACCESSES));
            expected += share;
            spread += share * (1.0 - share);
        }
    }
    println!(
        "ring: {found} of {tried} flips of first writes found, {expected:.1} predicted +- {:.1}; {later} in the end",
        spread.sqrt()
    );
    assert!((found as f64 - expected).abs() <= 4.0 * spread.sqrt() + 1.0, "{found} of {tried}, {expected} +- {spread}");
}

#[test]
fn a_sample_finds_its_share_of_first_writes() {
    sample_finds_its_share(30);
}

#[test]
#[ignore = "minutes; with BEFF_DAMAGES=1000 the campaign of the documents"]
fn campaign() {
    let wanted = std::env::var("BEFF_DAMAGES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let mut tally = Tally::default();
    let mut seed = 0;
    // Each round has every kind at every moment; after four each of them through each backend.
    while tally.tried < wanted {
        for (n, kind) in KINDS.into_iter().enumerate() {
            for (m, moment) in MOMENTS.into_iter().enumerate() {
                let backend = BACKENDS[(n + m + seed / 36) % BACKENDS.len()];
                let args = ["-T", "1s", "--backend", backend];
                tally.take(&damaged("full", kind, moment, seed as u64, &args), kind, moment);
                seed += 1;
            }
        }
    }
    tally.show();
    sample_finds_its_share(wanted / 5);
    assert_eq!(tally.lost, [] as [String; 0]);
}
