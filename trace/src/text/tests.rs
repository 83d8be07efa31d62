use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::samples::{profiles, Profile};
use super::*;

/// The profile as a file.
pub(super) fn written((head, calls): &Profile, zstd: bool) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), zstd);
    writer.head(head).unwrap();
    // Not in the order of ranks, as ranks may come in any.
    for (rank, calls) in calls.iter().enumerate().rev() {
        writer.begin_calls(u32::try_from(rank).unwrap(), calls.len() as u64).unwrap();
        calls.iter().for_each(|call| writer.call(call).unwrap());
    }
    writer.finish().unwrap()
}

fn read_all(path: &Path) -> Result<Profile, TextError> {
    let (head, calls) = all_ranks(path)?;
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
                std::fs::write(&path, written(&profile, zstd)).unwrap();
                let back = read_all(&path).map_err(|e| TestCaseError::fail(format!("{e}\n{profile:?}")))?;
                prop_assert_eq!(&back, &profile);
                for rank in 0..profile.1.len() {
                    let (head, calls) = rank_reader(&path, u32::try_from(rank).unwrap()).unwrap();
                    let calls: Result<Vec<Call>, TextError> = calls.collect();
                    prop_assert_eq!(&head, &profile.0);
                    prop_assert_eq!(&calls.unwrap(), &profile.1[rank]);
                }
            }
            Ok(())
        })
        .unwrap();
}
