//! Schedule against real time, and what measuring itself cost.

use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::{AccessTime, Derived};
use crate::frame::report::costs;
use crate::frame::report::machine;
use crate::frame::report::text::{count, nanoseconds, percent, Page};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::NULL_BACKEND;

pub(super) fn write(page: &mut Page, result: &RunResult, derived: &Derived) {
    page.heading("Schedule and costs");
    if !derived.times.is_empty() {
        schedule(page, &derived.times);
    }
    real_time(page, result);
    for (number, backend) in result.config.backends.iter().enumerate() {
        if let Some(text) = decisions(result, backend) {
            page.field(if number == 0 { "decisions" } else { "" }, &text);
        }
    }
    for (number, c) in result.calibrations.iter().enumerate() {
        let text = format!(
            "{}: {} written in {}, synced in {}",
            c.backend,
            format_size(c.bytes),
            format_seconds(c.write_seconds),
            format_seconds(c.sync_seconds)
        );
        page.field(if number == 0 { "calibration" } else { "" }, &text);
    }
    let ending = &result.ending;
    let memory = machine::rank_memory(ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes);
    page.field("rank memory", &memory);
    page.field("harness", &harness(result));
    if let Some(text) = recording(result) {
        page.field("latency", &text);
    }
    let name = |r: &PatternRecord| format!("{} pattern {} {}", r.backend, r.pattern, r.access.name());
    let allocations = costs::allocations(&result.patterns, |r| r.allocations_in_clock, "pattern run", name);
    page.field("allocations", &allocations);
}

fn schedule(page: &mut Page, times: &[AccessTime]) {
    page.line(format!(
        "  {:<12}{:>7} {:<8}{:>11}{:>10}{:>8} {:>10}{:>10}{:>10}{:>10}{:>10}",
        "backend",
        "ranks",
        "access",
        "scheduled",
        "real",
        "used",
        "+ sync",
        "+ open",
        "+ counts",
        "+ loops",
        "- unused"
    ));
    for t in times {
        let used =
            if t.scheduled_seconds > 0.0 { percent(t.real_seconds / t.scheduled_seconds) } else { "-".to_owned() };
        page.line(format!(
            "  {:<12.12}{:>7} {:<8}{:>11.2}{:>10.2}{used:>8} {:>10.2}{:>10.2}{:>10.2}{:>10.2}{:>10.2}",
            t.backend,
            t.ranks,
            t.access.name(),
            t.scheduled_seconds,
            t.real_seconds,
            t.sync_seconds,
            t.open_close_seconds,
            t.counted_seconds,
            t.loop_seconds,
            t.unused_seconds
        ));
    }
    page.hanging(
        "  in seconds: ",
        "real = scheduled + what went beyond the schedule - what was not used of it. sync: at the end of patterns; open: \
         opening and closing; counts: patterns driven by counts (types 3 and 4, warm-up, fill-up); loops: driven by time, \
         waiting for slower ranks included; unused: patterns that ended early.",
    );
    page.blank();
}

fn real_time(page: &mut Page, result: &RunResult) {
    let ending = &result.ending;
    let scheduled: f64 =
        result.partitions.iter().map(|p| p.time_seconds).sum::<f64>() * result.config.backends.len() as f64;
    let of_patterns: f64 = result.patterns.iter().map(|r| r.scheduled_seconds).sum();
    page.field(
        "real time",
        &format!(
            "{} from the calibration to the last close; scheduled {} by T, {} for the patterns recorded; of the real time {} \
             calibration and {} full check; removing the files took {} more",
            format_seconds(ending.real_seconds),
            format_seconds(scheduled),
            format_seconds(of_patterns),
            format_seconds(ending.calibrate_seconds),
            format_seconds(ending.full_verify_seconds),
            format_seconds(ending.cleanup_seconds)
        ),
    );
}

/// Cost and waiting of the decisions of one backend, and where they were worst.
fn decisions(result: &RunResult, backend: &str) -> Option<String> {
    let records: Vec<&PatternRecord> =
        result.patterns.iter().filter(|r| r.backend == backend && r.seconds() > 0.0).collect();
    let time: f64 = records.iter().map(|r| r.seconds()).sum();
    let cost: f64 = records.iter().map(|r| r.decision_cost_seconds).sum();
    let decide: f64 = records.iter().map(|r| r.intervals.decide_seconds).sum();
    let number: u64 = records.iter().map(|r| r.decisions).sum();
    let share = |r: &PatternRecord| r.decision_cost_seconds / r.seconds();
    let worst = records.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some(format!(
        "{backend}: {} cost {} of the time of the patterns, waiting for slower ranks {}; worst: pattern {} {} on {} {}",
        count(number, "decision"),
        percent(cost / time),
        percent((decide - cost).max(0.0) / time),
        worst.pattern,
        worst.access.name(),
        count(worst.ranks, "rank"),
        percent(share(worst))
    ))
}

fn harness(result: &RunResult) -> String {
    let h = &result.harness;
    format!(
        "clock step {}, clock reading {}, barrier {}, decision {}, access of the null backend {}",
        nanoseconds(h.clock_resolution_ns),
        nanoseconds(h.clock_read_ns),
        nanoseconds(h.barrier_ns),
        nanoseconds(h.decision_ns),
        nanoseconds(h.null_access_ns)
    )
}

/// What `--latency` itself costs, where that is the most.
fn recording(result: &RunResult) -> Option<String> {
    let cost = result.harness.latency_record_ns;
    let measured = result.patterns.iter().filter(|r| r.backend != NULL_BACKEND);
    let medians = measured.filter_map(|r| r.latency.as_ref().map(|l| (r, l.p50_ns))).filter(|(_, p50)| *p50 > 0);
    let (shortest, p50) = medians.min_by_key(|(_, p50)| *p50)?;
    let share = if cost > 0.0 {
        format!("takes {}, {} of", nanoseconds(cost), percent(cost / p50 as f64))
    } else {
        "takes a time that was not measured; compare with".to_owned()
    };
    Some(format!(
        "recording the time of a call {share} the shortest median of a pattern, {} ({} {} pattern {})",
        nanoseconds(p50 as f64),
        shortest.backend,
        shortest.access.name(),
        shortest.pattern
    ))
}
