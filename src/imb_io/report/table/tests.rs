use super::*;
use crate::frame::records::Outcome;
use crate::frame::report::text::WIDTH;
use crate::imb_io::records::{ImbResult, RowEnd};
use crate::imb_io::report::fixtures;
use crate::imb_io::values::derive;

#[test]
fn golden_tables() {
    for (name, result, derived) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.table"), table(&result, &derived, false));
        insta::assert_snapshot!(format!("{name}.details"), table(&result, &derived, true));
    }
}

#[test]
fn no_line_of_text_is_wider_than_promised_and_none_is_padded() {
    for (name, mut result, _) in fixtures::all() {
        result.setup.machine.mpi_library = "MPICH ".repeat(500);
        result.setup.machine.hosts[0].name = "a-long-host-name".repeat(10);
        result.setup.storage.path = "/a-long-path".repeat(30);
        for line in table(&result, &derive(&result), true).lines() {
            let is_row = line.trim_start().starts_with(|c: char| c == '#' || c.is_ascii_digit());
            assert!(is_row || line.starts_with("IMB-IO = ") || line.chars().count() <= WIDTH, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}

#[test]
fn the_head_says_in_full_what_is_timed() {
    let (_, result, derived) = fixtures::all().swap_remove(0);
    let text = table(&result, &derived, false);
    let timed = text.lines().find(|l| l.starts_with("  timed ")).unwrap();
    assert!(timed.ends_with("Open_Close"), "{timed}");
}

#[test]
fn the_sync_of_aggregate_mode_is_a_thing_of_writes() {
    let mut result = fixtures::complete();
    let shown = |result: &ImbResult| table(result, &derive(result), false).contains("the one sync behind all");
    assert!(shown(&result));
    result.rows.retain(|r| !r.benchmark.contains("Write"));
    assert!(!shown(&result));
}

/// The promise: what is not complete has no number but its size and repetitions.
#[test]
fn a_broken_row_shows_no_number() {
    let mut result = fixtures::failed();
    result.errors.clear();
    for (index, row) in result.rows.iter_mut().enumerate() {
        row.ended = if index % 2 == 0 { RowEnd::Error("rank 1: short".into()) } else { RowEnd::Interrupted };
    }
    let text = table(&result, &derive(&result), true);
    let rows = text.lines().filter(|l| l.contains("ERROR on rank 1: short") || l.contains("INTERRUPTED by a signal"));
    let rows: Vec<&str> = rows.filter(|l| !l.starts_with("***")).collect();
    assert_eq!(rows.len(), result.rows.len());
    for line in rows {
        let numbers = line.split_whitespace().filter(|w| w.parse::<f64>().is_ok());
        assert_eq!(numbers.count(), 2, "{line}");
    }
}

#[test]
fn the_first_columns_are_those_of_the_release() {
    let text = table(&fixtures::complete(), &derive(&fixtures::complete()), false);
    let columns = |line: &str| line.split_whitespace().take_while(|w| *w != "|").collect::<Vec<_>>().join(" ");
    let found: Vec<String> = text.lines().filter(|l| l.trim_start().starts_with('#')).map(columns).collect();
    for expected in [
        "#bytes #repetitions t[usec] Mbytes/sec",
        "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec",
        "#bytes #repetitions t_ovrl[usec] t_pure[usec] t_CPU[usec] overlap[%]",
        "#repetitions t_min[usec] t_max[usec] t_avg[usec]",
    ] {
        assert!(found.iter().any(|f| f == expected), "{found:?}");
    }
}

#[test]
fn the_last_line_is_the_verdict() {
    let last = |result| table(&result, &derive(&result), false).lines().last().unwrap().to_owned();
    let complete = last(fixtures::complete());
    assert!(complete.starts_with("IMB-IO = complete and verified: 21 of 21 rows complete, "), "{complete}");
    assert!(complete.ends_with("0 bytes wrong, took 50.0 s, 1.25 of the 40.0 s announced"), "{complete}");
    let failed = last(fixtures::failed());
    assert!(
        failed.starts_with("IMB-IO = WRONG DATA: 6 of 13 rows complete, 1 failed, 1 interrupted, 5 not reached, "),
        "{failed}"
    );
    assert!(failed.ends_with(", OVERSUBSCRIBED, INTERRUPTED"), "{failed}");
    let mut result = fixtures::complete();
    result.ending.outcome = Outcome::Killed;
    assert!(last(result).ends_with("no end recorded, KILLED"));
}

#[test]
fn an_empty_result_is_still_a_report() {
    let mut result = fixtures::complete();
    result.rows.clear();
    result.setup.rows = 0;
    result.announcement = None;
    result.setup.machine.hosts.clear();
    result.setup.sizes_bytes.clear();
    result.setup.rank_counts.clear();
    let text = table(&result, &derive(&result), true);
    assert!(text.lines().last().unwrap().starts_with("IMB-IO = NOT complete: 0 of 0 rows complete"));
}
