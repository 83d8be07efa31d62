use std::fs;

use super::*;
use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::fixtures;
use crate::frame::records::RunOutcome;
use crate::frame::report::ResultReport;
use crate::frame::values::acceptance::RequirementVerdict;
use crate::{b_eff, imb_io};

/// A run with repetitions, and its change; the start tells runs apart.
fn document(minute: u32, change: impl Fn(&mut RunResult)) -> Vec<u8> {
    let mut result = fixtures::repeated();
    result.config.repeat = RepeatPolicy::Auto;
    result.manifest.machine.started_utc = format!("2026-11-30T12:{minute:02}:00Z");
    result.manifest.run_dir = format!("run-{minute}");
    let slower = 1.0 + 0.001 * f64::from(minute);
    result.patterns.iter_mut().for_each(|p| p.intervals.transfer_seconds *= slower);
    change(&mut result);
    ResultReport::new(result).format("json").unwrap().unwrap()
}

struct Files(tempfile::TempDir);

impl Files {
    fn new(requirements: &str) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        this.write("requirements.txt", requirements.as_bytes());
        this
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The exit code; the output goes to a page, because stdout is that of the tests.
    fn judge(&self, files: &[PathBuf], undecided: InconclusivePolicy) -> anyhow::Result<Exit> {
        let page = self.0.path().join("page.html");
        let _ = fs::remove_file(&page);
        let requirements = self.0.path().join("requirements.txt");
        let request = AcceptanceRequest {
            files,
            requirements: &requirements,
            rmax: None,
            level: DetailLevel::Screen,
            is_json: false,
            page: Some(&page),
            undecided,
        };
        run(&request)
    }

    fn page(&self) -> String {
        fs::read_to_string(self.0.path().join("page.html")).unwrap()
    }
}

#[test]
fn exit_codes_follow_the_verdict() {
    let exit = |requirements: &str, change: fn(&mut RunResult), undecided| {
        let files = Files::new(requirements);
        let run = files.write("run.json", &document(1, change));
        files.judge(&[run], undecided).unwrap()
    };
    let same = |_: &mut RunResult| {};
    let fail = |requirements, change| exit(requirements, change, InconclusivePolicy::Fail);
    assert_eq!(fail("T >= 1 min\ntype 0 write >= 1 kB/s\n", same), Exit::Ok);
    assert_eq!(fail("T >= 1 min\ntype 0 write >= 1 TB/s\nvalue posix >= 1 kB/s", same), Exit::BelowLimit);
    assert_eq!(fail("T >= 1 min\nvalue posix >= 1 kB/s", same), Exit::Inconclusive);
    assert_eq!(exit("T >= 1 min\nvalue posix >= 1 kB/s", same, InconclusivePolicy::Pass), Exit::Ok);
    let cut = |result: &mut RunResult| result.ending.outcome = RunOutcome::Interrupted;
    assert_eq!(fail("type 0 write >= 1 kB/s", cut), Exit::Inconclusive);
    let wrong = |result: &mut RunResult| result.patterns[0].verification.words_wrong = 1;
    assert_eq!(fail("T >= 1 min", wrong), Exit::Corruption);
    assert_eq!(exit("T >= 1 h", wrong, InconclusivePolicy::Pass), Exit::Corruption);
}

/// The same three runs, whose scatter is small, and another number of them.
#[test]
fn several_results_are_repeated_runs() {
    let files = Files::new("value >= 1 kB/s\ntype 0 read >= 1 kB/s\nspread <= 20 %\nT >= 15 min\n");
    let runs: Vec<PathBuf> = (1..=3).map(|n| files.write(&format!("run{n}.json"), &document(n, |_| {}))).collect();
    let judged = |paths: &[PathBuf]| {
        let text = fs::read_to_string(files.0.path().join("requirements.txt")).unwrap();
        let figures: Vec<_> = paths
            .iter()
            .map(|path| {
                let (_, mut report) = open_with(path, None).unwrap();
                report.set_requirements(&text).unwrap().unwrap();
                report.required_figures()
            })
            .collect();
        Acceptance::of(&combine(&figures)).unwrap()
    };
    let three = judged(&runs);
    let verdicts: Vec<_> = three.requirements.iter().map(|r| r.verdict).collect();
    assert_eq!(verdicts[1..], [RequirementVerdict::Pass; 3], "{three:#?}");
    assert_eq!(three.requirements[3].figures.len(), 3);
    files.judge(&runs, InconclusivePolicy::Fail).unwrap();
    let page = files.page();
    assert!(page.contains("3 runs") && page.matches("2026-11-30T12:0").count() == 3);

    let twice = files.judge(&[runs[0].clone(), runs[0].clone()], InconclusivePolicy::Fail).unwrap_err().to_string();
    assert!(twice.contains("are the same run"), "{twice}");
    let other = files.write("other.json", &document(9, |result| result.config.time_seconds = 60.0));
    let unlike = files.judge(&[runs[0].clone(), other], InconclusivePolicy::Fail).unwrap_err().to_string();
    assert!(unlike.contains("they differ in T"), "{unlike}");
}

#[test]
fn what_has_no_requirements_is_refused() {
    let files = Files::new("T >= 1 min\n");
    let comm = ResultReport::new(b_eff::report::fixtures::complete()).format("json").unwrap().unwrap();
    let imb = ResultReport::new(imb_io::report::fixtures::complete()).format("json").unwrap().unwrap();
    for (name, bytes) in [("comm.json", comm), ("imb.json", imb)] {
        let path = files.write(name, &bytes);
        let error = files.judge(&[path], InconclusivePolicy::Fail).unwrap_err();
        assert!(
            error.is::<UsageError>() && error.to_string().contains("for which --require has no meaning"),
            "{error}"
        );
    }
    let run = files.write("run.json", &document(1, |_| {}));
    files.write("requirements.txt", b"T >= 1 min\nspeed >= 5 GB/s\n");
    let error = files.judge(std::slice::from_ref(&run), InconclusivePolicy::Fail).unwrap_err().to_string();
    for part in ["requirements.txt: line 2: 'speed >= 5 GB/s' is no requirement", "docs/acceptance.md"] {
        assert!(error.contains(part), "{error}");
    }
    files.write("requirements.txt", b"\xff\xfe");
    let error = files.judge(std::slice::from_ref(&run), InconclusivePolicy::Fail).unwrap_err();
    assert!(error.is::<UsageError>() && error.to_string().contains("cannot be read"), "{error}");
    fs::remove_file(files.0.path().join("requirements.txt")).unwrap();
    assert!(files.judge(&[run], InconclusivePolicy::Fail).unwrap_err().is::<UsageError>());
}

/// Vectors of FIPS 180-2, and files beside the named one.
#[test]
fn files_are_hashed_with_their_journal() {
    let files = Files::new("abc");
    let path = files.0.path().join("requirements.txt");
    let hashed = hash(&path).unwrap();
    assert_eq!(
        (hashed.bytes, hashed.sha256.as_str()),
        (3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    );
    let million = files.write("million", &vec![b'a'; 1_000_000]);
    let expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    assert_eq!(hash(&million).unwrap().sha256, expected);
    let run = files.write("run.json", b"{}");
    assert_eq!(with_siblings(&run), std::slice::from_ref(&run));
    let journal = files.write("run.jsonl", b"{}");
    assert_eq!(with_siblings(&run), [run.clone(), journal.clone()]);
    assert_eq!(with_siblings(&journal), [journal, run]);
    assert!(hash(&files.0.path().join("missing")).unwrap_err().to_string().contains("cannot read"));
}

/// The document of a run states the requirements and their verdicts, and a report without the file shows them again.
#[test]
fn a_document_has_its_acceptance() {
    let bytes = document(1, |result| {
        result.config.requirements = crate::b_eff_io::requirements::parse("\nT >= 15 min\nspread <= 1 %").unwrap();
    });
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let acceptance = &json["derived"]["acceptance"];
    assert_eq!(acceptance["requirements"][0]["verdict"], "pass");
    assert_eq!(acceptance["requirements"][0]["line"], 2);
    assert_eq!(json["config"]["requirements"][1]["text"], "spread <= 1 %");
    let (_, report) = crate::benchmarks::load(&bytes).unwrap();
    let text = report.sheet(DetailLevel::Screen, &crate::frame::report::DisplayContext::default()).render(false);
    assert!(text.lines().last().unwrap().starts_with("Acceptance: "), "{text}");
    let full = report.sheet(DetailLevel::Full, &crate::frame::report::DisplayContext::default()).render(false);
    assert!(full.contains("T >= 15 min: 15.00 min") && full.lines().all(|line| line.chars().count() <= 200), "{full}");
}
