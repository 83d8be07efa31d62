use super::*;
use crate::b_eff_io::config::InjectedFault;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{ContinuationRecord, RunResult, UnitRecord, Verification};
use crate::b_eff_io::values::derive;
use crate::b_eff_io::values::fixture::{edit_pattern, full_run, run_of_release};
use crate::frame::records::{ErrorRecord, RunOutcome};

const RELEASES: [Release; 3] = [Release::R0_5, Release::R1, Release::R2_1];

fn unmet(result: &RunResult, release: Release) -> Vec<String> {
    let judged = judged(result, release);
    let unmet: Vec<String> = judged.criteria.into_iter().filter(|c| !c.met).map(|c| c.text).collect();
    assert_eq!(judged.valid, unmet.is_empty());
    unmet
}

fn judged(result: &RunResult, release: Release) -> Validity {
    derive(result).validity.into_iter().find(|v| v.release == release).unwrap()
}

/// Asserts that exactly these criteria are not met, in this order; each begins with these words.
#[track_caller]
fn assert_unmet(result: &RunResult, release: Release, expected: &[&str], what: &str) {
    let found = unmet(result, release);
    let same = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    assert!(same, "{what}, release {}: not met are {found:#?}, expected {expected:?}", release.name());
}

/// Asserts that the run is valid by the definition, with exactly these caveats, in this order; each begins with these words.
#[track_caller]
fn assert_caveats(result: &RunResult, release: Release, expected: &[&str], what: &str) {
    assert_unmet(result, release, &[], what);
    let found = judged(result, release).caveats;
    let same = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    assert!(same, "{what}, release {}: caveats are {found:#?}, expected {expected:?}", release.name());
}

#[test]
fn a_run_by_the_book_of_a_release_is_valid() {
    for release in RELEASES {
        assert_caveats(&run_of_release(release), release, &[], "by the book");
    }
    // Releases 0.5 and 1 run the same.
    assert_unmet(&run_of_release(Release::R0_5), Release::R1, &[], "0.5");
    assert_unmet(&run_of_release(Release::R1), Release::R0_5, &[], "1");
}

/// Options that do not affect the validity.
#[test]
fn what_the_rules_leave_free_costs_nothing() {
    let free: [(Violation, &str); 9] = [
        (|r| r.config.cache = CachePolicy::Drop, "cached pages dropped"),
        (|r| r.config.latency = true, "every call timed"),
        (|r| r.config.termination = crate::b_eff_io::config::Termination::PerCall, "a decision after each call"),
        (|r| r.config.seed = 7, "seed"),
        (|r| r.config.keep_files = true, "files kept"),
        (|r| r.config.backends.push("posix".into()), "other backends take turns, pattern by pattern"),
        (|r| r.patterns.iter_mut().for_each(|p| p.budget_seconds *= 0.91), "a small deduction"),
        (|r| r.config.space_limit = crate::b_eff_io::config::SpaceLimit::Bytes(1 << 40), "space that suffices"),
        (|r| r.manifest.machine.hosts[0].cores = 1, "more ranks than cores: a warning"),
    ];
    for release in RELEASES {
        for (change, what) in free {
            let mut result = run_of_release(release);
            change(&mut result);
            assert_caveats(&result, release, &[], what);
        }
    }
    let mut result = run_of_release(Release::R2_1);
    result.config.unique_open = true;
    assert_unmet(&result, Release::R2_1, &[], "the program of 2001 used unique open");
    let mut result = run_of_release(Release::R2_1);
    only_scatter_is_rewritten(&mut result);
    assert_unmet(&result, Release::R2_1, &[], "release 2.1 rewrites type 0");
}

#[test]
fn a_run_of_another_release_has_another_schedule() {
    assert_unmet(&full_run(), Release::R2_1, &["schedule of release 2.1 (run by that of release 1)"], "1");
    for release in [Release::R0_5, Release::R1] {
        assert_unmet(&run_of_release(Release::R2_1), release, &["schedule of releases 0.5 and 1"], "2.1");
        let mut scatter = run_of_release(Release::R2_1);
        only_scatter_is_rewritten(&mut scatter);
        assert_unmet(&scatter, release, &["schedule of releases 0.5 and 1", "all patterns run (incomplete: 12"], "2.1");
    }
}

type Violation = fn(&mut RunResult);

/// A broken rule, and the criteria that a run of releases 0.5, 1 and 2.1 then does not meet.
type RuleCase = (&'static str, Violation, [&'static [&'static str]; 3]);

const fn all(unmet: &'static [&'static str]) -> [&'static [&'static str]; 3] {
    [unmet; 3]
}

const NONE: &[&str] = &[];

const RELEASE_RULES: [RuleCase; 16] = [
    (
        "the other schedule",
        |r| r.config.release = if r.config.release == Release::R2_1 { Release::R1 } else { Release::R2_1 },
        [&["schedule of releases 0.5 and 1"], &["schedule of releases 0.5 and 1"], &["schedule of release 2.1"]],
    ),
    ("30 minutes of 2.1", |r| time(r, 1799.0), [NONE, NONE, &["scheduled time of a partition 30.0 min >= 30"]]),
    ("15 minutes of 1", |r| time(r, 899.0), [NONE, &["scheduled time"], &["scheduled time"]]),
    ("10 minutes of 0.5", |r| time(r, 599.0), all(&["scheduled time"])),
    (
        "more data than memory",
        |r| r.manifest.machine.hosts[0].memory_bytes = 1 << 50,
        [&["bytes of the first write"], NONE, NONE],
    ),
    ("unique open", |r| r.config.unique_open = true, [&["files opened without"], &["files opened without"], NONE]),
    (
        "a read of fewer calls than the write",
        |r| edit_pattern(r, 4, AccessMethod::Read, 12, |p| (p.calls, p.ended) = (999, StopReason::Time)),
        [NONE, NONE, &["rewrites and reads repeat the counts of the first write (1: read of pattern 12 on 4 ranks)"]],
    ),
    ("a strided view in type 1", |r| r.config.shared_pointer = false, all(&["shared file pointer"])),
    ("two rounds", |r| r.config.rounds = 2, all(&["one loop and one sync for each pattern (rounds 2)"])),
    (
        "segments of a stripe",
        |r| r.config.segment_multiple_bytes = 4 << 20,
        all(&["segments are multiples of 1 MiB (of 4 MiB)"]),
    ),
    (
        "ranks read other ranks' data",
        |r| r.config.cache = CachePolicy::RankShift,
        all(&["ranks rewrite and read what they wrote"]),
    ),
    (
        "types omitted",
        |r| types(r, &[PatternType::Scatter, PatternType::Shared, PatternType::Separate]),
        all(&["all patterns run (incomplete"]),
    ),
    (
        "rewrite of type 0 only",
        only_scatter_is_rewritten,
        [&["all patterns run (incomplete"], &["all patterns run (incomplete"], NONE],
    ),
    (
        "M_PART of less space",
        |r| m_part(r, 4 << 30, 2 << 20),
        all(&["M_PART within 1 % of the definition (used 2 MiB, memory / 128 is 32 MiB, ratio 0.062)"]),
    ),
    ("M_PART of memory that was given", |r| m_part(r, 4 << 30, 33 << 20), all(&["M_PART within 1 %"])),
    ("M_PART above the cap", |r| m_part(r, 1 << 40, 8 << 30), [NONE, NONE, &["M_PART"]]),
];

/// Further criteria, for every value.
const COMMON_RULES: [RuleCase; 11] = [
    ("another backend", through_posix, all(&["measured through MPI-IO (backend posix)"])),
    ("a signal", |r| r.ending.outcome = RunOutcome::Interrupted, all(&["run complete (interrupted)"])),
    ("a limit", |r| r.ending.outcome = RunOutcome::Limit, all(&["run complete (ended by the time limit)"])),
    ("a kill", |r| r.ending.outcome = RunOutcome::Killed, all(&["run complete (killed)"])),
    ("an error", |r| r.errors.push(error()), all(&["I/O errors 1 == 0"])),
    (
        "wrong data",
        |r| edit_pattern(r, 2, AccessMethod::Read, 20, |p| p.verification.words_wrong = 3),
        all(&["wrong data words 3 == 0"]),
    ),
    (
        "wrong data in the files",
        |r| r.types[3].full_verification = Some(Verification { words_checked: 9, words_wrong: 2 }),
        all(&["wrong data words 2 == 0"]),
    ),
    (
        "a pattern not run",
        |r| {
            edit_pattern(r, 2, AccessMethod::Read, 20, |p| {
                (p.calls, p.ended) = (0, StopReason::NotRun("direct".into()))
            })
        },
        all(&["all patterns run (incomplete: 1: read of type 2 on 2 ranks)"]),
    ),
    (
        "a pattern that an error ended",
        |r| edit_pattern(r, 2, AccessMethod::Read, 20, |p| (p.calls, p.ended) = (3, StopReason::Error)),
        all(&["all patterns run"]),
    ),
    (
        "a file never closed",
        |r| r.types.truncate(r.types.len() - 1),
        all(&["all patterns run (incomplete: 1: read of type 4 on 4 ranks)"]),
    ),
    (
        "space",
        |r| edit_pattern(r, 4, AccessMethod::Write, 10, |p| p.ended = StopReason::Space),
        all(&["no pattern ended by its share of the space (1: write of pattern 10 on 4 ranks)"]),
    ),
];

/// Rules of this program alone, and the caveats of a run that violates them.
const OWN_RULES: [RuleCase; 8] = [
    (
        "a partition omitted",
        |r| r.partitions.retain(|p| p.ranks > 2),
        [NONE, NONE, &["partitions of 3, 4 ranks, not the default 2, 3, 4"]],
    ),
    (
        "more ranks than in any partition",
        |r| r.manifest.machine.ranks = 8,
        [NONE, NONE, &["partitions of 2, 3, 4 ranks"]],
    ),
    (
        "deducted time",
        |r| {
            edit_pattern(r, 4, AccessMethod::Write, 12, |p| {
                (p.budget_seconds, p.ended) = (0.89 * p.scheduled_seconds, StopReason::Time)
            })
        },
        all(&["write of pattern 12 on 4 ranks: less than 90 % of the time"]),
    ),
    (
        "counts cut by the time guard",
        |r| edit_pattern(r, 4, AccessMethod::Write, 39, |p| p.ended = StopReason::TimeGuard),
        all(&["write of pattern 39 on 4 ranks: cut by the time guard"]),
    ),
    (
        "all read before the reads",
        |r| r.config.verify = Verify::Full,
        all(&["files accessed between the patterns (--verify"]),
    ),
    (
        "an injected fault",
        |r| r.config.inject = Some(InjectedFault::Hole),
        all(&["files accessed between the patterns (--inject)"]),
    ),
    (
        "continued after a cut",
        |r| r.continuations.push(continuation()),
        all(&["read of type 0 on 4 ranks: cut in an earlier run"]),
    ),
    ("reused buffers", |r| r.config.buffers = BufferPolicy::Reused, all(&["reused buffers"])),
];

fn continuation() -> ContinuationRecord {
    ContinuationRecord {
        journal: "cut.jsonl".into(),
        started_utc: "2026-11-29T12:00:00Z".into(),
        units_kept: 10,
        cut_in: Some(UnitRecord { ranks: 4, access: AccessMethod::Read, pattern_type: PatternType::Scatter }),
        types_reused: 4,
        types_rebuilt: 1,
        rebuild_seconds: 3.0,
        files_left: None,
    }
}

/// A run that was cut between its first measurement and the end of its repetitions has every unit of one run.
#[test]
fn a_run_continued_in_its_repetitions_is_valid() {
    let mut result = run_of_release(Release::R1);
    result.continuations.push(ContinuationRecord { cut_in: None, ..continuation() });
    assert_unmet(&result, Release::R1, &[], "repetitions");
}

/// Each broken rule alone invalidates the releases that have it, for that reason only.
#[test]
fn one_broken_rule_is_one_criterion_not_met() {
    for (what, damage, expected) in RELEASE_RULES.iter().chain(&COMMON_RULES) {
        for (release, expected) in RELEASES.into_iter().zip(expected) {
            let mut result = run_of_release(release);
            damage(&mut result);
            assert_unmet(&result, release, expected, what);
            assert_eq!(judged(&result, release).caveats, [""; 0], "{what}");
        }
    }
}

/// What no paper demands is a caveat of a valid value.
#[test]
fn a_broken_rule_of_our_own_is_a_caveat() {
    for (what, damage, expected) in &OWN_RULES {
        for (release, expected) in RELEASES.into_iter().zip(expected) {
            let mut result = run_of_release(release);
            damage(&mut result);
            assert_caveats(&result, release, expected, what);
        }
    }
    let mut result = run_of_release(Release::R1);
    OWN_RULES.iter().filter(|row| row.2[1] != NONE).for_each(|(_, damage, _)| damage(&mut result));
    assert_eq!(judged(&result, Release::R1).caveats.len(), 5, "of all rules, two of which share one");
}

/// A run that is only too short says so, and that its figures can be used, unless they cannot.
#[test]
fn figures_of_a_short_run_stand_unless_they_are_wrong() {
    let lack = |change: Violation| {
        let mut result = run_of_release(Release::R1);
        time(&mut result, 60.0);
        change(&mut result);
        let criteria = judged(&result, Release::R1).criteria;
        criteria.iter().find(|c| c.lack.starts_with(TOO_SHORT)).unwrap().lack.clone()
    };
    let stands = "too short for a comparable value; the individual figures stand (T is 1 min, 15 min needed)";
    assert_eq!(lack(|_| {}), stands);
    assert_eq!(lack(|r| r.config.rounds = 8), stands);
    for wrong in [(|r| r.errors.push(error())) as Violation, |r| {
        edit_pattern(r, 2, AccessMethod::Read, 20, |p| p.verification.words_wrong = 3)
    }] {
        assert_eq!(lack(wrong), "too short for a comparable value (T is 1 min, 15 min needed)");
    }
}

/// Every criterion is violated by one of the rows above.
#[test]
fn every_criterion_has_a_rule() {
    let broken: Vec<&str> =
        RELEASE_RULES.iter().chain(&COMMON_RULES).flat_map(|row| row.2).flatten().copied().collect();
    for release in RELEASES {
        for criterion in
            derive(&run_of_release(release)).validity.into_iter().find(|v| v.release == release).unwrap().criteria
        {
            let begin = |text: &str| text.split(' ').take(2).map(str::to_owned).collect::<Vec<_>>();
            assert!(broken.iter().any(|text| begin(text) == begin(&criterion.text)), "{}", criterion.text);
        }
    }
}

#[test]
fn several_broken_rules_are_all_named() {
    let mut result = run_of_release(Release::R1);
    result.patterns.clear();
    result.config.rounds = 8;
    let expected =
        ["bytes of the first write", "one loop", "all patterns run (incomplete: 30: write of type 0 on 2 ranks"];
    assert_unmet(&result, Release::R0_5, &expected, "nothing measured");
}

/// Time is short only if it ended the pattern: patterns ended by calls or space did not need more.
#[test]
fn debt_counts_where_time_ended_the_pattern() {
    for (ended, share, met) in [
        (StopReason::Time, 0.89, false),
        (StopReason::Time, 0.9, true),
        (StopReason::Count, 0.25, true),
        (StopReason::Space, 0.25, true),
    ] {
        let mut result = full_run();
        edit_pattern(&mut result, 4, AccessMethod::Read, 12, |p| {
            (p.budget_seconds, p.ended) = (share * p.scheduled_seconds, ended.clone());
        });
        let short = judged(&result, Release::R1).caveats.iter().any(|text| text.contains("90 % of the time"));
        assert_eq!(short, !met, "{ended:?} {share}");
    }
}

#[test]
fn a_limit_of_a_control_group_is_memory() {
    let mut result = full_run();
    result.manifest.machine.hosts[0].memory_bytes = 1 << 50;
    result.manifest.machine.hosts[0].cgroup_memory_limit_bytes = Some(1 << 30);
    assert_unmet(&result, Release::R0_5, &[], "limited");
}

/// Earlier records have whole MiB; they are judged in the same way.
#[test]
fn m_part_is_judged_by_its_ratio_to_the_definition() {
    for (memory_bytes, m_part_bytes, met, ratio) in [
        (12_638_255_104, 98_566_144, true, "0.998"),
        (300 << 20, 2 << 20, false, "0.853"),
        (300 << 20, 2400 << 10, true, "1.000"),
        (4 << 30, 2 << 20, false, "0.062"),
    ] {
        let mut result = full_run();
        m_part(&mut result, memory_bytes, m_part_bytes);
        let criteria = derive(&result).validity.swap_remove(1).criteria;
        let own = criteria.iter().find(|c| c.text.starts_with("M_PART")).unwrap();
        assert_eq!(own.met, met, "{own:?}");
        assert!(own.text.contains(&format!("ratio {ratio}")), "{own:?}");
    }
}

fn time(result: &mut RunResult, seconds: f64) {
    result.partitions[0].time_seconds = seconds;
}

fn types(result: &mut RunResult, types: &[PatternType]) {
    result.config.types = types.to_vec();
    result.patterns.retain(|p| types.contains(&p.pattern_type));
    result.types.retain(|t| types.contains(&t.pattern_type));
}

fn only_scatter_is_rewritten(result: &mut RunResult) {
    result.config.full_rewrite = false;
    result.patterns.retain(|p| p.access != AccessMethod::Rewrite || p.pattern_type == PatternType::Scatter);
    result.types.retain(|t| t.access != AccessMethod::Rewrite || t.pattern_type == PatternType::Scatter);
}

fn m_part(result: &mut RunResult, memory_per_rank_bytes: u64, bytes: u64) {
    result.manifest.machine.memory_per_rank_bytes = memory_per_rank_bytes;
    for p in &mut result.partitions {
        (p.m_part_bytes, p.m_part_defined_bytes) = (bytes, bytes);
    }
}

fn through_posix(result: &mut RunResult) {
    result.config.backends = vec!["posix".into()];
    result.patterns.iter_mut().for_each(|p| p.backend = "posix".into());
    result.types.iter_mut().for_each(|t| t.backend = "posix".into());
}

fn error() -> ErrorRecord {
    ErrorRecord {
        during: "mpiio write pattern 3".into(),
        rank: 0,
        ranks_affected: 1,
        message: "pwrite".into(),
        next_step: "look at the disk".into(),
        no_space: false,
    }
}
