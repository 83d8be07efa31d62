use proptest::prelude::*;

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn translated(line: &str) -> String {
    let args = translate(words(line)).unwrap();
    args.iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn command_lines_of_the_release() {
    for (theirs, ours) in [
        (
            "beff-raw imb -npmin 2 -multi 0 -msglog 16:16 -iter_policy off -iter 100,1 -time 3 S_Read_Indv",
            "beff-raw imb --npmin 2 --multi 0 --msglog 16:16 --iter-policy off --iter 100,1 --not-applied -time 3 S_Read_Indv",
        ),
        (
            "beff-raw imb P_Write_Indv -include a,b -exclude c -input f -msglen g -aggregate_mode aggregate -list -help",
            "beff-raw imb P_Write_Indv --include a,b --exclude c --input f --msglen g --aggregate-mode aggregate --list --help",
        ),
        ("beff-raw imb -aggregate_mode multi", "beff-raw imb --aggregate-mode multi"),
        ("beff-raw imb -iter_policy=off -iter=100,1", "beff-raw imb --iter-policy=off --iter=100,1"),
        ("beff-raw imb -include=a,b -time 3", "beff-raw imb --include=a,b --time 3"),
        ("x imb -q -T 3 -msglog 3", "x imb -q -T 3 --msglog 3"),
    ] {
        assert_eq!(translated(theirs), ours);
        assert_eq!(translate(translate(words(theirs)).unwrap()), translate(words(theirs)));
    }
}

#[test]
fn everything_else_stays() {
    for line in [
        "beff-raw",
        "beff-raw imb",
        "beff-raw io -npmin 2 -map 2x2",
        "beff-raw --path imb -list",
        "beff-raw -npmin 2 imb",
        "beff-raw imb --npmin 2 --iter_policy off -5 -12 - -x -x=1 --npmi --msg",
        // Short options, alone and grouped, with their values.
        "beff-raw imb -q -h -V -T 3 -T3 -T=3 -T.5m -qT3 -qT -T -3 -qh",
        // Values that look like options.
        "beff-raw imb --out -list --run-dir -map -T -time --hint -mem=1 --iter_policy -off_cache --cache -include --seed -12",
        "beff-raw imb --not-applied -map --not-applied=-mem=1",
        "beff-raw imb -- -list -map 2x2",
    ] {
        assert_eq!(translated(line), line);
    }
    assert_eq!(translated("beff-raw imb -input -list -list"), "beff-raw imb --input -list --list");
}

#[test]
fn unsupported_options_name_the_alternative() {
    for (name, next_step) in UNSUPPORTED {
        for line in [format!("x imb -{name} 1"), format!("x imb -npmin 2 -{name}=1"), format!("x imb --{name}")] {
            let error = translate(words(&line)).unwrap_err();
            assert!(error.cause.contains(&format!("-{name}:")) && error.cause.contains("not supported"), "{error}");
            assert!(error.next_step == next_step && next_step.ends_with('.'), "{error}");
        }
    }
}

/// The command lines of IMB-IO that set what changes nothing here.
#[test]
fn options_without_effect_are_accepted_and_named() {
    for (theirs, ours, notes) in [
        (
            "x imb P_IWrite_Indv -iter 5 -npmin 2 -msglog 20:20 -iter_policy off -time 500",
            "x imb P_IWrite_Indv --iter 5 --npmin 2 --msglog 20:20 --iter-policy off --not-applied -time 500",
            &["-time 500 has no effect: with -iter_policy off a row has no time limit"][..],
        ),
        (
            "x imb -time=0.15 -iter_policy=OFF b",
            "x imb --not-applied=-time=0.15 --iter-policy=OFF b",
            &["-time=0.15 has no effect: "],
        ),
        (
            "x imb -mem 0.5 S_Read_Indv",
            "x imb --not-applied -mem 0.5 S_Read_Indv",
            &["-mem 0.5 has no effect: the memory is shown"],
        ),
        (
            "x imb -off_cache -1 --mem=2 -warm_up off",
            "x imb --not-applied -off_cache -1 --not-applied=-mem=2 --not-applied -warm_up off",
            &[
                "-off_cache -1 has no effect: the release ignores it",
                "-mem=2 has no effect",
                "-warm_up off has no effect",
            ],
        ),
        (
            "x imb -imb_barrier 1 -msg_pause ON -thread_level multiple",
            "x imb --not-applied -imb_barrier 1 --not-applied -msg_pause ON --not-applied -thread_level multiple",
            &["-imb_barrier 1", "-msg_pause ON", "-thread_level multiple"],
        ),
        // Without the policy of the release the time counts, or is refused by the configuration.
        ("x imb -time 5 -iter_policy auto", "x imb --time 5 --iter-policy auto", &[]),
        ("x imb -time 5 --iter-policy off", "x imb --time 5 --iter-policy off", &[]),
        ("x imb --time 5 -iter_policy off", "x imb --time 5 --iter-policy off", &[]),
        ("x imb -time soon -iter_policy off", "x imb --time soon --iter-policy off", &[]),
        ("x imb --out -iter_policy off -time 5", "x imb --out -iter_policy off --time 5", &[]),
    ] {
        let once = translate(words(theirs)).unwrap();
        // Option and value are one word.
        assert_eq!((translated(theirs).as_str(), once.len()), (ours, words(theirs).len()));
        assert_eq!(translate(once.clone()).unwrap(), once, "{theirs}");
        let args = crate::frame::benchmark::options_from_words::<ImbArgs>;
        if !theirs.contains("soon") && !theirs.contains("--out") {
            let note = not_applied_note(&args(once.into_iter().skip(2)).measure.not_applied);
            assert_eq!(note.is_some(), !notes.is_empty(), "{theirs}");
            let note = note.unwrap_or_default();
            assert!(note.lines().count() == notes.len() && notes.iter().all(|part| note.contains(part)), "{note}");
        }
    }
}

#[test]
fn options_without_effect_have_a_value() {
    for (line, cause) in [
        ("x imb -mem", "-mem: it needs a value"),
        ("x imb -mem S_Read_Indv", "-mem: 'S_Read_Indv' is no value of it"),
        ("x imb -off_cache 1,x", "-off_cache: '1,x' is no value of it"),
        ("x imb -warm_up=never", "-warm_up: 'never' is no value of it"),
        ("x imb -thread_level -list", "-thread_level: '-list' is no value of it"),
    ] {
        let error = translate(words(line)).unwrap_err();
        assert!(error.cause == cause && error.next_step.starts_with("Leave it out: "), "{error}");
    }
}

#[test]
fn unknown_words_with_one_dash_are_named_in_full() {
    for (word, cause, next_step) in [
        ("-path", "-path", "Write --path."),
        ("-hint", "-hint", "Write --hint."),
        ("-hint=a=b", "-hint", "Write --hint."),
        ("-run_dir", "-run_dir", "Write --run-dir."),
        ("-iter-policy", "-iter-policy", "Write --iter-policy."),
        ("-quiet", "-quiet", "Write --quiet."),
        ("-hlep", "-hlep", "Did you mean -help?"),
        ("-npmins", "-npmins", "Did you mean -npmin?"),
        ("-NPMIN", "-NPMIN", "Did you mean -npmin?"),
        ("-Time", "-Time", "Did you mean -time?"),
        ("-uniqe_open", "-uniqe_open", "Did you mean --unique-open?"),
        ("-of_cache", "-of_cache", "Did you mean -off_cache?"),
        ("-xyz", "-xyz", "`beff-raw imb --help`"),
        ("-inject", "-inject", "Did you mean -input?"),
        ("-qx", "-qx", "`beff-raw imb --help`"),
        ("-Tsoon", "-Tsoon", "`beff-raw imb --help`"),
    ] {
        for line in [format!("x imb {word} a"), format!("x imb -npmin 2 S_Read_Indv {word}")] {
            let error = translate(words(&line)).unwrap_err();
            assert!(error.cause.starts_with(&format!("{cause}: ")), "{error}");
            assert!(error.next_step.starts_with(next_step) && error.next_step.ends_with('.'), "{error}");
        }
        // Other commands are not translated.
        assert!(translate(words(&format!("x io {word} a"))).is_ok());
    }
}

#[test]
fn a_list_of_words_is_not_guessed() {
    for line in ["x imb -include a b", "x imb -exclude=a b -time 3", "x imb -exclude a,b c"] {
        let error = translate(words(line)).unwrap_err().to_string();
        assert!(error.contains("after the list") && error.contains("commas"), "{error}");
    }
    assert_eq!(translated("x imb b -include a -exclude c"), "x imb b --include a --exclude c");
    assert_eq!(translated("x imb --include a b"), "x imb --include a b");
}

/// Every name of the tables is an option of this program, or unsupported.
#[test]
fn the_tables_fit_the_command() {
    let imb = ImbArgs::augment_args(Command::new(COMMAND));
    let known: Vec<String> = imb.get_arguments().flat_map(spellings).collect();
    for (_, ours) in OPTIONS {
        assert!(ours == "help" || known.contains(&format!("--{ours}")), "{ours}");
    }
    for (missing, _) in UNSUPPORTED {
        assert!(!known.contains(&format!("--{}", missing.replace('_', "-"))), "{missing}");
        assert!(OPTIONS.iter().all(|(name, _)| *name != missing), "{missing}");
    }
    for WithoutEffect { name, reason, .. } in WITHOUT_EFFECT {
        assert!(!known.contains(&format!("--{}", name.replace('_', "-"))) && !reason.ends_with('.'), "{name}");
        assert!(OPTIONS.iter().chain(&UNSUPPORTED).all(|(other, _)| *other != name), "{name}");
    }
    assert!(known.contains(&NOT_APPLIED.to_owned()));
    let with_value = options_with_value(&options());
    for (option, takes) in [("--path", true), ("-T", true), ("--iter_policy", true), ("--list", false), ("-q", false)] {
        assert_eq!(with_value.iter().any(|o| o == option), takes, "{option}");
    }
}

fn word() -> impl Strategy<Value = String> {
    let theirs = proptest::sample::select(OPTIONS.iter().map(|(name, _)| format!("-{name}")).collect::<Vec<_>>());
    let ours = proptest::sample::select(options_with_value(&options()));
    prop_oneof![
        3 => theirs.clone(),
        1 => theirs.prop_map(|name| format!("{name}=1,2")),
        3 => ours,
        3 => "[a-zA-Z_,:0-9]{1,6}",
        1 => "-{1,2}[a-z=]{0,3}[0-9]{0,2}",
    ]
}

proptest! {
    #[test]
    fn twice_is_once(words in proptest::collection::vec(word(), 0..12)) {
        let args: Vec<OsString> = ["x", "imb"].into_iter().map(OsString::from)
            .chain(words.into_iter().map(OsString::from)).collect();
        if let Ok(once) = translate(args.clone()) {
            prop_assert_eq!(once.len(), args.len());
            for (at, (before, after)) in args.iter().zip(&once).enumerate() {
                let name = before.to_str().unwrap().trim_start_matches('-').split('=').next().unwrap();
                let is_applied = |word: &OsString| !word.to_str().unwrap().starts_with(NOT_APPLIED);
                let has_effect = is_applied(after) && is_applied(&once[at - usize::from(at > 0)]);
                prop_assert!(!has_effect || before == after || OPTIONS.iter().any(|(theirs, _)| *theirs == name));
            }
            prop_assert_eq!(translate(once.clone()), Ok(once));
        }
    }

    #[test]
    fn other_commands_are_left_alone(words in proptest::collection::vec(word(), 0..8), command in "[a-z]{0,4}") {
        prop_assume!(command != COMMAND);
        let args: Vec<OsString> = ["x".into(), command].into_iter().chain(words).map(OsString::from).collect();
        prop_assert_eq!(translate(args.clone()), Ok(args));
    }
}
