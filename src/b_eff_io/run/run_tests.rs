//! Types, patterns, rounds and everything around their clock, by scripts: the calls on the files, and the records.

use std::collections::BTreeMap;
use std::time::Duration;

use beff_backends::{Collective, Direct, DriverOptions};

use crate::b_eff_io::cli::IoArgs;
use crate::b_eff_io::config::{Config, RepeatPolicy};
use crate::b_eff_io::hints::{HintRule, HintScope};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::patterns::{of_type, patterns};
use crate::b_eff_io::plan::run::{Facts, RunPlan};
use crate::b_eff_io::records::{
    CorruptionRecord, JournalLine, PatternRecord, RepetitionRecord, StopReason, TypeRecord,
};
use crate::b_eff_io::run::batching::SyncModel;
use crate::b_eff_io::run::context::TypeContext;
use crate::b_eff_io::run::execute::execute;
use crate::b_eff_io::run::first_measurement::TypeDuration;
use crate::b_eff_io::run::repetitions::{adopt_root_state, run_repetitions};
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::sync_calibration::calibrate;
use crate::b_eff_io::run::type_run::run_type;
use crate::b_eff_io::run::verify::{reader_of, VerificationTarget};
use crate::frame::benchmark::options_from_words;
use crate::frame::command::backend_capabilities;
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::{AccessMethod, ErrorRecord, RunOutcome};
use crate::frame::run::evidence::StorageSite;
use crate::frame::run::interference::HostCpus;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::testing::{
    approx_equal, clear_log, driver, log_of, run_ranks, with_script, Script, ScriptedOutcome,
};
use crate::frame::run::{ProgressReport, RunObserver, TransferVolume};
use beff_stamp::Generation;

/// Keeps all records and progress reports.
#[derive(Default)]
pub(super) struct JournalRecorder {
    pub(super) lines: Vec<JournalLine>,
    progress_reports: Vec<ProgressReport>,
    unreported: Vec<TransferVolume>,
}

impl RunObserver<JournalLine> for JournalRecorder {
    fn record(&mut self, line: JournalLine) {
        self.lines.push(line);
    }

    fn progress(&mut self, standing: &ProgressReport) {
        self.progress_reports.push(standing.clone());
    }

    fn measurement_ended(&mut self, _is_complete: bool, last: Vec<TransferVolume>) {
        self.unreported = last;
    }
}

impl JournalRecorder {
    pub(super) fn patterns(&self) -> Vec<&PatternRecord> {
        self.lines
            .iter()
            .filter_map(|line| if let JournalLine::Pattern(p) = line { Some(&**p) } else { None })
            .collect()
    }

    pub(super) fn types(&self) -> Vec<&TypeRecord> {
        self.lines.iter().filter_map(|line| if let JournalLine::Type(t) = line { Some(t) } else { None }).collect()
    }

    pub(super) fn corruptions(&self) -> Vec<&CorruptionRecord> {
        self.lines
            .iter()
            .filter_map(|line| if let JournalLine::Corruption(c) = line { Some(c) } else { None })
            .collect()
    }

    pub(super) fn errors(&self) -> Vec<&ErrorRecord> {
        self.lines.iter().filter_map(|line| if let JournalLine::Error(e) = line { Some(e) } else { None }).collect()
    }
}

pub(super) fn config(options: &str) -> Config {
    options_from_words::<IoArgs>(options.split_whitespace()).config(&backend_capabilities()).unwrap()
}

/// Runs `work` in a run on each of `ranks` ranks with testing drivers; with `data` they store it, through the page cache.
pub(super) fn in_run<T: Send>(
    ranks: u64,
    config: &Config,
    scripts: impl Fn(u64) -> Script + Sync,
    data: bool,
    work: impl Fn(&mut RunState<'_>, TypeContext<'_>) -> T + Sync,
) -> Vec<(T, JournalRecorder)> {
    let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    run_ranks(ranks, scripts, |comm| {
        let facts = Facts {
            ranks,
            ranks_of_first_host: ranks,
            memory_per_rank_bytes: 256 << 20,
            cache_share_bytes: 64 << 10,
            limit_bytes: None,
            writing_backends: 0,
        };
        let plan = RunPlan::new(config, &facts).unwrap();
        let directories = RankDirectories::new(ranks, config.files_per_directory);
        let run_dir = RunDir::create(comm, scratch.path(), "run", (&config.backends, directories)).unwrap().unwrap();
        let interrupt = with_script(|script| script.interrupt.clone());
        let mut keeps = JournalRecorder::default();
        let mut run = RunState::new(comm, config, &plan, &run_dir, &interrupt, &[], &mut keeps).unwrap();
        for backend in &mut run.backends {
            backend.driver = driver(data);
            backend.options =
                DriverOptions { direct: Direct::Off, collective: Collective::Independent, ..DriverOptions::default() };
            backend.moves_data = data;
        }
        let (site, cpus) = (StorageSite::survey(comm, run_dir.path()).unwrap(), HostCpus::survey(comm).unwrap());
        let part = &plan.partitions[0];
        let place = TypeContext {
            access: AccessMethod::Write,
            partition: part,
            comm,
            site: &site,
            cpus: &cpus,
            pattern_type: PatternType::Scatter,
            repetition: None,
            order: None,
        };
        clear_log();
        let done = work(&mut run, place);
        drop(run);
        (done, keeps)
    })
}

pub(super) fn slow_rank(ranks: u64, rank: u64) -> Script {
    let factor = if rank == 1.min(ranks - 1) { SLOW } else { 1.0 };
    Script::default()
        .cost("open", 0.5 * factor)
        .cost("close", 0.25 * factor)
        .cost("prepare", 0.125 * factor)
        .cost("preallocate", 0.0625 * factor)
        .cost("write", factor)
        .cost("read", factor)
        .cost("sync", 0.5 * factor)
}

const SLOW: f64 = 2.0;

/// One type with all three access methods, and every number of its records.
#[test]
fn the_records_of_a_type_hold_its_times() {
    let rule = |place, key: &str| HintRule {
        ranks: None,
        access: None,
        pattern_type: None,
        place,
        key: key.into(),
        value: "1".into(),
    };
    for (ranks, rounds) in [(1, 1), (2, 3), (3, 1)] {
        let mut config = config(&format!("--release 1 -T 3840s --types 2 --backend null --rounds {rounds}"));
        config.hints = vec![rule(HintScope::OnOpen, "open"), rule(HintScope::ChunkBytes(1024), "kilo")];
        let scripts = |rank| Script { hints_in_force: vec![("kilo".into(), "2".into())], ..slow_rank(ranks, rank) };
        let seen = in_run(ranks, &config, scripts, false, |run, place| {
            let mut logs = Vec::new();
            for access in AccessMethod::ALL {
                run.backends[0].debt_seconds = 0.0;
                run_type(run, TypeContext { access, pattern_type: PatternType::Separate, ..place }).unwrap();
                // Late ranks do not count in the time of open or close.
                let order = log_of(&["barrier", "open", "close"]);
                assert!(order[0] == "barrier" && order[1].starts_with("open"), "{order:?}");
                assert_eq!(order[order.len() - 2..], ["barrier", "close"]);
                logs.push(log_of(&[
                    "open",
                    "prepare",
                    "preallocate",
                    "write",
                    "read",
                    "trim",
                    "sync",
                    "hints",
                    "close",
                    "hear",
                ]));
                clear_log();
            }
            assert_eq!(run.stop, None);
            (logs, run.first_measurements.clone(), run.done_seconds)
        });
        let ((logs, passed, done_seconds), keeps) = &seen[0];
        let records = keeps.patterns();
        let specs = patterns(2 << 20);
        let specs = of_type(&specs, PatternType::Separate);
        assert_eq!(records.len(), 3 * specs.len());
        let mut scheduled_sum = 0.0;
        for (nth, access) in AccessMethod::ALL.into_iter().enumerate() {
            let mode = ["CreateNew", "Update", "ReadOnly"][nth];
            let log = &logs[nth];
            let rank_name = format!("null/n{ranks}-type2-separate-rank0000000.dat");
            assert_eq!(log[0], format!("open {mode} {rank_name} of 1 open=1"));
            assert_eq!((log[1].as_str(), log[log.len() - 1].as_str()), ("hints", "close"));
            let mut debt = 0.5 * SLOW;
            let moves = if access == AccessMethod::Read { "read" } else { "write" };
            let mut by_pattern = log.split(|line| line.starts_with("prepare")).skip(1);
            let mut at = None;
            for (record, spec) in records[nth * specs.len()..].iter().zip(specs) {
                let place = format!("{access:?} {} of {ranks}, {rounds} rounds", spec.number);
                let own = by_pattern.next().unwrap();
                let calls = own.iter().filter(|line| line.starts_with(moves)).count() as u64;
                assert_eq!((record.calls, record.access, record.ranks), (calls, access, ranks), "{place}");
                assert_eq!((record.pattern, record.chunk_bytes), (spec.number, spec.chunk_bytes), "{place}");
                assert_eq!((record.call_bytes, record.time_units), (spec.call_bytes, spec.time_units), "{place}");
                assert_eq!(record.moved_bytes, calls * spec.call_bytes * ranks, "{place}");
                let scheduled = 20.0 * f64::from(spec.time_units);
                let budget = (scheduled - debt).max(0.25 * scheduled);
                assert!(
                    approx_equal(record.scheduled_seconds, scheduled) && approx_equal(record.budget_seconds, budget),
                    "{place} {debt}"
                );
                let n_rounds = if spec.time_units == 0 { 1 } else { record.rounds.len() as u64 };
                assert!(n_rounds >= 1 && (spec.time_units == 0 || n_rounds == rounds), "{place} {n_rounds}");
                let i = record.intervals;
                let writes = access != AccessMethod::Read;
                let parts =
                    [i.view_seconds, i.preallocate_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds];
                let per_write = |seconds: f64| if writes { seconds * SLOW } else { 0.0 };
                let expected = [
                    0.125 * SLOW,
                    per_write(0.0625 * calls as f64),
                    calls as f64 * SLOW,
                    0.0,
                    per_write(0.5 * n_rounds as f64),
                ];
                assert!(parts.iter().zip(expected).all(|(a, b)| approx_equal(*a, b)), "{place} {parts:?} {expected:?}");
                let of_rounds = record.rounds.iter().map(|round| round.seconds).sum::<f64>();
                assert!(approx_equal(of_rounds, record.seconds()), "{place}");
                assert_eq!(record.rounds.iter().map(|round| round.calls).sum::<u64>(), calls, "{place}");
                assert_eq!(record.rounds.iter().map(|round| round.moved_bytes).sum::<u64>(), record.moved_bytes);
                let numbers: Vec<u32> = record.rounds.iter().map(|round| round.number).collect();
                assert_eq!(numbers, (1..=n_rounds as u32).collect::<Vec<_>>(), "{place}");
                assert_eq!(record.batches.iter().map(|batch| batch.calls).sum::<u64>(), calls, "{place}");
                let completions = own.iter().filter(|line| *line == "hear").count() as u64;
                assert_eq!(record.decisions, completions, "{place}");
                assert!(approx_equal(record.decision_cost_seconds, 0.0), "{place}");
                let hints =
                    if spec.chunk_bytes == 1024 { vec![("kilo".to_owned(), "1".to_owned())] } else { Vec::new() };
                assert_eq!(record.hints_granted.len(), hints.len(), "{place}");
                assert_eq!(record.hints_requested, hints, "{place}");
                assert_eq!((record.strategy.as_str(), record.direct), ("fake", None), "{place}");
                assert!(record.sample.is_none() && record.latency.is_none() && record.submissions.is_none(), "{place}");
                let ended = if spec.time_units == 0 { StopReason::Count } else { StopReason::Time };
                assert!(
                    record.ended == ended || (access != AccessMethod::Write && record.ended == StopReason::Count),
                    "{place}"
                );
                if access == AccessMethod::Write && spec.time_units > 0 {
                    // The next call would not have fitted.
                    let left = budget - record.seconds();
                    assert!(left < 2.0 * SLOW && left > -2.5 * SLOW, "{place}: {left}");
                }
                if let Some(at) = at {
                    assert!(approx_equal(record.at_seconds.unwrap(), at), "{place}: {:?} {at}", record.at_seconds);
                }
                at = Some(record.at_seconds.unwrap() + record.seconds());
                let passed = passed.iter().find(|p| p.access == access && p.pattern == spec.number).unwrap();
                assert_eq!((passed.calls, passed.rounds as usize, passed.ranks), (calls, record.rounds.len(), ranks));
                assert_eq!(
                    (passed.backend, passed.pattern_type, passed.time_units),
                    (0, PatternType::Separate, spec.time_units)
                );
                assert!(approx_equal(passed.seconds, record.seconds()));
                assert!(approx_equal(passed.calls_seconds, i.preallocate_seconds + i.transfer_seconds));
                debt = (debt + record.seconds() - scheduled).max(0.0);
                scheduled_sum += scheduled;
            }
            let of_type = keeps.types()[nth];
            assert_eq!((of_type.access, of_type.pattern_type, of_type.ranks), (access, PatternType::Separate, ranks));
            assert_eq!(of_type.hints_requested, [("open".to_owned(), "1".to_owned())]);
            assert_eq!(of_type.hints_granted, [("kilo".to_owned(), "2".to_owned())]);
            assert!(approx_equal(of_type.open_seconds, 0.5 * SLOW) && approx_equal(of_type.close_seconds, 0.25 * SLOW));
        }
        assert!(approx_equal(*done_seconds, scheduled_sum));
        // The bytes of each pattern are reported after it.
        let reported =
            keeps.progress_reports.iter().flat_map(|standing| &standing.transferred).chain(&keeps.unreported);
        let reported: u64 = reported.map(|moved| moved.bytes).sum();
        let last = records[records.len() - 1].moved_bytes;
        assert_eq!(reported + last, records.iter().map(|record| record.moved_bytes).sum::<u64>());
    }
}

/// The barrier before open or close takes longer on one rank than on the other.
#[test]
fn openings_and_closings_are_timed_behind_their_barrier() {
    let config = config("--release 1 -T 960s --types 2 --backend null --rounds 1");
    let scripts = |rank| slow_rank(2, rank).cost("barrier", 3.0 * (1 + rank) as f64);
    for ((), keeps) in in_run(2, &config, scripts, false, |run, place| {
        for access in AccessMethod::ALL {
            run.backends[0].debt_seconds = 0.0;
            run_type(run, TypeContext { access, pattern_type: PatternType::Separate, ..place }).unwrap();
        }
    }) {
        assert_eq!(keeps.types().len(), AccessMethod::ALL.len());
        for of_type in keeps.types() {
            let [open, close] = [of_type.open_seconds, of_type.close_seconds];
            assert!(
                approx_equal(open, 0.5 * SLOW) && approx_equal(close, 0.25 * SLOW),
                "{:?}: {open} {close}",
                of_type.access
            );
        }
    }
}

/// The order alternates, so that drift affects all alike.
#[test]
fn backends_take_turns_in_alternating_order() {
    let config = config("--release 1 -T 960s --types 2 --backend null,posix --rounds 3");
    let seen = in_run(
        2,
        &config,
        |rank| slow_rank(2, rank),
        false,
        |run, place| {
            run_type(run, TypeContext { pattern_type: PatternType::Separate, ..place }).unwrap();
        },
    );
    let turns: Vec<&str> = seen[0].1.progress_reports.iter().map(|s| s.what.split(',').next().unwrap()).collect();
    assert_eq!(turns[..8], ["null", "posix", "posix", "null", "posix", "null", "null", "posix"]);
    let stage = &seen[0].1.progress_reports[2].stage;
    assert_eq!(stage, "write, type 2 (separate), 2 ranks");
}

#[test]
fn an_error_ends_the_type_with_one_record_and_closed_files() {
    for (call, number, patterns_measured, opened) in
        [("open", 0, 0, false), ("write", 3, 3, true), ("sync", 1, 2, true)]
    {
        let scripts = |rank| {
            let script = slow_rank(3, rank);
            if rank == 2 {
                script.outcome(call, number, ScriptedOutcome::Full)
            } else {
                script
            }
        };
        let config = config("--release 1 -T 960s --types 2 --backend null --rounds 1");
        for (rank, (closes, keeps)) in in_run(3, &config, scripts, false, |run, place| {
            run_type(run, TypeContext { pattern_type: PatternType::Separate, ..place }).unwrap();
            assert_eq!(run.stop, Some(RunOutcome::Failed), "{call}");
            log_of(&["close"]).len()
        })
        .into_iter()
        .enumerate()
        {
            let errors = keeps.errors();
            assert_eq!(errors.len(), 1, "{call}");
            assert_eq!((errors[0].rank, errors[0].ranks_affected, errors[0].no_space), (2, 1, true), "{call}");
            assert!(
                errors[0].message.starts_with(call) && errors[0].next_step.contains("free space"),
                "{:?}",
                errors[0]
            );
            assert_eq!((keeps.patterns().len(), closes), (patterns_measured, usize::from(opened)), "{call} {rank}");
            if let Some(last) = keeps.patterns().last() {
                assert_eq!(last.ended, StopReason::Error);
            }
        }
    }
}

#[test]
fn what_one_rank_cannot_run_is_run_by_none() {
    let scripts = |rank| Script { unsupported: (rank == 1).then(|| "not here".into()), ..slow_rank(2, rank) };
    let config = config("--release 1 -T 960s --types 2 --backend null");
    for (calls, keeps) in in_run(2, &config, scripts, false, |run, place| {
        run_type(run, TypeContext { pattern_type: PatternType::Separate, ..place }).unwrap();
        log_of(&["prepare", "write"]).len()
    }) {
        assert_eq!(calls, 0);
        assert!(keeps.patterns().iter().all(|record| record.ended == StopReason::NotRun("not here".into())));
    }
}

#[test]
fn a_signal_in_a_pattern_ends_the_run() {
    let scripts = |rank| {
        if rank == 1 {
            slow_rank(2, rank).outcome("write", 2, ScriptedOutcome::Signal)
        } else {
            slow_rank(2, rank)
        }
    };
    let config = config("--release 1 -T 960s --types 2 --backend null --rounds 1");
    for (stop, keeps) in in_run(2, &config, scripts, false, |run, place| {
        run_type(run, TypeContext { pattern_type: PatternType::Separate, ..place }).unwrap();
        run.stop
    }) {
        assert_eq!(stop, Some(RunOutcome::Interrupted));
        let records = keeps.patterns();
        assert_eq!((records.len(), &records[1].ended), (2, &StopReason::Interrupted));
    }
}

/// Wrong words in patterns, samples and types, by access method.
fn wrong_words(keeps: &JournalRecorder) -> [[u64; 3]; 3] {
    AccessMethod::ALL.map(|access| {
        let patterns = keeps.patterns().into_iter().filter(|record| record.access == access);
        let (mut reads, mut samples) = (0, 0);
        for record in patterns {
            reads += record.verification.words_wrong;
            samples += record.sample.as_ref().map_or(0, |sample| sample.words_wrong);
        }
        let types = keeps.types().into_iter().filter(|record| record.access == access);
        [reads, samples, types.filter_map(|record| record.full_verification).map(|found| found.words_wrong).sum()]
    })
}

fn run_stored(
    ranks: u64,
    pattern_type: PatternType,
    options: &str,
    scripts: impl Fn(u64) -> Script + Sync,
) -> JournalRecorder {
    // Segments take their sizes from another type.
    let types = if pattern_type.has_segments() { format!("2,{pattern_type}") } else { pattern_type.to_string() };
    let options = format!("--release 1 -T 120s --types {types} --backend posix {options}");
    let scripts = |rank| scripts(rank).cost("write", 10.0).cost("read", 10.0);
    let mut seen = in_run(ranks, &config(&options), scripts, true, |run, place| {
        if pattern_type.has_segments() {
            let answers = with_script(|script| std::mem::take(&mut script.outcomes));
            run_type(run, TypeContext { pattern_type: PatternType::Separate, ..place }).unwrap();
            with_script(|script| (script.outcomes, script.calls) = (answers, BTreeMap::new()));
        }
        for access in AccessMethod::ALL {
            run_type(run, TypeContext { access, pattern_type, ..place }).unwrap();
        }
    });
    let mut keeps = seen.remove(0).1;
    keeps.lines.retain(|line| match line {
        JournalLine::Pattern(record) => record.pattern_type == pattern_type,
        JournalLine::Type(record) => record.pattern_type == pattern_type,
        _ => true,
    });
    keeps
}

/// A write of the first contestant is lost; the second one writes correctly.
#[test]
fn after_wrong_data_all_the_others_or_none_are_measured() {
    for (policy, measured_after, errors) in
        [("continue", [true, true], 0), ("skip", [false, true], 0), ("end", [false, false], 1)]
    {
        let options = "--release 1 -T 120s --types 0,2 --backend posix --variant same --verify full --on-corruption";
        let scripts = |_| {
            let script = Script::default().outcome("write", 0, ScriptedOutcome::Nothing);
            script.cost("write", 10.0).cost("read", 10.0)
        };
        let mut seen = in_run(2, &config(&format!("{options} {policy}")), scripts, true, |run, place| {
            run_type(run, place).unwrap();
            if run.stop.is_none() {
                run_type(run, TypeContext { pattern_type: PatternType::Separate, ..place }).unwrap();
            }
        });
        let keeps = seen.remove(0).1;
        let is_later = |p: &&PatternRecord| p.pattern_type == PatternType::Separate;
        let later: Vec<&PatternRecord> = keeps.patterns().into_iter().filter(is_later).collect();
        let has_calls = |name: &str| later.iter().any(|p| p.backend == name && p.calls > 0);
        assert_eq!(["posix", "posix+same"].map(has_calls), measured_after, "{policy}");
        let reasons = later.iter().filter(|p| format!("{:?}", p.ended).contains("--on-corruption skip")).count();
        assert_eq!(reasons > 0, policy == "skip", "{policy}: each pattern has the reason");
        assert_eq!(keeps.errors().len(), errors, "{policy}: {:?}", keeps.errors());
        let found = keeps.corruptions();
        assert!(!found.is_empty() && found.iter().all(|c| c.backend == "posix"), "{policy}: {found:?}");
    }
}

/// In each type, a lost write of the last rank and a bit flipped in a read; everything else is correct.
#[test]
fn every_type_is_verified_as_far_as_is_promised() {
    use PatternType::{Scatter, Segmented, SegmentedCollective, Separate, Shared};
    for (ranks, pattern_type) in
        [(2, Scatter), (3, Shared), (3, Separate), (2, Segmented), (2, SegmentedCollective), (1, Separate)]
    {
        let scripts = |rank| {
            let script = Script::default();
            if rank == ranks - 1 {
                let script = script.outcome("write", 0, ScriptedOutcome::Nothing);
                script.outcome("read", 1, ScriptedOutcome::Flip(0)).outcome("read", 2, ScriptedOutcome::Nothing)
            } else {
                script
            }
        };
        let keeps = run_stored(ranks, pattern_type, "--verify sample --cache keep", scripts);
        let [write, rewrite, read] = wrong_words(&keeps);
        assert!(write[1] > 0 && write[0] == 0, "{pattern_type} {write:?}");
        let corruptions = keeps.corruptions();
        let like =
            |text: &str| corruptions.iter().find(|c| c.access == AccessMethod::Read && c.diagnosis.starts_with(text));
        let (flipped, missing) = (like("one bit flipped").unwrap(), like("never delivered").unwrap());
        assert_eq!((flipped.rank, flipped.words_wrong, missing.rank), (ranks - 1, 1, ranks - 1));
        assert_eq!((flipped.expected ^ flipped.actual).count_ones(), 1);
        let lost = keeps.patterns().into_iter().find(|record| record.pattern == missing.pattern).unwrap();
        assert_eq!(missing.words_wrong, lost.call_bytes / 8, "all words that were not read");
        assert_eq!((rewrite, read), ([0; 3], [1 + missing.words_wrong, 0, 0]), "{pattern_type}");
        assert!(keeps.errors().is_empty(), "{:?}", keeps.errors());
        for record in keeps.patterns().into_iter().filter(|record| record.calls > 0) {
            let place = format!("{} {:?}", record.pattern, record.access);
            let checked = record.verification.words_checked;
            // The buffer holds all calls of a read, or the last of them.
            let call_words = ranks * record.call_bytes / 8;
            let expected =
                if record.access == AccessMethod::Read { call_words..=call_words * record.calls } else { 0..=0 };
            assert!(expected.contains(&checked), "{place}: {checked}");
            let sample = record.sample.as_ref().unwrap();
            let all_bytes = record.calls * record.call_bytes * ranks;
            assert_eq!((sample.of_bytes, &sample.unread_reason), (all_bytes, &None), "{place}");
            assert!(sample.samples > 0 && sample.bytes > 0 && sample.bytes <= all_bytes, "{place} {sample:?}");
        }
    }
}

/// The same with full verification, after the type and before it is overwritten.
#[test]
fn lost_writes_are_found_in_whole_files() {
    for (ranks, pattern_type) in [(2, PatternType::Scatter), (3, PatternType::Separate)] {
        let scripts = |rank| {
            let script = Script::default();
            if rank == ranks - 1 {
                script.outcome("write", 0, ScriptedOutcome::Nothing)
            } else {
                script
            }
        };
        let full = wrong_words(&run_stored(ranks, pattern_type, "--verify full --cache keep", scripts));
        assert!(full[0][2] > 0 && full[1][0] > 0 && full[1][2] == 0 && full[2] == [0; 3], "{pattern_type} {full:?}");
    }
}

/// With full verification: each word once after writes and rewrites, and each before it is overwritten.
#[test]
fn everything_is_compared_once() {
    let keeps = run_stored(2, PatternType::Separate, "--verify full --cache keep", |_| Script::default());
    assert_eq!(wrong_words(&keeps), [[0; 3]; 3]);
    let words = |access| {
        let of = keeps.patterns().into_iter().filter(move |record| record.access == access);
        of.map(|record| record.moved_bytes / 8).sum::<u64>()
    };
    for (record, access) in keeps.types().iter().zip(AccessMethod::ALL) {
        assert_eq!(record.full_verification.unwrap().words_checked, words(AccessMethod::Write), "{access:?}");
    }
    for record in keeps.patterns() {
        let first = keeps.patterns().into_iter().find(|p| p.pattern == record.pattern).unwrap().moved_bytes / 8;
        let expected = match record.access {
            AccessMethod::Write => 0,
            AccessMethod::Rewrite => first,
            AccessMethod::Read => record.moved_bytes / 8,
        };
        assert_eq!(record.verification.words_checked, expected, "{} {:?}", record.pattern, record.access);
        assert!(record.sample.is_none());
    }
}

#[test]
fn data_that_was_not_rewritten_is_stale() {
    // One call for each pattern.
    const FIRST_WRITES: usize = 8;
    let scripts = |rank| {
        let script = Script::default();
        if rank == 1 {
            script.outcome("write", FIRST_WRITES, ScriptedOutcome::Nothing)
        } else {
            script
        }
    };
    let keeps = run_stored(2, PatternType::Separate, "--verify sample --cache keep", scripts);
    assert_eq!(keeps.patterns()[..FIRST_WRITES].iter().map(|record| record.calls).sum::<u64>(), FIRST_WRITES as u64);
    assert!(wrong_words(&keeps)[0] == [0; 3] && wrong_words(&keeps)[1][1] > 0, "{:?}", wrong_words(&keeps));
    let found = keeps.corruptions();
    assert!(found[0].diagnosis.contains("stale") && found[0].rank == 1, "{found:?}");
}

#[test]
fn no_rank_rereads_its_own_data_and_each_write_has_its_generation() {
    assert_eq!([0, 1, 2].map(|rank| reader_of(rank, 3)), [1, 2, 0]);
    assert_eq!(reader_of(0, 1), 0);
    let plain = config("--release 1 -T 960s --types 1,2 --backend null");
    let shifted = config("--release 1 -T 960s --types 1,2 --backend null --cache rank-shift");
    in_run(
        3,
        &plain,
        |_| Script::default(),
        false,
        |run, place| {
            let of = |access| TypeContext { access, ..place }.write_generation();
            assert_eq!(AccessMethod::ALL.map(of), [Generation::First, Generation::Second, Generation::First]);
            assert_eq!(
                TypeContext { access: AccessMethod::Read, pattern_type: PatternType::Separate, ..place }.part_rank(run),
                place.comm.rank()
            );
        },
    );
    in_run(
        3,
        &shifted,
        |_| Script::default(),
        false,
        |run, place| {
            let own = place.comm.rank();
            let of = |access, pattern_type| TypeContext { access, pattern_type, ..place }.part_rank(run);
            // The order of a shared pointer cannot be shifted, and writes are not shifted.
            assert_eq!(of(AccessMethod::Read, PatternType::Separate), (own + 1) % 3);
            assert_eq!(
                [
                    of(AccessMethod::Read, PatternType::Shared),
                    of(AccessMethod::Write, PatternType::Separate),
                    of(AccessMethod::Rewrite, PatternType::Separate)
                ],
                [own; 3]
            );
        },
    );
}

/// Data lost by one rank is detected by its reader, in whole files and by samples, and by no other rank.
#[test]
fn each_rank_verifies_the_data_of_its_neighbour() {
    let config = config("--release 1 -T 120s --types 2 --backend posix --verify sample --cache keep");
    let scripts = |rank| {
        let script = Script::default().cost("write", 10.0);
        if rank == 1 {
            script.outcome("write", 0, ScriptedOutcome::Nothing)
        } else {
            script
        }
    };
    let seen = in_run(3, &config, scripts, true, |run, place| {
        run_type(run, TypeContext { pattern_type: PatternType::Separate, ..place }).unwrap();
        let file = &run.files[0];
        let rank = place.comm.rank();
        let again = VerificationTarget { run_dir: run.run_dir, file, access: AccessMethod::Write, rank, drops: false };
        let whole = run.data.check_file(&again).unwrap();
        let of_pattern = |written| run.data.check_sample(&again, written, Duration::from_secs(60)).unwrap();
        let samples: Vec<_> = file.written.iter().map(of_pattern).collect();
        // The files exist until all ranks have read them.
        place.comm.barrier().unwrap();
        let sampled: u64 = samples.iter().map(|found| found.verification.words_wrong).sum();
        assert!(whole
            .corruptions
            .iter()
            .chain(samples.iter().flat_map(|found| &found.corruptions))
            .all(|place| place.rank == 1));
        [whole.verification.words_wrong > 0, sampled > 0]
    });
    assert_eq!(seen.iter().map(|(found, _)| *found).collect::<Vec<_>>(), [[true; 2], [false; 2], [false; 2]]);
}

#[test]
fn a_calibration_determines_latency_and_rate_of_syncs() {
    const MIB: u64 = 1 << 20;
    // The calls of four ranks together exceed the size below which a sync is all latency.
    for ranks in 1..=4 {
        let config = config("--release 1 -T 3840s --types 2 --backend posix");
        let seen = in_run(
            ranks,
            &config,
            |rank| slow_rank(ranks, rank),
            false,
            |run, place| {
                run.backends[0].moves_data = true;
                calibrate(run, place.comm).unwrap();
                assert_eq!(run.stop, None);
                let calls = log_of(&["open", "prepare", "preallocate", "write", "sync", "close"]);
                (calls, run.backends[0].sync.to_parts(), run.backends[0].calibrated_bytes_per_second)
            },
        );
        for ((calls, sync, rate), keeps) in &seen {
            let [JournalLine::Calibration(record)] = &keeps.lines[..] else { panic!("{:?}", keeps.lines) };
            let writes = calls.iter().filter(|line| line.starts_with("write")).count() as u64 - 1;
            // 19.2 s, with calls of slightly more than 2 s.
            assert!((8..=9).contains(&writes), "{calls:?}");
            let bytes = writes * MIB * ranks;
            assert_eq!((record.backend.as_str(), record.bytes), ("posix", bytes));
            assert!(
                approx_equal(record.write_seconds, SLOW * writes as f64) && approx_equal(record.sync_seconds, 1.0),
                "{record:?}"
            );
            assert!(
                approx_equal(sync[0], 1.0) && approx_equal(sync[1] / (10.0 * bytes as f64), 1.0),
                "{sync:?} {bytes}"
            );
            assert!(approx_equal(rate.unwrap() / (bytes as f64 / record.write_seconds), 1.0));
            assert!(calls[0].starts_with("open CreateNew posix/calibration-rank000000") && calls[0].ends_with("of 1"));
            assert_eq!(calls[1..5], ["prepare Write 128x1048576 of 0", "preallocate 0+1", "write 0+1", "sync"]);
            assert_eq!(calls[5..7], ["prepare Write 128x1048576 of 0", "preallocate 0+1"]);
            assert_eq!(calls.last().unwrap(), "close");
        }
        // An error of one rank stops all, with its cause.
        let scripts =
            |rank| slow_rank(ranks, rank).outcome("sync", usize::from(rank != ranks - 1) * 99, ScriptedOutcome::Fail);
        for (stop, keeps) in in_run(ranks, &config, scripts, false, |run, place| {
            run.backends[0].moves_data = true;
            calibrate(run, place.comm).unwrap();
            run.stop
        }) {
            assert_eq!((stop, keeps.errors()[0].rank), (Some(RunOutcome::Failed), ranks - 1));
        }
    }
}

#[test]
fn all_ranks_adopt_sync_models_and_counters_of_rank_0() {
    let config = config("--release 1 -T 960s --types 2 --backend mpiio");
    let seen = in_run(
        3,
        &config,
        |_| Script::default(),
        false,
        |run, place| {
            let rank = place.comm.rank() as f64;
            run.backends[0].sync = SyncModel::from_parts([1.0 + rank, 100.0 + rank]);
            let counters = run.backends[0].counters.as_mut().unwrap();
            if rank == 0.0 {
                counters.mark_incomplete();
            }
            adopt_root_state(run, place.comm).unwrap();
            (run.backends[0].sync.to_parts(), run.backends[0].counters.unwrap().to_parts())
        },
    );
    assert!(seen.iter().all(|(known, _)| *known == ([1.0, 100.0], [0.0, 0.0, 1.0])));
}

/// Repetitions make the calls of the first measurement, in files that are written anew, and are cut if they are too slow.
#[test]
fn repetitions_make_the_same_calls_and_are_cut_by_a_guard() {
    for slower in [1.0, 10.0] {
        let mut config = config("--release 1 -T 1920s --types 2 --backend null --rounds 1");
        config.repeat = RepeatPolicy::Auto;
        let seen = in_run(
            2,
            &config,
            |rank| slow_rank(2, rank),
            false,
            |run, place| {
                for access in AccessMethod::ALL {
                    run.backends[0].debt_seconds = 0.0;
                    run_type(run, TypeContext { access, pattern_type: PatternType::Separate, ..place }).unwrap();
                    run.type_durations.push(TypeDuration {
                        ranks: 2,
                        access,
                        pattern_type: PatternType::Separate,
                        seconds: 50.0,
                    });
                }
                with_script(|script| {
                    for call in ["write", "read"] {
                        script.costs.insert(call, vec![slower * if place.comm.rank() == 1 { SLOW } else { 1.0 }]);
                    }
                });
                clear_log();
                run_repetitions(run, place, 0, 2000.0).unwrap();
                assert_eq!(run.stop, None);
                log_of(&["open"])
            },
        );
        let (opens, keeps) = &seen[0];
        let first = |record: &RepetitionRecord| {
            let is_it =
                |p: &&PatternRecord| p.access == record.measurement.access && p.pattern == record.measurement.pattern;
            keeps.patterns().into_iter().find(is_it).unwrap()
        };
        let mut repetitions: Vec<&RepetitionRecord> = Vec::new();
        for line in &keeps.lines {
            if let JournalLine::Repetition(record) = line {
                repetitions.push(record);
            }
        }
        assert!(!repetitions.is_empty() && opens.iter().any(|line| line.starts_with("open CreateNew")), "{opens:?}");
        for record in &repetitions {
            let (m, first) = (&record.measurement, first(record));
            let place = format!("{:?} {} again", m.access, m.pattern);
            assert!(m.batches.is_empty() && m.rounds.is_empty() && record.share > 0.0, "{place}");
            if record.share == 1.0 && slower == 1.0 {
                assert_eq!((m.calls, &m.ended), (first.calls, &StopReason::Count), "{place}");
            } else {
                assert!(m.calls <= first.calls, "{place}");
            }
        }
        let cut = repetitions.iter().filter(|record| record.measurement.ended == StopReason::TimeGuard).count();
        assert_eq!(cut > 0, slower > 1.0, "{cut} of {} were cut", repetitions.len());
        let of_one: Vec<u32> = repetitions
            .iter()
            .filter(|r| r.measurement.pattern == 18 && r.measurement.access == AccessMethod::Read)
            .map(|r| r.repetition)
            .collect();
        assert_eq!(of_one, (1..=of_one.len() as u32).collect::<Vec<_>>());
    }
}

/// Pages are dropped before rewrites and reads if that is the policy, and at no other time.
#[test]
fn cached_pages_are_dropped_before_rewrites_and_reads() {
    let resident = |cache: &str| {
        let keeps =
            run_stored(2, PatternType::Separate, &format!("--verify sample --cache {cache}"), |_| Script::default());
        let of = |access| {
            let records =
                keeps.patterns().into_iter().filter(move |record| record.access == access && record.calls > 0);
            records.map(|record| record.evidence.resident_before_bytes).sum::<Option<u64>>()
        };
        (of(AccessMethod::Rewrite), of(AccessMethod::Read))
    };
    let (Some(rewrite), Some(read)) = resident("keep") else {
        println!("SKIPPED: page-cache residency is unknown here");
        return;
    };
    let (Some(dropped_rewrite), Some(dropped_read)) = resident("drop") else { panic!("residency was known before") };
    assert!(
        dropped_rewrite < rewrite / 4 && dropped_read < read / 4,
        "{rewrite} {read} {dropped_rewrite} {dropped_read}"
    );
}

/// Ranks outside a partition wait, and learn its outcome.
#[test]
fn a_whole_run_works_through_its_partitions_and_ends_on_all_ranks() {
    let config = config("--release 1 -T 960s --types 2 --backend null --partitions 1,3 --rounds 1 --repeat off");
    let simulate = |script: fn(u64) -> Script| {
        let seen = in_run(
            3,
            &config,
            |rank| script(rank).cost("write", 1.0).cost("read", 1.0),
            false,
            |run, _| {
                let ending = execute(run).unwrap();
                (ending.outcome, ending.real_seconds)
            },
        );
        assert!(seen.iter().all(|((outcome, _), _)| *outcome == seen[0].0 .0), "the outcome is the same on all ranks");
        let ((outcome, seconds), keeps) = seen.into_iter().next().unwrap();
        let order: Vec<(AccessMethod, u64)> =
            keeps.patterns().iter().map(|record| (record.access, record.ranks)).collect();
        let sum = keeps.patterns().iter().map(|record| record.seconds()).sum::<f64>();
        assert!(approx_equal(sum, seconds), "{sum} {seconds}: nothing else takes time here");
        (outcome, order)
    };
    let (outcome, order) = simulate(|_| Script::default());
    let parts = AccessMethod::ALL.into_iter().flat_map(|access| [(access, 1), (access, 3)]);
    let expected: Vec<(AccessMethod, u64)> = parts.flat_map(|part| [part; 8]).collect();
    assert_eq!((outcome, order), (RunOutcome::Complete, expected.clone()));
    // After the first partition, which does not contain rank 2.
    let signal = |rank| {
        if rank == 2 {
            Script::default().outcome("idle barrier", 2, ScriptedOutcome::Signal)
        } else {
            Script::default()
        }
    };
    assert_eq!(simulate(signal), (RunOutcome::Interrupted, expected[..8].to_vec()));
    let error =
        |rank| if rank == 0 { Script::default().outcome("write", 0, ScriptedOutcome::Fail) } else { Script::default() };
    assert_eq!(simulate(error), (RunOutcome::Failed, expected[..1].to_vec()));
}

/// Data read in an earlier round is compared once, and each round continues after it.
#[test]
fn rounds_compare_each_call_once() {
    let config = config("--release 1 -T 120s --types 2 --backend posix --verify sample --cache keep --rounds 3");
    let scripts = |_| Script::default().cost("write", 0.05).cost("read", 0.05);
    let seen = in_run(1, &config, scripts, true, |run, place| {
        for access in [AccessMethod::Write, AccessMethod::Read] {
            run_type(run, TypeContext { access, pattern_type: PatternType::Separate, ..place }).unwrap();
        }
    });
    let short = |record: &&PatternRecord| record.call_bytes < 8192 && record.access == AccessMethod::Read;
    let records: Vec<&PatternRecord> = seen[0].1.patterns().into_iter().filter(short).collect();
    assert_eq!(records.len(), 2);
    for record in records {
        assert!(record.rounds.len() > 1 && record.calls > 3, "{record:?}");
        assert_eq!(record.verification.words_checked, record.calls * record.call_bytes / 8, "{}", record.pattern);
        assert_eq!(record.verification.words_wrong, 0);
    }
}
