use super::*;
use crate::b_eff_io::values::derive;
use crate::b_eff_io::values::fixture::{edit, full_run};
use crate::frame::records::RoundRecord;

/// A run in which every backend has a time of its own for the same bytes, in eight rounds with some noise.
fn run(speeds: &[(&str, f64)]) -> RunResult {
    let mut result = full_run();
    let (patterns, types) = (std::mem::take(&mut result.patterns), std::mem::take(&mut result.types));
    result.config.backends = speeds.iter().map(|(b, _)| (*b).to_owned()).collect();
    for (number, &(backend, speed)) in speeds.iter().enumerate() {
        result.types.extend(types.iter().cloned().map(|mut t| {
            t.backend = backend.to_owned();
            t
        }));
        result.patterns.extend(patterns.iter().cloned().map(|mut p| {
            p.backend = backend.to_owned();
            p.intervals.transfer_seconds /= speed;
            p.intervals.decide_seconds = p.intervals.transfer_seconds / 4.0;
            let seconds = p.seconds() / 8.0;
            // Up and down by 2 %, for each backend in another order; together nothing.
            let noise = |i: usize| 1.0 + if (i >> number) % 2 == 0 { 0.02 } else { -0.02 };
            let round = |i| RoundRecord { calls: 1, moved_bytes: p.moved_bytes / 8, seconds: seconds * noise(i) };
            p.rounds = (0..8).map(round).collect();
            p.moved_bytes = p.rounds.iter().map(|r| r.moved_bytes).sum();
            p
        }));
    }
    result
}

fn of<'a>(ladder: &'a Ladder, backend: &str, access: Access, pattern: u8) -> &'a PatternRung {
    let mut rungs = ladder.patterns.iter();
    rungs.find(|r| r.backend == backend && r.ranks == 4 && r.access == access && r.pattern == pattern).unwrap()
}

#[test]
fn one_backend_has_no_rival_and_null_is_none() {
    assert_eq!(derive(&full_run()).ladder, Ladder::default());
    assert_eq!(derive(&run(&[("null", 100.0), ("mpiio", 1.0)])).ladder, Ladder::default());
}

#[test]
fn ratios_have_intervals_around_the_truth() {
    let ladder = derive(&run(&[("mpiio", 0.5), ("posix", 1.0), ("null", 50.0)])).ladder;
    assert_eq!(ladder.patterns.len(), 2 * 2 * 3 * 43);
    assert_eq!(ladder.types.len(), 2 * 2 * 3 * 5);
    for rung in &ladder.patterns {
        let ratio = rung.ratio.unwrap();
        assert_eq!(rung.best.as_deref(), Some("posix"));
        if rung.backend == "posix" {
            assert_eq!(ratio, Ratio::alone(1.0, 0));
        } else {
            let interval = ratio.interval.unwrap();
            assert!((ratio.value - 0.5).abs() < 1e-9 && ratio.equal == Some(false) && ratio.rounds == 8);
            assert!(interval.low > 0.47 && interval.low < 0.5 && interval.high > 0.5 && interval.high < 0.53);
        }
    }
    for rung in ladder.types.iter().filter(|r| r.backend == "mpiio") {
        let (ratio, shares) = (rung.ratio.unwrap(), rung.shares.unwrap());
        let interval = ratio.interval.unwrap();
        assert!(interval.low < ratio.value && ratio.value < interval.high && ratio.value > 0.5);
        assert!((shares.values().iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((shares.transfer / shares.decide - 4.0).abs() < 1e-9 && shares.open < shares.close);
    }
}

#[test]
fn close_rates_are_equal() {
    let ladder = derive(&run(&[("mpiio", 1.0), ("posix", 1.005)])).ladder;
    assert!(ladder.patterns.iter().filter(|r| r.backend == "mpiio").all(|r| r.ratio.unwrap().equal == Some(true)));
    assert!(ladder.verdicts.iter().all(|v| v.pattern.is_none() && v.ratio.equal == Some(true)));
    assert_eq!(ladder.verdicts.len(), 2 * 3 * 5);
}

#[test]
fn mpiio_is_the_subject_and_the_slowest_is_told_too() {
    let ladder = derive(&run(&[("mmap", 0.25), ("mpiio", 0.5), ("posix", 1.0)])).ladder;
    let verdict = &ladder.verdicts[0];
    assert_eq!((verdict.backend.as_str(), verdict.best.as_str()), ("mpiio", "posix"));
    assert_eq!(verdict.slowest.as_ref().map(|s| s.backend.as_str()), Some("mmap"));
    let ladder = derive(&run(&[("mmap", 0.25), ("mpiio", 2.0), ("posix", 1.0)])).ladder;
    let verdict = &ladder.verdicts[0];
    assert_eq!((verdict.backend.as_str(), verdict.best.as_str()), ("mmap", "mpiio"));
    assert_eq!(verdict.slowest, None);
}

#[test]
fn the_worst_patterns_are_told_with_what_they_cost() {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    edit(&mut result, 4, Access::Read, 13, |p| {
        p.calls = 16;
        if p.backend == "mpiio" {
            p.intervals.sync_seconds = 9.0 * p.intervals.transfer_seconds;
            let seconds = p.seconds() / 8.0;
            p.rounds.iter_mut().for_each(|r| r.seconds = seconds);
        }
    });
    let ladder = derive(&result).ladder;
    let of_patterns: Vec<&Verdict> =
        ladder.verdicts.iter().filter(|v| v.ranks == 4 && v.access == Access::Read && v.pattern.is_some()).collect();
    assert_eq!(of_patterns.len(), WORST_PATTERNS);
    let worst = of_patterns[0];
    assert_eq!((worst.pattern, worst.largest.part, worst.largest.times), (Some(13), Part::Sync, None));
    assert!((worst.largest.share - 9.0 / 10.25).abs() < 1e-9);
    let [slow, fast] = worst.call_seconds.unwrap();
    assert!((slow / fast * worst.ratio.value - 1.0).abs() < 0.03, "{worst:?}");
    let record =
        |p: &&PatternRecord| p.backend == "mpiio" && p.ranks == 4 && p.access == Access::Read && p.pattern == 13;
    let record = result.patterns.iter().find(record).unwrap();
    assert!((slow - record.seconds() / 16.0).abs() < 1e-9, "{worst:?}");
    let other = of_patterns[1];
    assert_eq!((other.largest.part, other.excess), (Part::Transfer, None));
    assert!((other.largest.times.unwrap() - 2.0).abs() < 1e-9);
    assert!((of(&ladder, "mpiio", Access::Read, 13).ratio.unwrap().value) < 0.07);
}

#[test]
fn a_part_that_only_the_slower_one_has_is_the_loss() {
    let mut result = run(&[("mpiio", 1.0), ("posix", 1.0)]);
    for p in result.patterns.iter_mut().filter(|p| p.backend == "mpiio") {
        p.intervals.view_seconds = 0.5 * p.intervals.transfer_seconds;
    }
    let verdict = &derive(&result).ladder.verdicts[0];
    assert_eq!(verdict.largest.part, Part::Transfer);
    let excess = verdict.excess.unwrap();
    assert_eq!((excess.part, excess.times), (Part::View, None));
}

#[test]
fn without_enough_rounds_there_is_no_interval() {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    result.patterns.iter_mut().for_each(|p| p.rounds.clear());
    let ladder = derive(&result).ladder;
    let rung = of(&ladder, "mpiio", Access::Write, 5);
    assert!(rung.ratio.is_some_and(|r| r.interval.is_none() && r.equal.is_none() && r.rounds == 0));
    assert!(ladder.types.iter().all(|r| r.ratio.is_some_and(|r| r.interval.is_none())));

    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    edit(&mut result, 4, Access::Write, 3, |p| p.rounds.truncate(1));
    let ladder = derive(&result).ladder;
    let of_type = |t: u8| {
        ladder.types.iter().find(|r| r.ranks == 4 && r.access == Access::Write && r.pattern_type == t).unwrap().ratio
    };
    // Pattern 3 is a large part of the time of type 0.
    assert!(of_type(0).unwrap().interval.is_none() && of_type(1).unwrap().interval.is_some());
}

#[test]
fn what_was_not_run_is_no_rival() {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    edit(&mut result, 4, Access::Write, 5, |p| {
        if p.backend == "posix" {
            (p.calls, p.moved_bytes) = (0, 0);
            p.intervals = Default::default();
            p.rounds.clear();
            p.ended = crate::b_eff_io::records::Ended::NotRun("direct".into());
        }
    });
    let ladder = derive(&result).ladder;
    let (mpiio, posix) = (of(&ladder, "mpiio", Access::Write, 5), of(&ladder, "posix", Access::Write, 5));
    assert_eq!((mpiio.best.as_deref(), posix.ratio), (Some("mpiio"), None));
    assert!(!ladder.verdicts.iter().any(|v| v.ranks == 4 && v.access == Access::Write && v.pattern == Some(5)));
}
