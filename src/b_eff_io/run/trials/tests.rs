//! Trials on one to three ranks, with scripted times and files that store data.

use beff_backends::DriverRow;
use beff_ffi::Comm;

use super::work::{NamedPattern, TrialWork};
use super::{PatternTrials, TrialContestant, TrialPlace};
use crate::b_eff_io::cli::IoArgs;
use crate::b_eff_io::plan::patterns::patterns;
use crate::b_eff_io::plan::run::{Facts, RunPlan};
use crate::b_eff_io::plan::trials::select;
use crate::frame::benchmark::options_from_words;
use crate::frame::command::backend_capabilities;
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::{AccessMethod, RunOutcome};
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::testing::{clear_log, driver, log_of, run_ranks, with_script, Script, ScriptedOutcome};
use crate::frame::run::trials::{TrialOutcome, TrialRequest, TrialScope};
use crate::frame::system::storage::storage_record;
use crate::frame::trials::{Setting, TrialGoal};
use crate::frame::units::MIB;

const SECONDS: f64 = 8.0;

fn contestant(options: &str, ranks: u64) -> TrialContestant {
    let words = format!("--release 1 --backend posix --repeat off --rounds 1 --cache keep {options}");
    let args = options_from_words::<IoArgs>(words.split_whitespace());
    let mut config = args.config_of_trials(&backend_capabilities()).unwrap();
    config.backends.drain(..config.backends.len() - 1);
    let facts = Facts {
        ranks,
        ranks_of_first_host: ranks,
        memory_per_rank_bytes: 256 << 20,
        cache_share_bytes: 64 << 10,
        limit_bytes: Some(64 * MIB * ranks),
        writing_backends: 1,
    };
    let plan = RunPlan::new(&config, &facts).unwrap();
    TrialContestant { config, plan }
}

fn work(default: &TrialContestant, access: AccessMethod, goal: TrialGoal, chunks: &[u64]) -> TrialWork {
    let table = patterns(default.plan.partitions[0].m_part_bytes);
    let named = |spec| NamedPattern { spec, name: format!("pattern {}", spec.number) };
    let of_goal = select(&table, &default.config.types, chunks);
    let all = select(&table, &default.config.types, &[]);
    let others = all.into_iter().filter(|spec| !of_goal.contains(spec)).map(named).collect();
    TrialWork { access, goal, of_goal: of_goal.into_iter().map(named).collect(), others }
}

/// The driver of the script, which stores data.
fn row() -> &'static DriverRow {
    let real = beff_backends::driver("posix").unwrap();
    Box::leak(Box::new(DriverRow { create: |_| driver(true), ..*real }))
}

struct Case {
    options: &'static str,
    chunks: &'static [u64],
    access: AccessMethod,
    goal: TrialGoal,
}

impl Default for Case {
    fn default() -> Self {
        Self { options: "--types 2", chunks: &[32768, 1032], access: AccessMethod::Write, goal: TrialGoal::Value }
    }
}

fn in_trials<T: Send>(
    ranks: u64,
    case: &Case,
    scripts: impl Fn(u64) -> Script + Sync,
    test: impl Fn(&mut PatternTrials<'_>) -> T + Sync,
) -> Vec<T> {
    let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    run_ranks(ranks, scripts, |world| {
        let interrupt = with_script(|script| script.interrupt.clone());
        let mut trials = open(world, &interrupt, case, scratch.path(), row());
        let result = test(&mut trials);
        // Every trial removes its files.
        world.barrier().unwrap();
        let left = files_below(trials.run_dir().path());
        assert!(left.is_empty(), "{left:?}");
        result
    })
}

fn open<'a>(
    world: &'a Comm,
    interrupt: &'a Interrupt,
    case: &Case,
    scratch: &std::path::Path,
    row: &'static DriverRow,
) -> PatternTrials<'a> {
    let default = contestant(case.options, world.size());
    let names = ["posix", "posix+t"].map(str::to_owned);
    let run_dir = RunDir::create(world, scratch, "run", (&names, RankDirectories::NONE)).unwrap().unwrap();
    let work = work(&default, case.access, case.goal, case.chunks);
    let place = TrialPlace { world, interrupt, run_dir, storage: storage_record(scratch).unwrap(), row };
    PatternTrials::new(place, work, default).unwrap()
}

fn files_below(run_dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let backends = std::fs::read_dir(run_dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    backends.flat_map(|backend| std::fs::read_dir(backend).unwrap().map(|entry| entry.unwrap().path())).collect()
}

fn measure(
    trials: &mut PatternTrials<'_>,
    options: &str,
    request: &TrialRequest<'_>,
) -> Result<TrialOutcome, RunOutcome> {
    let ranks = trials.place.world.size();
    let own = contestant(&format!("--types {} {options}", types(trials)), ranks);
    trials.measure(&own, request).unwrap()
}

fn types(trials: &PatternTrials<'_>) -> String {
    let types: Vec<String> = trials.default.config.types.iter().map(ToString::to_string).collect();
    types.join(",")
}

fn request(setting: &Setting, seconds: f64, scope: TrialScope) -> TrialRequest<'_> {
    TrialRequest { setting, number: 0, seconds, scope }
}

fn default_trial(trials: &mut PatternTrials<'_>) -> Result<TrialOutcome, RunOutcome> {
    measure(trials, "", &request(&Vec::new(), SECONDS, TrialScope::Goal))
}

fn slow(rank: u64) -> Script {
    let factor = if rank == 1 { 2.0 } else { 1.0 };
    // A batch has the same time, whatever its calls: from longer calls a pilot predicts few.
    let costs = [("open", 0.3), ("close", 0.2), ("prepare", 0.001), ("write", 0.4), ("read", 0.3), ("sync", 0.05)];
    costs.into_iter().fold(Script::default(), |script, (call, seconds)| script.cost(call, factor * seconds))
}

fn bytes(outcome: &TrialOutcome) -> Vec<u64> {
    outcome.parts.iter().map(|part| part.bytes).collect()
}

/// The calls depend on the time alone, not on the setting and its speed; the first trial may have a setting.
#[test]
fn trials_of_the_same_time_do_the_same_work() {
    for (ranks, access) in [(1, AccessMethod::Write), (3, AccessMethod::Rewrite), (2, AccessMethod::Read)] {
        let case = Case { access, ..Case::default() };
        let seen = in_trials(ranks, &case, slow, |trials| {
            let setting = vec![("preallocate".to_owned(), "off".to_owned())];
            let options = "--direct auto --variant t:preallocate=off";
            let first = measure(trials, options, &request(&setting, SECONDS, TrialScope::Goal)).unwrap();
            clear_log();
            let second = default_trial(trials).unwrap();
            let opened = log_of(&["open"]);
            with_script(|script| script.costs.insert("write", vec![0.04]));
            let faster = default_trial(trials).unwrap();
            let longer = measure(trials, "", &request(&Vec::new(), 4.0 * SECONDS, TrialScope::Goal)).unwrap();
            (first, second, faster, longer, opened)
        });
        let (first, second, faster, longer, opened) = &seen[0];
        assert!(seen.iter().all(|other| other.1 == *second), "equal on all ranks");
        assert!(second.refusal.is_none() && second.words_wrong == 0 && second.words_checked > 0, "{second:?}");
        assert_eq!((bytes(first), bytes(faster)), (bytes(second), bytes(second)), "{access:?}");
        assert!(longer.parts.iter().zip(&second.parts).any(|(a, b)| a.bytes > b.bytes), "{longer:?} {second:?}");
        assert_eq!(second.parts.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["pattern 20", "pattern 23"]);
        let is_faster = faster.bytes_per_second > 2.0 * second.bytes_per_second;
        assert_eq!(is_faster, access != AccessMethod::Read, "{faster:?} {second:?}");
        // One opening for what is measured, one for what is prepared.
        assert_eq!(opened.len(), if access == AccessMethod::Write { 1 } else { 2 }, "{opened:?}");
        assert!(opened[0].starts_with("open CreateNew posix/n"), "{opened:?}");
        // A part's time includes its sync.
        let least = if access == AccessMethod::Read { 0.3 } else { 0.45 } * if ranks > 1 { 2.0 } else { 1.0 };
        assert!(second.parts.iter().all(|part| part.seconds >= least), "{second:?}");
    }
}

/// Segments have their size from the calls of the trial.
#[test]
fn types_with_segments_need_no_other() {
    for access in AccessMethod::ALL {
        let case = Case { options: "--types 3,4", chunks: &[32776, MIB], access, ..Case::default() };
        let seen = in_trials(2, &case, slow, |trials| default_trial(trials).unwrap());
        let outcome = &seen[0];
        assert_eq!((outcome.parts.len(), &outcome.refusal, outcome.words_wrong), (4, &None, 0), "{outcome:?}");
        assert!(outcome.words_checked > 0 && outcome.bytes_per_second > 0.0, "{outcome:?}");
    }
}

#[test]
fn all_types_with_all_chunks_are_measured() {
    let case = Case { options: "--types 0,1,2,3,4", chunks: &[], access: AccessMethod::Read, goal: TrialGoal::Seconds };
    let seen = in_trials(2, &case, slow, |trials| {
        let others = measure(trials, "", &request(&Vec::new(), SECONDS, TrialScope::Others)).unwrap();
        (default_trial(trials).unwrap(), others)
    });
    let (outcome, others) = &seen[0];
    assert_eq!((outcome.parts.len(), &outcome.refusal, outcome.words_wrong), (36, &None, 0), "{outcome:?}");
    let [all_bytes, all_seconds] =
        [outcome.parts.iter().map(|p| p.bytes as f64).sum::<f64>(), outcome.parts.iter().map(|p| p.seconds).sum()];
    assert!((outcome.bytes_per_second / (all_bytes / all_seconds) - 1.0).abs() < 1e-9);
    assert_eq!(*others, TrialOutcome::default(), "there are no other chunk sizes");
}

#[test]
fn the_other_chunk_sizes_are_a_work_of_their_own() {
    let case = Case { goal: TrialGoal::Pattern(20), chunks: &[32768], ..Case::default() };
    let seen = in_trials(1, &case, slow, |trials| {
        let own = default_trial(trials).unwrap();
        (own, measure(trials, "", &request(&Vec::new(), SECONDS, TrialScope::Others)).unwrap())
    });
    let (own, others) = &seen[0];
    assert_eq!((own.parts.len(), others.parts.len()), (1, 6));
    let part = &own.parts[0];
    assert!((own.bytes_per_second - part.bytes as f64 / part.seconds).abs() < 1e-6);
    assert!(others.bytes_per_second > 0.0 && others.parts.iter().all(|other| other.name != part.name));
}

/// In the trial after the pilots: a lost write of the last rank, and a bit flipped in a read.
#[test]
fn wrong_data_is_reported() {
    for (access, call, outcome) in [
        (AccessMethod::Write, "write", ScriptedOutcome::Nothing),
        (AccessMethod::Rewrite, "write", ScriptedOutcome::Nothing),
        (AccessMethod::Read, "write", ScriptedOutcome::Nothing),
        (AccessMethod::Read, "read", ScriptedOutcome::Flip(0)),
    ] {
        let case = Case { access, ..Case::default() };
        let seen = in_trials(2, &case, slow, |trials| {
            let good = default_trial(trials).unwrap();
            with_script(|script| {
                script.calls.clear();
                let is_last = trials.place.world.rank() == 1;
                // The first call is the warm-up.
                script.outcomes = (0..9).filter(|_| is_last).map(|number| (call, number, outcome)).collect();
            });
            (good, default_trial(trials).unwrap())
        });
        for (good, wrong) in &seen {
            assert_eq!(good.words_wrong, 0, "{access:?} {call}: {good:?}");
            assert!(wrong.words_wrong > 0 && wrong.words_checked > 0, "{access:?} {call}: {wrong:?}");
        }
    }
}

/// What one rank cannot do is refused on all; the next trial is measured.
#[test]
fn a_refused_setting_is_no_end() {
    let seen = in_trials(2, &Case::default(), slow, |trials| {
        let rank = trials.place.world.rank();
        let good = default_trial(trials).unwrap();
        with_script(|script| script.unsupported = (rank == 1).then(|| "not here".into()));
        let unsupported = default_trial(trials).unwrap();
        with_script(|script| {
            (script.unsupported, script.calls) = (None, Default::default());
            script.outcomes = if rank == 1 { vec![("write", 2, ScriptedOutcome::Full)] } else { Vec::new() };
        });
        let failed = default_trial(trials).unwrap();
        with_script(|script| {
            script.outcomes = if rank == 1 { vec![("open", 1, ScriptedOutcome::Fail)] } else { Vec::new() };
        });
        let unopened = default_trial(trials).unwrap();
        with_script(|script| script.outcomes.clear());
        [good, unsupported, failed, unopened, default_trial(trials).unwrap()]
    });
    assert_eq!(seen[0], seen[1]);
    let [good, unsupported, failed, unopened, last] = &seen[0];
    assert_eq!(unsupported.refusal.as_deref(), Some("pattern 20: not here"));
    assert!(failed.refusal.as_ref().is_some_and(|reason| reason.starts_with("write ")), "{failed:?}");
    assert!(unopened.refusal.as_ref().is_some_and(|reason| reason.starts_with("open ")), "{unopened:?}");
    for refused in [unsupported, failed, unopened] {
        assert_eq!((refused.bytes_per_second, refused.parts.len()), (0.0, 0), "{refused:?}");
    }
    assert_eq!((bytes(last), &last.refusal), (bytes(good), &None));
}

#[test]
fn without_the_default_there_is_no_trial() {
    let scripts = |rank| Script { unsupported: (rank == 1).then(|| "not here".into()), ..slow(rank) };
    for outcome in in_trials(2, &Case::default(), scripts, |trials| default_trial(trials).unwrap()) {
        let refusal = outcome.refusal.unwrap();
        assert!(refusal.contains("the default cannot be measured") && refusal.ends_with("pattern 20: not here"));
    }
}

/// A pattern that takes more than twice its time is cut; its rate is that of the completed calls.
#[test]
fn a_slow_setting_is_cut() {
    let seen = in_trials(1, &Case { chunks: &[32768], ..Case::default() }, slow, |trials| {
        let first = default_trial(trials).unwrap();
        with_script(|script| script.costs.insert("write", vec![8.0]));
        (first, default_trial(trials).unwrap())
    });
    let (first, second) = &seen[0];
    assert!(second.parts[0].bytes < first.parts[0].bytes && second.refusal.is_none(), "{second:?}");
    assert!(second.parts[0].seconds < 2.0 * SECONDS + 2.0 * 8.0, "{first:?} {second:?}");
    let rate = second.parts[0].bytes as f64 / second.parts[0].seconds;
    assert!((second.bytes_per_second / rate - 1.0).abs() < 1e-9);
}

#[test]
fn a_signal_ends_the_trials_on_all_ranks() {
    for number in [0, 40] {
        let scripts =
            |rank| if rank == 1 { slow(rank).outcome("write", number, ScriptedOutcome::Signal) } else { slow(rank) };
        for ended in in_trials(2, &Case::default(), scripts, |trials| {
            let mut ended = Ok(());
            for _ in 0..9 {
                ended = ended.and(default_trial(trials).map(|_| ()));
            }
            ended
        }) {
            assert_eq!(ended, Err(RunOutcome::Interrupted), "write {number}");
        }
    }
}

/// The real driver and the real clock.
#[test]
fn files_of_the_kernel_are_measured() {
    let (world, interrupt) = (Comm::comm_self(), Interrupt::default());
    for access in AccessMethod::ALL {
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let case =
            Case { options: "--types 0,3 --verify full", chunks: &[1024, MIB + 8], access, goal: TrialGoal::Value };
        let mut trials = open(&world, &interrupt, &case, scratch.path(), beff_backends::driver("posix").unwrap());
        let outcomes = [(); 2]
            .map(|()| measure(&mut trials, "--verify full", &request(&Vec::new(), 0.1, TrialScope::Goal)).unwrap());
        for outcome in &outcomes {
            assert_eq!((&outcome.refusal, outcome.words_wrong, outcome.parts.len()), (&None, 0, 4), "{outcome:?}");
            assert!(outcome.parts.iter().all(|part| part.seconds > 0.0) && outcome.bytes_per_second > 0.0);
        }
        assert!(files_below(trials.run_dir().path()).is_empty());
    }
}
