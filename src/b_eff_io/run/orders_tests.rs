//! Measurements in other orders on one to three ranks, with files that store data.

use std::collections::BTreeMap;

use super::run_orders;
use crate::b_eff_io::config::{ChunkOrder, ReadShare};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::orders::units;
use crate::b_eff_io::plan::patterns::patterns;
use crate::b_eff_io::records::{JournalLine, OrderedRecord, StopReason};
use crate::b_eff_io::run::context::TypeContext;
use crate::b_eff_io::run::pattern_plan::rank_orders;
use crate::b_eff_io::run::run_tests::{config, in_run, JournalRecorder};
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::type_run::run_type;
use crate::frame::records::AccessMethod;
use crate::frame::run::testing::{with_script, Script, ScriptedOutcome};

const TYPES: [PatternType; 3] = [PatternType::Scatter, PatternType::Separate, PatternType::Segmented];

fn ordered(keeps: &JournalRecorder) -> Vec<&OrderedRecord> {
    keeps
        .lines
        .iter()
        .filter_map(|line| if let JournalLine::Ordered(record) = line { Some(&**record) } else { None })
        .collect()
}

/// First writes, then the orders with these times of a batch and outcomes, then reads in ascending order.
fn run_with(
    options: &str,
    ranks: u64,
    seconds: f64,
    outcomes: &[(&'static str, usize, ScriptedOutcome)],
) -> Vec<JournalRecorder> {
    let config = config(&format!("--release 1 -T 120s --types 0,2,3 --backend posix --cache keep {options}"));
    let script = |_| Script::default().cost("write", 0.4).cost("read", 0.4).cost("mixed", 0.4);
    let run_types = |run: &mut RunState<'_>, place: TypeContext<'_>, access| {
        for pattern_type in TYPES {
            run_type(run, TypeContext { access, pattern_type, ..place }).unwrap();
        }
    };
    let seen = in_run(ranks, &config, script, true, |run, place| {
        run_types(run, place, AccessMethod::Write);
        let (before, done) = (run.files.clone(), run.done_seconds);
        with_script(|script| {
            let costs = ["write", "read", "mixed"].map(|call| (call, vec![seconds]));
            (script.costs, script.outcomes, script.calls) = (BTreeMap::from(costs), outcomes.to_vec(), BTreeMap::new());
        });
        run_orders(run, place).unwrap();
        assert_eq!(run.first_measurements.len(), run.files.iter().map(|file| file.written.len()).sum::<usize>());
        let planned = run.plan.orders_seconds(run.config);
        assert!((run.done_seconds - done - planned).abs() < 1e-9 || run.stop.is_some(), "{planned}");
        assert!(run.files.iter().zip(&before).all(|(now, before)| now.written.len() == before.written.len()));
        run_types(run, place, AccessMethod::Read);
    });
    seen.into_iter().map(|(_, keeps)| keeps).collect()
}

/// All orders, each ended by its time in some patterns and by the last chunk in others; reads in another order afterwards find each
/// chunk in the generation that was written last.
#[test]
fn every_order_finds_what_was_written_last() {
    let (mut complete, mut partial) = (0, 0);
    for (ranks, seconds) in [(1, 0.01), (3, 2.0)] {
        let seen = run_with("--verify full --order random,sequential,strided,reverse", ranks, seconds, &[]);
        let keeps = &seen[0];
        assert!(keeps.corruptions().is_empty() && keeps.errors().is_empty(), "{:?}", keeps.corruptions());
        let records = ordered(keeps);
        // Two access methods, and the timed patterns of the three types.
        assert_eq!(records.len(), 4 * 2 * (8 + 7 + 7));
        for record in &records {
            let p = &record.measurement;
            let about = format!("{:?} {:?} pattern {}", record.order, p.access, p.pattern);
            assert!(p.calls > 0 && p.call_bytes == p.chunk_bytes, "{about}");
            assert_eq!(p.moved_bytes, p.calls * p.chunk_bytes * ranks, "{about}");
            let written = keeps.patterns().into_iter().find(|w| w.pattern == p.pattern).unwrap();
            let chunks = written.calls * (written.call_bytes / written.chunk_bytes);
            match p.ended {
                StopReason::Count => assert_eq!(p.calls, chunks, "{about}"),
                StopReason::Time => assert!(p.calls < chunks, "{about}"),
                _ => panic!("{about}: {:?}", p.ended),
            }
            *(if p.ended == StopReason::Count { &mut complete } else { &mut partial }) += 1;
            let words = if p.access == AccessMethod::Read { p.moved_bytes / 8 } else { 0 };
            assert!(p.verification.words_wrong == 0 && p.verification.words_checked >= words, "{about}");
        }
        assert_eq!(keeps.patterns().len(), 2 * (9 + 8 + 9), "first writes and reads only");
    }
    assert!(complete > 0 && partial > 0, "{complete} {partial}");
}

/// A write that only reports success, and a bit flipped in a read, in an order.
#[test]
fn wrong_data_in_an_order_is_found() {
    let lost = run_with("--verify full --order random", 2, 0.3, &[("write", 2, ScriptedOutcome::Nothing)]);
    let found = lost[0].corruptions();
    assert!(!found.is_empty() && found.iter().all(|c| c.access != AccessMethod::Write), "{found:?}");
    assert!(found.iter().all(|c| c.diagnosis.contains("stale")), "{found:?}");
    let flipped = run_with("--verify sample --order reverse", 2, 0.3, &[("read", 0, ScriptedOutcome::Flip(0))]);
    let found = flipped[0].corruptions();
    assert!(found.len() == 2 && found.iter().all(|c| c.access == AccessMethod::Read), "{found:?}");
    assert!(found.iter().all(|c| c.diagnosis.contains("bit")), "{found:?}");
    // The first read of the reverse order is the last chunk of the first timed pattern.
    let first = ordered(&flipped[0]).into_iter().find(|o| o.measurement.access == AccessMethod::Read).unwrap();
    let written = flipped[0].patterns().into_iter().find(|w| w.pattern == first.measurement.pattern).unwrap();
    let warm_up = flipped[0].patterns().into_iter().find(|w| w.pattern == 0).unwrap();
    let begin = 2 * warm_up.calls * warm_up.call_bytes;
    let end = begin + 2 * written.calls * written.call_bytes;
    let mut offsets: Vec<u64> = found.iter().map(|c| c.offset_bytes).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [end - 2 * written.chunk_bytes, end - written.chunk_bytes]);
}

/// Reads and writes mixed, ended by time in some patterns: reads find what was written last before, and later measurements what each chunk
/// got.
#[test]
fn mixed_reads_find_the_generation_before() {
    for (ranks, seconds, options) in [
        (1, 0.01, "--verify full --order random,strided --mix 70:30"),
        (3, 2.0, "--verify full --order reverse,random --mix 20:80"),
        (2, 0.5, "--verify sample --mix 50:50 --buffers reused"),
    ] {
        let seen = run_with(options, ranks, seconds, &[]);
        let keeps = &seen[0];
        assert!(keeps.corruptions().is_empty() && keeps.errors().is_empty(), "{:?}", keeps.corruptions());
        let records = ordered(keeps);
        let mixed: Vec<&OrderedRecord> = records.iter().copied().filter(|o| o.mix.is_some()).collect();
        let orders = if options.contains("--order") { 2 } else { 1 };
        assert_eq!(mixed.len(), orders * (8 + 7 + 7));
        assert_eq!(records.len(), if options.contains("--order") { 3 * mixed.len() } else { mixed.len() });
        for record in mixed {
            let (p, mix) = (&record.measurement, record.mix.unwrap());
            let about = format!("{} pattern {}", record.call_order().name(), p.pattern);
            assert_eq!(mix.read_calls, p.calls * u64::from(mix.read_percent) / 100, "{about}");
            assert_eq!(p.moved_bytes, p.calls * p.chunk_bytes * ranks, "{about}");
            assert!(p.calls > 0 && p.rounds.len() > 1 || p.calls < 8, "{about}");
            let read_words = mix.read_calls * p.chunk_bytes * ranks / 8;
            let is_full = options.contains("full");
            assert!(!is_full || p.verification.words_checked >= read_words, "{about}");
            assert!(p.verification.words_checked > 0 || mix.read_calls == 0, "{about}");
        }
    }
}

/// A write that only reports success, and a bit flipped in a read, among mixed ones: with the order in the record.
#[test]
fn wrong_data_in_a_mix_is_found() {
    let lost = run_with("--verify full --mix 30:70", 2, 0.3, &[("mixed", 1, ScriptedOutcome::Nothing)]);
    let found = lost[0].corruptions();
    assert!(!found.is_empty(), "a lost batch");
    let share = Some(ReadShare { read_percent: 30 });
    assert!(found.iter().any(|c| c.diagnosis.contains("stale")), "{found:?}");
    assert!(found.iter().any(|c| (c.order, c.mix) == (Some(ChunkOrder::Random), share)), "{found:?}");
    // The second call is the first one that reads, and the first of the second batch.
    let flipped =
        run_with("--verify full --order reverse --mix 70:30", 2, 0.3, &[("mixed", 1, ScriptedOutcome::Flip(1))]);
    let found = flipped[0].corruptions();
    assert!(found.len() == 2 && found.iter().all(|c| c.diagnosis.contains("bit")), "{found:?}");
    assert!(found.iter().all(|c| c.order == Some(ChunkOrder::Reverse) && c.mix.is_some()), "{found:?}");
    let first = ordered(&flipped[0]).into_iter().find(|o| o.mix.is_some()).unwrap();
    assert_eq!(first.measurement.verification.words_wrong, 2);
}

/// Orders of the same seed are the same, and those of another seed are not; only the random one depends on it.
#[test]
fn the_seed_selects_the_random_order() {
    let seeds = |config_seed: u64, rank| {
        let config = config(&format!("--seed {config_seed} --order random"));
        let unit = units(&config)[0];
        rank_orders(config.seed, unit, &patterns(2 << 20)[18]).seed_of(rank)
    };
    assert_eq!(seeds(1, 0), seeds(1, 0));
    assert!(seeds(1, 0) != seeds(2, 0) && seeds(1, 0) != seeds(1, 1));
    let mixed = config("--seed 1 --mix 70:30");
    assert_ne!(rank_orders(1, units(&mixed)[0], &patterns(2 << 20)[18]).seed_of(0), seeds(1, 0));
    assert_eq!(ChunkOrder::Random.name(), "random");
}

#[test]
fn each_order_rewrites_and_reads_the_types_with_orders() {
    let units_of = |options: &str| {
        let names = units(&config(options))
            .into_iter()
            .map(|u| format!("{} {} {} {}", u.generation, u.order.name(), u.access.name(), u.pattern_type));
        names.collect::<Vec<_>>()
    };
    assert!(units_of("").is_empty());
    assert_eq!(
        units_of("--order random,reverse --types 0,1,2,4"),
        [
            "1 random rewrite 0",
            "2 random rewrite 2",
            "3 random read 0",
            "4 random read 2",
            "5 reverse rewrite 0",
            "6 reverse rewrite 2",
            "7 reverse read 0",
            "8 reverse read 2"
        ]
    );
    assert_eq!(
        units_of("--order strided --rewrite scatter"),
        ["1 strided rewrite 0", "2 strided read 0", "3 strided read 2", "4 strided read 3"]
    );
    // A mix needs no rewrite by the definition, and alone it is in random order.
    assert_eq!(
        units_of("--mix 70:30 --rewrite scatter --types 0,2"),
        ["1 random 70:30 rewrite 0", "2 random 70:30 rewrite 2"]
    );
    assert_eq!(
        units_of("--order reverse --mix 70:30 --types 2"),
        ["1 reverse rewrite 2", "2 reverse read 2", "3 reverse 70:30 rewrite 2"]
    );
}
