use super::*;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PartitionRecord, PatternRecord};
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::values::{derive, PartitionValue, TypeValue};
use crate::frame::report::checks::assert_page;
use crate::frame::report::html::{self, Block, Source};
use crate::frame::values::NULL_BACKEND;

#[test]
fn every_result_has_its_page() {
    for (name, result, derived) in fixtures::all() {
        let text = assert_page(&result, &derived, name);
        assert!(text.contains("Bandwidth by chunk size"), "{name}");
    }
    let mut empty = fixtures::complete();
    (empty.patterns, empty.types, empty.partitions) = Default::default();
    assert_page(&empty, &derive(&empty), "nothing");
}

/// Names of hosts, paths and backends are whatever somebody made them.
#[test]
fn hostile_names_stay_text() {
    let mut result = fixtures::ladder();
    let bad = "</script><script>alert(1)</script>\u{1b}[31m'\"\u{202e}".to_owned();
    let manifest = &mut result.manifest;
    manifest.storage.path.clone_from(&bad);
    manifest.storage.source.clone_from(&bad);
    manifest.machine.started_utc.clone_from(&bad);
    manifest.machine.hosts.iter_mut().for_each(|h| h.name.clone_from(&bad));
    result.config.backends.iter_mut().for_each(|b| b.push_str(&bad));
    result.patterns.iter_mut().for_each(|p| p.backend.push_str(&bad));
    result.types.iter_mut().for_each(|t| t.backend.push_str(&bad));
    let text = assert_page(&result, &derive(&result), "hostile");
    assert!(!text.contains('\u{202e}') && text.contains("&lt;/script&gt;"), "shown as it is");
}

#[test]
fn odd_numbers_are_drawn_or_left_out() {
    for factor in [1e-300, 1e300, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut result = fixtures::complete();
        result.patterns.iter_mut().for_each(|p| p.intervals.transfer_seconds *= factor);
        assert_page(&result, &derive(&result), &format!("times {factor}"));
    }
    let mut result = fixtures::complete();
    result.patterns.iter_mut().for_each(|p| p.moved_bytes = u64::MAX);
    assert_page(&result, &derive(&result), "odd bytes");
}

/// Open circles are reads from a cache, grey marks rest on few calls.
#[test]
fn what_is_not_what_it_seems_looks_different() {
    let mut result = fixtures::complete();
    result.partitions.retain(|p| p.ranks == 4);
    result.patterns.retain(|p| p.ranks == 4);
    let page = |result: &RunResult| assert_page(result, &derive(result), "marks");
    let text = page(&result);
    assert!(text.contains("class=\"o k0\"") && text.contains("read from a cache") && !text.contains("from few calls"));
    result.patterns.iter_mut().filter(|p| p.access == Access::Write).for_each(|p| p.calls = 3);
    let text = page(&result);
    assert!(text.contains("class=\"p g\"") && text.contains("from few calls"));
}

#[test]
fn every_backend_has_its_panels_and_the_ladder_its_shades() {
    let result = fixtures::ladder();
    let derived = derive(&result);
    let run = page(&result, &derived);
    let names: Vec<&str> = run.sections.iter().map(|s| s.name).collect();
    assert_eq!(names, ["bandwidth", "ladder", "time", "latency", "timeline", "validity", "warnings", "set-up"]);
    let panels = run.sections[0].blocks.iter().filter_map(|b| match b {
        Block::Picture(p) => Some((p.name.as_str(), p.frames.len())),
        _ => None,
    });
    let expected = ["mpiio", "posix", "uring", "mmap"].map(|b| (format!("{b}-2-ranks-bandwidth"), 3));
    assert_eq!(panels.collect::<Vec<_>>(), expected.each_ref().map(|(name, frames)| (name.as_str(), *frames)));
    let text = assert_page(&result, &derived, "ladder");
    assert!(text.contains("class=\"h9 b\"") && text.len() < 500_000, "{}", text.len());
}

/// A thousand partitions, each through four backends.
#[test]
fn many_partitions_are_one_page() {
    let one = fixtures::ladder();
    let mut result = one.clone();
    result.config.backends.retain(|b| b != NULL_BACKEND);
    result.config.types = vec![PatternType::Scatter];
    let few: Vec<_> =
        one.patterns.iter().filter(|p| p.backend != NULL_BACKEND && [1, 5].contains(&p.pattern)).collect();
    result.patterns.clear();
    result.types.clear();
    result.partitions.clear();
    for ranks in 1..=1000 {
        result.partitions.push(PartitionRecord { ranks, ..one.partitions[0].clone() });
        result.patterns.extend(few.iter().map(|p| PatternRecord { ranks, rounds: Vec::new(), ..(*p).clone() }));
    }
    let derived = many(&result);
    let run = page(&result, &derived);
    let source = Source { run, file: "big.json".into(), records: None };
    let text = html::page(&[source], &[]);
    assert!((1_000_000..10_000_000).contains(&text.len()), "{}", text.len());
    assert!(text.contains("992 more partitions are not drawn"), "the panels of eight are");
}

/// What follows from so many partitions, as far as a page shows it; the real one is made of more records than a test has time for.
fn many(result: &RunResult) -> Derived {
    let mut derived = derive(&fixtures::ladder());
    let (types, partitions) = (std::mem::take(&mut derived.types), std::mem::take(&mut derived.partitions));
    for ranks in result.partitions.iter().map(|p| p.ranks) {
        derived.types.extend(types.iter().map(|t| TypeValue { ranks, ..t.clone() }));
        derived.partitions.extend(partitions.iter().map(|p| PartitionValue { ranks, ..p.clone() }));
    }
    derived
}
