//! What a result of b_eff offers to `compare`: its value, rings and ping-pong, and the averages at every message size.

use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, Method};
use crate::b_eff::values::{efforts, CommDerived, RANDOM_RINGS};
use crate::frame::records::Record;
use crate::frame::report::facts::{self, definition, set_up, Field};
use crate::frame::units::format_size;
use crate::frame::values::comparable::Unit::{self, MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{Comparable, Fact, Kind, Level, Quantity, Told};
use crate::frame::values::machine_share::is_shared;

/// Factor by which a value differs from run to run: the best of three loops, of which the scheduler disturbs some.
const NOISE: f64 = 1.5;

/// Every field of the configuration.
const FIELDS: [(&str, Field); 13] = [
    ("quick", definition("quick mode")),
    ("buffers", definition("buffers")),
    ("families", definition("families")),
    ("seed", definition("seed of the random rings")),
    ("inject", definition("damage on purpose")),
    ("time_seconds", set_up("time at most")),
    // Told by Lmax.
    ("memory_per_process_bytes", Field::Silent),
    ("rmax_gflops", Field::Silent),
    ("bare", Field::Silent),
    // The value does not know the repeats.
    ("repeat", Field::Silent),
    ("until_share", Field::Silent),
    ("out", Field::Silent),
    // Told by where the ranks were.
    ("bind", Field::Silent),
];

/// What there is to compare.
pub(super) fn comparable(result: &CommResult, derived: &CommDerived) -> Comparable {
    let busy = result.patterns.iter().any(|p| is_shared(&p.machine));
    let value = derived.value.b_eff.map(|level| Quantity {
        told: Told { busy, ..Told::default() },
        ..quantity(Level::Value, "b_eff", "", rate(level.bytes_per_second))
    });
    Comparable {
        identity: facts::identity(&result.setup.machine, ""),
        started_utc: result.setup.machine.started_utc.clone(),
        troubles: facts::troubles(result.outcome(), &result.errors, result.is_corrupt()),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities: value.into_iter().chain(groups(derived)).chain(sizes(derived)).collect(),
    }
}

fn facts(result: &CommResult) -> Vec<Fact> {
    own_facts(result).into_iter().chain(facts::of_machine(&result.setup.machine)).collect()
}

/// Those that are no facts of the machine.
pub(super) fn own_facts(result: &CommResult) -> Vec<Fact> {
    let setup = &result.setup;
    let device = setup.transport.device.clone().unwrap_or_else(|| "not told".into());
    let numbering = serde_json::to_value(setup.numbering).ok();
    let numbering = numbering.as_ref().and_then(|word| word.as_str()).unwrap_or_default().replace('_', " ");
    // As many as were to be measured: a run that ended early has fewer, and says so.
    let random_rings = efforts(result).last().map_or(RANDOM_RINGS, |effort| effort.random_rings);
    let mut facts = facts::of_config(&result.config, &FIELDS);
    facts.push(Fact::new(Kind::Definition, "Lmax", format_size(setup.lmax_bytes)));
    facts.push(Fact::new(Kind::Definition, "random rings", random_rings.to_string()));
    facts.push(Fact::new(Kind::SetUp, "numbering of the ranks", numbering));
    facts.push(Fact::new(Kind::SetUp, "transport", device));
    facts.push(Fact::new(Kind::SetUp, "libraries of the transport", setup.transport.loaded.join(", ")));
    facts
}

/// A number and its unit.
type Number = (f64, Unit);

fn rate(bytes_per_second: f64) -> Number {
    (bytes_per_second / 1e6, MegabytesPerSecond)
}

fn time(seconds: f64) -> Number {
    (seconds * 1e6, Microseconds)
}

fn quantity(level: Level, row: &str, column: impl Into<String>, (value, unit): Number) -> Quantity {
    Quantity::new(level, row, column, unit, value).noisy(NOISE)
}

/// Means over the sizes, the largest messages, and the times of the smallest.
fn groups(derived: &CommDerived) -> Vec<Quantity> {
    let value = &derived.value;
    let of = |level: Option<crate::b_eff::values::Level>| level.map(|l| rate(l.bytes_per_second));
    let ping_pong = derived.family(Family::PingPong).next().and_then(|c| c.mean_bytes_per_second);
    let latency = &value.latency;
    let table = [
        ("rings", [of(value.rings), of(value.at_lmax_rings), latency.rings_seconds.map(time)]),
        ("random rings", [of(value.random), of(value.at_lmax_random), latency.random_seconds.map(time)]),
        (
            "ping-pong",
            [ping_pong.map(rate), value.ping_pong_bytes_per_second.map(rate), latency.ping_pong_seconds.map(time)],
        ),
    ];
    let columns = ["all sizes", "Lmax", "latency"];
    let row = |(row, numbers): (&'static str, [Option<Number>; 3])| {
        let cells = columns.into_iter().zip(numbers);
        cells.filter_map(move |(column, number)| Some(quantity(Level::Group, row, column, number?)))
    };
    table.into_iter().flat_map(row).collect()
}

/// Size by size.
fn sizes(derived: &CommDerived) -> Vec<Quantity> {
    let mut all = Vec::new();
    for size in &derived.sizes {
        let rows = [
            ("rings", size.rings_bytes_per_second),
            ("random rings", size.random_bytes_per_second),
            ("ping-pong", size.ping_pong_bytes_per_second),
        ];
        let best = size.best_method.map(Method::name);
        for (row, value) in rows {
            let Some(value) = value else { continue };
            let facts = best.filter(|_| row != "ping-pong").map(|name| ("best method".to_owned(), name.to_owned()));
            let told = Told { facts: facts.into_iter().collect(), ..Told::default() };
            let column = format!("messages of {}", format_size(size.message_bytes));
            all.push(Quantity { told, ..quantity(Level::Detail, row, column, rate(value)) });
        }
    }
    all
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
