use super::*;
use crate::frame::report::DisplayContext;
use crate::frame::report::ResultReport;
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
    assert_eq!(found, [("S_Write_Indv", 1, "aggregate", 2), ("P_Read_Priv", 2, "aggregate", 2)]);
    assert_eq!(all.sections[1].times(), [(Some(0), 0.58), (Some(1 << 20), 2000.0)]);
    assert!(is_text(TEXT.as_bytes()) && !is_text(b"# a comment\n") && !is_text(b"{}"));
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
    assert!(matches!(parse("# Benchmarking X\n"), Err(ImbTextError::Empty)));
    let cut = TEXT.replace("0.57         0.58", "0.57");
    assert!(matches!(parse(&cut), Err(ImbTextError::Line(..))), "{:?}", parse(&cut));
    for end in 0..TEXT.len() {
        let _ = parse(&TEXT[..end]);
    }
    // A second header begins a second table: rows keep their own columns.
    let two = "# Benchmarking A\n#bytes #repetitions t[usec]\n1 2 3\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n1 2 3 4 5\n";
    let all = parse(two).unwrap();
    let times: Vec<_> = all.sections.iter().map(|s| (s.benchmark.as_str(), s.times())).collect();
    assert_eq!(times, [("A", vec![(Some(1), 3.0)]), ("A", vec![(Some(1), 4.0)])]);
    assert!(!read(two.as_bytes()).unwrap().comparable().quantities.is_empty());
}
