use super::*;
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::values::{derive, ValueInterval};
use crate::frame::report::checks::assert_all_config_fields_are_listed;
use crate::frame::values::doubt::Doubt;

#[test]
fn every_field_of_the_configuration_has_its_meaning() {
    assert_all_config_fields_are_listed(&fixtures::complete().config, &FIELDS);
}

#[test]
fn value_types_and_patterns_are_offered() {
    let result = fixtures::complete();
    let derived = derive(&result);
    let offered = comparable(&result, &derived);
    let number = |level: QuantityLevel| offered.quantities.iter().filter(|q| q.level == level).count();
    let of_sides = 2 * 2;
    assert_eq!(number(QuantityLevel::Value), 2, "a value for each backend");
    assert_eq!(number(QuantityLevel::Group), of_sides * 3 * 6, "five types and their mean");
    let timed = result.patterns.iter().filter(|p| p.time_units > 0).count();
    assert_eq!(number(QuantityLevel::Detail), timed);
    for quantity in &offered.quantities {
        let shares: f64 = quantity.context.shares.iter().map(|(_, share)| share).sum();
        assert!(quantity.context.shares.is_empty() || (shares - 1.0).abs() < 1e-9, "{quantity:?}");
        assert!(quantity.value > 0.0 && quantity.noise >= 1.0, "{quantity:?}");
    }
    let cached = offered
        .quantities
        .iter()
        .find(|q| q.ranks == 4 && q.row == "read" && q.level == QuantityLevel::Detail)
        .unwrap();
    assert_eq!(cached.context.cache_share, Some(0.75));
}

/// The value of a run with wide intervals is not known; those of its null backend do not matter.
#[test]
fn wide_intervals_are_doubts() {
    let result = fixtures::complete();
    let mut derived = derive(&result);
    derived.intervals.values.clear();
    assert_eq!(comparable(&result, &derived).doubts, []);
    let interval = |backend: &str, high: f64| ValueInterval {
        backend: backend.into(),
        ranks: 2,
        access: None,
        pattern_type: None,
        low: 10.0,
        high,
        resolving_time_seconds: None,
        repetitions_mb_per_second: 10.0,
        pooled_share: 0.0,
    };
    derived.intervals.values = vec![interval("mpiio", 19.0), interval("posix", 40.0), interval("null", 90.0)];
    assert_eq!(comparable(&result, &derived).doubts, [Doubt::TooShort { factor: 4.0 }]);
}

/// Each order has quantities of its own, after those of the definition, which are the same without orders.
#[test]
fn other_orders_and_mixes_are_offered() {
    let result = fixtures::ordered();
    let offered = comparable(&result, &derive(&result)).quantities;
    let mut without = result.clone();
    without.ordered.clear();
    let defined = comparable(&without, &derive(&without)).quantities.len();
    assert_eq!(defined + result.ordered.len(), offered.len());
    for (quantity, record) in offered[defined..].iter().zip(&result.ordered) {
        let p = &record.measurement;
        assert_eq!((quantity.level, &quantity.backend, quantity.ranks), (QuantityLevel::Detail, &p.backend, p.ranks));
        assert_eq!(quantity.value, p.moved_bytes as f64 / p.seconds() / 1e6);
        assert_eq!(quantity.rounds.len(), p.rounds.len());
    }
    let mut rows: Vec<&str> = offered[defined..].iter().map(|q| q.row.as_str()).collect();
    rows.sort_unstable();
    rows.dedup();
    let of_order = |order: &str| ["70:30", "read", "rewrite"].map(|name| format!("{order} {name}"));
    assert_eq!(rows, [of_order("random"), of_order("sequential")].concat());
}

#[test]
fn names_of_patterns_are_no_two_alike() {
    let mut result = fixtures::complete();
    result.ordered = fixtures::ordered().ordered;
    let offered = comparable(&result, &derive(&result));
    let mut names: Vec<String> = offered
        .quantities
        .iter()
        .map(|q| format!("{:?} {} {} {} {}", q.level, q.backend, q.ranks, q.row, q.column))
        .collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(names.iter().any(|name| name.ends_with("write 1 kB+8, separate, pattern 23")), "{names:#?}");
}

#[test]
fn a_run_that_ended_early_offers_what_it_has() {
    let result = fixtures::interrupted();
    let offered = comparable(&result, &derive(&result));
    assert_eq!(offered.troubles, ["it was interrupted"]);
    assert!(offered.quantities.iter().all(|q| q.level != QuantityLevel::Value) && !offered.quantities.is_empty());
    let failed = fixtures::failed();
    assert!(comparable(&failed, &derive(&failed)).is_corrupt);
}
