use super::*;
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::values::derive;
use crate::frame::records::Evidence;

fn sentences(change: impl FnOnce(&mut RunResult)) -> Vec<String> {
    let mut result = fixtures::ladder();
    change(&mut result);
    let derived = derive(&result);
    let verdicts = derived.ladder.verdicts.iter();
    verdicts
        .map(|v| format!("{}, {}: {}", v.access.name(), subject(&result, v), sentence(&result, &derived, v)))
        .collect()
}

fn find(sentences: &[String], start: &str) -> String {
    sentences.iter().find(|s| s.starts_with(start)).unwrap_or_else(|| panic!("{start}: {sentences:#?}")).clone()
}

#[test]
fn golden_verdicts() {
    insta::assert_snapshot!("verdicts", sentences(|_| {}).join("\n"));
}

#[test]
fn reads_from_memory_are_no_comparison_of_storage() {
    let of_drop =
        find(&sentences(|r| edit_reads(r, "uring", |p| p.storage_read_bytes = Some(0))), "read, type 1 shared:");
    assert!(
        of_drop.contains("uring read 100 % from memory, so this does not compare storage: --cache drop did not help")
    );
    let both = sentences(|r| {
        r.config.cache = CachePolicy::Keep;
        edit_reads(r, "uring", |p| p.storage_read_bytes = Some(p.moved_bytes / 2));
        edit_reads(r, "mpiio", |p| p.storage_read_bytes = Some(0));
    });
    let both = find(&both, "read, type 1 shared:");
    let expected =
        "mpiio read 100 % and uring 50 % from memory, so this does not compare storage: compare with --cache drop.";
    assert!(both.ends_with(expected), "{both}");
    let unknown = sentences(|r| {
        edit_reads(r, "uring", |p| {
            p.storage_read_bytes = None;
            p.evidence = Evidence::default();
        });
    });
    assert!(
        find(&unknown, "read, type 1 shared:").ends_with("The source of reads of uring is unknown."),
        "{unknown:#?}"
    );
    assert!(!find(&unknown, "write, type 1 shared:").contains("known"), "a write has no source");
}

fn edit_reads(result: &mut RunResult, backend: &str, change: impl FnMut(&mut PatternRecord)) {
    result.patterns.iter_mut().filter(|p| p.backend == backend && p.access == AccessMethod::Read).for_each(change);
}

#[test]
fn direct_against_buffered_is_reported() {
    let only = |r: &mut RunResult, keep: [&str; 2]| r.config.backends = keep.map(str::to_owned).to_vec();
    let some = sentences(|r| {
        only(r, ["posix", "uring"]);
        r.patterns.iter_mut().filter(|p| p.backend == "posix").for_each(|p| p.direct = Some(false));
    });
    assert!(
        find(&some, "write, type 0 scatter:").ends_with("Direct are 0 of 9 patterns of posix, 6 of uring."),
        "{some:#?}"
    );
    let pattern = some.iter().find(|s| s.starts_with("write") && s.contains("(pattern ") && s.contains("is direct"));
    assert!(pattern.is_some_and(|s| s.ends_with("uring is direct, posix goes through the page cache.")), "{some:#?}");
    let none = sentences(|r| only(r, ["mpiio", "uring"]));
    assert!(!none.iter().any(|s| s.contains("irect")), "mpiio cannot tell: {none:#?}");
}

#[test]
fn wrong_and_missing_data_is_reported() {
    let text = sentences(|r| {
        edit_reads(r, "mpiio", |p| p.verification.words_wrong = u64::from(p.pattern == 37));
        r.patterns.retain(|p| p.backend != "uring" || p.access != AccessMethod::Read || p.pattern != 38);
    });
    let of_type = find(&text, "read, type 4 seg-coll:");
    assert!(of_type.contains("Data of mpiio was wrong. uring did not run all patterns of the type."), "{of_type}");
}

#[test]
fn equal_narrow_and_equal_wide_are_not_the_same() {
    let verdict = |low: f64, high: f64| {
        let mut v = derive(&fixtures::ladder()).ladder.verdicts.swap_remove(0);
        v.ratio.interval = Some(Interval { low, high });
        (v.ratio.value, v.ratio.equal) = (1.02, Some(true));
        comparison(&v, true)
    };
    assert_eq!(verdict(0.97, 1.08), "mpiio and uring are equal (ratio 1.02 [0.97, 1.08])");
    assert_eq!(verdict(0.8, 1.3), "mpiio and uring cannot be distinguished (ratio 1.02 [0.80, 1.30])");
    let wide = "mpiio and uring cannot be distinguished (ratio 1.02, too much scatter for an interval)";
    assert_eq!(verdict(0.5, 2.0), wide);
}
