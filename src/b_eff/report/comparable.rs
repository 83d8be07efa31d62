//! Quantities of a b_eff result for `compare`: its value, rings and ping-pong, and the averages at every message size.

use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::{CommResult, MessageMethod};
use crate::b_eff::values::{all_efforts, CommDerived, DEFINED_RANDOM_RINGS};
use crate::frame::records::JournaledResult;
use crate::frame::report::facts::{self, definition, set_up, ConfigFieldRole};
use crate::frame::units::format_size;
use crate::frame::values::comparable::QuantityUnit::{self, MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{ComparableRun, Fact, FactKind, MeasurementContext, Quantity, QuantityLevel};
use crate::frame::values::doubt::doubts;
use crate::frame::values::interference::is_disturbed;

/// Factor by which a value may differ between runs: the best of three loops, some of which the scheduler disturbs.
const NOISE_FACTOR: f64 = 1.5;

const FIELDS: [(&str, ConfigFieldRole); 14] = [
    ("quick", definition("quick mode")),
    ("buffers", definition("buffers")),
    ("families", definition("families")),
    ("seed", definition("seed of the random rings")),
    ("inject", definition("injected fault")),
    ("time_seconds", set_up("time limit")),
    // Covered by Lmax.
    ("memory_per_process_bytes", ConfigFieldRole::Ignored),
    ("rmax_gflops", ConfigFieldRole::Ignored),
    ("bare", ConfigFieldRole::Ignored),
    // Further repetitions do not enter the value.
    ("repeat", ConfigFieldRole::Ignored),
    ("until_share", ConfigFieldRole::Ignored),
    ("out", ConfigFieldRole::Ignored),
    // Covered by the placement of the ranks.
    ("bind", ConfigFieldRole::Ignored),
    // What it omits is in the result.
    ("time_limit", ConfigFieldRole::Ignored),
];

pub(super) fn comparable(result: &CommResult, derived: &CommDerived) -> ComparableRun {
    let disturbed = result.patterns.iter().any(|p| is_disturbed(&p.interference));
    let intervals = derived.value.of_repetitions.b_eff.and_then(|found| found.interval_bytes_per_second);
    let value = derived.value.b_eff.map(|level| Quantity {
        context: MeasurementContext { has_interference: disturbed, ..MeasurementContext::default() },
        ..quantity(QuantityLevel::Value, "b_eff", "", rate(level.bytes_per_second))
            .with_interval(intervals.map(|ends| ends.map(|end| end / 1e6)))
    });
    ComparableRun {
        identity: facts::identity(&result.setup.machine, ""),
        started_utc: result.setup.machine.started_utc.clone(),
        troubles: facts::problems(result.outcome(), &result.errors, result.is_corrupt()),
        doubts: doubts(result.outcome(), &derived.warnings, intervals),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities: value.into_iter().chain(group_quantities(derived)).chain(size_quantities(derived)).collect(),
    }
}

fn facts(result: &CommResult) -> Vec<Fact> {
    comm_facts(result).into_iter().chain(facts::machine_facts(&result.setup.machine)).collect()
}

/// Facts other than those of the machine.
pub(super) fn comm_facts(result: &CommResult) -> Vec<Fact> {
    let setup = &result.setup;
    let device = setup.transport.device.clone().unwrap_or_else(|| "unknown".into());
    let numbering = serde_json::to_value(setup.numbering).ok();
    let numbering = numbering.as_ref().and_then(|word| word.as_str()).unwrap_or_default().replace('_', " ");
    // The planned number: an incomplete run has fewer, which it reports itself.
    let random_rings = all_efforts(result).last().map_or(DEFINED_RANDOM_RINGS, |effort| effort.random_rings);
    let mut facts = facts::config_facts(&result.config, &FIELDS);
    facts.push(Fact::new(FactKind::Definition, "Lmax", format_size(setup.lmax_bytes)));
    facts.push(Fact::new(FactKind::Definition, "random rings", random_rings.to_string()));
    facts.push(Fact::new(FactKind::SetUp, "numbering of the ranks", numbering));
    facts.push(Fact::new(FactKind::SetUp, "transport", device));
    facts.push(Fact::new(FactKind::SetUp, "libraries of the transport", setup.transport.loaded.join(", ")));
    facts
}

type UnitValue = (f64, QuantityUnit);

fn rate(bytes_per_second: f64) -> UnitValue {
    (bytes_per_second / 1e6, MegabytesPerSecond)
}

fn time(seconds: f64) -> UnitValue {
    (seconds * 1e6, Microseconds)
}

fn quantity(level: QuantityLevel, row: &str, column: impl Into<String>, (value, unit): UnitValue) -> Quantity {
    Quantity::new(level, row, column, unit, value).with_noise(NOISE_FACTOR)
}

/// Means over the sizes, the largest messages, and the times of the smallest.
fn group_quantities(derived: &CommDerived) -> Vec<Quantity> {
    let value = &derived.value;
    let of = |level: Option<crate::b_eff::values::AggregateBandwidth>| level.map(|l| rate(l.bytes_per_second));
    let ping_pong = derived.family(PatternFamily::PingPong).next().and_then(|c| c.mean_bytes_per_second);
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
    let row = |(row, numbers): (&'static str, [Option<UnitValue>; 3])| {
        let cells = columns.into_iter().zip(numbers);
        cells.filter_map(move |(column, number)| Some(quantity(QuantityLevel::Group, row, column, number?)))
    };
    table.into_iter().flat_map(row).collect()
}

fn size_quantities(derived: &CommDerived) -> Vec<Quantity> {
    let mut all = Vec::new();
    for size in &derived.sizes {
        let rows = [
            ("rings", size.rings_bytes_per_second),
            ("random rings", size.random_bytes_per_second),
            ("ping-pong", size.ping_pong_bytes_per_second),
        ];
        let best = size.best_method.map(MessageMethod::name);
        for (row, value) in rows {
            let Some(value) = value else { continue };
            let facts = best.filter(|_| row != "ping-pong").map(|name| ("best method".to_owned(), name.to_owned()));
            let conditions = MeasurementContext { facts: facts.into_iter().collect(), ..MeasurementContext::default() };
            let column = format!("messages of {}", format_size(size.message_bytes));
            all.push(Quantity { context: conditions, ..quantity(QuantityLevel::Detail, row, column, rate(value)) });
        }
    }
    all
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
