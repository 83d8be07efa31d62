//! PREFIX.json: conforms to its published schema and reads back.

use crate::b_eff::records::CommResult;
use crate::b_eff::report::fixtures;
use crate::frame::report::checks::{
    assert_document_matches_schema, assert_missing_field_is_named, assert_schema_is_current,
};
use crate::frame::report::Views;

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_schema_is_current::<CommResult>();
    assert_missing_field_is_named::<CommResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_document_matches_schema(result, "patterns"));
}

#[test]
fn golden_document() {
    let mut result = fixtures::failed();
    // One pattern of each kind with the first two sizes is sufficient.
    result.patterns.retain(|p| ["ping-pong", "ring-2", "random-1"].contains(&p.pattern.as_str()));
    for pattern in &mut result.patterns {
        pattern.sizes.truncate(2);
    }
    let bytes = result.document(&result.derived()).unwrap();
    insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
}
