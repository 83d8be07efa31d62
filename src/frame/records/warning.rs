//! Warnings: what the reader of the numbers must know. Whoever finds the condition makes the warning, with its words; what kinds
//! there are stands in tables, one of the frame and one of each benchmark.

use std::borrow::Cow;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The figure that is a field of its own: what a warning is about, where there can be several of a kind.
const SUBJECT: &str = "backend";

/// Where the schema of a document describes its warnings.
pub(crate) const DEFINITION: &str = "Warning";

/// Something the reader of the numbers must know. At most one of a kind for each backend, with the worst case named, so that a page
/// of warnings stays readable whatever the number of patterns, partitions and hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// The name of its [`Kind`].
    pub kind: Cow<'static, str>,
    /// The backend that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// What was found, as its kind lists it.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
    /// In a few words, without a full stop. Empty, as the other words: of a version that did not record them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// What happened, with figures, in a few plain sentences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_step: String,
    /// Its place among others, if not that of its kind.
    #[serde(skip)]
    pub rank: Option<u8>,
}

impl Warning {
    /// About this backend.
    #[must_use]
    pub fn of(self, backend: impl Into<String>) -> Self {
        Self { backend: Some(backend.into()), ..self }
    }

    /// With one more figure; what has no form in JSON is null.
    #[must_use]
    pub fn figure(mut self, name: &str, value: impl Serialize) -> Self {
        self.figures.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// In words.
    #[must_use]
    pub fn told(self, summary: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { summary: summary.into(), cause: cause.into(), ..self }
    }

    /// With another next step than others of its kind.
    #[must_use]
    pub fn next(self, next_step: impl Into<String>) -> Self {
        Self { next_step: next_step.into(), ..self }
    }

    /// True if it is of this kind.
    #[must_use]
    pub fn is(&self, kind: &Kind) -> bool {
        self.kind == kind.name
    }

    /// A figure that is a number; None: it is none, or not there.
    #[must_use]
    pub fn number(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure)?.as_f64()
    }

    /// A figure that is text; empty: it is none, or not there.
    #[must_use]
    pub fn text(&self, figure: &str) -> &str {
        self.figures.get(figure).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its kind and figures as words: `files left: path /x, reason busy`.
    #[must_use]
    pub fn bare(&self) -> String {
        let word = |name: &str| name.replace('_', " ");
        let subject = self.backend.iter().map(|backend| format!("{SUBJECT} {backend}"));
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

/// Refers to what a document makes of the kinds of its benchmark.
impl JsonSchema for Warning {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        DEFINITION.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "$ref": format!("#/$defs/{DEFINITION}") })
    }
}

/// What there can be warned of.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// In results.
    pub name: &'static str,
    /// The smaller, the more important; below 10 what spoils all numbers.
    pub rank: u8,
    /// What is the case.
    pub meaning: &'static str,
    /// What to do about it, if nothing better is known.
    pub next_step: &'static str,
    /// What a warning has beside its words.
    pub figures: &'static [Figure],
}

/// One thing that a kind of warning tells.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// In results.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// It came later than its kind: older results have none.
    pub came_later: bool,
    /// What it can be.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Kind {
    /// A warning of this kind, still without figures and words.
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

    /// Figures that a warning of this kind lacks or has too many of, and words that it lacks.
    #[must_use]
    pub fn misfits(&self, warning: &Warning) -> Vec<String> {
        let mut has: Vec<&str> = warning.figures.keys().map(String::as_str).collect();
        has.extend(warning.backend.iter().map(|_| SUBJECT));
        let missing = self.figures.iter().filter(|f| !f.came_later && !has.contains(&f.name)).map(|f| f.name);
        let is_unknown = |name: &&str| !self.figures.iter().any(|f| f.name == *name);
        let sentences = [("cause", &warning.cause), ("next_step", &warning.next_step)];
        let unsaid = sentences.iter().filter(|(_, text)| !text.ends_with('.')).map(|(name, _)| *name);
        let unnamed = warning.summary.is_empty().then_some("summary");
        missing.chain(has.iter().copied().filter(is_unknown)).chain(unsaid).chain(unnamed).map(str::to_owned).collect()
    }
}

/// A table of kinds: a constant for each, and `KINDS`, all of them. A kind is its docstring, the name of its constant and in results, its
/// rank, its next step, and its figures with their docstrings and types. `= null` says that the figure came later than the kind.
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
            pub const $KIND: $crate::frame::records::Kind = $crate::frame::records::Kind {
                name: $name,
                rank: $rank,
                meaning: concat!($($meaning),+),
                next_step: $next_step,
                figures: &[$($crate::frame::records::Figure {
                    name: stringify!($figure),
                    meaning: concat!($($what),+),
                    came_later: !stringify!($($default)?).is_empty(),
                    schema: |generator| generator.subschema_for::<$Type>(),
                }),*],
            };
        )+

        /// All of them.
        pub const KINDS: &[$crate::frame::records::Kind] = &[$($KIND),+];
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
    fn a_warning_is_flat_and_reads_back() {
        let warning = TEST.warning().of("posix").figure("number", 3).told("three", "There are three.");
        let text = serde_json::to_string(&warning).unwrap();
        let words = r#""summary":"three","cause":"There are three.","next_step":"Do nothing.""#;
        assert_eq!(text, format!(r#"{{"kind":"test_kind","backend":"posix","number":3,{words}}}"#));
        assert_eq!(serde_json::from_str::<Warning>(&text).unwrap(), warning);
        assert_eq!((warning.number("number"), warning.text("number")), (Some(3.0), ""));
    }

    #[test]
    fn what_an_older_version_recorded_is_told_by_its_figures() {
        let text = r#"{"kind":"files_left","path":"/x","reason":"busy","state":null}"#;
        let warning: Warning = serde_json::from_str(text).unwrap();
        assert_eq!(warning.bare(), "files left: path /x, reason busy");
        assert_eq!(serde_json::to_string(&warning).unwrap(), text, "nothing is made up");
    }

    #[test]
    fn figures_and_words_are_as_listed() {
        let warning = TEST.warning().of("posix").figure("number", 3).told("three", "There are three.");
        assert_eq!(TEST.misfits(&warning), Vec::<String>::new());
        let other = Warning { backend: None, ..warning.figure("speed", 1).told("", "no stop") };
        assert_eq!(TEST.misfits(&other), ["backend", "speed", "cause", "summary"]);
        assert!(KINDS.len() == 1 && TEST.figures[2].came_later && TEST.meaning.trim() == "A test.");
    }
}
