//! PREFIX.json: what is written fits its published schema and reads back.

use crate::frame::report::checks::{assert_closed, assert_fits, assert_missing_is_named, assert_valid};
use crate::frame::report::Views;
use crate::replay::records::ReplayResult;
use crate::replay::report::fixtures;
use crate::replay::values::ReplayDerived;

fn schema() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../docs/replay-schema.json")).unwrap()
}

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_closed(&schema());
    assert_missing_is_named::<ReplayResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_fits(&schema(), result, "passes"));
}

#[test]
fn every_warning_fits_the_schema() {
    let result = fixtures::complete();
    let derived = ReplayDerived { warnings: fixtures::every_warning(), ..result.derived() };
    assert_valid(&schema(), &result.document(&derived).unwrap());
}

#[test]
fn golden_document() {
    let result = fixtures::failed();
    let bytes = result.document(&result.derived()).unwrap();
    insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
}
