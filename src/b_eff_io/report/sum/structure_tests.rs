//! Our lines have the format of those of release 2.1: identical words, numbers of the same width.

use super::summary;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::values::derive;

/// The lines of a genuine file of release 2.1 (November 2004, 4 processes, -rewrite, a hints file), converted to the formats that printed
/// them. `%S` is any text; a number that was not measured may be a hyphen.
const GENUINE: &str = "\
b_eff_io.c, Revision 2.1 from Dec. 12, 2001%S

MEMORY_PER_PROCESSOR = %4.0 MBytes  [1MBytes = 1024*1024 bytes, 1MB = 1e6 bytes]
Maximum chunk size   = %8.3 MBytes

-N %2.0 T=%0.0, MT=%0.0 MBytes%S
PATH=%S, PREFIX=%S
       system name : %S
       hostname    : %S
       OS release  : %S
       OS version  : %S
       machine     : %S

Date of measurement: %S
";

const GENUINE_TABLE: &str = "


Summary of file I/O bandwidth accumulated on %3.0 processes with %4.0 MByte/PE
-----------------------------------------------------------------------------

 number pos chunk-   access   type=0   type=1   type=2   type=3   type=4
 of PEs     size (l) methode scatter  shared  separate segmened seg-coll
            [bytes]  methode  [MB/s]   [MB/s]   [MB/s]   [MB/s]   [MB/s]
 -----------------------------------------------------------------------

%4.0 PEs %1.0 %8.0 write   %8.3 %8.3 %8.3 %8.3 %8.3
%4.0 PEs      total-write   %8.3 %8.3 %8.3 %8.3 %8.3

%4.0 PEs %1.0 %8.0 rewrite %8.3 %8.3 %8.3 %8.3 %8.3
%4.0 PEs      total-rewrite %8.3 %8.3 %8.3 %8.3 %8.3

%4.0 PEs %1.0 %8.0 read    %8.3 %8.3 %8.3 %8.3 %8.3
%4.0 PEs      total-read    %8.3 %8.3 %8.3 %8.3 %8.3

This table shows all results, except pattern 2 (scatter, l=1MBytes, L=2MBytes):\u{20}
  bw_pat2= %8.3 MB/s write, %8.3 MB/s rewrite, %8.3 MB/s read

(For gnuplot:)
  set xtics ( '1k' 1, '+8' 2, '32k' 4, '+8' 5, '1M' 7, '+8' 8, '%0.0M' 10)
  set title '%S' -4
  set label 1 'b_eff_io'  at 10,50000 right
  set label 2 'rel. 2.1'  at 10,25000 right
  set label 3 'T=%0.1min' at 10,12500 right
  set label 4 'n=%0.0'     at 10,6250  right

weighted average bandwidth for write   : %8.3 MB/s on %0.0 processes
weighted average bandwidth for rewrite : %8.3 MB/s on %0.0 processes
weighted average bandwidth for read    : %8.3 MB/s on %0.0 processes
(type=0 is weighted double)

Total amount of data written/read with each access method: %0.3 MBytes
  = %0.1 percent of the total memory (%0.0 MBytes)

b_eff_io of these measurements = %8.3 MB/s on %0.0 processes with %0.0 MByte/PE and scheduled time=%0.1 min
";

const GENUINE_END: &str = "
%S for comparison of different systems
  criterion 1: scheduled time %0.1 min >= 30 min -- %S
  criterion 2: shared file pointers must be used for pattern type 1 -- %S
  criterion 3: error count (%0.0) == 0 -- %S

Maximum over all number of PEs
------------------------------


 b_eff_io = %8.3 MB/s on %0.0 processes with %0.0 MByte/PE, scheduled time=%0.1 Min, on %S, %S
";

fn prints(format: &str, line: &str) -> bool {
    let Some((literal, rest)) = format.split_once('%') else { return format == line };
    let Some(line) = line.strip_prefix(literal) else { return false };
    if let Some(rest) = rest.strip_prefix('S') {
        return line.char_indices().map(|(at, _)| at).chain([line.len()]).any(|at| prints(rest, &line[at..]));
    }
    let (width, rest) = rest.split_once('.').unwrap();
    let (width, decimals) = (width.parse::<usize>().unwrap(), rest[..1].parse::<usize>().unwrap());
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let digits =
        line[blanks..].find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(line.len() - blanks);
    let number = &line[blanks..blanks + digits];
    let has_decimals = number == "-" || number.split_once('.').map_or(0, |(_, d)| d.len()) == decimals;
    let is_number = number == "-" || number.parse::<f64>().is_ok();
    let is_wide = blanks + digits == width.max(digits);
    is_number && has_decimals && is_wide && prints(&rest[1..], &line[blanks + digits..])
}

/// Formats of a file with `partitions` tables of `rows` rows for each access method.
fn formats(partitions: usize, rows: usize) -> Vec<&'static str> {
    let table = GENUINE_TABLE.lines().flat_map(|format| {
        let copies = if format.contains("PEs %1.0") { rows } else { 1 };
        std::iter::repeat_n(format, copies)
    });
    let tables = std::iter::repeat_n(table, partitions).flatten();
    GENUINE.lines().chain(tables).chain(GENUINE_END.lines()).collect()
}

fn difference(text: &str, partitions: usize, rows: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let formats = formats(partitions, rows);
    let odd = formats.iter().zip(&lines).enumerate().find(|(_, (format, line))| !prints(format, line));
    let odd = odd.map(|(number, (format, line))| format!("line {}: {line:?} is not {format:?}", number + 1));
    odd.or_else(|| (formats.len() != lines.len()).then(|| format!("{} lines for {}", lines.len(), formats.len())))
}

fn of(result: &RunResult) -> String {
    summary(result, &derive(result), "posix")
}

#[test]
fn the_formats_have_widths_and_words() {
    assert!(prints("a %8.3 b", "a   59.088 b") && prints("a %8.3 b", "a        - b"));
    assert!(!prints("a %8.3 b", "a 59.088 b"), "too narrow");
    assert!(!prints("a %8.3 b", "a   59.08 b") && !prints("a %8.3 b", "a   59.088 c"));
    assert!(prints("n=%0.0 %S.", "n=4 a.b.") && !prints("n=%0.0 %S.", "n= 4 a."));
}

/// The genuine files are not part of the source; the variable names their directory.
#[test]
fn genuine_files_have_these_formats() {
    let Some(directory) = std::env::var_os("BEFF_GENUINE_SUMMARIES") else {
        println!("SKIPPED: BEFF_GENUINE_SUMMARIES does not name a directory with files that release 2.1 wrote");
        return;
    };
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(!texts.is_empty());
    for text in texts {
        // That build has an additional row of 32 bytes, and its M_PART is 2 MB.
        assert_eq!(difference(&text, 1, 8), None);
    }
}

#[test]
fn ours_has_them_line_by_line() {
    let result = fixtures::complete();
    assert_eq!(difference(&of(&result), result.partitions.len(), 7), None);
    let result = fixtures::interrupted();
    assert_eq!(difference(&of(&result), result.partitions.len(), 7), None);
}

#[test]
fn the_memory_is_the_one_that_was_used() {
    let mut result = fixtures::complete();
    result.config.memory_per_process_bytes = Some(2 << 30);
    let text = of(&result);
    assert!(text.contains("MEMORY_PER_PROCESSOR = 2048 MBytes"), "{text}");
    assert!(text.contains(", MT=8192 MBytes") && text.contains("of the total memory (8192 MBytes)"), "{text}");
    assert_eq!(text.matches("with 2048 MByte/PE").count(), 2 * result.partitions.len() + 1, "{text}");
}

/// As in the release: type 0 has weight two, and nothing else is rewritten.
#[test]
fn without_rewrite_its_average_is_that_of_type_0() {
    let mut result = fixtures::complete();
    let full = of(&result);
    result.config.full_rewrite = false;
    let text = of(&result);
    assert_eq!(difference(&text, result.partitions.len(), 7), None);
    let total = text.lines().find(|line| line.contains(" total-rewrite")).unwrap();
    let of_type_0 = total.split_whitespace().nth(3).unwrap();
    let average = text.lines().find(|line| line.starts_with("weighted average bandwidth for rewrite")).unwrap();
    assert!(of_type_0.parse::<f64>().unwrap() > 0.0);
    assert_eq!(average.split_whitespace().nth(6), Some(of_type_0), "{average}");
    assert!(!text.contains(", -rewrite") && full.contains(", -rewrite") && !full.contains(average));
}

#[test]
fn a_hints_file_is_named_as_the_release_named_it() {
    let mut result = fixtures::complete();
    for words in [vec!["beff-raw", "--hints", "list.info"], vec!["beff-raw", "--hints=list.info"]] {
        result.manifest.machine.command_line = words.into_iter().map(str::to_owned).collect();
        assert!(of(&result).contains(" MBytes -i list.info, -rewrite\n"));
    }
}
