use super::*;
use crate::frame::records::Outcome;
use crate::frame::report::text::WIDTH;
use crate::replay::report::fixtures;
use crate::replay::values::derive;

#[test]
fn golden_tables() {
    for (name, result, derived) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.table"), table(&result, &derived, false));
    }
    let (_, result, derived) = fixtures::all().swap_remove(0);
    insta::assert_snapshot!("complete.details", table(&result, &derived, true));
}

#[test]
fn text_is_no_wider_than_promised_and_nothing_of_the_profile_is_a_command() {
    for (name, mut result, _) in fixtures::all() {
        result.setup.profile.command = vec!["./app\u{1b}[31m".repeat(40)];
        result.setup.profile.library = "MPICH \u{7}".repeat(100);
        for line in table(&result, &derive(&result), true).lines() {
            assert!(line.starts_with("replay = ") || line.chars().count() <= WIDTH, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}");
            assert!(!line.chars().any(char::is_control), "{name}: {line:?}");
        }
    }
}

#[test]
fn more_is_shown_where_more_is_asked() {
    let mut result = fixtures::complete();
    let mut shown = |detail| {
        result.config.detail = detail;
        let text = table(&result, &derive(&result), false);
        ["By file", "By class", "By process"].map(|title| text.contains(title))
    };
    assert_eq!(shown(Detail::Run), [false, false, false]);
    assert_eq!(shown(Detail::File), [true, false, false]);
    assert_eq!(shown(Detail::Function), [true, true, false]);
    assert_eq!(shown(Detail::Process), [true, true, true]);
}

#[test]
fn the_last_line_is_the_verdict() {
    let last = |result| table(&result, &derive(&result), false).lines().last().unwrap().to_owned();
    let complete = last(fixtures::complete());
    assert!(
        complete.starts_with("replay = complete, as recorded: 1 of 1 pass complete, mpiio 1.250 of recorded"),
        "{complete}"
    );
    assert!(last(fixtures::failed()).starts_with("replay = WRONG DATA: 1 of 2 passes complete"));
    let mut killed = fixtures::complete();
    killed.ending.outcome = Outcome::Killed;
    assert!(last(killed).ends_with("no end recorded, KILLED"));
}

#[test]
fn an_empty_result_is_still_a_report() {
    let mut result = fixtures::complete();
    result.passes.clear();
    result.classes.clear();
    result.processes.clear();
    result.setup.machine.hosts.clear();
    result.setup.profile.files.clear();
    assert!(table(&result, &derive(&result), true)
        .lines()
        .last()
        .unwrap()
        .starts_with("replay = NOT complete: 0 of 1 pass"));
}
