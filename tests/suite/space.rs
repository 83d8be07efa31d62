//! Runs that the space ends.

use crate::support::{document, items, Launch, Scratch, SHORT};

#[test]
fn patterns_ended_by_space_are_marked_everywhere() {
    let scratch = Scratch::new();
    let run = Launch::new(2).args(SHORT).args(["--space", "120M", "--backend", "posix", "--full"]).into(&scratch).run();
    run.expect(0);
    let result = document(&scratch);
    let by_space = items(&result["patterns"]).iter().filter(|p| p["ended"]["by"] == "space").count();
    assert!(by_space > 5, "{by_space}");
    let warned = items(&result["derived"]["warnings"]).iter().find(|w| w["kind"] == "ended_by_space");
    assert_eq!(warned.expect("a warning")["patterns"], by_space);
    let criteria = items(&result["derived"]["validity"]).iter().flat_map(|v| items(&v["criteria"]));
    let of_space: Vec<_> = criteria.filter(|c| c["text"].as_str().is_some_and(|t| t.contains("space"))).collect();
    assert!(!of_space.is_empty() && of_space.iter().all(|c| c["met"] == false), "{of_space:?}");
    assert!(run.stdout.contains("s ended by its space share"), "{run}");
    let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("NOT MET write of pattern ") && flat.contains(": ended by its share of the space"), "{run}");

    let mut csv = csv::Reader::from_path(scratch.join("out.csv")).unwrap();
    let ended = csv.headers().unwrap().iter().position(|name| name == "ended").unwrap();
    assert_eq!(csv.records().filter(|r| &r.as_ref().unwrap()[ended] == "space").count(), by_space);
    let bytes: u64 = items(&result["patterns"])
        .iter()
        .filter(|p| p["access"] == "write")
        .map(|p| p["moved_bytes"].as_u64().unwrap())
        .sum();
    assert!(bytes <= 120 << 20, "{bytes} bytes of first writes");
}

#[test]
fn a_space_that_is_too_small_is_refused_with_the_bytes_needed() {
    let scratch = Scratch::new();
    let run = Launch::new(2).args(SHORT).args(["--space", "10M"]).into(&scratch).run();
    run.expect(2).says(&["needs", "bytes) of space", "10485760", "--space"]);
    let words: Vec<&str> = run.stderr.split(['(', ' ']).collect();
    let needed: u64 = words.iter().find_map(|w| w.parse().ok().filter(|n| *n > 10 << 20)).expect("the bytes needed");
    // What it asks for suffices.
    let args = ["--space", &needed.to_string(), "--backend", "posix"];
    Launch::new(2).args(SHORT).args(args).into(&scratch).run().expect(0);
}

#[test]
fn more_space_than_there_is_is_refused() {
    let scratch = Scratch::new();
    let run = Launch::new(1).args(SHORT).args(["--space", "9000T"]).into(&scratch).run();
    run.expect(2).says(&["--space requests", "are free", "smaller --space"]);
}
