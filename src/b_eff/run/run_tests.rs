//! Loops, patterns and whole runs on two and three simulated ranks with scripted clocks.

use crate::b_eff::cli::CommArgs;
use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::sizes::MIN_MEMORY_BYTES;
use crate::b_eff::plan::{BufferMode, CommPlan, PatternFamily};
use crate::b_eff::records::{CommCorruption, CommEnding, CommLine, CommPatternRecord, MessageMethod};
use crate::frame::benchmark::options_from_words;
use crate::frame::records::RunOutcome;
use crate::frame::run::interference::HostCpus;
use crate::frame::run::testing::{approx_equal, clear_log, log_of, run_ranks, with_script, Script, ScriptedOutcome};
use crate::frame::run::{ProgressReport, RunObserver, TransferVolume};

use super::comm_run::CommRun;
use super::message_buffers::MessageBuffers;
use super::pattern::{MessageLoop, PreparedPattern};

/// Messages of rank 1 take longer to send.
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

fn one_loop(method: MessageMethod, message_bytes: u64, iterations: u64) -> MessageLoop {
    MessageLoop { method, repetition: 0, number: 0, message_bytes, iterations }
}

#[test]
fn a_loop_is_timed_after_its_barrier_and_fully_compared() {
    for (ranks, buffers) in [(2, BufferMode::Cyclic), (3, BufferMode::Cyclic), (3, BufferMode::Reused)] {
        let plan = CommPlan::new(ranks, 3, MIN_MEMORY_BYTES, &PatternFamily::ALL).unwrap();
        let layout = CommRun::layout(&plan, buffers);
        for (index, of) in plan.patterns.iter().enumerate().filter(|(_, of)| of.family != PatternFamily::Random) {
            let seen = run_ranks(ranks, script, |comm| {
                let mut memory = MessageBuffers::new(layout, comm.rank()).unwrap();
                let mut pattern = PreparedPattern::new(comm, layout, index as u64, of).unwrap();
                pattern.first_touch(&mut memory).unwrap();
                clear_log();
                let l = one_loop(MessageMethod::Sendrecv, 8, 3);
                let seconds = pattern.run_timed(&mut memory, &l).unwrap();
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
                // With cyclic buffers no message is overwritten.
                let bytes = 8 * messages;
                assert_eq!(pattern.bytes_wrong, 0, "{}", of.name);
                assert!(pattern.bytes_checked <= bytes && (messages == 0) == (pattern.bytes_checked == 0));
                assert!(
                    buffers == BufferMode::Reused || pattern.bytes_checked == bytes,
                    "{} {bytes}",
                    pattern.bytes_checked
                );
                // The data is wiped, so that a loop without delivery is detected.
                if buffers == BufferMode::Cyclic && messages > 0 {
                    pattern.check(&mut memory, &l);
                    assert!(pattern.bytes_wrong > bytes * 9 / 10, "{}: some are equal by chance", of.name);
                }
                (seconds, sent)
            });
            // At least the time of its own messages, and never the barrier.
            for (rank, (seconds, sent)) in seen.iter().enumerate() {
                let own = *sent as f64 * (if rank == 1 { 0.002 } else { 0.001 } + 0.0005);
                let slowest = 3.0 * of.max_steps() as f64 * 0.0025 + 0.001 + 0.002;
                assert!(*seconds >= own - 1e-9 && *seconds <= slowest, "{} {rank}: {own} {seconds}", of.name);
            }
        }
    }
}

#[test]
fn a_wrong_byte_is_named_with_sender_receiver_and_place() {
    let plan = CommPlan::new(3, 3, MIN_MEMORY_BYTES, &[PatternFamily::Ring]).unwrap();
    let layout = CommRun::layout(&plan, BufferMode::Cyclic);
    let seen = run_ranks(3, script, |comm| {
        let mut memory = MessageBuffers::new(layout, comm.rank()).unwrap();
        let last = plan.patterns.len() - 1;
        let mut pattern = PreparedPattern::new(comm, layout, last as u64, &plan.patterns[last]).unwrap();
        let l = one_loop(MessageMethod::Alltoallv, 64, 2);
        pattern.run_timed(&mut memory, &l).unwrap();
        if comm.rank() == 2 {
            pattern.inject_fault(&mut memory, &l);
        }
        pattern.check(&mut memory, &l);
        (pattern.bytes_wrong, pattern.corruptions, plan.patterns[last].steps(comm.rank()))
    });
    assert_eq!(seen.iter().map(|(wrong, ..)| *wrong).collect::<Vec<_>>(), [0, 0, 1]);
    let [found] = &seen[2].1[..] else { panic!("{:?}", seen[2].1) };
    let sender = seen[2].2[0].receive_from.unwrap();
    assert_eq!((found.receiver, found.sender, found.iteration, found.bytes_wrong), (2, sender, 1, 1));
    assert_eq!((found.offset_bytes, found.message_bytes, found.method), (32, 64, MessageMethod::Alltoallv));
    assert_eq!(found.expected ^ found.actual, 0x10);
    assert_eq!(found.diagnosis, "one bit flipped");
}

#[derive(Default)]
struct CapturedLines {
    lines: Vec<CommLine>,
    standings: Vec<ProgressReport>,
}

impl RunObserver<CommLine> for CapturedLines {
    fn record(&mut self, line: CommLine) {
        self.lines.push(line);
    }

    fn progress(&mut self, standing: &ProgressReport) {
        self.standings.push(standing.clone());
    }

    fn measurement_ended(&mut self, _is_complete: bool, _last: Vec<TransferVolume>) {}
}

impl CapturedLines {
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
) -> Vec<(CommEnding, CapturedLines)> {
    let mut config = options_from_words::<CommArgs>(options.split_whitespace()).config().unwrap();
    change(&mut config);
    let plan = CommPlan::new(ranks, 3, MIN_MEMORY_BYTES, &config.families).unwrap();
    run_ranks(ranks, scripts, |comm| {
        let cpus = HostCpus::survey(comm).unwrap();
        let interrupt = with_script(|script| script.interrupt.clone());
        let mut keeps = CapturedLines::default();
        let mut run = CommRun::new(comm, &plan, (&config, config.time_seconds), cpus, &interrupt, &mut keeps).unwrap();
        run.announce().unwrap();
        let ending = run.execute().unwrap();
        drop(run);
        (ending, keeps)
    })
}

#[test]
fn a_run_records_the_slowest_rank_of_each_loop() {
    for ranks in [2, 3] {
        let seen = run(ranks, "-T 60s --repeat off", script, |config| config.families = vec![PatternFamily::Ring]);
        let (ending, keeps) = &seen[0];
        assert_eq!(ending.outcome, RunOutcome::Complete);
        let records = keeps.patterns();
        let names: std::collections::BTreeSet<&str> = records.iter().map(|record| record.pattern.as_str()).collect();
        assert!(records.len() >= names.len() && names.len() == 6, "{names:?}");
        for (nth, record) in records.iter().enumerate() {
            assert_eq!(seen[1].1.patterns()[nth].sizes, record.sizes);
            assert_eq!((record.family, record.bytes_wrong), (PatternFamily::Ring, 0));
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
        assert!(
            approx_equal(ending.real_seconds, ending.pilot_seconds + spent) || ending.real_seconds > spent,
            "{ending:?}"
        );
        assert!(ending.real_seconds <= 60.0, "{ending:?}");
    }
}

#[test]
fn an_injected_fault_is_detected_once_and_a_signal_of_any_rank_ends_the_run() {
    let seen = run(3, "-T 60s --repeat off", script, |config| {
        (config.families, config.inject) = (vec![PatternFamily::Ring], true);
    });
    let keeps = &seen[0].1;
    assert_eq!(keeps.patterns().iter().map(|record| record.bytes_wrong).sum::<u64>(), 1);
    let [found] = keeps.corruptions()[..] else { panic!("{:?}", keeps.corruptions()) };
    assert_eq!((found.message_bytes, found.diagnosis.as_str()), (4096, "one bit flipped"));
    let (patterns, all_sizes) = (keeps.patterns().len(), keeps.patterns()[0].sizes.len());
    let signalled =
        |rank| if rank == 2 { script(rank).outcome("send", 700, ScriptedOutcome::Signal) } else { script(rank) };
    for options in ["-T 60s --repeat off", "-T 60s"] {
        for (ending, keeps) in run(3, options, signalled, |config| config.families = vec![PatternFamily::Ring]) {
            assert_eq!(ending.outcome, RunOutcome::Interrupted);
            assert!(!keeps.lines.iter().any(|line| matches!(line, CommLine::Definition(_) | CommLine::Repetition(_))));
            // No size is measured after the one with the signal.
            let sizes: Vec<usize> = keeps.patterns().iter().map(|record| record.sizes.len()).collect();
            let (last, before) = sizes.split_last().unwrap();
            assert!(sizes.len() < patterns / 2 && before.iter().all(|n| *n == all_sizes), "{sizes:?}");
            assert!((1..all_sizes).contains(last), "{sizes:?}");
        }
    }
}
