use super::*;
use crate::frame::report::checks::assert_all_fields_are_known;
use crate::imb_io::report::fixtures;
use crate::imb_io::values::derive;

#[test]
fn every_field_of_the_configuration_has_its_meaning() {
    assert_all_fields_are_known(&fixtures::complete().config, &FIELDS);
}

#[test]
fn rows_and_means_are_offered() {
    let result = fixtures::complete();
    let offered = comparable(&result, &derive(&result));
    let number = |level: Level| offered.quantities.iter().filter(|q| q.level == level).count();
    let complete = result.rows.iter().filter(|r| r.ended == RowEnd::Complete).count();
    assert_eq!((number(Level::Value), number(Level::Detail)), (0, complete));
    let group = |row: &str| offered.quantities.iter().find(|q| q.level == Level::Group && q.row == row).unwrap();
    assert_eq!(group("Open_Close").unit, Microseconds);
    let rates: Vec<f64> = offered
        .quantities
        .iter()
        .filter(|q| q.level == Level::Detail && q.row == "C_Write_Expl, non-aggregate" && q.unit == MegabytesPerSecond)
        .map(|q| q.value.ln())
        .collect();
    let mean = (rates.iter().sum::<f64>() / rates.len() as f64).exp();
    assert!((group("C_Write_Expl").value / mean - 1.0).abs() < 1e-9);
}

#[test]
fn a_benchmark_that_is_not_whole_has_no_mean() {
    let mut result = fixtures::complete();
    let last = result.rows.iter_mut().rfind(|r| r.benchmark == "C_Write_Expl").unwrap();
    last.ended = RowEnd::Interrupted;
    let offered = comparable(&result, &derive(&result));
    assert!(offered.quantities.iter().all(|q| q.level != Level::Group || q.row != "C_Write_Expl"));
}
