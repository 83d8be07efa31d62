use super::grants::{without_ungranted, SearchSpace};
use super::stub::StubTrials;
use super::*;
use crate::frame::run::testing::{run_ranks, Script};
use crate::tune::report::fixtures;
use beff_tuning::trial::Factor;

/// Runs a search on some ranks; the records of each rank.
fn search_on(ranks: u64, runner: impl Fn() -> StubTrials + Sync) -> Vec<(RunOutcome, Vec<TuneLine>, Option<String>)> {
    run_ranks(ranks, |_| Script::default(), |world| fixtures::search_with(world, &mut runner(), Vec::new()))
}

fn has_two(setting: &[(String, String)]) -> bool {
    setting.iter().any(|(key, value)| key == "cb_nodes" && value == "2")
}

#[test]
fn all_ranks_search_alike() {
    let runner = || StubTrials { ratio: |setting| if has_two(setting) { 1.4 } else { 1.0 }, ..StubTrials::default() };
    let all = search_on(3, runner);
    let trials = |rank: usize| {
        let is_trial = |line: &&TuneLine| matches!(line, TuneLine::Trial(_));
        all[rank].1.iter().filter(is_trial).cloned().collect::<Vec<_>>()
    };
    assert!(trials(0).len() > 50);
    assert_eq!(trials(0), trials(1));
    assert_eq!(trials(0), trials(2));
    assert_eq!(all[0].2.as_deref(), Some("cb_nodes=2"));
}

#[test]
fn wrong_data_disqualifies_by_name() {
    let runner = || StubTrials {
        ratio: |setting| if has_two(setting) { 2.0 } else { 1.0 },
        corrupts: has_two,
        ..StubTrials::default()
    };
    let (outcome, lines, best) = search_on(1, runner).remove(0);
    assert_eq!(outcome, RunOutcome::Complete);
    let wrong: Vec<_> =
        lines.iter().filter_map(|line| if let TuneLine::Corruption(c) = line { Some(c) } else { None }).collect();
    assert_eq!(wrong.len(), 1, "it is not tried again: {wrong:?}");
    assert_eq!((wrong[0].words_wrong, setting_text(&wrong[0].setting)), (7, "cb_nodes=2".into()));
    assert_ne!(best.as_deref(), Some("cb_nodes=2"));
}

#[test]
fn a_signal_ends_the_search_and_its_trials_stay() {
    let runner = || StubTrials { signal_at: Some(20), ..StubTrials::default() };
    let (outcome, lines, _) = search_on(2, runner).remove(0);
    assert_eq!((outcome, lines.len()), (RunOutcome::Interrupted, 20));
}

#[test]
fn a_search_is_continued_with_the_next_trial() {
    let ratio: fn(&[(String, String)]) -> f64 = |setting| if has_two(setting) { 1.4 } else { 1.0 };
    let whole = search_on(1, || StubTrials { ratio, ..StubTrials::default() }).remove(0);
    let cut = search_on(1, || StubTrials { ratio, signal_at: Some(33), ..StubTrials::default() }).remove(0);
    let kept = |lines: &[TuneLine]| -> Vec<TrialRecord> {
        lines.iter().filter_map(|line| if let TuneLine::Trial(t) = line { Some((**t).clone()) } else { None }).collect()
    };
    let continued = run_ranks(
        1,
        |_| Script::default(),
        |world| {
            let mut runner = StubTrials { ratio, ..StubTrials::default() };
            fixtures::search_with(world, &mut runner, kept(&cut.1))
        },
    )
    .remove(0);
    let numbers = [kept(&cut.1).len() + kept(&continued.1).len(), kept(&whole.1).len()];
    assert_eq!((numbers[0], continued.2.as_deref()), (numbers[1], Some("cb_nodes=2")));
}

#[test]
fn values_that_the_library_does_not_grant_are_not_tried() {
    let factor = |key: &str, values: &[&str]| Factor {
        key: key.into(),
        values: values.iter().map(|value| (*value).into()).collect(),
    };
    let mut runner = StubTrials::default();
    let default_hints = runner.granted_hints(&[]).unwrap().unwrap();
    let factors = vec![factor("cb_nodes", &["1", "2"]), factor("nonsense", &["1"])];
    let space = SearchSpace { factors, omitted: Vec::new(), default_hints };
    let found = without_ungranted(&mut runner, &[], space).unwrap();
    assert_eq!(found.factors, [factor("cb_nodes", &["2"])]);
    let omitted: Vec<String> = found.omitted.iter().map(|o| format!("{}: {}", o.key, o.reason)).collect();
    assert_eq!(omitted, ["cb_nodes=1: this is the default", "nonsense=1: the library does not grant it"]);
}
