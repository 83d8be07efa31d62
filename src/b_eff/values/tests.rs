use super::fixture::{run, sizes};
use super::*;
use crate::b_eff::plan::{BufferMode, PatternFamily};
use crate::b_eff::records::{CommResult, MessageMethod};
use crate::frame::records::{kinds as frame_kinds, ErrorRecord, RunOutcome};
use crate::frame::records::{Placement, RankNumbering};
use crate::frame::report::checks::assert_valid;
use crate::frame::report::Views;
use crate::frame::values::warning::warning_text;

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

fn constant() -> CommResult {
    run(2, &|_, _, _, _, _| 4e9)
}

#[test]
fn the_same_bandwidth_everywhere_is_b_eff() {
    let mut result = constant();
    result.config.rmax_gflops = Some(20.0);
    let d = derive(&result);
    let value = &d.value;
    assert!(near(logavg([2.0, 8.0]).unwrap(), 4.0) && logavg([]).is_none());
    for level in [value.b_eff, value.rings, value.random, value.at_lmax, value.at_lmax_rings, value.at_lmax_random] {
        let level = level.unwrap();
        assert!(near(level.bytes_per_second, 4e9) && near(level.per_process_bytes_per_second, 1e9), "{level:?}");
    }
    assert_eq!((value.processes, value.random_rings), (4, 30));
    assert!(near(value.balance_bytes_per_flop.unwrap(), 0.2));
    // Two hosts of 4 GiB, limited to 1 GiB.
    assert_eq!(value.memory_bytes, 2 << 30);
    assert!(near(value.memory_seconds.unwrap(), (2_u64 << 30) as f64 / 4e9));
    assert!(near(value.ping_pong_bytes_per_second.unwrap(), 4e9));
    // 8 messages of a byte in 2 ns: each process sends two of them in sequence.
    assert!(near(value.latency.rings_seconds.unwrap(), 1e-9));
    assert!(near(value.latency.random_seconds.unwrap(), 1e-9));
    // A round trip has 2 bytes in 0.5 ns.
    assert!(near(value.latency.ping_pong_seconds.unwrap(), 0.25e-9));
    for m in &d.methods {
        assert!(near(m.b_eff.unwrap().bytes_per_second, 4e9) && m.omitted_from_bytes.is_none());
    }
    assert!(d.valid, "{:#?}", d.criteria);
    assert_eq!(d.warnings, []);
    assert_eq!((d.sizes.len() as u64, d.curves.len()), (DEFINED_SIZES, 40));
}

#[test]
fn rings_and_random_rings_weigh_alike_and_patterns_by_their_logarithm() {
    let speed = |name: &str, family: PatternFamily, _: u64, _: MessageMethod, _: u32| match (family, name) {
        (PatternFamily::Ring, "ring-1") => 64e9,
        (PatternFamily::Ring, _) => 1e9,
        (PatternFamily::Random, _) => 8e9,
        // Outside the average.
        _ => 1e3,
    };
    let value = derive(&run(1, &speed)).value;
    assert!(near(value.rings.unwrap().bytes_per_second, 2e9));
    assert!(near(value.random.unwrap().bytes_per_second, 8e9));
    assert!(near(value.b_eff.unwrap().bytes_per_second, 4e9));
    assert!(near(value.b_eff.unwrap().per_process_bytes_per_second, 2e9));
}

#[test]
fn s_is_the_mean_over_the_sizes_of_the_best_method_and_repetition() {
    let best = |bytes: u64| bytes as f64 * 1e3;
    let speed =
        |_: &str, _: PatternFamily, bytes: u64, method: MessageMethod, repetition: u32| match (method, repetition) {
            (MessageMethod::Alltoallv, 1) | (MessageMethod::PingPong, 2) => best(bytes),
            (MessageMethod::Alltoallv, _) => best(bytes) / 2.0,
            (MessageMethod::Sendrecv, _) => best(bytes) / 4.0,
            _ => best(bytes) / 8.0,
        };
    let d = derive(&run(1, &speed));
    let mean = sizes().into_iter().map(best).sum::<f64>() / 21.0;
    assert!(near(d.curve("ring-3").unwrap().mean_bytes_per_second.unwrap(), mean));
    assert!(near(d.value.b_eff.unwrap().bytes_per_second, mean));
    assert!(near(d.value.at_lmax.unwrap().bytes_per_second, best(4_194_304)));
    let by_method: Vec<f64> = d.methods.iter().map(|m| m.b_eff.unwrap().bytes_per_second / mean).collect();
    assert!(near(by_method[0], 0.25) && near(by_method[1], 1.0) && near(by_method[2], 0.125), "{by_method:?}");
    let size = &d.sizes[4];
    assert!(
        near(size.average_bytes_per_second.unwrap(), best(16))
            && near(size.per_process_bytes_per_second.unwrap(), best(8))
    );
    assert_eq!((size.best_method, size.best_in, size.of_patterns), (Some(MessageMethod::Alltoallv), 36, 36));
    let point = d.curve("random-2").unwrap().points[0].method(MessageMethod::Alltoallv).unwrap();
    assert!(near(point.worst_bytes_per_second, 500.0) && point.repetitions == 3);
}

#[test]
fn incomplete_records_have_no_value() {
    type ResultMutation = fn(&mut CommResult);
    let damages: [ResultMutation; 6] = [
        |r| r.patterns.retain(|p| p.pattern != "ring-4"),
        |r| r.patterns.retain(|p| p.pattern != "random-30"),
        |r| r.patterns.retain(|p| p.family != PatternFamily::Random),
        |r| r.patterns[3].sizes.truncate(20),
        |r| r.patterns[9].sizes[20].loops.clear(),
        |r| r.patterns[2].sizes[5].message_bytes = 33,
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let mut result = constant();
        damage(&mut result);
        let d = derive(&result);
        assert_eq!((d.value.b_eff, d.valid), (None, false), "{number}");
    }
    let mut result = constant();
    result.patterns[3].sizes.truncate(20);
    let d = derive(&result);
    assert!(d.value.random.is_some() && d.value.rings.is_none() && d.value.latency.rings_seconds.is_some());
    assert!(d.sizes[19].average_bytes_per_second.is_some() && d.sizes[20].average_bytes_per_second.is_none());
}

#[test]
fn fewer_random_rings_than_defined_are_a_value_that_is_not_valid() {
    let mut result = constant();
    result
        .patterns
        .retain(|p| p.family != PatternFamily::Random || ["random-1", "random-2"].contains(&p.pattern.as_str()));
    let announced = result.announcement.as_mut().unwrap();
    announced.effort.random_rings = 2;
    let effort = announced.effort;
    let d = derive(&result);
    assert!(near(d.value.b_eff.unwrap().bytes_per_second, 4e9) && d.value.random_rings == 2);
    assert_eq!(unmet(&d), ["rings with all 21 sizes 6 == 6, random rings 2 == 30"]);
    // With more announced, the run is incomplete...
    result.announcement.as_mut().unwrap().effort.random_rings = 3;
    assert_eq!(derive(&result).value.b_eff, None);
    // ...unless the effort was reduced during the run.
    result.ending.efforts.push((7, effort));
    assert!(derive(&result).value.b_eff.is_some());
}

#[test]
fn a_method_omitted_for_large_messages_has_no_value() {
    let mut result = constant();
    for size in result.patterns.iter_mut().flat_map(|p| p.sizes.iter_mut().skip(15)) {
        size.loops
            .retain(|l| [MessageMethod::PingPong, MessageMethod::Nonblocking].contains(&l.method) && l.repetition == 0);
    }
    let d = derive(&result);
    assert_eq!(d.methods[0].b_eff, None);
    assert_eq!(d.methods[0].omitted_from_bytes, Some(55_109));
    assert_eq!((d.methods[2].omitted_from_bytes, d.methods[2].b_eff), (None, d.value.b_eff));
    // Sizes above 4 kB may be measured by one method, and the criterion reports it.
    assert!(d.valid, "{:#?}", d.criteria);
    let text = &d.criteria.iter().find(|c| c.text.starts_with("three methods")).unwrap().text;
    assert!(text.contains("as 216 are, from 55109 B on"), "{text}");
    result.patterns[1].sizes[12].loops.truncate(8);
    assert_eq!(unmet(&derive(&result)).len(), 1);
}

fn unmet(d: &CommDerived) -> Vec<&str> {
    d.criteria.iter().filter(|c| !c.met).map(|c| c.text.as_str()).collect()
}

type Damage = fn(&mut CommResult);

#[test]
fn every_criterion_has_its_cause() {
    let error = || ErrorRecord {
        during: "ring-1".into(),
        rank: 0,
        ranks_affected: 1,
        message: "MPI_Send".into(),
        next_step: "look".into(),
        no_space: false,
    };
    let damages: [(Damage, &str); 10] = [
        (|r| r.ending.outcome = RunOutcome::Interrupted, "run complete (interrupted by a signal)"),
        (|r| r.config.buffers = BufferMode::Reused, "messages walk through memory (reused buffers)"),
        (|r| r.config.quick = true, "not the quick mode (quick mode)"),
        (|r| r.setup.machine.hosts[1].cores = 1, "no host with more ranks than cores (node02: 2 ranks, cores 1)"),
        (
            |r| r.announcement.as_mut().unwrap().effort.loop_seconds = 0.001,
            "loops of 2.5 ms or 300 iterations (planned 1.0 ms;",
        ),
        (|r| r.announcement = None, "(not planned;"),
        (|r| r.patterns[8].bytes_wrong = 3, "wrong bytes 3 == 0"),
        (|r| r.patterns.iter_mut().for_each(|p| p.bytes_checked = 0), "(0 B compared)"),
        (|r| r.patterns[8].allocations_in_clock = 1, "memory allocations inside the clock 1 == 0"),
        (|r| r.patterns[1].sizes[0].loops.truncate(6), "(fewer at 1 sizes of patterns"),
    ];
    for (damage, text) in damages {
        let mut result = constant();
        damage(&mut result);
        let d = derive(&result);
        assert!(!d.valid && unmet(&d).len() == 1 && unmet(&d)[0].contains(text), "{text}: {:?}", unmet(&d));
    }
    let mut result = constant();
    result.errors.push(error());
    assert_eq!(unmet(&derive(&result)), ["errors 1 == 0"]);
}

fn kinds(result: &CommResult) -> Vec<String> {
    derive(result).warnings.iter().map(|w| w.kind.to_string()).collect()
}

#[test]
fn every_warning_has_its_cause() {
    let damages: [(Damage, &[&str]); 14] = [
        (|r| r.setup.machine.hosts[0].cores = 1, &["oversubscribed"]),
        (|r| r.setup.numbering = RankNumbering::RoundRobin, &["numbering"]),
        (|r| r.setup.numbering = RankNumbering::Mixed, &["numbering"]),
        (|r| r.setup.numbering = RankNumbering::OneEach, &[]),
        (|r| place(r, ["0-1", "0-1", "0", "1"]), &["not_bound"]),
        (|r| place(r, ["0,8", "1,9", "0", "1"]), &[]),
        (|r| r.announcement.as_mut().unwrap().effort.best_method_from = 18, &["effort_reduced"]),
        (|r| r.announcement.as_mut().unwrap().effort.extras = false, &["effort_reduced"]),
        (
            |r| {
                r.announcement.as_mut().unwrap().effort.extras = false;
                r.config.families.truncate(3);
            },
            &[],
        ),
        (|r| slow_down(r, 2.1, 1), &["disturbed"]),
        (|r| slow_down(r, 1.9, 1), &[]),
        (|r| slow_down(r, 9.0, 11), &[]),
        (|r| r.setup.clock_resolution_ns = 1e6, &["short_loops"]),
        (|r| r.ending.real_seconds = 300.0, &["overrun"]),
    ];
    let mut raised = Vec::new();
    for (number, (damage, expected)) in damages.into_iter().enumerate() {
        let mut result = run(2, &|_, _, bytes, _, _| bytes as f64 * 1e4);
        damage(&mut result);
        assert_eq!(kinds(&result), expected, "{number}");
        raised.extend(derive(&result).warnings);
    }
    insta::assert_snapshot!("warnings", raised.iter().map(warning_text).collect::<String>());
    let result = constant();
    assert_valid::<CommResult>(&result.document(&CommDerived { warnings: raised, ..derive(&result) }).unwrap());
    let mut result = constant();
    result.warnings.push(frame_kinds::JOURNAL_TORN.warning());
    assert_eq!(kinds(&result), ["journal_torn"]);
}

#[test]
fn next_steps_name_quick_only_if_it_is_set() {
    let next_step = |quick: bool| {
        let mut result = constant();
        result.config.quick = quick;
        result.announcement.as_mut().unwrap().effort.extras = false;
        derive(&result).warnings.remove(0).next_step
    };
    assert!(next_step(true).contains("--quick") && !next_step(false).contains("--quick"));
}

fn place(result: &mut CommResult, cpus: [&str; 4]) {
    let places = cpus.into_iter().enumerate().map(|(rank, cpus)| Placement {
        host: rank as u64 / 2,
        cpus: cpus.into(),
        cores: None,
    });
    result.setup.placement = places.collect();
}

/// Slows down the last repetition of every n-th pattern.
fn slow_down(result: &mut CommResult, factor: f64, every: usize) {
    for one in result.patterns.iter_mut().step_by(every).flat_map(|p| &mut p.sizes).flat_map(|s| &mut s.loops) {
        if one.repetition == 2 {
            one.seconds *= factor;
        }
    }
}

/// If the kernel reports the cores, CPUs are not counted.
#[test]
fn a_rank_with_several_cores_is_not_bound() {
    for (cpus, cores, bound) in [("0,32", 1, true), ("0-1", 2, false), ("0-3", 2, false), ("0-3", 1, true)] {
        let mut result = constant();
        result.setup.placement[2] = Placement { host: 1, cpus: cpus.into(), cores: Some(cores) };
        assert_eq!(kinds(&result).is_empty(), bound, "{cpus} {cores}");
    }
}

#[test]
fn a_rank_alone_on_its_host_is_bound_if_it_has_one_core() {
    for (cpus, bound) in [("0", true), ("0,32", true), ("0-3", false)] {
        let mut result = constant();
        result.setup.placement = (0..2).map(|host| Placement { host, cpus: cpus.into(), cores: None }).collect();
        assert_eq!(kinds(&result).is_empty(), bound, "{cpus}");
    }
}

#[test]
fn the_source_of_messages_is_derived() {
    let from = |buffers: BufferMode, lmax_bytes: u64| {
        let mut result = constant();
        (result.config.buffers, result.setup.lmax_bytes) = (buffers, lmax_bytes);
        let d = derive(&result);
        (d.messages_from, d.valid)
    };
    // The cache has 32 MiB; each rank walks through two memories of six messages.
    assert_eq!(from(BufferMode::Cyclic, 4 << 20), (MessageSource::Memory, true));
    assert_eq!(from(BufferMode::Cyclic, 2 << 20), (MessageSource::SmallMemory, true));
    assert_eq!(from(BufferMode::Reused, 4 << 20), (MessageSource::ReusedWindows, false));
}

#[test]
fn nothing_measured_derives_nothing() {
    let mut result = constant();
    result.patterns.clear();
    result.setup.sizes_bytes.clear();
    result.announcement = None;
    let d = derive(&result);
    assert_eq!((d.value.b_eff, d.sizes.len(), d.curves.len(), d.valid), (None, 0, 0, false));
}

#[test]
fn of_methods_that_win_equally_often_the_first_is_named() {
    for [even, odd] in
        [[MessageMethod::Sendrecv, MessageMethod::Alltoallv], [MessageMethod::Nonblocking, MessageMethod::Alltoallv]]
    {
        let result = run(1, &|pattern, _, _, method, _| {
            let number: u32 = pattern.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            let best = if number.is_multiple_of(2) { even } else { odd };
            if method == best {
                2e9
            } else {
                1e9
            }
        });
        let size = &derive(&result).sizes[3];
        let first = if even == MessageMethod::Sendrecv { even } else { odd };
        assert_eq!((size.best_method, size.best_in, size.of_patterns), (Some(first), 18, 36));
    }
}
