use std::io;

use serde::Serialize;

use super::*;
use crate::frame::records::JournaledResult;
use crate::frame::report::comparison::{markdown, text, ComparisonSide, ComparisonView};
use crate::frame::report::html;
use crate::frame::report::picture::PictureLabels;
use crate::frame::report::{ResultReport, Views};
use crate::frame::values::comparable::ComparableRun;
use crate::frame::values::compare::compare;
use crate::frame::values::gate::gate;

/// Output of `report` for one result besides its tables, by format. A picture is drawn of all files together, so one result has no view
/// of it.
pub(super) fn views(
    benchmark: &BenchmarkModule,
    report: &dyn LoadedReport,
) -> Vec<(&'static str, io::Result<Vec<u8>>)> {
    let words = ["json", "csv"].into_iter().chain(benchmark.formats.iter().map(|format| format.name));
    let drawn = || html::ranks_svg(&report.points(), PictureLabels { title: "title", x: "x", y: "y" });
    let view = |word| match word {
        "svg" => drawn().map(String::into_bytes).ok_or_else(|| io::Error::other("there is nothing to draw")),
        _ => report.format(word).unwrap(),
    };
    let compared = ("compare", Ok(comparison_text(benchmark, report).into_bytes()));
    words.map(|word| (word, view(word))).chain([compared]).collect()
}

/// Output of `compare` for a result and itself without its facts, so that all of them differ, in every form.
fn comparison_text(benchmark: &BenchmarkModule, report: &dyn LoadedReport) -> String {
    let runs = [report.comparable()];
    let without = [ComparableRun { facts: Vec::new(), ..runs[0].clone() }];
    let (files, troubles) = (vec![runs[0].identity.clone()], runs[0].troubles.clone());
    let side = ComparisonSide { name: "A".into(), files, troubles };
    let comparison = compare([&runs, &without], None, 1);
    let gate = gate(&comparison, 0.95);
    let sides = [&side, &side];
    let view = ComparisonView { title: benchmark.title, sides, comparison: &comparison, gate: Some(&gate), full: true };
    text(&view) + &markdown(&view)
}

fn journal_of<L: Serialize>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| [serde_json::to_vec(line).unwrap(), vec![b'\n']].concat()).collect()
}

/// Journal and document are recognized as results of `name`, and contain all of `result`.
fn both_are_recognised<R>(name: &str, result: R, lines: &[R::JournalLine])
where
    R: Views + std::fmt::Debug,
    R::Derived: std::fmt::Debug,
{
    let shown = ResultReport::new(result);
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
    let tune = tune::report::fixtures::recommended();
    both_are_recognised("tune", tune.clone(), &tune::report::fixtures::journal_lines(&tune));
    assert!(load(b"backend,ranks\n").unwrap_err().to_string().contains("not a complete JSON document"));
}

#[test]
fn results_of_other_benchmarks_are_refused_by_name() {
    for bytes in [
        br#"{"record":"start","schema_version":1,"benchmark":"b_new"}"#.as_slice(),
        br#"{"program":"beff-raw","schema_version":1,"benchmark":"b_new"}"#,
    ] {
        let message = load(bytes).unwrap_err().to_string();
        assert!(message.contains("b_new") && message.contains("b_eff_io, b_eff, imb_io, replay and tune"), "{message}");
    }
}

#[test]
fn journals_of_another_benchmark_are_refused_by_name() {
    let comm = journal_of(&b_eff::report::fixtures::journal_lines(&b_eff::report::fixtures::complete()));
    let message = journal::read_journal::<imb_io::records::ImbResult>(&comm).unwrap_err().to_string();
    assert!(message.contains("one of b_eff, not of imb_io"), "{message}");
    let message = journal::read_journal::<b_eff_io::records::RunResult>(&comm).unwrap_err().to_string();
    assert!(message.contains("one of b_eff, not of b_eff_io"), "{message}");
    // Journals of the first benchmark name none: the rest of the line does not fit.
    let io = journal_of(&[b_eff_io::report::fixtures::complete().start_line()]);
    let message = journal::read_journal::<b_eff::records::CommResult>(&io).unwrap_err().to_string();
    assert!(message.contains("line 1 is not the start"), "{message}");
}

#[test]
fn documents_of_another_benchmark_are_refused_by_name() {
    let document = ResultReport::new(b_eff::report::fixtures::complete()).format("json").unwrap().unwrap();
    let refused = json::parse_result::<imb_io::records::ImbResult>(&document, imb_io::records::ImbResult::SCHEMA);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("a result of b_eff, not of imb_io"), "{message}");
}

/// Names, commands and formats identify benchmarks.
#[test]
fn the_table_has_no_name_twice() {
    let mut names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
    names.extend(crate::cli::commands().map(|command| command.name));
    names.extend(formats().map(|format| format.name));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    // IMB-IO, replay and tune each have one name twice: a format and two benchmarks are named like their commands.
    assert_eq!(names.len(), all - 3, "{names:?}");
}

/// All values below a value; derived values and the schema version are left out, and so are the kind of a journal record and `sqpoll`, which version 2
/// removed. An entry for several ranks counts as one for each.
fn leaves(value: &serde_json::Value, found: &mut Vec<String>) {
    if let (Some(ranks), true) = (value["ranks"].as_u64(), value["cpus"].is_string()) {
        for behind in 0..ranks {
            let mut one = value.clone();
            one.as_object_mut().unwrap().remove("ranks");
            if let Some(rank) = value["rank"].as_u64() {
                one["rank"] = (rank + behind).into();
            }
            leaves(&one, found);
        }
        return;
    }
    match value {
        serde_json::Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| {
                !matches!(name.as_str(), "derived" | "schema_version" | "program" | "record" | "sqpoll")
            });
            kept.for_each(|(_, field)| leaves(field, found));
        }
        serde_json::Value::Array(elements) => elements.iter().for_each(|element| leaves(element, found)),
        serde_json::Value::Number(number) => found.push(format!("{}", number.as_f64().unwrap())),
        serde_json::Value::Bool(truth) => found.push(truth.to_string()),
        // The value of `--verify` that has another name.
        serde_json::Value::String(text) => found.push(if text == "ring" { "sample" } else { text }.to_owned()),
        serde_json::Value::Null => {}
    }
}

fn leaves_of(texts: impl Iterator<Item = Vec<u8>>) -> Vec<String> {
    let mut found = Vec::new();
    texts.for_each(|text| leaves(&serde_json::from_slice(&text).unwrap(), &mut found));
    found.sort();
    found
}

/// Documents and journals of schema versions 1 (docs/runs) and 2 load, and each number is in the document that is written from them with
/// the names of the current schema. Only journals of b_eff have other numbers: those of single repetitions.
#[test]
fn results_of_earlier_schema_versions_load() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let of = |folder: &str| std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut loaded = std::collections::BTreeSet::new();
    for path in of("tests/schema-2").chain(of("docs/runs")) {
        let bytes = std::fs::read(&path).unwrap();
        let (benchmark, report) = load(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document = report.format("json").unwrap().unwrap();
        let is_journal = path.extension().is_some_and(|extension| extension == "jsonl");
        let old = match is_journal {
            true => leaves_of(bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec)),
            false => leaves_of(std::iter::once(bytes)),
        };
        let new = leaves_of(std::iter::once(document.clone()));
        // Each as often as before.
        let mut left = std::collections::BTreeMap::new();
        new.iter().for_each(|leaf| *left.entry(leaf).or_insert(0) += 1);
        old.iter().for_each(|leaf| *left.entry(leaf).or_insert(0) -= 1);
        let lost: Vec<_> = left.iter().filter(|(_, count)| **count < 0).collect();
        let are_single = is_journal && benchmark.name == b_eff::records::B_EFF;
        assert!(are_single || lost.is_empty(), "{}: {lost:?}", path.display());
        let text = String::from_utf8(document).unwrap();
        assert!(text.contains("\"schema_version\": 3") && !text.contains("\"waited_seconds\""), "{}", path.display());
        loaded.insert((benchmark.name, is_journal));
    }
    // The search for settings is newer.
    assert_eq!(loaded.len(), 2 * (BENCHMARKS.len() - 1), "a document and a journal of each: {loaded:?}");
}
