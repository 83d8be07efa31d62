//! Schedule against real time, and what measuring itself cost.

use crate::b_eff_io::records::{Calibration, PatternRecord, RankMemoryRecord, RunResult};
use crate::b_eff_io::values::{AccessTime, Derived};
use crate::frame::records::{ColdRecord, PagesRecord};
use crate::frame::report::costs::Costs;
use crate::frame::report::model::{pairs, Block, Section};
use crate::frame::report::probe;
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, nanoseconds, percent};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::or_none;

pub(super) fn section(result: &RunResult, derived: &Derived) -> Section {
    let calibration = |c: &Calibration| {
        let [write, sync] = [c.write_seconds, c.sync_seconds].map(format_seconds);
        format!("{}: {} written in {write}, synced in {sync}", c.backend, format_size(c.bytes))
    };
    let decisions = result.config.backends.iter().filter_map(|backend| decisions(result, backend));
    let own = [("real time", Some(real_time(result)))]
        .into_iter()
        .chain(decisions.map(|text| ("decisions", Some(text))))
        .chain(result.calibrations.iter().map(|c| ("calibration", Some(calibration(c)))))
        .chain(result.ending.rank_memory.iter().map(|memory| ("memory by kind", Some(memory_by_kind(memory)))))
        .chain(probe::lines(&result.probes).into_iter().map(|text| ("storage", Some(text))))
        .chain(result.cold.iter().map(|cold| ("cold memory", Some(cold_memory(cold)))))
        .chain(result.pages.iter().map(|pages| ("huge pages", Some(huge_pages(pages)))))
        .chain([("latency", recording(result))]);
    let (ending, harness) = (&result.ending, &result.harness);
    let costs = Costs {
        harness: &[
            ("clock step", harness.clock_resolution_ns),
            ("clock reading", harness.clock_read_ns),
            ("barrier", harness.barrier_ns),
            ("decision", harness.decision_ns),
            ("access of the null backend", harness.null_access_ns),
        ],
        rank_memory_bytes: [ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes],
        records: &result.patterns,
        noun: "pattern run",
        name: |r| format!("{} pattern {} {}", r.backend, r.pattern, r.access.name()),
        allocations: |r| r.allocations_in_clock,
        machine: |r| r.machine.as_ref(),
    };
    let costs = Block::Pairs(pairs(own).into_iter().chain(costs.pairs()).collect());
    let schedule = (!derived.times.is_empty()).then(|| schedule(&derived.times));
    let blocks = schedule.into_iter().chain([costs]).collect();
    Section { name: "costs", title: "Schedule and costs".into(), note: String::new(), blocks }
}

fn schedule(times: &[AccessTime]) -> Block {
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
        names.into_iter().chain([scheduled, real, or_none(used)]).chain(beyond.map(|s| format!("{s:.2}")))
    };
    let note = "real = scheduled + what went beyond the schedule - what was not used of it. sync: at the end of patterns; open: opening and \
                closing; counts: patterns driven by counts (types 3 and 4, warm-up, fill-up); loops: driven by time, waiting for slower ranks \
                included; unused: patterns that ended early.";
    let table = Table::new("", 3, head).with(times.iter().map(row)).noted(note);
    Block::Folded("Seconds of each access method".into(), vec![Block::Table(table)])
}

fn real_time(result: &RunResult) -> String {
    let ending = &result.ending;
    let scheduled: f64 =
        result.partitions.iter().map(|p| p.time_seconds).sum::<f64>() * result.config.backends.len() as f64;
    let of_patterns: f64 = result.patterns.iter().map(|r| r.scheduled_seconds).sum();
    format!(
        "{} from the calibration to the last close; scheduled {} by T, {} for the patterns recorded; of the real time {} calibration and {} \
         reading again; removing the files took {} more",
        format_seconds(ending.real_seconds),
        format_seconds(scheduled),
        format_seconds(of_patterns),
        format_seconds(ending.calibrate_seconds),
        format_seconds(ending.full_verify_seconds),
        format_seconds(ending.cleanup_seconds)
    )
}

/// Cost and waiting of the decisions of one backend, and where they were worst.
fn decisions(result: &RunResult, backend: &str) -> Option<String> {
    let records: Vec<&PatternRecord> =
        result.patterns.iter().filter(|r| r.backend == backend && r.seconds() > 0.0).collect();
    let time: f64 = records.iter().map(|r| r.seconds()).sum();
    let cost: f64 = records.iter().map(|r| r.decision_cost_seconds).sum();
    let decide: f64 = records.iter().map(|r| r.intervals.decide_seconds).sum();
    let number: u64 = records.iter().map(|r| r.decisions).fold(0, u64::saturating_add);
    // Not known of results before there was this number.
    let held_up: Option<f64> = records.iter().map(|r| r.held_up_seconds).sum();
    let held_up = held_up.map_or_else(String::new, |seconds| {
        format!("; the slowest rank by itself would have taken {} less", percent(seconds / time))
    });
    let share = |r: &PatternRecord| r.decision_cost_seconds / r.seconds();
    let worst = records.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some(format!(
        "{backend}: {} cost {} of the time of the patterns, waiting for slower ranks {}{held_up}; worst: pattern {} {} on {} {}",
        count(number, "decision"),
        percent(cost / time),
        percent((decide - cost).max(0.0) / time),
        worst.pattern,
        worst.access.name(),
        count(worst.ranks, "rank"),
        percent(share(worst))
    ))
}

/// What a rank had planned and what the kernel counts, without mixing both: neighbours and files are nobody's own.
fn memory_by_kind(memory: &RankMemoryRecord) -> String {
    let proportional = memory.proportional_bytes.map_or_else(
        || "by processes that share not known".to_owned(),
        |bytes| format!("{} with each page divided by the processes that map it", format_size(bytes)),
    );
    format!(
        "planned {} of its own, {} mapped of neighbours, up to {} of files; highest {} private, {} shared, {} of files and programs; \
         {proportional}",
        format_size(memory.planned_own_bytes),
        format_size(memory.planned_neighbours_bytes),
        format_size(memory.planned_file_bytes),
        format_size(memory.private_bytes),
        format_size(memory.shared_bytes),
        format_size(memory.file_bytes)
    )
}

/// What loads from the transfer memory took.
fn cold_memory(cold: &ColdRecord) -> String {
    let walked = format!(
        "ranks walk through {} each, their share of the caches is {}",
        format_size(cold.memory_bytes),
        format_size(cold.cache_share_bytes)
    );
    match (&cold.not_known, cold.from_memory()) {
        (None, Some(share)) => format!(
            "{walked}; {} of {} a lap later came from memory on the warmest rank, {}: {} each, {} flushed, {} cached; measured in {}",
            percent(share),
            count(cold.lines, "load"),
            cold.rank,
            nanoseconds(cold.found_ns),
            nanoseconds(cold.flushed_ns),
            nanoseconds(cold.cached_ns),
            format_seconds(cold.seconds)
        ),
        (why, _) => format!("{walked}; whether it is cold is not known: {}", why.as_deref().unwrap_or("no reason recorded")),
    }
}

/// What of the transfer memory is in huge pages.
fn huge_pages(pages: &PagesRecord) -> String {
    let whose = if pages.is_shared { "that ranks can share" } else { "of its own" };
    match (pages.huge_page_bytes, pages.not_known.as_deref()) {
        (Some(bytes), None) => {
            let why = pages.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            format!(
                "{} of {} of the transfer memory {whose}, on the rank with least, {}{why}",
                format_size(bytes),
                format_size(pages.memory_bytes),
                pages.rank
            )
        }
        (_, why) => format!("not known: {}", why.unwrap_or("no reason recorded")),
    }
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
