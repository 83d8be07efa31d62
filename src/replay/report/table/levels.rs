//! Recorded beside replayed, a table for each level.

use crate::frame::report::columns::{mb, or_none};
use crate::frame::report::grid::Grid;
use crate::frame::report::text::{figure, Page};
use crate::replay::plan::names::shown;
use crate::replay::records::{PassEnd, ReplayResult};
use crate::replay::values::{Level, LevelKind, Part, ReplayDerived};

/// Rows of a table that can be long.
const MOST: usize = 40;

pub(super) fn write(page: &mut Page, result: &ReplayResult, derived: &ReplayDerived, kind: LevelKind) {
    let of_kind: Vec<&Level> = derived.levels.iter().filter(|l| l.level == kind).collect();
    if of_kind.is_empty() {
        return;
    }
    page.heading(title(kind));
    let backends = &result.config.backends;
    let first = backends.first().map_or("", String::as_str);
    let rows: Vec<&Level> = of_kind.iter().copied().filter(|l| l.backend == first).collect();
    // Rows that only other backends have, because the first one leaves their calls out.
    let others = of_kind.iter().copied().filter(|l| l.backend != first && !rows.iter().any(|r| same(r, l)));
    let mut all = rows.clone();
    for level in others {
        if !all.iter().any(|known| same(known, level)) {
            all.push(level);
        }
    }
    let of_backend =
        |backend: &String, row: &Level| of_kind.iter().copied().find(|l| &l.backend == backend && same(l, row));
    let shown = &all[..all.len().min(MOST)];
    let grid = match backends.as_slice() {
        [backend] => side_by_side(result, kind, backend, shown),
        _ => below_each_other(result, kind, shown, &of_backend),
    };
    grid.write(page);
    if kind == LevelKind::Run && backends.iter().any(|backend| is_not_run(result, backend)) {
        page.line("x not run, see the warnings");
    }
    if all.len() > MOST {
        page.line(format!("... and {} more in PREFIX.csv and PREFIX.json of --out", all.len() - MOST));
    }
}

/// One backend: then and now in one line.
fn side_by_side(result: &ReplayResult, kind: LevelKind, backend: &str, rows: &[&Level]) -> Grid {
    let header = ["calls", "MB", "recorded s", "MB/s", "|", &format!("{backend} s"), "MB/s", "ratio"];
    let mut grid = Grid::new(words(&header), 9).named(name_of(kind));
    for row in rows {
        let mut cells = recorded(row);
        cells.push("|".to_owned());
        cells.extend(replayed(Some(row)));
        grid.line(cells, name(result, row));
    }
    grid
}

/// Several: a line for what was recorded, and one below it for each backend, so that any number fits the page.
fn below_each_other<'a>(
    result: &ReplayResult,
    kind: LevelKind,
    rows: &[&Level],
    of_backend: &dyn Fn(&String, &Level) -> Option<&'a Level>,
) -> Grid {
    let header = ["calls", "MB", "seconds", "MB/s", "ratio"];
    let mut grid = Grid::new(words(&header), 9).named(name_of(kind));
    for row in rows {
        let mut cells = recorded(row);
        cells.push("-".to_owned());
        grid.line(cells, format!("{}: recorded", name(result, row)));
        for backend in &result.config.backends {
            let level = of_backend(backend, row);
            let mut cells = vec![or_none(level.map(|l| l.calls)), String::new()];
            cells.extend(replayed(level));
            let mark = if is_not_run(result, backend) { " x" } else { "" };
            grid.line(cells, format!("  {backend}{mark}"));
        }
    }
    grid
}

fn is_not_run(result: &ReplayResult, backend: &str) -> bool {
    result.passes.iter().any(|p| p.backend == backend && matches!(p.ended, PassEnd::NotRun(_)))
}

fn recorded(row: &Level) -> Vec<String> {
    vec![
        row.calls.to_string(),
        if row.recorded_bytes > 0 { figure(row.recorded_bytes as f64 / 1e6) } else { "-".to_owned() },
        seconds(row.recorded_seconds),
        mb(row.recorded_bytes_per_second, 10),
    ]
}

fn replayed(level: Option<&Level>) -> [String; 3] {
    [
        or_none(level.map(|l| seconds(l.replayed_seconds))),
        mb(level.and_then(|l| l.replayed_bytes_per_second), 10),
        or_none(level.and_then(|l| l.ratio).map(|r| format!("{r:.3}"))),
    ]
}

fn title(kind: LevelKind) -> &'static str {
    match kind {
        LevelKind::Run => "How fast: all calls, time summed over the processes",
        LevelKind::File => "By file",
        LevelKind::Function => "By class of function",
        LevelKind::Process => "By process",
    }
}

fn name_of(kind: LevelKind) -> &'static str {
    match kind {
        LevelKind::Run => "calls",
        LevelKind::File => "file",
        LevelKind::Function => "class",
        LevelKind::Process => "process",
    }
}

fn same(a: &Level, b: &Level) -> bool {
    (a.file, a.class, a.rank, a.part) == (b.file, b.class, b.rank, b.part)
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.6}")
}

pub(in crate::replay::report) fn name(result: &ReplayResult, level: &Level) -> String {
    let part = match level.part {
        Part::Reads => "reads",
        Part::Writes => "writes",
        Part::All => "all",
    };
    match level.level {
        LevelKind::Run => part.to_owned(),
        LevelKind::Function => level.class.map_or("", |class| class.name()).to_owned(),
        LevelKind::Process => format!("{} {part}", or_none(level.rank)),
        LevelKind::File => {
            let known = |n: u64| result.setup.profile.files.get(usize::try_from(n).ok()?.checked_sub(1)?);
            let path = level.file.map_or("of no file".to_owned(), |n| {
                // The end of a path tells more than its begin.
                let path = known(n).map_or(String::new(), |f| shown(&f.path, 4096));
                let all: Vec<char> = path.chars().collect();
                all[all.len().saturating_sub(24)..].iter().collect()
            });
            format!("{path} {part}")
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
