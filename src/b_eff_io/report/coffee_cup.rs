//! The yardsticks of the paper in words: the coffee-cup rule and the balance factor.

use crate::b_eff_io::values::{CoffeeCup, Derived};
use crate::frame::records::AccessMethod;
use crate::frame::report::model::ReportBlock;
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::MPI_IO;
use crate::frame::words::{or_hyphen, NO_VALUE};

const VERBS: [&str; 3] = ["written", "rewritten", "read"];

/// `written in 25.0 s, rewritten in 20.0 s, read in 12.0 s`; None if nothing is known.
fn times(cup: &CoffeeCup) -> Option<String> {
    let known = VERBS.into_iter().zip(cup.seconds);
    let known: Vec<String> =
        known.filter_map(|(verb, seconds)| Some(format!("{verb} in {}", format_seconds(seconds?)))).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn verdict(is_met: Option<bool>) -> &'static str {
    match is_met {
        Some(true) => "met",
        Some(false) => "not met",
        None => "not known",
    }
}

/// Bytes per floating-point operation span many powers of ten.
fn balance(cup: &CoffeeCup) -> Option<String> {
    Some(format!("balance factor {:.3e} bytes/flop", cup.balance_bytes_per_flop?))
}

/// One sentence about a partition; None if nothing is known.
pub(super) fn sentence(cup: &CoffeeCup) -> Option<String> {
    let best = if cup.is_best { " (the best partition)" } else { "" };
    let text = format!(
        "all memory of {}{best}, {}, is {}; 10 min: {}",
        count(cup.ranks, "rank"),
        format_size(cup.memory_bytes),
        times(cup)?,
        verdict(cup.is_met)
    );
    Some([Some(text), balance(cup)].into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// Lines of the screen for a partition: through MPI-IO if it was measured, else through the first backend.
pub(super) fn screen_block(derived: &Derived, ranks: u64) -> Option<ReportBlock> {
    let own = || derived.coffee_cups.iter().filter(|cup| cup.ranks == ranks);
    let cup = own().find(|cup| cup.backend == MPI_IO).or_else(|| own().next())?;
    times(cup)?;
    let time = |(access, seconds): (AccessMethod, Option<f64>)| {
        Some(format!("{} {}", access.name(), format_seconds(seconds?)))
    };
    let known: Vec<String> = AccessMethod::ALL.into_iter().zip(cup.seconds).filter_map(time).collect();
    let rule = format!("{}; 10 min: {}", known.join(", "), verdict(cup.is_met));
    let lines = [Some(("all memory".into(), rule)), balance(cup).map(|text| ("balance".into(), text))];
    Some(ReportBlock::Pairs(lines.into_iter().flatten().collect()))
}

/// Every partition; None if nothing is known of any.
pub(super) fn table(derived: &Derived) -> Option<ReportBlock> {
    let has_balance = derived.coffee_cups.iter().any(|cup| cup.balance_bytes_per_flop.is_some());
    let balance_head = has_balance.then_some("bytes/flop");
    let head = ["backend", "ranks", "memory"].into_iter().chain(VERBS).chain(["10 min"]).chain(balance_head);
    let row = |cup: &CoffeeCup| {
        let begin = [cup.backend.clone(), cup.ranks.to_string(), format_size(cup.memory_bytes)];
        let best = if cup.is_best { ", best" } else { "" };
        let end = has_balance.then(|| or_hyphen(cup.balance_bytes_per_flop.map(|b| format!("{b:.3e}"))));
        begin
            .into_iter()
            .chain(cup.seconds.map(|s| s.map_or_else(|| NO_VALUE.to_owned(), format_seconds)))
            .chain([format!("{}{best}", verdict(cup.is_met))])
            .chain(end)
            .collect::<Vec<_>>()
    };
    let known = derived.coffee_cups.iter().filter(|cup| times(cup).is_some());
    let table = Table::new("Coffee-cup rule: time to transfer all memory of the partition", 2, head)
        .with_rows(known.map(row))
        .with_note(
            "Memory divided by the average of the access method; the rule: all memory is written in 10 minutes.",
        );
    let note = "bytes/flop: balance factor, b_eff_io by the definition of this run divided by the Rmax of LINPACK.";
    let table = if has_balance { table.with_note(note) } else { table };
    (!table.is_empty()).then_some(ReportBlock::Table(table))
}

/// Time to transfer all memory of a partition with this access method.
pub(super) fn seconds(derived: &Derived, backend: &str, ranks: u64, access: AccessMethod) -> Option<f64> {
    derived.coffee_cups.iter().find(|cup| cup.ranks == ranks && cup.backend == backend)?.seconds[access as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

    fn cup() -> CoffeeCup {
        CoffeeCup {
            backend: "mpiio".into(),
            ranks: 4,
            is_best: true,
            memory_bytes: 24 << 30,
            seconds: [Some(612.0), Some(25.0), None],
            is_met: Some(false),
            balance_bytes_per_flop: None,
        }
    }

    #[test]
    fn a_partition_is_one_sentence() {
        assert_eq!(
            sentence(&cup()).unwrap(),
            "all memory of 4 ranks (the best partition), 24 GiB, is written in 10.2 min, rewritten in 25.0 s; 10 min: not met"
        );
        let balanced = CoffeeCup { is_best: false, balance_bytes_per_flop: Some(0.001234), ..cup() };
        assert!(sentence(&balanced).unwrap().ends_with("not met; balance factor 1.234e-3 bytes/flop"));
        assert_eq!(sentence(&CoffeeCup { seconds: [None; 3], is_met: None, ..cup() }), None);
        let read_alone = CoffeeCup { seconds: [None, None, Some(60.0)], is_met: None, ..cup() };
        assert!(sentence(&read_alone).unwrap().ends_with("is read in 1.0 min; 10 min: not known"));
    }

    /// The longest texts fit beside a label of 14 columns in 80.
    #[test]
    fn the_screen_has_room() {
        let longest = CoffeeCup {
            seconds: [Some(3540.0); 3],
            memory_bytes: 1023 << 39,
            balance_bytes_per_flop: Some(1.234e-10),
            ..cup()
        };
        let derived = Derived { coffee_cups: vec![longest], ..derive(&fixtures::complete()) };
        let Some(ReportBlock::Pairs(pairs)) = screen_block(&derived, 4) else { panic!("no lines") };
        assert!(pairs.iter().all(|(_, text)| text.chars().count() <= 66), "{pairs:?}");
        assert!(screen_block(&derived, 5).is_none());
    }
}
