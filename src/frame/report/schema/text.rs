//! Text of a schema: values that fit are written on one line.

use serde_json::Value;

const MAX_LINE_LENGTH: usize = 140;

/// Keywords written first and last; others are sorted by name.
const LEADING_KEYWORDS: [&str; 5] = ["$schema", "title", "description", "type", "const"];
const TRAILING_KEYWORDS: [&str; 3] = ["required", "properties", "$defs"];

/// The text without a trailing newline.
pub(super) fn lines(schema: &Value) -> String {
    let mut out = String::new();
    write(schema, 0, 0, &mut out);
    out
}

/// Writes a value whose line already has `used` columns.
fn write(value: &Value, indent: usize, used: usize, out: &mut String) {
    let line = compact_line(value);
    if used + line.len() <= MAX_LINE_LENGTH {
        return out.push_str(&line);
    }
    match value {
        Value::Object(_) => {
            let entries = entries(value);
            out.push('{');
            for (i, (name, child)) in entries.iter().enumerate() {
                begin_line(indent + 1, out);
                let head = format!("{}: ", Value::from(*name));
                out.push_str(&head);
                // One column for the comma.
                write(child, indent + 1, indent + 1 + head.len() + 1, out);
                out.push_str(if i + 1 < entries.len() { "," } else { "" });
            }
            begin_line(indent, out);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            let mut column = MAX_LINE_LENGTH;
            for (i, item) in items.iter().enumerate() {
                let comma = if i + 1 < items.len() { "," } else { "" };
                let is_word = !item.is_object() && !item.is_array();
                let item_line = compact_line(item);
                if is_word && column + 1 + item_line.len() < MAX_LINE_LENGTH {
                    column += 1 + item_line.len() + comma.len();
                    out.push_str(&format!(" {item_line}{comma}"));
                } else {
                    begin_line(indent + 1, out);
                    column = indent + 1 + item_line.len() + comma.len();
                    write(item, indent + 1, indent + 2, out);
                    out.push_str(comma);
                }
            }
            begin_line(indent, out);
            out.push(']');
        }
        _ => out.push_str(&line),
    }
}

fn begin_line(indent: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

fn compact_line(value: &Value) -> String {
    match value {
        Value::Object(_) => {
            let entries = entries(value)
                .into_iter()
                .map(|(name, child)| format!("{}: {}", Value::from(name), compact_line(child)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(compact_line).collect::<Vec<_>>().join(", ")),
        word => word.to_string(),
    }
}

fn entries(value: &Value) -> Vec<(&str, &Value)> {
    let place = |name: &str| match LEADING_KEYWORDS.iter().position(|first| *first == name) {
        Some(place) => place,
        None => {
            LEADING_KEYWORDS.len()
                + TRAILING_KEYWORDS.iter().position(|last| *last == name).map_or(0, |place| place + 1)
        }
    };
    let mut entries: Vec<_> =
        value.as_object().into_iter().flatten().map(|(name, child)| (name.as_str(), child)).collect();
    entries.sort_by_key(|(name, _)| place(name));
    entries
}
