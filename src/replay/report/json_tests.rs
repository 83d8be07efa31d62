//! PREFIX.json: what is written fits its published schema and reads back.

use crate::frame::report::checks::{assert_fits, assert_missing_is_named, assert_published};
use crate::frame::report::Views;
use crate::replay::records::ReplayResult;
use crate::replay::report::fixtures;

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_published::<ReplayResult>();
    assert_missing_is_named::<ReplayResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_fits(result, "passes"));
}

#[test]
fn golden_document() {
    let result = fixtures::failed();
    let bytes = result.document(&result.derived()).unwrap();
    insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
}
