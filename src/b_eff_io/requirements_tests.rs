use proptest::prelude::*;

use super::*;

fn one(line: &str) -> Requirement {
    parse(line).unwrap_or_else(|e| panic!("{line}: {e}")).remove(0)
}

#[test]
fn every_form_is_a_requirement_and_prints_itself() {
    for form in FORMS {
        assert_eq!(one(form).to_string(), form);
    }
    let all = parse(&FORMS.join("\n")).unwrap();
    assert_eq!(all.iter().map(|r| r.line).collect::<Vec<_>>(), (1..=FORMS.len() as u64).collect::<Vec<_>>());
}

#[test]
fn spellings_mean_the_same() {
    for (line, printed) in [
        ("VALUE>=5gb/s", "value >= 5 GB/s"),
        ("value  mpi-io >= 5.50 GB/s # a comment", "value >= 5.5 GB/s"),
        ("value io_uring >= 1 MiB/s", "value uring >= 1 MiB/s"),
        ("mpiio/posix>=0.90", "mpiio / posix >= 0.9"),
        ("mpiio / posix+deep type 3 READ >= 1", "mpiio / posix+deep type 3 read >= 1"),
        ("type all >= 1 kB/s", "type all >= 1 kB/s"),
        ("wrong words <= 0", "wrong words = 0"),
        ("t >= 900s", "T >= 900 s"),
        ("cache 20x write", "cache 20x write"),
        ("smallest chunk posix >= 1 MB/s", "smallest chunk posix >= 1 MB/s"),
    ] {
        assert_eq!(one(line).to_string(), printed);
    }
    let five = one("value >= 5 GB/s");
    assert_eq!((five.limit(), five.unit_size()), (Limit::AtLeast(5.0), 1e3));
    assert_eq!((one("T >= 15 min").unit_size(), one("spread <= 5 %").limit()), (60.0, Limit::AtMost(5.0)));
}

#[test]
fn what_is_no_requirement_is_refused_with_line_cause_and_what_is_allowed() {
    for (line, cause) in [
        ("vlaue >= 5 GB/s", "'vlaue >= 5 GB/s' is no requirement (did you mean value?); a line is one of: value >= 5"),
        ("bandwidth >= 5 GB/s", "a line is one of: value >= 5 GB/s, mean write"),
        ("value > 5 GB/s", "'>' is no comparison; write >="),
        ("value <= 5 GB/s", "'<=' is not possible here; write >=, e.g. >= 5 GB/s"),
        ("value = 5 GB/s", "'=' is not possible here; write >="),
        ("value", "the limit is missing; write e.g. >= 5 GB/s"),
        ("value >= 5", "the unit is missing; allowed: kB/s, MB/s, GB/s, TB/s, KiB/s"),
        ("value >= 5 Gbit/s", "'Gbit/s' is no unit here; allowed: kB/s"),
        ("value >= 0 GB/s", "does not begin with a number above 0"),
        ("value >= -1 GB/s", "does not begin with a number above 0"),
        ("value >= fast", "does not begin with a number above 0"),
        ("value hdf5 >= 1 GB/s", "'hdf5' is not expected; allowed words here are write, rewrite, read, and a backend"),
        ("value null >= 1 GB/s", "'null' is not expected"),
        ("value write >= 1 GB/s", "'write' is not expected"),
        ("type 5 write >= 1 GB/s", "'5' is no pattern type; allowed: 0, 1, 2, 3, 4, all"),
        ("type write >= 1 GB/s", "'write' is no pattern type"),
        ("type 0 writ >= 1 GB/s", "'writ' is not expected"),
        ("mpiio / >= 0.9", "a ratio is of two backends"),
        ("mpiio / hdf5 >= 0.9", "a ratio is of two backends, mpiio"),
        ("mpiio / mpi-io >= 0.9", "the ratio of mpiio to itself is 1"),
        ("mpiio / posix >= 90 %", "'%' is no unit here; allowed: none, it is a plain number"),
        ("spread >= 5 %", "'>=' is not possible here; write <="),
        ("spread <= 5", "the unit is missing; allowed: %"),
        ("wrong words = 3", "write wrong words = 0"),
        ("wrong words", "write wrong words = 0"),
        ("T >= 15 m", "'m' is no unit here; allowed: s, min, h"),
        ("cache 10x", "a line is one of: "),
        ("cache 20x >= 3", "it has a limit of its own; omit what begins with >="),
        ("coffee", "a line is one of: "),
        ("valid >= 1", "it has a limit of its own"),
    ] {
        let error = parse(&format!("# first\n\ncoffee cup\n{line}\n")).unwrap_err();
        assert_eq!(error.line, 4, "{line}");
        assert!(error.to_string().starts_with("line 4: ") && error.cause.contains(cause), "{line}: {error}");
    }
}

#[test]
fn a_file_has_some_requirements_each_once() {
    for empty in ["", "# nothing\n\n"] {
        assert!(parse(empty).unwrap_err().cause.contains("no requirement; a line is one of"));
    }
    let twice = parse("T >= 1 min\nT >= 2 min\n").unwrap_err();
    assert_eq!(twice.to_string(), "line 2: 'T >= 2 min': line 1 requires something of the same figure");
    let many = |lines: usize| (0..lines).map(|n| format!("value posix+v{n} >= 1 MB/s\n")).collect::<String>();
    assert_eq!(parse(&many(MAX_REQUIREMENTS)).unwrap().len(), MAX_REQUIREMENTS);
    assert!(parse(&many(MAX_REQUIREMENTS + 1)).unwrap_err().cause.contains("more than 40"));
}

/// The example of the manual.
#[test]
fn the_published_example_is_read() {
    let text = include_str!("../../docs/acceptance-example.txt");
    let all = parse(text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.len(), FORMS.len(), "it has a line of each form");
}

#[test]
fn a_result_records_them_as_text() {
    let all = parse("\nvalue posix >= 5 GB/s\n").unwrap();
    let json = serde_json::to_string(&all).unwrap();
    assert_eq!(json, r#"[{"line":2,"text":"value posix >= 5 GB/s"}]"#);
    assert_eq!(serde_json::from_str::<Vec<Requirement>>(&json).unwrap(), all);
    assert!(serde_json::from_str::<Requirement>(r#"{"line":2,"text":"speed"}"#).is_err());
}

fn any_backend() -> impl Strategy<Value = String> {
    prop_oneof![Just("mpiio"), Just("posix"), Just("uring"), Just("mmap"), Just("posix+deep")].prop_map(str::to_owned)
}

fn any_access() -> impl Strategy<Value = Option<AccessMethod>> {
    prop::option::of(prop::sample::select(AccessMethod::ALL.to_vec()))
}

fn any_type() -> impl Strategy<Value = Option<PatternType>> {
    prop::option::of(prop::sample::select(PatternType::ALL.to_vec()))
}

fn any_requirement() -> impl Strategy<Value = Requirement> {
    let rate =
        (any_type(), any_access(), any_backend(), 0_usize..4).prop_map(|(pattern_type, access, backend, form)| {
            match form {
                0 => Subject::Value { backend },
                1 => Subject::Mean { access, backend },
                2 => Subject::Type { pattern_type, access, backend },
                _ => Subject::SmallestChunk { access, backend },
            }
        });
    let number = (1_u64..1_000_000, 1_u32..1000).prop_map(|(a, b)| a as f64 / f64::from(b));
    let rates = (rate, number.clone(), 0..RATE_UNITS.len());
    let rates = rates.prop_map(|(subject, number, unit)| (subject, number, RATE_UNITS[unit].0));
    let times =
        (number.clone(), 0..TIME_UNITS.len()).prop_map(|(number, unit)| (Subject::Time, number, TIME_UNITS[unit].0));
    let spreads = (any_backend(), number.clone()).prop_map(|(backend, n)| (Subject::Spread { backend }, n, "%"));
    let ratios = (any_type(), any_access(), any::<bool>(), number).prop_map(|(pattern_type, access, swap, number)| {
        let backends = if swap { ["uring", "mpiio"] } else { ["mpiio", "posix+a"] }.map(str::to_owned);
        (Subject::Ratio { backends, pattern_type, access }, number, "")
    });
    let fixed = (any_access(), 0..4).prop_map(|(access, which)| match which {
        0 => (Subject::WrongWords, 0.0, ""),
        1 => (Subject::Cache { access }, CACHE_TIMES, "x"),
        2 => (Subject::CoffeeCup, COFFEE_CUP_MINUTES, "min"),
        _ => (Subject::Valid, 1.0, ""),
    });
    let all = prop_oneof![rates, times, spreads, ratios, fixed];
    all.prop_map(|(subject, number, unit)| Requirement { line: 1, subject, number, unit: unit.to_owned() })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(requirement in any_requirement()) {
        prop_assert_eq!(parse(&requirement.to_string()), Ok(vec![requirement]));
    }

    #[test]
    fn nothing_panics(text in "[ -~\\n\\té≥]{0,60}|(type|value|mpiio|/|>=|5|GB/s| |\\n|#|é){0,20}") {
        let _ = parse(&text);
    }
}
