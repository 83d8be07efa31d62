//! Results of searches on simulated storage, for the tests of the reports.

use beff_ffi::Comm;
use beff_tuning::search::Search;
use beff_tuning::trial::{setting_text, Factor, Trial};

use crate::frame::benchmark::options_from_words;
use crate::frame::records::{fixture, JournaledResult, RunOutcome};
use crate::frame::report::checks::with_derived;
use crate::frame::run::clock::Instant;
use crate::frame::run::testing::{run_ranks, Script};
use crate::frame::run::RunObserver;
use crate::frame::run::{ProgressReport, TransferVolume};
use crate::tune::cli::TuneArgs;
use crate::tune::config::TuneConfig;
use crate::tune::records::{OmittedKey, TrialRecord, TuneEnding, TuneLine, TuneResult, TuneSetup};
use crate::tune::run::stub::StubTrials;
use crate::tune::run::{execute, SearchRun};
use crate::tune::values::TuneDerived;

/// Keeps all lines.
#[derive(Default)]
struct Lines(Vec<TuneLine>);

impl RunObserver<TuneLine> for Lines {
    fn record(&mut self, line: TuneLine) {
        self.0.push(line);
    }
    fn progress(&mut self, _standing: &ProgressReport) {}
    fn measurement_ended(&mut self, _is_complete: bool, _last: Vec<TransferVolume>) {}
}

/// A search of type 0 with chunks of 32 kB.
pub fn config() -> TuneConfig {
    let words = ["--path", "/scratch", "--chunks", "32K", "--budget", "60s", "--out", "results/tuned"];
    options_from_words::<TuneArgs>(words).config().unwrap()
}

fn setup() -> TuneSetup {
    let factor = |(key, values): (&str, &[&str])| Factor {
        key: key.into(),
        values: values.iter().map(|value| (*value).into()).collect(),
    };
    let storage = fixture::storage();
    TuneSetup {
        machine: fixture::machine(vec![fixture::host("node1", 4)], &["beff-raw", "tune"]),
        storage,
        mpi_io_layer: "ROMIO".into(),
        work: "type 0 (scatter), 32 kB, first write".into(),
        default_hints: vec![("cb_nodes".into(), "1".into())],
        factors: [
            ("cb_nodes", &["2", "4"][..]),
            ("romio_cb_write", &["disable", "enable"]),
            ("cb_buffer_size", &["1048576"]),
        ]
        .map(factor)
        .to_vec(),
        omitted: vec![
            OmittedKey {
                key: "striping_factor".into(),
                reason: "the file system has no stripes that hints determine".into(),
            },
            OmittedKey { key: "romio_ds_read".into(), reason: "the work does not read".into() },
        ],
        has_others: true,
    }
}

/// Continues a search after these trials; the new lines, and the best setting.
pub fn search_with(
    world: &Comm,
    runner: &mut StubTrials,
    kept: Vec<TrialRecord>,
) -> (RunOutcome, Vec<TuneLine>, Option<String>) {
    let judged: Vec<Trial> = kept.iter().map(TrialRecord::judged).collect();
    let (mut search, used) = Search::resume(setup().search_plan(&config()), &judged);
    assert_eq!(used, kept.len());
    let mut lines = Lines::default();
    let mut run = SearchRun {
        world,
        runner,
        observer: &mut lines,
        begin: Instant::now(),
        earlier_seconds: search.trials().last().map_or(0.0, |trial| trial.end_seconds),
        budget_seconds: config().budget_seconds,
        backend: "mpiio".into(),
    };
    let outcome = execute(&mut run, &mut search).unwrap();
    (outcome, lines.0, search.best().map(|best| setting_text(best)))
}

fn result(runner: impl Fn() -> StubTrials + Sync) -> TuneResult {
    let (outcome, lines, _) =
        run_ranks(1, |_| Script::default(), |world| search_with(world, &mut runner(), Vec::new())).remove(0);
    let mut result = TuneResult::new(config(), setup());
    lines.into_iter().for_each(|line| result.apply(line));
    let real_seconds = result.trials.last().map_or(0.0, |trial| trial.end_seconds);
    let rank_memory_high_water_bytes = 64 << 20;
    result.apply(TuneLine::End(TuneEnding { outcome, real_seconds, rank_memory_high_water_bytes, interference: None }));
    result
}

fn has(setting: &[(String, String)], key: &str, value: &str) -> bool {
    setting.iter().any(|(k, v)| k == key && v == value)
}

/// One value is faster, another one is refused.
pub fn recommended() -> TuneResult {
    result(|| StubTrials {
        ratio: |setting| if has(setting, "cb_nodes", "2") { 1.5 } else { 1.0 },
        refuses: |setting| has(setting, "romio_cb_write", "enable"),
        ..StubTrials::default()
    })
}

/// Nothing has an effect.
pub fn without_effect() -> TuneResult {
    result(StubTrials::default)
}

/// A setting with wrong data, and a signal.
pub fn interrupted() -> TuneResult {
    result(|| StubTrials {
        corrupts: |setting| has(setting, "romio_cb_write", "disable"),
        signal_at: Some(40),
        ..StubTrials::default()
    })
}

/// The fixtures by name, with their derived values.
pub fn all() -> Vec<(&'static str, TuneResult, TuneDerived)> {
    with_derived([("recommended", recommended()), ("without_effect", without_effect()), ("interrupted", interrupted())])
}

/// The journal of a run with this result.
pub fn journal_lines(result: &TuneResult) -> Vec<TuneLine> {
    let mut lines = vec![result.start_line()];
    lines.extend(result.trials.iter().cloned().map(|trial| TuneLine::Trial(Box::new(trial))));
    lines.extend(result.corruptions.iter().cloned().map(TuneLine::Corruption));
    lines.extend(result.warnings.iter().cloned().map(TuneLine::Warning));
    lines.push(TuneLine::End(result.ending.clone()));
    lines
}
