use super::*;

fn value(file: &str, system: &str, ranks: u64, values: &[(&'static str, Option<f64>, ListedStatus)]) -> ListedValue {
    let entry = |&(release, mb_per_second, status): &(&'static str, Option<f64>, ListedStatus)| ReleaseEntry {
        release,
        mb_per_second,
        status,
        is_own_definition: release == "1",
    };
    ListedValue {
        file: file.into(),
        program: "beff-raw 0.2.0".into(),
        started: "2025-01-31T12:00:00Z".into(),
        system: system.into(),
        hosts: "node1".into(),
        backend: "mpiio".into(),
        is_mpi_io: true,
        ranks,
        ranks_per_host: Some(2),
        time_seconds: Some(900.0),
        mpi: "MPICH 4.0.2".into(),
        hints: String::new(),
        values: values.iter().map(entry).collect(),
    }
}

use ListedStatus::{NotValid, ThreePartitions, Unknown, Valid};

/// Two systems; the highest value of the first is not valid, and its posix counts only beside.
fn example() -> Vec<ListedValue> {
    let posix = ListedValue {
        backend: "posix".into(),
        is_mpi_io: false,
        ..value("run2.json", "lustre on a", 4, &[("1", Some(900.0), NotValid)])
    };
    vec![
        value(
            "run1.json",
            "lustre on a",
            2,
            &[("0.5", Some(50.0), NotValid), ("1", Some(100.0), Valid), ("2.1", Some(90.0), NotValid)],
        ),
        value(
            "run1.json",
            "lustre on a",
            4,
            &[("0.5", None, NotValid), ("1", Some(120.0), Valid), ("2.1", Some(95.0), ThreePartitions)],
        ),
        ListedValue {
            time_seconds: Some(60.0),
            mpi: "Open MPI 4.1.4".into(),
            hints: "cb_nodes=2 striping_factor=4".into(),
            ranks_per_host: None,
            ..value(
                "run2.json",
                "lustre on a",
                4,
                &[("1", Some(400.0), NotValid), ("2.1", Some(95.0), ThreePartitions)],
            )
        },
        posix,
        ListedValue {
            mpi: String::new(),
            time_seconds: None,
            ..value("old.sum", "Linux of b", 8, &[("2.1", Some(7.5), Unknown)])
        },
    ]
}

#[test]
fn the_value_of_a_system_is_the_maximum_of_its_accepted_values() {
    let all = example();
    let found = systems(&all);
    let shown = |maxima: &[Maximum<'_>]| -> Vec<(&str, f64, String, u64)> {
        maxima.iter().map(|m| (m.release, m.mb_per_second, m.run.file.clone(), m.run.ranks)).collect()
    };
    assert_eq!(found.iter().map(|s| s.system).collect::<Vec<_>>(), ["lustre on a", "Linux of b"]);
    let run1 = || "run1.json".to_owned();
    // Of equal values the first.
    assert_eq!(shown(&found[0].accepted), [("1", 120.0, run1(), 4), ("2.1", 95.0, run1(), 4)]);
    let highest = [("0.5", 50.0, run1(), 2), ("1", 400.0, "run2.json".to_owned(), 4), ("2.1", 95.0, run1(), 4)];
    assert_eq!(shown(&found[0].highest), highest);
    assert!(found[1].accepted.is_empty() && shown(&found[1].highest) == [("2.1", 7.5, "old.sum".to_owned(), 8)]);
    let tried = Tried {
        files: vec!["run1.json".into(), "run2.json".into()],
        times: vec!["1.0 min".into(), "15.0 min".into()],
        ranks: vec![2, 4],
        ranks_per_host: vec![2],
        mpi: vec!["MPICH 4.0.2".into(), "Open MPI 4.1.4".into()],
        hints: vec!["none".into(), "cb_nodes=2 striping_factor=4".into()],
        backends: vec!["mpiio".into(), "posix".into()],
    };
    assert_eq!(found[0].tried, tried);
}

/// Without MPI-IO the other backends are all there is.
#[test]
fn without_mpi_io_other_backends_are_listed() {
    let all: Vec<ListedValue> = example().into_iter().filter(|v| v.backend == "posix").collect();
    assert_eq!(systems(&all)[0].highest[0].mb_per_second, 900.0);
    assert!(text(&all).contains("NOT VALID, not MPI-IO, by run2.json"), "{}", text(&all));
}

#[test]
fn golden_list() {
    insta::assert_snapshot!("list", text(&example()));
}

#[test]
fn a_system_without_values_says_so() {
    let all = [value("run1.json", "xfs on x", 2, &[("1", None, NotValid)])];
    assert!(text(&all).contains("none was measured"), "{}", text(&all));
    assert!(systems(&[]).is_empty() && !text(&[]).is_empty());
}

/// Names are those of files and results: they may contain anything.
#[test]
fn every_view_has_every_value() {
    let mut all = example();
    all[1].file = "a,\"b\"\n<i>\u{1b}[31m".into();
    all[1].hints = "=1+1".into();
    let bytes = csv(&all).unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains(",'=1+1,"));
    let lines: Vec<::csv::StringRecord> =
        ::csv::Reader::from_reader(&bytes[..]).records().map(|r| r.unwrap()).collect();
    assert_eq!(lines.len(), all.iter().map(|v| v.values.len()).sum::<usize>());
    assert!(lines.iter().all(|line| line.iter().all(|cell| !cell.contains(['\n', '\u{1b}']))));
    assert_eq!(lines.iter().filter(|line| &line[16] == "true").count(), 2, "accepted maxima");
    assert_eq!(lines.iter().filter(|line| &line[15] == "true").count(), 4, "highest values");
    let json: serde_json::Value = serde_json::from_slice(&document(&all).unwrap()).unwrap();
    assert_eq!(json["results"].as_array().unwrap().len(), all.len());
    assert_eq!(json["systems"][0]["accepted"][0]["run"]["ranks"], 4);
    assert_eq!(json["systems"][0]["accepted"][1]["status"], "three-partitions");
    let page = crate::frame::report::html::section_page("x", &[], &section_list(&all));
    assert!(page.contains("Open MPI 4.1.4") && !page.contains("<i>") && !page.contains('\u{1b}'), "{page}");
}
