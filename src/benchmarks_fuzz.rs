//! Fuzz test: valid journals, documents, summaries and hints, mutated at random, cause no panic and take little time and memory.
//! `BEFF_FUZZ_SECONDS=1800 cargo test --release --lib benchmarks::hostile` runs for half an hour.

use std::time::{Duration, Instant};

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde::Serialize;

use super::tests::views;
use super::*;
use crate::b_eff_io::hints as hints_of_io;
use crate::frame::report::{DetailLevel, DisplayContext, ResultReport};

const HINTS: &str = "# hints\nall all all all romio_cb_write enable\n2 write scatter 1024 cb_buffer_size 16777216\n\
                     all read separated on_open striping_unit 65536\n8 rewrite all Lmax key a value of words\n";

/// Words with a meaning in some format.
const DICTIONARY: &[&str] = &[
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "-1e308",
    "5e-324",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"",
    ",",
    ":",
    "}",
    "]",
    "\n",
    "\\u0000",
    "\\u001b[31m",
    "\u{1b}",
    "\u{202e}",
    "{\"record\":\"start\",\"schema_version\":1}\n",
    "\"record\":\"end\"",
    "all ",
    "on_open ",
    "Lmax ",
    "\0",
];

/// Maximum bytes of mutated inputs, and of memory that they may cost together (resident at the peak).
const MAX_INPUT_BYTES: usize = 4 << 20;
const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// For all views of one file, in a build without optimizer on a busy machine; mostly intervals of the ladder.
const MAX_INPUT_TIME: Duration = Duration::from_secs(20);

struct SeedInput {
    name: &'static str,
    text: Vec<u8>,
}

fn journal_of<L: Serialize>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| [serde_json::to_vec(line).unwrap(), vec![b'\n']].concat()).collect()
}

/// Document and journal of each benchmark, its own view, hints.
fn seed_inputs() -> Vec<SeedInput> {
    let mut all = vec![SeedInput { name: "hints", text: HINTS.as_bytes().to_vec() }];
    macro_rules! of {
        ($room:ident: $($result:ident),*) => {$(
            let result = $room::report::fixtures::$result();
            let lines = journal_of(&$room::report::fixtures::journal_lines(&result));
            all.push(SeedInput { name: concat!(stringify!($room), " journal, ", stringify!($result)), text: lines });
            let shown = ResultReport::new(result);
            for word in ["json", "sum", "imb"] {
                if let Some(text) = shown.format(word) {
                    all.push(SeedInput { name: concat!(stringify!($room), " view, ", stringify!($result)), text: text.unwrap() });
                }
            }
        )*};
    }
    of!(b_eff_io: complete, ladder, interrupted, failed);
    of!(b_eff: complete, interrupted, failed);
    of!(imb_io: complete, groups, failed);
    of!(replay: complete, ladder, failed);
    all
}

fn random_below(rng: &mut TestRng, n: usize) -> usize {
    usize::try_from(rng.next_u64() % n.max(1) as u64).unwrap()
}

/// Replaces a number by another one: the file often stays valid.
fn mutate_number(text: &mut Vec<u8>, rng: &mut TestRng) {
    let from = random_below(rng, text.len() + 1);
    let Some(at) = text[from..].iter().position(u8::is_ascii_digit).map(|n| from + n) else { return };
    let length = text[at..].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let number = match random_below(rng, 6) {
        0 => "0".to_owned(),
        1 => (u64::MAX >> random_below(rng, 64)).to_string(),
        2 => (1_u64 << random_below(rng, 64)).to_string(),
        3 => (rng.next_u64() % 10).to_string(),
        4 => format!("{:e}", f64::from_bits(rng.next_u64() >> 1)),
        _ => (rng.next_u64() % 20_000).to_string(),
    };
    text.splice(at..at + length, number.into_bytes());
}

fn mutate(text: &mut Vec<u8>, rng: &mut TestRng) {
    let at = random_below(rng, text.len() + 1);
    let to = (at + random_below(rng, 60)).min(text.len());
    match random_below(rng, 8) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..to)),
        2 => {
            let piece = text[at..to].repeat([1, 2, 500][random_below(rng, 3)]);
            let there = random_below(rng, text.len() + 1);
            text.splice(there..there, piece);
        }
        3 if at < text.len() => text[at] = rng.next_u32().to_le_bytes()[0],
        4 if at < text.len() => text[at] ^= 1 << random_below(rng, 8),
        5 => {
            let mut lines: Vec<Vec<u8>> = text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            let (from, to) = (random_below(rng, lines.len()), random_below(rng, lines.len()));
            if !lines.is_empty() {
                let line = lines[from].clone();
                lines.insert(to, line);
            }
            *text = lines.concat();
        }
        6 => drop(text.splice(at..at, b"[".repeat([1, 200, 5000][random_below(rng, 3)]))),
        _ => drop(text.splice(at..at, DICTIONARY[random_below(rng, DICTIONARY.len())].bytes())),
    }
}

/// Does everything that is done with such a file. True if it was accepted.
fn accepts_input(text: &[u8]) -> bool {
    let hints = String::from_utf8_lossy(text);
    let understood = hints_of_io::parse(&hints).is_ok_and(|rules| !rules.is_empty());
    let _ = imb_io::plan::SampleSizes::from_list(&hints);
    let _ = imb_io::plan::names::names_in_text(&hints);
    match load(text) {
        Ok((benchmark, report)) => {
            let shown = |level| report.sheet(level, &DisplayContext::default()).render(false);
            assert!([DetailLevel::Screen, DetailLevel::Full, DetailLevel::Details]
                .into_iter()
                .all(|level| !shown(level).is_empty()));
            for (word, view) in views(benchmark, report.as_ref()) {
                assert!(view.map_or(true, |bytes| !bytes.is_empty()), "{word}");
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            understood
        }
    }
}

/// Peak resident memory of the process (`VmHWM` of proc_pid_status(5)).
fn peak_resident_bytes() -> u64 {
    let status = procfs::process::Process::myself().and_then(|me| me.status()).unwrap();
    status.vmhwm.unwrap() * 1024
}

#[test]
fn mutated_inputs_cause_no_panic() {
    let seconds = std::env::var("BEFF_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let seed = std::env::var("BEFF_FUZZ_SEED").ok().and_then(|s| s.parse::<u8>().ok()).unwrap_or(0);
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let sound = seed_inputs();
    assert!(sound.iter().all(|one| accepts_input(&one.text) || one.name.contains("view")), "a sound file is refused");
    let before = peak_resident_bytes();
    let (begin, mut inputs, mut accepted, mut slowest) = (Instant::now(), 0_u64, 0_u64, (Duration::ZERO, ""));
    while begin.elapsed().as_secs_f64() < seconds || inputs < 40 {
        let one = &sound[random_below(&mut rng, sound.len())];
        let mut text = one.text.clone();
        let how = if random_below(&mut rng, 2) == 0 { mutate } else { mutate_number };
        (0..=random_below(&mut rng, 4)).for_each(|_| how(&mut text, &mut rng));
        text.truncate(MAX_INPUT_BYTES);
        let start = Instant::now();
        let was_taken = std::panic::catch_unwind(|| accepts_input(&text)).unwrap_or_else(|_| {
            let kept = std::env::temp_dir().join(format!("hostile-{}", std::process::id()));
            std::fs::write(&kept, &text).unwrap();
            panic!("input {inputs} of seed {seed}, from {}, is kept as {}", one.name, kept.display());
        });
        accepted += u64::from(was_taken);
        slowest = slowest.max((start.elapsed(), one.name));
        inputs += 1;
    }
    // The kernel sums counters of threads late: the peak may seem to fall a little.
    let grown = peak_resident_bytes().saturating_sub(before);
    println!(
        "{inputs} damaged files, {accepted} taken for sound, the slowest {slowest:?}, {grown} bytes more at the peak"
    );
    assert!(accepted > 0 && accepted < inputs && slowest.0 < MAX_INPUT_TIME && grown < MAX_MEMORY_BYTES);
}

/// Counts in a file that was edited are unlimited, sums of them are not: each kind of count in turn is set to the maximum.
#[test]
fn sums_of_the_largest_counts_are_no_panic() {
    fn counts(value: &serde_json::Value, at: &str, found: &mut std::collections::BTreeMap<String, Vec<String>>) {
        match value {
            serde_json::Value::Number(n) if n.is_u64() => {
                let kind = at.split('/').filter(|part| part.parse::<u32>().is_err()).collect::<Vec<_>>().join("/");
                found.entry(kind).or_default().push(at.to_owned());
            }
            serde_json::Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| counts(item, &format!("{at}/{n}"), found));
            }
            serde_json::Value::Object(fields) => {
                for (key, field) in fields.iter().filter(|(key, _)| *key != "derived") {
                    counts(field, &format!("{at}/{key}"), found);
                }
            }
            _ => {}
        }
    }
    let mut panics = Vec::new();
    // All documents take minutes without the optimizer.
    let all = std::env::var_os("BEFF_FUZZ_SECONDS").is_some();
    let chosen = |one: &&SeedInput| one.text.starts_with(b"{\n") && (all || one.name.contains("failed"));
    for one in seed_inputs().iter().filter(chosen) {
        let document: serde_json::Value = serde_json::from_slice(&one.text).unwrap();
        let mut found = std::collections::BTreeMap::new();
        counts(&document, "", &mut found);
        for (kind, places) in found {
            let mut changed = document.clone();
            for place in &places {
                *changed.pointer_mut(place).unwrap() = u64::MAX.into();
            }
            let text = serde_json::to_vec_pretty(&changed).unwrap();
            if std::panic::catch_unwind(|| accepts_input(&text)).is_err() {
                panics.push(format!("{}: {kind}", one.name));
            }
        }
    }
    assert!(panics.is_empty(), "{panics:#?}");
}
