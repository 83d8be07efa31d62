use super::*;
use crate::frame::report::checks::assert_all_fields_are_known;
use crate::replay::report::fixtures;
use crate::replay::values::derive;

#[test]
fn every_field_of_the_configuration_has_its_meaning() {
    assert_all_fields_are_known(&fixtures::complete().config, &FIELDS);
}

#[test]
fn the_run_its_files_and_classes_are_offered() {
    let result = fixtures::complete();
    let offered = comparable(&result, &derive(&result));
    let number = |level: Level| offered.quantities.iter().filter(|q| q.level == level).count();
    assert_eq!([number(Level::Value), number(Level::Group)], [1, 2]);
    assert!(number(Level::Detail) >= 5, "{:#?}", offered.quantities);
}
