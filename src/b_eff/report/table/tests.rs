use super::*;
use crate::b_eff::cli::CommArgs;
use crate::b_eff::plan::Buffers;
use crate::b_eff::report::fixtures;
use crate::b_eff::values::{derive, kinds};
use crate::frame::benchmark::has_option;
use crate::frame::records::Outcome;
use crate::frame::report::text::WIDTH;

#[test]
fn golden_tables() {
    for (name, result, derived) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.table"), table(&result, &derived, false));
    }
    // Every pattern looks the same in the details: one of each family is enough.
    let mut result = fixtures::complete();
    result.patterns.retain(|p| ["ping-pong", "ring-1", "random-30"].contains(&p.pattern.as_str()));
    insta::assert_snapshot!("few.details", table(&result, &derive(&result), true));
}

#[test]
fn no_line_is_wider_than_promised_and_none_is_padded() {
    for (name, mut result, _) in fixtures::all() {
        result.setup.machine.mpi_library = "MPICH ".repeat(500);
        result.setup.transport.loaded = vec!["a-long-component-name".into(); 50];
        result.setup.machine.hosts[0].name = "a-long-host-name".repeat(10);
        for pattern in &mut result.patterns {
            pattern.shape = "17x2+13x3 in rings".repeat(7);
        }
        for line in table(&result, &derive(&result), true).lines().filter(|l| !l.starts_with("b_eff = ")) {
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
        }
    }
}

#[test]
fn very_fast_and_very_slow_machines_fit_into_the_columns() {
    for factor in [1e-7, 1e7] {
        let mut result = fixtures::complete();
        for one in result.patterns.iter_mut().flat_map(|p| &mut p.sizes).flat_map(|s| &mut s.loops) {
            one.seconds *= factor;
        }
        for line in table(&result, &derive(&result), true).lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}

#[test]
fn the_last_line_is_the_result() {
    let last = |result| table(&result, &derive(&result), false).lines().last().unwrap().to_owned();
    let result = fixtures::complete();
    let value = derive(&result).value.b_eff.unwrap();
    let (all, each) = (value.bytes_per_second / 1e6, value.per_process_bytes_per_second / 1e6);
    let expected =
        format!("b_eff = {all:.3} MB/s = {each:.3} MB/s per process on 4 processes, Lmax 4 MiB, from memory, VALID");
    assert_eq!(last(result), expected);
    let expected =
        "b_eff = not measured on 2 processes, Lmax 4 MiB, from memory, NOT VALID (2 criteria not reached), INTERRUPTED";
    assert_eq!(last(fixtures::interrupted()), expected);
    let failed = last(fixtures::failed());
    assert!(failed.starts_with("b_eff = ") && failed.contains(" MB/s per process on 4 processes, "), "{failed}");
    assert!(failed.ends_with(", QUICK, OVERSUBSCRIBED, FAILED, DATA CORRUPTION"), "{failed}");
}

#[test]
fn a_run_without_its_end_says_so_first() {
    for (result, word) in [(fixtures::interrupted(), "INTERRUPTED"), (fixtures::failed(), "FAILED")] {
        let text = table(&result, &derive(&result), false);
        assert!(text.lines().next().unwrap().contains(word));
    }
    let mut result = fixtures::complete();
    result.ending.outcome = Outcome::Killed;
    assert!(table(&result, &derive(&result), false).contains("no end recorded"));
}

#[test]
fn an_empty_result_is_still_a_report() {
    let mut result = fixtures::complete();
    result.patterns.clear();
    result.announcement = None;
    result.setup.machine.hosts.clear();
    result.setup.placement.clear();
    result.setup.sizes_bytes.clear();
    let text = table(&result, &derive(&result), true);
    assert!(text.lines().last().unwrap().starts_with("b_eff = not measured on 4 processes"));
}

/// A report that names an option that does not exist sends its reader nowhere.
#[test]
fn every_option_in_a_report_exists() {
    let known = |name: &str| {
        let name = name.trim_start_matches('-');
        ["bind-to", "map-by"].contains(&name) || has_option::<CommArgs>(name)
    };
    let texts = kinds::KINDS.iter().map(|kind| kind.next_step.to_owned());
    let page = fixtures::all().into_iter().map(|(_, result, derived)| table(&result, &derived, true));
    for text in page.chain(texts) {
        for word in text.split_whitespace().filter(|w| w.starts_with("--") && !w.trim_matches('-').is_empty()) {
            let name = word.trim_end_matches(|c: char| !c.is_ascii_lowercase());
            assert!(known(name), "{name}");
        }
    }
}

/// A line beside other systems says what it is.
#[test]
fn the_comparison_says_when_there_is_none() {
    let said = |result: &CommResult| {
        let text = table(result, &derive(result), false);
        let row = text.lines().find(|line| line.trim_start().starts_with("this run")).unwrap().to_owned();
        (row, text.matches("NOT COMPARABLE").count())
    };
    let mut result = fixtures::complete();
    let (row, warned) = said(&result);
    assert!(row.contains("this run   ") && warned == 0, "{row}");
    result.config.buffers = Buffers::Reused;
    let (row, warned) = said(&result);
    assert!(row.contains("this run, reused, NOT VALID ") && warned == 2, "{row}");
    let (row, warned) = said(&fixtures::interrupted());
    assert!(row.contains("this run, NOT VALID ") && warned == 1, "{row}");
}
