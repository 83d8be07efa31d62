//! A run of b_eff as a page for a browser: the value, the curves over the message sizes, all patterns, and what must be known of them.

use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, Method};
use crate::b_eff::values::standout::findings;
use crate::b_eff::values::{CommDerived, Curve, RepeatedRate, SizeAverage};
use crate::frame::report::columns::or_none;
use crate::frame::report::html::lines::{self, Abscissa, Look, Point};
use crate::frame::report::html::scale::{size, Log};
use crate::frame::report::html::{facts, Block, Frame, Headline, Picture, Run, Section, Table};
use crate::frame::report::picture;
use crate::frame::report::screen::rate;
use crate::frame::report::text::percent;
use crate::frame::units::format_size;

use super::{comparable, screen};

/// Sizes drawn; a damaged file may have any number.
const SIZES: usize = 64;

/// The page of one run.
#[must_use]
pub(super) fn page(result: &CommResult, derived: &CommDerived) -> Run {
    let machine = &result.setup.machine;
    let found = findings(&derived.value, &derived.methods, &derived.sizes);
    let words = [
        facts::lacks([("", derived.criteria.as_slice())]),
        facts::stands_out(found.iter().map(screen::sentence).collect()),
        Some(facts::trust(result, screen::checked(result), &derived.warnings, false)),
    ];
    let validity = facts::validity([("b_eff".to_owned(), derived.criteria.as_slice())]);
    let own = [curves(derived), methods(derived), patterns(derived)].into_iter().flatten();
    let common = [validity, facts::warnings(result, derived), facts::set_up(&comparable::facts(result))];
    Run {
        benchmark: "b_eff",
        title: facts::title("b_eff", machine, None),
        facts: facts::line(machine, None, result.ending.outcome, result.ending.real_seconds),
        alarms: facts::alarms(result, "DATA CORRUPTION: messages received were not the messages sent."),
        headlines: vec![headline(result, derived)],
        findings: words.into_iter().flatten().collect(),
        sections: own.chain(common).collect(),
    }
}

fn mb(bytes_per_second: f64) -> String {
    rate(bytes_per_second / 1e6, None)
}

fn headline(result: &CommResult, derived: &CommDerived) -> Headline {
    let value = &derived.value;
    let numbers = [
        ("MB/s, one repetition, 95 %", value.of_repetitions.b_eff.and_then(interval)),
        ("MB/s per process", value.b_eff.map(|l| mb(l.per_process_bytes_per_second))),
        ("rings", value.rings.map(|l| mb(l.bytes_per_second))),
        ("random rings", value.random.map(|l| mb(l.bytes_per_second))),
        ("at Lmax", value.at_lmax.map(|l| mb(l.bytes_per_second))),
        ("ping-pong at Lmax", value.ping_pong_bytes_per_second.map(mb)),
        ("ping-pong, us at 1 B", value.latency.ping_pong_seconds.map(|s| rate(s * 1e6, None))),
    ];
    let (tone, mut verdict) = facts::verdict(derived.valid, result);
    verdict.push_str(if result.config.quick { ", QUICK" } else { "" });
    Headline {
        label: "b_eff".into(),
        value: value.b_eff.map_or_else(|| "not measured".into(), |l| mb(l.bytes_per_second)),
        unit: if value.b_eff.is_some() { "MB/s" } else { "" },
        verdict: Some((tone, verdict)),
        numbers: numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
    }
}

/// `low to high`.
fn interval(rate: RepeatedRate) -> Option<String> {
    rate.interval_bytes_per_second.map(|[low, high]| format!("{} to {}", mb(low), mb(high)))
}

fn axis(sizes: impl Iterator<Item = u64>) -> Option<Abscissa> {
    Abscissa::log(sizes.take(SIZES).map(|bytes| (bytes as f64, size(bytes))).collect())
}

type Value = fn(&SizeAverage) -> Option<f64>;

const CURVES: [(&str, Value); 4] = [
    ("rings", |s| s.rings_bytes_per_second),
    ("random rings", |s| s.random_bytes_per_second),
    ("both", |s| s.average_bytes_per_second),
    ("ping-pong", |s| s.ping_pong_bytes_per_second),
];

/// Averages over the sizes, and beside them the best methods of a ring, a random ring and the ping-pong.
fn curves(derived: &CommDerived) -> Option<Section> {
    let sizes = &derived.sizes[..derived.sizes.len().min(SIZES)];
    let axis = axis(sizes.iter().map(|s| s.message_bytes))?;
    let scale = Log::around(sizes.iter().flat_map(|s| CURVES.iter().filter_map(move |(_, v)| v(s))).map(|v| v / 1e6))?;
    let curve = |(style, (name, value)): (usize, &(&str, Value))| {
        let point = |s: &SizeAverage| {
            let y = value(s)? / 1e6;
            let said = format!("{name}, {}: {} MB/s", format_size(s.message_bytes), rate(y, None));
            Some(Point { x: s.message_bytes as f64, y, look: Look::Known, said })
        };
        lines::Curve { style, points: sizes.iter().filter_map(point).collect() }
    };
    let drawn: Vec<lines::Curve> = CURVES.iter().enumerate().map(curve).collect();
    let said = "MB/s of all processes over message sizes".to_owned();
    let frame = lines::frame("averages, best method each", said, "MB/s", &axis, scale, &drawn);
    let each = [(Family::Ring, "every ring"), (Family::Random, "every random ring")];
    let each = each.into_iter().filter_map(|(family, title)| family_frame(derived, family, title, &axis, scale));
    let head = ["size"].into_iter().chain(CURVES.map(|(name, _)| name)).chain(["best method", "in"]);
    let mut table = Table::new("MB/s of all processes", 1, head);
    for s in &derived.sizes {
        let numbers = CURVES.map(|(_, value)| or_none(value(s).map(mb)));
        let best = or_none(s.best_method.map(Method::name));
        let share = format!("{} of {}", s.best_in, s.of_patterns);
        table.row([format_size(s.message_bytes)].into_iter().chain(numbers).chain([best, share]));
    }
    let picture = Picture {
        name: "curves".into(),
        title: "Averages and single patterns".into(),
        keys: CURVES.iter().enumerate().map(|(style, (name, _))| lines::key(style, *name)).collect(),
        frames: [frame].into_iter().chain(each).collect(),
        table,
    };
    let note = "MB/s of all processes over the size of a message, both logarithmic; of each size counts the best method. Ping-pong: one \
                direction between two processes.";
    let blocks = vec![Block::Picture(picture)];
    Some(Section { name: "curves", title: "Bandwidth by message size".into(), note: note.into(), blocks })
}

/// All patterns of a family in one frame, thin and without marks.
fn family_frame(derived: &CommDerived, family: Family, title: &str, axis: &Abscissa, scale: Log) -> Option<Frame> {
    let style = usize::from(family == Family::Random);
    let curve = |c: &Curve| {
        let point = |p: &crate::b_eff::values::Point| {
            let (x, y) = (p.message_bytes as f64, p.bytes_per_second / 1e6);
            let said = format!("{}, {}: {} MB/s", c.pattern, format_size(p.message_bytes), rate(y, None));
            Point { x, y, look: Look::Known, said }
        };
        lines::Curve { style, points: c.points.iter().take(SIZES).map(point).collect() }
    };
    let drawn: Vec<lines::Curve> = derived.family(family).take(SIZES).map(curve).collect();
    let said = format!("{title}: MB/s of all processes over message sizes");
    (!drawn.is_empty()).then(|| lines::frame(title, said, "MB/s", axis, scale, &drawn))
}

/// What each method alone would have given.
fn methods(derived: &CommDerived) -> Option<Section> {
    let best = derived.value.b_eff.map(|l| l.bytes_per_second);
    let mut table =
        Table::new("MB/s by one method alone", 1, ["method", "b_eff", "of the best", "rings", "random", "at Lmax"]);
    for m in &derived.methods {
        let level = |l: Option<crate::b_eff::values::Level>| or_none(l.map(|l| mb(l.bytes_per_second)));
        let share = m.b_eff.zip(best).map(|(own, best)| percent(own.bytes_per_second / best));
        table.row([
            m.method.name().to_owned(),
            level(m.b_eff),
            or_none(share),
            level(m.rings),
            level(m.random),
            level(m.at_lmax),
        ]);
    }
    let note = "b_eff takes the best method of each size.".to_owned();
    let blocks = vec![Block::Table(table)];
    derived.methods.iter().any(|m| m.b_eff.is_some()).then_some(Section {
        name: "methods",
        title: "By method".into(),
        note,
        blocks,
    })
}

const PATTERNS: [&str; 6] =
    ["pattern", "shape", "mean MB/s", "one repetition, 95 %", "at Lmax MB/s", "us at the smallest"];

/// Every pattern in a line.
fn patterns(derived: &CommDerived) -> Option<Section> {
    let mut table = Table::new("All patterns", 2, PATTERNS);
    for c in &derived.curves {
        table.row([
            c.pattern.clone(),
            c.shape.clone(),
            or_none(c.mean_bytes_per_second.map(mb)),
            or_none(c.repeated.and_then(interval)),
            or_none(c.at_lmax_bytes_per_second.map(mb)),
            or_none(c.latency_seconds.map(|s| rate(s * 1e6, None))),
        ]);
    }
    let blocks = vec![Block::Folded("Every pattern".into(), vec![Block::Table(table)])];
    (!derived.curves.is_empty()).then_some(Section {
        name: "patterns",
        title: "Patterns".into(),
        note: "MB/s of all processes; b_eff is made of the rings and the random rings.".into(),
        blocks,
    })
}

/// What the run adds to a picture over ranks.
pub(super) fn over_ranks(result: &CommResult, derived: &CommDerived) -> Vec<picture::Point> {
    let value = &derived.value;
    let levels = [("b_eff", value.b_eff), ("b_eff at Lmax", value.at_lmax)];
    let all = levels.iter().filter_map(|(name, level)| Some(((*name).to_owned(), level.as_ref()?.bytes_per_second)));
    let each = levels.iter().filter_map(|(name, level)| {
        Some((format!("{name}, per process"), level.as_ref()?.per_process_bytes_per_second))
    });
    let point = |(column, y): (String, f64)| picture::Point {
        row: "b_eff".into(),
        column,
        curve: if result.config.quick { "messages (quick)" } else { "messages" }.into(),
        is_reference: false,
        x: value.processes,
        y: y / 1e6,
    };
    all.chain(each).map(point).collect()
}

#[cfg(test)]
mod tests {
    use crate::b_eff::report::fixtures;
    use crate::frame::report::checks::assert_page;

    #[test]
    fn every_result_has_its_page() {
        for (name, result, derived) in fixtures::all() {
            let text = assert_page(&result, &derived, name);
            assert!(text.contains("b_eff"), "{name}");
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let mut result = fixtures::complete();
        let bad = "</script><script>alert(1)</script>\u{1b}[31m'\"".to_owned();
        result.setup.machine.hosts.iter_mut().for_each(|h| h.name.clone_from(&bad));
        result.setup.machine.mpi_library.clone_from(&bad);
        for p in &mut result.patterns {
            (p.pattern, p.shape) = (bad.clone(), bad.clone());
        }
        let derived = crate::b_eff::values::derive(&result);
        assert_page(&result, &derived, "hostile");
    }
}
