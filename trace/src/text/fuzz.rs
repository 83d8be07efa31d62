//! Randomly damaged profiles: reading them must not panic, and must end soon.

use std::time::{Duration, Instant};

use proptest::prelude::Rng;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::samples::profiles;
use super::tests::serialized;
use super::*;

const STRIDED: &[u8] = include_bytes!("../../workloads/strided.csv");

/// Words with a meaning in the format.
const WORDS: &[&str] = &[
    "calls,0,1\n",
    "calls,1,18446744073709551615\n",
    "ranks,1048576\n",
    "comm,0,world\n",
    "type,0,contiguous,count=9223372036854775807,of=0\n",
    "9223372036854775807",
    "-9223372036854775808",
    "-1",
    "0",
    "\"",
    "\\",
    "\n",
    ",",
    "=",
    ";",
    "@",
    ":",
    "#",
    "\u{fffd}",
    "\0",
    "after=0@0;0@0",
    "from=1@0:0+-1",
    "of=0",
    "File_open",
    "_c",
    "beff-raw profile,1\n",
    "count=9223372036854775807",
    "offset=9223372036854775807",
    "stride=-9223372036854775808",
    "error=MPI_ERR_IO,",
    "whence=cur",
    "0-1048575",
    "process,0,",
    "mode=none;none",
];

fn random_below(rng: &mut TestRng, n: usize) -> usize {
    usize::try_from(rng.next_u64() % n.max(1) as u64).unwrap()
}

/// Replaces a number by another, which often leaves a valid profile.
fn renumber(text: &mut Vec<u8>, rng: &mut TestRng) {
    let from = random_below(rng, text.len() + 1);
    let Some(at) = text[from..].iter().position(u8::is_ascii_digit).map(|n| from + n) else { return };
    let length = text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let number = match random_below(rng, 6) {
        0 => 0,
        1 => i64::MAX.unsigned_abs() >> random_below(rng, 63),
        2 => 1 << random_below(rng, 63),
        3 => rng.next_u64() % 10,
        _ => rng.next_u64() % 20_000,
    };
    text.splice(at..at + length, number.to_string().into_bytes());
}

fn corrupt(text: &mut Vec<u8>, rng: &mut TestRng) {
    let at = random_below(rng, text.len() + 1);
    let to = (at + random_below(rng, 40)).min(text.len());
    match random_below(rng, 7) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..to)),
        2 => {
            let piece = text[at..to].to_vec();
            let there = random_below(rng, text.len() + 1);
            text.splice(there..there, piece);
        }
        3 if at < text.len() => text[at] = rng.next_u32().to_le_bytes()[0],
        4 if at < text.len() => text[at] ^= 1 << random_below(rng, 8),
        5 => {
            let lines: Vec<Vec<u8>> = text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            let (from, to) = (random_below(rng, lines.len()), random_below(rng, lines.len()));
            let mut lines = lines;
            if !lines.is_empty() {
                lines.swap(from, to);
            }
            *text = lines.concat();
        }
        _ => drop(text.splice(at..at, WORDS[random_below(rng, WORDS.len())].bytes())),
    }
}

#[test]
fn damaged_profiles_never_panic() {
    let seconds = std::env::var("BEFF_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let dir = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "." }).unwrap();
    let path = dir.path().join("p");
    let mut runner = TestRunner::new_with_rng(
        proptest::test_runner::Config::default(),
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let mut rng = runner.new_rng();
    let mut summed = 0_u64;
    let (begin, mut inputs, mut refused, mut calls_read) = (Instant::now(), 0_u64, 0_u64, 0_u64);
    let mut slowest = Duration::ZERO;
    while begin.elapsed().as_secs_f64() < seconds {
        let profile = profiles().new_tree(&mut runner).unwrap().current();
        let zstd = random_below(&mut rng, 3) == 0;
        // Half of the inputs are a workload with meaningful types and offsets, for the totals.
        let good = if random_below(&mut rng, 2) == 0 { STRIDED.to_vec() } else { serialized(&profile, zstd) };
        for _ in 0..20 {
            let mut text = good.clone();
            let how = if random_below(&mut rng, 2) == 0 { corrupt } else { renumber };
            (0..=random_below(&mut rng, 4)).for_each(|_| how(&mut text, &mut rng));
            std::fs::write(&path, &text).unwrap();
            let start = Instant::now();
            let all = read_all_ranks(&path)
                .and_then(|(_, calls)| calls.map(|call| call.map(|_| calls_read += 1)).collect::<Result<Vec<_>, _>>());
            let mut bad = all.err().map(|e| e.to_string());
            for rank in 0..2 {
                let one = read_rank(&path, rank).and_then(|(_, calls)| calls.collect::<Result<Vec<_>, _>>());
                bad = bad.or(one.err().map(|e| e.to_string()));
            }
            if let Ok(summary) = crate::summary::summarize(&path) {
                assert!(
                    summary.text(80).lines().count() > 5
                        && summary.details(80).len() + summary.json().unwrap().len() > 9
                );
                summed += 1;
            }
            slowest = slowest.max(start.elapsed());
            inputs += 1;
            refused += u64::from(bad.is_some());
            let text = bad.unwrap_or_else(|| "x; x".to_owned());
            assert!(text.contains("; ") && !text.contains('\n'), "{text}");
        }
    }
    println!("{inputs} damaged profiles, {refused} refused, {calls_read} calls read, {summed} summed up, the slowest in {slowest:?}");
    assert!(inputs > 50 && refused > inputs / 3 && refused < inputs && summed > 0 && slowest < Duration::from_secs(5));
}
