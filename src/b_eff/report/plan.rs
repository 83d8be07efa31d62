//! Plan of b_eff as text: message sizes, patterns, random rings.

use crate::b_eff::plan::pattern::order_text;
use crate::b_eff::plan::sizes::{MAX_LMAX_BYTES, MEMORY_PER_LMAX};
use crate::b_eff::plan::{CommPattern, CommPlan, PatternFamily};
use crate::frame::units::format_size;

use crate::frame::report::text::{list, TextPage};

/// Largest number of ranks for which every random ring is listed.
const MAX_LISTED_RANKS: u64 = 16;

/// The plan of b_eff, no line wider than [`crate::frame::report::text::WIDTH`].
#[must_use]
pub fn text(plan: &CommPlan) -> String {
    let mut page = TextPage::default();
    head(&mut page, plan);
    patterns(&mut page, plan);
    random_rings(&mut page, plan);
    page.finish()
}

fn head(page: &mut TextPage, plan: &CommPlan) {
    page.line("Plan of a b_eff run; nothing has been measured.");
    page.blank();
    page.field("ranks", &plan.ranks.to_string());
    page.field("seed", &format!("{} (the same seed gives the same random rings on every machine)", plan.seed));
    page.field("Lmax", &lmax(plan));
    let sizes: Vec<String> = plan.sizes_bytes.iter().map(u64::to_string).collect();
    page.field("sizes", &format!("{} bytes: {} sizes", list(&sizes), sizes.len()));
    let left_out = PatternFamily::ALL.into_iter().filter(|family| !plan.patterns.iter().any(|p| p.family == *family));
    let (needed, others): (Vec<PatternFamily>, Vec<PatternFamily>) = left_out.partition(|family| family.in_average());
    let names = |families: &[PatternFamily]| list(&families.iter().map(|f| f.name().to_owned()).collect::<Vec<_>>());
    if !needed.is_empty() {
        page.field("omitted", &format!("{}: required for b_eff", names(&needed)));
    }
    if !others.is_empty() {
        page.field("omitted", &format!("{} (only reported, not part of b_eff)", names(&others)));
    }
}

fn lmax(plan: &CommPlan) -> String {
    let share_bytes = plan.memory_per_rank_bytes / MEMORY_PER_LMAX;
    let share = format!("memory per process ({}) / {MEMORY_PER_LMAX}", format_size(plan.memory_per_rank_bytes));
    if share_bytes > MAX_LMAX_BYTES {
        format!("{}, the maximum; {share} would be {}", format_size(plan.lmax_bytes), format_size(share_bytes))
    } else {
        format!("{} = {share}", format_size(plan.lmax_bytes))
    }
}

fn patterns(page: &mut TextPage, plan: &CommPlan) {
    page.heading(&format!("{} patterns; messages are those of all ranks in one iteration", plan.patterns.len()));
    page.line(format!("  {:<22} {:>12}  {:<13}  {}", "pattern", "messages", "counts", "rings, or extents of the grid"));
    let mut rest = plan.patterns.as_slice();
    while let [first, ..] = rest {
        // Random rings differ only in their order, which is listed below.
        let alike = if first.family == PatternFamily::Random { leading_random_rings(rest) } else { 1 };
        let (group, others) = rest.split_at(alike);
        page.line(row(group));
        rest = others;
    }
}

fn leading_random_rings(patterns: &[CommPattern]) -> usize {
    patterns.iter().take_while(|p| p.family == PatternFamily::Random).count()
}

/// Row of a pattern, or of several alike.
fn row(group: &[CommPattern]) -> String {
    let [first, .., last] = group else {
        return group.first().map(|p| line(&p.name, p, &p.shape)).unwrap_or_default();
    };
    line(&format!("{} to {}", first.name, last.name), first, "one ring of all ranks each, in random order")
}

fn line(name: &str, pattern: &CommPattern, shape: &str) -> String {
    let counts = if pattern.family.in_average() { "for b_eff" } else { "reported only" };
    format!("  {name:<22} {:>12}  {counts:<13}  {shape}", pattern.messages)
}

fn random_rings(page: &mut TextPage, plan: &CommPlan) {
    let rings: Vec<&CommPattern> = plan.patterns.iter().filter(|p| p.family == PatternFamily::Random).collect();
    if rings.is_empty() {
        return;
    }
    page.heading("Random rings");
    if plan.ranks > MAX_LISTED_RANKS {
        page.line(format!("  The order of {} ranks is not listed here; it is in the JSON plan.", plan.ranks));
        return;
    }
    for ring in rings {
        let order = ring.rings().unwrap_or_default().concat();
        page.line(format!("  {:<22} {}", ring.name, order_text(&order)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::report::text::WIDTH;

    fn plan(ranks: u64, memory_per_rank_bytes: u64, families: &[PatternFamily]) -> CommPlan {
        CommPlan::new(ranks, 42, memory_per_rank_bytes, families).unwrap()
    }

    #[test]
    fn golden_plan() {
        insta::assert_snapshot!("comm_plan", text(&plan(13, 512 << 20, &PatternFamily::ALL)));
    }

    #[test]
    fn the_cap_and_what_is_left_out_are_named() {
        let text = text(&plan(100, 64 << 30, &[PatternFamily::Ring, PatternFamily::Cartesian]));
        for part in [
            "128 MiB, the maximum; memory per process (64 GiB) / 128 would be 512 MiB",
            "random: required for b_eff",
            "ping-pong, worst-cycle and bisection (only reported, not part of b_eff)",
            "ring-3                          200  for b_eff      8x8+4x9",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("Random rings"));
    }

    #[test]
    fn every_number_of_ranks_fits_into_the_lines() {
        for ranks in [2, 16, 17, 10_000_000] {
            let text = text(&plan(ranks, 64 << 30, &PatternFamily::ALL));
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
            assert_eq!(text.contains("random-30              "), ranks <= 16, "{text}");
        }
    }
}
