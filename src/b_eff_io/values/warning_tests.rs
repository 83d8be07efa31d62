//! What is warned of, and when.

use serde_json::json;

use super::*;
use crate::b_eff_io::records::SampleRecord;
use crate::b_eff_io::values::fixture::{edit, full_run};
use crate::b_eff_io::values::{derive, Derived};
use crate::frame::command::directory::files_left;
use crate::frame::records::{Evidence, HostRecord};
use crate::frame::report::checks::assert_valid;
use crate::frame::report::Views;
use crate::frame::values::warning::shown;

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

type Damage = fn(&mut RunResult);

#[test]
fn every_kind_has_its_cause() {
    let damages: [(Damage, &[&str]); 25] = [
        (|r| r.manifest.machine.hosts[0].cores = 1, &["oversubscribed"]),
        (|r| r.manifest.storage.fs_type = "tmpfs".into(), &["memory_file_system"]),
        (|r| r.cold.push(loads(40.0)), &["warm_memory"]),
        (|r| r.cold.push(loads(60.0)), &[]),
        (|r| in_small_pages(r, 1, Some(true)), &["small_pages"]),
        (|r| in_small_pages(r, 1, Some(false)), &[]),
        (|r| in_small_pages(r, 0, Some(true)), &[]),
        (|r| r.partitions[0].m_part_wanted_bytes *= 2, &["m_part_reduced"]),
        (|r| r.manifest.machine.hosts[0].memory_bytes = 1 << 50, &["smaller_than_memory"]),
        (|r| edit(r, 4, Access::Write, 3, |p| p.ended = Ended::Space), &["ended_by_space"]),
        (|r| edit(r, 4, Access::Write, 28, |p| p.ended = Ended::TimeGuard), &["time_guard"]),
        (|r| edit(r, 4, Access::Write, 3, |p| p.budget_seconds *= 0.89), &["short_of_time"]),
        (|r| edit(r, 4, Access::Write, 3, |p| p.calls = 9), &["few_calls"]),
        (|r| edit(r, 4, Access::Write, 3, |p| p.ended = Ended::NotRun("x".into())), &["not_run"]),
        (|r| edit(r, 4, Access::Write, 3, |p| p.sample = unread()), &["not_sampled"]),
        (|r| edit(r, 4, Access::Read, 3, |p| p.intervals.sync_seconds = 400.0), &["overrun"]),
        (|r| edit(r, 4, Access::Read, 3, |p| p.decision_cost_seconds = 1.0), &["decision_cost"]),
        (|r| edit(r, 4, Access::Read, 3, |p| p.hints_requested = hint("a", "1")), &["hint_not_granted"]),
        (|r| r.types[0].hints_requested = hint("cb_nodes", "7"), &["hint_not_granted"]),
        (|r| r.types[0].hints_requested = hint("cb_nodes", "2"), &[]),
        (all_reads_cached, &["read_from_cache"]),
        (|r| r.config.cache = CachePolicy::RankShift, &["rank_shift_on_one_host"]),
        (|r| stay(r, CachePolicy::Drop, Access::Rewrite), &["cache_not_dropped"]),
        (|r| stay(r, CachePolicy::Drop, Access::Write), &[]),
        (|r| stay(r, CachePolicy::Keep, Access::Read), &[]),
    ];
    let mut told = Vec::new();
    for (damage, expected) in damages {
        let mut result = full_run();
        damage(&mut result);
        assert_eq!(kinds(&result), expected);
        told.extend(warnings(&result));
    }
    insta::assert_snapshot!("warnings", told.iter().map(shown).collect::<String>());
    let result = full_run();
    assert_valid::<RunResult>(&result.document(&Derived { warnings: told, ..derive(&result) }).unwrap());
}

fn hint(key: &str, value: &str) -> Vec<(String, String)> {
    vec![(key.into(), value.into())]
}

fn loads(found_ns: f64) -> ColdRecord {
    ColdRecord { found_ns, flushed_ns: 100.0, cached_ns: 5.0, ..ColdRecord::default() }
}

fn in_small_pages(result: &mut RunResult, ranks_with_small: u64, direct: Option<bool>) {
    let pages = PagesRecord { memory_bytes: 100, huge_page_bytes: Some(10), ranks_with_small, ..Default::default() };
    result.pages.push(pages);
    edit(result, 4, Access::Read, 3, |p| p.direct = direct);
}

fn unread() -> Option<SampleRecord> {
    Some(SampleRecord { not_read: Some("no such file".into()), ..SampleRecord::default() })
}

fn stay(result: &mut RunResult, cache: CachePolicy, access: Access) {
    result.config.cache = cache;
    edit(result, 4, access, 3, |p| {
        p.evidence = Evidence { resident_before_bytes: Some(1 << 20), range_bytes: 8 << 20, ..Evidence::default() };
    });
}

fn all_reads_cached(result: &mut RunResult) {
    for p in result.patterns.iter_mut().filter(|p| p.access == Access::Read) {
        p.storage_read_bytes = Some(p.moved_bytes / 2);
    }
}

/// Whatever goes wrong in every pattern, partition and host, a backend has one warning of a kind.
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
        p.ended = if p.pattern < 20 { Ended::Space } else { Ended::TimeGuard };
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
        ("m_part_reduced", None, json!({"partitions": 2, "ranks": 4, "wanted_bytes": 32 << 20, "used_bytes": 8 << 20})),
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
    edit(&mut result, 2, Access::Write, 10, |p| p.intervals.sync_seconds = 200.0);
    edit(&mut result, 4, Access::Write, 27, |p| p.intervals.transfer_seconds += 300.0);
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
        p.ended = Ended::Space;
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
fn short_patterns_may_decide_dearly_and_repetitions_are_told_once() {
    let mut result = full_run();
    edit(&mut result, 4, Access::Read, 3, |p| {
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
    result.warnings.push(files_left("run", "busy"));
    assert_eq!(kinds(&result), ["files_left"]);
}

#[test]
fn nobody_is_told_to_use_what_is_in_use() {
    let mut result = full_run();
    edit(&mut result, 4, Access::Read, 3, |p| p.decision_cost_seconds = 1.0);
    assert!(!warnings(&result)[0].next_step.contains("--termination"));
    result.config.termination = Termination::PerCall;
    assert!(warnings(&result)[0].next_step.contains("--termination geometric"));
}
