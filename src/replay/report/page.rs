//! A replay as a page for a browser: how fast beside the recorded run, where the time went then and now, every level, and what must be
//! known of them.

use crate::frame::report::columns::{mb, or_none};
use crate::frame::report::ending;
use crate::frame::report::html::stacks::{self, Bar};
use crate::frame::report::html::{facts, Block, Finding, Headline, Picture, Run, Section, Table, Tone};
use crate::frame::report::text::{count, figure, percent};
use crate::frame::units::format_seconds;
use crate::replay::plan::CallClass;
use crate::replay::records::ReplayResult;
use crate::replay::values::{Level, LevelKind, Part, ReplayDerived, VerdictKind};

use super::comparable;
use super::table::{header, levels};

/// Classes with a colour; the others are one part.
const CLASSES: usize = 7;
/// Rows of a table; the others are in the records.
const ROWS: usize = 2000;

/// The page of one replay.
#[must_use]
pub(super) fn page(result: &ReplayResult, derived: &ReplayDerived) -> Run {
    let (machine, storage) = (&result.setup.machine, &result.setup.storage);
    let profile = &result.setup.profile;
    let found = &derived.verdict;
    let share = found.checked_share.map_or_else(|| "nothing".to_owned(), percent);
    let mut trust = vec![format!("{share} of what was read compared, {} wrong", count(found.bytes_wrong, "byte"))];
    trust.extend(derived.warnings.iter().map(|w| w.cause.clone()));
    let findings = vec![
        Finding { title: "What was replayed", texts: vec![header::profile(profile), header::content(profile)] },
        Finding { title: "What to trust", texts: trust },
    ];
    let kinds = [LevelKind::Function, LevelKind::File, LevelKind::Process].map(|kind| level(result, derived, kind));
    let own = [Some(level(result, derived, LevelKind::Run)), time(result, derived)].into_iter().chain(kinds.map(Some));
    let common = [facts::warnings(result, derived), facts::set_up(&comparable::facts(result))];
    Run {
        benchmark: "replay",
        title: facts::title("replay", machine, Some(storage)),
        facts: facts::line(machine, Some(storage), result.ending.outcome, result.ending.real_seconds),
        alarms: facts::alarms(result, "WRONG DATA: bytes read were not what the profile says must be there."),
        headlines: result.config.backends.iter().take(ROWS).map(|b| headline(result, derived, b)).collect(),
        findings,
        sections: own.flatten().filter(|s| !s.blocks.is_empty()).chain(common).collect(),
    }
}

fn headline(result: &ReplayResult, derived: &ReplayDerived, backend: &str) -> Headline {
    let of = |part: Part| {
        let is = |l: &&Level| l.level == LevelKind::Run && l.part == part && l.backend == backend;
        derived.levels.iter().find(is)
    };
    let ratio = of(Part::All).and_then(|l| l.ratio);
    let found = &derived.verdict;
    let (tone, words) = match found.verdict {
        VerdictKind::AsRecorded => (Tone::Good, "as recorded"),
        VerdictKind::NotAsRecorded => (Tone::Bad, "NOT all as recorded"),
        VerdictKind::NotComplete => (Tone::Bad, "NOT complete"),
        VerdictKind::WrongData => (Tone::Bad, "WRONG DATA"),
    };
    let (crowded, outcome) = (ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome));
    let numbers = [("reads", Part::Reads), ("writes", Part::Writes)]
        .into_iter()
        .filter_map(|(name, part)| Some((name.to_owned(), format!("{:.3} of recorded", of(part)?.ratio?))));
    Headline {
        label: format!("{backend}, speed of the recorded run"),
        value: ratio.map_or_else(|| "not measured".into(), |r| format!("{r:.3}")),
        unit: if ratio.is_some() { "times" } else { "" },
        verdict: Some((tone, format!("{words}{crowded}{outcome}"))),
        numbers: numbers.collect(),
    }
}

/// The time of each class, then and now.
fn time(result: &ReplayResult, derived: &ReplayDerived) -> Option<Section> {
    let all: Vec<&Level> = derived.levels.iter().filter(|l| l.level == LevelKind::Function).collect();
    let seconds = |of: &dyn Fn(&Level) -> f64, is: &dyn Fn(&Level) -> bool| {
        all.iter().filter(|l| is(l)).map(|l| of(l)).filter(|s| s.is_finite()).sum::<f64>()
    };
    let mut classes: Vec<CallClass> = all.iter().filter_map(|l| l.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let weight = |c: CallClass| seconds(&|l| l.recorded_seconds + l.replayed_seconds, &|l| l.class == Some(c));
    classes.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)));
    let named = &classes[..classes.len().min(CLASSES)];
    let mut names: Vec<&str> = named.iter().map(|c| c.name()).collect();
    names.push("others");
    let styled: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
    let bar = |name: &str, of: &dyn Fn(&Level) -> f64, backend: &str| {
        let is_of = |l: &Level| l.backend == backend;
        let mut parts: Vec<f64> = named.iter().map(|c| seconds(of, &|l| is_of(l) && l.class == Some(*c))).collect();
        let others = seconds(of, &|l| is_of(l) && !l.class.is_some_and(|c| named.contains(&c)));
        parts.push(others);
        (name.to_owned(), parts)
    };
    let first = result.config.backends.first()?;
    let mut bars = vec![bar("recorded", &|l| l.recorded_seconds, first)];
    bars.extend(result.config.backends.iter().take(CLASSES).map(|b| bar(b, &|l| l.replayed_seconds, b)));
    let total = |parts: &[f64]| parts.iter().sum::<f64>();
    let longest = bars.iter().map(|(_, parts)| total(parts)).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let mut table =
        Table::new("Seconds, summed over the processes", 1, ["of"].into_iter().chain(names.iter().copied()));
    for (name, parts) in &bars {
        table.row([name.clone()].into_iter().chain(parts.iter().map(|s| format!("{s:.6}"))));
    }
    let drawn: Vec<Bar> = bars.iter().map(|(name, parts)| drawn(name, &names, parts)).collect();
    let said = "Seconds of each class of functions, recorded and replayed".to_owned();
    let picture = Picture {
        name: "time".into(),
        title: "Time in calls, by class of function".into(),
        keys: names.iter().enumerate().map(|(part, name)| stacks::key(part, name)).collect(),
        frames: vec![stacks::frame("", said, &styled, &drawn, longest)],
        table,
    };
    let note = "Summed over the processes.".to_owned();
    Some(Section { name: "time", title: "Where the time goes".into(), note, blocks: vec![Block::Picture(picture)] })
}

fn drawn(name: &str, names: &[&str], parts: &[f64]) -> Bar {
    let part = |(class, seconds): (&&str, &f64)| (*seconds, format!("{name}, {class}: {}", format_seconds(*seconds)));
    let total = format_seconds(parts.iter().sum());
    Bar { name: name.to_owned(), total, parts: names.iter().zip(parts).map(part).collect() }
}

fn level(result: &ReplayResult, derived: &ReplayDerived, kind: LevelKind) -> Section {
    let (name, title) = match kind {
        LevelKind::Run => ("run", "How fast"),
        LevelKind::File => ("files", "By file"),
        LevelKind::Function => ("functions", "By class of function"),
        LevelKind::Process => ("processes", "By process"),
    };
    let head = ["of", "backend", "calls", "MB", "recorded s", "MB/s", "replayed s", "MB/s", "replayed / recorded"];
    let mut table = Table::new("Bandwidths are per process", 2, head);
    let all: Vec<&Level> = derived.levels.iter().filter(|l| l.level == kind).collect();
    for l in all.iter().take(ROWS) {
        table.row([
            levels::name(result, l),
            l.backend.clone(),
            l.calls.to_string(),
            if l.recorded_bytes > 0 { figure(l.recorded_bytes as f64 / 1e6) } else { "-".to_owned() },
            format!("{:.6}", l.recorded_seconds),
            mb(l.recorded_bytes_per_second, 10).trim().to_owned(),
            format!("{:.6}", l.replayed_seconds),
            mb(l.replayed_bytes_per_second, 10).trim().to_owned(),
            or_none(l.ratio.map(|r| format!("{r:.3}"))),
        ]);
    }
    let note = if all.len() > ROWS { format!("{} more are in the records.", all.len() - ROWS) } else { String::new() };
    let blocks = match kind {
        _ if table.is_empty() => Vec::new(),
        LevelKind::File | LevelKind::Process => vec![Block::Folded(title.to_owned(), vec![Block::Table(table)])],
        LevelKind::Run | LevelKind::Function => vec![Block::Table(table)],
    };
    Section { name, title: title.into(), note, blocks }
}

#[cfg(test)]
mod tests {
    use crate::frame::report::checks::assert_page;
    use crate::replay::report::fixtures;

    #[test]
    fn every_result_has_its_page() {
        for (name, result, derived) in fixtures::all() {
            assert_page(&result, &derived, name);
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let (_, mut result, _) = fixtures::all().remove(0);
        let bad = "</script><script>alert(1)</script>\u{1b}[31m'\"".to_owned();
        result.setup.storage.path.clone_from(&bad);
        result.setup.profile.command = vec![bad.clone()];
        result.setup.profile.library = bad;
        let derived = crate::replay::values::derive(&result);
        assert_page(&result, &derived, "hostile");
    }
}
