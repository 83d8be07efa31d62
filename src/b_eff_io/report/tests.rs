//! The report of b_eff_io on a screen, in full and on a page.

use super::*;
use crate::b_eff_io::cli::IoArgs;
use crate::b_eff_io::config::{RepeatPolicy, Variant};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PartitionRecord, PatternRecord, StopReason, TypeRecord};
use crate::b_eff_io::values::{PartitionValue, TypeValue};
use crate::frame::benchmark::has_option;
use crate::frame::records::{AccessMethod, RunOutcome};
use crate::frame::report::checks::{
    assert_full_fits, assert_page, assert_screen_fits, full_text, hostile_name, one_warning_of_each_kind,
};
use crate::frame::report::html::{page, PageRun};
use crate::frame::report::{DisplayContext, SaveStatus};
use crate::frame::values::NULL_BACKEND;

fn saved() -> SaveStatus {
    SaveStatus::SavedTo([".jsonl", ".json", ".csv", ".sum"].map(|end| format!("results/run1{end}").into()).into())
}

fn assert_fits(result: &RunResult, what: &str) -> String {
    assert_screen_fits(result, layout::storage_backends(result).count(), saved(), what)
}

fn render(result: &RunResult, saved: SaveStatus, columns: usize) -> String {
    result.sheet(&derive(result), DetailLevel::Screen, &DisplayContext { columns, saved }).render(false)
}

#[test]
fn golden_reports() {
    for (name, result, _) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.screen"), assert_fits(&result, name));
        insta::assert_snapshot!(format!("{name}.full"), full_text(&result, DetailLevel::Full));
    }
    let mut one = fixtures::ladder();
    one.config.backends = vec!["mpiio".into()];
    insta::assert_snapshot!("one.screen", assert_fits(&one, "one"));
    insta::assert_snapshot!("failed.details", full_text(&fixtures::failed(), DetailLevel::Details));
    // The details of all types and access methods have the same format: a few are enough.
    for (name, mut result) in [("few", fixtures::ladder()), ("again", fixtures::repeated())] {
        let is_one = |p: &PatternRecord| p.access != AccessMethod::Rewrite && p.pattern < 17;
        result.config.backends.retain(|backend| ["mpiio", "uring"].contains(&backend.as_str()));
        result.patterns.retain(is_one);
        result.repetitions.retain(|r| is_one(&r.measurement));
        insta::assert_snapshot!(format!("{name}.details"), full_text(&result, DetailLevel::Details));
    }
}

/// Variants of uring, one of them with wrong data, one not run.
fn with_variants() -> RunResult {
    let mut result = fixtures::ladder();
    result.config.backends = vec!["mpiio".into(), "uring".into()];
    result.patterns.retain(|p| ["mpiio", "uring"].contains(&p.backend.as_str()));
    for (name, depth, seconds) in
        [("same", None, 1.0), ("deep", Some(64), 0.7), ("bad", Some(2), 0.5), ("none", None, 1.0)]
    {
        let backend = format!("uring+{name}");
        let of_uring: Vec<PatternRecord> = result.patterns.iter().filter(|p| p.backend == "uring").cloned().collect();
        result.patterns.extend(of_uring.into_iter().map(|mut p| {
            p.backend.clone_from(&backend);
            p.intervals.transfer_seconds *= seconds;
            // Each has noise of its own.
            let places = name.len().min(p.rounds.len());
            p.rounds.rotate_left(places);
            for (round, number) in p.rounds.iter_mut().zip(1..) {
                (round.number, round.seconds) = (number, round.seconds * seconds);
            }
            if name == "none" {
                (p.calls, p.moved_bytes, p.ended) =
                    (0, 0, StopReason::NotRun("the library grants it the same hints".into()));
            }
            p
        }));
        let types: Vec<TypeRecord> = result.types.iter().filter(|t| t.backend == "uring").cloned().collect();
        result.types.extend(types.into_iter().map(|t| TypeRecord { backend: backend.clone(), ..t }));
        result.config.backends.push(backend.clone());
        result.config.variants.push(Variant { backend, queue_depth: depth, ..Variant::default() });
    }
    let wrong = result.patterns.iter_mut().find(|p| p.backend == "uring+bad" && p.access == AccessMethod::Read);
    wrong.unwrap().verification.words_wrong = 3;
    result
}

#[test]
fn golden_report_of_variants() {
    let result = with_variants();
    insta::assert_snapshot!("variants.screen", assert_fits(&result, "variants"));
    let full = full_text(&result, DetailLevel::Full);
    let (_, section) = full.split_once("Variants and their backends").unwrap();
    insta::assert_snapshot!("variants.section", section.split_once("Bandwidth").map_or(section, |(own, _)| own));
    assert_full_fits(&result, "b_eff_io (", "variants");
    assert_page(&result, "variants");
    let mut many = fixtures::ladder();
    many.config.variants = (0..16)
        .map(|n| Variant { backend: format!("uring+variant-{n:04}"), ..Variant::default() })
        .inspect(|variant| many.config.backends.push(variant.backend.clone()))
        .collect();
    assert_fits(&many, "many variants");
}

/// Bounds of the screen, of the lines of the full text, and of a page, for any file.
#[test]
fn every_result_keeps_the_bounds() {
    for (name, result, _) in fixtures::all() {
        let with = |change: &dyn Fn(&mut RunResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            let what = format!("{name}, {what}");
            assert_full_fits(&result, "b_eff_io (", &what);
            [assert_fits(&result, &what), assert_page(&result, &what)]
        };
        for outcome in [RunOutcome::Failed, RunOutcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(&|r| r.patterns.iter_mut().for_each(|p| p.ended = StopReason::NotRun("no ".repeat(90))), "not run");
        with(&|r| r.patterns.iter_mut().for_each(|p| p.ended = StopReason::Error), "errors");
        with(&|r| r.patterns.clear(), "no patterns");
        with(&|r| two_phase(r, |p| p.access == AccessMethod::Write), "two-phase first writes");
        with(&nothing, "nothing");
        with(&everything_that_goes_wrong, "everything that goes wrong");
        let [screen, page] = with(&hostile, "hostile names");
        assert!(!screen.contains('\u{1b}') && !screen.contains('\u{202e}'), "{screen}");
        assert!(!page.contains('\u{202e}') && page.contains("&lt;/script&gt;"), "shown as it is");
        with(&|r| r.config.backends.extend((0..9).map(|n| format!("more{n}"))), "many backends");
        for factor in [1e-300, 1e-12, 1e12, 1e300, 0.0, -1.0, f64::NAN, f64::INFINITY] {
            with(&|r| r.patterns.iter_mut().for_each(|p| p.intervals.transfer_seconds *= factor), "odd times");
        }
        with(&|r| r.patterns.iter_mut().for_each(|p| p.moved_bytes = u64::MAX), "odd bytes");
    }
}

fn nothing(r: &mut RunResult) {
    (r.patterns, r.types, r.partitions) = Default::default();
    r.manifest.machine.hosts.clear();
}

fn everything_that_goes_wrong(r: &mut RunResult) {
    r.warnings = one_warning_of_each_kind::<RunResult>();
    r.corruptions = fixtures::failed().corruptions;
    r.errors = vec![fixtures::failed().errors.remove(0); 9];
    r.ending.outcome = RunOutcome::Interrupted;
}

fn hostile(r: &mut RunResult) {
    let long = format!("</script><script>alert(1)</script>'\"{}", hostile_name());
    let (manifest, machine) = (&mut r.manifest.storage, &mut r.manifest.machine);
    for text in [&mut manifest.path, &mut manifest.source, &mut manifest.fs_type, &mut manifest.mount_options] {
        text.clone_from(&long);
    }
    machine.mpi_library.clone_from(&long);
    machine.started_utc.clone_from(&long);
    machine.environment = vec![("ROMIO_HINTS".into(), long.clone())];
    machine.hosts.iter_mut().for_each(|host| host.name.clone_from(&long));
    r.errors = fixtures::failed().errors;
    r.errors.iter_mut().for_each(|e| e.message.clone_from(&long));
    r.config.backends.iter_mut().for_each(|name| name.push_str(&long));
    r.patterns.iter_mut().for_each(|p| p.backend.push_str(&long));
    r.types.iter_mut().for_each(|t| t.backend.push_str(&long));
}

fn two_phase(result: &mut RunResult, is_so: impl Fn(&PatternRecord) -> bool) {
    let of = result.patterns.iter_mut().filter(|p| is_so(p));
    of.for_each(|p| p.strategy = "two-phase pwrite, direct".into());
}

#[test]
fn two_phase_writes_with_other_rewrites_are_reported() {
    let note_for = |is_so: fn(&PatternRecord) -> bool| {
        let mut result = fixtures::ladder();
        two_phase(&mut result, is_so);
        let text = render(&result, saved(), 80);
        text.lines().find(|line| line.contains("two-phase")).map(|line| line.trim().to_owned())
    };
    let small: fn(&PatternRecord) -> bool = |p| p.chunk_bytes == 1024 && p.pattern_type.is_strided();
    let first = note_for(|p| p.access == AccessMethod::Write && p.chunk_bytes == 1024 && p.pattern_type.is_strided());
    assert_eq!(first.as_deref(), Some("1 kB, scatter and shared: first writes are two-phase, rewrites not"));
    assert_eq!(note_for(small), None, "both are");
    assert_eq!(note_for(|_| false), None, "none is");
}

#[test]
fn the_value_is_one_line_for_grep() {
    let text = render(&fixtures::complete(), saved(), 80);
    let values: Vec<&str> = text.lines().filter(|line| line.starts_with("b_eff_io (")).collect();
    assert_eq!(values.len(), 2, "{text}");
    assert!(values[0].ends_with(", mpiio, VALID") && values[1].ends_with(", posix, NOT VALID"), "{values:?}");
}

#[test]
fn the_last_lines_are_the_results() {
    let result = fixtures::complete();
    let text = full_text(&result, DetailLevel::Details);
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("b_eff_io (")).collect();
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(found, [last[1], last[0]], "one line for each backend, for grep");
    for (line, system) in found.iter().zip(&derive(&result).systems) {
        let value = system.values.release_1.unwrap();
        let expected = format!("b_eff_io (release 1) = {value:.3} MB/s on 4 ranks, {}, ", system.backend);
        assert!(line.starts_with(&expected), "{line}");
    }
    assert!(found[0].ends_with("mpiio, VALID"), "{found:?}");
    assert!(found[1].ends_with("posix, NOT VALID (1 criterion not met)"), "{found:?}");
}

#[test]
fn missing_criteria_are_described() {
    let mut result = fixtures::ladder();
    result.partitions[0].time_seconds = 15.0;
    let text = render(&result, saved(), 80);
    assert!(text.contains("too short for a comparable value; the individual"), "{text}");
    let full = full_text(&result, DetailLevel::Full).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(full.contains("stand (T is 15 s, 15 min needed)"), "{full}");
    assert!(text.contains("--time 15m") && !text.contains(">="), "{text}");
}

#[test]
fn a_run_without_its_end_says_so_first_and_last() {
    for (result, word) in [(fixtures::interrupted(), "INTERRUPTED"), (fixtures::failed(), "FAILED")] {
        let [screen, text] = [render(&result, saved(), 80), full_text(&result, DetailLevel::Full)];
        assert!(screen.lines().next().unwrap().starts_with(&format!("*** {word}")), "{screen}");
        assert!(text.lines().next().unwrap().contains(word) && text.lines().last().unwrap().contains(word));
    }
    let text = render(&fixtures::failed(), saved(), 80);
    let error = "  error       mpiio read pattern 5, rank 1 (2 ranks";
    assert!(text.contains("*** DATA CORRUPTION") && text.contains(error), "{text}");
    assert!(["--time", "compare", "because", "stands out"].iter().all(|advice| !text.contains(advice)), "{text}");
    assert!(full_text(&fixtures::failed(), DetailLevel::Full).lines().last().unwrap().contains("DATA CORRUPTION"));
}

#[test]
fn a_cut_run_advises_to_measure_its_rest() {
    let words = |result: &RunResult| render(result, saved(), 80).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut result = fixtures::interrupted();
    result.config.backends = vec!["mpiio".into()];
    for outcome in [RunOutcome::Interrupted, RunOutcome::Limit, RunOutcome::Killed] {
        result.ending.outcome = outcome;
        result.config.out = None;
        let text = words(&result);
        assert!(text.contains("the same with --out NAME a run that is cut") && !text.contains("--time 15m"), "{text}");
        result.config.out = Some("a long directory/run1".into());
        let text = words(&result);
        let expected =
            "mpirun -n 4 beff-raw io --continue 'a long directory/run1.jsonl' --out 'a long directory/run1-2'";
        assert!(text.contains(expected) && !text.contains("--time 15m"), "{text}");
    }
    result.ending.outcome = RunOutcome::Complete;
    assert!(!words(&result).contains("--continue"));
}

#[test]
fn no_reason_ends_without_the_option_that_shows_its_rest() {
    for (name, result, _) in fixtures::all() {
        let text = render(&result, saved(), 80);
        let cut = |line: &&str| line.contains(" ...") && !line.ends_with(" ... (--full)");
        assert_eq!(text.lines().find(cut), None, "{name}: {text}");
    }
}

#[test]
fn what_to_type_next_names_the_files() {
    let result = fixtures::complete();
    let text = render(&result, saved(), 80);
    let next = ["results/run1.jsonl .json .csv .sum", "beff-raw report results/run1.json --full"];
    assert!(next.iter().all(|part| text.contains(part)), "{text}");
    let text = render(&result, SaveStatus::NotSaved, 80);
    assert!(text.contains("--out NAME") && text.contains("--full"), "{text}");
    let text = render(&result, SaveStatus::LoadedFrom("a b.jsonl".into()), 80);
    assert!(text.contains("beff-raw report 'a b.jsonl' --full"), "{text}");
}

#[test]
fn the_marks_that_are_used_are_explained() {
    let mut result = fixtures::complete();
    result.patterns.iter_mut().filter(|p| p.access == AccessMethod::Write).for_each(|p| p.ended = StopReason::Space);
    for text in [render(&result, saved(), 80), full_text(&result, DetailLevel::Full)] {
        assert!(text.contains("s ended by its space share"), "{text}");
    }
}

#[test]
fn the_screen_is_as_wide_as_the_terminal() {
    let result = fixtures::failed();
    for columns in [0, 40, 80, 100, 110, 500] {
        let text = render(&result, saved(), columns);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.clamp(80, 110), "{columns}: {widest}");
    }
}

/// A value of release 2.1 differs from that of its program.
#[test]
fn the_caveat_of_release_2_1_is_printed_with_its_value() {
    let said = |result: &RunResult| full_text(result, DetailLevel::Full).contains("deletion of its files");
    assert_eq!([fixtures::complete(), fixtures::interrupted()].map(|result| said(&result)), [true, false]);
}

#[test]
fn moving_nothing_is_no_result() {
    let result = fixtures::ladder();
    let text = full_text(&result, DetailLevel::Full);
    assert_eq!(text.lines().filter(|line| line.contains("weighted avg.")).count(), 3);
    assert!(text.contains("Harness overhead") && !text.contains("null, MB/s"));
    assert!(!text.lines().any(|line| line.starts_with("b_eff_io (") && line.contains("null")));
    let mut alone = result;
    alone.config.backends = vec![NULL_BACKEND.to_owned()];
    alone.config.release = Release::R2_1;
    let [screen, text] = [render(&alone, saved(), 80), full_text(&alone, DetailLevel::Full)];
    assert!(text.lines().last().unwrap().contains("no b_eff_io") && screen.contains("no b_eff_io"));
    assert!(!text.contains("b_eff_io (release") && !screen.contains("b_eff_io (release"));
    assert_page(&alone, "null");
}

#[test]
fn what_was_not_measured_has_no_number() {
    let mut result = fixtures::complete();
    let is_read = |p: &PatternRecord| p.access == AccessMethod::Read;
    result.patterns.iter_mut().filter(|p| is_read(p)).for_each(|p| p.ended = StopReason::NotRun("of a reason".into()));
    result.patterns.iter_mut().filter(|p| is_read(p)).for_each(|p| (p.moved_bytes, p.calls) = (0, 0));
    let text = full_text(&result, DetailLevel::Full);
    let row = text.lines().find(|line| line.starts_with("  read     1 kB  ")).unwrap();
    assert_eq!(row.split_whitespace().skip(3).collect::<Vec<_>>(), ["x"; 5], "{text}");
    result.patterns.retain(|p| p.access == AccessMethod::Write);
    assert!(full_text(&result, DetailLevel::Full).contains("  read     not measured"));
    nothing(&mut result);
    assert!(full_text(&result, DetailLevel::Details).contains("nothing was measured"));
}

#[test]
fn criteria_of_all_releases_are_listed_once() {
    let text = full_text(&fixtures::complete(), DetailLevel::Full);
    let validity = text.split("Validity for comparison").nth(1).unwrap().split("\nWarnings").next().unwrap();
    assert_eq!(validity.matches("run complete").count(), 1, "{validity}");
    assert_eq!(validity.matches("scheduled time").count() + validity.matches("too short").count(), 3, "{validity}");
}

/// With repetitions of long calls only, the other patterns have rounds: they are not listed as unknown, and no value has an interval.
#[test]
fn repetitions_for_ratios_are_not_evidence_for_other_patterns() {
    let mut result = fixtures::repeated();
    for (policy, expected) in [(RepeatPolicy::Auto, true), (RepeatPolicy::Rounds, false)] {
        result.config.repeat = policy;
        let derived = derive(&result);
        let text = full_text(&result, DetailLevel::Details);
        for part in ["measured less than 3 times", "in the remaining time of T (values are"] {
            assert_eq!(text.contains(part), expected, "{policy:?}: {part}");
        }
        assert!(text.contains("95 % intervals, MB/s"), "{policy:?}");
        assert_eq!(derived.intervals.types.is_empty() && derived.intervals.values.is_empty(), !expected, "{policy:?}");
    }
}

/// Open circles are reads from a cache, grey marks have few calls.
#[test]
fn what_is_not_what_it_seems_looks_different() {
    let mut result = fixtures::complete();
    result.partitions.retain(|p| p.ranks == 4);
    result.patterns.retain(|p| p.ranks == 4);
    let text = assert_page(&result, "marks");
    assert!(text.contains("class=\"o k0\"") && text.contains("read from a cache") && !text.contains("from few calls"));
    result.patterns.iter_mut().filter(|p| p.access == AccessMethod::Write).for_each(|p| p.calls = 3);
    let text = assert_page(&result, "marks");
    assert!(text.contains("class=\"p g\"") && text.contains("from few calls"));
}

#[test]
fn every_backend_has_its_panels_and_the_ladder_its_shades() {
    let result = fixtures::ladder();
    let model = result.model(&result.derived_for_page(), DetailLevel::Page);
    let names: Vec<&str> = model.sections.iter().map(|s| s.name).collect();
    assert_eq!(names, ["values", "cache", "ladder", "bandwidth", "time", "latency", "program", "timeline"]);
    let panels = model.sections[3].pictures();
    let expected = ["mpiio", "posix", "uring", "mmap"].map(|b| (format!("{b}-2-ranks-bandwidth"), 3));
    assert_eq!(panels.iter().map(|p| (p.name.clone(), p.frames.len())).collect::<Vec<_>>(), expected);
    let text = assert_page(&result, "ladder");
    assert!(text.contains("class=\"h9 b\"") && text.len() < 550_000, "{}", text.len());
}

/// A thousand partitions with four backends each: few are drawn, all are in the text.
#[test]
fn many_partitions_are_one_page_and_one_text() {
    let one = fixtures::ladder();
    let mut result = one.clone();
    result.config.backends.retain(|b| b != NULL_BACKEND);
    result.config.types = vec![PatternType::Scatter];
    let few: Vec<_> =
        one.patterns.iter().filter(|p| p.backend != NULL_BACKEND && [1, 5].contains(&p.pattern)).collect();
    (result.patterns, result.types, result.partitions) = Default::default();
    for ranks in 1..=1000 {
        result.partitions.push(PartitionRecord { ranks, ..one.partitions[0].clone() });
        result.patterns.extend(few.iter().map(|p| PatternRecord { ranks, rounds: Vec::new(), ..(*p).clone() }));
    }
    let derived = derived_of_many(&result);
    let source = PageRun { model: result.model(&derived, DetailLevel::Page), file: "big.json".into(), records: None };
    let text = page(&[source], &[]);
    assert!((1_000_000..10_000_000).contains(&text.len()), "{}", text.len());
    assert!(text.contains("992 more partitions are not drawn"), "the panels of eight are");
    let text = result.sheet(&derived, DetailLevel::Full, &DisplayContext::default()).render(false);
    assert_eq!(text.matches("\nBackends side by side, ").count(), 1000);
}

/// Derived values of many partitions as far as a page shows them; deriving them from records would take too long in a test.
fn derived_of_many(result: &RunResult) -> Derived {
    let mut derived = derive(&fixtures::ladder());
    let (types, partitions) = (std::mem::take(&mut derived.types), std::mem::take(&mut derived.partitions));
    for ranks in result.partitions.iter().map(|p| p.ranks) {
        derived.types.extend(types.iter().map(|t| TypeValue { ranks, ..t.clone() }));
        derived.partitions.extend(partitions.iter().map(|p| PartitionValue { ranks, ..p.clone() }));
    }
    derived
}

#[test]
fn every_suffix_has_its_view() {
    for (name, result, _) in fixtures::all() {
        let derived = derive(&result);
        for suffix in suffixes(&result.config.backends) {
            assert!(!result.file_bytes(&derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
        }
        assert_eq!(result.file_bytes(&derived, ".txt").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn summaries_name_the_backend_only_if_there_are_several() {
    assert_eq!(suffixes(&["posix".into()]), [".json", ".csv", ".sum"]);
    assert_eq!(suffixes(&["mpiio".into(), "posix".into()]), [".json", ".csv", ".mpiio.sum", ".posix.sum"]);
}

#[test]
fn every_option_in_a_report_exists() {
    let pages = fixtures::all().into_iter().map(|(_, result, _)| full_text(&result, DetailLevel::Details));
    let next_steps = KINDS.iter().map(|kind| kind.next_step.to_owned());
    let is_option = |c: char| c.is_ascii_lowercase() || c == '-';
    for text in pages.chain(next_steps) {
        let words = text.split_whitespace().map(|word| word.trim_start_matches(['`', '(']));
        for word in words.filter_map(|word| word.strip_prefix("--")) {
            let name: String = word.chars().take_while(|&c| is_option(c)).collect();
            assert!(name.trim_matches('-').is_empty() || has_option::<IoArgs>(&name), "--{name}");
        }
    }
}
