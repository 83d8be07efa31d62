use super::parse::{MAGIC, MAX_ROWS};
use super::*;
use crate::b_eff_io::report::{fixtures, sum};
use crate::b_eff_io::values::PartitionValue;
use crate::frame::report::DisplayContext;
use crate::frame::values::compare::compare;
use crate::frame::values::gate::gate;

const TEXT: &str = "\
b_eff_io.c, Revision 2.1 from Dec. 12, 2001

MEMORY_PER_PROCESSOR =  256 MBytes  [1MBytes = 1024*1024 bytes, 1MB = 1e6 bytes]
-N  4 T=10, MT=1024 MBytes -rewrite
PATH=/tmp, PREFIX=run1
       system name : Linux
       hostname    : node17

Date of measurement: Tue Nov 23 18:30:30 2004

   4 PEs 2     1024 write     59.088    0.011   38.085    4.149    3.860
   4 PEs 3     1032 write     60.846    4.489   29.165   46.070        -
   4 PEs      total-write     58.579   48.697   77.944   77.036   73.113

weighted average bandwidth for write   :   65.658 MB/s on 4 processes
weighted average bandwidth for read    :  691.619 MB/s on 4 processes
b_eff_io of these measurements =  214.516 MB/s on 4 processes with 256 MByte/PE and scheduled time=0.2 min

NOT VALID for comparison of different systems
  criterion 1: scheduled time 0.2 min >= 30 min -- NOT reached
";

#[test]
fn what_the_program_wrote_is_read() {
    let summary = parse(TEXT).unwrap();
    assert_eq!((summary.revision.as_str(), summary.memory_mib), ("2.1 from Dec. 12, 2001", Some(256.0)));
    assert_eq!((summary.fact("hostname"), summary.prefix.as_str()), ("node17", "run1"));
    let [partition] = &summary.partitions[..] else { panic!("{summary:?}") };
    assert_eq!((partition.ranks, partition.b_eff_io_mb_per_second, partition.valid), (4, Some(214.516), Some(false)));
    assert_eq!(partition.averages_mb_per_second, [Some(65.658), None, Some(691.619)]);
    assert_eq!(partition.scheduled, "0.2 min");
    assert_eq!(partition.rows[1].mb_per_second, [Some(60.846), Some(4.489), Some(29.165), Some(46.07), None]);
    assert_eq!((partition.rows[2].chunk_bytes, partition.criteria.len()), (None, 1));
}

/// The program divides by times of 0.
#[test]
fn what_is_no_number_is_no_value() {
    for word in ["inf", "-inf", "nan", "-nan", "-1.000"] {
        let text = ["65.658", "214.516", "59.088", "256"].iter().fold(TEXT.to_owned(), |text, n| text.replace(n, word));
        let summary = parse(&text).unwrap();
        let [partition] = &summary.partitions[..] else { panic!("{word}: {summary:?}") };
        assert_eq!((partition.b_eff_io_mb_per_second, partition.averages_mb_per_second[0]), (None, None), "{word}");
        assert_eq!((partition.rows[0].mb_per_second[0], summary.memory_mib), (None, None), "{word}");
        assert_eq!((partition.valid, partition.scheduled.as_str()), (Some(false), "0.2 min"), "{word}");
        let report = read(text.as_bytes()).unwrap();
        let shown = report.sheet(DetailLevel::Screen, &DisplayContext { columns: 80, ..DisplayContext::default() });
        let shown = shown.render(false);
        assert!(shown.contains("b_eff_io (release 2.1) = unknown on 4 processes") && !shown.contains(word), "{shown}");
        assert!(report.comparable().quantities.iter().all(|q| q.value.is_finite() && q.value >= 0.0));
        // A further partition of the same number of processes is another one.
        let twice = format!("{text}\n   4 PEs 2     1024 write     1.0 1.0 1.0 1.0 1.0\n");
        assert_eq!(parse(&twice).unwrap().partitions.len(), 2, "{word}");
    }
}

#[test]
fn a_rate_of_zero_is_compared() {
    let zero = read(TEXT.replace("0.011", "0.000").as_bytes()).unwrap().comparable();
    let is_it = |q: &&Quantity| q.column == "1024 bytes, shared";
    assert_eq!(zero.quantities.iter().find(is_it).map(|q| q.value), Some(0.0));
    let comparison = compare([&[read(TEXT.as_bytes()).unwrap().comparable()], &[zero]], None, 1);
    assert!(comparison.missing.is_empty() && !gate(&comparison, 0.95).passed, "{comparison:?}");
}

#[test]
fn it_is_shown_and_compared() {
    let report = read(TEXT.as_bytes()).unwrap();
    let text =
        report.sheet(DetailLevel::Screen, &DisplayContext { columns: 80, ..DisplayContext::default() }).render(false);
    assert!(text.contains("b_eff_io (release 2.1) = 215 MB/s on 4 processes, T = 0.2 min, NOT VALID"), "{text}");
    assert!(text.contains("1 KiB+8") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let quantities = report.comparable().quantities;
    let value = |column: &str| quantities.iter().find(|q| q.row == "write" && q.column == column).map(|q| q.value);
    assert_eq!(
        [value("mean"), value("shared"), value("1024 bytes, shared")],
        [Some(65.658), Some(48.697), Some(0.011)]
    );
    let csv = String::from_utf8(report.format("csv").unwrap().unwrap()).unwrap();
    assert!(csv.starts_with("run,started_utc,host,mpi,backend,ranks") && csv.lines().count() == 1 + 3 * 5, "{csv}");
    assert!(report.format("json").is_some() && report.format("imb").is_none());
    assert!(!report.model(DetailLevel::Page).sections.is_empty());
}

/// Summaries written by this program parse to the derived values.
#[test]
fn our_own_summaries_are_read() {
    let mut compared = 0;
    for (name, result, derived) in fixtures::all() {
        let text = sum::summary(&result, &derived, "mpiio");
        let Ok(summary) = parse(&text) else { continue };
        assert!(is_summary(text.as_bytes()), "{name}: {text}");
        for partition in &summary.partitions {
            let is_own = |p: &&PartitionValue| p.backend == "mpiio" && p.ranks == partition.ranks;
            let Some(own) = derived.partitions.iter().find(is_own) else { continue };
            for (read, known) in partition.averages_mb_per_second.into_iter().zip(own.access_mb_per_second) {
                if let (Some(read), Some(known)) = (read, known) {
                    assert!((read - known).abs() < 0.001, "{name}: {read} {known}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 3, "{compared}");
}

#[test]
fn what_is_damaged_is_refused_or_has_less() {
    assert!(matches!(parse(MAGIC), Err(LegacySummaryError::Empty)));
    let cut = TEXT.replace("60.846", "6O.846");
    assert!(matches!(parse(&cut), Err(LegacySummaryError::Line(12, _))), "{:?}", parse(&cut));
    for end in 0..TEXT.len() {
        let _ = parse(&TEXT[..end]);
    }
    let many = "1 PEs 1 1 write 1 1 1 1 1\n".repeat(MAX_ROWS + 1);
    assert!(matches!(parse(&many), Err(LegacySummaryError::TooLong)));
}
