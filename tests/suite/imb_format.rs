//! IMB-IO: columns of the release, lists, plans, names and options.

use std::fs;
use std::process::{Command, Output};

use crate::imb::{rows, run, sizes, FEW};
use crate::support::{Scratch, PROGRAM};

/// A section of the output: heading and lines of numbers.
#[derive(Debug, Default)]
struct Section {
    benchmark: String,
    processes: String,
    mode: String,
    columns: Vec<String>,
    lines: Vec<Vec<f64>>,
}

/// Reads as scripts for the release do: by the words of the headings and the columns.
#[track_caller]
fn sections(text: &str) -> Vec<Section> {
    let mut all: Vec<Section> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(name) = line.strip_prefix("# Benchmarking ") {
            all.push(Section { benchmark: name.to_owned(), ..Section::default() });
            continue;
        }
        let Some(section) = all.last_mut() else {
            assert!(line.starts_with('#'), "before the first heading: {line}");
            continue;
        };
        if line.starts_with("# #processes") || line.starts_with("# ( ") && line.contains("groups of") {
            section.processes = line.trim_start_matches("# ").to_owned();
        } else if let Some(mode) = line.split("MODE: ").nth(1) {
            section.mode = mode.to_owned();
        } else if line.starts_with(' ') && words.contains(&"#repetitions") {
            section.columns = words.iter().map(ToString::to_string).collect();
        } else if !line.starts_with('#') {
            section.lines.push(words.iter().map(|w| w.parse().unwrap_or_else(|_| panic!("'{w}' in {line}"))).collect());
        }
    }
    for section in &all {
        assert!(section.lines.iter().all(|line| line.len() == section.columns.len()), "{section:?}");
        assert!(section.lines.iter().flatten().all(|n| n.is_finite() && *n >= 0.0), "{section:?}");
    }
    all
}

#[test]
fn the_columns_of_the_release() {
    let scratch = Scratch::new();
    let sizes = sizes(&scratch, "0 5 4096");
    let names = "S_Write_Indv,S_IRead_Expl,P_Read_Priv,P_Write_Shared,C_Write_Expl,C_IWrite_Indv,Open_Close";
    let (run, result) = run(2, &scratch, &format!("{names} --npmin 2 {FEW} {sizes} --imb-format"));
    let all = sections(&run.stdout);
    let single = ["#bytes", "#repetitions", "t[usec]", "Mbytes/sec"].as_slice();
    let several = ["#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec"].as_slice();
    let overlap = ["#bytes", "#repetitions", "t_ovrl[usec]", "t_pure[usec]", "t_CPU[usec]", "overlap[%]"].as_slice();
    let open_close = ["#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"].as_slice();
    let expected = [
        ("S_Write_Indv", "AGGREGATE", single),
        ("S_Write_Indv", "NON-AGGREGATE", single),
        ("S_IRead_Expl", "AGGREGATE", overlap),
        ("P_Read_Priv", "AGGREGATE", several),
        ("P_Write_Shared", "AGGREGATE", several),
        ("P_Write_Shared", "NON-AGGREGATE", several),
        ("C_Write_Expl", "AGGREGATE", several),
        ("C_Write_Expl", "NON-AGGREGATE", several),
        ("C_IWrite_Indv", "AGGREGATE", overlap),
        ("Open_Close", "", open_close),
    ];
    let seen: Vec<_> = all.iter().map(|s| (s.benchmark.as_str(), s.mode.as_str())).collect();
    assert_eq!(seen, expected.map(|(name, mode, _)| (name, mode)));
    for (section, (name, mode, columns)) in all.iter().zip(expected) {
        assert_eq!(section.columns, columns, "{name}");
        let processes = if name.starts_with("S_") { "#processes = 1" } else { "#processes = 2" };
        assert_eq!(section.processes, processes, "{name}");
        let repetitions = if mode == "NON-AGGREGATE" { 2.0 } else { 3.0 };
        if name == "Open_Close" {
            assert_eq!(section.lines.iter().map(|l| l[0]).collect::<Vec<_>>(), [repetitions]);
            continue;
        }
        let begin: Vec<_> = section.lines.iter().map(|l| (l[0], l[1])).collect();
        assert_eq!(begin, [0.0, 5.0, 4096.0].map(|bytes| (bytes, repetitions)), "{name}");
        if columns == overlap {
            assert!(section.lines.iter().all(|l| l[5] <= 100.0), "{name}: {:?}", section.lines);
        }
        if columns == several {
            assert!(section.lines.iter().all(|l| l[2] <= l[4] + 0.01 && l[4] <= l[3] + 0.01), "{:?}", section.lines);
            // Mbytes/sec is X / t_max, as far as the digits go.
            let last = &section.lines[2];
            assert!((last[5] - 4096.0 / last[3]).abs() <= 0.011 + last[5] * 0.01, "{last:?}");
        }
    }
    let lines: usize = all.iter().map(|s| s.lines.len()).sum();
    assert_eq!(lines, rows(&result).len());
    assert!(run.stdout.contains("# ( 1 additional process waiting in MPI_Barrier)"), "{run}");
    assert_eq!(fs::read_to_string(scratch.join("out.imb")).unwrap(), run.stdout);
}

#[test]
fn groups_have_values_each() {
    let times = ["#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec"];
    for (multi, skip) in [("0", 0), ("1", 1)] {
        let scratch = Scratch::new();
        let words = format!("P_Read_Expl --npmin 2 --multi {multi} {FEW} --msglog 16:16 --imb-format");
        let (run, _) = run(4, &scratch, &words);
        let all = sections(&run.stdout);
        let heads: Vec<_> = all.iter().map(|s| (s.benchmark.as_str(), s.processes.as_str())).collect();
        let groups = "( 2 groups of 2 processes each running simultaneous )";
        assert_eq!(heads, [("Multi-P_Read_Expl", groups), ("P_Read_Expl", "#processes = 4")], "{run}");
        let one = [vec![0.0, 0.0], vec![0.0, 65536.0]];
        let each = [vec![0.0, 0.0], vec![1.0, 0.0], vec![0.0, 65536.0], vec![1.0, 65536.0]];
        for (section, each) in all.iter().zip([each.as_slice(), &one]) {
            let columns: Vec<_> = ["Group"].into_iter().take(skip).chain(times).collect();
            assert_eq!(section.columns, columns, "{run}");
            let begin: Vec<_> = section.lines.iter().map(|l| l[..=skip].to_vec()).collect();
            let expected = if skip == 0 { one.each_ref().map(|l| vec![l[1]]).to_vec() } else { each.to_vec() };
            assert_eq!(begin, expected, "{run}");
            assert!(section.lines.iter().all(|l| (l[skip + 5] > 0.0) == (l[skip] > 0.0)), "{section:?}");
        }
    }
}

fn imb(words: &str) -> Output {
    Command::new(PROGRAM).arg("imb").args(words.split_whitespace()).output().unwrap()
}

#[track_caller]
fn shown(words: &str) -> String {
    let output = imb(words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_list_has_all_names() {
    for words in ["--list", "-list"] {
        let text = shown(words);
        let names = text.lines().filter(|l| l.contains("MPI_File_") && l.contains("mpiio"));
        assert_eq!(names.count(), 41, "{text}");
        assert!(text.contains("C_IRead_All_Expl") && text.contains("Open_Close"));
    }
}

/// Benchmarks of a plan, in its order.
#[track_caller]
fn planned(words: &str) -> Vec<String> {
    let text = shown(&format!("--plan 4 {words}"));
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let is_name = |name: &String| name == "Open_Close" || ["S_", "P_", "C_"].iter().any(|p| name.starts_with(p));
    text.lines().map(first).filter(is_name).collect()
}

#[test]
fn names_from_everywhere() {
    let scratch = Scratch::new();
    let input = scratch.join("input");
    fs::write(&input, "# two\nC_Read_Indv # one\nopen_close\n").unwrap();
    let input = input.display().to_string();
    assert_eq!(planned("").len(), 37);
    assert_eq!(planned("p_read_expl S_WRITE_INDV"), ["P_Read_Expl", "S_Write_Indv"]);
    assert_eq!(planned(&format!("S_Read_Expl --input {input}")), ["S_Read_Expl", "C_Read_Indv", "Open_Close"]);
    assert_eq!(planned(&format!("-input {input} -exclude Open_Close")), ["C_Read_Indv"]);
    assert_eq!(planned("S_Read_Expl -include C_IRead_All_Indv"), ["S_Read_Expl", "C_IRead_All_Indv"]);
    let text = shown("--plan 4 S_Write_Expl -iter 7,1,5 --iter-policy=set -msglog 3:4 -npmin 2 --multi 1");
    assert!(text.lines().any(|line| line.split_whitespace().eq(["16", "7", "5"])), "{text}");
    assert!(text.lines().any(|line| line.split_whitespace().eq(["policy", "set"])), "{text}");
}

#[test]
fn what_cannot_run_is_refused() {
    let refused = [
        ("S_Wrte_Indv", "did you mean S_Write_Indv?"),
        ("P_Read_Private", "did you mean P_Read_Priv?"),
        ("PingPong", "--list"),
        ("-mem S_Write_Indv", "-mem: 'S_Write_Indv' is no value of it"),
        ("S_Write_Indv -map 2x2", "-map: this option of the release is not supported"),
        ("S_Write_Indv --backend posix --hint a=b", "--hint has no effect with --backend posix"),
        ("C_Write_Expl --backend posix", "posix supports none"),
        ("S_Write_Indv --backend mmap", "--backend mmap"),
        ("S_Write_Indv --imb-format --backend mpiio,posix", "--imb-format"),
        ("P_Read_Expl --exclude S_Write_Indv", "it would not run anyway"),
        ("--iter 0", "at least 1"),
        ("--iter 10 --iter-policy off --time 5", "--time has no effect"),
        ("--msglen /nowhere/sizes", "/nowhere/sizes: cannot be read"),
        ("--input /nowhere/names", "/nowhere/names: cannot be read"),
    ];
    for (words, part) in refused {
        let output = imb(words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert!(text.contains(part), "{words}: no '{part}' in {text}");
        assert_eq!(output.stdout, b"", "{words}");
    }
}
