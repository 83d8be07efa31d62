//! What b_eff would measure, as text: message sizes, patterns, random rings.

use crate::b_eff::plan::pattern::chain;
use crate::b_eff::plan::sizes::{LARGEST_LMAX_BYTES, MEMORY_SHARE};
use crate::b_eff::plan::{CommPattern, CommPlan, Family};
use crate::frame::units::format_size;

use crate::frame::report::text::{list, Page};

/// Up to so many ranks, every random ring is written out.
const WRITTEN_RANKS: u64 = 16;

/// The plan of b_eff, no line wider than [`crate::frame::report::text::WIDTH`].
#[must_use]
pub fn text(plan: &CommPlan) -> String {
    let mut page = Page::default();
    head(&mut page, plan);
    patterns(&mut page, plan);
    random_rings(&mut page, plan);
    page.finish()
}

fn head(page: &mut Page, plan: &CommPlan) {
    page.line("Plan of a b_eff run; nothing has been measured.");
    page.blank();
    page.field("ranks", &plan.ranks.to_string());
    page.field("seed", &format!("{} (the same seed gives the same random rings on every machine)", plan.seed));
    page.field("Lmax", &lmax(plan));
    let sizes: Vec<String> = plan.sizes_bytes.iter().map(u64::to_string).collect();
    page.field("sizes", &format!("{} bytes: {} sizes", list(&sizes), sizes.len()));
    let left_out = Family::ALL.into_iter().filter(|family| !plan.patterns.iter().any(|p| p.family == *family));
    let (needed, others): (Vec<Family>, Vec<Family>) = left_out.partition(|family| family.in_average());
    let names = |families: &[Family]| list(&families.iter().map(|f| f.name().to_owned()).collect::<Vec<_>>());
    if !needed.is_empty() {
        page.field("left out", &format!("{}: without it there is no b_eff", names(&needed)));
    }
    if !others.is_empty() {
        page.field("left out", &format!("{} (only reported, no part of b_eff)", names(&others)));
    }
}

fn lmax(plan: &CommPlan) -> String {
    let share_bytes = plan.memory_per_rank_bytes / MEMORY_SHARE;
    let share = format!("memory per process ({}) / {MEMORY_SHARE}", format_size(plan.memory_per_rank_bytes));
    if share_bytes > LARGEST_LMAX_BYTES {
        format!("{}, the most there is; {share} would be {}", format_size(plan.lmax_bytes), format_size(share_bytes))
    } else {
        format!("{} = {share}", format_size(plan.lmax_bytes))
    }
}

fn patterns(page: &mut Page, plan: &CommPlan) {
    page.heading(&format!("{} patterns; messages are those of all ranks in one iteration", plan.patterns.len()));
    page.line(format!("  {:<22} {:>12}  {:<13}  {}", "pattern", "messages", "counts", "rings, or extents of the grid"));
    let mut rest = plan.patterns.as_slice();
    while let [first, ..] = rest {
        // Random rings differ in nothing but their order, which stands below.
        let alike = if first.family == Family::Random { randoms(rest) } else { 1 };
        let (group, others) = rest.split_at(alike);
        page.line(row(group));
        rest = others;
    }
}

fn randoms(patterns: &[CommPattern]) -> usize {
    patterns.iter().take_while(|p| p.family == Family::Random).count()
}

/// A pattern, or several that share a row.
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

fn random_rings(page: &mut Page, plan: &CommPlan) {
    let rings: Vec<&CommPattern> = plan.patterns.iter().filter(|p| p.family == Family::Random).collect();
    if rings.is_empty() {
        return;
    }
    page.heading("Random rings");
    if plan.ranks > WRITTEN_RANKS {
        page.line(format!("  The order of {} ranks is not written here; the plan as JSON has it.", plan.ranks));
        return;
    }
    for ring in rings {
        let order = ring.rings().unwrap_or_default().concat();
        page.line(format!("  {:<22} {}", ring.name, chain(&order)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::report::text::WIDTH;

    fn plan(ranks: u64, memory_per_rank_bytes: u64, families: &[Family]) -> CommPlan {
        CommPlan::new(ranks, 42, memory_per_rank_bytes, families).unwrap()
    }

    #[test]
    fn golden_plan() {
        insta::assert_snapshot!("comm_plan", text(&plan(13, 512 << 20, &Family::ALL)));
    }

    #[test]
    fn the_cap_and_what_is_left_out_are_named() {
        let text = text(&plan(100, 64 << 30, &[Family::Ring, Family::Cartesian]));
        for part in [
            "128 MiB, the most there is; memory per process (64 GiB) / 128 would be 512 MiB",
            "random: without it there is no b_eff",
            "ping-pong, worst-cycle and bisection (only reported, no part of b_eff)",
            "ring-3                          200  for b_eff      8x8+4x9",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("Random rings"));
    }

    #[test]
    fn every_number_of_ranks_fits_into_the_lines() {
        for ranks in [2, 16, 17, 10_000_000] {
            let text = text(&plan(ranks, 64 << 30, &Family::ALL));
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
            assert_eq!(text.contains("random-30              "), ranks <= 16, "{text}");
        }
    }
}
