use super::*;
use crate::model::{HeadlineValue, ReportBlock, ReportHead, ReportModel, ReportSection, TextStyle};

fn model(benchmark: &'static str) -> ReportModel {
    ReportModel {
        benchmark,
        head: ReportHead { program: "<title>".into(), ranks: "2 ranks".into(), ..ReportHead::default() },
        alarms: vec!["it \"failed\"".into()],
        values: vec![HeadlineValue {
            label: "value".into(),
            value: "766".into(),
            unit: "MB/s",
            verdict: (TextStyle::Bad, "NOT VALID".into()),
            numbers: vec![("write".into(), "404".into())],
            screen_line: Vec::new(),
            closing_line: String::new(),
        }],
        findings: vec!["a < b".into()],
        sections: vec![ReportSection {
            name: "bandwidth",
            title: "Bandwidth".into(),
            note: "A note.".into(),
            blocks: vec![
                ReportBlock::Folded("more".into(), vec![ReportBlock::Pairs(vec![("T".into(), "15 min".into())])]),
                ReportBlock::List(vec!["one".into()]),
            ],
        }],
        ..ReportModel::default()
    }
}

fn source(benchmark: &'static str, records: Option<Vec<u8>>) -> PageRun {
    PageRun { model: model(benchmark), file: "a/run1.json".into(), records }
}

#[test]
fn a_page_has_its_parts_in_order() {
    let text = page(&[source("x", Some(b"foobar".to_vec()))], &[]);
    let parts = [
        "<!doctype html>",
        "default-src 'none'",
        "prefers-color-scheme:dark",
        "@media print",
        "&lt;title&gt;",
        "role=alert",
        "<strong>766</strong>",
        "a &lt; b",
        "id=\"r1-bandwidth\"",
        "<summary>more",
        "data:application/zstd;base64,Zm9vYmFy\">save run1.json.zst",
        "</html>",
    ];
    let mut from = 0;
    for part in parts {
        let at = text[from..].find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        from += at;
    }
    assert!(page(&[source("x", None)], &[]).contains("too many for a page"));
}

#[test]
fn several_runs_have_addresses_of_their_own() {
    let text = page(&[source("x", None), source("y", None)], &[]);
    let mut ids: Vec<&str> = text.split(" id=").skip(1).map(|rest| rest.split([' ', '>']).next().unwrap()).collect();
    let number = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), text.matches("<h1").count()), (number, 1));
    for link in text.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(text.contains(&format!("id=\"{link}\"")) || text.contains(&format!("id={link}")), "{link}");
    }
}
