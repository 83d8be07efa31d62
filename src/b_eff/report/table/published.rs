//! The measured value beside those the paper has published.

use crate::b_eff::plan::published::{PublishedSystem, SYSTEMS};
use crate::b_eff::records::CommResult;
use crate::b_eff::values::CommDerived;
use crate::frame::report::text::Page;
use crate::frame::units::format_size;

use super::mb;

/// Width of the name.
const NAME: usize = 28;

pub(super) fn write(page: &mut Page, result: &CommResult, derived: &CommDerived) {
    page.heading("Beside the systems of the paper (Table 1): MB/s");
    page.line(format!(
        "  {:NAME$}{:>6}{:>10}{:>9}{:>10}{:>9}{:>10}{:>12}{:>14}",
        "", "pro-", "", "per", "", "ping-", "b_eff at", "at Lmax", "Lmax, rings"
    ));
    page.line(format!(
        "  {:NAME$}{:>6}{:>10}{:>9}{:>10}{:>9}{:>10}{:>12}{:>14}",
        "system", "cesses", "b_eff", "process", "Lmax", "pong", "Lmax", "per process", "per process"
    ));
    let value = &derived.value;
    let all = |level: Option<crate::b_eff::values::Level>| level.map(|l| l.bytes_per_second);
    let each = |level: Option<crate::b_eff::values::Level>| level.map(|l| l.per_process_bytes_per_second);
    let measured = [
        all(value.b_eff),
        each(value.b_eff),
        value.ping_pong_bytes_per_second,
        all(value.at_lmax),
        each(value.at_lmax),
        each(value.at_lmax_rings),
    ];
    row(page, "this run", value.processes, Some(result.setup.lmax_bytes), measured);
    for p in &SYSTEMS {
        row(page, p.system, p.processes, p.lmax_bytes, numbers(p));
    }
}

fn numbers(p: &PublishedSystem) -> [Option<f64>; 6] {
    [
        Some(p.b_eff_mb_per_second),
        Some(p.per_process_mb_per_second),
        p.ping_pong_mb_per_second,
        Some(p.at_lmax_mb_per_second),
        Some(p.at_lmax_per_process_mb_per_second),
        Some(p.at_lmax_rings_per_process_mb_per_second),
    ]
    .map(|value| value.map(|mb| mb * 1e6))
}

/// The paper prints whole MB/s: so does this table, but for what is small.
fn row(page: &mut Page, system: &str, processes: u64, lmax: Option<u64>, numbers: [Option<f64>; 6]) {
    let whole = |value: Option<f64>, width: usize| match value {
        Some(rate) if rate / 1e6 >= 10_f64.powi(width as i32 - 1) => format!("{:>width$.2e}", rate / 1e6),
        Some(rate) if rate >= 1e7 => format!("{:>width$.0}", rate / 1e6),
        other => mb(other, width),
    };
    let [b_eff, per_process, ping_pong, at_lmax, lmax_each, lmax_rings] = numbers;
    page.line(format!(
        "  {system:NAME$}{processes:>6}{}{}{:>10}{}{}{}{}",
        whole(b_eff, 10),
        whole(per_process, 9),
        lmax.map_or_else(|| "-".to_owned(), format_size),
        whole(ping_pong, 9),
        whole(at_lmax, 10),
        whole(lmax_each, 12),
        whole(lmax_rings, 14)
    ));
}
