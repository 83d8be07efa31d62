//! PREFIX.json: what is written fits its published schema and reads back.

use crate::frame::report::checks::{assert_fits, assert_missing_is_named, assert_published};
use crate::frame::report::Views;
use crate::imb_io::records::ImbResult;
use crate::imb_io::report::fixtures;

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_published::<ImbResult>();
    assert_missing_is_named::<ImbResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_fits(result, "rows"));
}

#[test]
fn golden_document() {
    let mut result = fixtures::failed();
    // One row of each end says it all.
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
