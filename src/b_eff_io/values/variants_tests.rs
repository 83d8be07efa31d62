use beff_statistics::simulation::{lower_bound, run_count};
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::b_eff_io::config::Variant;
use crate::b_eff_io::records::PatternRecord;
use crate::b_eff_io::values::derive;
use crate::b_eff_io::values::fixture::full_run;
use crate::frame::records::RoundRecord;

/// Standard deviation of the logarithm of a round's time, and of the drift that all contestants share.
const NOISE: (f64, f64) = (0.2, 0.3);

/// A normally distributed number (Box and Muller).
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let mut uniform = || (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0;
    let radius = (-2.0 * uniform().ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * uniform()).cos()
}

/// A run of mpiio with the variants of these names and speeds, in eight rounds with noise.
fn run(variants: &[(&str, f64)], seed: u64) -> RunResult {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut result = full_run();
    let (patterns, types) = (std::mem::take(&mut result.patterns), std::mem::take(&mut result.types));
    result.config.backends =
        ["mpiio"].iter().chain(variants.iter().map(|(name, _)| name)).map(|n| (*n).into()).collect();
    let variant = |(name, _): &(&str, f64)| Variant { backend: (*name).into(), ..Variant::default() };
    result.config.variants = variants.iter().map(variant).collect();
    for p in patterns.iter().filter(|p| p.ranks == 4) {
        let drift: [f64; 8] = std::array::from_fn(|_| (NOISE.1 * normal(&mut random)).exp());
        for (name, speed) in [("mpiio", 1.0)].iter().chain(variants) {
            let mut own = PatternRecord { backend: (*name).into(), ..p.clone() };
            own.rounds = (1..)
                .zip(drift)
                .map(|(number, drift)| RoundRecord {
                    number,
                    calls: 1,
                    moved_bytes: p.moved_bytes / 8,
                    seconds: p.seconds() / 8.0 / speed * drift * (NOISE.0 * normal(&mut random)).exp(),
                })
                .collect();
            own.moved_bytes = p.moved_bytes / 8 * 8;
            let elsewhere = own.seconds() - own.intervals.transfer_seconds;
            own.intervals.transfer_seconds = own.rounds.iter().map(|round| round.seconds).sum::<f64>() - elsewhere;
            result.patterns.push(own);
        }
    }
    for (name, _) in [("mpiio", 1.0)].iter().chain(variants) {
        let own = types.iter().filter(|t| t.ranks == 4).cloned();
        result.types.extend(own.map(|mut t| {
            t.backend = (*name).into();
            t
        }));
    }
    result.partitions.retain(|p| p.ranks == 4);
    result
}

fn whole<'a>(all: &'a [VariantComparison], name: &str, access: AccessMethod) -> &'a VariantComparison {
    all.iter().find(|v| v.backend == name && v.access == access && v.pattern_type.is_none()).unwrap()
}

#[test]
fn a_variant_is_compared_with_its_backend_alone() {
    let mut result = run(&[("mpiio+fast", 2.0), ("mpiio+slow", 0.5)], 1);
    // Another backend, faster than all of them.
    let others: Vec<PatternRecord> = result.patterns.iter().filter(|p| p.backend == "mpiio").cloned().collect();
    result.patterns.extend(others.into_iter().map(|p| PatternRecord { backend: "posix".into(), ..p }));
    result.config.backends.insert(1, "posix".into());
    let all = derive(&result).ladder.variants;
    assert_eq!(all.len(), 2 * 3 * 6, "all types and five, in each access method");
    for v in &all {
        let expected = if v.backend == "mpiio+fast" { 2.0 } else { 0.5 };
        let ratio = v.ratio.unwrap();
        assert_eq!((v.base.as_str(), v.ranks, v.wrong_words), ("mpiio", 4, 0));
        // Opening and closing are the same for all.
        assert!((ratio.value / expected - 1.0).abs() < 0.35 && ratio.equal == Some(false), "{v:?}");
    }
    assert!(derive(&run(&[], 1)).ladder.variants.is_empty());
}

#[test]
fn a_type_that_one_of_them_lacks_is_in_neither_sum() {
    let mut result = run(&[("mpiio+same", 1.0)], 2);
    let is_lost = |p: &PatternRecord| p.backend == "mpiio+same" && p.pattern_type == PatternType::Shared;
    result.patterns.retain(|p| !is_lost(p));
    let all = derive(&result).ladder.variants;
    let types = all.iter().filter(|v| v.pattern_type == Some(PatternType::Shared));
    assert_eq!(types.filter(|v| v.ratio.is_none()).count(), 3);
    let before = derive(&run(&[("mpiio+same", 1.0)], 2)).ladder.variants;
    for access in AccessMethod::ALL {
        let [ratio, before] = [&all, &before].map(|all| whole(all, "mpiio+same", access).ratio.unwrap());
        assert!((ratio.value - 1.0).abs() < 0.1 && ratio.value != before.value, "{ratio:?}");
    }
}

#[test]
fn wrong_data_disqualifies_the_variant_alone() {
    let mut result = run(&[("mpiio+bad", 3.0), ("mpiio+good", 1.0)], 3);
    let bad = result.patterns.iter_mut().find(|p| p.backend == "mpiio+bad" && p.access == AccessMethod::Read).unwrap();
    bad.verification.words_wrong = 7;
    let derived = derive(&result);
    for v in &derived.ladder.variants {
        let expected = if v.backend == "mpiio+bad" { 7 } else { 0 };
        assert_eq!((v.wrong_words, v.is_disqualified()), (expected, expected > 0), "{v:?}");
    }
    assert!(derived.ladder.types.iter().all(|t| t.backend != "mpiio+bad"), "it is no rival of the others");
    let judged: Vec<&str> = derived.validity.iter().map(|v| v.backend.as_str()).collect();
    assert_eq!(judged, ["mpiio"; 3], "validity concerns the backend alone");
    let is_about_data = |text: &str| text.contains("data");
    let own = derived.validity.iter().flat_map(|v| &v.criteria).filter(|c| is_about_data(&c.text));
    assert!(own.clone().count() > 0 && own.into_iter().all(|c| c.met), "the data of the backend was correct");
}

/// Of equal variants, 95 % are called equal.
#[test]
fn equal_variants_are_called_equal() {
    let runs = run_count(400);
    let mut equal = [0; 3];
    for seed in 0..runs {
        let mut result = run(&[("mpiio+same", 1.0)], u64::from(seed));
        // A type has the same statistics as any other.
        result.config.types = vec![PatternType::Separate];
        let index = TypeRecordIndex::new(&result);
        let all = variants(&result, &index);
        for (count, access) in equal.iter_mut().zip(AccessMethod::ALL) {
            *count += u32::from(whole(&all, "mpiio+same", access).ratio.unwrap().equal == Some(true));
        }
    }
    for (count, access) in equal.into_iter().zip(AccessMethod::ALL) {
        let share = f64::from(count) / f64::from(runs);
        println!("{}: {share}", access.name());
        assert!(share >= lower_bound(0.93, runs), "{}: {share}", access.name());
    }
}
