//! PREFIX.csv of b_eff: one row for each pattern, size, method and repetition of the definition, with the interval of the pattern.

use crate::b_eff::records::{CommPatternRecord, CommResult, LoopRecord, SizeRecord};
use crate::b_eff::values::{bytes_per_second, CommDerived, RateEstimate};
use crate::frame::report::csv::{csv_table, Column, CsvCell, RunColumns};

struct LoopRow<'a> {
    pattern: &'a CommPatternRecord,
    message_bytes: u64,
    loop_record: &'a LoopRecord,
    ranks: u64,
    is_best_repetition: bool,
    is_best: bool,
    /// S of single repetitions of the pattern, further ones included.
    repeated: Option<RateEstimate>,
}

fn columns<'r>() -> [Column<LoopRow<'r>>; 18] {
    [
        ("pattern", |r| (&r.pattern.pattern).into()),
        ("family", |r| CsvCell::word(r.pattern.family)),
        ("shape", |r| (&r.pattern.shape).into()),
        ("messages", |r| r.pattern.messages.into()),
        ("message_bytes", |r| r.message_bytes.into()),
        ("method", |r| CsvCell::word(r.loop_record.method)),
        ("repetition", |r| r.loop_record.repetition.into()),
        ("iterations", |r| r.loop_record.iterations.into()),
        ("seconds", |r| r.loop_record.seconds.into()),
        ("seconds_per_iteration", |r| {
            let iterations = r.loop_record.iterations;
            (iterations > 0).then(|| r.loop_record.seconds / iterations as f64).into()
        }),
        ("mb_per_second", |r| r.mb_per_second().into()),
        ("mb_per_second_per_process", |r| r.mb_per_second().map(|rate| rate / r.ranks.max(1) as f64).into()),
        ("best_repetition", |r| r.is_best_repetition.into()),
        ("best", |r| r.is_best.into()),
        ("pattern_repetitions", |r| r.repeated.map(|s| s.repetitions).into()),
        ("pattern_mean_mb_per_second", |r| r.repeated.map(|s| s.mean_bytes_per_second / 1e6).into()),
        ("pattern_low_mb_per_second", |r| r.interval_end(0).into()),
        ("pattern_high_mb_per_second", |r| r.interval_end(1).into()),
    ]
}

impl LoopRow<'_> {
    fn mb_per_second(&self) -> Option<f64> {
        bytes_per_second(self.message_bytes, self.pattern.messages, self.loop_record).map(|rate| rate / 1e6)
    }

    /// An end of the interval of S, 1e6 bytes per second.
    fn interval_end(&self, which: usize) -> Option<f64> {
        self.repeated.and_then(|s| s.interval_bytes_per_second).map(|ends| ends[which] / 1e6)
    }
}

/// The table as UTF-8 bytes.
///
/// # Errors
/// An error of the csv writer.
pub fn csv(result: &CommResult, derived: &CommDerived) -> Result<Vec<u8>, ::csv::Error> {
    let mut rows = Vec::new();
    for (pattern, curve) in result.patterns.iter().zip(&derived.curves) {
        for (index, size) in pattern.sizes.iter().enumerate() {
            let best = best_loops(pattern, size);
            let best_method = curve.points.get(index).map(|p| p.best_method);
            rows.extend(size.loops.iter().enumerate().map(|(number, of_loop)| LoopRow {
                pattern,
                message_bytes: size.message_bytes,
                loop_record: of_loop,
                ranks: result.setup.machine.ranks,
                is_best_repetition: best.contains(&number),
                is_best: best.contains(&number) && best_method == Some(of_loop.method),
                repeated: curve.repeated,
            }));
        }
    }
    csv_table(&RunColumns::new(&result.setup.machine, result.config.out.as_deref(), ""), &columns(), rows)
}

/// Indices of the best loop of each method; the first of equal ones.
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
    use crate::frame::report::csv::read_csv;

    /// Rows of two patterns; all digits are reproducible.
    #[test]
    fn golden_rows() {
        let mut result = fixtures::failed();
        result.patterns.truncate(2);
        let derived = crate::b_eff::values::derive(&result);
        let bytes = csv(&result, &derived).unwrap();
        insta::assert_snapshot!("failed.csv", String::from_utf8(bytes).unwrap());
    }

    #[test]
    fn each_size_of_a_pattern_has_one_best_loop_and_its_rate_is_that_of_the_curve() {
        for (name, result, derived) in fixtures::all() {
            let (column, rows) = read_csv(&csv(&result, &derived).unwrap());
            let loops: usize = result.patterns.iter().flat_map(|p| &p.sizes).map(|s| s.loops.len()).sum();
            assert_eq!(rows.len(), loops, "{name}");
            let best = rows.iter().filter(|r| &r[column("best")] == "true");
            let rates: Vec<f64> = best.map(|r| r[column("mb_per_second")].parse().unwrap()).collect();
            let points = derived.curves.iter().flat_map(|c| &c.points);
            assert_eq!(rates, points.map(|p| p.bytes_per_second / 1e6).collect::<Vec<_>>(), "{name}");
        }
    }
}
