//! The absences that ARCHITECTURE.md promises.

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below a directory of the repository, with their code.
fn sources(dir: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, code(&text)));
            }
        }
    }
    assert!(!found.is_empty(), "{dir}");
    found
}

/// As they are, with comments and tests.
fn texts(dir: &str) -> Vec<(PathBuf, String)> {
    sources(dir).into_iter().map(|(path, _)| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

/// Without comments, literals of one line, and the tests at the end of a file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| without_literals(line.split("//").next().unwrap_or_default()) + "\n").collect()
}

fn without_literals(line: &str) -> String {
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

#[track_caller]
fn nowhere(dir: &str, words: &[&str], allowed: impl Fn(&Path) -> bool) {
    for (path, code) in sources(dir) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if name.ends_with("tests") || name.contains("fixture") || allowed(&path) {
            continue;
        }
        for word in words {
            let at = code.lines().position(|line| line.contains(word));
            assert_eq!(at, None, "{}: '{word}' in line (from 0) {at:?}", path.display());
        }
    }
}

/// The benchmarks.
const ROOMS: [&str; 3] = ["b_eff_io", "b_eff", "imb_io"];

/// Every folder below src/ is the frame, a room, or without a benchmark.
#[test]
fn every_folder_is_a_room_or_the_frame() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(src).unwrap().map(Result::unwrap).filter(|e| e.path().is_dir()) {
        let name = entry.file_name().into_string().unwrap();
        assert!(ROOMS.contains(&name.as_str()) || ["frame", "cli", "commands"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn the_frame_knows_no_room_and_no_room_another() {
    let outside = ["crate::benchmarks", "crate::cli", "crate::commands"].map(str::to_owned);
    for place in ["frame"].into_iter().chain(ROOMS) {
        let others = ROOMS.iter().filter(|room| **room != place);
        let forbidden: Vec<String> = others.map(|room| format!("crate::{room}::")).chain(outside.clone()).collect();
        for (path, text) in texts(&format!("src/{place}")) {
            for path_used in paths(&text) {
                let wrong = forbidden.iter().find(|word| format!("{path_used}::").starts_with(*word));
                assert_eq!(wrong, None, "{}: {path_used}", path.display());
            }
        }
    }
}

/// All paths of a text that begin with `crate` or `super`, lists in braces taken apart.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for begin in ["crate::", "super::"] {
        for (at, _) in code.match_indices(begin) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if !(before.is_alphanumeric() || before == '_' || before == ':') {
                take_path(&code[at..], "", &mut found);
            }
        }
    }
    found
}

/// Takes one path, or one tree of a `use`, off the beginning of `text`; what is behind it.
fn take_path<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '*';
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (word, mut rest) = text.split_at(end);
    let path = format!("{prefix}{word}");
    let Some(inside) = rest.strip_prefix('{').filter(|_| word.ends_with("::")) else {
        found.push(path.trim_end_matches("::").trim_end_matches("::self").to_owned());
        return rest;
    };
    rest = inside;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        match rest.strip_prefix('}') {
            Some(behind) => return behind,
            None if rest.is_empty() => return rest,
            None => {
                let before = rest.len();
                rest = take_path(rest, &path, found);
                // `as name`
                rest = rest.trim_start().strip_prefix("as ").map_or(rest, |alias| alias.trim_start_matches(is_word));
                assert!(rest.len() < before, "{text}");
            }
        }
    }
}

#[test]
fn paths_are_taken_apart() {
    let code = "use crate::a::{b::{self, C}, d as e, f};\nlet x = super::g::h(crate::i);";
    assert_eq!(paths(code), ["crate::a::b", "crate::a::b::C", "crate::a::d", "crate::a::f", "crate::i", "super::g::h"]);
}

#[test]
fn the_plan_sees_no_file_no_clock_no_mpi() {
    let words =
        ["std::fs", "std::io", "Instant", "SystemTime", "beff_ffi", "::run::", "frame::system", "frame::command"];
    for room in ROOMS {
        nowhere(&format!("src/{room}/plan"), &words, |_| false);
    }
}

#[test]
fn reports_and_values_see_no_clock() {
    for room in ROOMS.into_iter().chain(["frame"]) {
        for part in ["report", "values"] {
            let words = ["Instant", "SystemTime", "Timestamp::now", "beff_ffi"];
            nowhere(&format!("src/{room}/{part}"), &words, |_| false);
        }
    }
}

#[test]
fn a_backend_sees_no_plan_and_no_clock() {
    nowhere("backends/src", &["beff_raw", "SystemTime"], |_| false);
    // Latencies are recorded by one type, which hands no time to a driver.
    nowhere("backends/src", &["Instant"], |path| path.ends_with("latency.rs"));
}

#[test]
fn only_ffi_names_mpi() {
    for dir in ["src", "backends/src"] {
        nowhere(dir, &["mpi_sys", "RSMPI_", "shim::", "extern"], |_| false);
    }
}

#[test]
fn src_is_safe() {
    for file in ["src/lib.rs", "src/main.rs"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{file}");
    }
    nowhere("src", &["unsafe {", "unsafe fn", "unsafe impl"], |_| false);
}

#[test]
fn every_unsafe_block_names_the_fact_it_relies_on() {
    for dir in ["backends/src", "ffi/src"] {
        for (path, code) in sources(dir) {
            let text = fs::read_to_string(&path).unwrap();
            let (blocks, reasons) = (code.matches("unsafe {").count(), text.matches("SAFETY:").count());
            // clippy looks at each block (undocumented_unsafe_blocks); here only that the lint was not switched off.
            assert!(blocks == 0 || reasons > 0, "{}: {blocks} unsafe blocks", path.display());
            assert!(!text.contains("allow(clippy::undocumented_unsafe_blocks"), "{}", path.display());
        }
    }
}
