//! The journal, complete and truncated.

use proptest::prelude::*;

use crate::frame::report::checks::{assert_truncated_journal_keeps_earlier_lines, journal_of};
use crate::frame::report::journal::read_journal;
use crate::frame::report::parse;
use crate::frame::report::{DetailLevel, Views};
use crate::imb_io::plan::catalogue::all;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowStatus};
use crate::imb_io::report::{fixtures, imb_format};
use crate::imb_io::values::derive;
use crate::imb_io::values::fixture::{row, run};

#[test]
fn a_complete_journal_reads_back_as_the_result() {
    for (name, result, _) in fixtures::all() {
        assert_eq!(
            read_journal::<ImbResult>(&journal_of(&fixtures::journal_lines(&result))).unwrap(),
            result,
            "{name}"
        );
    }
}

#[test]
fn a_journal_cut_in_a_line_keeps_the_rest() {
    assert_truncated_journal_keeps_earlier_lines::<ImbResult>(&fixtures::journal_lines(&fixtures::complete()));
}

/// Values that an older program did not record are unknown.
#[test]
fn a_fact_that_an_older_file_lacks_is_not_known() {
    let mut result = run();
    result.rows.push(row("S_IRead_Indv", 1, Mode::Aggregate, Some(4096)));
    let mut document: serde_json::Value =
        serde_json::from_slice(&result.file_bytes(&result.derived(), ".json").unwrap()).unwrap();
    for key in ["file", "buffers"] {
        assert!(document["config"].as_object_mut().unwrap().remove(key).is_some());
    }
    document["schema_version"] = 1.into();
    let repeats = document.as_object_mut().unwrap().remove("repetitions").unwrap();
    document["repeats"] = repeats;
    let row = document["rows"][0].as_object_mut().unwrap();
    row.remove("blocking_strategy");
    let overlap = row["overlap"].as_object_mut().unwrap();
    overlap.remove("blocking_seconds");
    // Name of the time of the non-blocking call alone when it was t_pure.
    let alone = overlap.remove("alone_seconds").unwrap();
    overlap.insert("pure_seconds".into(), alone);
    let old = parse::<ImbResult>(document.to_string().as_bytes()).unwrap();
    let (found, expected) = (old.rows[0].overlap.unwrap(), result.rows[0].overlap.unwrap());
    assert_eq!((found.blocking_seconds, found.alone_seconds), (None, expected.alone_seconds));
    let derived = derive(&old);
    assert_eq!((derived.rows[0].overlap_percent, derived.rows[0].pure_mb_per_second), (None, None));
    assert_eq!((old.config.file, old.config.buffers), (None, None));
    for text in [crate::frame::report::checks::full_text(&old, DetailLevel::Full), imb_format(&old, &derived)] {
        assert!(
            text.contains(" 1000 t_pure is unknown") || text.contains(" 1000 iterations: t_pure is unknown"),
            "{text}"
        );
        assert!(text.contains("unknown whether their files existed"), "{text}");
        assert!(text.contains("unknown whether iterations shared it"), "{text}");
    }
}

proptest! {
    /// Journal, result, document and reading it back lose no information, nor any digit of a time.
    #[test]
    fn journal_and_document_are_the_same_result(
        rows in prop::collection::vec((0..all().len(), 0_u64..1 << 31, 0.0..1e4_f64, 0_u8..4), 0..6),
        seconds in prop::option::of(0.0..1e6_f64),
        killed: bool,
    ) {
        let mut result = run();
        for (index, bytes, time, end) in rows {
            let benchmark = &all()[index];
            let mut record = row(benchmark.name, 2, Mode::Aggregate, benchmark.transfer().map(|_| bytes));
            record.real_seconds = time;
            record.times[0].max_seconds = time / 3.0;
            let ends = [
                RowStatus::Complete,
                RowStatus::Error("rank 1: \"short\"".into()),
                RowStatus::Interrupted,
                RowStatus::NotRun("no \"file\"\n".into()),
            ];
            record.ended = ends[usize::from(end)].clone();
            result.rows.push(record);
        }
        if let Some(announced) = &mut result.announcement {
            announced.limit_seconds = seconds;
        }
        let mut lines = fixtures::journal_lines(&result);
        if killed {
            lines.pop();
            result.ending = ImbResult::new(result.config.clone(), result.setup.clone()).ending;
        }
        let read: ImbResult = read_journal(&journal_of(&lines)).unwrap();
        prop_assert_eq!(&read, &result);
        let again = parse::<ImbResult>(&read.document(&read.derived()).unwrap()).unwrap();
        prop_assert_eq!(&again, &result);
        prop_assert_eq!(derive(&again), derive(&result));
    }
}
