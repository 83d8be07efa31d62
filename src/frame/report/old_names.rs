//! Results and journals of earlier schema versions: the table of their field names, and its application to the text before it is parsed.

use std::borrow::Cow;

use crate::frame::records::SCHEMA_VERSION;

/// First schema version with the field names of the records as they are.
const CURRENT_NAMES_SINCE: u64 = 3;

/// A field of schema versions 1 and 2 that has another name now.
struct Renamed {
    /// Benchmark whose results have the field; empty: all.
    benchmark: &'static str,
    /// Field that holds the object (or the array of objects) with this field, or kind of the journal record; empty: any.
    within: &'static str,
    old: &'static str,
    new: &'static str,
}

const fn all(old: &'static str, new: &'static str) -> Renamed {
    within("", old, new)
}

const fn within(within: &'static str, old: &'static str, new: &'static str) -> Renamed {
    Renamed { benchmark: "", within, old, new }
}

const fn of(benchmark: &'static str, old: &'static str, new: &'static str) -> Renamed {
    Renamed { benchmark, within: "", old, new }
}

/// The first row that applies counts.
const FIELDS: &[Renamed] = &[
    all("tunings", "queue_calibrations"),
    of("imb_io", "pure_seconds", "alone_seconds"),
    all("repeats", "repetitions"),
    all("type_repeats", "type_repetitions"),
    within("repeats", "repeat", "repetition"),
    within("repeat", "repeat", "repetition"),
    within("type_repeats", "repeat", "repetition"),
    within("type_repeat", "repeat", "repetition"),
    all("measured", "measurement"),
    all("cold", "cache_cold"),
    all("found_ns", "load_ns"),
    all("not_known", "unknown_reason"),
    all("not_tried", "skip_reason"),
    all("not_read", "unread_reason"),
    all("memory_taken_back", "memory_ballooning"),
    within("memory_taken_back", "by", "mechanism"),
    all("asked", "requested"),
    all("found_cpus", "initial_cpus"),
    all("found", "actual"),
    all("looks_like", "diagnosis"),
    all("held_up_seconds", "imbalance_seconds"),
    all("room_seconds", "preallocate_seconds"),
    within("setup", "machine", "machine"),
    all("machine", "interference"),
    all("others_seconds", "other_process_seconds"),
    all("others_percent", "other_process_percent"),
    within("passes", "waited_seconds", "wait_seconds"),
    within("pass", "waited_seconds", "wait_seconds"),
    all("waited_seconds", "run_queue_wait_seconds"),
    all("watched_seconds", "observed_seconds"),
    all("damages", "injected_faults"),
    all("m_part_wanted_bytes", "m_part_defined_bytes"),
    within("sample", "places", "samples"),
    all("residency_by", "residency_source"),
    all("ours_seconds", "harness_seconds"),
    of("b_eff", "whole", "definition"),
    of("b_eff", "single_from", "best_method_from"),
    of("b_eff", "once_from", "unrepeated_from"),
    of("imb_io", "repetitions", "iterations"),
    of("imb_io", "repetitions_wanted", "iterations_requested"),
    of("imb_io", "repetition_times", "iteration_times"),
    of("imb_io", "repetition", "iteration"),
    of("imb_io", "lap_ns", "timestamp_ns"),
    of("replay", "passes", "repetitions"),
    of("replay", "pass", "repetition"),
    of("replay", "leavings", "omissions"),
    of("replay", "left_out", "omitted"),
    of("replay", "calls_cut", "calls_discarded"),
];

/// Values of fields with other names now: field, old, new.
const VALUES: &[[&str; 3]] = &[
    ["verify", "ring", "sample"],
    ["record", "tuning", "queue_calibration"],
    ["record", "cold", "cache_cold"],
    ["record", "repeat", "repetition"],
    ["record", "type_repeat", "type_repetition"],
    ["record", "damage", "injected_fault"],
    ["record", "whole", "definition"],
    ["record", "pass", "repetition"],
    ["kind", "memory_taken_back", "memory_ballooning"],
    ["kind", "machine_shared", "interference"],
    ["kind", "left_out", "omitted"],
    ["kind", "profile_cut", "profile_incomplete"],
    ["kind", "storage_changed", "storage_drift"],
];

/// A document, or a line of a journal, of `benchmark` in schema version `version`, with the names of the current one. Text that is not JSON
/// remains unchanged, with its errors.
pub(super) fn translated<'t>(text: &'t [u8], benchmark: &str, version: u64) -> Cow<'t, [u8]> {
    if version >= CURRENT_NAMES_SINCE {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        Translation {
            text,
            benchmark,
            out: Vec::with_capacity(text.len() + text.len() / 8),
            open: Vec::new(),
            key: b"",
        }
        .run(),
    )
}

struct Translation<'t> {
    text: &'t [u8],
    benchmark: &'t str,
    out: Vec<u8>,
    /// For each open object or array the field that holds it.
    open: Vec<&'t [u8]>,
    /// The last field name of the innermost object.
    key: &'t [u8],
}

impl<'t> Translation<'t> {
    fn run(mut self) -> Vec<u8> {
        let mut at = 0;
        while let Some(&byte) = self.text.get(at) {
            match byte {
                b'"' => {
                    at = self.string(at);
                    continue;
                }
                b'0'..=b'9' if self.key == b"schema_version" && self.open.len() == 1 => {
                    self.out.extend_from_slice(SCHEMA_VERSION.to_string().as_bytes());
                    at += 1;
                    continue;
                }
                b'{' | b'[' => self.open.push(self.key),
                b'}' | b']' => self.key = self.open.pop().unwrap_or_default(),
                _ => {}
            }
            self.out.push(byte);
            at += 1;
        }
        self.out
    }

    /// Copies the string at `begin`, a field name or a value, and returns the position after it.
    fn string(&mut self, begin: usize) -> usize {
        let mut end = begin + 1;
        while let Some(&byte) = self.text.get(end).filter(|byte| **byte != b'"') {
            end += if byte == b'\\' { 2 } else { 1 };
        }
        let end = end.min(self.text.len());
        let word = &self.text[begin + 1..end];
        let is_key = self.text[end..].iter().skip(1).find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        let new = if is_key { self.field(word) } else { self.value(word) };
        if is_key {
            self.key = word;
        } else if self.key == b"record" && self.open.len() == 1 {
            // In a journal the kind of the record takes the place of the field that holds it in a document.
            self.open[0] = word;
        }
        self.out.push(b'"');
        self.out.extend_from_slice(new.map_or(word, str::as_bytes));
        self.out.extend_from_slice(self.text.get(end..=end).unwrap_or_default());
        end + 1
    }

    fn field(&self, word: &[u8]) -> Option<&'static str> {
        let holder = self.open.last().copied().unwrap_or_default();
        let applies = |row: &&Renamed| {
            row.old.as_bytes() == word
                && (row.benchmark.is_empty() || row.benchmark == self.benchmark)
                && (row.within.is_empty() || row.within.as_bytes() == holder)
        };
        FIELDS.iter().find(applies).map(|row| row.new)
    }

    fn value(&self, word: &[u8]) -> Option<&'static str> {
        let row = VALUES.iter().find(|[field, old, _]| field.as_bytes() == self.key && old.as_bytes() == word);
        row.map(|[_, _, new]| *new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_version_2(text: &str, benchmark: &str) -> String {
        String::from_utf8(translated(text.as_bytes(), benchmark, 2).into_owned()).unwrap()
    }

    #[test]
    fn names_depend_on_the_benchmark_and_on_what_holds_them() {
        let io = r#"{"repeats": [{"repeat": 1, "measured": {"machine": null}}], "config": {"repeat": "auto", "verify": "ring"}}"#;
        let now = r#"{"repetitions": [{"repetition": 1, "measurement": {"interference": null}}], "config": {"repeat": "auto", "verify": "sample"}}"#;
        assert_eq!(of_version_2(io, "b_eff_io"), now);
        let row = r#"{"record":"row","repetitions":3,"machine":{"waited_seconds":1}}"#;
        let now = r#"{"record":"row","iterations":3,"interference":{"run_queue_wait_seconds":1}}"#;
        assert_eq!(of_version_2(row, "imb_io"), now);
        let pass = r#"{"record":"pass","pass":1,"machine":{"waited_seconds":1},"waited_seconds":2}"#;
        let now =
            r#"{"record":"repetition","repetition":1,"interference":{"run_queue_wait_seconds":1},"wait_seconds":2}"#;
        assert_eq!(of_version_2(pass, "replay"), now);
        let start = r#"{"record":"start","setup":{"machine":{}},"x":{"machine":[]}}"#;
        assert_eq!(
            of_version_2(start, "b_eff"),
            r#"{"record":"start","setup":{"machine":{}},"x":{"interference":[]}}"#
        );
    }

    #[test]
    fn values_equal_to_names_are_unchanged() {
        let text = r#"{"a\"found\\": "found", "list": ["found", "cold"], "found" :"ring", "path":"x\\"}"#;
        let now = r#"{"a\"found\\": "found", "list": ["found", "cold"], "actual" :"ring", "path":"x\\"}"#;
        assert_eq!(of_version_2(text, "b_eff_io"), now);
    }

    #[test]
    fn malformed_and_current_texts_are_unchanged() {
        for text in ["", "{\"found", "}]", "\"", "{\"a\\", "\u{fffd}]\"found\":"] {
            let _ = of_version_2(text, "b_eff_io");
        }
        assert_eq!(of_version_2("{\"a\":[1,2", "b_eff_io"), "{\"a\":[1,2");
        assert_eq!(of_version_2(r#"{"schema_version":2,"a":2}"#, "b_eff_io"), r#"{"schema_version":3,"a":2}"#);
        assert!(matches!(translated(b"{\"found\":1}", "b_eff_io", 3), Cow::Borrowed(_)));
    }
}
