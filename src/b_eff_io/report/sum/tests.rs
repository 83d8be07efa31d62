use std::collections::BTreeMap;

use super::context::known_rate;
use super::*;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::RecordSelector;
use crate::b_eff_io::values::derive;
use crate::frame::records::AccessMethod;

/// Data that scripts extract from a summary file: cells by (ranks, access, position or 0 for the total), and the value.
#[derive(Debug, Default)]
struct ParsedSummary {
    cells: BTreeMap<(u64, String, u32), Vec<Option<f64>>>,
    chunk_bytes: BTreeMap<(u64, u32), u64>,
    value: Option<f64>,
}

/// Splits at white space, as known scripts do.
fn parse_summary(text: &str) -> ParsedSummary {
    let mut read = ParsedSummary::default();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let numbers = |from: usize| fields[from..].iter().map(|f| f.parse().ok()).collect();
        if line.contains("b_eff_io =") {
            read.value = fields[2].parse().ok();
        } else if let ([ranks, "PEs", _, ..], true) = (fields.as_slice(), fields.len() >= 8) {
            let Ok(ranks) = ranks.parse() else { continue };
            if let Some(access) = fields[2].strip_prefix("total-") {
                read.cells.insert((ranks, access.to_owned(), 0), numbers(3));
            } else {
                let position = fields[2].parse().unwrap();
                read.chunk_bytes.insert((ranks, position), fields[3].parse().unwrap());
                read.cells.insert((ranks, fields[4].to_owned(), position), numbers(5));
            }
        }
    }
    read
}

/// Lines of a summary that release 2.1 itself wrote.
const GENUINE: &str = "Summary of file I/O bandwidth accumulated on   4 processes with  256 MByte/PE
 of PEs     size (l) methode scatter  shared  separate segmened seg-coll
   4 PEs 2     1024 write     59.088    0.011   38.085    4.149    3.860
   4 PEs 8  2097152 write     62.658   80.023   86.121   82.971   84.693
   4 PEs      total-write     58.579   48.697   77.944   77.036   73.113
   4 PEs 2     1024 read     227.183   36.553  677.280  418.002   52.442
b_eff_io of these measurements =  214.516 MB/s on 4 processes with 256 MByte/PE and scheduled time=0.2 min
 b_eff_io =  214.516 MB/s on 4 processes with 256 MByte/PE, scheduled time=0.2 Min, NOT VALID (see above)
";

#[test]
fn the_reader_understands_a_genuine_file() {
    let genuine = parse_summary(GENUINE);
    assert_eq!(genuine.value, Some(214.516));
    assert_eq!(genuine.cells[&(4, "write".into(), 0)][4], Some(73.113));
    assert_eq!(genuine.cells[&(4, "read".into(), 2)][0], Some(227.183));
}

#[test]
fn the_reader_finds_every_number_in_ours() {
    let result = fixtures::complete();
    let derived = derive(&result);
    let text = summary(&result, &derived, "posix");
    let ours = parse_summary(&text);
    assert_eq!(ours.cells.len(), 2 * 3 * 8, "partitions, access methods, rows and total");
    for (&(ranks, ref access, row), cells) in &ours.cells {
        let access = AccessMethod::ALL.into_iter().find(|a| a.name() == access).unwrap();
        let spot = RecordSelector { backend: "posix", ranks, access };
        for (t, cell) in PatternType::ALL.into_iter().zip(cells) {
            let expected = match row {
                0 => spot.type_value(&derived, t).and_then(|v| v.mb_per_second),
                row => layout::classic_pattern(row as usize - 1, t)
                    .and_then(|p| spot.record(&result, p))
                    .and_then(known_rate),
            };
            match (cell, expected) {
                (Some(a), Some(b)) => assert!((a - b).abs() < 0.0006, "{a} {b}"),
                (a, b) => assert_eq!(*a, b, "{ranks} {access:?} {row} {t}"),
            }
        }
    }
    assert_eq!(ours.chunk_bytes[&(4, 7)], result.partitions[1].m_part_bytes);
    let expected = derived.systems.iter().find(|s| s.backend == "posix").unwrap();
    let (value, expected) = (ours.value.unwrap(), expected.values.release_2_1.unwrap());
    assert!((value - expected).abs() < 0.0006);
}

#[test]
fn the_columns_are_those_of_release_2_1() {
    let result = fixtures::complete();
    let text = summary(&result, &derive(&result), "posix");
    for genuine in GENUINE.lines().filter(|l| l.starts_with("   4 PEs ")) {
        let same_width = text.lines().filter(|l| l.contains(" PEs ") && l.len() == genuine.len());
        assert!(same_width.count() > 0, "no line as wide as {genuine:?}");
    }
    assert!(text.contains("   4 PEs 1     1024 read   "));
    assert!(text.contains("   4 PEs      total-rewrite"));
}

#[test]
fn what_stands_beside_the_value_is_no_value_and_no_column() {
    let result = fixtures::complete();
    let text = summary(&result, &derive(&result), "posix");
    let (notes, others): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
    assert!(notes.concat().contains("deletion of its files"), "{notes:?}");
    let (with, without) = (parse_summary(&text), parse_summary(&others.join("\n")));
    assert_eq!((with.value, with.cells, with.chunk_bytes), (without.value, without.cells, without.chunk_bytes));
    assert!(text.trim_end().lines().last().unwrap().starts_with(" b_eff_io ="));
    // Scripts that search for the number anywhere in a line or for the word of the table do not match the remarks.
    assert!(notes.iter().all(|line| !line.contains("b_eff_io") && !line.contains("PEs")), "{notes:?}");
    let nothing = summary(&fixtures::interrupted(), &derive(&fixtures::interrupted()), "posix");
    assert!(!nothing.contains("deletion"), "there is no value");
}

#[test]
fn golden_summaries() {
    let result = fixtures::complete();
    insta::assert_snapshot!("complete.sum", summary(&result, &derive(&result), "posix"));
    let result = fixtures::interrupted();
    let text = summary(&result, &derive(&result), "posix");
    assert!(text.lines().any(|l| l.starts_with("   2 PEs") && l.ends_with("        -        -")));
    insta::assert_snapshot!("interrupted.sum", text);
}
