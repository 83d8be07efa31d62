//! Loops, patterns and whole runs on two and three ranks whose messages go through memory, by scripts.

use crate::b_eff::cli::CommArgs;
use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::sizes::LEAST_MEMORY_BYTES;
use crate::b_eff::plan::{Buffers, CommPlan, Family};
use crate::b_eff::records::{CommCorruption, CommEnding, CommLine, CommPatternRecord, Method};
use crate::frame::benchmark::of_words;
use crate::frame::records::Outcome;
use crate::frame::run::machine_share::HostCpus;
use crate::frame::run::testing::{clear_log, log_of, play, same, with, Answer, Script};
use crate::frame::run::{Moved, Observer, Standing};

use super::memory::Memory;
use super::pattern::{Loop, Pattern};
use super::whole::Run;

/// Messages of rank 1 take longer to send, and on rank 2 to receive.
fn script(rank: u64) -> Script {
    Script::default()
        .cost("send", if rank == 1 { 0.002 } else { 0.001 })
        .cost("receive", 0.0005)
        .cost("bare barrier", 0.001)
        .cost("max", 0.001)
        .allocates("send", 1)
        .allocates("receive", 100_000)
        .allocates("bare barrier", 1)
}

fn one_loop(method: Method, message_bytes: u64, iterations: u64) -> Loop {
    Loop { method, repetition: 0, number: 0, message_bytes, iterations }
}

#[test]
fn a_loop_is_timed_behind_its_barrier_and_compared_whole() {
    for (ranks, buffers) in [(2, Buffers::Cyclic), (3, Buffers::Cyclic), (3, Buffers::Reused)] {
        let plan = CommPlan::new(ranks, 3, LEAST_MEMORY_BYTES, &Family::ALL).unwrap();
        let layout = Run::layout(&plan, buffers);
        for (index, of) in plan.patterns.iter().enumerate().filter(|(_, of)| of.family != Family::Random) {
            let seen = play(ranks, script, |comm| {
                let mut memory = Memory::new(layout, comm.rank()).unwrap();
                let mut pattern = Pattern::new(comm, layout, index as u64, of).unwrap();
                pattern.touch(&mut memory).unwrap();
                clear_log();
                let l = one_loop(Method::Sendrecv, 8, 3);
                let seconds = pattern.timed(&mut memory, &l).unwrap();
                let (log, messages) = (log_of(&["bare barrier", "send", "receive"]), log_of(&["receive"]).len() as u64);
                let sent = log_of(&["send"]).len() as u64;
                assert_eq!(log[0], "bare barrier");
                assert!(log[1..].iter().all(|line| !line.contains("barrier")));
                assert_eq!(
                    (sent, messages),
                    (3 * of.steps(comm.rank()).iter().filter(|s| s.send_to.is_some()).count() as u64, sent)
                );
                assert!(log.iter().filter(|line| line.starts_with("send")).all(|line| line.starts_with("send 8 to")));
                assert_eq!(pattern.allocations, sent + 100_000 * messages);
                pattern.check(&mut memory, &l);
                // With cyclic buffers all is still there.
                let bytes = 8 * messages;
                assert_eq!(pattern.bytes_wrong, 0, "{}", of.name);
                assert!(pattern.bytes_checked <= bytes && (messages == 0) == (pattern.bytes_checked == 0));
                assert!(
                    buffers == Buffers::Reused || pattern.bytes_checked == bytes,
                    "{} {bytes}",
                    pattern.bytes_checked
                );
                // Wiped, so that a loop that delivers nothing is seen.
                if buffers == Buffers::Cyclic && messages > 0 {
                    pattern.check(&mut memory, &l);
                    assert!(pattern.bytes_wrong > bytes * 9 / 10, "{}: some are equal by chance", of.name);
                }
                (seconds, sent)
            });
            // Its own messages at least, and never the barrier.
            for (rank, (seconds, sent)) in seen.iter().enumerate() {
                let own = *sent as f64 * (if rank == 1 { 0.002 } else { 0.001 } + 0.0005);
                let slowest = 3.0 * of.most_steps() as f64 * 0.0025 + 0.001 + 0.002;
                assert!(*seconds >= own - 1e-9 && *seconds <= slowest, "{} {rank}: {own} {seconds}", of.name);
            }
        }
    }
}

#[test]
fn a_wrong_byte_is_named_with_sender_receiver_and_place() {
    let plan = CommPlan::new(3, 3, LEAST_MEMORY_BYTES, &[Family::Ring]).unwrap();
    let layout = Run::layout(&plan, Buffers::Cyclic);
    let seen = play(3, script, |comm| {
        let mut memory = Memory::new(layout, comm.rank()).unwrap();
        let last = plan.patterns.len() - 1;
        let mut pattern = Pattern::new(comm, layout, last as u64, &plan.patterns[last]).unwrap();
        let l = one_loop(Method::Alltoallv, 64, 2);
        pattern.timed(&mut memory, &l).unwrap();
        if comm.rank() == 2 {
            pattern.damage(&mut memory, &l);
        }
        pattern.check(&mut memory, &l);
        (pattern.bytes_wrong, pattern.corruptions, plan.patterns[last].steps(comm.rank()))
    });
    assert_eq!(seen.iter().map(|(wrong, ..)| *wrong).collect::<Vec<_>>(), [0, 0, 1]);
    let [found] = &seen[2].1[..] else { panic!("{:?}", seen[2].1) };
    let sender = seen[2].2[0].receive_from.unwrap();
    assert_eq!((found.receiver, found.sender, found.iteration, found.bytes_wrong), (2, sender, 1, 1));
    assert_eq!((found.offset_bytes, found.message_bytes, found.method), (32, 64, Method::Alltoallv));
    assert_eq!(found.expected ^ found.found, 0x10);
    assert_eq!(found.looks_like, "one bit flipped");
}

#[derive(Default)]
struct Keeps {
    lines: Vec<CommLine>,
    standings: Vec<Standing>,
}

impl Observer<CommLine> for Keeps {
    fn record(&mut self, line: CommLine) {
        self.lines.push(line);
    }

    fn progress(&mut self, standing: &Standing) {
        self.standings.push(standing.clone());
    }

    fn measured(&mut self, _is_complete: bool, _last: Vec<Moved>) {}
}

impl Keeps {
    fn patterns(&self) -> Vec<&CommPatternRecord> {
        self.lines
            .iter()
            .filter_map(|line| if let CommLine::Pattern(visit) = line { Some(&*visit.0) } else { None })
            .collect()
    }

    fn corruptions(&self) -> Vec<&CommCorruption> {
        self.lines.iter().filter_map(|line| if let CommLine::Corruption(c) = line { Some(c) } else { None }).collect()
    }
}

fn run(
    ranks: u64,
    options: &str,
    scripts: impl Fn(u64) -> Script + Sync,
    change: impl Fn(&mut CommConfig) + Sync,
) -> Vec<(CommEnding, Keeps)> {
    let mut config = of_words::<CommArgs>(options.split_whitespace()).config().unwrap();
    change(&mut config);
    let plan = CommPlan::new(ranks, 3, LEAST_MEMORY_BYTES, &config.families).unwrap();
    play(ranks, scripts, |comm| {
        let cpus = HostCpus::survey(comm).unwrap();
        let interrupt = with(|script| script.interrupt.clone());
        let mut keeps = Keeps::default();
        let mut run = Run::new(comm, &plan, &config, cpus, &interrupt, &mut keeps).unwrap();
        run.announce().unwrap();
        let ending = run.execute().unwrap();
        drop(run);
        (ending, keeps)
    })
}

#[test]
fn a_run_records_the_slowest_rank_of_each_loop() {
    for ranks in [2, 3] {
        let seen = run(ranks, "-T 60s --repeat off", script, |config| config.families = vec![Family::Ring]);
        let (ending, keeps) = &seen[0];
        assert_eq!(ending.outcome, Outcome::Complete);
        let records = keeps.patterns();
        let names: std::collections::BTreeSet<&str> = records.iter().map(|record| record.pattern.as_str()).collect();
        assert!(records.len() >= names.len() && names.len() == 6, "{names:?}");
        for (nth, record) in records.iter().enumerate() {
            // Every rank keeps the same.
            assert_eq!(seen[1].1.patterns()[nth].sizes, record.sizes);
            assert_eq!((record.family, record.bytes_wrong), (Family::Ring, 0));
            let steps = record.messages / ranks;
            let mut messages = 0;
            for size in &record.sizes {
                for l in &size.loops {
                    messages += l.iterations * record.messages;
                    assert_eq!(l.repetition as usize, nth / names.len());
                    // Rank 1 takes 2 ms for each message that it sends, and more for those that it receives.
                    let one = 0.0025 * steps as f64;
                    let whole = l.iterations as f64 * one;
                    assert!(l.seconds >= whole - 1e-9 && l.seconds <= whole + 0.004, "{l:?} {steps}");
                }
            }
            assert_eq!(record.allocations_in_clock, messages + 100_000 * messages, "{}", record.pattern);
            let bytes: u64 = record.sizes.iter().map(|size| size.loops.len() as u64 * size.message_bytes).sum();
            assert!(record.bytes_checked >= bytes, "{} {bytes}", record.bytes_checked);
            assert!(record.real_seconds > record.sizes.iter().flat_map(|size| &size.loops).map(|l| l.seconds).sum());
        }
        let spent: f64 = records.iter().map(|record| record.real_seconds).sum();
        assert!(same(ending.real_seconds, ending.pilot_seconds + spent) || ending.real_seconds > spent, "{ending:?}");
        assert!(ending.real_seconds <= 60.0, "{ending:?}");
    }
}

#[test]
fn damage_is_found_once_and_a_signal_of_any_rank_ends_the_run() {
    let seen = run(3, "-T 60s --repeat off", script, |config| {
        (config.families, config.inject) = (vec![Family::Ring], true);
    });
    let keeps = &seen[0].1;
    assert_eq!(keeps.patterns().iter().map(|record| record.bytes_wrong).sum::<u64>(), 1);
    let [found] = keeps.corruptions()[..] else { panic!("{:?}", keeps.corruptions()) };
    assert_eq!((found.message_bytes, found.looks_like.as_str()), (4096, "one bit flipped"));
    let (patterns, all_sizes) = (keeps.patterns().len(), keeps.patterns()[0].sizes.len());
    let signalled = |rank| if rank == 2 { script(rank).answer("send", 700, Answer::Signal) } else { script(rank) };
    for options in ["-T 60s --repeat off", "-T 60s"] {
        for (ending, keeps) in run(3, options, signalled, |config| config.families = vec![Family::Ring]) {
            assert_eq!(ending.outcome, Outcome::Interrupted);
            assert!(!keeps.lines.iter().any(|line| matches!(line, CommLine::Whole(_) | CommLine::Repeat(_))));
            // Nothing comes behind the size in which the signal came.
            let sizes: Vec<usize> = keeps.patterns().iter().map(|record| record.sizes.len()).collect();
            let (last, before) = sizes.split_last().unwrap();
            assert!(sizes.len() < patterns / 2 && before.iter().all(|n| *n == all_sizes), "{sizes:?}");
            assert!((1..all_sizes).contains(last), "{sizes:?}");
        }
    }
}
