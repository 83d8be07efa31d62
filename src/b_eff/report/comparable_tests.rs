use super::*;
use crate::b_eff::report::fixtures;
use crate::b_eff::values::derive;
use crate::frame::report::checks::assert_all_fields_are_known;

#[test]
fn every_field_of_the_configuration_has_its_meaning() {
    assert_all_fields_are_known(&fixtures::complete().config, &FIELDS);
}

#[test]
fn value_groups_and_sizes_are_offered() {
    let result = fixtures::complete();
    let offered = comparable(&result, &derive(&result));
    let number = |level: Level| offered.quantities.iter().filter(|q| q.level == level).count();
    assert_eq!([number(Level::Value), number(Level::Group), number(Level::Detail)], [1, 9, 63]);
    let times = offered.quantities.iter().filter(|q| q.unit == Microseconds).count();
    assert_eq!(times, 3, "latencies");
}

#[test]
fn a_run_that_ended_early_has_no_value() {
    let result = fixtures::interrupted();
    let offered = comparable(&result, &derive(&result));
    assert!(offered.quantities.iter().all(|q| q.level != Level::Value) && !offered.quantities.is_empty());
}
