use proptest::prelude::*;

use super::fixture::{from_cache, row, run};
use super::*;
use crate::frame::records::{kinds as frame_kinds, RunOutcome};
use crate::frame::report::checks::assert_valid;
use crate::frame::report::Views;
use crate::frame::values::warning::warning_text;
use crate::imb_io::config::Multi;
use crate::imb_io::plan::catalogue::all;
use crate::imb_io::plan::Mode::{Aggregate, NonAggregate};
use crate::imb_io::records::{BareLoopPair, CpuLoad, GroupTimes, ImbBareRecord, RowRecord, RowStatus};

fn with(rows: Vec<RowRecord>) -> ImbResult {
    let mut result = run();
    result.setup.rows = rows.len() as u64;
    result.rows = rows;
    result
}

fn only(record: RowRecord) -> RowValue {
    derive(&with(vec![record])).rows.remove(0)
}

#[test]
fn bandwidth_is_the_sample_over_the_slowest_rank() {
    let mut record = row("P_Write_Indv", 4, Aggregate, Some(4_000_000));
    record.times = vec![GroupTimes { min_seconds: 0.5, max_seconds: 2.0, mean_seconds: 1.0 }];
    let value = only(record.clone());
    assert_eq!(value.groups[0].mb_per_second, Some(2.0));
    record.benchmark = "P_Write_Priv".into();
    assert_eq!(only(record.clone()).groups[0].mb_per_second, Some(2.0), "the parts add up to X");
    let median = record.iteration_times.map(|t| t.median_seconds).unwrap();
    assert_eq!(value.median_mb_per_second, Some(4.0 / median));
    record.sample_bytes = Some(0);
    record.times[0].max_seconds = 0.0;
    assert_eq!(
        (only(record.clone()).groups[0].mb_per_second, only(record.clone()).median_mb_per_second),
        (Some(0.0), Some(0.0))
    );
    record.sample_bytes = Some(1);
    assert_eq!(only(record.clone()).groups[0].mb_per_second, None, "no time passed");
    assert_eq!(only(row("Open_Close", 2, Aggregate, None)).groups[0].mb_per_second, None);
}

#[test]
fn of_several_groups_each_or_the_slowest() {
    let mut record = row("C_Write_Expl", 2, NonAggregate, Some(1_000_000));
    let times = |max_seconds| GroupTimes { min_seconds: 0.25, max_seconds, mean_seconds: 0.5 };
    (record.groups, record.times) = (3, vec![times(1.0), times(4.0), times(2.0)]);
    let mut result = with(vec![record]);
    for (multi, expected) in [
        (Some(Multi::Slowest), vec![(1, Some(0.25))]),
        (Some(Multi::Each), vec![(0, Some(1.0)), (1, Some(0.25)), (2, Some(0.5))]),
    ] {
        result.config.multi = multi;
        let found: Vec<_> = derive(&result).rows[0].groups.iter().map(|g| (g.group, g.mb_per_second)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn overlap_is_that_of_the_plan() {
    let mut record = row("S_IRead_Indv", 1, Aggregate, Some(1_000_000));
    let o = record.overlap.as_mut().unwrap();
    (o.blocking_seconds, o.alone_seconds) = (Some(1.0), 7.0);
    (o.cpu_seconds, o.overlapped_seconds) = (1.0, 1.5);
    let value = only(record);
    assert_eq!((value.overlap_percent, value.pure_mb_per_second), (Some(50.0), Some(1.0)));
    let blocking = only(row("S_Read_Indv", 1, Aggregate, Some(1)));
    assert_eq!((blocking.overlap_percent, blocking.pure_mb_per_second), (None, None));
}

/// Whatever its fields contain.
#[test]
fn a_row_that_is_not_complete_has_no_value() {
    for ended in [RowStatus::Error("rank 0: short".into()), RowStatus::Interrupted, RowStatus::NotRun("no".into())] {
        for benchmark in ["S_Write_Indv", "S_IRead_Expl", "P_Read_Priv"] {
            let value = only(RowRecord { ended: ended.clone(), ..row(benchmark, 1, Aggregate, Some(4096)) });
            let numbers =
                [value.median_mb_per_second, value.pure_mb_per_second, value.overlap_percent, value.cached_share];
            assert!(value.groups.is_empty() && numbers == [None; 4] && !value.has_source, "{benchmark} {ended:?}");
        }
    }
}

#[test]
fn a_read_is_a_cache_figure_above_a_tenth() {
    let read = |resident| RowRecord {
        evidence: Some(from_cache(resident, 1000)),
        ..row("P_Read_Indv", 2, Aggregate, Some(1000))
    };
    assert_eq!(only(read(1000)).cached_share, Some(1.0));
    assert!(only(read(200)).cached && !only(read(100)).cached);
    let direct = RowRecord { direct: Some(true), ..read(1000) };
    assert_eq!(only(direct).cached_share, Some(0.0));
    let unknown = only(RowRecord { evidence: None, ..read(0) });
    assert!(unknown.has_source && unknown.storage_bytes.is_none() && !unknown.cached);
    for other in ["null", "posix"] {
        assert_eq!(only(RowRecord { backend: other.into(), ..read(0) }).has_source, other == "posix");
    }
    assert!(!only(row("P_Write_Indv", 2, Aggregate, Some(1000))).has_source);
}

#[test]
fn verdicts() {
    let good = || with(vec![row("S_Write_Indv", 1, Aggregate, Some(1)), row("Open_Close", 2, Aggregate, None)]);
    let verdict = |change: &dyn Fn(&mut ImbResult)| {
        let mut result = good();
        change(&mut result);
        derive(&result).verdict
    };
    let found = verdict(&|_| {});
    assert_eq!(
        (found.verdict, found.rows_complete, found.real_to_expected),
        (VerificationVerdict::Verified, 2, Some(1.25))
    );
    let not_run = verdict(&|r| r.rows[1].ended = RowStatus::NotRun("no".into()));
    assert_eq!((not_run.verdict, not_run.rows_not_run), (VerificationVerdict::Verified, 1));
    let not_complete: [&dyn Fn(&mut ImbResult); 5] = [
        &|r| r.rows[0].ended = RowStatus::Error("rank 0: short".into()),
        &|r| r.rows[0].ended = RowStatus::Interrupted,
        &|r| r.setup.rows = 3,
        &|r| r.ending.outcome = RunOutcome::Failed,
        &|r| r.rows.clear(),
    ];
    for change in not_complete {
        assert_eq!(verdict(change).verdict, VerificationVerdict::NotComplete);
    }
    assert_eq!(verdict(&|r| r.rows[0].bytes_checked = 0).verdict, VerificationVerdict::NotVerified);
    assert_eq!(verdict(&|r| r.rows[0].bytes_checked -= 1).verdict, VerificationVerdict::NotVerified, "also in part");
    let wrong = verdict(&|r| {
        r.rows[0].bytes_wrong = 2;
        r.rows[1].ended = RowStatus::Error("rank 0: short".into());
    });
    assert_eq!((wrong.verdict, wrong.rows_wrong, wrong.bytes_wrong), (VerificationVerdict::WrongData, 1, 2));
    assert_eq!(verdict(&|r| r.ending.outcome = RunOutcome::Killed).real_seconds, None);
}

#[test]
fn each_warning_has_its_cause() {
    let warnings = |change: &dyn Fn(&mut ImbResult)| {
        let mut result = with(vec![row("S_Read_Indv", 1, Aggregate, Some(4096))]);
        change(&mut result);
        derive(&result).warnings
    };
    let kinds =
        |change: &dyn Fn(&mut ImbResult)| warnings(change).iter().map(|w| w.kind.to_string()).collect::<Vec<_>>();
    let none: &[&str] = &[];
    assert_eq!(kinds(&|_| {}), none);
    type WarningCase<'a> = (&'a dyn Fn(&mut ImbResult), &'a [&'a str]);
    let cases: [WarningCase<'_>; 11] = [
        (&|r| r.rows[0].allocations_in_clock = 1, &["allocations_in_clock"]),
        (&|r| r.rows[0].bytes_checked = 0, &["not_verified"]),
        (&|r| r.setup.machine.hosts[0].cores = 1, &["oversubscribed"]),
        (&|r| r.setup.storage.fs_type = "tmpfs".into(), &["memory_file_system", "read_from_cache"]),
        (&|r| r.rows[0].ended = RowStatus::NotRun("no".into()), &["not_run"]),
        (&|r| r.rows[0].evidence = Some(from_cache(1, 1)), &["read_from_cache"]),
        (&|r| r.rows[0].evidence = None, &["source_unknown"]),
        (&|r| load(r, 0.11), &["load_not_calibrated"]),
        (&|r| load(r, f64::NAN), &["load_not_calibrated"]),
        (&|r| r.rows[0].times[0].max_seconds = 480e-9, &["clock_cost"]),
        (&|r| r.ending.real_seconds = 199.0, &["overrun"]),
    ];
    let mut collected = Vec::new();
    for (change, expected) in cases {
        assert_eq!(kinds(change), expected);
        collected.extend(warnings(change));
    }
    insta::assert_snapshot!("warnings", collected.iter().map(warning_text).collect::<String>());
    let result = with(Vec::new());
    assert_valid::<ImbResult>(&result.document(&ImbDerived { warnings: collected, ..derive(&result) }).unwrap());
    let torn = frame_kinds::JOURNAL_TORN.warning();
    assert_eq!(kinds(&|r| r.warnings = vec![torn.clone(), torn.clone()]), ["journal_torn"], "once");
}

fn load(result: &mut ImbResult, calibration_error: f64) {
    if let Some(announced) = &mut result.announcement {
        announced.cpu_load = Some(CpuLoad { unit_seconds: 1e-6, calibration_error });
    }
}

#[test]
fn bare_loops_are_compared_by_their_pairs() {
    let mut result = with(Vec::new());
    let pair = |n: u32| BareLoopPair { harness_seconds: 1.02 * f64::from(n), bare_seconds: f64::from(n) };
    result.bare = vec![ImbBareRecord {
        benchmark: "S_Write_Indv".into(),
        ranks: 1,
        sample_bytes: 1,
        iterations: 10,
        pairs: (1..=9).map(pair).collect(),
    }];
    let value = derive(&result).bare.remove(0).compared;
    assert!((value.ratio - 1.02).abs() < 1e-12 && (value.bare_seconds - 0.5).abs() < 1e-12 && value.pairs == 9);
    assert!(value.interval.is_some());
    result.bare[0].pairs.clear();
    assert!(derive(&result).bare.is_empty());
}

proptest! {
    #[test]
    fn nothing_panics_and_no_number_is_without_its_row(
        index in 0..all().len(), bytes: u64, min: f64, max: f64, moved: u64, checked in 0..u64::MAX / 2, groups in 0_usize..4,
        complete: bool, each: bool,
    ) {
        let benchmark = &all()[index];
        let mut record = row(benchmark.name, 2, Aggregate, benchmark.transfer().map(|_| 1));
        record.sample_bytes = record.sample_bytes.map(|_| bytes);
        record.times = vec![GroupTimes { min_seconds: min, max_seconds: max, mean_seconds: min }; groups];
        (record.moved_bytes, record.bytes_checked) = (moved, checked);
        if !complete {
            record.ended = RowStatus::Error("rank 0: short".into());
        }
        let mut result = with(vec![record]);
        result.config.multi = each.then_some(Multi::Each);
        let derived = derive(&result);
        let value = &derived.rows[0];
        prop_assert!(complete || (value.groups.is_empty() && value.median_mb_per_second.is_none()));
        prop_assert!(value.groups.len() <= groups && (each || value.groups.len() <= 1));
        let rates = value.groups.iter().filter_map(|g| g.mb_per_second);
        prop_assert!(rates.into_iter().all(|rate| rate >= 0.0));
        prop_assert!(value.cached_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}

/// Only complete rows of MPI-IO with preparation list the hints in force.
#[test]
fn rows_without_hint_information_lack_no_hint() {
    let missing = |change: fn(&mut RowRecord), sample_bytes: Option<u64>| {
        let mut record =
            row(if sample_bytes.is_some() { "S_Write_Indv" } else { "Open_Close" }, 1, Aggregate, sample_bytes);
        change(&mut record);
        let mut result = with(vec![record]);
        result.config.hints = vec![("cb_nodes".into(), "2".into())];
        derive(&result).warnings.iter().any(|w| w.is_kind(&frame_kinds::HINT_NOT_GRANTED))
    };
    assert!(missing(|_| {}, Some(4096)));
    assert!(!missing(|r| r.hints_granted = vec![("cb_nodes".into(), "2".into())], Some(4096)));
    assert!(!missing(|r| r.ended = RowStatus::Interrupted, Some(4096)));
    assert!(!missing(|r| r.backend = "posix".into(), Some(4096)));
    assert!(!missing(|_| {}, None));
}
