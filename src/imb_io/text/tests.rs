use super::*;
use crate::frame::report::DisplayContext;
use crate::frame::report::ResultReport;
use crate::frame::values::compare::{compare, Comparison, ComparisonVerdict};
use crate::frame::values::gate::gate;
use crate::imb_io::report::fixtures;

/// Output of the released program.
const TEXT: &str = "\
#------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.3, MPI-IO part
#------------------------------------------------------------
# Date                  : Wed Mar  1 10:00:00 2023
# Machine               : x86_64
# MPI Version           : 3.1
# Calling sequence was:
# mpirun -n 2 IMB-IO

#-----------------------------------------------------------------------------
# Benchmarking S_Write_Indv
# #processes = 1
# ( 1 additional process waiting in MPI_Barrier)
#-----------------------------------------------------------------------------
#
#    MODE: AGGREGATE
#
       #bytes #repetitions      t[usec]   Mbytes/sec
            0           50         0.57         0.00
      1048576           50      1000.00      1048.58

#-----------------------------------------------------------------------------
# Benchmarking P_Read_Priv
# #processes = 2
#-----------------------------------------------------------------------------
#
#    MODE: AGGREGATE
#
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0           50         0.57         0.58         0.57         0.00
      1048576           50      1000.00      2000.00      1500.00       524.29

# All processes entering MPI_Finalize
";

#[test]
fn the_output_of_the_program_is_read() {
    let all = parse(TEXT).unwrap();
    assert_eq!(all.fact("MPI Version"), "3.1");
    let found: Vec<_> =
        all.sections.iter().map(|s| (s.benchmark.as_str(), s.ranks, s.mode.as_str(), s.rows.len())).collect();
    assert_eq!(found, [("S_Write_Indv", Some(1), "aggregate", 2), ("P_Read_Priv", Some(2), "aggregate", 2)]);
    assert_eq!(all.sections[1].times(), [(Some(0), Some(0.58)), (Some(1 << 20), Some(2000.0))]);
    assert!(is_text(TEXT.as_bytes()) && !is_text(b"# a comment\n") && !is_text(b"{}"));
}

fn screen(report: &dyn LoadedReport) -> String {
    report.sheet(DetailLevel::Screen, &DisplayContext { columns: 80, ..DisplayContext::default() }).render(false)
}

/// What the release prints instead of the numbers of a row (IMB_output.c), and numbers that are none.
const REASONS: [&str; 5] = [
    " time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; use \"-time X\" or SECS_PER_SAMPLE=X \
     (IMB_settings.h) to increase time limit.",
    " out-of-mem.; needed X=   0.502 GB; use flag \"-mem X\" or MAX_MEM_USAGE>=X (IMB_mem_info.h)",
    " int-overflow.; The production rank*size caused int overflow for given sample",
    " int-overflow; The production rank*size caused int overflow;",
    "           50          nan          nan          nan         -nan",
];

#[test]
fn rows_without_a_number_have_none() {
    for reason in REASONS {
        let text = TEXT.replace("           50      1000.00      2000.00      1500.00       524.29", reason);
        assert_ne!(text, TEXT);
        let report = read(text.as_bytes()).unwrap();
        let all = parse(&text).unwrap();
        assert_eq!(all.sections[1].times(), [(Some(0), Some(0.58)), (Some(1 << 20), None)], "{reason}");
        let is_word = !reason.contains("nan");
        assert_eq!(all.sections[1].without_times.len(), usize::from(is_word), "{reason}");
        let shown = screen(&*report);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(!is_word || shown.contains("P_Read_Priv, aggregate: 1 row without a time: 1048576 "), "{shown}");
        let csv = String::from_utf8(report.format("csv").unwrap().unwrap()).unwrap();
        let row = csv.lines().last().unwrap();
        assert!(csv.lines().count() == 1 + 4 && row.contains("P_Read_Priv") && row.contains("1048576"), "{csv}");
        assert!(row.ends_with(",,,,,,,"), "{csv}");
        let json: serde_json::Value = serde_json::from_slice(&report.format("json").unwrap().unwrap()).unwrap();
        assert!(json["sections"][1]["rows"][1][3].is_null(), "{json}");
        assert_eq!(report.comparable().quantities.len(), 3, "{reason}");
    }
}

/// Of several groups, and of a benchmark that has no column of sizes.
#[test]
fn rows_without_a_number_of_other_tables() {
    let text = "# Benchmarking Multi-P_Write_Indv\n# ( 2 groups of 2 processes each running simultaneous )\n\
                Group #bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec\n\
                \n0 0 50 1.0 2.0 1.5 0.00\n1 0 50 1.0 3.0 1.5 0.00\n\n0 64 time-out.; over\n1 64 50 1.0 2.0 1.5 32.00\n\
                # Benchmarking Open_Close\n# #processes = 4; rank order (rowwise):\n\
                #repetitions t_min[usec] t_max[usec] t_avg[usec]\n1 time-out.; over\n";
    let all = parse(text).unwrap();
    let found: Vec<_> = all.sections.iter().map(|s| (s.benchmark.as_str(), s.ranks, s.times())).collect();
    let expected = [
        ("P_Write_Indv", Some(2), vec![(Some(0), Some(3.0)), (Some(64), None)]),
        ("Open_Close", Some(4), vec![(None, None)]),
    ];
    assert_eq!(found, expected);
    assert_eq!(all.sections[0].rows[2][..2], [Some(0.0), Some(64.0)]);
    // A row is not taken for a reason because one of its numbers is damaged.
    for row in ["64 5O 1.0 2.0 1.5 32.0", "64", "64 50", "0 64 50 1.0 2.0 1.5", "x4 50 1.0"] {
        let found = parse(&text.replace("1 64 50 1.0 2.0 1.5 32.00", row));
        assert_eq!(found.is_err(), !row.starts_with('x'), "{row}: {found:?}");
    }
}

#[test]
fn lines_of_a_launcher_are_skipped() {
    let noise = "Loading mpi/openmpi-4.1.5\nsrun: job 4711 queued and waiting for resources\n\n1 2 3\n";
    let text = format!("{noise}{TEXT}\nreal\t0m12.3s\nsrun: job 4711 has finished\n");
    let text = text.replace("            0           50         0.57         0.58", "MPI warning: slow\n$0");
    let text = text.replace("$0", "            0           50         0.57         0.58");
    assert!(is_text(text.as_bytes()) && is_text(text.replace('\n', "\r\n").as_bytes()));
    let found = parse(&text).unwrap();
    assert_eq!((&found.sections, &found.facts), (&parse(TEXT).unwrap().sections, &parse(TEXT).unwrap().facts));
    // Within a line it begins no table.
    assert!(!is_text(b"{\"text\":\"# Benchmarking S_Write_Indv\\n\"}\n") && !is_text(b"see # Benchmarking X\n"));
}

#[test]
fn output_of_other_benchmarks_is_refused_by_name() {
    let text = TEXT.replace("MPI-IO part", "MPI-1 part").replace("S_Write_Indv", "PingPong");
    let error = parse(&text).unwrap_err();
    assert!(matches!(&error, ImbTextError::OtherBenchmark { line: 11, .. }), "{error:?}");
    let error = error.to_string();
    for part in ["line 11", "\"PingPong\"", "IMB-IO", "Intel(R) MPI Benchmarks 2021.3, MPI-1 part", "--list"] {
        assert!(error.contains(part), "{error}");
    }
    let error = parse("# Benchmarking Multi-Sendrecv\n").unwrap_err().to_string();
    assert!(error.contains("\"Sendrecv\"") && !error.contains("the text is of"), "{error}");
}

fn compared(text: &str) -> Comparison {
    let run = |text: &str| [read(text.as_bytes()).unwrap().comparable()];
    compare([&run(TEXT), &run(text)], None, 1)
}

#[test]
fn zero_is_a_value() {
    let size = "      1048576           50";
    let zero = TEXT.replace(
        &format!("{size}      1000.00      2000.00      1500.00       524.29"),
        &format!("{size}         0.00         0.00         0.00         0.00"),
    );
    assert_ne!(zero, TEXT);
    let comparison = compared(&zero);
    assert_eq!((comparison.missing.len(), comparison.compared.len()), (0, 4));
    let of = |row: &str, column: &str| {
        let found = comparison.compared.iter().find(|c| c.row.starts_with(row) && c.column.starts_with(column));
        found.map(|c| (c.call, c.values[1], c.unit)).unwrap()
    };
    assert_eq!(of("P_Read_Priv", "1 MiB"), (ComparisonVerdict::Slower, 0.0, MegabytesPerSecond));
    assert_eq!(of("S_Write_Indv", "1 MiB").0, ComparisonVerdict::Equal);
    assert!(!gate(&comparison, 0.95).passed);
    let shown = screen(&*read(zero.as_bytes()).unwrap());
    assert!(shown.contains(" MB/s (1 MiB)"), "{shown}");
    // A time without bytes.
    let fast =
        compared(&TEXT.replace("         0.57         0.58         0.57", "         0.00         0.00         0.00"));
    assert!(fast.missing.is_empty() && gate(&fast, 0.95).passed, "{fast:?}");
    assert!(fast.compared.iter().any(|c| c.call == ComparisonVerdict::Faster && c.values[1] == 0.0), "{fast:?}");
}

#[test]
fn a_text_is_shown_and_compared() {
    let report = read(TEXT.as_bytes()).unwrap();
    let text =
        report.sheet(DetailLevel::Screen, &DisplayContext { columns: 80, ..DisplayContext::default() }).render(false);
    assert!(text.contains("0.6 us (0 B)") && text.contains("524 MB/s (1 MiB)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let csv = String::from_utf8(report.format("csv").unwrap().unwrap()).unwrap();
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
    assert!(
        report.format("json").is_some()
            && report.format("sum").is_none()
            && !report.model(DetailLevel::Page).sections.is_empty()
    );
    let quantities = report.comparable().quantities;
    let of = |row: &str, column: &str| quantities.iter().find(|q| q.row == row && q.column == column).map(|q| q.value);
    assert_eq!(of("P_Read_Priv, aggregate", "1 MiB, 2 ranks"), Some(524.288));
    assert_eq!(of("P_Read_Priv, aggregate", "0 B, 2 ranks"), Some(0.58));
}

/// The output of this program in that format has the same rows, names and numbers as the result.
#[test]
fn rows_of_our_own_text_are_those_of_the_result() {
    let mut compared = 0;
    for (name, result, _) in fixtures::all() {
        let shown = ResultReport::new(result);
        let Ok(text) = parse(&String::from_utf8(shown.format("imb").unwrap().unwrap()).unwrap()) else { continue };
        let own = shown.comparable().quantities;
        for read in text.comparable().quantities {
            let is_it = |q: &&Quantity| q.row == read.row && q.column == read.column && q.backend == read.backend;
            let Some(known) = own.iter().find(is_it) else {
                panic!("{name}: {} {} {}", read.backend, read.row, read.column)
            };
            assert!(
                (read.value / known.value - 1.0).abs() < 0.01,
                "{name} {}: {} {}",
                read.row,
                read.value,
                known.value
            );
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn damaged_texts_are_refused_or_have_fewer_rows() {
    assert!(matches!(parse("# Benchmarking Open_Close\n"), Err(ImbTextError::Empty)));
    let cut = TEXT.replace("0.57         0.58", "0.57");
    assert!(matches!(parse(&cut), Err(ImbTextError::Line(..))), "{:?}", parse(&cut));
    for end in 0..TEXT.len() {
        let _ = parse(&TEXT[..end]);
    }
    // A second header begins a second table: rows keep their own columns.
    let two = "# Benchmarking P_Read_Indv\n#bytes #repetitions t[usec]\n1 2 3\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n1 2 3 4 5\n";
    let all = parse(two).unwrap();
    let times: Vec<_> = all.sections.iter().map(|s| (s.benchmark.as_str(), s.times())).collect();
    let name = "P_Read_Indv";
    assert_eq!(times, [(name, vec![(Some(1), Some(3.0))]), (name, vec![(Some(1), Some(4.0))])]);
    assert!(!read(two.as_bytes()).unwrap().comparable().quantities.is_empty());
}
