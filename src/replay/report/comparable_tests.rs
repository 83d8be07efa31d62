use super::*;
use crate::frame::report::checks::assert_all_config_fields_are_listed;
use crate::replay::report::fixtures;
use crate::replay::values::derive;

#[test]
fn every_field_of_the_configuration_has_its_meaning() {
    assert_all_config_fields_are_listed(&fixtures::complete().config, &FIELDS);
}

#[test]
fn the_run_its_files_and_classes_are_offered() {
    let result = fixtures::complete();
    let offered = comparable(&result, &derive(&result));
    let number = |level: QuantityLevel| offered.quantities.iter().filter(|q| q.level == level).count();
    assert_eq!([number(QuantityLevel::Value), number(QuantityLevel::Group)], [1, 2]);
    assert!(number(QuantityLevel::Detail) >= 5, "{:#?}", offered.quantities);
}
