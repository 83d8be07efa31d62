//! Hand-made results of b_eff for the tests of the reports. The numbers follow simple formulas; they are no measurement.

use crate::b_eff::plan::{Buffers, Family};
use crate::b_eff::records::*;
use crate::b_eff::values::fixture::run;
use crate::b_eff::values::CommDerived;
use crate::frame::config::Repeat;
use crate::frame::records::*;
use crate::frame::report::checks::with_derived;
use crate::frame::report::journal::torn;

/// The fixtures by name, with their derived values.
pub fn all() -> Vec<(&'static str, CommResult, CommDerived)> {
    with_derived([("complete", complete()), ("interrupted", interrupted()), ("failed", failed())])
}

/// Latency plus size by bandwidth; each pattern, method and repetition a little different.
fn speed(name: &str, family: Family, bytes: u64, method: Method, repetition: u32) -> f64 {
    let number: f64 = name.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(1.0);
    let (latency_seconds, asymptotic) = match method {
        Method::Sendrecv => (1.25e-6, 6e9),
        Method::Alltoallv => (4e-6, 4e9),
        Method::Nonblocking => (1.5e-6, 8e9),
        Method::PingPong => (0.5e-6, 3e9),
    };
    let family = match family {
        Family::Ring => 1.0 + number / 64.0,
        Family::Random => 0.75 - number / 128.0,
        Family::PingPong => 1.0,
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
    let of_average = result.patterns.iter_mut().filter(|p| p.family != Family::PingPong);
    for size in of_average.flat_map(|p| p.sizes.iter_mut().skip(19)) {
        size.loops.retain(|l| l.method == Method::Nonblocking && l.repetition == 0);
    }
    if let Some(told) = &mut result.announcement {
        told.effort.single_from = 19;
    }
    result.whole = Some(Whole { real_seconds: 150.5, efforts: Vec::new() });
    repeat(&mut result, 3);
    repeat(&mut result, 4);
    result.config.until_share = Some(0.01);
    result.config.bare = true;
    result.bare = vec![beside_bare(Method::PingPong, 1, 1.01), beside_bare(Method::Sendrecv, 4 << 20, 1.08)];
    result
}

/// The ping-pong, all rings and all random rings again, as in the first repetition and a little slower.
fn repeat(result: &mut CommResult, repetition: u32) {
    result.config.repeat = Repeat::Auto;
    let is_repeated = |p: &&CommPatternRecord| p.family.in_average() || p.family == Family::PingPong;
    for mut record in result.patterns.clone().iter().filter(is_repeated).cloned() {
        for size in &mut record.sizes {
            size.loops.retain(|one| one.repetition == 0);
            size.loops.iter_mut().for_each(|one| one.repetition = repetition);
            size.loops.iter_mut().for_each(|one| one.seconds *= 1.0 + f64::from(repetition) / 128.0);
        }
        record.real_seconds = 1.5;
        result.repeats.take_in(Visit(Box::new(record)));
    }
}

fn beside_bare(method: Method, message_bytes: u64, ratio: f64) -> BareRecord {
    let pair = |n: u32| {
        let bare_seconds = 1e-4 * f64::from(n % 3 + 1);
        BarePair { ours_seconds: bare_seconds * ratio * (1.0 + f64::from(n) * 1e-3), bare_seconds }
    };
    BareRecord {
        pattern: if method == Method::PingPong { "ping-pong" } else { "ring-6" }.into(),
        method,
        message_bytes,
        messages: if method == Method::PingPong { 2 } else { 8 },
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
    result.ending.outcome = Outcome::Interrupted;
    result.ending.real_seconds = 21.5;
    result.ending.rank_memory_high_water_bytes = 0;
    result.announcement.iter_mut().for_each(|told| told.memory = None);
    result
}

/// Quick, oversubscribed, round-robin, not bound, corrupt data, an error at the end, and a torn journal.
pub fn failed() -> CommResult {
    let mut result = run(2, &|name, family, bytes, method, repetition| {
        speed(name, family, bytes, method, repetition) / if repetition == 2 { 2.5 } else { 1.0 }
    });
    let effort = Effort { loop_seconds: 0.0005, single_from: 13, once_from: 19, random_rings: 4, extras: true };
    result.config.quick = true;
    result.config.buffers = Buffers::Reused;
    result.config.time_seconds = 10.0;
    result.config.inject = true;
    result.config.memory_per_process_bytes = Some(512 << 20);
    result.setup.numbering = Numbering::RoundRobin;
    result.patterns[1].machine = Some(fixture::machine_share(2.5));
    result.setup.machine.hosts[1].cores = 1;
    for (rank, place) in result.setup.placement.iter_mut().enumerate() {
        *place = Placement { host: rank as u64 % 2, cpus: "0-1".into(), cores: Some(2) };
    }
    for (number, host) in result.setup.machine.binding.iter_mut().flat_map(|b| &mut b.hosts).enumerate() {
        host.state = BindState::NotAsked;
        for (rank, place) in host.ranks.iter_mut().enumerate() {
            let cpus = "0-1".to_owned();
            *place = RankBinding { rank: (2 * rank + number) as u64, found_cpus: cpus.clone(), cpus, cores: Some(2) };
        }
    }
    result.setup.binding = None;
    result.setup.transport = Transport::default();
    result.setup.clock_resolution_ns = 1000.0;
    if let Some(told) = &mut result.announcement {
        (told.limit_seconds, told.expected_seconds, told.effort) = (10.0, 9.25, effort);
        told.memory = Some(MessageMemory {
            half_bytes: 8 << 20,
            huge_page_total_bytes: Some(60 << 20),
            huge_page_smallest_bytes: Some(14 << 20),
        });
    }
    result.patterns.retain(|p| p.family != Family::Random || ["random-1", "random-2"].contains(&p.pattern.as_str()));
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
    result.warnings.push(torn(17, 99));
    result.patterns.iter_mut().for_each(|p| p.real_seconds = 0.625);
    result.ending.outcome = Outcome::Failed;
    (result.ending.pilot_seconds, result.ending.verify_seconds) = (0.75, 1.5);
    result.ending.real_seconds = 14.5;
    result.ending.efforts = vec![(8, Effort { random_rings: 2, extras: false, ..effort })];
    result
}

fn corruption() -> CommCorruption {
    CommCorruption {
        pattern: "ring-2".into(),
        method: Method::Alltoallv,
        repetition: 1,
        message_bytes: 4096,
        iteration: 41,
        sender: 3,
        receiver: 2,
        offset_bytes: 1024,
        expected: 0xfe,
        found: 0xff,
        looks_like: "one bit flipped".into(),
        bytes_wrong: 3,
    }
}

/// The journal a run with this result would have written, but for the order among the kinds of records.
pub fn journal_lines(result: &CommResult) -> Vec<CommLine> {
    let mut lines = vec![result.start_line()];
    lines.extend(result.announcement.iter().cloned().map(CommLine::Announcement));
    lines.extend(result.patterns.iter().cloned().map(|p| CommLine::Pattern(Visit(Box::new(p)))));
    lines.extend(result.whole.iter().cloned().map(CommLine::Whole));
    lines.extend(result.repeats.iter().cloned().map(|p| CommLine::Repeat(Visit(Box::new(p)))));
    lines.extend(result.bare.iter().cloned().map(CommLine::Bare));
    lines.extend(result.corruptions.iter().cloned().map(CommLine::Corruption));
    lines.extend(result.errors.iter().cloned().map(CommLine::Error));
    lines.extend(result.warnings.iter().cloned().map(CommLine::Warning));
    lines.push(CommLine::End(result.ending.clone()));
    lines
}
