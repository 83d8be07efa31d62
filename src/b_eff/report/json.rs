//! PREFIX.json of b_eff: one pretty JSON document with everything, described by docs/comm-schema.json.

use serde::Serialize;

use crate::b_eff::records::CommResult;
use crate::b_eff::values::{BareValue, CommDerived, CommValue, CommWarning, Curve, MethodValue, SizeAverage};
use crate::frame::report::json::{warning_views, write, WarningView};
use crate::frame::values::Criterion;

#[derive(Serialize)]
struct DerivedView<'a> {
    value: &'a CommValue,
    methods: &'a [MethodValue],
    sizes: &'a [SizeAverage],
    curves: &'a [Curve],
    bare: &'a [BareValue],
    valid: bool,
    criteria: &'a [Criterion],
    warnings: Vec<WarningView<'a, CommWarning>>,
}

/// The document as UTF-8 bytes with a newline at the end.
///
/// # Errors
/// A path of the configuration that is not UTF-8 has no JSON form.
pub fn document(result: &CommResult, derived: &CommDerived) -> Result<Vec<u8>, serde_json::Error> {
    let derived = DerivedView {
        value: &derived.value,
        methods: &derived.methods,
        sizes: &derived.sizes,
        curves: &derived.curves,
        bare: &derived.bare,
        valid: derived.valid,
        criteria: &derived.criteria,
        warnings: warning_views(&derived.warnings, |warning| super::text(warning, &result.config)),
    };
    write(result, derived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::report::fixtures;
    use crate::b_eff::values::derive;
    use crate::frame::report::json::{parse_as, JsonError};
    use crate::frame::report::schema::{assert_closed, assert_valid};
    use crate::frame::report::Views;

    fn parse(bytes: &[u8]) -> Result<CommResult, JsonError> {
        parse_as(bytes, CommResult::SCHEMA)
    }

    fn schema() -> serde_json::Value {
        serde_json::from_str(include_str!("../../../docs/comm-schema.json")).unwrap()
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
        let derived = CommDerived { warnings: fixtures::every_warning(), ..derive(&result) };
        assert_valid(&schema(), &document(&result, &derived).unwrap());
    }

    #[test]
    fn golden_document() {
        let mut result = fixtures::failed();
        // One pattern of each kind and the first and last sizes say it all.
        result.patterns.retain(|p| ["ping-pong", "ring-2", "random-1"].contains(&p.pattern.as_str()));
        for pattern in &mut result.patterns {
            pattern.sizes.truncate(2);
        }
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
        document["patterns"][0]["speed"] = 1.into();
        assert!(!validator.is_valid(&document));
    }

    #[test]
    fn a_field_that_is_missing_is_named_with_its_schema() {
        let own = br#"{"program":"beff-raw","schema_version":1,"benchmark":"b_eff"}"#;
        let message = parse(own).unwrap_err().to_string();
        assert!(message.contains("missing field") && message.contains("docs/comm-schema.json"), "{message}");
    }
}
