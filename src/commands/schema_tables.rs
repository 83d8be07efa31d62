//! Generates the tables of fields in docs/ from the schemas. A table is between two comments, `<!-- fields of io PatternRecord -->`
//! (command and definition; the document itself without one) or `<!-- kinds of io IoWarning -->`, and `<!-- end -->`. A definition with a
//! table of its own is not repeated in cells of others; this holds for all further definitions that the comment names, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use beff_trace::summary::ProfileSummary;
use serde_json::{Map, Value};

use crate::benchmarks::BENCHMARKS;
use crate::frame::command::progress::ProgressEvent;
use crate::frame::report::schema::published_schema;

const PAGES: [&str; 2] = ["docs/profile.md", "docs/watching.md"];

const END: &str = "<!-- end -->";

/// Updated like golden files, with `INSTA_UPDATE=always`.
#[test]
fn tables_of_fields_are_those_of_the_schemas() {
    for page in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        let updated = DocPage::new(&fs::read_to_string(&path).unwrap()).with_tables();
        if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
            fs::write(&path, &updated).unwrap();
        }
        let is_current = fs::read_to_string(&path).unwrap() == updated;
        assert!(is_current, "{page} is out of date: INSTA_UPDATE=always cargo test --profile gate --lib");
    }
}

struct TableRequest<'p> {
    /// A row for each kind of an enumeration instead of each field.
    kinds: bool,
    command: &'p str,
    definition: Option<&'p str>,
}

/// Parses a comment: the requested table, and all definitions that it documents.
fn parse_request(line: &str) -> Option<(TableRequest<'_>, Vec<&str>)> {
    let words: Vec<&str> = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split(' ').collect();
    let [what @ ("fields" | "kinds"), "of", command, ref names @ ..] = words[..] else { return None };
    Some((TableRequest { kinds: what == "kinds", command, definition: names.first().copied() }, names.to_vec()))
}

struct DocPage<'p> {
    text: &'p str,
    schemas: BTreeMap<&'static str, Value>,
    /// Definitions that are documented already or have a table, by [`key`].
    documented: BTreeSet<String>,
}

impl<'p> DocPage<'p> {
    fn new(text: &'p str) -> Self {
        let of_results = BENCHMARKS.iter().map(|benchmark| (benchmark.commands[0].name, (benchmark.schema)()));
        let others = [
            ("profile", published_schema::<ProfileSummary>("Summary", None)),
            ("progress", published_schema::<ProgressEvent<'static>>("Events", None)),
        ];
        let all = of_results.chain(others);
        let schemas: BTreeMap<&str, Value> =
            all.map(|(name, text)| (name, serde_json::from_str(&text).unwrap())).collect();
        let named = text.lines().filter_map(parse_request).flat_map(|(_, names)| names);
        let of_all =
            named.flat_map(|name| schemas.values().filter_map(move |schema| Some((name, schema["$defs"].get(name)?))));
        let documented =
            of_all.map(|(name, definition)| definition_key(name, definition.as_object().unwrap())).collect();
        Self { text, schemas, documented }
    }

    fn with_tables(mut self) -> String {
        let mut out = String::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            out.push_str(line);
            out.push('\n');
            if let Some((wanted, _)) = parse_request(line) {
                out.push_str(&format!("\n{}\n{END}\n", self.table(&wanted)));
                assert!(lines.any(|line| line == END), "no end of {line}");
            }
        }
        out
    }

    fn table(&mut self, wanted: &TableRequest<'_>) -> String {
        let schema = self.schemas[wanted.command].clone();
        let of = Schema { schema: &schema };
        let node = wanted.definition.map_or_else(|| schema.as_object().unwrap(), |name| of.definition(name));
        let (head, rows) = if wanted.kinds {
            let kinds = of.alternatives(node).filter(|kind| kind.contains_key("properties"));
            ("kind", kinds.map(|kind| self.row(&of, &alternative_name(kind), kind)).collect::<String>())
        } else {
            let fields = properties(node);
            ("field", fields.map(|(name, field)| self.row(&of, name, field)).collect())
        };
        assert!(!rows.is_empty(), "nothing of {:?}", wanted.definition);
        format!("| {head} | meaning |\n|---|---|\n{rows}")
    }

    fn row(&mut self, of: &Schema<'_>, name: &str, node: &Map<String, Value>) -> String {
        let (what, parts) = self.meaning(of, node);
        let sentences: Vec<String> = what.into_iter().chain(parts).collect();
        format!("| `{name}` | {} |\n", sentences.join(" ").replace('|', "\\|"))
    }

    /// Description with the meaning of absence, and descriptions of its parts.
    fn meaning(&mut self, of: &Schema<'_>, node: &Map<String, Value>) -> (Option<String>, Vec<String>) {
        let what = node.get("description").and_then(Value::as_str);
        let default = node.get("default").filter(|value| value.is_string() || value.is_number() || value.is_boolean());
        let absent =
            default.filter(|value| **value != "").map(|value| format!("Missing in older results: `{}`.", plain(value)));
        let sentences: Vec<String> = what.map(str::to_owned).into_iter().chain(absent).collect();
        let inner = of.inner(node);
        let parts = match referenced_definition(inner) {
            Some(name) if !self.documented.insert(definition_key(name, of.definition(name))) => Vec::new(),
            Some(name) => self.parts(of, of.definition(name)),
            None => self.parts(of, inner),
        };
        (Some(sentences.join(" ")).filter(|what| !what.is_empty()), parts)
    }

    /// Descriptions of its alternatives or its fields.
    fn parts(&mut self, of: &Schema<'_>, node: &Map<String, Value>) -> Vec<String> {
        let words = of.alternatives(node).map(|one| (alternative_name(one), one));
        let fields = properties(node).filter(|(_, field)| !field.contains_key("const"));
        let all = words.chain(fields.map(|(name, field)| (name.to_owned(), field)));
        let items = all.map(|(name, part)| (name, self.meaning(of, part)));
        let items: Vec<_> = items.filter(|(_, (what, parts))| what.is_some() || !parts.is_empty()).collect();
        items
            .into_iter()
            .map(|(name, (what, parts))| format_item(&name, what.as_deref().unwrap_or_default(), &parts))
            .collect()
    }
}

/// One of several items in a cell, with its parts in parentheses.
fn format_item(name: &str, what: &str, parts: &[String]) -> String {
    let parts = parts.join(" ");
    let more = if parts.is_empty() { parts } else { format!("({parts})") };
    let sentences = [what, more.as_str()].map(str::to_owned).into_iter().filter(|text| !text.is_empty());
    format!("`{name}`: {}", sentences.collect::<Vec<_>>().join(" "))
}

fn referenced_definition(node: &Map<String, Value>) -> Option<&str> {
    node.get("$ref")?.as_str()?.rsplit('/').next()
}

struct Schema<'s> {
    schema: &'s Value,
}

impl<'s> Schema<'s> {
    fn definition(&self, name: &str) -> &'s Map<String, Value> {
        self.schema["$defs"][name].as_object().unwrap_or_else(|| panic!("no definition {name}"))
    }

    /// Elements of a list, the other type of a nullable value, the content of a single field without description.
    fn inner(&self, node: &'s Map<String, Value>) -> &'s Map<String, Value> {
        let not_null = |one: &&'s Map<String, Value>| one.get("type").is_none_or(|kind| kind != "null");
        let element = node.get("items").and_then(Value::as_object);
        let either = node.get("anyOf").and_then(Value::as_array).filter(|all| all.len() == 2);
        let other = either.and_then(|all| all.iter().filter_map(Value::as_object).find(not_null));
        let only = properties(node).next().filter(|_| properties(node).count() == 1);
        let named = only.map(|(_, field)| field).filter(|field| !field.contains_key("description"));
        element.or(other).or(named).map_or(node, |inner| self.inner(inner))
    }

    /// Alternatives that are defined here, not by reference.
    fn alternatives(&self, node: &'s Map<String, Value>) -> impl Iterator<Item = &'s Map<String, Value>> {
        let all = ["oneOf", "anyOf"].into_iter().filter_map(|key| node.get(key)?.as_array()).flatten();
        all.filter_map(Value::as_object).filter(|one| one.contains_key("const") || one.contains_key("properties"))
    }
}

fn properties(node: &Map<String, Value>) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    let all = node.get("properties").and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(name, field)| Some((name.as_str(), field.as_object()?)))
}

/// Name of an alternative: its constant, that of its tag, or the name of its only field.
fn alternative_name(alternative: &Map<String, Value>) -> String {
    let tags = properties(alternative).filter_map(|(_, field)| field.get("const"));
    let constant = alternative.get("const").into_iter().chain(tags).next().map(plain);
    constant.or_else(|| Some(properties(alternative).next()?.0.to_owned())).unwrap()
}

/// Definitions of several schemas are the same one if they are equal.
fn definition_key(name: &str, definition: &Map<String, Value>) -> String {
    format!("{name} {definition:?}")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
