//! Texts of a comparison, common to all output formats.

use beff_statistics::bootstrap::Interval;

use super::view::ComparisonView;
use crate::frame::report::doubts::doubt_text;
use crate::frame::report::text::{count, figure, list, percent};
use crate::frame::values::causes::ChangeCause;
use crate::frame::values::comparable::{FactKind, QuantityLevel};
use crate::frame::values::compare::{
    ComparedQuantity, ComparisonVerdict, FactDifference, IntervalBasis, SideDoubt, EQUALITY_FACTOR,
};
use crate::frame::values::gate::{GateOutcome, GateResult};

/// A ratio with two decimals near 1, otherwise with two or three significant digits.
pub(super) fn format_ratio(value: f64) -> String {
    if (0.1..9.995).contains(&value) {
        format!("{value:.2}")
    } else {
        figure(value)
    }
}

/// `0.75 to 0.86`, or why there is none.
pub(super) fn format_interval(compared: &ComparedQuantity) -> String {
    match compared.interval {
        Some(ends) if !Interval::from(ends).is_resolved() => "wider than 2x".into(),
        Some([low, high]) => format!("{} to {}", format_ratio(low), format_ratio(high)),
        None => "no interval".into(),
    }
}

pub(super) fn verdict_text(call: ComparisonVerdict) -> &'static str {
    match call {
        ComparisonVerdict::Equal => "equal",
        ComparisonVerdict::Slower => "slower",
        ComparisonVerdict::Faster => "faster",
        ComparisonVerdict::NotDecided => "not decided",
    }
}

pub(super) fn verdict_symbol(call: ComparisonVerdict) -> char {
    match call {
        ComparisonVerdict::Equal => '=',
        ComparisonVerdict::Slower => '<',
        ComparisonVerdict::Faster => '>',
        ComparisonVerdict::NotDecided => '?',
    }
}

pub(super) fn legend(view: &ComparisonView<'_>) -> String {
    let [a, b] = view.sides.map(|side| &side.name);
    let within = (EQUALITY_FACTOR - 1.0) * 100.0;
    format!("{b}/{a} of speeds (also of times): < slower  > faster  = equal ({within:.0} %)  ? not decided")
}

/// Backends and ranks of a number; empty if they need not be distinguished.
pub(super) fn section_name(compared: &ComparedQuantity) -> String {
    let [a, b] = &compared.backends;
    let backend = match (a.is_empty(), a == b) {
        (true, true) => None,
        (_, true) => Some(a.clone()),
        _ => Some(format!("{a} -> {b}")),
    };
    let ranks = match compared.ranks {
        [0, 0] => None,
        [a, b] if a == b => Some(format!("{a} ranks")),
        [a, b] => Some(format!("{a} -> {b} ranks")),
    };
    backend.into_iter().chain(ranks).collect::<Vec<_>>().join(", ")
}

/// The name of a number, with its backend if `with_section`.
pub(super) fn quantity_name(compared: &ComparedQuantity, with_section: bool) -> String {
    let section = Some(section_name(compared)).filter(|section| with_section && !section.is_empty());
    let column = Some(compared.column.clone()).filter(|column| !column.is_empty());
    section.into_iter().chain([compared.row.clone()]).chain(column).collect::<Vec<_>>().join(", ")
}

/// `12.3 -> 0.32 MB/s`.
pub(super) fn change_text(compared: &ComparedQuantity) -> String {
    let [a, b] = compared.values.map(figure);
    format!("{a} -> {b} {}", compared.unit.name())
}

pub(super) fn fact_values(difference: &FactDifference) -> [String; 2] {
    [&difference.from, &difference.to].map(|value| match value {
        Some(value) if value.is_empty() => "(empty)".into(),
        Some(value) => value.clone(),
        None => "(none)".into(),
    })
}

/// Whether the sides are comparable, in one or two sentences.
pub(super) fn comparability(view: &ComparisonView<'_>) -> String {
    let names = |kind| view.comparison.differences_of_kind(kind).map(|d| d.name.clone()).collect::<Vec<_>>();
    let (definition, set_up) = (names(FactKind::Definition), names(FactKind::SetUp));
    if !definition.is_empty() {
        return format!(
            "NOT COMPARABLE: the sides differ in {}, so they measured different things. The ratios below do not \
             show better or worse.",
            list(&definition)
        );
    }
    let same = "the definition of the numbers is the same on both sides";
    match set_up.len() {
        0 => format!("Comparable: {same}, and so is the recorded set-up."),
        1 => format!("Comparable: {same}. They differ only in {}, which may be what you compare.", set_up[0]),
        number => format!(
            "Comparable: {same}. {} of the set-up differ: a ratio does not show which of them caused it.",
            count(number as u64, "fact")
        ),
    }
}

pub(super) fn inference_notes(view: &ComparisonView<'_>) -> Vec<String> {
    let [a, b] = view.sides.map(|side| side.name.as_str());
    let [of_a, of_b] = view.comparison.runs;
    let mut said = Vec::new();
    if view.comparison.has_single_runs() {
        said.push(single_run_note(view));
        if view.comparison.compared.iter().any(|c| c.basis == IntervalBasis::Rounds) {
            said.push(
                "Intervals are of the rounds within the runs: they do not include the variation from run to run."
                    .into(),
            );
        }
        return said;
    }
    let runs = |n: usize| count(n as u64, "run");
    let both = format!("{} of {a}, {} of {b}", runs(of_a), runs(of_b));
    let level = "Of equal runs, one comparison in a hundred calls anything different.";
    if of_a.min(of_b) == 1 {
        let one = if of_a == 1 { a } else { b };
        said.push(format!("{both}: is {one} one of them? {level}"));
    } else {
        said.push(format!("{both}: geometric means with their intervals. {level}"));
    }
    if view.comparison.one_after_the_other {
        said.push(format!(
            "All runs of one side began before those of the other: a drift of the machine appears as a difference. Alternate: \
             {a} {b} {a} {b}."
        ));
    }
    for (side, names) in view.sides.iter().zip(&view.comparison.mixed).filter(|(_, names)| !names.is_empty()) {
        said.push(format!("The runs of {} differ among themselves in {}.", side.name, list(names)));
    }
    said
}

fn single_run_note(view: &ComparisonView<'_>) -> String {
    let noise = |level: QuantityLevel, name: &str| {
        let own = view.comparison.at_level(level).filter_map(|c| c.noise);
        let (low, high) = own.fold((f64::INFINITY, 0.0_f64), |(low, high), noise| (low.min(noise), high.max(noise)));
        if low > high {
            None
        } else if low < high {
            Some(format!("{} to {} for {name}", format_factor(low), format_factor(high)))
        } else {
            Some(format!("{} for {name}", format_factor(high)))
        }
    };
    let bounds = [
        noise(QuantityLevel::Value, "values"),
        noise(QuantityLevel::Group, "means"),
        noise(QuantityLevel::Detail, "single lines"),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    format!(
        "One run each: no run-to-run interval. Equal runs differ, so a change by less than a factor of {} is not decided (--noise \
         sets it). Several runs a side decide more: compare A1,A2,A3 B1,B2,B3.",
        list(&bounds)
    )
}

fn format_factor(factor: f64) -> String {
    let text = format!("{factor:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn cause_text(cause: &ChangeCause, view: &ComparisonView<'_>) -> String {
    let [a, b] = view.sides.map(|side| side.name.as_str());
    let sides = |first: bool, second: bool| match (first, second) {
        (true, true) => format!("{a} and {b}"),
        (true, false) => a.to_owned(),
        (false, _) => b.to_owned(),
    };
    match cause {
        ChangeCause::Part { part, from, to } => {
            format!("{} took {} of the time in {a}, {} in {b}", time_part_text(part), percent(*from), percent(*to))
        }
        ChangeCause::Cache { from, to } => {
            format!("read from memory, not storage: {} in {a}, {} in {b}", percent(*from), percent(*to))
        }
        ChangeCause::Fact { name, from, to } => format!("{name}: {from} in {a}, {to} in {b}"),
        ChangeCause::MoreFacts { number } => format!("{} more in force changed", count(*number, "hint or setting")),
        ChangeCause::FewCalls { first, second } => format!("few calls in {}: uncertain", sides(*first, *second)),
        ChangeCause::Busy { first, second } => {
            format!("interference above 5 % of CPU time in {}", sides(*first, *second))
        }
    }
}

fn time_part_text(part: &str) -> &str {
    match part {
        "decide" => "waiting for slower ranks (decide)",
        "sync" => "sync",
        "transfer" => "the calls themselves",
        "view" => "setting the view",
        "preallocate" => "preallocation",
        other => other,
    }
}

/// All possible causes; None if the records show none.
pub(super) fn causes_text(compared: &ComparedQuantity, view: &ComparisonView<'_>) -> Option<String> {
    let texts: Vec<String> = compared.causes.iter().map(|c| cause_text(c, view)).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The most important changes and the number of others.
pub(super) struct ChangeList<'a> {
    pub(super) heading: String,
    pub(super) shown: Vec<&'a ComparedQuantity>,
    pub(super) more: usize,
}

/// Single lines called different, largest first; if there are none, the largest that are not decided.
pub(super) fn changes<'a>(view: &ComparisonView<'a>, most: usize) -> Option<ChangeList<'a>> {
    let mut details: Vec<&ComparedQuantity> = view.comparison.at_level(QuantityLevel::Detail).collect();
    // The sides may have no single lines in common.
    if details.is_empty() {
        return None;
    }
    details.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let of = details.len();
    let different: Vec<&ComparedQuantity> = details.iter().copied().filter(|c| c.call.is_different()).collect();
    if different.is_empty() {
        if details.iter().all(|c| c.call == ComparisonVerdict::Equal) {
            let heading = format!("All {of} single lines are equal");
            return Some(ChangeList { heading, shown: Vec::new(), more: 0 });
        }
        details.retain(|c| c.call == ComparisonVerdict::NotDecided);
        details.truncate(most.min(3));
        let heading = format!("Largest changes; none of {of} single lines is called different");
        return Some(ChangeList { heading, shown: details, more: 0 });
    }
    let number = |call| different.iter().filter(|c| c.call == call).count();
    let heading = format!(
        "Largest changes; of {of} single lines {} slower, {} faster",
        number(ComparisonVerdict::Slower),
        number(ComparisonVerdict::Faster)
    );
    let more = different.len().saturating_sub(most);
    Some(ChangeList { heading, shown: different.into_iter().take(most).collect(), more })
}

/// Numbers of one side only, a text for each side.
pub(super) fn missing_text(view: &ComparisonView<'_>, most: usize) -> Vec<String> {
    let of = |side: usize| {
        let names: Vec<String> =
            view.comparison.missing.iter().filter(|m| m.side == side).map(|m| m.name.clone()).collect();
        let more = names.len().saturating_sub(most);
        let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join("; ");
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("Only in {}: {shown}{more}", view.sides[side].name))
    };
    [0, 1].into_iter().filter_map(of).collect()
}

/// Reasons shown without `--full`.
const MAX_DOUBTS: usize = 3;

/// The line before all others where the results decide nothing: the sides with the reasons.
pub(super) fn inconclusive_line(view: &ComparisonView<'_>) -> Option<String> {
    let of_run = |found: &SideDoubt| {
        let side = view.sides[found.side];
        let run = side.files.get(found.run).filter(|_| side.files.len() > 1);
        let run = run.map(|file| format!(" ({file})")).unwrap_or_default();
        format!("{}{run} {}", side.name, doubt_text(&found.doubt))
    };
    let mut reasons: Vec<String> = view.comparison.inconclusive.iter().map(of_run).collect();
    if reasons.is_empty() {
        let disturbed = view.gate.filter(|gate| gate.outcome == GateOutcome::Inconclusive)?.disturbed.len() as u64;
        reasons
            .push(format!("what is below the limit ({}) was measured under interference", count(disturbed, "number")));
    }
    let most = if view.full { usize::MAX } else { MAX_DOUBTS };
    let more = reasons.len().saturating_sub(most);
    let more = if more > 0 { format!("; and {more} more (--full)") } else { String::new() };
    reasons.truncate(most);
    Some(format!("INCONCLUSIVE: {}{more}. The ratios prove nothing.", reasons.join("; ")))
}

pub(super) fn gate_text(gate: &GateResult, view: &ComparisonView<'_>) -> String {
    let [a, b] = view.sides.map(|side| side.name.as_str());
    let limit = gate.limit;
    let open = match gate.undecided {
        0 => String::new(),
        number => format!(
            " {} below it {} not decided.",
            count(number, "value or mean"),
            if number == 1 { "is" } else { "are" }
        ),
    };
    let reasons = gate_reasons(gate, view).join("; ");
    match gate.outcome {
        GateOutcome::Passed => format!("Gate {limit}: passed.{open}"),
        GateOutcome::Inconclusive if reasons.is_empty() => {
            format!("Gate {limit}: INCONCLUSIVE, see above; nothing is below it.{open}")
        }
        GateOutcome::Inconclusive => format!("Gate {limit}: INCONCLUSIVE, see above; {reasons}.{open}"),
        GateOutcome::Failed if view.comparison.compared.is_empty() => {
            format!("Gate {limit}: FAILED: {a} and {b} have no number in common.")
        }
        GateOutcome::Failed => format!("Gate {limit}: FAILED: {reasons}.{open}"),
    }
}

/// What is wrong, slower or missing.
fn gate_reasons(gate: &GateResult, view: &ComparisonView<'_>) -> Vec<String> {
    let b = &view.sides[1].name;
    let numbers = |label: &str, places: &[usize]| {
        let found = places.iter().filter_map(|at| view.comparison.compared.get(*at)).take(3);
        let shown: Vec<String> =
            found.map(|c| format!("{} ({})", quantity_name(c, false), format_ratio(c.ratio))).collect();
        let more = places.len().saturating_sub(shown.len());
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        (!shown.is_empty()).then(|| format!("{label}: {}{more}", shown.join("; ")))
    };
    let missing = (!gate.missing.is_empty())
        .then(|| format!("{b} lacks {}", list(&gate.missing.iter().take(3).cloned().collect::<Vec<_>>())));
    let wrong = gate.corrupt.then(|| format!("the data of {b} was wrong"));
    let slower = numbers("slower", &gate.below);
    let disturbed = numbers("slower under interference", &gate.disturbed);
    wrong.into_iter().chain(slower).chain(disturbed).chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_the_digits_that_matter() {
        let all = [1.0, 0.803, 0.0264, 12.34, 9.996, 1542.4].map(format_ratio);
        assert_eq!(all, ["1.00", "0.80", "0.026", "12", "10.0", "1542"]);
        assert_eq!([1.14, 2.0, 1.2996].map(format_factor), ["1.14", "2", "1.3"]);
    }
}
