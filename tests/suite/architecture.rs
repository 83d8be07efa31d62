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

#[test]
fn the_plan_sees_no_file_no_clock_no_mpi() {
    let words = ["std::fs", "std::io", "Instant", "SystemTime", "beff_ffi", "crate::engine", "crate::system"];
    nowhere("src/plan", &words, |_| false);
}

#[test]
fn reports_and_statistics_see_no_clock() {
    for dir in ["src/report", "src/stats"] {
        nowhere(dir, &["Instant", "SystemTime", "Timestamp::now", "beff_ffi"], |_| false);
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
