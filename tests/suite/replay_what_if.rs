//! `beff-raw replay --what-if`: the changed calls beside the unchanged ones, and changes that are refused.

use serde_json::Value;

use crate::replay::{calls, launch, replay, HEAD};
use crate::support::{document, items, number, Scratch};

/// Two ranks fill a file together and by themselves, write over both, and read what the other one wrote.
fn filled() -> String {
    let rank = |own: u64, other: u64| {
        let [at, there] = [own, other].map(|rank| rank * 100_000);
        // The fill values before, by both ranks together; then the same by rank 0 alone, for the second half of the file.
        let fill = format!("20{own},300,File_write_at_all,handle=1,offset={at},count=100000,type=0,bytes=100000");
        let alone = "310,320,File_write_at,handle=1,offset=200000,count=200000,type=0,bytes=200000";
        let first = format!("40{own},500,File_write_at,handle=1,offset={at},count=100000,type=0,bytes=100000");
        let after = if own == 1 { ",after=0@310" } else { "" };
        let at_second = at + 200_000;
        let second =
            format!("60{own},700,File_write_at,handle=1,offset={at_second},count=100000,type=0,bytes=100000{after}");
        let read = format!(
            "80{own},900,File_read_at,handle=1,offset={there},count=100000,type=0,bytes=100000,after={other}@40{other},\
             from=100000@{other}:40{other}+0"
        );
        let open = format!("10{own},110,File_open,handle=1,file=0,comm=0,mode=rdwr;create,number=-1");
        let close = format!("95{own},960,File_close,handle=1");
        let all = [open, fill, if own == 0 { alone.to_owned() } else { String::new() }, first, second, read, close];
        all.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    format!("{HEAD}{}", calls(&[&rank(0, 1), &rank(1, 0)]))
}

fn effect(result: &Value) -> &Value {
    &result["derived"]["what_if"]
}

/// Calls and checked bytes of the repetitions of a name.
fn repetitions<'a>(result: &'a Value, name: &'a str) -> Vec<&'a Value> {
    items(&result["repetitions"]).iter().filter(|repetition| repetition["backend"] == name).collect()
}

#[test]
fn fill_values_are_not_written_and_all_reads_are_right() {
    for backend in ["mpiio", "posix"] {
        let words = format!("--what-if fill-never --backend {backend} --repeat 3");
        let (scratch, run, result) = replay(2, &filled(), &words);
        for (name, calls) in [(backend, 13), ("fill-never", 10)] {
            let own = repetitions(&result, name);
            assert_eq!(own.len(), 4, "{run}");
            assert!(own.iter().all(|repetition| number(&repetition["calls"]) == calls), "{run}");
            assert!(own.iter().all(|repetition| number(&repetition["calls_as_recorded"]) == calls), "{run}");
            assert_eq!(number(&own[0]["bytes_checked"]), 200_000, "{run}");
        }
        let order: Vec<&str> =
            items(&result["repetitions"]).iter().filter_map(|repetition| repetition["backend"].as_str()).collect();
        let other = "fill-never";
        assert_eq!(order, [backend, other, backend, other, other, backend, backend, other], "{run}");
        let effect = effect(&result);
        assert_eq!((number(&effect["pairs"]), &effect["change"]), (3, &Value::from("fill-never")));
        let written = ["unchanged_written_bytes", "changed_written_bytes"].map(|key| number(&effect[key]));
        assert_eq!(written, [800_000, 400_000], "{run}");
        assert_eq!(items(&effect["interval"]).len(), 2, "{run}");
        run.says(&["fill-never omits 3 writes"]);
        let screen = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["what-if fill-never: ", "times as long in calls, 3 pairs", "400000 B written instead of 800000 B"]
        {
            assert!(screen.contains(part), "no '{part}'; {run}");
        }
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "{run}");
    }
}

#[test]
fn independent_accesses_become_collective() {
    let rank = |own: u64| {
        format!(
            "10{own},110,File_open,handle=1,file=0,comm=0,mode=rdwr;create,number=-1
20{own},300,File_write_at,handle=1,offset={at},count=1000,type=0,bytes=1000
40{own},500,File_sync,handle=1
60{own},700,File_read,handle=1,count=1000,type=0,bytes=1000,after={other}@20{other},from=1000@0:200+0
90{own},960,File_close,handle=1",
            other = 1 - own,
            at = own * 1000
        )
    };
    let ranks = [rank(0).replace("after=1@201,", ""), rank(1)];
    let profile = format!("{HEAD}{}", calls(&[&ranks[0], &ranks[1]]));
    let (_, run, result) = replay(2, &profile, "--what-if collective --repeat 1");
    let classes = |name: &str| {
        let own = items(&result["classes"]).iter().filter(|class| class["backend"] == name && class["repetition"] == 1);
        let mut classes: Vec<&str> = own.filter_map(|class| class["class"].as_str()).collect();
        classes.sort_unstable();
        classes
    };
    assert_eq!(classes("mpiio"), ["close", "open", "read", "sync", "write"], "{run}");
    assert_eq!(classes("collective"), ["close", "open", "read_collective", "sync", "write_collective"], "{run}");
    assert_eq!(number(&repetitions(&result, "collective")[0]["bytes_checked"]), 2000, "{run}");
    run.says(&["collective makes 4 independent calls collective"]);
}

#[test]
fn hints_are_those_of_the_changed_calls_alone() {
    let scratch = Scratch::new();
    let words = "--what-if hints=cb_buffer_size=1048576 --repeat 1";
    let run = launch(2, &scratch, &filled(), words).run();
    run.expect(0);
    let result = document(&scratch);
    assert_eq!(effect(&result)["change"], "hints=cb_buffer_size=1048576");
    assert_eq!(repetitions(&result, "hints").len(), 2, "{run}");
    assert_eq!(result["config"]["backends"], Value::from(vec!["mpiio", "hints"]));
}

#[test]
fn a_change_that_is_not_safe_is_refused_before_anything_is_made() {
    let refused = |profile: &str, words: &str, parts: &[&str]| {
        let scratch = Scratch::new();
        let run = launch(2, &scratch, profile, words).run();
        run.expect(2).says(parts);
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "{run}");
        assert!(!scratch.join("out.jsonl").exists(), "{run}");
    };
    let all = filled();
    refused(&all, "--what-if align=1M", &["align is not available", "H5Pset_alignment"]);
    refused(
        &all,
        "--what-if collective",
        &["/work/out.dat", "rank 0 makes 3 MPI_File_write_at", "rank 1 2 MPI_File_write_at"],
    );
    let read = all
        .replace("600,700,File_write_at", "600,700,File_read_at")
        .replace("601,700,File_write_at", "601,700,File_read_at");
    let read = read.replace("200,300,File_write_at_all", "200,300,File_read_at_all");
    let read = read.replace("201,300,File_write_at_all", "201,300,File_read_at_all");
    refused(&read, "--what-if fill-never", &["changes nothing"]);
    let cut = all.replace("process,0,node1,1", "process,0,node1,1,end=cut");
    refused(&cut, "--what-if fill-never", &["not safe", "rank 0 is not complete"]);
    refused(&all, "--what-if fill-never --backend mpiio,posix", &["with one backend"]);
}
