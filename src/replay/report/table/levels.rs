//! Recorded beside replayed, a table for each level.

use crate::frame::report::columns::{mb, or_none};
use crate::frame::report::grid::Grid;
use crate::frame::report::text::{figure, Page};
use crate::replay::plan::names::shown;
use crate::replay::records::ReplayResult;
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
    let mut header = words(&["calls", "MB", "recorded s", "MB/s"]);
    for backend in backends {
        header.extend(words(&["|", &format!("{backend} s"), "MB/s", "ratio"]));
    }
    let mut grid = Grid::new(header, 9).named(name_of(kind));
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
    for row in all.iter().take(MOST) {
        let mut cells = vec![
            row.calls.to_string(),
            if row.recorded_bytes > 0 { figure(row.recorded_bytes as f64 / 1e6) } else { "-".to_owned() },
            seconds(row.recorded_seconds),
            mb(row.recorded_bytes_per_second, 10),
        ];
        for backend in backends {
            let level = of_kind.iter().find(|l| &l.backend == backend && same(l, row));
            cells.push("|".to_owned());
            cells.push(or_none(level.map(|l| seconds(l.replayed_seconds))));
            cells.push(mb(level.and_then(|l| l.replayed_bytes_per_second), 10));
            cells.push(or_none(level.and_then(|l| l.ratio).map(|r| format!("{r:.3}"))));
        }
        grid.line(cells, name(result, row));
    }
    grid.write(page);
    if all.len() > MOST {
        page.line(format!("... and {} more in PREFIX.csv and PREFIX.json of --out", all.len() - MOST));
    }
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

fn name(result: &ReplayResult, level: &Level) -> String {
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
