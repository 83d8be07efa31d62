//! Choices of test cases: every pair of values of two factors is in one of them.

/// Cases of one value for each factor, by its number: `sizes` are how many values the factors have, `allowed` says what makes
/// sense. Every pair that is in any allowed case is in one of these. The same on every machine.
pub fn pairs(sizes: &[usize], allowed: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let mut left: Vec<Vec<usize>> = product(sizes).into_iter().filter(|case| allowed(case)).collect();
    let mut open: Vec<_> = left.iter().flat_map(|case| of(case)).collect();
    let mut chosen = Vec::new();
    loop {
        open.sort_unstable();
        open.dedup();
        if open.is_empty() {
            return chosen;
        }
        // Of several that are as good, the first one.
        let gain = |case: &[usize]| of(case).iter().filter(|pair| open.binary_search(pair).is_ok()).count();
        let best = (0..left.len()).rev().max_by_key(|n| gain(&left[*n])).expect("an open pair is of some case");
        let case = left.remove(best);
        open.retain(|pair| !of(&case).contains(pair));
        chosen.push(case);
    }
}

/// All cases.
fn product(sizes: &[usize]) -> Vec<Vec<usize>> {
    sizes.iter().fold(vec![Vec::new()], |cases, size| {
        cases.iter().flat_map(|case| (0..*size).map(|value| [&case[..], &[value]].concat())).collect()
    })
}

/// Two factors, each with its value.
type Pair = [(usize, usize); 2];

fn of(case: &[usize]) -> Vec<Pair> {
    let one = |n: usize| (n, case[n]);
    (0..case.len()).flat_map(|second| (0..second).map(move |first| [one(first), one(second)])).collect()
}

#[test]
fn every_allowed_pair_is_in_a_case_and_nothing_else_is() {
    type Allowed = fn(&[usize]) -> bool;
    let few: [(&[usize], Allowed, usize); 4] = [
        (&[2, 2], |_| true, 4),
        (&[2, 2, 2], |_| true, 4),
        (&[4, 4, 2, 2, 2], |case| case[1] == 1 || case[1] == 2 || case[2] == 0, 16),
        (&[3, 3, 3], |case| case[0] != case[1], 9),
    ];
    for (sizes, allowed, least) in few {
        let chosen = pairs(sizes, allowed);
        assert!(chosen.iter().all(|case| allowed(case)), "{chosen:?}");
        for pair in product(sizes).iter().filter(|case| allowed(case)).flat_map(|case| of(case)) {
            assert!(chosen.iter().any(|case| of(case).contains(&pair)), "{sizes:?}: no {pair:?} in {chosen:?}");
        }
        let most = least + least / 3; // greedy is not the best there is
        assert!(chosen.len() <= most, "{sizes:?}: {} cases, {least} would do", chosen.len());
        assert_eq!(chosen, pairs(sizes, allowed));
    }
}
