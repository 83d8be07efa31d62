//! Puts a text that a terminal would interpret into every field of every result.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tests::views;
use super::*;
use crate::frame::report::{parse, DetailLevel, DisplayContext, Views};
use crate::frame::terminal_escape;

/// Colours, a cursor that moves up, a bell, C1, another text direction, and a line break.
const ESCAPES: &str = " \u{1b}[31m\u{1b}[2A\u{7}\u{9b}2J\u{7f}\u{202e}\r\nFORGED\r*** FORGED";

/// JSON pointers of the texts.
fn collect_string_pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| collect_string_pointers(item, &format!("{at}/{n}"), found));
        }
        // Derived values are not read.
        Value::Object(fields) => {
            for (key, field) in fields.iter().filter(|(key, _)| *key != "derived") {
                collect_string_pointers(field, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

fn assert_harmless(bytes: &[u8], what: &str) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    for line in text.split('\n') {
        assert_eq!(terminal_escape::line(line), line, "{what}");
        // Continuation lines are indented.
        assert!(!["FORGED", "*** FORGED"].iter().any(|forged| line.starts_with(forged)), "{what}: {line}");
    }
    text
}

/// Number of fields of a result that may hold any text, and how often it is shown in a table. All of them hold it at once, so that equal
/// names stay equal.
fn check_with_escapes<R: Views + std::fmt::Debug + 'static>(result: &R) -> (usize, usize)
where
    R::Derived: std::fmt::Debug,
{
    let mut document: Value = serde_json::from_slice(&result.document(&result.derived()).unwrap()).unwrap();
    let mut places = Vec::new();
    collect_string_pointers(&document, "", &mut places);
    // Determined once for all elements of a list.
    let mut free: BTreeMap<String, bool> = BTreeMap::new();
    for place in &places {
        let field = document.pointer_mut(place).unwrap();
        let before = field.as_str().unwrap().to_owned();
        *field = (before.clone() + ESCAPES).into();
        let kind: Vec<&str> = place.split('/').filter(|part| part.parse::<u32>().is_err()).collect();
        let kind = kind.join("/");
        let is_free = *free.entry(kind).or_insert_with(|| parse::<R>(&serde_json::to_vec(&document).unwrap()).is_ok());
        if !is_free {
            // A word of a fixed set: the error for such a file goes to stderr, where it is escaped.
            *document.pointer_mut(place).unwrap() = before.into();
        }
    }
    let fields = free.values().filter(|is_free| **is_free).count();
    let (benchmark, report) = load(&serde_json::to_vec(&document).unwrap()).unwrap();
    let mut shown = 0;
    for level in [DetailLevel::Screen, DetailLevel::Full, DetailLevel::Details] {
        let text =
            assert_harmless(report.sheet(level, &DisplayContext::default()).render(false).as_bytes(), benchmark.name);
        shown = text.matches("\\u{1b}[31m").count();
    }
    for (word, view) in views(benchmark, report.as_ref()) {
        let view = view.unwrap_or_else(|e| panic!("{word}: {e}"));
        let text = assert_harmless(&view, &format!("{} as {word}", benchmark.name));
        assert!(text.contains("u{1b}[31m") || text.contains("u001b[31m"), "{} as {word}", benchmark.name);
    }
    (fields, shown)
}

#[test]
fn no_field_of_any_result_is_a_command_for_the_terminal() {
    fn all<R, D>(fixtures: Vec<(&'static str, R, D)>) -> Vec<(usize, usize)>
    where
        R: Views<Derived = D> + std::fmt::Debug + 'static,
        D: std::fmt::Debug,
    {
        // These two contain every field between them.
        let whole_or_failed = fixtures.iter().filter(|(name, ..)| ["complete", "failed"].contains(name));
        whole_or_failed.map(|(_, result, _)| check_with_escapes(result)).collect()
    }
    let found = [
        all(b_eff_io::report::fixtures::all()),
        all(b_eff::report::fixtures::all()),
        all(imb_io::report::fixtures::all()),
        all(replay::report::fixtures::all()),
    ];
    println!("fields that hold any text, and places of a table where they are shown: {found:?}");
    let enough = |(fields, shown): &(usize, usize)| *fields >= 20 && *shown >= 30;
    assert!(found.iter().all(|of| of.len() == 2 && of.iter().all(enough)), "{found:?}");
}

#[test]
fn a_file_that_is_refused_says_so_in_harmless_words() {
    let texts = [
        format!("{{\"program\": \"beff-raw\", \"schema_version\": 1, \"benchmark\": {}}}", Value::from(ESCAPES)),
        format!("{{\"record\":{},\"schema_version\":1}}\n", Value::from(ESCAPES)),
    ];
    for text in texts {
        let message = load(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains("FORGED"), "{message}");
        assert_harmless(crate::frame::command::indent_lines(&message).as_bytes(), "stderr");
    }
}
