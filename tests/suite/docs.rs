//! What the documents tell to type works.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{is_command, list, skip, succeed, Scratch, PROGRAM};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The block of this language at the top of docs/results.md.
fn block(language: &str) -> String {
    let text = fs::read_to_string(root().join("docs/results.md")).unwrap();
    let begin = format!("```{language}\n");
    let (_, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no block of {language}"));
    rest.split_once("```").unwrap().0.to_owned()
}

/// A result as run.json and run.csv.
fn results(scratch: &Scratch) {
    let run = root().join("docs/runs/mpich-2ranks-60s-ladder.json");
    fs::copy(&run, scratch.join("run.json")).unwrap();
    let csv = Command::new(PROGRAM)
        .args(["report", "run.json", "--format", "csv"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert!(csv.status.success() && csv.stdout.len() > 10_000);
    fs::write(scratch.join("run.csv"), csv.stdout).unwrap();
}

#[test]
fn lines_of_jq_give_something() {
    if !is_command("jq") {
        return skip("no jq");
    }
    let scratch = Scratch::new();
    results(&scratch);
    for line in block("jq").lines() {
        let run = Command::new("sh").args(["-c", line]).current_dir(scratch.path()).output().unwrap();
        let out = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success() && out.len() > 3 && !out.contains("null"), "{line}: {out}");
    }
}

#[test]
fn lines_of_pandas_work() {
    let has_pandas =
        Command::new("python3").args(["-c", "import pandas"]).output().is_ok_and(|run| run.status.success());
    if !has_pandas {
        return skip("no Python with pandas");
    }
    let scratch = Scratch::new();
    results(&scratch);
    succeed(Command::new("python3").args(["-c", &block("python")]).current_dir(scratch.path())).unwrap();
}

#[test]
fn lines_of_r_work() {
    if !is_command("Rscript") {
        return skip("no R");
    }
    let scratch = Scratch::new();
    results(&scratch);
    succeed(Command::new("Rscript").args(["-e", &block("r")]).current_dir(scratch.path())).unwrap();
}

/// Scripts are sound, and every option in them is known.
#[test]
fn job_scripts_are_sound() {
    let jobs = root().join("docs/jobs");
    let names = list(&jobs);
    assert!(names.len() >= 3, "{names:?}");
    let help = Command::new(PROGRAM).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for name in names {
        let path = jobs.join(&name);
        succeed(Command::new("bash").arg("-n").arg(&path)).unwrap();
        let text = fs::read_to_string(&path).unwrap().replace("\\\n", " ");
        let line = text.lines().find_map(|line| line.split_once("beff-raw --")).map(|(_, rest)| format!("--{rest}"));
        let line = line.unwrap_or_else(|| panic!("{name}: no beff-raw in it"));
        for option in line.split_whitespace().filter(|word| word.starts_with('-')) {
            assert!(help.contains(&format!("{option} ")) || help.contains(&format!("{option},")), "{name}: {option}");
        }
    }
}

/// Every link of the documents to a file of this repository leads somewhere.
#[test]
fn links_lead_to_files() {
    let single =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benches/README.md", "docs/lab/README.md"];
    let mut pages: Vec<PathBuf> = single.iter().map(|name| root().join(name)).collect();
    pages.extend(list(&root().join("docs")).iter().filter(|n| n.ends_with(".md")).map(|n| root().join("docs").join(n)));
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.contains(' ') {
                continue;
            }
            let target = page.parent().unwrap().join(file);
            assert!(target.exists(), "{}: {link}", page.display());
        }
    }
}

/// `scripts/licences.sh` holds the number against the packages of Cargo.lock.
#[test]
fn the_readme_names_the_rust_that_is_needed() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let needed = format!("Rust {} or newer", env!("CARGO_PKG_RUST_VERSION"));
    assert!(text.contains(&needed), "README.md does not say {needed}");
}

/// Somebody who has two minutes reads all of it.
#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(text.lines().count() <= 150, "{}", text.lines().count());
}
