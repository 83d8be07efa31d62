use std::io;

use serde::Serialize;

use super::*;
use crate::frame::records::Record;
use crate::frame::report::comparison::{markdown, text, Side, View};
use crate::frame::report::html;
use crate::frame::report::picture::Words;
use crate::frame::report::{Shown, Views};
use crate::frame::values::comparable::Comparable;
use crate::frame::values::compare::{compare, gate};

/// What `report` prints of one result beside its tables, by the word of the format. A picture is of all files together and has
/// no view of one.
pub(super) fn views(benchmark: &Benchmark, report: &dyn Report) -> Vec<(&'static str, io::Result<Vec<u8>>)> {
    let words = ["json", "csv"].into_iter().chain(benchmark.formats.iter().map(|format| format.word));
    let drawn = || html::together(&report.points(), Words { title: "title", x: "x", y: "y" });
    let view = |word| match word {
        "svg" => drawn().map(String::into_bytes).ok_or_else(|| io::Error::other("there is nothing to draw")),
        _ => report.format(word).unwrap(),
    };
    let compared = ("compare", Ok(compared(benchmark, report).into_bytes()));
    words.map(|word| (word, view(word))).chain([compared]).collect()
}

/// What `compare` makes of a result and itself without its facts, so that all of them differ, in every form.
fn compared(benchmark: &Benchmark, report: &dyn Report) -> String {
    let runs = [report.comparable()];
    let without = [Comparable { facts: Vec::new(), ..runs[0].clone() }];
    let (files, troubles) = (vec![runs[0].identity.clone()], runs[0].troubles.clone());
    let side = Side { name: "A".into(), files, troubles };
    let comparison = compare([&runs, &without], None, 1);
    let gate = gate(&comparison, 0.95);
    let sides = [&side, &side];
    let view = View { title: benchmark.title, sides, comparison: &comparison, gate: Some(&gate), full: true };
    text(&view) + &markdown(&view)
}

fn journal_of<L: Serialize>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| [serde_json::to_vec(line).unwrap(), vec![b'\n']].concat()).collect()
}

/// Journal and document are recognised as results of `name`, and hold all of `result`.
fn both_are_recognised<R>(name: &str, result: R, lines: &[R::Line])
where
    R: Views + std::fmt::Debug,
    R::Derived: std::fmt::Debug,
{
    let shown = Shown::new(result);
    let document = shown.format("json").unwrap().unwrap();
    for bytes in [&document, &journal_of(lines)] {
        let (benchmark, report) = load(bytes).unwrap();
        assert_eq!(benchmark.name, name);
        assert_eq!(report.format("json").unwrap().unwrap(), document);
    }
}

#[test]
fn every_benchmark_is_recognised() {
    let io = b_eff_io::report::fixtures::complete();
    both_are_recognised("b_eff_io", io.clone(), &b_eff_io::report::fixtures::journal_lines(&io));
    let comm = b_eff::report::fixtures::complete();
    both_are_recognised("b_eff", comm.clone(), &b_eff::report::fixtures::journal_lines(&comm));
    let imb = imb_io::report::fixtures::complete();
    both_are_recognised("imb_io", imb.clone(), &imb_io::report::fixtures::journal_lines(&imb));
    let replay = replay::report::fixtures::complete();
    both_are_recognised("replay", replay.clone(), &replay::report::fixtures::journal_lines(&replay));
    assert!(load(b"backend,ranks\n").unwrap_err().to_string().contains("not a whole JSON document"));
}

#[test]
fn results_of_other_benchmarks_are_refused_by_name() {
    for bytes in [
        br#"{"record":"start","schema_version":1,"benchmark":"b_new"}"#.as_slice(),
        br#"{"program":"beff-raw","schema_version":1,"benchmark":"b_new"}"#,
    ] {
        let message = load(bytes).unwrap_err().to_string();
        assert!(message.contains("b_new") && message.contains("b_eff_io, b_eff, imb_io and replay"), "{message}");
    }
}

#[test]
fn journals_of_another_benchmark_are_refused_by_name() {
    let comm = journal_of(&b_eff::report::fixtures::journal_lines(&b_eff::report::fixtures::complete()));
    let message = journal::read::<imb_io::records::ImbResult>(&comm).unwrap_err().to_string();
    assert!(message.contains("one of b_eff, not of imb_io"), "{message}");
    let message = journal::read::<b_eff_io::records::RunResult>(&comm).unwrap_err().to_string();
    assert!(message.contains("one of b_eff, not of b_eff_io"), "{message}");
    // Those of the first benchmark name none: the rest of the line does not fit.
    let io = journal_of(&[b_eff_io::report::fixtures::complete().start_line()]);
    let message = journal::read::<b_eff::records::CommResult>(&io).unwrap_err().to_string();
    assert!(message.contains("line 1 is not the start"), "{message}");
}

#[test]
fn documents_of_another_benchmark_are_refused_by_name() {
    let document = Shown::new(b_eff::report::fixtures::complete()).format("json").unwrap().unwrap();
    let refused = json::parse_as::<imb_io::records::ImbResult>(&document, imb_io::records::ImbResult::SCHEMA);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("a result of b_eff, not of imb_io"), "{message}");
}

/// Names, commands and formats tell benchmarks apart.
#[test]
fn the_table_has_no_name_twice() {
    let mut names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
    names.extend(crate::cli::commands().map(|command| command.name));
    names.extend(formats().map(|format| format.word));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    // The columns of IMB-IO go by the name of its command, and a replay by its own.
    assert_eq!(names.len(), all - 2, "{names:?}");
}
