use beff_statistics::simulation::run_count;

use super::search::{Search, SearchEnd};
use super::simulation::{factors, has, SimulatedStorage};
use super::trial::{setting_text, Phase, PlannedTrial, Setting, Trial};

/// Searches of each kind: ten times as many in `make campaign`.
fn runs() -> u64 {
    u64::from(run_count(200))
}

/// Searches that may find something else: none of 20.
fn allowed_misses() -> u64 {
    runs() / 50
}

struct Tally {
    recommended: Vec<(String, f64, f64, f64)>,
    ends: Vec<Option<SearchEnd>>,
}

fn searches(storage: impl Fn(u64) -> SimulatedStorage) -> Tally {
    let mut tally = Tally { recommended: Vec::new(), ends: Vec::new() };
    for seed in 0..runs() {
        let storage = storage(seed);
        let search = storage.search(&factors());
        tally.ends.push(search.end());
        if search.end() == Some(SearchEnd::Recommended) {
            let ratio = search.confirmed_ratio().unwrap();
            let best = setting_text(search.best().unwrap());
            tally.recommended.push((best, ratio.ratio, ratio.low, ratio.high.unwrap()));
        }
        let elapsed = search.trials().last().unwrap().end_seconds;
        assert!(elapsed <= 1.05 * storage.budget_seconds, "{elapsed}");
    }
    tally
}

#[track_caller]
fn assert_finds(tally: &Tally, best: &str, ratio: f64) {
    let found = tally.recommended.iter().filter(|(setting, ..)| setting == best).count() as u64;
    let covered = tally.recommended.iter().filter(|(_, _, low, high)| *low <= ratio && ratio <= *high).count() as u64;
    println!("{best}, x{ratio}: found in {found} of {} searches, the ratio is in the interval in {covered}", runs());
    assert!(found >= runs() - allowed_misses(), "{:?} {:?}", tally.recommended, tally.ends);
    assert!(covered >= runs() * 9 / 10, "{:?}", tally.recommended);
}

fn single(setting: &Setting) -> f64 {
    if has(setting, &[("b", "2")]) {
        1.3
    } else if has(setting, &[("c", "1")]) {
        0.5
    } else {
        1.0
    }
}

fn pair(setting: &Setting) -> f64 {
    if has(setting, &[("b", "2"), ("d", "1")]) {
        1.5
    } else {
        1.0
    }
}

fn loud(setting: &Setting) -> f64 {
    if has(setting, &[("b", "2"), ("d", "1")]) {
        2.0
    } else {
        1.0
    }
}

#[test]
fn a_planted_value_is_found() {
    assert_finds(&searches(|seed| SimulatedStorage { ratio: single, seed, ..Default::default() }), "b=2", 1.3);
}

#[test]
fn a_planted_pair_is_found() {
    assert_finds(&searches(|seed| SimulatedStorage { ratio: pair, seed, ..Default::default() }), "b=2 d=1", 1.5);
}

#[test]
fn optima_are_found_in_noise() {
    let noisy = |ratio: fn(&Setting) -> f64| {
        searches(|seed| SimulatedStorage { ratio, noise: 0.2, seed: seed + 100, ..Default::default() })
    };
    assert_finds(&noisy(loud), "b=2 d=1", 2.0);
    assert_finds(&noisy(|setting| if has(setting, &[("a", "1")]) { 1.6 } else { 1.0 }), "a=1", 1.6);
}

#[test]
fn nothing_is_recommended_without_an_effect() {
    for (noise, drift, first) in
        [(0.05, 0.0, 1.0), (0.2, 0.0, 1.0), (0.05, 0.3, 1.0), (0.05, -0.3, 1.0), (0.05, 0.0, 1.5)]
    {
        let tally = searches(|seed| SimulatedStorage { noise, drift, first, seed: seed + 200, ..Default::default() });
        let count = tally.recommended.len() as u64;
        println!("no effect, noise {noise}, drift {drift}, first {first}: {count} of {} recommended", runs());
        assert!(count <= allowed_misses(), "{noise} {drift} {first}: {:?}", tally.recommended);
    }
}

#[test]
fn a_resumed_search_gives_the_same_answer() {
    let storage = SimulatedStorage { ratio: pair, ..Default::default() };
    let whole = storage.search(&factors());
    let count = whole.trials().len();
    for part in 1..=10 {
        let kept = &whole.trials()[..count * part / 11];
        let (mut search, used) = Search::resume(storage.plan(&factors()), kept);
        assert_eq!(used, kept.len());
        while let Some(planned) = search.next_trial() {
            let trial = storage.measure(planned, search.trials());
            search.add(trial);
        }
        assert_eq!(search.trials(), whole.trials());
        assert_eq!((search.end(), search.best()), (whole.end(), whole.best()));
    }
    let (_, used) =
        Search::resume(SimulatedStorage { budget_seconds: 60.0, ..storage }.plan(&factors()), whole.trials());
    assert_eq!(used, 0, "another budget has other trials");
}

#[test]
fn a_disqualified_setting_is_not_tried_again() {
    let storage = SimulatedStorage { ratio: single, ..Default::default() };
    let mut search = Search::new(storage.plan(&factors()));
    let is_wrong = |setting: &Setting| has(setting, &[("b", "2")]);
    while let Some(planned) = search.next_trial() {
        let refused = is_wrong(&planned.setting);
        let trial = storage.measure(planned, search.trials());
        let bytes_per_second = trial.bytes_per_second.filter(|_| !refused);
        search.add(Trial { bytes_per_second, ..trial });
    }
    assert_eq!(search.trials().iter().filter(|trial| is_wrong(&trial.planned.setting)).count(), 1);
    assert_ne!(search.end(), Some(SearchEnd::Recommended));
}

#[test]
fn a_default_that_fails_ends_the_search() {
    let storage = SimulatedStorage::default();
    let mut search = Search::new(storage.plan(&factors()));
    let planned = search.next_trial().unwrap();
    let trial = storage.measure(planned, &[]);
    search.add(Trial { bytes_per_second: None, ..trial });
    assert_eq!((search.next_trial(), search.end()), (None, Some(SearchEnd::DefaultFailed)));
}

/// Trials of a recording have their own length, whatever the search asks for.
#[test]
fn long_trials_keep_the_budget() {
    for fixed_seconds in [5.0, 20.0, 60.0, 200.0] {
        let storage = SimulatedStorage { ratio: single, fixed_seconds, ..Default::default() };
        let search = storage.search(&factors());
        let elapsed = search.trials().last().unwrap().end_seconds;
        assert!(elapsed <= 1.05 * storage.budget_seconds, "{fixed_seconds}: {elapsed} {:?}", search.end());
        assert_eq!(
            search.end() == Some(SearchEnd::TooShort),
            fixed_seconds > 20.0,
            "{fixed_seconds} {:?}",
            search.end()
        );
    }
}

#[test]
fn keys_without_effect_are_dropped() {
    // Either of two keys suffices: one of them stays.
    let either = |setting: &Setting| if has(setting, &[("a", "1")]) || has(setting, &[("d", "1")]) { 1.5 } else { 1.0 };
    let tally = searches(|seed| SimulatedStorage { ratio: either, seed, ..Default::default() });
    let others = tally.recommended.iter().filter(|(setting, ..)| setting != "a=1" && setting != "d=1").count() as u64;
    assert!(others <= allowed_misses(), "{:?}", tally.recommended);
    assert_eq!(tally.recommended.len() as u64, runs());
}

#[test]
fn phases_follow_each_other() {
    let search = SimulatedStorage { ratio: pair, ..Default::default() }.search(&factors());
    let mut phases: Vec<Phase> = search.trials().iter().map(|trial| trial.planned.phase).collect();
    phases.dedup();
    assert_eq!(
        phases,
        [
            Phase::Pilot,
            Phase::Noise,
            Phase::Single,
            Phase::Combination,
            Phase::Elimination,
            Phase::Confirmation,
            Phase::Others
        ]
    );
}

/// All 215 combinations in the same time: each is measured once, and the fastest measurement counts.
fn grid(storage: &SimulatedStorage) -> (Setting, f64) {
    let mut all: Vec<Setting> = vec![Vec::new()];
    for factor in factors() {
        let with = |setting: &Setting, value: &String| {
            setting.iter().cloned().chain([(factor.key.clone(), value.clone())]).collect::<Setting>()
        };
        let longer: Vec<Setting> =
            all.iter().flat_map(|setting| factor.values.iter().map(|value| with(setting, value))).collect();
        all.extend(longer);
    }
    let seconds = storage.budget_seconds / (2.0 * all.len() as f64) - storage.fixed_seconds;
    let mut trials: Vec<Trial> = Vec::new();
    for setting in all.iter().flat_map(|setting| [Setting::new(), setting.clone()]) {
        let planned = PlannedTrial { phase: Phase::Single, round: trials.len() as u32 / 2, setting, seconds };
        trials.push(storage.measure(planned, &trials));
    }
    let ratio = |pair: &[Trial]| (pair[1].log_rate().unwrap() - pair[0].log_rate().unwrap()).exp();
    let best = trials.chunks_exact(2).max_by(|a, b| ratio(a).total_cmp(&ratio(b))).unwrap();
    (best[1].planned.setting.clone(), ratio(best))
}

#[test]
fn a_grid_of_the_same_time_promises_too_much() {
    let (mut promised_by_grid, mut promised_by_search) = (0.0, 0.0);
    for seed in 0..runs() {
        let storage = SimulatedStorage { ratio: loud, noise: 0.2, seed: seed + 300, ..Default::default() };
        let (setting, ratio) = grid(&storage);
        promised_by_grid += (ratio / loud(&setting)).ln() / runs() as f64;
        let search = storage.search(&factors());
        let ratio = search.confirmed_ratio().unwrap().ratio;
        promised_by_search += (ratio / loud(search.best().unwrap())).ln() / runs() as f64;
    }
    println!("promised by the grid x{:.2}, by the search x{:.2}", promised_by_grid.exp(), promised_by_search.exp());
    assert!(promised_by_grid > 0.25 && promised_by_search.abs() < 0.05, "{promised_by_grid} {promised_by_search}");
}
