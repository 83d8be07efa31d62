//! Compares the table of wrapped functions with mpi.h and with the symbols of the built library.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use beff_trace::{Function, Role};

/// Prototypes of mpi.h: name and number of arguments. Pcontrol is variadic.
fn prototypes() -> BTreeMap<String, usize> {
    let output = Command::new(support::mpicc())
        .args(["-E", "-P", "-include", "mpi.h", "-x", "c", "/dev/null"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found = BTreeMap::new();
    for statement in text.split(';') {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        // An attribute may precede the first parenthesis.
        let functions = statement.match_indices('(').map(|(at, _)| {
            let name = statement[..at].trim_end().rsplit([' ', '*', ')']).next().unwrap_or_default();
            (name.to_owned(), &statement[at + 1..])
        });
        if let Some((name, arguments)) =
            functions.into_iter().find(|(n, _)| n.starts_with("MPI_") || n.starts_with("PMPI_"))
        {
            let (mut depth, mut commas) = (0, 0);
            for c in arguments.chars() {
                match c {
                    '(' => depth += 1,
                    ')' if depth == 0 => break,
                    ')' => depth -= 1,
                    ',' if depth == 0 => commas += 1,
                    _ => {}
                }
            }
            let none = arguments.starts_with("void)");
            found.insert(name, if none { 0 } else { commas + 1 });
        }
    }
    assert!(found.len() > 500, "{} prototypes", found.len());
    found
}

fn symbols(options: &[&str]) -> Vec<String> {
    let output = Command::new("nm").arg("-D").args(options).arg(support::library()).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

/// All function names of the table, with large-count variants.
fn names() -> BTreeSet<String> {
    let twins = Function::all().filter(|f| f.has_large_count_variant()).map(|f| format!("MPI_{}_c", f.name()));
    Function::all().map(|f| format!("MPI_{}", f.name())).chain(twins).collect()
}

#[test]
fn the_table_has_every_function_of_the_chapter_and_no_other() {
    let header = prototypes();
    let of_files = |name: &str| {
        let conversion = ["MPI_File_c2f", "MPI_File_f2c", "MPI_File_fromint", "MPI_File_toint"].contains(&name);
        (name.starts_with("MPI_File_") || name.starts_with("MPI_Register_datarep")) && !conversion
    };
    let header: BTreeSet<String> = header.into_keys().filter(|name| of_files(name)).collect();
    let table: BTreeSet<String> = names().into_iter().filter(|name| of_files(name)).collect();
    assert!(header.is_subset(&table), "not recorded: {:?}", header.difference(&table));
    let absent: Vec<&String> = table.difference(&header).collect();
    assert!(absent.is_empty() || (absent.len() == 30 && absent.iter().all(|name| name.ends_with("_c"))), "{absent:?}");
    assert_eq!(table.len(), 90);
}

#[test]
fn the_library_wraps_what_the_header_has_under_both_names() {
    let header = prototypes();
    let exported: BTreeSet<String> =
        symbols(&["--defined-only"]).into_iter().filter(|name| name.contains("MPI_")).collect();
    let mut expected = BTreeSet::new();
    let others = ["MPI_Type_free", "MPI_Comm_spawn", "MPI_Comm_spawn_multiple"].map(str::to_owned);
    for name in names().into_iter().chain(others) {
        if header.contains_key(&name) {
            expected.insert(format!("P{name}"));
            expected.insert(name);
        }
    }
    assert_eq!(exported, expected);
    let requests = Function::all().filter(|f| f.role() == Role::Request).count();
    assert_eq!(requests, 14);
}

#[test]
fn the_library_refers_to_no_symbol_of_mpi() {
    let undefined = symbols(&["--undefined-only"]);
    assert!(undefined.iter().any(|name| name.starts_with("dlsym")), "{undefined:?}");
    let of_mpi: Vec<&String> = undefined.iter().filter(|name| name.to_lowercase().contains("mpi")).collect();
    assert!(of_mpi.is_empty(), "{of_mpi:?}");
    let output = Command::new("readelf").arg("-d").arg(support::library()).output().unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains("libmpi"));
}

/// Compares the argument lists in the source of the table with the prototypes.
#[test]
fn every_wrapper_passes_on_as_many_words_as_the_function_has() {
    let header = prototypes();
    let source = include_str!("../src/table.rs");
    let mut words = 0;
    let mut checked = 0;
    for line in source.lines() {
        if let Some(list) = line.trim().strip_prefix('(').filter(|rest| rest.contains("), |name, call|")) {
            let list = list.split(')').next().unwrap();
            words = list.split(',').filter(|word| !word.trim().is_empty()).count();
        }
        for name in line.split_whitespace().map(|word| word.trim_end_matches(';')) {
            let plain = name.strip_prefix('P').unwrap_or(name);
            if !plain.starts_with("MPI_") || !plain.contains(char::is_lowercase) || plain == "MPI_Pcontrol" {
                continue;
            }
            if let Some(arguments) = header.get(name) {
                assert_eq!(words, *arguments, "{name}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 2 * 75, "{checked}");
}
