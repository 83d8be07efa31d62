//! Candidates: single values, combinations, and settings without one of their keys; and the order of their trials in a round.

use crate::trial::{Factor, Setting};

/// Most combinations of which all are tried.
const MAX_CROSSED: usize = 16;
/// Candidates between two measurements of the default.
const BLOCK: usize = 3;

/// Each value of each key, alternately from all keys: the most promising values first.
#[must_use]
pub fn singles(factors: &[Factor]) -> Vec<Setting> {
    let most = factors.iter().map(|factor| factor.values.len()).max().unwrap_or(0);
    let at = |place: usize| {
        factors.iter().filter_map(move |factor| Some(vec![(factor.key.clone(), factor.values.get(place)?.clone())]))
    };
    (0..most).flat_map(at).collect()
}

/// Combinations of these single values: all of them if they are few, else all pairs. `promising` are values that the single trials found
/// faster: together they are a combination as well.
#[must_use]
pub fn combinations(singles: &[Setting], promising: &[Setting]) -> Vec<Setting> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in singles.iter().flatten() {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let values = |key: &str| -> Vec<(String, String)> {
        singles.iter().flatten().filter(|(other, _)| other == key).cloned().collect()
    };
    let crossed = keys.iter().fold(1_usize, |all, key| all.saturating_mul(1 + values(key).len()));
    let mut found: Vec<Setting> = Vec::new();
    if crossed <= MAX_CROSSED + 1 {
        let mut all: Vec<Setting> = vec![Vec::new()];
        for key in &keys {
            let with = |setting: &Setting, pair: &(String, String)| {
                let mut setting = setting.clone();
                setting.push(pair.clone());
                setting
            };
            let own = values(key);
            let longer: Vec<Setting> =
                all.iter().flat_map(|setting| own.iter().map(|pair| with(setting, pair))).collect();
            all.extend(longer);
        }
        found.extend(all.into_iter().filter(|setting| setting.len() > 1));
    } else {
        for (place, first) in singles.iter().enumerate() {
            let others = singles[place + 1..].iter().filter(|second| second[0].0 != first[0].0);
            found.extend(others.map(|second| vec![first[0].clone(), second[0].clone()]));
        }
        let mut together: Setting = Vec::new();
        for pair in promising.iter().flatten() {
            if together.iter().all(|(key, _)| *key != pair.0) {
                together.push(pair.clone());
            }
        }
        if together.len() > 2 {
            found.push(together);
        }
    }
    found.iter_mut().for_each(|setting| setting.sort());
    found
}

/// The setting without each of its keys.
#[must_use]
pub fn without_each(setting: &[(String, String)]) -> Vec<Setting> {
    let without = |left_out: usize| {
        setting.iter().enumerate().filter(move |(place, _)| *place != left_out).map(|(_, pair)| pair.clone()).collect()
    };
    (0..setting.len()).map(without).collect()
}

/// Trials of one round: `base` at the begin, after every few candidates, and at the end. The order of the candidates rotates and is
/// reversed in every other round.
#[must_use]
pub fn round_order(candidates: &[Setting], base: &Setting, round: u32) -> Vec<Setting> {
    let mut order = candidates.to_vec();
    if !order.is_empty() {
        let first = (round as usize / 2 * BLOCK) % order.len();
        order.rotate_left(first);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    let mut all = vec![base.clone()];
    for block in order.chunks(BLOCK) {
        all.extend(block.iter().cloned());
        all.push(base.clone());
    }
    all
}

/// Number of trials of a round.
#[must_use]
pub fn round_trials(candidates: usize) -> u32 {
    (candidates + candidates.div_ceil(BLOCK) + 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> Setting {
        text.split_whitespace().filter_map(|w| w.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn every_value_is_tried_alone_the_most_promising_first() {
        let factors = [("a", &["1", "2"][..]), ("b", &["x"])]
            .map(|(key, values)| Factor { key: key.into(), values: values.iter().map(|v| (*v).into()).collect() });
        assert_eq!(singles(&factors), ["a=1", "b=x", "a=2"].map(setting));
    }

    #[test]
    fn few_are_crossed_and_many_are_paired() {
        let few = ["a=1", "b=1", "c=1", "a=2"].map(setting);
        let all = combinations(&few, &[]);
        assert_eq!(all.len(), 3 * 2 * 2 - 1 - 4, "all but the default and the single values: {all:?}");
        assert!(all.contains(&setting("a=2 b=1 c=1")) && all.iter().all(|s| s.len() > 1));
        let many = ["a=1", "b=1", "c=1", "d=1", "e=1"].map(setting);
        let paired = combinations(&many, &many[1..4]);
        assert_eq!(paired.len(), 10 + 1);
        assert_eq!(paired[10], setting("b=1 c=1 d=1"));
    }

    #[test]
    fn the_default_is_never_far() {
        let candidates: Vec<Setting> = (0..7).map(|n| setting(&format!("a={n}"))).collect();
        for round in 0..8 {
            let order = round_order(&candidates, &Vec::new(), round);
            assert_eq!(order.len() as u32, round_trials(7));
            assert!(order[0].is_empty() && order[order.len() - 1].is_empty());
            assert!(order.windows(4).all(|four| four.iter().any(Vec::is_empty)));
            assert!(candidates.iter().all(|one| order.iter().filter(|other| *other == one).count() == 1));
        }
        let first = |round| round_order(&candidates, &Vec::new(), round)[1].clone();
        assert_ne!(first(0), first(1));
        assert_ne!(first(0), first(2));
    }

    #[test]
    fn each_key_is_left_out_once() {
        assert_eq!(without_each(&setting("a=1 b=2 c=3")), ["b=2 c=3", "a=1 c=3", "a=1 b=2"].map(setting));
    }
}
