//! A short run: what rests on few calls or few bytes is marked everywhere, and shows no digits it does not have.

use std::fs;

use serde_json::Value;

use crate::support::{document, items, number, Launch, Scratch};

/// Patterns of the rows of the table by their place in the type: 1 kB to M_PART.
const ROWS: [u64; 7] = [4, 6, 3, 5, 2, 7, 1];
const CHUNKS: [&str; 7] = ["1 kB ", "1 kB+8 ", "32 kB ", "32 kB+8 ", "1 MB ", "1 MB+8 ", "M_PART "];

fn pattern_of(row: usize, pattern_type: usize) -> u64 {
    // Type 0 has one pattern more, in the third place.
    let more = u64::from(pattern_type == 0 && ROWS[row] > 1);
    [0, 9, 17, 25, 34][pattern_type] + ROWS[row] + more
}

fn is_few(p: &Value) -> bool {
    number(&p["calls"]) < 10 || number(&p["moved_bytes"]) < 1 << 20
}

/// Digits of a printed number: zeros before the first are none, zeros before the point stand for what is not known.
fn digits(text: &str) -> usize {
    let shown = text.replace('.', "");
    let shown = shown.trim_start_matches('0');
    if text.contains('.') {
        shown.len()
    } else {
        shown.trim_end_matches('0').len()
    }
}

/// The cells of the table in order: access method, row, type, number, marks.
fn cells(table: &str) -> Vec<(&'static str, usize, usize, String, String)> {
    let mut found = Vec::new();
    for access in ["write", "rewrite", "read"] {
        let start = |line: &&str| line.trim_start().strip_prefix(access).is_some_and(|rest| rest.contains(" 1 kB "));
        let lines: Vec<&str> = table.lines().skip_while(|line| !start(line)).take(ROWS.len()).collect();
        assert_eq!(lines.len(), ROWS.len(), "{access}");
        for (row, line) in lines.iter().enumerate() {
            let (_, cells) = line.split_once(CHUNKS[row]).unwrap_or_else(|| panic!("no {} in {line}", CHUNKS[row]));
            let mut shown: Vec<(String, String)> = Vec::new();
            for word in cells.split_whitespace() {
                match shown.last_mut() {
                    Some((_, marks)) if word.starts_with(char::is_alphabetic) => word.clone_into(marks),
                    _ => shown.push((word.to_owned(), String::new())),
                }
            }
            assert_eq!(shown.len(), 5, "{line}");
            found.extend(shown.into_iter().enumerate().map(|(at, (number, marks))| (access, row, at, number, marks)));
        }
    }
    found
}

#[test]
fn cells_of_few_calls_are_marked_everywhere() {
    let scratch = Scratch::new();
    // M_PART of 8 MiB: some patterns make one call, some thousands.
    let args = ["-T", "15s", "--memory-per-process", "1G", "--space", "2G", "--backend", "posix"];
    let run = Launch::new(2).args(args).arg("--full").into(&scratch).run();
    run.expect(0);
    let result = document(&scratch);
    let records = items(&result["patterns"]);
    let few = records.iter().filter(|p| is_few(p) && number(&p["time_units"]) > 0).count();
    assert!(few > 0, "a short run has patterns of few calls");

    let values = items(&result["derived"]["patterns"]);
    let mut csv = csv::Reader::from_path(scratch.join("out.csv")).unwrap();
    let marks = csv.headers().unwrap().iter().position(|name| name == "marks").unwrap();
    let rows: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
    assert_eq!((values.len(), rows.len()), (records.len(), records.len()));
    for ((p, value), row) in records.iter().zip(values).zip(&rows) {
        let moved = number(&p["moved_bytes"]) > 0;
        assert_eq!(value["few_calls"], is_few(p) && moved, "{value}");
        assert!(!is_few(p) || value["significant_digits"] == 2, "{value}");
        assert_eq!(row[marks].contains('n'), is_few(p) && moved, "{row:?}");
    }
    let warned = items(&result["derived"]["warnings"]).iter().find(|w| w["kind"] == "few_calls").expect("a warning");
    assert_eq!(warned["patterns"], few);

    for (access, row, pattern_type, shown, marks) in cells(&run.stdout) {
        let pattern = pattern_of(row, pattern_type);
        let at = records.iter().position(|p| p["access"] == access && p["pattern"] == pattern).expect("a record");
        let what = format!("{access}, pattern {pattern}: {shown} {marks} of {} calls", records[at]["calls"]);
        assert_eq!(marks.contains('n'), is_few(&records[at]), "{what}");
        assert!(digits(&shown) as u64 <= number(&values[at]["significant_digits"]), "{what}");
        let (value, exact) = (shown.parse::<f64>().unwrap(), values[at]["mb_per_second"].as_f64().unwrap());
        assert!((value - exact).abs() <= 0.06 * exact + 0.05, "{what}, {exact}");
    }
    let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("n fewer than 10 calls of a rank, or less than 1 MiB"), "{run}");
    check_summary(&fs::read_to_string(scratch.join("out.sum")).unwrap(), records);
}

/// The summary has no marks: it lists them, and rounds.
fn check_summary(text: &str, records: &[Value]) {
    for access in ["write", "rewrite", "read"] {
        let expected: Vec<String> = records
            .iter()
            .filter(|p| p["access"] == access && is_few(p) && number(&p["time_units"]) > 0)
            .map(|p| p["pattern"].to_string())
            .collect();
        let list = text.lines().find_map(|line| line.strip_prefix(&format!("#   {access}: patterns ")));
        assert_eq!(list.unwrap_or_default(), expected.join(", "), "{access}");
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        for words in rows.filter(|words| words.len() == 10 && words[1] == "PEs" && words[4] == access) {
            let row = words[2].parse::<usize>().unwrap() - 1;
            for (pattern_type, cell) in words[5..].iter().enumerate() {
                let pattern = pattern_of(row, pattern_type);
                if expected.contains(&pattern.to_string()) {
                    assert!(
                        digits(cell.trim_end_matches('0').trim_end_matches('.')) <= 2,
                        "{access} {pattern}: {cell}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_single_call_that_each_rank_makes_for_itself_is_not_decided_on() {
    let scratch = Scratch::new();
    let args = ["-T", "1s", "--memory-per-process", "1M", "--space", "256M", "--backend", "mpiio,posix", "--quiet"];
    Launch::new(3).args(args).into(&scratch).run().expect(0);
    let result = document(&scratch);
    let mut seen = [0, 0];
    for p in items(&result["patterns"]).iter().filter(|p| number(&p["moved_bytes"]) > 0) {
        let (held_up, parts) = (p["imbalance_seconds"].as_f64().expect("a number"), &p["intervals"]);
        // Never more than the waiting of the rank that is recorded, which is a slowest one.
        let decide = parts["decide_seconds"].as_f64().unwrap();
        assert!(held_up >= 0.0 && held_up <= decide + 1e-9, "{held_up} of {decide}: {p}");
        // A warm-up call of 1 MB is the only one of its pattern, whatever the time.
        if number(&p["time_units"]) > 0 || ![0, 9, 17, 25, 34].contains(&number(&p["pattern"])) {
            continue;
        }
        // In collective calls, and where chunks of several ranks lie between each other.
        let of_all = if p["backend"] == "mpiio" { [0, 1, 4].as_slice() } else { &[0, 1] };
        let synchronizes = of_all.contains(&number(&p["pattern_type"]));
        assert_eq!(number(&p["decisions"]) > 0, synchronizes, "{p}");
        seen[usize::from(synchronizes)] += 1;
    }
    assert_eq!(seen, [15, 15]);
}
