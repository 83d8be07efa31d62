//! How the run was set up, in full: what a reader needs to repeat it or to explain a number.

use crate::b_eff::records::CommResult;
use crate::b_eff::values::{LOOP_SECONDS, MOST_ITERATIONS};
use crate::frame::report::machine;
use crate::frame::report::text::{count, Page};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::binding::loose_ranks;

use super::header;

/// Ranks whose place is shown; all are in the JSON document.
const PLACES: usize = 16;

pub(super) fn write(page: &mut Page, result: &CommResult) {
    let (config, setup) = (&result.config, &result.setup);
    page.heading("Set-up");
    page.field("command", &setup.machine.command_line.join(" "));
    page.field("patterns", &format!("{}: {}", count(setup.patterns, "pattern"), header::families(result)));
    let sizes: Vec<String> = setup.sizes_bytes.iter().map(u64::to_string).collect();
    page.field("sizes", &format!("{} bytes; Lmax is {}", sizes.join(", "), format_size(setup.lmax_bytes)));
    page.field("memory", &header::pages(result));
    page.field(
        "loops",
        &format!(
            "{MOST_ITERATIONS} iterations at most, at least one, of {} to {} by the definition; 3 repetitions of 3 methods; a \
             barrier before each loop; the slowest rank counts",
            format_seconds(LOOP_SECONDS),
            format_seconds(2.0 * LOOP_SECONDS)
        ),
    );
    let inject = if config.inject { "; DAMAGED ON PURPOSE: one byte of a received message is turned over" } else { "" };
    page.field("data", &format!("seed {}; received messages are compared outside the clock{inject}", config.seed));
    page.field("ranks", &placement(result));
    // Newer results have it with the machine.
    page.fields("binding", setup.machine.binding.is_none().then(|| binding(result)));
    page.field("transport", &header::transport(setup));
    machine::write(page, &setup.machine);
}

/// What pins the ranks, and whether it did.
fn binding(result: &CommResult) -> String {
    let setup = &result.setup;
    let by = setup.binding.as_deref().unwrap_or("the launcher does not tell");
    match loose_ranks(&setup.placement).len() as u64 {
        0 => format!("each rank on one core; {by}"),
        loose => format!("{} of {} NOT BOUND to one core; {by}", loose, count(setup.placement.len() as u64, "rank")),
    }
}

/// `numbered ...: 0 on node01 (CPUs 0), ...`.
fn placement(result: &CommResult) -> String {
    let setup = &result.setup;
    let host = |index: u64| usize::try_from(index).ok().and_then(|i| setup.machine.hosts.get(i));
    let places: Vec<String> = setup
        .placement
        .iter()
        .take(PLACES)
        .enumerate()
        .map(|(rank, p)| format!("{rank} {} CPUs {}", host(p.host).map_or("?", |h| &h.name), p.cpus))
        .collect();
    let more = setup.placement.len().saturating_sub(PLACES);
    let more = if more > 0 { format!("; and {more} more in the JSON document") } else { String::new() };
    format!("{}; {}{more}", header::numbering(setup.numbering), places.join("; "))
}
