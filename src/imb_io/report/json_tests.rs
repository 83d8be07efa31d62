//! PREFIX.json conforms to its published schema and reads back.

use crate::frame::report::checks::{
    assert_document_matches_schema, assert_missing_field_is_named, assert_schema_is_current,
};
use crate::frame::report::Views;
use crate::imb_io::records::ImbResult;
use crate::imb_io::report::fixtures;

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_schema_is_current::<ImbResult>();
    assert_missing_field_is_named::<ImbResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_document_matches_schema(result, "rows"));
}

#[test]
fn golden_document() {
    let mut result = fixtures::failed();
    // One row of each outcome.
    let mut ends = Vec::new();
    result.rows.retain(|r| {
        let end = std::mem::discriminant(&r.ended);
        let is_new = !ends.contains(&end);
        ends.push(end);
        is_new
    });
    let bytes = result.document(&result.derived()).unwrap();
    insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
}
