//! Warnings about the numbers of a result. The code that detects a condition creates the warning and its text; the kinds are listed in
//! tables, one for the frame and one for each benchmark.

use std::borrow::Cow;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The figure that is a separate field: the subject, where there can be several warnings of a kind.
const BACKEND_FIGURE: &str = "backend";

/// Definition of warnings in the schema of a document.
pub(crate) const WARNING_DEFINITION: &str = "Warning";

/// A warning. There is at most one of a kind per backend, and it names the worst case, so that the list stays readable for any number of
/// patterns, partitions and hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Name of its [`WarningKind`].
    pub kind: Cow<'static, str>,
    /// Backend concerned, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Figures listed by the kind.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
    /// Summary without a full stop. This and the other texts are empty in results of versions that did not record them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Cause with figures, in a few sentences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// Suggested remedy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_step: String,
    /// Rank among warnings, if it differs from that of the kind.
    #[serde(skip)]
    pub rank: Option<u8>,
}

impl Warning {
    /// Sets the backend.
    #[must_use]
    pub fn for_backend(self, backend: impl Into<String>) -> Self {
        Self { backend: Some(backend.into()), ..self }
    }

    /// Adds a figure; a value that cannot be serialized becomes null.
    #[must_use]
    pub fn with_figure(mut self, name: &str, value: impl Serialize) -> Self {
        self.figures.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// Sets summary and cause.
    #[must_use]
    pub fn with_text(self, summary: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { summary: summary.into(), cause: cause.into(), ..self }
    }

    /// Replaces the next step of the kind.
    #[must_use]
    pub fn with_next_step(self, next_step: impl Into<String>) -> Self {
        Self { next_step: next_step.into(), ..self }
    }

    /// True if it is of this kind.
    #[must_use]
    pub fn is_kind(&self, kind: &WarningKind) -> bool {
        self.kind == kind.name
    }

    /// A numeric figure; None if it is missing or not a number.
    #[must_use]
    pub fn number(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure)?.as_f64()
    }

    /// A text figure; empty if it is missing or not text.
    #[must_use]
    pub fn text(&self, figure: &str) -> &str {
        self.figures.get(figure).and_then(Value::as_str).unwrap_or_default()
    }

    /// Kind and figures as text: `files left: path /x, reason busy`.
    #[must_use]
    pub fn raw_text(&self) -> String {
        let word = |name: &str| name.replace('_', " ");
        let subject = self.backend.iter().map(|backend| format!("{BACKEND_FIGURE} {backend}"));
        let known = self.figures.iter().filter(|(_, value)| !value.is_null());
        let figures = known.map(|(name, value)| match value {
            Value::String(text) => format!("{} {text}", word(name)),
            other => format!("{} {other}", word(name)),
        });
        let all: Vec<String> = subject.chain(figures).collect();
        let colon = if all.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", word(&self.kind), all.join(", "))
    }
}

/// References the definition that a document generates from the kinds of its benchmark.
impl JsonSchema for Warning {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        WARNING_DEFINITION.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "$ref": format!("#/$defs/{WARNING_DEFINITION}") })
    }
}

/// Kind of a warning.
#[derive(Clone, Copy, Debug)]
pub struct WarningKind {
    /// Name in results.
    pub name: &'static str,
    /// Importance, smallest first; below 10 if all numbers are affected.
    pub rank: u8,
    /// Condition that is reported.
    pub meaning: &'static str,
    /// Default remedy.
    pub next_step: &'static str,
    /// Figures in addition to the text.
    pub figures: &'static [WarningFigure],
}

/// A figure of a kind of warning.
#[derive(Clone, Copy, Debug)]
pub struct WarningFigure {
    /// Name in results.
    pub name: &'static str,
    /// Description.
    pub meaning: &'static str,
    /// The figure was added after its kind: older results lack it.
    pub is_optional: bool,
    /// Schema of its values.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl WarningKind {
    /// Creates a warning of this kind without figures and text.
    #[must_use]
    pub fn warning(&self) -> Warning {
        Warning {
            kind: self.name.into(),
            backend: None,
            figures: Map::new(),
            summary: String::new(),
            cause: String::new(),
            next_step: self.next_step.to_owned(),
            rank: None,
        }
    }

    /// Names missing and unexpected figures and missing texts of a warning of this kind.
    #[must_use]
    pub fn mismatches(&self, warning: &Warning) -> Vec<String> {
        let mut has: Vec<&str> = warning.figures.keys().map(String::as_str).collect();
        has.extend(warning.backend.iter().map(|_| BACKEND_FIGURE));
        let missing = self.figures.iter().filter(|f| !f.is_optional && !has.contains(&f.name)).map(|f| f.name);
        let is_unknown = |name: &&str| !self.figures.iter().any(|f| f.name == *name);
        let sentences = [("cause", &warning.cause), ("next_step", &warning.next_step)];
        let unsaid = sentences.iter().filter(|(_, text)| !text.ends_with('.')).map(|(name, _)| *name);
        let unnamed = warning.summary.is_empty().then_some("summary");
        missing.chain(has.iter().copied().filter(is_unknown)).chain(unsaid).chain(unnamed).map(str::to_owned).collect()
    }
}

/// Defines a table of kinds: a constant for each, and `KINDS` with all of them. A kind has a docstring, the names of its constant and in
/// results, a rank, a next step, and figures with docstrings and types. `= null` marks a figure that was added after its kind.
macro_rules! kinds {
    ($(
        $(#[doc = $meaning:literal])+
        $KIND:ident = $name:literal, $rank:literal,
        $next_step:literal {
            $($(#[doc = $what:literal])+ $figure:ident: $Type:ty $(= $default:ident)?,)*
        }
    )+) => {
        $(
            $(#[doc = $meaning])+
            pub const $KIND: $crate::frame::records::WarningKind = $crate::frame::records::WarningKind {
                name: $name,
                rank: $rank,
                meaning: concat!($($meaning),+),
                next_step: $next_step,
                figures: &[$($crate::frame::records::WarningFigure {
                    name: stringify!($figure),
                    meaning: concat!($($what),+),
                    is_optional: !stringify!($($default)?).is_empty(),
                    schema: |generator| generator.subschema_for::<$Type>(),
                }),*],
            };
        )+

        /// All of them.
        pub const KINDS: &[$crate::frame::records::WarningKind] = &[$($KIND),+];
    };
}
pub(crate) use kinds;

#[cfg(test)]
mod tests {
    use super::*;

    kinds! {
        /// A test.
        TEST = "test_kind", 1, "Do nothing." {
            /// About.
            backend: String,
            /// How many.
            number: u64,
            /// Why.
            reason: Option<String> = null,
        }
    }

    #[test]
    fn a_warning_is_flat_and_round_trips() {
        let warning =
            TEST.warning().for_backend("posix").with_figure("number", 3).with_text("three", "There are three.");
        let text = serde_json::to_string(&warning).unwrap();
        let words = r#""summary":"three","cause":"There are three.","next_step":"Do nothing.""#;
        assert_eq!(text, format!(r#"{{"kind":"test_kind","backend":"posix","number":3,{words}}}"#));
        assert_eq!(serde_json::from_str::<Warning>(&text).unwrap(), warning);
        assert_eq!((warning.number("number"), warning.text("number")), (Some(3.0), ""));
    }

    #[test]
    fn a_warning_without_text_is_shown_by_its_figures() {
        let text = r#"{"kind":"files_left","path":"/x","reason":"busy","state":null}"#;
        let warning: Warning = serde_json::from_str(text).unwrap();
        assert_eq!(warning.raw_text(), "files left: path /x, reason busy");
        assert_eq!(serde_json::to_string(&warning).unwrap(), text, "nothing is made up");
    }

    #[test]
    fn figures_and_text_match_the_kind() {
        let warning =
            TEST.warning().for_backend("posix").with_figure("number", 3).with_text("three", "There are three.");
        assert_eq!(TEST.mismatches(&warning), Vec::<String>::new());
        let other = Warning { backend: None, ..warning.with_figure("speed", 1).with_text("", "no stop") };
        assert_eq!(TEST.mismatches(&other), ["backend", "speed", "cause", "summary"]);
        assert!(KINDS.len() == 1 && TEST.figures[2].is_optional && TEST.meaning.trim() == "A test.");
    }
}
