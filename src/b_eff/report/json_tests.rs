//! PREFIX.json: what is written fits its published schema and reads back.

use crate::b_eff::records::CommResult;
use crate::b_eff::report::fixtures;
use crate::frame::report::checks::{assert_fits, assert_missing_is_named, assert_published};
use crate::frame::report::Views;

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_published::<CommResult>();
    assert_missing_is_named::<CommResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_fits(result, "patterns"));
}

#[test]
fn golden_document() {
    let mut result = fixtures::failed();
    // One pattern of each kind and the first and last sizes say it all.
    result.patterns.retain(|p| ["ping-pong", "ring-2", "random-1"].contains(&p.pattern.as_str()));
    for pattern in &mut result.patterns {
        pattern.sizes.truncate(2);
    }
    let bytes = result.document(&result.derived()).unwrap();
    insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
}
