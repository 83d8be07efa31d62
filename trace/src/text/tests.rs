use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::samples::{profiles, SampleProfile};
use super::*;

pub(super) fn serialized((head, calls): &SampleProfile, zstd: bool) -> Vec<u8> {
    let mut writer = ProfileWriter::new(Vec::new(), zstd);
    writer.head(head).unwrap();
    // In reverse rank order, as any order is allowed.
    for (rank, calls) in calls.iter().enumerate().rev() {
        writer.begin_calls(u32::try_from(rank).unwrap(), calls.len() as u64).unwrap();
        calls.iter().for_each(|call| writer.call(call).unwrap());
    }
    writer.finish().unwrap()
}

fn read_all(path: &Path) -> Result<SampleProfile, TextError> {
    let (head, calls) = read_all_ranks(path)?;
    let mut ranks = vec![Vec::new(); head.processes.len()];
    for call in calls {
        let (rank, call) = call?;
        ranks[rank as usize].push(call);
    }
    Ok((head, ranks))
}

#[test]
fn profiles_come_back_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(200) });
    runner
        .run(&profiles(), |profile| {
            for (name, zstd) in [("a.csv", false), ("a.csv.zst", true)] {
                let path = dir.path().join(name);
                std::fs::write(&path, serialized(&profile, zstd)).unwrap();
                let back = read_all(&path).map_err(|e| TestCaseError::fail(format!("{e}\n{profile:?}")))?;
                prop_assert_eq!(&back, &profile);
                for rank in 0..profile.1.len() {
                    let (head, calls) = read_rank(&path, u32::try_from(rank).unwrap()).unwrap();
                    let calls: Result<Vec<Call>, TextError> = calls.collect();
                    prop_assert_eq!(&head, &profile.0);
                    prop_assert_eq!(&calls.unwrap(), &profile.1[rank]);
                }
            }
            Ok(())
        })
        .unwrap();
}

const DOCS: &str = include_str!("../../../docs/profile.md");

#[test]
fn the_keys_in_the_documentation_are_those_of_the_reader() {
    let is_row = |line: &&str| {
        ["File_", "Register_", "unlink", "truncate", "rename", "open_truncate"]
            .iter()
            .any(|name| line.strip_prefix("| ").is_some_and(|rest| rest.starts_with(name)))
    };
    let rows = DOCS.lines().filter(is_row);
    let mut found = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for name in cells[0].split(", ") {
            let (function, _) = crate::Function::from_name(name).unwrap_or_else(|| panic!("no function {name}"));
            let (needed, allowed) = keys::of(function);
            let words = |bold: bool| {
                cells[1].split(' ').filter(move |word| !word.is_empty() && (!bold || word.starts_with("**")))
            };
            let key = |word: &str| {
                keys::Key::named(word.trim_matches('*').as_bytes()).unwrap_or_else(|| panic!("no key {word}"))
            };
            let (mut all, mut bold) = (keys::KeySet::default(), keys::KeySet::default());
            [keys::Key::Thread, keys::Key::Error, keys::Key::After].into_iter().for_each(|key| all.insert(key));
            if function.is_collective() {
                all.insert(keys::Key::Met);
            }
            words(false).for_each(|word| all.insert(key(word)));
            words(true).for_each(|word| bold.insert(key(word)));
            assert_eq!((bold, all), (needed, allowed), "{name}");
            found += 1;
        }
    }
    let of_files = crate::Function::all().take(60).filter(|function| function.direction().is_none()).count();
    assert_eq!(found, of_files - 1 + 4, "those of POSIX, and all but create_errhandler, which has no file");
    keys::Key::ALL.iter().for_each(|key| assert!(DOCS.contains(&format!("`{}`", key.name())), "{}", key.name()));
}

#[test]
fn the_workload_in_the_documentation_can_be_read() {
    let begin = DOCS.find("beff-raw profile,1\n#").unwrap();
    let text = &DOCS[begin..begin + DOCS[begin..].find("```").unwrap()];
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let (head, calls) = read_all(file.path()).unwrap();
    assert_eq!((head.processes.len(), calls[0].len(), calls[1].len()), (2, 3, 3));
    assert_eq!(calls[1][1].offset, Some(1 << 20));
}
