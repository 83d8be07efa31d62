//! Conditions of the warnings.

use serde_json::json;

use super::*;
use crate::b_eff_io::records::SampleRecord;
use crate::b_eff_io::values::fixture::{edit_pattern, full_run};
use crate::b_eff_io::values::{derive, Derived};
use crate::frame::command::directory::removal_warning;
use crate::frame::records::{Evidence, HostRecord, OmittedPart, RunOutcome, TimeLimitRecord};
use crate::frame::report::checks::assert_valid;
use crate::frame::report::Views;
use crate::frame::values::warning::warning_text;

fn warnings(result: &RunResult) -> Vec<Warning> {
    derive(result).warnings
}

fn kinds(result: &RunResult) -> Vec<String> {
    warnings(result).iter().map(|w| w.kind.to_string()).collect()
}

#[test]
fn a_run_by_the_book_has_none() {
    assert_eq!(warnings(&full_run()), []);
}

type ResultChange = fn(&mut RunResult);

#[test]
fn every_kind_has_its_cause() {
    let damages: [(ResultChange, &[&str]); 25] = [
        (|r| r.manifest.machine.hosts[0].cores = 1, &["oversubscribed"]),
        (|r| r.manifest.storage.fs_type = "tmpfs".into(), &["memory_file_system"]),
        (|r| r.cache_cold.push(cache_cold_record(40.0)), &["warm_memory"]),
        (|r| r.cache_cold.push(cache_cold_record(60.0)), &[]),
        (|r| in_small_pages(r, 1, Some(true)), &["small_pages"]),
        (|r| in_small_pages(r, 1, Some(false)), &[]),
        (|r| in_small_pages(r, 0, Some(true)), &[]),
        (|r| r.partitions[0].m_part_defined_bytes *= 2, &["m_part_reduced"]),
        (|r| r.manifest.machine.hosts[0].memory_bytes = 1 << 50, &["smaller_than_memory"]),
        (|r| edit_pattern(r, 4, AccessMethod::Write, 3, |p| p.ended = StopReason::Space), &["ended_by_space"]),
        (|r| edit_pattern(r, 4, AccessMethod::Write, 28, |p| p.ended = StopReason::TimeGuard), &["time_guard"]),
        (|r| edit_pattern(r, 4, AccessMethod::Write, 3, |p| p.budget_seconds *= 0.89), &["short_of_time"]),
        (|r| edit_pattern(r, 4, AccessMethod::Write, 3, |p| p.calls = 9), &["few_calls"]),
        (|r| edit_pattern(r, 4, AccessMethod::Write, 3, |p| p.ended = StopReason::NotRun("x".into())), &["not_run"]),
        (|r| edit_pattern(r, 4, AccessMethod::Write, 3, |p| p.sample = unread()), &["not_sampled"]),
        (|r| edit_pattern(r, 4, AccessMethod::Read, 3, |p| p.intervals.sync_seconds = 400.0), &["overrun"]),
        (|r| edit_pattern(r, 4, AccessMethod::Read, 3, |p| p.decision_cost_seconds = 1.0), &["decision_cost"]),
        (|r| edit_pattern(r, 4, AccessMethod::Read, 3, |p| p.hints_requested = hint("a", "1")), &["hint_not_granted"]),
        (|r| r.types[0].hints_requested = hint("cb_nodes", "7"), &["hint_not_granted"]),
        (|r| r.types[0].hints_requested = hint("cb_nodes", "2"), &[]),
        (all_reads_cached, &["read_from_cache"]),
        (|r| r.config.cache = CachePolicy::RankShift, &["rank_shift_on_one_host"]),
        (|r| keep_resident(r, CachePolicy::Drop, AccessMethod::Rewrite), &["cache_not_dropped"]),
        (|r| keep_resident(r, CachePolicy::Drop, AccessMethod::Write), &[]),
        (|r| keep_resident(r, CachePolicy::Keep, AccessMethod::Read), &[]),
    ];
    let mut collected = Vec::new();
    for (damage, expected) in damages {
        let mut result = full_run();
        damage(&mut result);
        assert_eq!(kinds(&result), expected);
        collected.extend(warnings(&result));
    }
    insta::assert_snapshot!("warnings", collected.iter().map(warning_text).collect::<String>());
    let result = full_run();
    assert_valid::<RunResult>(&result.document(&Derived { warnings: collected, ..derive(&result) }).unwrap());
}

fn hint(key: &str, value: &str) -> Vec<(String, String)> {
    vec![(key.into(), value.into())]
}

fn cache_cold_record(found_ns: f64) -> CacheColdRecord {
    CacheColdRecord { load_ns: found_ns, flushed_ns: 100.0, cached_ns: 5.0, ..CacheColdRecord::default() }
}

fn in_small_pages(result: &mut RunResult, ranks_with_small: u64, direct: Option<bool>) {
    let pages =
        HugePagesRecord { memory_bytes: 100, huge_page_bytes: Some(10), ranks_with_small, ..Default::default() };
    result.pages.push(pages);
    edit_pattern(result, 4, AccessMethod::Read, 3, |p| p.direct = direct);
}

fn unread() -> Option<SampleRecord> {
    Some(SampleRecord { unread_reason: Some("no such file".into()), ..SampleRecord::default() })
}

fn keep_resident(result: &mut RunResult, cache: CachePolicy, access: AccessMethod) {
    result.config.cache = cache;
    edit_pattern(result, 4, access, 3, |p| {
        p.evidence = Evidence { resident_before_bytes: Some(1 << 20), range_bytes: 8 << 20, ..Evidence::default() };
    });
}

fn all_reads_cached(result: &mut RunResult) {
    for p in result.patterns.iter_mut().filter(|p| p.access == AccessMethod::Read) {
        p.storage_read_bytes = Some(p.moved_bytes / 2);
    }
}

/// Whatever fails in every pattern, partition and host, a backend has one warning of a kind.
/// A limit without effect is none.
#[test]
fn a_time_limit_that_had_an_effect_is_a_warning() {
    let with = |outcome: RunOutcome, record: TimeLimitRecord| {
        let mut result = full_run();
        (result.ending.outcome, result.time_limit) = (outcome, Some(record));
        warnings(&result).into_iter().find(|warning| warning.kind == "time_limit")
    };
    let record = TimeLimitRecord { source: "squeue".into(), seconds: Some(180.0), ..TimeLimitRecord::default() };
    assert_eq!(with(RunOutcome::Complete, record.clone()), None);
    assert_eq!(with(RunOutcome::Interrupted, TimeLimitRecord { seconds: None, ..record.clone() }), None);
    let ended = with(RunOutcome::Limit, record.clone()).unwrap();
    assert_eq!(ended.summary, "the time limit ended the run");
    assert!(ended.cause.contains("(squeue)") && ended.next_step.contains("more time"), "{ended:?}");
    let omitted = vec![OmittedPart::Repetitions, OmittedPart::Rounds];
    let short = TimeLimitRecord { omitted, fitting_time_seconds: Some(74.0), ..record };
    let omits = with(RunOutcome::Complete, short).unwrap();
    assert_eq!(omits.summary, "for the time limit the run omitted repetitions and rounds");
    assert!(omits.next_step.contains("-T 74s"), "{omits:?}");
}

#[test]
fn warnings_do_not_multiply() {
    let mut result = full_run();
    let host = HostRecord { ranks: 3, cores: 2, name: "node2".into(), ..result.manifest.machine.hosts[0].clone() };
    result.manifest.machine.hosts = vec![HostRecord { ranks: 4, name: "node1".into(), ..host.clone() }, host];
    all_reads_cached(&mut result);
    for partition in &mut result.partitions {
        partition.m_part_bytes /= partition.ranks;
    }
    for p in &mut result.patterns {
        p.ended = if p.pattern < 20 { StopReason::Space } else { StopReason::TimeGuard };
        p.intervals.decide_seconds = p.intervals.transfer_seconds;
        p.decision_cost_seconds = f64::from(p.pattern) / 100.0 * p.seconds();
        p.hints_requested = hint("a", &p.pattern.to_string());
    }
    let found = warnings(&result);
    let mut kinds = kinds(&result);
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds.len(), found.len(), "{found:#?}");
    let patterns = result.patterns.iter().filter(|p| p.seconds() > 0.05 && p.pattern > 1).count() as u64;
    for (kind, backend, figures) in [
        ("oversubscribed", None, json!({"hosts": 2, "host": "node1", "ranks": 4, "cores": 2})),
        (
            "m_part_reduced",
            None,
            json!({"partitions": 2, "ranks": 4, "defined_bytes": 32 << 20, "used_bytes": 8 << 20}),
        ),
        ("time_guard", Some("mpiio"), json!({"patterns": 23 * 6, "pattern": 20})),
        (
            "decision_cost",
            Some("mpiio"),
            json!({"patterns": patterns, "pattern": 41, "access": "write", "ranks": 2, "share": 0.41}),
        ),
    ] {
        let one = found.iter().find(|w| w.kind == kind).unwrap();
        assert_eq!((one.backend.as_deref(), json!(one.figures)), (backend, figures), "{kind}");
    }
}

#[test]
fn an_overrun_names_its_longest_case_and_parts() {
    let mut result = full_run();
    edit_pattern(&mut result, 2, AccessMethod::Write, 10, |p| p.intervals.sync_seconds = 200.0);
    edit_pattern(&mut result, 4, AccessMethod::Write, 27, |p| p.intervals.transfer_seconds += 300.0);
    let found = warnings(&result).pop().unwrap();
    let number = |name: &str| found.number(name).unwrap();
    assert_eq!((found.text("access"), number("methods"), number("ranks")), ("write", 2.0, 4.0));
    assert!((number("counted_seconds") - 300.0).abs() < 0.1 && number("sync_seconds") == 0.0, "{found:?}");
    assert!(found.cause.ends_with(" and patterns driven by counts 5.0 min."), "{}", found.cause);
}

#[test]
fn the_null_backend_is_no_measurement() {
    let mut result = full_run();
    result.config.backends = vec![NULL_BACKEND.into()];
    all_reads_cached(&mut result);
    for p in &mut result.patterns {
        p.backend = NULL_BACKEND.into();
        p.ended = StopReason::Space;
        p.decision_cost_seconds = p.seconds();
    }
    assert_eq!(warnings(&result), []);
}

#[test]
fn what_is_not_known_gives_no_warning() {
    let mut result = full_run();
    result.patterns.iter_mut().for_each(|p| p.storage_read_bytes = None);
    assert_eq!(warnings(&result), []);
}

#[test]
fn buffered_transfers_matter_where_direct_ones_can_be_chosen() {
    for (backend, policy, expected) in [
        ("posix", DirectPolicy::Auto, 1),
        ("uring", DirectPolicy::Required, 1),
        ("posix", DirectPolicy::Off, 0),
        ("posix", DirectPolicy::ByBackend, 0),
        ("uring", DirectPolicy::ByBackend, 1),
        ("mpiio", DirectPolicy::Auto, 0),
    ] {
        let mut result = full_run();
        result.config.backends = vec![backend.into()];
        result.config.direct = policy;
        result.types.iter_mut().for_each(|t| t.backend = backend.into());
        result.patterns.iter_mut().for_each(|p| {
            p.backend = backend.into();
            p.direct = Some(p.chunk_bytes % 512 == 0);
        });
        let found = kinds(&result);
        assert_eq!(found.iter().filter(|k| *k == "buffered").count(), expected, "{backend} {found:?}");
    }
}

#[test]
fn expensive_decisions_of_short_patterns_and_repeated_warnings_are_ignored() {
    let mut result = full_run();
    edit_pattern(&mut result, 4, AccessMethod::Read, 3, |p| {
        p.intervals.transfer_seconds = 0.04;
        p.decision_cost_seconds = 0.01;
    });
    assert_eq!(kinds(&result), Vec::<String>::new());
    result.manifest.storage.fs_type = "tmpfs".into();
    let mut repeated = warnings(&result);
    assert_eq!(kinds(&result), ["memory_file_system"]);
    result.warnings.append(&mut repeated);
    assert_eq!(kinds(&result), ["memory_file_system"]);
}

#[test]
fn warnings_of_the_run_are_kept() {
    let mut result = full_run();
    result.warnings.push(removal_warning("run", "busy"));
    assert_eq!(kinds(&result), ["files_left"]);
}

#[test]
fn no_warning_advises_the_setting_in_force() {
    let mut result = full_run();
    edit_pattern(&mut result, 4, AccessMethod::Read, 3, |p| p.decision_cost_seconds = 1.0);
    assert!(!warnings(&result)[0].next_step.contains("--termination"));
    result.config.termination = Termination::PerCall;
    assert!(warnings(&result)[0].next_step.contains("--termination geometric"));
}
