//! Announced against real time, and what measuring itself cost.

use crate::frame::config::Repeat;
use crate::frame::report::costs;
use crate::frame::report::text::{count, nanoseconds, percent, Page};
use crate::frame::units::format_seconds;
use crate::imb_io::records::ImbResult;
use crate::imb_io::values::ImbDerived;

use super::header;

pub(super) fn write(page: &mut Page, result: &ImbResult, derived: &ImbDerived) {
    let (setup, ending) = (&result.setup, &result.ending);
    page.heading("Schedule and costs");
    let ratio = derived.verdict.real_to_expected.map_or_else(String::new, |r| format!("; real / announced {r:.2}"));
    page.field("time", &format!("{}{ratio}", header::time(result)));
    let rows: f64 = result.rows.iter().map(|r| r.real_seconds).sum();
    let pilot = result.announcement.as_ref().map_or(0.0, |a| a.pilot_seconds);
    page.field(
        "real time",
        &format!(
            "{} for {} with preparation, trial and comparing data; pilot {}; comparing data {}; removing files {}",
            format_seconds(rows),
            count(result.rows.len() as u64, "row"),
            format_seconds(pilot),
            format_seconds(ending.verify_seconds),
            format_seconds(ending.cleanup_seconds)
        ),
    );
    page.field("repeats", &repeats(result));
    if let Some(load) = result.announcement.as_ref().and_then(|a| a.cpu_load) {
        let unit = nanoseconds(load.unit_seconds * 1e9);
        let error = percent(load.calibration_error);
        page.field("CPU load", &format!("one unit takes {unit}; as calibrated up to {error} off"));
    }
    costs::machine(page, result.measured().filter_map(|r| r.machine.as_ref()));
    costs::harness(
        page,
        &[
            ("clock step", setup.clock_resolution_ns),
            ("end of a repetition", setup.lap_ns),
            ("barrier", setup.barrier_ns),
        ],
    );
    costs::rank_memory(page, ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes);
    let measured: Vec<_> = result.measured().collect();
    costs::allocations(page, &measured, |r| r.allocations_in_clock, "row", |r| r.benchmark.clone());
}

/// How often rows were measured again, and why no more.
fn repeats(result: &ImbResult) -> String {
    let config = &result.config;
    let until = config.until_share.map(|share| format!("until known within {}", percent(share)));
    let asked = match config.repeat {
        Repeat::Off => return "none; --repeat gives intervals".to_owned(),
        Repeat::Auto => "within the time limit of each row".to_owned(),
        Repeat::Times(times) => format!("{} more at most", count(times, "round")),
    };
    let seconds: f64 = result.repeats.iter().map(|again| again.measured.real_seconds).sum();
    let number = count(result.repeats.len() as u64, "row");
    let parts = [Some(asked), until, Some(format!("{number} measured again in {}", format_seconds(seconds)))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
