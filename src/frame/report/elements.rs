//! Layout of PREFIX.json: fields are indented, one per line, and every element of a list is one line without blanks, so that records can be
//! searched and compared by line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

const INDENT: &[u8] = b"  ";

/// Formatter that writes values outside of lists one per line, and list elements compactly.
#[derive(Debug, Default)]
struct ElementFormatter {
    /// Enclosing objects and lists that are indented.
    depth: usize,
    /// Enclosing lists.
    lists: usize,
    /// The current object or list is not empty.
    has_value: bool,
}

impl ElementFormatter {
    fn begin_line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(INDENT))
    }

    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.begin_line(out)?;
        }
        self.has_value = true;
        out.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        if !is_first {
            out.write_all(b",")?;
        }
        self.begin_line(out)
    }
}

impl Formatter for ElementFormatter {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.lists += 1;
        if self.lists > 1 {
            return CompactFormatter.begin_array(out);
        }
        self.begin(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.lists -= 1;
        if self.lists > 0 {
            return CompactFormatter.end_array(out);
        }
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        if self.lists > 1 {
            return CompactFormatter.begin_array_value(out, is_first);
        }
        self.next(out, is_first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.lists > 0 {
            return CompactFormatter.begin_object(out);
        }
        self.begin(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.lists > 0 {
            return CompactFormatter.end_object(out);
        }
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        if self.lists > 0 {
            return CompactFormatter.begin_object_key(out, is_first);
        }
        self.next(out, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.lists > 0 { b":" } else { b": " })
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

/// Serializes a value.
///
/// # Errors
/// A value that cannot be represented in JSON.
pub(super) fn to_vec(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, ElementFormatter::default()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{json, Value};

    use super::*;

    #[test]
    fn every_element_of_a_list_is_one_line() {
        let value = json!({
            "a": {"b": 1, "c": []},
            "d": [{"e": [1, {"f": null}], "g": {"h": "x y"}}, 2.5, [], {}],
            "i": {},
        });
        let text = String::from_utf8(to_vec(&value).unwrap()).unwrap();
        let expected = [
            "{",
            r#"  "a": {"#,
            r#"    "b": 1,"#,
            r#"    "c": []"#,
            "  },",
            r#"  "d": ["#,
            r#"    {"e":[1,{"f":null}],"g":{"h":"x y"}},"#,
            "    2.5,",
            "    [],",
            "    {}",
            "  ],",
            r#"  "i": {}"#,
            "}",
        ];
        assert_eq!(text, expected.join("\n"));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_the_same_document(value in any_json()) {
            let bytes = to_vec(&value).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
        }
    }
}
