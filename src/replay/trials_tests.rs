//! Trials on several ranks, which are threads; MPI is `beff_fake_mpi`.

use std::path::Path;

use beff_fake_mpi::{error_code, ranks, script, take_log, ScriptedResult};
use beff_ffi::Universe;

use super::trials::open_trials;
use crate::frame::command::start::CommandError;
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::records::{AccessMethod, RunOutcome};
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::trials::{TrialOutcome, TrialRequest, TrialRunner, TrialScope};
use crate::frame::system::survey::{HostDescription, Survey};
use crate::frame::trials::{Setting, TrialConfig, TrialGoal};

/// Rank 1 reads what rank 0 has written, and rank 0 writes more than rank 1.
const PROFILE: &str = "beff-raw profile,1
ranks, 2
comm, 0, world
type, 0, BYTE
info, 0, cb_nodes=4,spaghetti=1
file, 0, out.dat
file, 1, other.dat

calls, 0, 6
0, 10, File_open, handle=1, comm=0, file=0, info=0, mode=create;rdwr, number=-1
100, 110, File_write_at, handle=1, offset=0, count=800, type=0, bytes=800
200, 210, File_write_at, handle=1, offset=800, count=800, type=0, bytes=800
500, 510, File_close, handle=1
600, 610, File_open, handle=2, comm=0, file=1, mode=create;rdwr, number=-1
700, 710, File_close, handle=2

calls, 1, 6
0, 10, File_open, handle=1, comm=0, file=0, info=0, mode=create;rdwr, number=-1
300, 310, File_read_at, handle=1, offset=0, count=800, type=0, bytes=800, after=0@100, from=800@0:100+0
400, 410, File_write_at, handle=1, offset=1600, count=400, type=0, bytes=400
500, 510, File_close, handle=1
600, 610, File_open, handle=2, comm=0, file=1, mode=create;rdwr, number=-1
700, 710, File_close, handle=2
";

fn config(directory: &Path, backend: &str, hints: &[(&str, &str)]) -> TrialConfig {
    TrialConfig {
        profile: Some(directory.join("app.csv")),
        backend: backend.to_owned(),
        path: directory.to_owned(),
        run_dir: Some("run".to_owned()),
        access: AccessMethod::Write,
        types: Vec::new(),
        chunks_bytes: Vec::new(),
        goal: TrialGoal::Seconds,
        hints: setting(hints),
        cache: CachePolicy::Keep,
        direct: DirectPolicy::Off,
        memory_per_process_bytes: None,
        space_bytes: None,
        bind: BindPolicy::None,
        seed: 7,
    }
}

fn survey() -> Survey {
    Survey {
        host: 0,
        hosts: 1,
        ranks_of_first_host: 1,
        description: HostDescription::default(),
        memory_per_rank_bytes: 1 << 30,
        cache_share_bytes: 1 << 20,
    }
}

fn setting(pairs: &[(&str, &str)]) -> Setting {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Runs `body` on `size` ranks with trials of a profile, and removes everything.
fn with_trials<R: Send>(
    (profile, size): (&str, usize),
    change: impl Fn(&mut TrialConfig) + Sync,
    body: impl Fn(&mut dyn TrialRunner, &Interrupt, &Path) -> R + Sync,
) -> Vec<R> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.csv"), profile).unwrap();
    let mut config = config(directory.path(), "posix", &[]);
    change(&mut config);
    let results = ranks(size, |_| {
        let (world, interrupt, survey) = (Universe::init().unwrap().world(), Interrupt::default(), survey());
        let mut trials = open_trials(&world, &interrupt, &survey, &config).unwrap();
        let result = body(&mut *trials, &interrupt, directory.path());
        assert!(trials.clean_up(RunOutcome::Complete).is_none());
        result
    });
    assert!(!directory.path().join("run").exists());
    results
}

fn measure(trials: &mut dyn TrialRunner, number: u32, pairs: &[(&str, &str)]) -> TrialOutcome {
    let setting = setting(pairs);
    let trial = TrialRequest { setting: &setting, number, seconds: 1.0, scope: TrialScope::Goal };
    trials.measure(&trial).unwrap().unwrap()
}

#[test]
fn a_trial_is_one_replay_on_new_files_and_the_first_of_a_setting_compares_data() {
    // The third rank was not recorded.
    let outcomes = with_trials(
        (PROFILE, 3),
        |_| (),
        |trials, _, directory| {
            assert_eq!(trials.work(), "replay of app.csv");
            assert_eq!(trials.granted_hints(&[]).unwrap(), None, "posix has no hints");
            let all: Vec<_> = [&[][..], &[], &[("direct", "off")], &[("direct", "off")]]
                .into_iter()
                .zip(0..)
                .map(|(pairs, number)| {
                    let outcome = measure(trials, number, pairs);
                    assert_eq!(std::fs::read_dir(directory.join("run/posix")).unwrap().count(), 0, "files are removed");
                    outcome
                })
                .collect();
            all
        },
    );
    assert!(outcomes.iter().all(|own| own == &outcomes[0]), "equal on all ranks: {outcomes:?}");
    for (number, outcome) in outcomes[0].iter().enumerate() {
        assert_eq!(outcome.refusal, None);
        assert_eq!((outcome.words_checked, outcome.words_wrong), (if number % 2 == 0 { 100 } else { 0 }, 0));
        let parts: Vec<_> = outcome.parts.iter().map(|part| (part.name.as_str(), part.bytes)).collect();
        assert_eq!(parts, [("read", 800), ("write", 2000)]);
        let longest = outcome.parts.iter().map(|part| part.seconds).fold(0.0, f64::max);
        assert!(outcome.bytes_per_second > 0.0 && outcome.bytes_per_second <= 2800.0 / longest, "{outcome:?}");
    }
}

#[test]
fn what_a_replay_does_not_have_is_refused_and_others_can_be_tried() {
    with_trials(
        (PROFILE, 2),
        |_| (),
        |trials, _, _| {
            for (pairs, cause) in [
                (&[("depth", "64")][..], "depth is no option of a replay, and posix has no hints"),
                (&[("derect", "off")], "did you mean direct?"),
                (&[("direct", "perhaps")], "direct=perhaps: must be one of"),
                (&[("cb_nodes", "1")], "posix has no hints"),
            ] {
                let outcome = measure(trials, 0, pairs);
                assert!(outcome.refusal.as_ref().is_some_and(|why| why.contains(cause)), "{outcome:?}");
                assert_eq!((outcome.bytes_per_second, outcome.parts.len()), (0.0, 0));
            }
            let setting = Vec::new();
            let others = TrialRequest { setting: &setting, number: 0, seconds: 1.0, scope: TrialScope::Others };
            assert!(trials.measure(&others).unwrap().unwrap().refusal.unwrap().contains("no other chunk sizes"));
            assert_eq!(measure(trials, 1, &[]).refusal, None);
        },
    );
}

#[test]
fn hints_of_a_setting_replace_recorded_ones_at_every_opening() {
    let opens = |log: Vec<String>| {
        let of_file = |line: &String| line.starts_with("File_open ") && line.contains("file-000");
        let hints = |line: String| line.split_once("hints ").map_or(String::new(), |(_, hints)| hints.to_owned());
        log.into_iter().filter(of_file).map(hints).collect::<Vec<_>>()
    };
    let change = |config: &mut TrialConfig| {
        config.backend = "mpiio".to_owned();
        config.hints = setting(&[("cb_nodes", "3"), ("base", "yes")]);
    };
    let all = with_trials((PROFILE, 2), change, |trials, _, _| {
        // The library of the tests grants this to all, and delivers no data.
        let granted = setting(&[("in_force", "yes")]);
        assert_eq!(trials.granted_hints(&[]).unwrap(), Some(granted.clone()));
        let asked = take_log().into_iter().filter(|line| line.contains("hints.dat")).collect::<Vec<_>>();
        let outcome = measure(trials, 0, &[("cb_nodes", "2"), ("striping_factor", "8")]);
        assert_eq!((outcome.refusal, outcome.hints_granted), (None, granted));
        assert!(outcome.words_wrong > 0, "nothing was delivered");
        let direct = measure(trials, 0, &[("direct", "auto")]);
        assert!(direct.refusal.unwrap().contains("direct=auto has no effect: mpiio"));
        let first = opens(take_log());
        measure(trials, 1, &[]);
        (asked, first, opens(take_log()))
    });
    for (asked, first, second) in all {
        assert!(asked[0].ends_with("hints {spaghetti=1 cb_nodes=3 base=yes}"), "{asked:?}");
        let own = "base=yes cb_nodes=2 striping_factor=8}";
        let expected = [format!("{{spaghetti=1 {own}"), format!("{{{own}")];
        assert_eq!([&first[..2], &first[2..]], [&expected, &expected], "verification and repetition");
        assert_eq!(second[..2], ["{spaghetti=1 cb_nodes=3 base=yes}", "{cb_nodes=3 base=yes}"]);
    }
}

#[test]
fn a_setting_whose_calls_fail_is_refused_and_compared_until_its_data_is_right() {
    let change = |config: &mut TrialConfig| config.backend = "mpiio".to_owned();
    with_trials((PROFILE, 2), change, |trials, _, _| {
        script("File_write_at", &[ScriptedResult::Code(error_code("MPI_ERR_NO_SPACE"))]);
        let outcome = measure(trials, 0, &[("cb_nodes", "2")]);
        let why = outcome.refusal.unwrap_or_default();
        assert!(why.contains("MPI_File_write_at") && why.contains("free space"), "{why}");
        assert_eq!(outcome.bytes_per_second, 0.0);
        let again = measure(trials, 1, &[("cb_nodes", "2")]);
        assert_eq!((again.refusal, again.words_checked), (None, 100));
        // The library of the tests delivers no data.
        let wrong = measure(trials, 2, &[("cb_nodes", "2")]);
        assert!(wrong.words_checked == 100 && wrong.words_wrong > 0, "{wrong:?}");
    });
}

#[test]
fn wrong_data_is_counted() {
    let wrong = PROFILE.replace("from=800@0:100+0", "from=800@0:200+0");
    let found = with_trials((&wrong, 2), |_| (), |trials, _, _| measure(trials, 0, &[]));
    assert_eq!(found[0].words_checked, 100);
    assert!(found.iter().all(|outcome| outcome.words_wrong > 90 && outcome.bytes_per_second > 0.0), "{found:?}");
}

#[test]
fn a_signal_ends_the_trials() {
    let ended = with_trials(
        (PROFILE, 2),
        |_| (),
        |trials, interrupt, _| {
            measure(trials, 0, &[]);
            interrupt.raise();
            let setting = Vec::new();
            let trial = TrialRequest { setting: &setting, number: 1, seconds: 1.0, scope: TrialScope::Goal };
            trials.measure(&trial).unwrap()
        },
    );
    assert_eq!(ended, [Err(RunOutcome::Interrupted), Err(RunOutcome::Interrupted)]);
}

#[test]
fn a_profile_that_cannot_be_tried_leaves_nothing() {
    let refused = |profile: &str, size: usize, change: &(dyn Fn(&mut TrialConfig) + Sync)| {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("app.csv"), profile).unwrap();
        let mut config = config(directory.path(), "posix", &[]);
        change(&mut config);
        let errors = ranks(size, |_| {
            let world = Universe::init().unwrap().world();
            let (interrupt, survey) = (Interrupt::default(), survey());
            let opened = open_trials(&world, &interrupt, &survey, &config).map(|_| ());
            let Err(CommandError::Collective(error)) = opened else { panic!("{opened:?}") };
            error.to_string()
        });
        assert!(errors.iter().all(|error| error == &errors[0]), "{errors:?}");
        assert!(!directory.path().join("run").exists());
        errors[0].clone()
    };
    let (open, rest) = PROFILE.split_once("\ncalls, 0, 6\n").unwrap();
    let closed = rest.lines().filter(|line| !line.contains("write") && !line.contains("read")).collect::<Vec<_>>();
    let empty = format!("{open}\ncalls, 0, 4\n{}\n", closed.join("\n").replace("calls, 1, 6", "calls, 1, 4"));
    for (profile, size, change, cause) in [
        (PROFILE, 1, &(|_: &mut TrialConfig| ()) as &(dyn Fn(&mut TrialConfig) + Sync), "2 processes recorded"),
        (&empty, 2, &|_| (), "transfers no data"),
        (PROFILE, 2, &|config| config.space_bytes = Some(100), "need up to 4 KiB, and a trial may use 100 B"),
        (PROFILE, 2, &|config| config.backend = "null".to_owned(), "it cannot replay an application with files"),
        (PROFILE, 2, &|config| config.cache = CachePolicy::RankShift, "--cache"),
        (PROFILE, 2, &|config| config.hints = setting(&[("cb_nodes", "1")]), "--hint has no effect"),
        (PROFILE, 2, &|config| config.profile = Some("/no/such/profile".into()), "/no/such/profile"),
    ] {
        let error = refused(profile, size, change);
        assert!(error.contains(cause), "{cause}: {error}");
    }
}
