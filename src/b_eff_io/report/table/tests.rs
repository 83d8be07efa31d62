use super::*;
use crate::b_eff_io::config::{Release, RepeatPolicy};
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::values::derive;
use crate::frame::report::text::WIDTH;
use crate::frame::values::NULL_BACKEND;

/// Lines before the first table.
const HEADER_LINES: usize = 14;

#[test]
fn golden_tables() {
    for (name, result, derived) in fixtures::all() {
        let short = table(&result, &derived, false);
        let long = table(&result, &derived, true);
        insta::assert_snapshot!(format!("{name}.table"), short);
        insta::assert_snapshot!(format!("{name}.details"), long);
    }
}

#[test]
fn no_line_is_wider_than_promised_and_none_is_padded() {
    for (name, mut result, derived) in fixtures::all() {
        result.manifest.storage.mount_options = "lowerdir=/very/long/path".repeat(30);
        result.manifest.machine.mpi_library = "MPICH ".repeat(500);
        result.config.backends.push("a-long-backend".to_owned());
        for line in table(&result, &derived, true).lines() {
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}

#[test]
fn the_header_is_short_however_much_there_is_to_say() {
    let mut result = fixtures::ladder();
    result.manifest.machine.mpi_library =
        "MPICH Version: 4.0.2 MPICH Release date: Thu ".to_owned() + &"-O2 ".repeat(900);
    result.manifest.machine.environment = vec![("ROMIO_HINTS".into(), "/a/long/path ".repeat(40))];
    result.manifest.machine.hosts.iter_mut().enumerate().for_each(|(i, host)| host.cores += i as u64);
    result.manifest.storage.path = "/a/long/path".repeat(40);
    result.config.termination = crate::b_eff_io::config::Termination::PerCall;
    let text = table(&result, &derive(&result), false);
    let header: Vec<&str> = text.lines().take_while(|line| !line.starts_with("---")).collect();
    // The empty line and the title of the first table are among them.
    assert!(header.len() - 2 <= HEADER_LINES, "{header:#?}");
    assert!(text.contains("MPICH 4.0.2 (standard 4.0)"));
}

#[test]
fn a_run_without_its_end_says_so_first_and_last() {
    let result = fixtures::interrupted();
    let text = table(&result, &derive(&result), false);
    assert!(text.lines().next().unwrap().contains("INTERRUPTED"));
    assert!(text.lines().last().unwrap().contains("INTERRUPTED"));
    let result = fixtures::failed();
    let text = table(&result, &derive(&result), false);
    assert!(text.lines().next().unwrap().contains("FAILED"));
    assert!(text.contains("DATA CORRUPTION"));
    assert!(text.lines().last().unwrap().contains("FAILED"));
    assert!(text.lines().last().unwrap().contains("DATA CORRUPTION"));
}

#[test]
fn the_last_lines_are_the_results() {
    let result = fixtures::complete();
    let derived = derive(&result);
    let text = table(&result, &derived, true);
    let mut last: Vec<&str> = text.lines().rev().take(2).collect();
    last.reverse();
    for (line, (backend, system)) in last.iter().zip(result.config.backends.iter().zip(&derived.systems)) {
        let value = system.values.release_1.unwrap();
        let expected = format!("b_eff_io (release 1) = {value:.3} MB/s on 4 ranks, {backend}, ");
        assert!(line.starts_with(&expected), "{line}");
    }
    assert!(last[0].ends_with("mpiio, VALID"), "{last:?}");
    assert!(last[1].ends_with("posix, NOT VALID (1 criterion not reached)"), "{last:?}");
    let found = text.lines().filter(|line| line.starts_with("b_eff_io (")).count();
    assert_eq!(found, 2, "one line for each backend, for grep");
}

#[test]
fn a_value_of_release_2_1_is_not_that_of_its_program() {
    let said = |result: &RunResult| table(result, &derive(result), false).matches("deletion of its files").count();
    assert_eq!(said(&fixtures::complete()), 2, "beside the values of each backend");
    assert_eq!(said(&fixtures::interrupted()), 0);
}

#[test]
fn moving_nothing_is_no_result() {
    let result = fixtures::ladder();
    let derived = derive(&result);
    let text = table(&result, &derived, false);
    let side_by_side: Vec<&str> = text.lines().filter(|line| line.contains("weighted avg.")).collect();
    assert_eq!(side_by_side.len(), 3);
    assert!(!text.contains("null on 2 ranks: MB/s") && !text.contains("Values of null"));
    assert!(text.contains("Cost of the program itself"));
    assert!(!text.lines().any(|line| line.starts_with("b_eff_io (") && line.contains("null")));

    let mut alone = result.clone();
    alone.config.backends = vec![NULL_BACKEND.to_owned()];
    alone.config.release = Release::R2_1;
    let text = table(&alone, &derive(&alone), false);
    assert!(text.lines().last().unwrap().contains("no b_eff_io"));
    assert!(!text.contains("b_eff_io (release"));
}

#[test]
fn criteria_of_all_releases_are_told_once() {
    let result = fixtures::complete();
    let text = table(&result, &derive(&result), false);
    let of_mpiio = text.split("Validity of mpiio").nth(1).unwrap().split("Validity of posix").next().unwrap();
    assert_eq!(of_mpiio.matches("run complete").count(), 1);
    assert_eq!(of_mpiio.matches("scheduled time").count() + of_mpiio.matches("too short").count(), 3);
}

#[test]
fn an_empty_result_is_still_a_report() {
    let mut result = fixtures::complete();
    result.patterns.clear();
    result.types.clear();
    result.partitions.clear();
    result.manifest.machine.hosts.clear();
    let derived = derive(&result);
    assert!(table(&result, &derived, true).contains("nothing was measured"));
}

/// Where only long calls were measured again the others have rounds: they are not told as unknown, and no value has an interval.
#[test]
fn repeats_for_ratios_say_nothing_of_the_other_patterns() {
    let mut result = fixtures::repeated();
    for (policy, told) in [(RepeatPolicy::Auto, true), (RepeatPolicy::Rounds, false)] {
        result.config.repeat = policy;
        let derived = derive(&result);
        let text = table(&result, &derived, true);
        for part in ["measured less than three times", "in the time left of T (values are"] {
            assert_eq!(text.contains(part), told, "{policy:?}: {part}");
        }
        assert!(text.contains("95 % intervals of patterns"), "{policy:?}");
        assert_eq!(derived.intervals.types.is_empty() && derived.intervals.values.is_empty(), !told, "{policy:?}");
    }
}
