use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn limits(time: f64) -> LoopLimits {
    LoopLimits {
        max_calls: u64::MAX,
        calls_end: CallsEnd::Count,
        time_seconds: Some(time),
        pattern_seconds: Some(time),
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: 1024,
        termination: Termination::Geometric,
    }
}

#[test]
fn the_latency_that_was_learned_is_taken_off_a_long_sync() {
    let mut model = SyncModel::default();
    model.learn(LATENCY_BYTES - 1, 0.25);
    assert_eq!(model.to_parts(), [0.25, f64::INFINITY]);
    // From this size on the time gives a rate.
    model.learn(LATENCY_BYTES, 1.25);
    assert_eq!(model.to_parts(), [0.25, LATENCY_BYTES as f64]);
    assert_eq!(model.predict_seconds(LATENCY_BYTES), 1.25);
    assert_eq!(SyncModel::from_parts([0.5, 8.0]).to_parts(), [0.5, 8.0]);
    assert_eq!(SyncModel::from_parts(model.to_parts()), model);
}

struct SimulatedLoop {
    calls: u64,
    seconds: f64,
    batches: u64,
    /// Agreements on the last batch, without work meanwhile.
    waits: u64,
    /// Maximum time of batches ahead when the last of them began.
    unmeasured_seconds: f64,
    progress: LoopProgress,
}

/// Simulates a loop whose call `n` takes `cost(n)` seconds, with `slots` pending reductions.
fn simulate_ahead(slots: usize, limits: &LoopLimits, cost: impl Fn(u64) -> f64) -> SimulatedLoop {
    simulate_from(slots, limits, LoopProgress::default(), cost)
}

/// The same for direct I/O.
fn simulate_direct(slots: usize, limits: &LoopLimits, cost: impl Fn(u64) -> f64) -> SimulatedLoop {
    simulate_from(slots, limits, LoopProgress { is_direct: true, ..LoopProgress::default() }, cost)
}

fn simulate_from(slots: usize, limits: &LoopLimits, nothing: LoopProgress, cost: impl Fn(u64) -> f64) -> SimulatedLoop {
    let (mut agreed, mut latest) = (nothing, nothing);
    let mut pending: VecDeque<LoopProgress> = VecDeque::new();
    let (mut batches, mut waits, mut unknown_seconds) = (0, 0, 0.0_f64);
    loop {
        match next(limits, &agreed, latest.issued()) {
            BatchDecision::Run(calls) => {
                let last_seconds: f64 = (latest.calls..latest.calls + calls).map(&cost).sum();
                let elapsed_seconds = latest.elapsed_seconds + last_seconds;
                latest = LoopProgress { elapsed_seconds, ..latest.with_batch(calls, last_seconds) };
                pending.push_back(latest);
                unknown_seconds = unknown_seconds.max(pending.iter().map(|p| p.last_seconds).sum());
                if pending.len() > slots {
                    agreed = pending.pop_front().unwrap().after(&agreed);
                }
                batches += 1;
            }
            BatchDecision::Agree => {
                agreed = pending.pop_front().expect("calls ahead").after(&agreed);
                waits += u64::from(pending.is_empty());
            }
            BatchDecision::Stop(ended) => {
                let by_calls = matches!(ended, StopReason::Count | StopReason::Space);
                assert!(by_calls || pending.is_empty(), "an estimate ended the loop: {pending:?}");
                let LoopProgress { calls, elapsed_seconds: seconds, .. } = latest;
                let progress = pending.pop_back().map_or(agreed, |last| last.after(&agreed));
                return SimulatedLoop { calls, seconds, batches, waits, unmeasured_seconds: unknown_seconds, progress };
            }
        }
    }
}

/// The same with immediate agreement; returns (calls, seconds, decisions).
fn simulate(limits: &LoopLimits, cost: impl Fn(u64) -> f64) -> (u64, f64, u64) {
    let simulated = simulate_ahead(0, limits, cost);
    assert_eq!(simulated.waits, 0);
    (simulated.calls, simulated.seconds, simulated.batches)
}

#[test]
fn few_decisions_fill_the_time() {
    let (calls, seconds, decisions) = simulate(&limits(1.0), |_| 1e-6);
    assert!((0.99..=1.0).contains(&seconds), "{seconds}");
    assert!(calls > 990_000);
    assert!(decisions < 60, "{decisions}");
}

#[test]
fn a_loop_that_becomes_ten_times_slower_overruns_by_less_than_a_batch() {
    let (_, seconds, _) = simulate(&limits(1.0), |n| if n < 300_000 { 1e-6 } else { 1e-5 });
    assert!(seconds < 1.0 + 10.0 / 16.0, "{seconds}");
    assert!(seconds > 0.9);
}

#[test]
fn slow_calls_run_at_least_once_and_stop() {
    let (calls, _, _) = simulate(&limits(1.0), |_| 3.0);
    assert_eq!(calls, 1);
    let (calls, seconds, _) = simulate(&limits(1.0), |_| 0.3);
    assert_eq!(calls, 3);
    assert!(seconds < 1.0);
}

#[test]
fn the_sync_is_inside_the_time() {
    let mut model = SyncModel::default();
    model.learn(100 << 20, 1.0); // 105 MB/s
    let l = LoopLimits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(1.0) };
    let (calls, seconds, _) = simulate(&l, |_| 1e-3);
    let sync = model.predict_seconds(calls << 20);
    assert!(seconds + sync <= 1.0 && seconds + sync > 0.9, "{seconds} + {sync}");
}

#[test]
fn sync_model_adopts_slower_rates_at_once() {
    let mut m = SyncModel::default();
    m.learn(1 << 30, 1.0);
    m.learn(1 << 30, 10.0);
    assert!(m.predict_seconds(1 << 30) > 9.9);
    m.learn(1 << 30, 1.0);
    assert!(m.predict_seconds(1 << 30) > 2.0);
}

#[test]
fn counts_and_space_end_a_loop() {
    let l = LoopLimits { max_calls: 10, time_seconds: None, ..limits(1.0) };
    let ten = LoopProgress { calls: 10, ..LoopProgress::default() };
    assert_eq!(next(&l, &ten, ten.issued()), BatchDecision::Stop(StopReason::Count));
    let l = LoopLimits { calls_end: CallsEnd::Space, ..l };
    assert_eq!(next(&l, &ten, ten.issued()), BatchDecision::Stop(StopReason::Space));
    assert_eq!(simulate(&l, |_| 1e-3).0, 10);
}

#[test]
fn rounds_share_time_and_calls() {
    let whole = LoopLimits { max_calls: 10, ..limits(8.0) };
    let parts: Vec<_> = (0..4).map(|r| whole.until_round(r, 4)).map(|l| (l.max_calls, l.time_seconds)).collect();
    assert_eq!(parts, [(3, Some(2.0)), (5, Some(4.0)), (8, Some(6.0)), (10, Some(8.0))]);
    let endless = LoopLimits { max_calls: u64::MAX, ..whole };
    assert_eq!(endless.until_round(7, 8).max_calls, u64::MAX);
    assert!(endless.until_round(0, 8).max_calls >= u64::MAX / 8);
}

/// Simulates a pattern in rounds, each from the end of the previous one.
fn simulate_rounds(
    slots: usize,
    whole: &LoopLimits,
    rounds: u32,
    is_direct: bool,
    cost: impl Fn(u64) -> f64,
) -> Vec<SimulatedLoop> {
    let mut from = LoopProgress { is_direct, ..LoopProgress::default() };
    let round = |round| {
        let simulated = simulate_from(slots, &whole.until_round(round, rounds), from, &cost);
        from = simulated.progress;
        simulated
    };
    (0..rounds).map(round).collect()
}

#[test]
fn rounds_have_batches_as_long_as_a_pattern_in_one_piece() {
    // Calls of 1.3 ms and 1 us, as of 1 MiB and 1 kB, in a pattern of 0.1 s.
    for (slots, per_call) in SLOTS.into_iter().flat_map(|slots| [1.3e-3, 1e-6].map(|per_call| (slots, per_call))) {
        let whole = limits(0.104);
        let growth = (whole.time_seconds.unwrap() * BATCH_SHARE / per_call).log2().ceil() as u64;
        let rounds = simulate_rounds(slots, &whole, 5, true, |_| per_call);
        for (number, simulated) in rounds.iter().enumerate() {
            // A fifth of the time is little more than three of the longest batches, and shorter ones follow at the end.
            let most = if number == 0 { 8 + growth } else { 8 };
            assert!(simulated.batches <= most, "{slots}, {per_call}: {} in round {number}", simulated.batches);
        }
        assert!(rounds[4].seconds > 0.1 && rounds[4].seconds <= 0.104, "{}", rounds[4].seconds);
    }
}

#[test]
fn only_direct_rounds_continue_from_the_largest_batch() {
    // The second of eight rounds of 0.1 s; the first had batches of 50 calls of 0.1 ms and a last one of 4.
    let l = limits(0.8).until_round(1, 8);
    let before = LoopProgress {
        calls: 954,
        elapsed_seconds: 0.1,
        last_calls: 4,
        largest_calls: 50,
        last_seconds: 4e-4,
        synced_calls: 954,
        ..LoopProgress::default()
    };
    assert_eq!(next(&l, &before, before.issued()), BatchDecision::Run(8));
    let direct = LoopProgress { is_direct: true, ..before };
    assert_eq!(next(&l, &direct, direct.issued()), BatchDecision::Run(100));
    // No longer than a third of a round: 333 calls, not the 500 of the pattern.
    let direct = LoopProgress { largest_calls: 1000, ..direct };
    assert_eq!(next(&l, &direct, direct.issued()), BatchDecision::Run(333));
    assert_eq!(next(&limits(0.8).until_round(0, 2), &direct, direct.issued()), BatchDecision::Run(500));
}

#[test]
fn a_sync_that_has_been_is_not_predicted_again() {
    let mut model = SyncModel::default();
    model.learn(100 << 20, 1.0);
    let l = LoopLimits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(2.0) };
    let before =
        LoopProgress { calls: 100, elapsed_seconds: 1.0, last_calls: 1, last_seconds: 1e-3, ..LoopProgress::default() };
    assert!(matches!(next(&l, &before, before.issued()), BatchDecision::Stop(_)));
    assert!(matches!(next(&l, &LoopProgress { synced_calls: 100, ..before }, before.issued()), BatchDecision::Run(_)));
}

#[test]
fn per_call_decides_after_every_call() {
    let l = LoopLimits { termination: Termination::PerCall, ..limits(0.1) };
    let (calls, _, decisions) = simulate(&l, |_| 1e-3);
    assert_eq!(calls, decisions);
    assert!((99..=100).contains(&calls));
}

const SLOTS: [usize; 5] = [0, 1, 2, 3, 8];

#[test]
fn ahead_the_time_is_filled_as_well_with_few_waits() {
    for (slots, per_call) in SLOTS.into_iter().flat_map(|slots| [1e-6, 3e-5, 1e-3].map(|per_call| (slots, per_call))) {
        let simulated = simulate_ahead(slots, &limits(1.0), |_| per_call);
        assert!(simulated.seconds <= 1.0 && simulated.seconds > 0.99 - per_call, "{}", simulated.seconds);
        assert!(simulated.batches < 70 && simulated.waits <= 8, "{slots}: {} {}", simulated.batches, simulated.waits);
    }
    // Much longer than the longest batch: the number of batches is not limited, and waits are at the ends.
    for slots in SLOTS {
        let simulated = simulate_ahead(slots, &limits(60.0), |_| 1e-4);
        assert!(simulated.seconds > 59.9 && simulated.seconds <= 60.0, "{}", simulated.seconds);
        assert!(simulated.batches < 300 && simulated.waits <= 8, "{slots}: {} {}", simulated.batches, simulated.waits);
        assert!(simulated.unmeasured_seconds <= 2.0 * MAX_BATCH_SECONDS + 1e-9, "{}", simulated.unmeasured_seconds);
    }
}

#[test]
fn ahead_calls_that_are_long_are_known_before_the_next() {
    for slots in SLOTS {
        for (cost, calls) in [(3.0, 1), (0.3, 3), (0.14, 7)] {
            let simulated = simulate_ahead(slots, &limits(1.0), |_| cost);
            assert_eq!(simulated.calls, calls, "{slots}: {cost}");
            assert!(slots == 0 || simulated.batches == simulated.waits, "{slots}: {cost}");
        }
        let endless = LoopLimits { max_calls: 5, time_seconds: None, ..limits(1.0) };
        let simulated = simulate_ahead(slots, &endless, |_| 1.0);
        assert_eq!((simulated.calls, simulated.waits), (5, if slots == 0 { 0 } else { 4 }));
        // Short calls limited by their number: only the first is waited for.
        let simulated = simulate_ahead(slots, &LoopLimits { max_calls: 1000, ..endless }, |_| 1e-3);
        assert_eq!((simulated.calls, simulated.waits), (1000, u64::from(slots > 0)));
    }
}

#[test]
fn no_rank_waits_for_a_first_call_known_from_an_earlier_measurement() {
    // Two calls of 94 MiB, as in rewrites and reads of a pattern that was ended by its space.
    let two = LoopLimits { max_calls: 2, expected_call_seconds: Some(0.09), ..limits(0.6) };
    for (slots, cost) in SLOTS.into_iter().skip(1).flat_map(|slots| [0.03, 0.09, 0.18].map(|cost| (slots, cost))) {
        let simulated = simulate_direct(slots, &two, |_| cost);
        assert_eq!((simulated.calls, simulated.waits), (2, 0), "{slots}: {cost}");
        let simulated = simulate_direct(slots, &LoopLimits { expected_call_seconds: None, ..two }, |_| cost);
        assert_eq!((simulated.calls, simulated.waits), (2, 1), "{slots}: {cost}");
    }
    // Through the page cache for one call, and only where two may be ten times slower.
    for (expected, time, waits) in [(0.04, 0.6, 0), (0.09, 0.6, 1), (0.09, 1.25, 0)] {
        let limits = LoopLimits { expected_call_seconds: Some(expected), ..two };
        let simulated = simulate_ahead(3, &LoopLimits { time_seconds: Some(time), ..limits }, |_| 0.05);
        assert_eq!((simulated.calls, simulated.waits), (2, waits), "{expected} of {time}");
    }
    let many = LoopLimits { max_calls: 100, expected_call_seconds: Some(1e-3), ..limits(0.6) };
    let mut known = LoopProgress::default();
    let issued = |calls| IssuedCalls { calls, last_calls: 1, largest_calls: 1 };
    assert!(matches!(next(&many, &known, issued(1)), BatchDecision::Run(_)));
    assert_eq!(next(&many, &known, issued(2)), BatchDecision::Agree);
    known.is_direct = true;
    assert!(matches!(next(&many, &known, issued(2)), BatchDecision::Run(_)));
}

#[test]
fn a_wrong_earlier_measurement_ends_no_loop() {
    for (slots, expected) in SLOTS.into_iter().flat_map(|slots| [1e-9, 1e-3, 1e6].map(|expected| (slots, expected))) {
        let limits = LoopLimits { expected_call_seconds: Some(expected), ..limits(1.0) };
        for play in [simulate_ahead, simulate_direct] {
            let simulated = play(slots, &limits, |_| 1e-3);
            assert!(simulated.seconds <= 1.0 && simulated.seconds > 0.98, "{slots}, {expected}: {}", simulated.seconds);
        }
    }
}

#[test]
fn a_direct_rank_may_run_ahead_of_one_that_was_slow_for_a_batch() {
    // Measured reads of 1 MiB: one of two ranks was stalled for 70 ms while the other completed 35 more calls.
    let limits = LoopLimits { max_calls: 113, expected_call_seconds: Some(1.2e-3), ..limits(0.625) };
    let slow = LoopProgress {
        calls: 63,
        elapsed_seconds: 0.072,
        last_calls: 32,
        last_seconds: 0.072,
        ..LoopProgress::default()
    };
    let issued = IssuedCalls { calls: 98, last_calls: 35, largest_calls: 35 };
    assert_eq!(next(&limits, &slow, issued), BatchDecision::Agree);
    assert_eq!(next(&limits, &LoopProgress { is_direct: true, ..slow }, issued), BatchDecision::Run(15));
}

#[test]
fn ahead_the_sync_is_inside_the_time() {
    let mut model = SyncModel::default();
    model.learn(100 << 20, 1.0);
    let l = LoopLimits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(1.0) };
    for slots in SLOTS {
        let simulated = simulate_ahead(slots, &l, |_| 1e-3);
        let whole = simulated.seconds + model.predict_seconds(simulated.calls << 20);
        assert!(whole <= 1.0 && whole > 0.9, "{slots}: {whole}");
    }
}

proptest! {
    /// Whenever calls become up to ten times slower, the overrun is as small as with full knowledge.
    #[test]
    fn ahead_a_loop_that_becomes_slower_overruns_by_less_than_a_batch(
        slots in 0_usize..9, turn in 0_u64..1_000_000, factor in 1.0_f64..10.0, time in 0.05_f64..20.0, calls in 500.0_f64..1e6,
    ) {
        let per_call = time / calls;
        let cost = |n: u64| if n < turn { per_call } else { factor * per_call };
        let simulated = simulate_ahead(slots, &limits(time), cost);
        let share = (time * BATCH_SHARE).min(MAX_BATCH_SECONDS);
        let most = factor * (share + per_call);
        prop_assert!(simulated.seconds < time + most, "{} of {time}, {most}", simulated.seconds);
        let window = (share + time / SLOWDOWN_CACHED).min(2.0 * MAX_BATCH_SECONDS);
        prop_assert!(simulated.unmeasured_seconds <= factor * (window + per_call), "{} of {time}", simulated.unmeasured_seconds);
        prop_assert!(simulated.seconds > time - 1.01 * factor * per_call, "{} of {time}", simulated.seconds);
    }

    /// With direct I/O up to twice, for any earlier measurement.
    #[test]
    fn ahead_a_direct_loop_that_becomes_twice_as_slow_overruns_by_less_than_a_batch(
        slots in 0_usize..9, turn in 0_u64..1_000_000, factor in 1.0_f64..2.0, time in 0.05_f64..20.0, calls in 500.0_f64..1e6,
        wrong in 0.5_f64..100.0,
    ) {
        let per_call = time / calls;
        let cost = |n: u64| if n < turn { per_call } else { factor * per_call };
        let limits = LoopLimits { expected_call_seconds: Some(wrong * per_call), ..limits(time) };
        let simulated = simulate_direct(slots, &limits, cost);
        let share = (time * BATCH_SHARE).min(MAX_BATCH_SECONDS);
        let most = factor * (share + per_call);
        prop_assert!(simulated.seconds < time + most, "{} of {time}, {most}", simulated.seconds);
        let window = (share + time / SLOWDOWN_DIRECT).min(2.0 * MAX_BATCH_SECONDS);
        prop_assert!(simulated.unmeasured_seconds <= factor * (window + per_call), "{} of {time}", simulated.unmeasured_seconds);
        prop_assert!(simulated.seconds > time - 1.01 * factor * per_call, "{} of {time}", simulated.seconds);
    }

    /// The same for calls that become slower and faster at any time.
    #[test]
    fn ahead_a_loop_of_changing_speed_overruns_by_less_than_a_batch(
        slots in 0_usize..9, time in 0.05_f64..20.0, calls in 500.0_f64..1e5, stretch in 1_u64..20_000,
        factors in proptest::collection::vec(0.0_f64..1.0, 1..40),
    ) {
        let per_call = time / calls;
        let cost = |slower: f64, n: u64| {
            per_call * (1.0 + (slower - 1.0) * factors[(n / stretch) as usize % factors.len()])
        };
        let share = (time * BATCH_SHARE).min(MAX_BATCH_SECONDS);
        let cached = simulate_ahead(slots, &limits(time), |n| cost(SLOWDOWN_CACHED, n));
        prop_assert!(cached.seconds < time + SLOWDOWN_CACHED * (share + per_call), "{} of {time}", cached.seconds);
        let direct = simulate_direct(slots, &limits(time), |n| cost(SLOWDOWN_DIRECT, n));
        prop_assert!(direct.seconds < time + SLOWDOWN_DIRECT * (share + per_call), "{} of {time}", direct.seconds);
    }

    /// With direct I/O no round uses all the time of the next, whenever calls become twice as slow, and all rounds together take the time
    /// of the pattern.
    #[test]
    fn rounds_leave_time_to_each_other(
        slots in 0_usize..9, turn in 0_u64..100_000, factor in 1.0_f64..2.0, time in 0.05_f64..20.0, calls in 500.0_f64..1e5,
        count in 2_u32..17, is_direct in proptest::bool::ANY,
    ) {
        let per_call = time / calls;
        let cost = |n: u64| if n < turn { per_call } else { factor * per_call };
        let rounds = simulate_rounds(slots, &limits(time), count, is_direct, cost);
        let mut before = 0;
        for (number, simulated) in rounds.iter().enumerate() {
            prop_assert!(simulated.calls > before, "round {number} of {count} is empty");
            before = simulated.calls;
        }
        let (whole, share) = (rounds[rounds.len() - 1].seconds, (time * BATCH_SHARE).min(MAX_BATCH_SECONDS));
        prop_assert!(whole < time + factor * (share + per_call), "{whole} of {time}");
        prop_assert!(whole > time - 1.01 * factor * per_call, "{whole} of {time}");
    }

    /// With random speeds no loop ends early or without a call, and all ends are those of the limits.
    #[test]
    fn ahead_loops_end_at_their_limits(
        slots in 0_usize..9, costs in proptest::collection::vec(1e-5_f64..1e-2, 1..50), most in 1_u64..5000,
    ) {
        let cost = |n: u64| costs[(n / 7) as usize % costs.len()];
        let l = LoopLimits { max_calls: most, ..limits(1.0) };
        let simulated = simulate_ahead(slots, &l, cost);
        prop_assert!(simulated.calls >= 1 && simulated.calls <= most);
        prop_assert!(simulated.calls == most || simulated.seconds > 0.98, "{} calls, {} s", simulated.calls, simulated.seconds);
    }
}

/// Two ranks with separate clocks and the same decisions: by how many seconds both together exceed the slower one's own time. `cost` is of
/// a rank and a call.
fn imbalance_seconds(limits: &LoopLimits, cost: impl Fn(usize, u64) -> f64) -> f64 {
    let (mut clocks, mut own) = ([0.0_f64; 2], [0.0_f64; 2]);
    let (mut agreed, mut latest) = (LoopProgress::default(), LoopProgress::default());
    let mut pending: VecDeque<(LoopProgress, f64)> = VecDeque::new();
    loop {
        let of = match next(limits, &agreed, latest.issued()) {
            BatchDecision::Run(calls) => {
                let seconds =
                    [0, 1].map(|rank| (latest.calls..latest.calls + calls).map(|n| cost(rank, n)).sum::<f64>());
                for rank in [0, 1] {
                    clocks[rank] += seconds[rank];
                    own[rank] += seconds[rank];
                }
                let last_seconds = seconds[0].max(seconds[1]);
                latest = latest.with_batch(calls, last_seconds);
                let reported_seconds = clocks[0].max(clocks[1]);
                pending.push_back((LoopProgress { elapsed_seconds: reported_seconds, ..latest }, reported_seconds));
                if pending.len() <= 8 {
                    continue;
                }
                pending.pop_front()
            }
            BatchDecision::Agree => pending.pop_front(),
            BatchDecision::Stop(_) => return clocks[0].max(clocks[1]) - own[0].max(own[1]),
        };
        let (progress, at_seconds) = of.expect("a pending reduction");
        agreed = progress.after(&agreed);
        clocks = clocks.map(|clock| clock.max(at_seconds));
    }
}

#[test]
fn a_short_pause_of_a_rank_delays_no_other() {
    // A pattern of 0.3 s through the page cache: one rank has a pause of 13 ms, later the other one. Both lose as much.
    let limits = limits(0.3);
    let pause = 0.7 * BATCH_SHARE * 0.3;
    for later in [12_000, 16_000, 20_000, 22_000] {
        let cost = |rank: usize, n: u64| 1e-5 + if n == [9_000, later][rank] { pause } else { 0.0 };
        let held_up = imbalance_seconds(&limits, cost);
        assert!(held_up < 1e-9, "{held_up} of {pause}, {later}");
    }
    // A pause longer than the window causes waiting.
    let cost = |rank: usize, n: u64| 1e-5 + if n == [9_000, 22_000][rank] { 0.05 } else { 0.0 };
    assert!(imbalance_seconds(&limits, cost) > 0.01);
}
