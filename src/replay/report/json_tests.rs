//! PREFIX.json: documents conform to the published schema and read back.

use crate::frame::report::checks::{
    assert_document_matches_schema, assert_missing_field_is_named, assert_schema_is_current,
};
use crate::frame::report::Views;
use crate::replay::records::ReplayResult;
use crate::replay::report::fixtures;

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_schema_is_current::<ReplayResult>();
    assert_missing_field_is_named::<ReplayResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_document_matches_schema(result, "repetitions"));
}

#[test]
fn golden_document() {
    let result = fixtures::failed();
    let bytes = result.document(&result.derived()).unwrap();
    insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
}
