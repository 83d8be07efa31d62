use super::*;
use crate::frame::report::checks::assert_all_config_fields_are_listed;
use crate::imb_io::report::fixtures;
use crate::imb_io::values::derive;

#[test]
fn every_field_of_the_configuration_has_its_meaning() {
    assert_all_config_fields_are_listed(&fixtures::complete().config, &FIELDS);
}

#[test]
fn rows_and_means_are_offered() {
    let result = fixtures::complete();
    let offered = comparable(&result, &derive(&result));
    let number = |level: QuantityLevel| offered.quantities.iter().filter(|q| q.level == level).count();
    let complete = result.rows.iter().filter(|r| r.ended == RowStatus::Complete).count();
    assert_eq!((number(QuantityLevel::Value), number(QuantityLevel::Detail)), (0, complete));
    let group =
        |row: &str| offered.quantities.iter().find(|q| q.level == QuantityLevel::Group && q.row == row).unwrap();
    assert_eq!(group("Open_Close").unit, Microseconds);
    let rates: Vec<f64> = offered
        .quantities
        .iter()
        .filter(|q| {
            q.level == QuantityLevel::Detail && q.row == "C_Write_Expl, non-aggregate" && q.unit == MegabytesPerSecond
        })
        .map(|q| q.value.ln())
        .collect();
    let mean = (rates.iter().sum::<f64>() / rates.len() as f64).exp();
    assert!((group("C_Write_Expl").value / mean - 1.0).abs() < 1e-9);
}

#[test]
fn an_incomplete_benchmark_has_no_mean() {
    let mut result = fixtures::complete();
    let last = result.rows.iter_mut().rfind(|r| r.benchmark == "C_Write_Expl").unwrap();
    last.ended = RowStatus::Interrupted;
    let offered = comparable(&result, &derive(&result));
    assert!(offered.quantities.iter().all(|q| q.level != QuantityLevel::Group || q.row != "C_Write_Expl"));
}
