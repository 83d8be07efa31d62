//! PREFIX.csv of b_eff: one row for each pattern, size, method and repetition of the definition, with what the repeats tell of the pattern.

use crate::b_eff::records::{CommPatternRecord, CommResult, LoopRecord, SizeRecord};
use crate::b_eff::values::{bytes_per_second, CommDerived, RepeatedRate};
use crate::frame::report::csv::{table, Cell, Column, Origin};

/// What a row is made of.
struct Row<'a> {
    pattern: &'a CommPatternRecord,
    message_bytes: u64,
    of_loop: &'a LoopRecord,
    ranks: u64,
    is_best_repetition: bool,
    is_best: bool,
    /// S of single repetitions of the pattern, repeats included.
    repeated: Option<RepeatedRate>,
}

fn columns<'r>() -> [Column<Row<'r>>; 18] {
    [
        ("pattern", |r| (&r.pattern.pattern).into()),
        ("family", |r| Cell::word(r.pattern.family)),
        ("shape", |r| (&r.pattern.shape).into()),
        ("messages", |r| r.pattern.messages.into()),
        ("message_bytes", |r| r.message_bytes.into()),
        ("method", |r| Cell::word(r.of_loop.method)),
        ("repetition", |r| r.of_loop.repetition.into()),
        ("iterations", |r| r.of_loop.iterations.into()),
        ("seconds", |r| r.of_loop.seconds.into()),
        ("seconds_per_iteration", |r| {
            let iterations = r.of_loop.iterations;
            (iterations > 0).then(|| r.of_loop.seconds / iterations as f64).into()
        }),
        ("mb_per_second", |r| r.mb_per_second().into()),
        ("mb_per_second_per_process", |r| r.mb_per_second().map(|rate| rate / r.ranks.max(1) as f64).into()),
        ("best_repetition", |r| r.is_best_repetition.into()),
        ("best", |r| r.is_best.into()),
        ("pattern_repetitions", |r| r.repeated.map(|s| s.repetitions).into()),
        ("pattern_mean_mb_per_second", |r| r.repeated.map(|s| s.mean_bytes_per_second / 1e6).into()),
        ("pattern_low_mb_per_second", |r| r.end(0).into()),
        ("pattern_high_mb_per_second", |r| r.end(1).into()),
    ]
}

impl Row<'_> {
    fn mb_per_second(&self) -> Option<f64> {
        bytes_per_second(self.message_bytes, self.pattern.messages, self.of_loop).map(|rate| rate / 1e6)
    }

    /// An end of the interval of S, 1e6 bytes per second.
    fn end(&self, which: usize) -> Option<f64> {
        self.repeated.and_then(|s| s.interval_bytes_per_second).map(|ends| ends[which] / 1e6)
    }
}

/// The table as UTF-8 bytes.
///
/// # Errors
/// What the csv writer reports.
pub fn csv(result: &CommResult, derived: &CommDerived) -> Result<Vec<u8>, ::csv::Error> {
    let mut rows = Vec::new();
    for (pattern, curve) in result.patterns.iter().zip(&derived.curves) {
        for (index, size) in pattern.sizes.iter().enumerate() {
            let best = best_loops(pattern, size);
            let best_method = curve.points.get(index).map(|p| p.best_method);
            rows.extend(size.loops.iter().enumerate().map(|(number, of_loop)| Row {
                pattern,
                message_bytes: size.message_bytes,
                of_loop,
                ranks: result.setup.machine.ranks,
                is_best_repetition: best.contains(&number),
                is_best: best.contains(&number) && best_method == Some(of_loop.method),
                repeated: curve.repeated,
            }));
        }
    }
    table(&Origin::new(&result.setup.machine, result.config.out.as_deref(), ""), &columns(), rows)
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
    use crate::frame::report::csv::read;

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
    fn each_size_of_a_pattern_has_one_best_loop_and_its_rate_is_that_of_the_curve() {
        for (name, result, derived) in fixtures::all() {
            let (column, rows) = read(&csv(&result, &derived).unwrap());
            let loops: usize = result.patterns.iter().flat_map(|p| &p.sizes).map(|s| s.loops.len()).sum();
            assert_eq!(rows.len(), loops, "{name}");
            let best = rows.iter().filter(|r| &r[column("best")] == "true");
            let rates: Vec<f64> = best.map(|r| r[column("mb_per_second")].parse().unwrap()).collect();
            let points = derived.curves.iter().flat_map(|c| &c.points);
            assert_eq!(rates, points.map(|p| p.bytes_per_second / 1e6).collect::<Vec<_>>(), "{name}");
        }
    }
}
