//! Results of one definition from different times: their numbers over the date, and the changes of the set-up between them.

use std::collections::{HashMap, HashSet};

use beff_statistics::run_rules::median;

use super::comparable::{ComparableRun, Fact, FactKind, Quantity, QuantityLevel, QuantityUnit};
use super::history::{facts, is_doubtful, numbers, set_up_change, SetUpChange};

/// Single lines that are selected.
const MAX_SELECTED: usize = 6;

/// A result of any benchmark and its file.
#[derive(Clone, Debug, PartialEq)]
pub struct DatedRun {
    /// Title of its benchmark.
    pub benchmark: &'static str,
    /// Its file.
    pub file: String,
    /// Its data.
    pub run: ComparableRun,
}

impl DatedRun {
    /// Start in seconds since 1970, UTC; None if the result has no such time, as those of other programs.
    #[must_use]
    pub fn start_seconds(&self) -> Option<i64> {
        self.run.started_utc.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
    }

    /// True if it is inconclusive itself: shared, cut, on storage that drifted, or with wrong data.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        is_doubtful(&self.run)
    }
}

/// Runs of one benchmark and definition, of which at least two began at different times.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSeries<'a> {
    /// In order of their start. Each run occurs once.
    pub runs: Vec<&'a DatedRun>,
    /// Their numbers.
    pub lines: Vec<SeriesLine<'a>>,
    /// The changes of the set-up, each with the index of the first run that has it.
    pub changes: Vec<(usize, SetUpChange)>,
    /// Facts of the definition by which it differs from other series of the benchmark.
    pub distinction: Vec<Fact>,
}

/// A number over time.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesLine<'a> {
    /// Aggregation level.
    pub level: QuantityLevel,
    /// Name, or row of its table.
    pub row: String,
    /// Column of its table; may be empty.
    pub column: &'a str,
    /// Backend; empty if there is none.
    pub backend: String,
    /// Ranks of the partition; 0 if there is only one partition.
    pub ranks: u64,
    /// Unit.
    pub unit: QuantityUnit,
    /// The run, if another one of the series started in the same second: its numbers are lines of their own.
    pub simultaneous: Option<usize>,
    /// The numbers, in the order of the runs; not every run has one.
    pub points: Vec<SeriesPoint>,
    /// True if one of them is based on few calls.
    pub few_calls: bool,
}

/// A number of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint {
    /// Index of the run.
    pub run: usize,
    /// The number.
    pub value: f64,
    /// Its 95 % interval within the run; None if unknown or too wide to be shown.
    pub interval: Option<[f64; 2]>,
}

impl TimeSeries<'_> {
    /// Name of the benchmark.
    #[must_use]
    pub fn benchmark(&self) -> &'static str {
        self.runs.first().map_or("", |run| run.benchmark)
    }

    /// Lines of a level that at least two runs have, and those of simultaneous runs.
    pub fn at_level(&self, level: QuantityLevel) -> impl Iterator<Item = &SeriesLine<'_>> {
        let is_drawn = |line: &&SeriesLine<'_>| line.points.len() > 1 || line.simultaneous.is_some();
        self.lines.iter().filter(move |line| line.level == level).filter(is_drawn)
    }

    /// The single lines that changed most: with the largest ratio of the medians of the later and the earlier half of their runs, in either
    /// direction. One odd run is no such change. Lines with few calls are left out.
    #[must_use]
    pub fn selected(&self) -> Vec<&SeriesLine<'_>> {
        let mut all: Vec<(f64, &SeriesLine<'_>)> = self
            .at_level(QuantityLevel::Detail)
            .filter(|line| !line.few_calls)
            .filter_map(|line| Some((line.lasting_change()?, line)))
            .collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(MAX_SELECTED);
        all.into_iter().map(|(_, line)| line).collect()
    }
}

impl SeriesLine<'_> {
    /// Distance of the logarithmic medians of both halves; None without finite values.
    fn lasting_change(&self) -> Option<f64> {
        let logs: Vec<f64> = self.points.iter().filter_map(|point| self.unit.log_speed(point.value)).collect();
        let (before, after) = logs.split_at(logs.len() / 2);
        let change = if before.is_empty() { None } else { Some((median(after) - median(before)).abs()) };
        change.filter(|change| change.is_finite())
    }
}

/// Names and values of the facts, sorted.
type Definition = Vec<(String, String)>;

/// The series among these results. Results without a date, and of definitions that no other has, are in none.
#[must_use]
pub fn series(all: &[DatedRun]) -> Vec<TimeSeries<'_>> {
    let mut groups: Vec<Vec<&DatedRun>> = Vec::new();
    let mut places: HashMap<(&str, Definition), usize> = HashMap::new();
    let mut known: HashSet<&str> = HashSet::new();
    for run in all.iter().filter(|run| run.start_seconds().is_some()) {
        // PREFIX.json and PREFIX.jsonl are one run.
        if !known.insert(&run.run.identity) {
            continue;
        }
        let own = facts(&run.run, FactKind::Definition);
        let mut definition: Definition = own.into_iter().map(|fact| (fact.name, fact.value)).collect();
        definition.sort();
        let place = *places.entry((run.benchmark, definition)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups.retain(|group| group.iter().any(|run| run.start_seconds() != group[0].start_seconds()));
    let firsts: Vec<&DatedRun> = groups.iter().map(|group| group[0]).collect();
    groups.into_iter().map(|group| one_series(group, &firsts)).collect()
}

fn one_series<'a>(mut runs: Vec<&'a DatedRun>, firsts: &[&DatedRun]) -> TimeSeries<'a> {
    let own = facts(&runs[0].run, FactKind::Definition);
    let others: Vec<Vec<Fact>> = firsts
        .iter()
        .filter(|first| first.benchmark == runs[0].benchmark)
        .map(|first| facts(&first.run, FactKind::Definition))
        .collect();
    let distinction = own.into_iter().filter(|fact| others.iter().any(|other| !other.contains(fact))).collect();
    runs.sort_by_key(|run| run.start_seconds());
    let change = |at: usize| Some((at, set_up_change(&runs[at - 1].run, &runs[at].run)?));
    let changes = (1..runs.len()).filter_map(change).collect();
    let starts: Vec<Option<i64>> = runs.iter().map(|run| run.start_seconds()).collect();
    let simultaneous =
        |run: usize| starts.iter().enumerate().any(|(n, start)| n.abs_diff(run) == 1 && *start == starts[run]);
    let simultaneous: Vec<Option<usize>> =
        (0..runs.len()).map(|run| Some(run).filter(|run| simultaneous(*run))).collect();
    let mut lines = lines(&runs, &simultaneous);
    if lines.iter().all(|line| line.level != QuantityLevel::Value) {
        lines.extend(mean_lines(&runs, &simultaneous));
    }
    TimeSeries { lines, changes, distinction, runs }
}

/// All quantities by their names, in the order of their first run.
fn lines<'a>(runs: &[&'a DatedRun], simultaneous: &[Option<usize>]) -> Vec<SeriesLine<'a>> {
    type Key<'a> = (QuantityLevel, &'a str, u64, &'a str, &'a str, &'static str, Option<usize>);
    let mut places: HashMap<Key<'a>, usize> = HashMap::new();
    let mut lines: Vec<SeriesLine<'a>> = Vec::new();
    for (run, dated) in runs.iter().enumerate() {
        for q in &dated.run.quantities {
            let key = (q.level, &*q.backend, q.ranks, &*q.row, &*q.column, q.unit.name(), simultaneous[run]);
            let place = *places.entry(key).or_insert(lines.len());
            if place == lines.len() {
                lines.push(empty_line(q, simultaneous[run]));
            }
            let line = &mut lines[place];
            // A damaged file may have a number twice.
            if line.points.last().is_none_or(|last| last.run != run) {
                line.points.push(SeriesPoint { run, value: q.value, interval: q.interval });
                line.few_calls |= q.context.few_calls;
            }
        }
    }
    lines
}

fn empty_line(q: &Quantity, simultaneous: Option<usize>) -> SeriesLine<'_> {
    SeriesLine {
        level: q.level,
        row: q.row.clone(),
        column: &q.column,
        backend: q.backend.clone(),
        ranks: q.ranks,
        unit: q.unit,
        simultaneous,
        points: Vec::new(),
        few_calls: false,
    }
}

/// For a benchmark without a value the numbers that a gate judges: geometric means over its means.
fn mean_lines<'a>(runs: &[&DatedRun], simultaneous: &[Option<usize>]) -> Vec<SeriesLine<'a>> {
    let mut lines: Vec<SeriesLine<'a>> = Vec::new();
    for (run, dated) in runs.iter().enumerate() {
        for (key, value) in numbers(&dated.run) {
            let own = (&key.name, &key.backend, key.unit, simultaneous[run]);
            let is_it = |line: &&mut SeriesLine<'_>| (&line.row, &line.backend, line.unit, line.simultaneous) == own;
            let point = SeriesPoint { run, value, interval: None };
            match lines.iter_mut().find(is_it) {
                Some(line) => line.points.push(point),
                None => lines.push(SeriesLine {
                    level: QuantityLevel::Value,
                    row: key.name,
                    column: "",
                    backend: key.backend,
                    ranks: 0,
                    unit: key.unit,
                    simultaneous: simultaneous[run],
                    points: vec![point],
                    few_calls: false,
                }),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::values::comparable::MeasurementContext;

    /// A run of a day with its ranks, kernel, value, and one pattern.
    fn run(day: u32, ranks: &str, kernel: &str, value: f64, pattern: f64) -> DatedRun {
        let of = |level, row: &str, value| Quantity::new(level, row, "", QuantityUnit::MegabytesPerSecond, value);
        DatedRun {
            benchmark: "b_eff_io",
            file: format!("{day}.json"),
            run: ComparableRun {
                identity: format!("{day} {ranks}"),
                started_utc: format!("2026-11-{day:02}T03:00:00Z"),
                troubles: Vec::new(),
                doubts: Vec::new(),
                is_corrupt: false,
                facts: vec![
                    Fact::new(FactKind::Definition, "ranks", ranks),
                    Fact::new(FactKind::SetUp, "kernel", kernel),
                ],
                quantities: vec![
                    of(QuantityLevel::Value, "value", value).with_interval(Some([value * 0.9, value * 1.1])),
                    of(QuantityLevel::Detail, "pattern", pattern),
                    Quantity {
                        context: MeasurementContext { few_calls: true, ..MeasurementContext::default() },
                        ..of(QuantityLevel::Detail, "few", pattern * 9.0)
                    },
                ],
            },
        }
    }

    #[test]
    fn runs_of_one_definition_are_a_series_in_order_of_their_start() {
        let mut all = vec![
            run(3, "4", "6.12", 90.0, 50.0),
            run(1, "4", "6.1", 100.0, 10.0),
            run(9, "8", "6.1", 7.0, 1.0),
            run(2, "4", "6.1", 101.0, 10.0),
        ];
        all.push(DatedRun { file: "1.jsonl".into(), ..all[1].clone() });
        let found = series(&all);
        assert_eq!(found.len(), 1, "one run of another definition is no series");
        let files: Vec<&str> = found[0].runs.iter().map(|run| run.file.as_str()).collect();
        assert_eq!(files, ["1.json", "2.json", "3.json"], "the journal is the same run");
        let value = found[0].at_level(QuantityLevel::Value).next().unwrap();
        let points: Vec<(usize, f64)> = value.points.iter().map(|p| (p.run, p.value)).collect();
        assert_eq!(points, [(0, 100.0), (1, 101.0), (2, 90.0)]);
        assert_eq!(value.points[0].interval, Some([90.0, 110.00000000000001]));
        let [(at, change)] = found[0].changes.as_slice() else { panic!("{:?}", found[0].changes) };
        assert_eq!((*at, change.facts.len(), change.facts[0].name.as_str()), (2, 1, "kernel"));
        let selected: Vec<&str> = found[0].selected().iter().map(|line| line.row.as_str()).collect();
        assert_eq!(selected, ["pattern"], "few calls are left out");
        assert_eq!(found[0].distinction, []);
    }

    /// Runs of one second are no points above each other.
    #[test]
    fn simultaneous_runs_are_lines_of_their_own() {
        let other = |run: DatedRun| DatedRun {
            run: ComparableRun { identity: "other".into(), ..run.run },
            file: "other".into(),
            ..run
        };
        let all = [
            run(1, "4", "a", 1.0, 1.0),
            run(2, "4", "a", 2.0, 1.0),
            other(run(2, "4", "a", 3.0, 1.0)),
            run(3, "4", "a", 4.0, 1.0),
        ];
        let found = series(&all);
        let lines: Vec<(Option<usize>, Vec<f64>)> = found[0]
            .at_level(QuantityLevel::Value)
            .map(|line| (line.simultaneous, line.points.iter().map(|p| p.value).collect()))
            .collect();
        assert_eq!(lines, [(None, vec![1.0, 4.0]), (Some(1), vec![2.0]), (Some(2), vec![3.0])]);
    }

    #[test]
    fn series_are_told_apart_by_their_definitions() {
        let all = [
            run(1, "4", "6.1", 1.0, 1.0),
            run(2, "4", "6.1", 1.0, 1.0),
            run(3, "8", "6.1", 1.0, 1.0),
            run(4, "8", "6.1", 1.0, 1.0),
        ];
        let ranks: Vec<String> = series(&all).iter().map(|s| s.distinction[0].value.clone()).collect();
        assert_eq!(ranks, ["4", "8"]);
    }

    #[test]
    fn what_has_one_date_or_none_is_no_series() {
        let same = DatedRun {
            run: ComparableRun { identity: "other".into(), ..run(1, "4", "a", 1.0, 1.0).run },
            ..run(1, "4", "a", 1.0, 1.0)
        };
        assert_eq!(series(&[run(1, "4", "a", 1.0, 1.0), same.clone()]), []);
        let mut undated = same;
        undated.run.started_utc = "Mon Nov 30 2001".into();
        assert_eq!(series(&[run(1, "4", "a", 1.0, 1.0), undated]), []);
        assert_eq!(series(&[]), []);
    }

    /// One odd night does not make a line the most changed one.
    #[test]
    fn the_lines_that_changed_for_good_are_selected_first() {
        let mut all: Vec<DatedRun> =
            (1..=8).map(|day| run(day, "4", "a", 1.0, if day > 4 { 8.0 } else { 10.0 })).collect();
        for (n, night) in all.iter_mut().enumerate() {
            let odd = if n == 2 { 900.0 } else { 10.0 };
            let quantity =
                |row: &str, value| Quantity::new(QuantityLevel::Detail, row, "", QuantityUnit::Microseconds, value);
            night.run.quantities.extend([quantity("odd", odd), quantity("zero", 0.0), quantity("nan", f64::NAN)]);
        }
        let found = series(&all);
        let selected: Vec<&str> = found[0].selected().iter().map(|line| line.row.as_str()).collect();
        assert_eq!(selected, ["pattern", "odd"], "without a logarithm there is no change");
    }

    #[test]
    fn without_values_there_are_the_means_that_a_gate_judges() {
        let mut all = [run(1, "4", "a", 1.0, 1.0), run(2, "4", "a", 1.0, 1.0)];
        for night in &mut all {
            let group =
                |row: &str, value| Quantity::new(QuantityLevel::Group, row, "mean", QuantityUnit::Microseconds, value);
            night.run.quantities = vec![group("a", 2.0), group("b", 8.0)];
        }
        let found = series(&all);
        let lines: Vec<(&str, f64)> =
            found[0].at_level(QuantityLevel::Value).map(|l| (l.row.as_str(), l.points[1].value)).collect();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].0 == "geometric mean of 2" && (lines[0].1 - 4.0).abs() < 1e-9, "{lines:?}");
    }
}
