use super::*;
use crate::frame::records::RunOutcome;

const OPTIONS: HistoryOptions = HistoryOptions { last: 10, any_set_up: false, limit: 1.0 };

/// A night's run with the value of a backend.
fn night(day: usize, value: f64) -> ComparableRun {
    let quantity = Quantity::new(QuantityLevel::Value, "b_eff_io", "", QuantityUnit::MegabytesPerSecond, value);
    ComparableRun {
        identity: format!("night {day}"),
        started_utc: format!("2026-{:02}-{:02}T03:00:00Z", 1 + day / 28, 1 + day % 28),
        troubles: Vec::new(),
        doubts: Vec::new(),
        is_corrupt: false,
        facts: vec![
            Fact::new(FactKind::Definition, "T", "60 s"),
            Fact::new(FactKind::SetUp, "kernel", "6.1"),
            Fact::new(FactKind::SetUp, STORAGE_DRIFT_FACT, if day.is_multiple_of(2) { "unknown" } else { "steady" }),
        ],
        quantities: vec![quantity.with_backend("posix", 0)],
    }
}

/// 1 % of noise, without a generator.
fn wobble(day: usize) -> f64 {
    1.0 + 0.01 * ((day * 7) % 5) as f64 / 2.0
}

fn history(days: std::ops::Range<usize>, level: impl Fn(usize) -> f64) -> Vec<HistoryRun> {
    days.map(|day| HistoryRun { file: format!("{day}.json"), run: night(day, level(day) * wobble(day)) }).collect()
}

fn excluded(found: &History) -> Vec<(Exclusion, usize)> {
    found.excluded.iter().map(|left_out| (left_out.reason, left_out.files.len())).collect()
}

#[test]
fn a_step_is_found_and_dated() {
    let mut runs = history(0..40, |_| 100.0);
    let found = judge(&night(40, 101.0), &runs, OPTIONS);
    let number = &found.quantities[0];
    assert_eq!(
        (found.verdict, number.baseline_runs, number.slower, &number.step),
        (HistoryVerdict::Pass, 10, None, &None)
    );
    let [low, high] = number.interval.unwrap();
    assert!(low < 1.0 && high > 1.0 && number.median_interval.is_some(), "{number:?}");
    assert_eq!(
        found.baseline_utc.map(|ends| ends.map(|utc| utc[5..10].to_owned())),
        Some(["02-03".into(), "02-12".into()])
    );
    // The first slower night passed unseen, as a run that was not judged.
    runs.extend(history(40..42, |_| 80.0));
    let found = judge(&night(42, 80.0), &runs, OPTIONS);
    assert_eq!(found.verdict, HistoryVerdict::Slower);
    let step = found.quantities[0].step.as_ref().unwrap();
    assert_eq!([&step.last_before_utc[..10], &step.first_after_utc[..10]], ["2026-02-12", "2026-02-13"]);
    assert_eq!(step.range_utc, [step.first_after_utc.clone(), step.first_after_utc.clone()]);
    let [low, high] = step.interval.unwrap();
    assert!((step.ratio - 0.8).abs() < 0.01 && low > 0.78 && high < 0.82, "{step:?}");
    // Long after it the new level is the baseline, whose step is still named.
    runs.extend(history(42..55, |_| 80.0));
    let found = judge(&night(55, 80.0), &runs, OPTIONS);
    let number = &found.quantities[0];
    assert_eq!((found.verdict, number.ratio.unwrap() > 0.97), (HistoryVerdict::Pass, true));
    assert_eq!(&number.step.as_ref().unwrap().first_after_utc[..10], "2026-02-13");
    // A limit below the ratio.
    let found = judge(&night(56, 70.0), &runs, HistoryOptions { limit: 0.8, ..OPTIONS });
    assert_eq!((found.verdict, found.quantities[0].interval.is_some()), (HistoryVerdict::Pass, true));
    assert_eq!(
        judge(&night(56, 60.0), &runs, HistoryOptions { limit: 0.8, ..OPTIONS }).verdict,
        HistoryVerdict::Slower
    );
    assert_eq!(judge(&night(56, 0.0), &runs, OPTIONS).verdict, HistoryVerdict::Slower, "nothing was moved");
}

#[test]
fn only_good_runs_of_the_set_up_are_the_baseline() {
    let mut runs = history(0..20, |_| 100.0);
    runs[3].run.doubts = vec![Doubt::Shared { other_process_share: 0.5, steal_share: 0.0 }];
    runs[4].run.doubts = vec![Doubt::Cut { outcome: RunOutcome::Killed }];
    runs[5].run.is_corrupt = true;
    runs[6].run.doubts = vec![Doubt::TooShort { factor: 9.0 }];
    runs[7].run.facts[0].value = "90 s".into();
    runs[15..].iter_mut().for_each(|known| known.run.facts[1].value = "6.2".into());
    runs.extend(history(21..23, |_| 100.0));
    runs.rotate_left(7);
    let mut newest = night(20, 100.0);
    newest.facts[1].value = "6.2".into();
    runs.push(HistoryRun { file: "itself.json".into(), run: newest.clone() });
    let found = judge(&newest, &runs, OPTIONS);
    use Exclusion::{Definition, Inconclusive, NotBefore, SetUp};
    assert_eq!(excluded(&found), [(Inconclusive, 3), (Definition, 1), (SetUp, 11), (NotBefore, 2)]);
    assert_eq!((found.verdict, found.quantities[0].baseline_runs), (HistoryVerdict::Pass, 5));
    assert_eq!(found.set_up_changes.len(), 1, "{:?}", found.set_up_changes);
    let change = &found.set_up_changes[0];
    assert_eq!(
        (&change.since_utc[..10], change.facts[0].name.as_str(), change.facts.len()),
        ("2026-01-16", "kernel", 1)
    );
    let any = judge(&newest, &runs, HistoryOptions { any_set_up: true, last: 20, ..OPTIONS });
    assert_eq!(
        (excluded(&any), any.quantities[0].baseline_runs),
        (vec![(Inconclusive, 3), (Definition, 1), (NotBefore, 2)], 16)
    );
}

#[test]
fn too_few_or_doubtful_runs_decide_nothing() {
    let verdict = |newest: &ComparableRun, runs: &[HistoryRun]| judge(newest, runs, OPTIONS).verdict;
    let two = history(0..2, |_| 100.0);
    assert_eq!(verdict(&night(30, 50.0), &two), HistoryVerdict::Inconclusive);
    assert_eq!(verdict(&night(30, 50.0), &[]), HistoryVerdict::Inconclusive);
    let many = history(0..20, |_| 100.0);
    let mut newest = night(30, 50.0);
    assert_eq!(verdict(&newest, &many), HistoryVerdict::Slower);
    newest.doubts = vec![Doubt::TooShort { factor: 9.0 }];
    assert_eq!(verdict(&newest, &many), HistoryVerdict::Slower, "the scatter from run to run is known");
    newest.doubts = vec![Doubt::Cut { outcome: RunOutcome::Limit }];
    let found = judge(&newest, &many, OPTIONS);
    assert_eq!((found.verdict, found.quantities[0].slower.is_some()), (HistoryVerdict::Inconclusive, true));
    newest.is_corrupt = true;
    assert_eq!(verdict(&newest, &many), HistoryVerdict::Corrupt);
    let mut empty = night(30, 50.0);
    empty.quantities.clear();
    assert_eq!(verdict(&empty, &many), HistoryVerdict::Inconclusive);
}

/// Times, and benchmarks without a value: the mean over means of each backend, of runs with all of them.
#[test]
fn means_of_means_are_judged_where_there_is_no_value() {
    let run = |day: usize, factor: f64, means: usize| {
        let mean = |n: usize, backend: &str| {
            let value = factor * wobble(day + n);
            Quantity::new(QuantityLevel::Group, format!("row {n}"), "", QuantityUnit::Microseconds, value)
                .with_backend(backend, 0)
        };
        let quantities = (0..means).flat_map(|n| [mean(n, "mpiio"), mean(n, "posix")]).collect();
        ComparableRun { quantities, ..night(day, 1.0) }
    };
    let known = |day: usize, means: usize| HistoryRun { file: format!("{day}.json"), run: run(day, 1.0, means) };
    let mut runs: Vec<HistoryRun> = (0..20).map(|day| known(day, 3)).collect();
    runs.push(known(20, 2));
    let found = judge(&run(21, 1.5, 3), &runs, OPTIONS);
    assert_eq!((found.verdict, found.quantities.len()), (HistoryVerdict::Slower, 2));
    let number = &found.quantities[1];
    assert_eq!(
        (number.name.as_str(), number.backend.as_str(), number.baseline_runs),
        ("geometric mean of 3", "posix", 10)
    );
    let [low, high] = number.median_interval.unwrap();
    assert!(
        low <= high && (number.ratio.unwrap() - 1.0 / 1.5).abs() < 0.03,
        "times are slower if they are longer: {number:?}"
    );
    assert_eq!(judge(&run(21, 0.5, 3), &runs, OPTIONS).verdict, HistoryVerdict::Pass);
}
