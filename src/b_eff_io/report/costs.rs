//! Schedule, real time, and harness overhead.

use crate::b_eff_io::records::{Calibration, PatternRecord, RankMemoryRecord, RunResult};
use crate::b_eff_io::values::{AccessTime, Derived, TimeAccount};
use crate::frame::records::{CacheColdRecord, HugePagesRecord};
use crate::frame::report::costs::MeasurementCosts;
use crate::frame::report::model::{labelled_texts, ReportBlock, ReportSection};
use crate::frame::report::storage_drift;
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, nanoseconds, percent};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::or_hyphen;

pub(super) fn section(result: &RunResult, derived: &Derived) -> ReportSection {
    let calibration = |c: &Calibration| {
        let [write, sync] = [c.write_seconds, c.sync_seconds].map(format_seconds);
        format!("{}: {} written in {write}, synced in {sync}", c.backend, format_size(c.bytes))
    };
    let decisions = result.config.backends.iter().filter_map(|backend| decisions(result, backend));
    let own = [("real time", Some(real_time(result))), ("account", derived.account.as_ref().map(account))]
        .into_iter()
        .chain(decisions.map(|text| ("agreements", Some(text))))
        .chain(result.calibrations.iter().map(|c| ("calibration", Some(calibration(c)))))
        .chain(result.ending.rank_memory.iter().map(|memory| ("memory by kind", Some(memory_by_kind(memory)))))
        .chain(storage_drift::lines(&result.probes).into_iter().map(|text| ("storage", Some(text))))
        .chain(result.cache_cold.iter().map(|cold| ("cache-cold", Some(cache_cold_memory(cold)))))
        .chain(result.pages.iter().map(|pages| ("huge pages", Some(huge_pages(pages)))))
        .chain([("latency", latency_overhead(result))]);
    let (ending, harness) = (&result.ending, &result.harness);
    let costs = MeasurementCosts {
        harness: &[
            ("clock step", harness.clock_resolution_ns),
            ("clock reading", harness.clock_read_ns),
            ("barrier", harness.barrier_ns),
            ("agreement", harness.decision_ns),
            ("null backend access", harness.null_access_ns),
        ],
        rank_memory_bytes: [ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes],
        records: &result.patterns,
        noun: "pattern run",
        name: |r| format!("{} pattern {} {}", r.backend, r.pattern, r.access.name()),
        allocations: |r| r.allocations_in_clock,
        interference: |r| r.interference.as_ref(),
    };
    let costs = ReportBlock::Pairs(labelled_texts(own).into_iter().chain(costs.pairs()).collect());
    let schedule = (!derived.times.is_empty()).then(|| schedule(&derived.times));
    let blocks = schedule.into_iter().chain([costs]).collect();
    ReportSection { name: "costs", title: "Schedule and costs".into(), note: String::new(), blocks }
}

fn schedule(times: &[AccessTime]) -> ReportBlock {
    let head = [
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
        "- unused",
    ];
    let row = |t: &AccessTime| {
        let used = (t.scheduled_seconds > 0.0).then(|| percent(t.real_seconds / t.scheduled_seconds));
        let beyond = [t.sync_seconds, t.open_close_seconds, t.counted_seconds, t.loop_seconds, t.unused_seconds];
        let [scheduled, real] = [t.scheduled_seconds, t.real_seconds].map(|s| format!("{s:.2}"));
        let names = [t.backend.clone(), t.ranks.to_string(), t.access.name().to_owned()];
        names.into_iter().chain([scheduled, real, or_hyphen(used)]).chain(beyond.map(|s| format!("{s:.2}")))
    };
    let note = "real = scheduled + time beyond the schedule - unused scheduled time. sync: at the end of patterns; open: opening and \
                closing; counts: patterns driven by counts (types 3 and 4, warm-up, fill-up); loops: driven by time, waiting for slower \
                ranks included; unused: patterns that ended early.";
    let table = Table::new("", 3, head).with_rows(times.iter().map(row)).with_note(note);
    ReportBlock::Folded("Seconds of each access method".into(), vec![ReportBlock::Table(table)])
}

fn real_time(result: &RunResult) -> String {
    let ending = &result.ending;
    let scheduled: f64 =
        result.partitions.iter().map(|p| p.time_seconds).sum::<f64>() * result.config.backends.len() as f64;
    let of_patterns: f64 = result.patterns.iter().map(|r| r.scheduled_seconds).sum();
    format!(
        "{} from the calibration to the last close; scheduled {} by T, {} for the patterns recorded; of the real time {} calibration{} and \
         {} reading back; removing the files took another {}",
        format_seconds(ending.real_seconds),
        format_seconds(scheduled),
        format_seconds(of_patterns),
        format_seconds(ending.calibrate_seconds),
        ending.connection_setup_seconds.map_or_else(String::new, |seconds| {
            format!(", with {} for the first collective calls,", format_seconds(seconds))
        }),
        format_seconds(ending.full_verify_seconds),
        format_seconds(ending.cleanup_seconds)
    )
}

/// `68.1 s until the files were removed, 12 % outside the timed regions: removal 5.5 s, ...`, the largest cause first.
fn account(a: &TimeAccount) -> String {
    let mut causes = [
        ("start", a.start_seconds),
        ("survey", a.survey_seconds),
        ("preparation", a.preparation_seconds),
        ("verification", a.verification_seconds),
        ("journal", a.writing_seconds),
        ("agreement of the ranks and evidence", a.agreement_seconds),
        ("removal of the files", a.removal_seconds),
    ];
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let causes = causes.map(|(cause, seconds)| format!("{cause} {}", format_seconds(seconds))).join(", ");
    format!(
        "{} from the start of rank 0 until the files were removed, {} in timed regions, {} outside: {causes}",
        format_seconds(a.total_seconds),
        format_seconds(a.timed_seconds),
        percent(a.outside_share)
    )
}

/// Cost and waiting time of the agreements of one backend, and the worst case.
fn decisions(result: &RunResult, backend: &str) -> Option<String> {
    let records: Vec<&PatternRecord> =
        result.patterns.iter().filter(|r| r.backend == backend && r.seconds() > 0.0).collect();
    let time: f64 = records.iter().map(|r| r.seconds()).sum();
    let cost: f64 = records.iter().map(|r| r.decision_cost_seconds).sum();
    let decide: f64 = records.iter().map(|r| r.intervals.decide_seconds).sum();
    let number: u64 = records.iter().map(|r| r.decisions).fold(0, u64::saturating_add);
    // Unknown for results recorded before this field was introduced.
    let held_up: Option<f64> = records.iter().map(|r| r.imbalance_seconds).sum();
    let held_up = held_up.map_or_else(String::new, |seconds| {
        format!("; the slowest rank alone would have needed {} less", percent(seconds / time))
    });
    let share = |r: &PatternRecord| r.decision_cost_seconds / r.seconds();
    let worst = records.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some(format!(
        "{backend}: {} cost {} of the time of the patterns, waiting for slower ranks {}{held_up}; worst: pattern {} {} on {} {}",
        count(number, "agreement"),
        percent(cost / time),
        percent((decide - cost).max(0.0) / time),
        worst.pattern,
        worst.access.name(),
        count(worst.ranks, "rank"),
        percent(share(worst))
    ))
}

fn memory_by_kind(memory: &RankMemoryRecord) -> String {
    let proportional = memory.proportional_bytes.map_or_else(
        || "proportional share unknown".to_owned(),
        |bytes| format!("proportional share {}", format_size(bytes)),
    );
    format!(
        "planned {} own, {} mapped from neighbours, up to {} of files; maximum {} private, {} shared, {} of files and programs; \
         {proportional}",
        format_size(memory.planned_own_bytes),
        format_size(memory.planned_neighbours_bytes),
        format_size(memory.planned_file_bytes),
        format_size(memory.private_bytes),
        format_size(memory.shared_bytes),
        format_size(memory.file_bytes)
    )
}

fn cache_cold_memory(cold: &CacheColdRecord) -> String {
    let walked = format!(
        "transfer buffers of {} per rank, its share of the caches is {}",
        format_size(cold.memory_bytes),
        format_size(cold.cache_share_bytes)
    );
    match (&cold.unknown_reason, cold.memory_share()) {
        (None, Some(share)) => format!(
            "{walked}; {} of {} one pass later came from memory on the worst rank, {}: {} each, {} flushed, {} cached; measured in {}",
            percent(share),
            count(cold.lines, "load"),
            cold.rank,
            nanoseconds(cold.load_ns),
            nanoseconds(cold.flushed_ns),
            nanoseconds(cold.cached_ns),
            format_seconds(cold.seconds)
        ),
        (why, _) => format!("{walked}; residency in caches unknown: {}", why.as_deref().unwrap_or("no reason recorded")),
    }
}

fn huge_pages(pages: &HugePagesRecord) -> String {
    let whose = if pages.is_shared { "shareable by ranks" } else { "private to a rank" };
    match (pages.huge_page_bytes, pages.unknown_reason.as_deref()) {
        (Some(bytes), None) => {
            let why = pages.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            format!(
                "{} of {} of the transfer buffers {whose}, on the rank with least, {}{why}",
                format_size(bytes),
                format_size(pages.memory_bytes),
                pages.rank
            )
        }
        (_, why) => format!("unknown: {}", why.unwrap_or("no reason recorded")),
    }
}

/// Relative overhead of `--latency`, where it is largest.
fn latency_overhead(result: &RunResult) -> Option<String> {
    let cost = result.harness.latency_record_ns;
    let measured = result.patterns.iter().filter(|r| r.backend != NULL_BACKEND);
    let medians = measured.filter_map(|r| r.latency.as_ref().map(|l| (r, l.p50_ns))).filter(|(_, p50)| *p50 > 0);
    let (shortest, p50) = medians.min_by_key(|(_, p50)| *p50)?;
    let share = if cost > 0.0 {
        format!("takes {}, {} of", nanoseconds(cost), percent(cost / p50 as f64))
    } else {
        "takes an unmeasured time; compare with".to_owned()
    };
    Some(format!(
        "recording the time of a call {share} the shortest median of a pattern, {} ({} {} pattern {})",
        nanoseconds(p50 as f64),
        shortest.backend,
        shortest.access.name(),
        shortest.pattern
    ))
}
