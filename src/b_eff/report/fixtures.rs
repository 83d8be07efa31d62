//! Hand-made results of b_eff for the tests of the reports. The numbers follow simple formulas; they are no measurement.

use crate::b_eff::plan::{BufferMode, PatternFamily};
use crate::b_eff::records::*;
use crate::b_eff::values::fixture::run;
use crate::b_eff::values::CommDerived;
use crate::frame::config::RepetitionPolicy;
use crate::frame::records::*;
use crate::frame::report::checks::with_derived;
use crate::frame::report::journal::truncated_warning;

/// The fixtures by name, with their derived values.
pub fn all() -> Vec<(&'static str, CommResult, CommDerived)> {
    with_derived([("complete", complete()), ("interrupted", interrupted()), ("failed", failed())])
}

/// Latency plus size by bandwidth, slightly different for each pattern, method and repetition.
fn speed(name: &str, family: PatternFamily, bytes: u64, method: MessageMethod, repetition: u32) -> f64 {
    let number: f64 = name.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(1.0);
    let (latency_seconds, asymptotic) = match method {
        MessageMethod::Sendrecv => (1.25e-6, 6e9),
        MessageMethod::Alltoallv => (4e-6, 4e9),
        MessageMethod::Nonblocking => (1.5e-6, 8e9),
        MessageMethod::PingPong => (0.5e-6, 3e9),
    };
    let family = match family {
        PatternFamily::Ring => 1.0 + number / 64.0,
        PatternFamily::Random => 0.75 - number / 128.0,
        PatternFamily::PingPong => 1.0,
        _ => 0.5,
    };
    let repetition = 1.0 - f64::from(repetition) / 32.0;
    family * repetition * bytes as f64 / (latency_seconds / 4.0 + bytes as f64 / asymptotic)
}

/// Four ranks on two hosts, everything measured; the two largest sizes by the best method alone.
pub fn complete() -> CommResult {
    let mut result = run(2, &speed);
    result.config.rmax_gflops = Some(153.5);
    result.config.out = Some("results/comm1".into());
    let of_average = result.patterns.iter_mut().filter(|p| p.family != PatternFamily::PingPong);
    for size in of_average.flat_map(|p| p.sizes.iter_mut().skip(19)) {
        size.loops.retain(|l| l.method == MessageMethod::Nonblocking && l.repetition == 0);
    }
    if let Some(announced) = &mut result.announcement {
        announced.effort.best_method_from = 19;
    }
    result.definition = Some(DefinitionRecord { real_seconds: 150.5, efforts: Vec::new() });
    add_repetition(&mut result, 3);
    add_repetition(&mut result, 4);
    result.config.until_share = Some(0.01);
    result.config.bare = true;
    result.bare =
        vec![bare_record(MessageMethod::PingPong, 1, 1.01), bare_record(MessageMethod::Sendrecv, 4 << 20, 1.08)];
    result
}

/// Adds a repetition of the ping-pong, all rings and all random rings, slightly slower than the first.
fn add_repetition(result: &mut CommResult, repetition: u32) {
    result.config.repeat = RepetitionPolicy::Auto;
    let is_repeated = |p: &&CommPatternRecord| p.family.in_average() || p.family == PatternFamily::PingPong;
    for mut record in result.patterns.clone().iter().filter(is_repeated).cloned() {
        for size in &mut record.sizes {
            size.loops.retain(|one| one.repetition == 0);
            size.loops.iter_mut().for_each(|one| one.repetition = repetition);
            size.loops.iter_mut().for_each(|one| one.seconds *= 1.0 + f64::from(repetition) / 128.0);
        }
        record.real_seconds = 1.5;
        result.repetitions.accumulate(PatternRepetition(Box::new(record)));
    }
}

fn bare_record(method: MessageMethod, message_bytes: u64, ratio: f64) -> BareRecord {
    let pair = |n: u32| {
        let bare_seconds = 1e-4 * f64::from(n % 3 + 1);
        BareLoopPair { harness_seconds: bare_seconds * ratio * (1.0 + f64::from(n) * 1e-3), bare_seconds }
    };
    BareRecord {
        pattern: if method == MessageMethod::PingPong { "ping-pong" } else { "ring-6" }.into(),
        method,
        message_bytes,
        messages: if method == MessageMethod::PingPong { 2 } else { 8 },
        iterations: 300,
        pairs: (0..9).map(pair).collect(),
    }
}

/// Stopped by a signal in the third random ring.
pub fn interrupted() -> CommResult {
    let mut result = run(1, &speed);
    result.patterns.truncate(10);
    if let Some(last) = result.patterns.last_mut() {
        last.sizes.truncate(7);
    }
    result.patterns.iter_mut().for_each(|p| p.real_seconds = 1.25);
    result.ending.outcome = RunOutcome::Interrupted;
    result.ending.real_seconds = 21.5;
    result.ending.rank_memory_high_water_bytes = 0;
    result.announcement.iter_mut().for_each(|announced| announced.memory = None);
    result
}

/// Quick, oversubscribed, round-robin, not bound, corrupt data, an error at the end, and a torn journal.
pub fn failed() -> CommResult {
    let mut result = run(2, &|name, family, bytes, method, repetition| {
        speed(name, family, bytes, method, repetition) / if repetition == 2 { 2.5 } else { 1.0 }
    });
    let effort = MeasurementEffort {
        loop_seconds: 0.0005,
        best_method_from: 13,
        unrepeated_from: 19,
        random_rings: 4,
        extras: true,
    };
    result.config.quick = true;
    result.config.buffers = BufferMode::Reused;
    result.config.time_seconds = 10.0;
    result.config.inject = true;
    result.config.memory_per_process_bytes = Some(512 << 20);
    result.setup.numbering = RankNumbering::RoundRobin;
    result.patterns[1].interference = Some(fixture::interference(2.5));
    result.setup.machine.hosts[1].cores = 1;
    for (rank, place) in result.setup.placement.iter_mut().enumerate() {
        *place = Placement { host: rank as u64 % 2, cpus: "0-1".into(), cores: Some(2) };
    }
    for (number, host) in result.setup.machine.binding.iter_mut().flat_map(|b| &mut b.hosts).enumerate() {
        host.state = BindState::NotAsked;
        for (rank, place) in host.ranks.iter_mut().enumerate() {
            let cpus = "0-1".to_owned();
            *place = RankBinding { rank: (2 * rank + number) as u64, initial_cpus: cpus.clone(), cpus, cores: Some(2) };
        }
    }
    result.setup.binding = None;
    result.setup.transport = Transport::default();
    result.setup.clock_resolution_ns = 1000.0;
    if let Some(announced) = &mut result.announcement {
        (announced.limit_seconds, announced.expected_seconds, announced.effort) = (10.0, 9.25, effort);
        announced.memory = Some(MessageMemory {
            half_bytes: 8 << 20,
            huge_page_total_bytes: Some(60 << 20),
            huge_page_smallest_bytes: Some(14 << 20),
        });
    }
    result
        .patterns
        .retain(|p| p.family != PatternFamily::Random || ["random-1", "random-2"].contains(&p.pattern.as_str()));
    for size in result.patterns.iter_mut().flat_map(|p| p.sizes.iter_mut().skip(13)) {
        size.loops.truncate(1);
    }
    if let Some(one) = result.patterns[1].sizes[0].loops.first_mut() {
        (one.iterations, one.seconds) = (10, 0.00005);
    }
    result.patterns[2].bytes_wrong = 3;
    result.patterns[3].allocations_in_clock = 2;
    result.corruptions.push(corruption());
    result.errors.push(ErrorRecord {
        during: "cart-2d-acyclic, 4194304 bytes, Sendrecv".into(),
        rank: 1,
        ranks_affected: 2,
        message: "MPI_Sendrecv: MPI_ERR_OTHER: process failed".into(),
        next_step: "Look at the messages of the launcher for the rank that died.".into(),
        no_space: false,
    });
    result.warnings.push(truncated_warning(17, 99));
    result.patterns.iter_mut().for_each(|p| p.real_seconds = 0.625);
    result.ending.outcome = RunOutcome::Failed;
    (result.ending.pilot_seconds, result.ending.verify_seconds) = (0.75, 1.5);
    result.ending.real_seconds = 14.5;
    result.ending.efforts = vec![(8, MeasurementEffort { random_rings: 2, extras: false, ..effort })];
    result
}

fn corruption() -> CommCorruption {
    CommCorruption {
        pattern: "ring-2".into(),
        method: MessageMethod::Alltoallv,
        repetition: 1,
        message_bytes: 4096,
        iteration: 41,
        sender: 3,
        receiver: 2,
        offset_bytes: 1024,
        expected: 0xfe,
        actual: 0xff,
        diagnosis: "one bit flipped".into(),
        bytes_wrong: 3,
    }
}

/// The journal of a run with this result, except for the order among the kinds of records.
pub fn journal_lines(result: &CommResult) -> Vec<CommLine> {
    let mut lines = vec![result.start_line()];
    lines.extend(result.announcement.iter().cloned().map(CommLine::Announcement));
    lines.extend(result.patterns.iter().cloned().map(|p| CommLine::Pattern(PatternRepetition(Box::new(p)))));
    lines.extend(result.definition.iter().cloned().map(CommLine::Definition));
    lines.extend(result.repetitions.iter().cloned().map(|p| CommLine::Repetition(PatternRepetition(Box::new(p)))));
    lines.extend(result.bare.iter().cloned().map(CommLine::Bare));
    lines.extend(result.corruptions.iter().cloned().map(CommLine::Corruption));
    lines.extend(result.errors.iter().cloned().map(CommLine::Error));
    lines.extend(result.warnings.iter().cloned().map(CommLine::Warning));
    lines.push(CommLine::End(result.ending.clone()));
    lines
}
