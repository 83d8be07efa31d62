//! PREFIX.csv of b_eff: one row for each pattern, size, method and repetition. Units are in the column names.

use serde::Serialize;

use crate::b_eff::records::{CommPatternRecord, CommResult, LoopRecord, SizeRecord};
use crate::b_eff::values::{bytes_per_second, CommDerived};

/// One row; the names of the fields are the header of the table.
#[derive(Serialize)]
struct Row<'a> {
    pattern: &'a str,
    family: crate::b_eff::plan::Family,
    shape: &'a str,
    messages: u64,
    message_bytes: u64,
    method: crate::b_eff::records::Method,
    repetition: u32,
    iterations: u64,
    seconds: f64,
    seconds_per_iteration: Option<f64>,
    mb_per_second: Option<f64>,
    mb_per_second_per_process: Option<f64>,
    best_repetition: bool,
    best: bool,
}

/// Column names in order; written by hand so that an empty run has its header too. A test holds it against the rows.
const HEADER: [&str; 14] = [
    "pattern",
    "family",
    "shape",
    "messages",
    "message_bytes",
    "method",
    "repetition",
    "iterations",
    "seconds",
    "seconds_per_iteration",
    "mb_per_second",
    "mb_per_second_per_process",
    "best_repetition",
    "best",
];

/// The whole table as UTF-8 bytes, header first; the header alone if nothing was measured.
///
/// # Errors
/// What the csv writer reports.
pub fn csv(result: &CommResult, derived: &CommDerived) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for (record, curve) in result.patterns.iter().zip(&derived.curves) {
        for (index, size) in record.sizes.iter().enumerate() {
            let best = best_loops(record, size);
            let best_method = curve.points.get(index).map(|p| p.best_method);
            for (number, one) in size.loops.iter().enumerate() {
                let is_best = best.contains(&number);
                writer.serialize(Row {
                    best_repetition: is_best,
                    best: is_best && best_method == Some(one.method),
                    ..row(result, record, size, one)
                })?;
            }
        }
    }
    writer.into_inner().map_err(|e| ::csv::Error::from(e.into_error()))
}

fn row<'a>(result: &CommResult, record: &'a CommPatternRecord, size: &SizeRecord, one: &LoopRecord) -> Row<'a> {
    let rate = bytes_per_second(size.message_bytes, record.messages, one).map(|rate| rate / 1e6);
    Row {
        pattern: &record.pattern,
        family: record.family,
        shape: &record.shape,
        messages: record.messages,
        message_bytes: size.message_bytes,
        method: one.method,
        repetition: one.repetition,
        iterations: one.iterations,
        seconds: one.seconds,
        seconds_per_iteration: (one.iterations > 0).then(|| one.seconds / one.iterations as f64),
        mb_per_second: rate,
        mb_per_second_per_process: rate.map(|rate| rate / result.setup.machine.ranks.max(1) as f64),
        best_repetition: false,
        best: false,
    }
}

/// Positions of the best loop of each method; of equals the first.
fn best_loops(record: &CommPatternRecord, size: &SizeRecord) -> Vec<usize> {
    let rate = |one: &LoopRecord| bytes_per_second(size.message_bytes, record.messages, one);
    let mut best: Vec<usize> = Vec::new();
    for (number, one) in size.loops.iter().enumerate().filter(|(_, one)| rate(one).is_some()) {
        match best.iter_mut().find(|known| size.loops[**known].method == one.method) {
            None => best.push(number),
            Some(known) if rate(one) > rate(&size.loops[*known]) => *known = number,
            Some(_) => {}
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::report::fixtures;

    /// Rows of one pattern; the last digits of sums depend on nothing, so they are shown as they are.
    #[test]
    fn golden_rows() {
        let mut result = fixtures::failed();
        result.patterns.truncate(2);
        let derived = crate::b_eff::values::derive(&result);
        let bytes = csv(&result, &derived).unwrap();
        insta::assert_snapshot!("failed.csv", String::from_utf8(bytes).unwrap());
    }

    #[test]
    fn the_header_names_the_fields_of_a_row() {
        let result = fixtures::complete();
        let (record, size) = (&result.patterns[0], &result.patterns[0].sizes[0]);
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.serialize(row(&result, record, size, &size.loops[0])).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        assert_eq!(text.lines().next().unwrap(), HEADER.join(","));
    }

    #[test]
    fn each_size_of_a_pattern_has_one_best_loop_and_its_rate_is_that_of_the_curve() {
        for (name, result, derived) in fixtures::all() {
            let bytes = csv(&result, &derived).unwrap();
            let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
            let column = |name: &str| HEADER.iter().position(|h| *h == name).unwrap();
            let rows: Vec<::csv::StringRecord> = reader.records().map(|r| r.unwrap()).collect();
            let loops: usize = result.patterns.iter().flat_map(|p| &p.sizes).map(|s| s.loops.len()).sum();
            assert_eq!(rows.len(), loops, "{name}");
            let best = rows.iter().filter(|r| &r[column("best")] == "true");
            let rates: Vec<f64> = best.map(|r| r[column("mb_per_second")].parse().unwrap()).collect();
            let points = derived.curves.iter().flat_map(|c| &c.points);
            assert_eq!(rates, points.map(|p| p.bytes_per_second / 1e6).collect::<Vec<_>>(), "{name}");
        }
    }
}
