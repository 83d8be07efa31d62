//! PREFIX.json of IMB-IO: one pretty JSON document with everything, described by docs/imb-schema.json.

use serde::Serialize;

use crate::frame::report::json::{warning_views, write, WarningView};
use crate::imb_io::records::ImbResult;
use crate::imb_io::values::{ImbBareValue, ImbDerived, ImbVerdict, ImbWarning, RowValue};

#[derive(Serialize)]
struct DerivedView<'a> {
    rows: &'a [RowValue],
    bare: &'a [ImbBareValue],
    verdict: &'a ImbVerdict,
    warnings: Vec<WarningView<'a, ImbWarning>>,
}

/// The document as UTF-8 bytes with a newline at the end.
///
/// # Errors
/// A path of the configuration that is not UTF-8 has no JSON form.
pub fn document(result: &ImbResult, derived: &ImbDerived) -> Result<Vec<u8>, serde_json::Error> {
    let derived = DerivedView {
        rows: &derived.rows,
        bare: &derived.bare,
        verdict: &derived.verdict,
        warnings: warning_views(&derived.warnings, super::text),
    };
    write(result, derived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::report::json::{parse_as, JsonError};
    use crate::frame::report::schema::{assert_closed, assert_valid};
    use crate::frame::report::Views;
    use crate::imb_io::report::fixtures;
    use crate::imb_io::values::derive;

    fn parse(bytes: &[u8]) -> Result<ImbResult, JsonError> {
        parse_as(bytes, ImbResult::SCHEMA)
    }

    fn schema() -> serde_json::Value {
        serde_json::from_str(include_str!("../../../docs/imb-schema.json")).unwrap()
    }

    #[test]
    fn documents_fit_the_published_schema_and_read_back() {
        for (name, result, derived) in fixtures::all() {
            let bytes = document(&result, &derived).unwrap();
            assert_valid(&schema(), &bytes);
            assert_eq!(parse(&bytes).unwrap(), result, "{name}");
        }
    }

    #[test]
    fn every_warning_fits_the_schema() {
        let result = fixtures::complete();
        let derived = ImbDerived { warnings: fixtures::every_warning(), ..derive(&result) };
        assert_valid(&schema(), &document(&result, &derived).unwrap());
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
        let bytes = document(&result, &derive(&result)).unwrap();
        insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
    }

    #[test]
    fn the_schema_allows_nothing_beyond_what_it_names() {
        assert_closed(&schema());
    }

    #[test]
    fn an_unknown_field_does_not_fit_the_schema() {
        let result = fixtures::complete();
        let bytes = document(&result, &derive(&result)).unwrap();
        let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let validator = jsonschema::validator_for(&schema()).unwrap();
        assert!(validator.is_valid(&document));
        document["rows"][0]["speed"] = 1.into();
        assert!(!validator.is_valid(&document));
    }

    #[test]
    fn a_field_that_is_missing_is_named_with_its_schema() {
        let own = br#"{"program":"beff-raw","schema_version":1,"benchmark":"imb_io"}"#;
        let message = parse(own).unwrap_err().to_string();
        assert!(message.contains("missing field") && message.contains("docs/imb-schema.json"), "{message}");
    }
}
