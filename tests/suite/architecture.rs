//! The absences that ARCHITECTURE.md promises.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::modules::{circles, code, functions, paths, Edges, Modules};

/// Lines of the longest function.
const MOST_LINES: usize = 70;

/// The crates that call the kernel or MPI, or are called as MPI.
const UNSAFE: [&str; 4] = ["backends", "ffi", "ffi/fake", "profiler"];

/// The crates that name functions of MPI; that of unit tests stands in for the library.
const OF_MPI: [&str; 3] = ["ffi", "ffi/fake", "profiler"];

/// The directories of all crates of the workspace; the root's is empty.
fn crates() -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let members = text.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    let found: Vec<String> = members.split('"').skip(1).step_by(2).map(|m| m.trim_start_matches('.').into()).collect();
    assert!(found.len() >= 5 && found.contains(&String::new()), "{found:?}");
    found
}

/// The source directories of the crates that are not among these.
fn sources_of_all_but(crates_left_out: &[&str]) -> impl Iterator<Item = String> {
    let left_out: Vec<String> = crates_left_out.iter().map(|name| (*name).to_owned()).collect();
    let own = crates().into_iter().filter(move |name| !left_out.contains(name));
    own.map(|name| if name.is_empty() { "src".to_owned() } else { format!("{name}/src") })
}

/// Those of a crate, read once.
fn modules(dir: &str) -> Arc<Modules> {
    static READ: Mutex<BTreeMap<String, Arc<Modules>>> = Mutex::new(BTreeMap::new());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir).join("lib.rs");
    let mut read = READ.lock().unwrap();
    Arc::clone(read.entry(dir.to_owned()).or_insert_with(|| Arc::new(Modules::of_crate(&root))))
}

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

/// Outside of tests and what only they use.
#[track_caller]
fn nowhere(dir: &str, words: &[&str], allowed: impl Fn(&Path) -> bool) {
    let source = dir.find("src").map(|at| &dir[..at + 3]).expect("a directory of sources");
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let modules = modules(source);
    let mut seen = 0;
    for (path, code) in modules.codes().filter(|(path, _)| path.starts_with(&place) && !allowed(path)) {
        seen += 1;
        for word in words {
            let at = code.lines().position(|line| line.contains(word));
            assert_eq!(at, None, "{}: '{word}' in line (from 0) {at:?}", path.display());
        }
    }
    assert!(seen > 0, "no module in {dir}");
}

/// The benchmarks.
const MODULES: [&str; 5] = ["b_eff_io", "b_eff", "imb_io", "replay", "tune"];

/// Every folder below src/ is the frame, a room, or without a benchmark.
#[test]
fn every_folder_is_a_benchmark_module_or_the_frame() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(src).unwrap().map(Result::unwrap).filter(|e| e.path().is_dir()) {
        let name = entry.file_name().into_string().unwrap();
        assert!(MODULES.contains(&name.as_str()) || ["frame", "cli", "commands"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn the_frame_names_no_benchmark() {
    nowhere("src/frame", &["b_eff", "B_EFF", "imb", "Imb", "IMB"], |_| false);
}

#[test]
fn the_frame_uses_no_benchmark_module_and_no_module_another() {
    let outside = ["crate::benchmarks", "crate::cli", "crate::commands"].map(str::to_owned);
    for place in ["frame"].into_iter().chain(MODULES) {
        let others = MODULES.iter().filter(|module| **module != place);
        let forbidden: Vec<String> = others.map(|module| format!("crate::{module}::")).chain(outside.clone()).collect();
        for (path, text) in texts(&format!("src/{place}")) {
            for path_used in paths(&text) {
                let wrong = forbidden.iter().find(|word| format!("{path_used}::").starts_with(*word));
                assert_eq!(wrong, None, "{}: {path_used}", path.display());
            }
            let wrong = forbidden.iter().find(|word| text.contains(*word));
            assert_eq!(wrong, None, "{}: in a comment", path.display());
        }
    }
}

/// Data goes down, results come back: files that use each other in a circle cannot be read one after the other. A name counts for
/// the file that defines it, through whichever folders it is passed on. The own file of a folder (`mod.rs`) and the root of a crate are
/// files like any other: they may use what is below them, or be used by it, but not both. Tests may look wherever they like.
#[test]
fn no_circle_of_files() {
    for dir in sources_of_all_but(&[]) {
        let found = circles(&modules(&dir).edges());
        assert!(found.is_empty(), "{dir}: files in a circle: {found:#?}");
    }
}

#[test]
fn no_function_is_long() {
    for dir in sources_of_all_but(&[]) {
        for (path, code) in modules(&dir).codes() {
            let long: Vec<_> = functions(code).into_iter().filter(|(_, _, lines)| *lines > MOST_LINES).collect();
            assert!(long.is_empty(), "{}: more than {MOST_LINES} lines (name, line, lines): {long:?}", path.display());
        }
    }
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
    let edges: Edges = modules("src").edges();
    for (name, uses) in &edges {
        let Some((module, part)) = name.split_once("::").filter(|(module, _)| MODULES.contains(module)) else {
            continue;
        };
        let of_module =
            |used: &str| used.strip_prefix(module)?.strip_prefix("::")?.split("::").next().map(str::to_owned);
        let part = part.split("::").next().unwrap();
        let forbidden = UPWARDS.iter().find(|(from, _)| *from == part).map_or(&[][..], |(_, parts)| parts);
        let wrong = uses.keys().filter(|used| of_module(used).is_some_and(|to| forbidden.contains(&to.as_str())));
        upwards.extend(wrong.map(|used| format!("{name} uses {used}")));
    }
    assert!(upwards.is_empty(), "against the flow: {upwards:#?}");
}

#[test]
fn the_plan_sees_no_file_no_clock_no_mpi() {
    let words =
        ["std::fs", "std::io", "Instant", "SystemTime", "beff_ffi", "::run::", "frame::system", "frame::command"];
    for module in MODULES {
        nowhere(&format!("src/{module}/plan"), &words, |_| false);
    }
}

#[test]
fn reports_and_values_see_no_clock() {
    for module in MODULES.into_iter().chain(["frame"]) {
        for part in ["report", "values"] {
            let words = ["Instant", "SystemTime", "Timestamp::now", "beff_ffi"];
            nowhere(&format!("src/{module}/{part}"), &words, |_| false);
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
fn only_ffi_and_profiler_name_mpi() {
    for dir in sources_of_all_but(&OF_MPI) {
        nowhere(&dir, &["mpi_sys", "RSMPI_", "shim::", "extern \""], |_| false);
    }
}

#[test]
fn all_other_crates_are_safe() {
    for dir in sources_of_all_but(&UNSAFE) {
        let roots = ["lib.rs", "main.rs"].map(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join(&dir).join(file));
        for root in roots.iter().filter(|root| root.exists()) {
            let text = fs::read_to_string(root).unwrap();
            assert!(text.contains("#![forbid(unsafe_code)]"), "{}", root.display());
        }
        nowhere(&dir, &["unsafe {", "unsafe fn", "unsafe impl"], |_| false);
    }
}

#[test]
fn every_unsafe_block_names_the_fact_it_relies_on() {
    for dir in UNSAFE {
        for (path, code) in sources(&format!("{dir}/src")) {
            let text = fs::read_to_string(&path).unwrap();
            let (blocks, reasons) = (code.matches("unsafe {").count(), text.matches("SAFETY:").count());
            // clippy looks at each block (undocumented_unsafe_blocks); here only that the lint was not switched off.
            assert!(blocks == 0 || reasons > 0, "{}: {blocks} unsafe blocks", path.display());
            assert!(!text.contains("allow(clippy::undocumented_unsafe_blocks"), "{}", path.display());
        }
    }
}
