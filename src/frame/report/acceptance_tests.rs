use super::super::model::{HeadlineValue, ReportHead};
use super::super::{html, render, text::TextPage};
use super::*;
use crate::frame::records::RunOutcome;
use crate::frame::values::doubt::Doubt;
use RequirementVerdict::{Fail, Pass, Undecided};

fn figure(subject: &str, verdict: RequirementVerdict, value: Option<f64>, interval: Option<[f64; 2]>) -> JudgedFigure {
    JudgedFigure { subject: subject.into(), value, interval, verdict, note: None, doubt: None }
}

fn line(line: u64, requirement: &str, unit: &str, figures: Vec<JudgedFigure>) -> JudgedRequirement {
    let verdict = RequirementVerdict::of_all(figures.iter().map(|f| f.verdict));
    JudgedRequirement { line, requirement: requirement.into(), unit: unit.into(), verdict, figures }
}

fn acceptance() -> Acceptance {
    let value = figure("", Pass, Some(5.1234), Some([5.0012, 5.2499]));
    let types = vec![
        figure("type 0, write", Pass, Some(312.0), Some([301.5, 320.25])),
        figure("type 0, rewrite", Undecided, Some(104.0), Some([99.0, 109.0])),
        JudgedFigure { note: Some("not measured completely".into()), ..figure("type 0, read", Undecided, None, None) },
    ];
    let doubt = Doubt::Cut { outcome: RunOutcome::Interrupted };
    let spread = JudgedFigure { doubt: Some(doubt), ..figure("", Undecided, Some(2.5), None) };
    let words =
        JudgedFigure { note: Some("of 860 words compared (6880 B)".into()), ..figure("", Pass, Some(0.0), None) };
    let requirements = vec![
        line(4, "value >= 5 GB/s", "GB/s", vec![value]),
        line(5, "type 0 >= 100 MB/s", "MB/s", types),
        line(
            6,
            "smallest chunk rewrite uring+deep >= 100 MB/s",
            "MB/s",
            vec![figure("uring+deep, rewrite", Fail, Some(9.99), Some([9.5, 10.5]))],
        ),
        line(7, "spread <= 5 %", "%", vec![spread]),
        line(8, "wrong words = 0", "", vec![words]),
    ];
    Acceptance { verdict: RequirementVerdict::of_all(requirements.iter().map(|r| r.verdict)), requirements }
}

#[test]
fn golden_text() {
    let section = text_section(&acceptance());
    let mut page = TextPage::default();
    page.heading(&section.title);
    render::blocks(&mut page, &section.blocks);
    let text = page.finish();
    assert!(text.lines().all(|line| line.chars().count() <= super::super::text::WIDTH), "{text}");
    insta::assert_snapshot!("acceptance.text", text);
    let screen = below_screen(Screen::new(80), &acceptance());
    let lines: Vec<String> =
        super::super::TerminalOutput::Screen(screen).render(false).lines().map(str::to_owned).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "Acceptance: FAIL (2 PASS, 1 FAIL, 2 UNDECIDED)");
    for part in ["  PASS       value >= 5 GB/s: 5.123 GB/s [5.001, 5.250]", "  UNDECIDED  type 0 >= 100 MB/s"] {
        assert!(lines.iter().any(|line| line == part), "{part}: {lines:#?}");
    }
    // Nothing of a requirement is cut, on a narrow terminal either.
    let narrow = super::super::TerminalOutput::Screen(below_screen(Screen::new(40), &acceptance())).render(false);
    let words = narrow.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("smallest chunk rewrite uring+deep >= 100 MB/s: 9.990 MB/s [9.500, 10.50]"), "{narrow}");
}

#[test]
fn numbers_have_four_digits() {
    let shown = [0.0, 0.012_34, 0.9, 5.1234, 12.345, 123.45, 1234.5, 1e6].map(number);
    assert_eq!(shown, ["0", "0.01234", "0.900", "5.123", "12.35", "123.5", "1234", "1000000"]);
}

fn model() -> ReportModel {
    let pairs = |all: &[(&str, &str)]| {
        ReportBlock::Pairs(all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
    };
    let set_up = ReportSection {
        name: common::SET_UP,
        title: "Set-up".into(),
        note: String::new(),
        blocks: vec![
            pairs(&[("command", "beff-raw io -T 15m --path <scratch>"), ("release", "1")]),
            pairs(&[("hints", "none")]),
            pairs(&[
                ("hosts", "node01: 4 ranks on 4 cores"),
                ("kernel", "Linux 6.1.0"),
                ("stripe size", "1 MiB (lfs)"),
            ]),
        ],
    };
    let value = HeadlineValue {
        label: "value, 4 ranks".into(),
        value: "431".into(),
        unit: "MB/s",
        verdict: (TextStyle::Good, "VALID".into()),
        numbers: Vec::new(),
        screen_line: Vec::new(),
        closing_line: String::new(),
    };
    ReportModel {
        head: ReportHead {
            program: "beff-raw 0.1.0".into(),
            revision: "abc".into(),
            started_utc: "2025-01-31T12:00:00Z".into(),
            ranks: "4 ranks on 1 host".into(),
            storage: Some(["/scratch".into(), "xfs on /dev/vdb1".into()]),
            elapsed_time: "took 16.0 min".into(),
            requested_time: "T = 15.0 min".into(),
            ..ReportHead::default()
        },
        values: vec![value],
        verification: Some("6880 KiB read back and compared: all correct".into()),
        method: vec![set_up],
        ..ReportModel::default()
    }
}

#[test]
fn golden_protocol() {
    let files = [HashedFile { name: "run.json".into(), bytes: 3, sha256: "ba7816bf".repeat(8) }];
    let (judged, models) = (acceptance(), [model()]);
    let protocol = Protocol {
        models: &models,
        acceptance: &judged,
        files: &files,
        troubles: vec!["run.json: interrupted".into()],
        version: "0.2.0",
        revision: "abc",
        date: "2026-11-30 14:00 UTC",
    };
    let page = html::printed_page(&protocol.title(), &protocol.facts(), &protocol.sections());
    let (_, body) = page.split_once("</head>").unwrap();
    insta::assert_snapshot!("protocol.html", body);
    assert!(page.contains("<title>Acceptance protocol of /scratch: FAIL</title>") && body.contains("class=protocol"));
    for part in ["stripe size", "&lt;scratch&gt;", "all correct", "ba7816bf", "signature", "problem"] {
        assert!(body.contains(part), "{part}");
    }
    assert!(!body.contains("<script") && !body.contains("<details"), "nothing is folded on paper");
}

/// A facility with long texts and many runs keeps to two sheets: what is shown is bounded.
#[test]
fn long_texts_are_shortened() {
    let mut long = model();
    long.head.settings = Some("x".repeat(5000));
    let models: Vec<ReportModel> = (0..50).map(|_| long.clone()).collect();
    let judged = acceptance();
    let troubles = vec!["trouble".to_owned(); 50];
    let protocol = Protocol {
        models: &models,
        acceptance: &judged,
        files: &[],
        troubles,
        version: "0.2.0",
        revision: "",
        date: "",
    };
    let page = html::printed_page(&protocol.title(), &protocol.facts(), &protocol.sections());
    assert!(!page.contains(&"x".repeat(MAX_FACT_CHARS + 1)) && page.contains(&"x".repeat(MAX_FACT_CHARS)));
    assert_eq!((page.matches("took 16.0 min").count(), page.matches("trouble").count()), (MAX_RUNS, MAX_RUNS));
    assert_eq!(shortened("äöü"), "äöü");
}
