//! What a comparison says, in words: the same in every form.

use super::view::View;
use crate::frame::report::text::{count, figure, list, percent};
use crate::frame::values::causes::Cause;
use crate::frame::values::comparable::{Kind, Level};
use crate::frame::values::compare::{Basis, Call, Compared, Difference, Gate, EQUAL_WITHIN};

/// A ratio with two digits behind the point near 1, else with two or three digits.
pub(super) fn ratio(value: f64) -> String {
    if (0.1..9.995).contains(&value) {
        format!("{value:.2}")
    } else {
        figure(value)
    }
}

/// `0.75 to 0.86`, or what there is instead.
pub(super) fn interval(compared: &Compared) -> String {
    match compared.interval {
        Some([low, high]) => format!("{} to {}", ratio(low), ratio(high)),
        None => "no interval".into(),
    }
}

/// What is said, in words.
pub(super) fn call(call: Call) -> &'static str {
    match call {
        Call::Equal => "equal",
        Call::Slower => "slower",
        Call::Faster => "faster",
        Call::NotDecided => "not decided",
    }
}

/// The same as one character.
pub(super) fn mark(call: Call) -> char {
    match call {
        Call::Equal => '=',
        Call::Slower => '<',
        Call::Faster => '>',
        Call::NotDecided => '?',
    }
}

/// What the marks mean.
pub(super) fn legend(view: &View<'_>) -> String {
    let [a, b] = view.sides.map(|side| &side.name);
    let within = (EQUAL_WITHIN - 1.0) * 100.0;
    format!("{b}/{a} of speeds (also of times): < slower  > faster  = equal ({within:.0} %)  ? not decided")
}

/// Backends and ranks of a number; empty where there are none to tell apart.
pub(super) fn section(compared: &Compared) -> String {
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

/// The name of a number, with its backend where `with_section` says so.
pub(super) fn name(compared: &Compared, with_section: bool) -> String {
    let section = Some(section(compared)).filter(|section| with_section && !section.is_empty());
    let column = Some(compared.column.clone()).filter(|column| !column.is_empty());
    section.into_iter().chain([compared.row.clone()]).chain(column).collect::<Vec<_>>().join(", ")
}

/// `12.3 -> 0.32 MB/s`.
pub(super) fn change(compared: &Compared) -> String {
    let [a, b] = compared.values.map(figure);
    format!("{a} -> {b} {}", compared.unit.name())
}

/// A fact on both sides.
pub(super) fn values(difference: &Difference) -> [String; 2] {
    [&difference.from, &difference.to].map(|value| match value {
        Some(value) if value.is_empty() => "(empty)".into(),
        Some(value) => value.clone(),
        None => "not there".into(),
    })
}

/// Whether it is fair, in a sentence or two.
pub(super) fn fairness(view: &View<'_>) -> String {
    let names = |kind| view.comparison.of_kind(kind).map(|d| d.name.clone()).collect::<Vec<_>>();
    let (definition, set_up) = (names(Kind::Definition), names(Kind::SetUp));
    if !definition.is_empty() {
        return format!(
            "NOT COMPARABLE: the sides differ in {}, so they measured different things. The ratios below are no \
             measure of better or worse.",
            list(&definition)
        );
    }
    let same = "what defines the numbers is the same on both sides";
    match set_up.len() {
        0 => format!("Comparable: {same}, and so is all that is recorded of the set-up."),
        1 => format!("Comparable: {same}. They differ in {} alone, which may be what you compare.", set_up[0]),
        number => format!(
            "Comparable: {same}. {} of the set-up differ: a ratio does not say which of them made it.",
            count(number as u64, "fact")
        ),
    }
}

/// What can be decided with these runs, a sentence each.
pub(super) fn decides(view: &View<'_>) -> Vec<String> {
    let [a, b] = view.sides.map(|side| side.name.as_str());
    let [of_a, of_b] = view.comparison.runs;
    let mut said = Vec::new();
    if view.comparison.is_single() {
        said.push(single(view));
        if view.comparison.compared.iter().any(|c| c.basis == Basis::Rounds) {
            said.push(
                "Intervals are of the rounds within the runs: they know nothing of what changes from run to run."
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
            "All runs of one side began before those of the other: a drift of the machine looks the same as a difference. Take turns: \
             {a} {b} {a} {b}."
        ));
    }
    for (side, names) in view.sides.iter().zip(&view.comparison.mixed).filter(|(_, names)| !names.is_empty()) {
        said.push(format!("The runs of {} differ among themselves in {}.", side.name, list(names)));
    }
    said
}

fn single(view: &View<'_>) -> String {
    let noise = |level: Level, name: &str| {
        let own = view.comparison.at(level).filter_map(|c| c.noise);
        let (low, high) = own.fold((f64::INFINITY, 0.0_f64), |(low, high), noise| (low.min(noise), high.max(noise)));
        if low > high {
            None
        } else if low < high {
            Some(format!("{} to {} for {name}", figure_of(low), figure_of(high)))
        } else {
            Some(format!("{} for {name}", figure_of(high)))
        }
    };
    let bounds = [noise(Level::Value, "values"), noise(Level::Group, "means"), noise(Level::Detail, "single lines")];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    format!(
        "One run each: no run-to-run interval. Equal runs differ, so a change by less than a factor of {} is not decided (--noise \
         sets it). Several runs a side decide more: compare A1,A2,A3 B1,B2,B3.",
        list(&bounds)
    )
}

fn figure_of(factor: f64) -> String {
    let text = format!("{factor:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Something that may have made a difference.
pub(super) fn cause(cause: &Cause, view: &View<'_>) -> String {
    let [a, b] = view.sides.map(|side| side.name.as_str());
    let sides = |first: bool, second: bool| match (first, second) {
        (true, true) => format!("{a} and {b}"),
        (true, false) => a.to_owned(),
        (false, _) => b.to_owned(),
    };
    match cause {
        Cause::Part { part, from, to } => {
            format!("{} took {} of the time in {a}, {} in {b}", part_words(part), percent(*from), percent(*to))
        }
        Cause::Cache { from, to } => {
            format!("read from memory, not storage: {} in {a}, {} in {b}", percent(*from), percent(*to))
        }
        Cause::Fact { name, from, to } => format!("{name}: {from} in {a}, {to} in {b}"),
        Cause::MoreFacts { number } => format!("{} more in force changed", count(*number, "hint or setting")),
        Cause::FewCalls { first, second } => format!("few calls in {}: read little into it", sides(*first, *second)),
        Cause::Busy { first, second } => format!("others used more than 5 % of the CPUs in {}", sides(*first, *second)),
    }
}

fn part_words(part: &str) -> &str {
    match part {
        "decide" => "waiting for slower ranks (decide)",
        "sync" => "sync",
        "transfer" => "the calls themselves",
        "view" => "setting the view",
        "room" => "making the file longer",
        other => other,
    }
}

/// All that may have made a difference; None: the records tell nothing.
pub(super) fn causes(compared: &Compared, view: &View<'_>) -> Option<String> {
    let told: Vec<String> = compared.causes.iter().map(|c| cause(c, view)).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The changes that matter most, and how many are not among them.
pub(super) struct Changes<'a> {
    pub(super) heading: String,
    pub(super) shown: Vec<&'a Compared>,
    pub(super) more: usize,
}

/// Single lines called different, largest first; without any the largest of those that are not decided.
pub(super) fn changes<'a>(view: &View<'a>, most: usize) -> Option<Changes<'a>> {
    let mut details: Vec<&Compared> = view.comparison.at(Level::Detail).collect();
    // Benchmarks or files may have no single lines in common.
    if details.is_empty() {
        return None;
    }
    details.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let of = details.len();
    let different: Vec<&Compared> = details.iter().copied().filter(|c| c.call.is_different()).collect();
    if different.is_empty() {
        if details.iter().all(|c| c.call == Call::Equal) {
            let heading = format!("All {of} single lines are equal");
            return Some(Changes { heading, shown: Vec::new(), more: 0 });
        }
        details.retain(|c| c.call == Call::NotDecided);
        details.truncate(most.min(3));
        let heading = format!("Largest changes; none of {of} single lines is called different");
        return Some(Changes { heading, shown: details, more: 0 });
    }
    let number = |call| different.iter().filter(|c| c.call == call).count();
    let heading = format!(
        "Largest changes; of {of} single lines {} slower, {} faster",
        number(Call::Slower),
        number(Call::Faster)
    );
    let more = different.len().saturating_sub(most);
    Some(Changes { heading, shown: different.into_iter().take(most).collect(), more })
}

/// What only one side has; None: nothing.
pub(super) fn missing(view: &View<'_>, most: usize) -> Vec<String> {
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

/// What became of the limit.
pub(super) fn gate(gate: &Gate, view: &View<'_>) -> String {
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
    if gate.passed {
        return format!("Gate {limit}: passed.{open}");
    }
    if view.comparison.compared.is_empty() {
        return format!("Gate {limit}: FAILED: {a} and {b} have no number in common.");
    }
    let slower: Vec<String> = gate
        .below
        .iter()
        .filter_map(|at| view.comparison.compared.get(*at))
        .take(3)
        .map(|c| format!("{} ({})", name(c, false), ratio(c.ratio)))
        .collect();
    let more = gate.below.len().saturating_sub(slower.len());
    let slower = (!slower.is_empty()).then(|| {
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        format!("slower: {}{more}", slower.join("; "))
    });
    let missing = (!gate.missing.is_empty())
        .then(|| format!("{b} lacks {}", list(&gate.missing.iter().take(3).cloned().collect::<Vec<_>>())));
    let wrong = gate.corrupt.then(|| format!("the data of {b} was wrong"));
    let reasons: Vec<String> = wrong.into_iter().chain(slower).chain(missing).collect();
    format!("Gate {limit}: FAILED: {}.{open}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_the_digits_that_matter() {
        let all = [1.0, 0.803, 0.0264, 12.34, 9.996, 1542.4].map(ratio);
        assert_eq!(all, ["1.00", "0.80", "0.026", "12", "10.0", "1542"]);
        assert_eq!([1.14, 2.0, 1.2996].map(figure_of), ["1.14", "2", "1.3"]);
    }
}
