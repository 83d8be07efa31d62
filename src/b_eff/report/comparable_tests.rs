use super::*;
use crate::b_eff::report::fixtures;
use crate::b_eff::values::derive;
use crate::frame::report::checks::assert_all_config_fields_are_listed;

#[test]
fn every_field_of_the_configuration_has_its_meaning() {
    assert_all_config_fields_are_listed(&fixtures::complete().config, &FIELDS);
}

#[test]
fn value_groups_and_sizes_are_offered() {
    let result = fixtures::complete();
    let offered = comparable(&result, &derive(&result));
    let number = |level: QuantityLevel| offered.quantities.iter().filter(|q| q.level == level).count();
    assert_eq!([number(QuantityLevel::Value), number(QuantityLevel::Group), number(QuantityLevel::Detail)], [1, 9, 63]);
    let times = offered.quantities.iter().filter(|q| q.unit == Microseconds).count();
    assert_eq!(times, 3, "latencies");
}

#[test]
fn a_run_that_ended_early_has_no_value() {
    let result = fixtures::interrupted();
    let offered = comparable(&result, &derive(&result));
    assert!(offered.quantities.iter().all(|q| q.level != QuantityLevel::Value) && !offered.quantities.is_empty());
}
