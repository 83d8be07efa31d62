//! The absences that ARCHITECTURE.md promises.

use std::collections::{BTreeMap, BTreeSet};
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
const ROOMS: [&str; 4] = ["b_eff_io", "b_eff", "imb_io", "replay"];

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
fn the_frame_names_no_benchmark() {
    nowhere("src/frame", &["b_eff", "B_EFF", "imb", "Imb", "IMB"], |_| false);
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

/// Data goes down, results come back: modules of a folder that use each other in a circle cannot be read one after the
/// other. Tests and fixtures may look wherever they like.
#[test]
fn no_circle_of_files() {
    for dir in ["src", "backends/src", "ffi/src"] {
        assert_no_circle(dir);
    }
}

fn assert_no_circle(dir: &str) {
    let files: Vec<(String, BTreeSet<String>)> = uses_of_modules(dir);
    let names: BTreeSet<&String> = files.iter().map(|(name, _)| name).collect();
    let edges: BTreeMap<&String, Vec<&String>> = files
        .iter()
        .map(|(name, uses)| (name, names.iter().copied().filter(|other| uses.contains(*other)).collect()))
        .collect();
    let mut circles = Vec::new();
    for name in &names {
        // Whatever can be reached from here must not reach back.
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = edges[*name].clone();
        while let Some(next) = open.pop() {
            if seen.insert(next) {
                open.extend(edges[next].iter().copied());
            }
        }
        if seen.contains(*name) {
            circles.push((*name).clone());
        }
    }
    assert!(circles.is_empty(), "{dir}: files in a circle: {circles:#?}");
}

/// Where the words of a module's path begin with `src/`: its file, without tests, and the modules it uses.
fn uses_of_modules(dir: &str) -> Vec<(String, BTreeSet<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let files = sources(dir);
    let module = |path: &Path| {
        let path = path.strip_prefix(&root).unwrap().with_extension("");
        let path = if path.ends_with("mod") { path.parent().unwrap().to_owned() } else { path };
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let all: BTreeSet<Vec<String>> = files.iter().map(|(path, _)| module(path)).collect();
    let root_code: String = files
        .iter()
        .filter(|(path, _)| path.ends_with(format!("{dir}/lib.rs")))
        .map(|(_, text)| text.as_str())
        .collect();
    let passed_on = passed_on(&root_code);
    let test_words = ["tests", "fixture", "testing", "skeleton"];
    let is_test = |name: &[String]| name.iter().any(|part| test_words.iter().any(|word| part.contains(word)));
    let of_file = |path: &Path, text: &str| {
        let own = module(path);
        let mut uses = BTreeSet::new();
        for used in paths(text) {
            let mut parts: Vec<String> = used.split("::").map(str::to_owned).collect();
            let mut absolute: Vec<String> = Vec::new();
            match parts.first().map(String::as_str) {
                Some("crate") => drop(parts.remove(0)),
                Some("super") => {
                    absolute = own.clone();
                    while parts.first().is_some_and(|part| part == "super") {
                        parts.remove(0);
                        absolute.pop();
                    }
                }
                _ => continue,
            }
            absolute.extend(parts);
            // What the crate passes on is used where it stands.
            if let Some(home) = absolute.first().and_then(|name| passed_on.get(name)) {
                absolute.insert(0, home.clone());
            }
            // The longest part of the path that is a module; a folder's own file only holds what its files share.
            while !absolute.is_empty() && !all.contains(&absolute) {
                absolute.pop();
            }
            // A file may use the folder that it is in, and a folder's own file what is in it.
            let related = own.starts_with(&absolute) || absolute.starts_with(&own);
            if !related && !is_test(&absolute) {
                uses.insert(absolute.join("::"));
            }
        }
        (own, uses)
    };
    let found = files.iter().map(|(path, text)| of_file(path, text));
    found.filter(|(name, _)| !is_test(name)).map(|(name, uses)| (name.join("::"), uses)).collect()
}

/// What the parts of a room may not look at: data flows from `cli` to `config` to `plan` to `run`, and back as `records` to
/// `values` to `report`. A configuration may be written in the words of the plan, and the plan made from a configuration.
const UPWARDS: [(&str, &[&str]); 6] = [
    ("config", &["cli", "config_build", "run", "records", "values", "report", "command", "plan_command"]),
    ("plan", &["cli", "config_build", "run", "records", "values", "report", "command", "plan_command"]),
    ("run", &["cli", "config_build", "values", "report", "command", "plan_command"]),
    ("records", &["cli", "config_build", "run", "values", "report", "command", "plan_command"]),
    ("values", &["cli", "config_build", "run", "report", "command", "plan_command"]),
    ("report", &["cli", "config_build", "run", "command", "plan_command"]),
];

#[test]
fn data_flows_one_way() {
    let mut upwards = Vec::new();
    for (name, uses) in uses_of_modules("src") {
        let Some((room, part)) = name.split_once("::").filter(|(room, _)| ROOMS.contains(room)) else { continue };
        let of_room = |used: &str| used.strip_prefix(room)?.strip_prefix("::")?.split("::").next().map(str::to_owned);
        let part = part.split("::").next().unwrap();
        let forbidden = UPWARDS.iter().find(|(from, _)| *from == part).map_or(&[][..], |(_, parts)| parts);
        let wrong = uses.iter().filter(|used| of_room(used).is_some_and(|to| forbidden.contains(&to.as_str())));
        upwards.extend(wrong.map(|used| format!("{name} uses {used}")));
    }
    assert!(upwards.is_empty(), "against the flow: {upwards:#?}");
}

/// The names that a crate passes on from its modules, `pub use module::{Name, ...}`, with their modules.
fn passed_on(code: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in code.split(';').filter_map(|s| s.split("pub use ").nth(1)) {
        if let Some((module, names)) = statement.split_once("::") {
            for name in names.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty()) {
                found.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    found
}

#[test]
fn names_that_are_passed_on_have_their_module() {
    let found = passed_on("mod a;\npub use a::{B, c};\npub use d::E;\nuse f::G;\n");
    let expected = [("B", "a"), ("E", "d"), ("c", "a")].map(|(name, module)| (name.to_owned(), module.to_owned()));
    assert_eq!(found, BTreeMap::from(expected));
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
        nowhere(dir, &["mpi_sys", "RSMPI_", "shim::", "extern \""], |_| false);
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
