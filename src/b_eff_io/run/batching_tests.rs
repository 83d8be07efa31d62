use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn limits(time: f64) -> Limits {
    Limits {
        max_calls: u64::MAX,
        calls_end: CallsEnd::Count,
        time_seconds: Some(time),
        whole_seconds: Some(time),
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
    // From exactly this size on it is a rate.
    model.learn(LATENCY_BYTES, 1.25);
    assert_eq!(model.to_parts(), [0.25, LATENCY_BYTES as f64]);
    assert_eq!(model.predict_seconds(LATENCY_BYTES), 1.25);
    assert_eq!(SyncModel::from_parts([0.5, 8.0]).to_parts(), [0.5, 8.0]);
    assert_eq!(SyncModel::from_parts(model.to_parts()), model);
}

/// What became of a loop.
struct Played {
    calls: u64,
    seconds: f64,
    batches: u64,
    /// Agreements on the last batch, with nothing to do meanwhile.
    waits: u64,
    /// The most time of batches of which nothing was known when the last of them began.
    unknown_seconds: f64,
    /// Where it stopped.
    progress: Progress,
}

/// Plays a loop whose call `n` takes `cost(n)` seconds, with so many agreements under way while a batch runs.
fn play_ahead(slots: usize, limits: &Limits, cost: impl Fn(u64) -> f64) -> Played {
    play_from(slots, limits, Progress::default(), cost)
}

/// The same for transfers that pass by the page cache.
fn play_direct(slots: usize, limits: &Limits, cost: impl Fn(u64) -> f64) -> Played {
    play_from(slots, limits, Progress { is_direct: true, ..Progress::default() }, cost)
}

fn play_from(slots: usize, limits: &Limits, nothing: Progress, cost: impl Fn(u64) -> f64) -> Played {
    let (mut agreed, mut made) = (nothing, nothing);
    let mut told: VecDeque<Progress> = VecDeque::new();
    let (mut batches, mut waits, mut unknown_seconds) = (0, 0, 0.0_f64);
    loop {
        match next(limits, &agreed, made.made()) {
            Step::Run(calls) => {
                let last_seconds: f64 = (made.calls..made.calls + calls).map(&cost).sum();
                let elapsed_seconds = made.elapsed_seconds + last_seconds;
                made = Progress { elapsed_seconds, ..made.and_batch(calls, last_seconds) };
                told.push_back(made);
                unknown_seconds = unknown_seconds.max(told.iter().map(|p| p.last_seconds).sum());
                if told.len() > slots {
                    agreed = told.pop_front().unwrap().after(&agreed);
                }
                batches += 1;
            }
            Step::Agree => {
                agreed = told.pop_front().expect("calls ahead").after(&agreed);
                waits += u64::from(told.is_empty());
            }
            Step::Stop(ended) => {
                let by_calls = matches!(ended, Ended::Count | Ended::Space);
                assert!(by_calls || told.is_empty(), "a guess ended the loop: {told:?}");
                let Progress { calls, elapsed_seconds: seconds, .. } = made;
                let progress = told.pop_back().map_or(agreed, |last| last.after(&agreed));
                return Played { calls, seconds, batches, waits, unknown_seconds, progress };
            }
        }
    }
}

/// The same where all is agreed on at once; returns (calls, seconds, decisions).
fn play(limits: &Limits, cost: impl Fn(u64) -> f64) -> (u64, f64, u64) {
    let played = play_ahead(0, limits, cost);
    assert_eq!(played.waits, 0);
    (played.calls, played.seconds, played.batches)
}

#[test]
fn few_decisions_fill_the_time() {
    let (calls, seconds, decisions) = play(&limits(1.0), |_| 1e-6);
    assert!((0.99..=1.0).contains(&seconds), "{seconds}");
    assert!(calls > 990_000);
    assert!(decisions < 60, "{decisions}");
}

#[test]
fn a_loop_that_becomes_ten_times_slower_overruns_by_less_than_a_batch() {
    let (_, seconds, _) = play(&limits(1.0), |n| if n < 300_000 { 1e-6 } else { 1e-5 });
    assert!(seconds < 1.0 + 10.0 / 16.0, "{seconds}");
    assert!(seconds > 0.9);
}

#[test]
fn slow_calls_run_at_least_once_and_stop() {
    let (calls, _, _) = play(&limits(1.0), |_| 3.0);
    assert_eq!(calls, 1);
    let (calls, seconds, _) = play(&limits(1.0), |_| 0.3);
    assert_eq!(calls, 3);
    assert!(seconds < 1.0);
}

#[test]
fn the_sync_is_inside_the_time() {
    let mut model = SyncModel::default();
    model.learn(100 << 20, 1.0); // 105 MB/s
    let l = Limits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(1.0) };
    let (calls, seconds, _) = play(&l, |_| 1e-3);
    let sync = model.predict_seconds(calls << 20);
    assert!(seconds + sync <= 1.0 && seconds + sync > 0.9, "{seconds} + {sync}");
}

#[test]
fn sync_model_believes_bad_news_at_once() {
    let mut m = SyncModel::default();
    m.learn(1 << 30, 1.0);
    m.learn(1 << 30, 10.0);
    assert!(m.predict_seconds(1 << 30) > 9.9);
    m.learn(1 << 30, 1.0);
    assert!(m.predict_seconds(1 << 30) > 2.0);
}

#[test]
fn counts_and_space_end_a_loop() {
    let l = Limits { max_calls: 10, time_seconds: None, ..limits(1.0) };
    let ten = Progress { calls: 10, ..Progress::default() };
    assert_eq!(next(&l, &ten, ten.made()), Step::Stop(Ended::Count));
    let l = Limits { calls_end: CallsEnd::Space, ..l };
    assert_eq!(next(&l, &ten, ten.made()), Step::Stop(Ended::Space));
    assert_eq!(play(&l, |_| 1e-3).0, 10);
}

#[test]
fn rounds_share_time_and_calls() {
    let whole = Limits { max_calls: 10, ..limits(8.0) };
    let parts: Vec<_> = (0..4).map(|r| whole.until(r, 4)).map(|l| (l.max_calls, l.time_seconds)).collect();
    assert_eq!(parts, [(3, Some(2.0)), (5, Some(4.0)), (8, Some(6.0)), (10, Some(8.0))]);
    let endless = Limits { max_calls: u64::MAX, ..whole };
    assert_eq!(endless.until(7, 8).max_calls, u64::MAX);
    assert!(endless.until(0, 8).max_calls >= u64::MAX / 8);
}

/// Plays a pattern in rounds, each from where the last one stopped; the rounds.
fn play_rounds(slots: usize, whole: &Limits, rounds: u32, is_direct: bool, cost: impl Fn(u64) -> f64) -> Vec<Played> {
    let mut from = Progress { is_direct, ..Progress::default() };
    let round = |round| {
        let played = play_from(slots, &whole.until(round, rounds), from, &cost);
        from = played.progress;
        played
    };
    (0..rounds).map(round).collect()
}

#[test]
fn rounds_have_batches_as_long_as_a_pattern_in_one_piece() {
    // Calls of 1.3 ms and 1 us, as of 1 MiB and 1 kB, in a pattern of a tenth of a second.
    for (slots, per_call) in SLOTS.into_iter().flat_map(|slots| [1.3e-3, 1e-6].map(|per_call| (slots, per_call))) {
        let whole = limits(0.104);
        let growth = (whole.time_seconds.unwrap() * BATCH_SHARE / per_call).log2().ceil() as u64;
        let rounds = play_rounds(slots, &whole, 5, true, |_| per_call);
        for (number, played) in rounds.iter().enumerate() {
            // A fifth of the time is little more than three of the longest batches, and the end takes shorter ones.
            let most = if number == 0 { 8 + growth } else { 8 };
            assert!(played.batches <= most, "{slots}, {per_call}: {} in round {number}", played.batches);
        }
        assert!(rounds[4].seconds > 0.1 && rounds[4].seconds <= 0.104, "{}", rounds[4].seconds);
    }
}

#[test]
fn a_round_goes_on_from_the_largest_batch_only_past_the_page_cache() {
    // The second of eight rounds of 0.1 s; the first one had batches of 50 calls of 0.1 ms and a last one of 4.
    let l = limits(0.8).until(1, 8);
    let before = Progress {
        calls: 954,
        elapsed_seconds: 0.1,
        last_calls: 4,
        largest_calls: 50,
        last_seconds: 4e-4,
        synced_calls: 954,
        ..Progress::default()
    };
    assert_eq!(next(&l, &before, before.made()), Step::Run(8));
    let direct = Progress { is_direct: true, ..before };
    assert_eq!(next(&l, &direct, direct.made()), Step::Run(100));
    // Never longer than a third of a round: 333 calls, not the 500 of the pattern.
    let direct = Progress { largest_calls: 1000, ..direct };
    assert_eq!(next(&l, &direct, direct.made()), Step::Run(333));
    // Nor than a sixteenth of the pattern.
    assert_eq!(next(&limits(0.8).until(0, 2), &direct, direct.made()), Step::Run(500));
}

#[test]
fn a_sync_that_has_been_is_not_predicted_again() {
    let mut model = SyncModel::default();
    model.learn(100 << 20, 1.0);
    let l = Limits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(2.0) };
    let before =
        Progress { calls: 100, elapsed_seconds: 1.0, last_calls: 1, last_seconds: 1e-3, ..Progress::default() };
    assert!(matches!(next(&l, &before, before.made()), Step::Stop(_)));
    assert!(matches!(next(&l, &Progress { synced_calls: 100, ..before }, before.made()), Step::Run(_)));
}

#[test]
fn per_call_decides_after_every_call() {
    let l = Limits { termination: Termination::PerCall, ..limits(0.1) };
    let (calls, _, decisions) = play(&l, |_| 1e-3);
    assert_eq!(calls, decisions);
    assert!((99..=100).contains(&calls));
}

/// Agreements under way at once.
const SLOTS: [usize; 5] = [0, 1, 2, 3, 8];

#[test]
fn ahead_the_time_is_filled_as_well_with_few_waits() {
    for (slots, per_call) in SLOTS.into_iter().flat_map(|slots| [1e-6, 3e-5, 1e-3].map(|per_call| (slots, per_call))) {
        let played = play_ahead(slots, &limits(1.0), |_| per_call);
        assert!(played.seconds <= 1.0 && played.seconds > 0.99 - per_call, "{}", played.seconds);
        assert!(played.batches < 70 && played.waits <= 8, "{slots}: {} {}", played.batches, played.waits);
    }
    // Much longer than the longest batch: as many as it takes, and the waits are at the ends.
    for slots in SLOTS {
        let played = play_ahead(slots, &limits(60.0), |_| 1e-4);
        assert!(played.seconds > 59.9 && played.seconds <= 60.0, "{}", played.seconds);
        assert!(played.batches < 300 && played.waits <= 8, "{slots}: {} {}", played.batches, played.waits);
        assert!(played.unknown_seconds <= 2.0 * LONGEST_BATCH_SECONDS + 1e-9, "{}", played.unknown_seconds);
    }
}

#[test]
fn ahead_calls_that_are_long_are_known_before_the_next() {
    for slots in SLOTS {
        for (cost, calls) in [(3.0, 1), (0.3, 3), (0.14, 7)] {
            let played = play_ahead(slots, &limits(1.0), |_| cost);
            assert_eq!(played.calls, calls, "{slots}: {cost}");
            assert!(slots == 0 || played.batches == played.waits, "{slots}: {cost}");
        }
        let endless = Limits { max_calls: 5, time_seconds: None, ..limits(1.0) };
        let played = play_ahead(slots, &endless, |_| 1.0);
        assert_eq!((played.calls, played.waits), (5, if slots == 0 { 0 } else { 4 }));
        // By their count alone, short ones: nobody waits but for the first.
        let played = play_ahead(slots, &Limits { max_calls: 1000, ..endless }, |_| 1e-3);
        assert_eq!((played.calls, played.waits), (1000, u64::from(slots > 0)));
    }
}

#[test]
fn nobody_waits_for_a_first_call_that_an_earlier_pass_tells_of() {
    // Two calls of 94 MiB, as rewrites and reads of a pattern that its space has ended.
    let two = Limits { max_calls: 2, expected_call_seconds: Some(0.09), ..limits(0.6) };
    for (slots, cost) in SLOTS.into_iter().skip(1).flat_map(|slots| [0.03, 0.09, 0.18].map(|cost| (slots, cost))) {
        let played = play_direct(slots, &two, |_| cost);
        assert_eq!((played.calls, played.waits), (2, 0), "{slots}: {cost}");
        let played = play_direct(slots, &Limits { expected_call_seconds: None, ..two }, |_| cost);
        assert_eq!((played.calls, played.waits), (2, 1), "{slots}: {cost}");
    }
    // Through the page cache for one call, and only where two can be ten times slower.
    for (expected, time, waits) in [(0.04, 0.6, 0), (0.09, 0.6, 1), (0.09, 1.25, 0)] {
        let limits = Limits { expected_call_seconds: Some(expected), ..two };
        let played = play_ahead(3, &Limits { time_seconds: Some(time), ..limits }, |_| 0.05);
        assert_eq!((played.calls, played.waits), (2, waits), "{expected} of {time}");
    }
    let many = Limits { max_calls: 100, expected_call_seconds: Some(1e-3), ..limits(0.6) };
    let mut known = Progress::default();
    let made = |calls| Made { calls, last_calls: 1, largest_calls: 1 };
    assert!(matches!(next(&many, &known, made(1)), Step::Run(_)));
    assert_eq!(next(&many, &known, made(2)), Step::Agree);
    known.is_direct = true;
    assert!(matches!(next(&many, &known, made(2)), Step::Run(_)));
}

#[test]
fn an_earlier_pass_that_was_wrong_ends_no_loop() {
    for (slots, expected) in SLOTS.into_iter().flat_map(|slots| [1e-9, 1e-3, 1e6].map(|expected| (slots, expected))) {
        let limits = Limits { expected_call_seconds: Some(expected), ..limits(1.0) };
        for play in [play_ahead, play_direct] {
            let played = play(slots, &limits, |_| 1e-3);
            assert!(played.seconds <= 1.0 && played.seconds > 0.98, "{slots}, {expected}: {}", played.seconds);
        }
    }
}

#[test]
fn past_the_page_cache_a_rank_may_be_ahead_of_one_that_was_slow_for_a_batch() {
    // Reads of 1 MiB as they were seen: one of two ranks got nothing for 70 ms, the other one had read 35 calls more meanwhile.
    let limits = Limits { max_calls: 113, expected_call_seconds: Some(1.2e-3), ..limits(0.625) };
    let slow =
        Progress { calls: 63, elapsed_seconds: 0.072, last_calls: 32, last_seconds: 0.072, ..Progress::default() };
    let made = Made { calls: 98, last_calls: 35, largest_calls: 35 };
    assert_eq!(next(&limits, &slow, made), Step::Agree);
    assert_eq!(next(&limits, &Progress { is_direct: true, ..slow }, made), Step::Run(15));
}

#[test]
fn ahead_the_sync_is_inside_the_time() {
    let mut model = SyncModel::default();
    model.learn(100 << 20, 1.0);
    let l = Limits { sync: Some(model), call_bytes_all_ranks: 1 << 20, ..limits(1.0) };
    for slots in SLOTS {
        let played = play_ahead(slots, &l, |_| 1e-3);
        let whole = played.seconds + model.predict_seconds(played.calls << 20);
        assert!(whole <= 1.0 && whole > 0.9, "{slots}: {whole}");
    }
}

proptest! {
    /// Whenever the calls become slower, up to ten times: the time is overrun as little as if all was known.
    #[test]
    fn ahead_a_loop_that_becomes_slower_overruns_by_less_than_a_batch(
        slots in 0_usize..9, turn in 0_u64..1_000_000, factor in 1.0_f64..10.0, time in 0.05_f64..20.0, calls in 500.0_f64..1e6,
    ) {
        let per_call = time / calls;
        let cost = |n: u64| if n < turn { per_call } else { factor * per_call };
        let played = play_ahead(slots, &limits(time), cost);
        let share = (time * BATCH_SHARE).min(LONGEST_BATCH_SECONDS);
        let most = factor * (share + per_call);
        prop_assert!(played.seconds < time + most, "{} of {time}, {most}", played.seconds);
        let window = (share + time / SLOWER).min(2.0 * LONGEST_BATCH_SECONDS);
        prop_assert!(played.unknown_seconds <= factor * (window + per_call), "{} of {time}", played.unknown_seconds);
        prop_assert!(played.seconds > time - 1.01 * factor * per_call, "{} of {time}", played.seconds);
    }

    /// Past the page cache up to twice, and whatever an earlier pass said.
    #[test]
    fn ahead_a_direct_loop_that_becomes_twice_as_slow_overruns_by_less_than_a_batch(
        slots in 0_usize..9, turn in 0_u64..1_000_000, factor in 1.0_f64..2.0, time in 0.05_f64..20.0, calls in 500.0_f64..1e6,
        wrong in 0.5_f64..100.0,
    ) {
        let per_call = time / calls;
        let cost = |n: u64| if n < turn { per_call } else { factor * per_call };
        let limits = Limits { expected_call_seconds: Some(wrong * per_call), ..limits(time) };
        let played = play_direct(slots, &limits, cost);
        let share = (time * BATCH_SHARE).min(LONGEST_BATCH_SECONDS);
        let most = factor * (share + per_call);
        prop_assert!(played.seconds < time + most, "{} of {time}, {most}", played.seconds);
        let window = (share + time / SLOWER_DIRECT).min(2.0 * LONGEST_BATCH_SECONDS);
        prop_assert!(played.unknown_seconds <= factor * (window + per_call), "{} of {time}", played.unknown_seconds);
        prop_assert!(played.seconds > time - 1.01 * factor * per_call, "{} of {time}", played.seconds);
    }

    /// The same if they are slower and faster again at any time: the faster one of two batches is no promise.
    #[test]
    fn ahead_a_loop_of_changing_speed_overruns_by_less_than_a_batch(
        slots in 0_usize..9, time in 0.05_f64..20.0, calls in 500.0_f64..1e5, stretch in 1_u64..20_000,
        factors in proptest::collection::vec(0.0_f64..1.0, 1..40),
    ) {
        let per_call = time / calls;
        let cost = |slower: f64, n: u64| {
            per_call * (1.0 + (slower - 1.0) * factors[(n / stretch) as usize % factors.len()])
        };
        let share = (time * BATCH_SHARE).min(LONGEST_BATCH_SECONDS);
        let cached = play_ahead(slots, &limits(time), |n| cost(SLOWER, n));
        prop_assert!(cached.seconds < time + SLOWER * (share + per_call), "{} of {time}", cached.seconds);
        let direct = play_direct(slots, &limits(time), |n| cost(SLOWER_DIRECT, n));
        prop_assert!(direct.seconds < time + SLOWER_DIRECT * (share + per_call), "{} of {time}", direct.seconds);
    }

    /// Past the page cache no round takes the whole time of the next, whenever the calls become twice as slow, and all of them together take
    /// the time of the pattern.
    #[test]
    fn rounds_leave_time_to_each_other(
        slots in 0_usize..9, turn in 0_u64..100_000, factor in 1.0_f64..2.0, time in 0.05_f64..20.0, calls in 500.0_f64..1e5,
        count in 2_u32..17, is_direct in proptest::bool::ANY,
    ) {
        let per_call = time / calls;
        let cost = |n: u64| if n < turn { per_call } else { factor * per_call };
        let rounds = play_rounds(slots, &limits(time), count, is_direct, cost);
        let mut before = 0;
        for (number, played) in rounds.iter().enumerate() {
            prop_assert!(played.calls > before, "round {number} of {count} is empty");
            before = played.calls;
        }
        let (whole, share) = (rounds[rounds.len() - 1].seconds, (time * BATCH_SHARE).min(LONGEST_BATCH_SECONDS));
        prop_assert!(whole < time + factor * (share + per_call), "{whole} of {time}");
        prop_assert!(whole > time - 1.01 * factor * per_call, "{whole} of {time}");
    }

    /// Faster and slower by chance: no loop ends before its time or without a call, and all ends are those of the limits.
    #[test]
    fn ahead_loops_end_at_their_limits(
        slots in 0_usize..9, costs in proptest::collection::vec(1e-5_f64..1e-2, 1..50), most in 1_u64..5000,
    ) {
        let cost = |n: u64| costs[(n / 7) as usize % costs.len()];
        let l = Limits { max_calls: most, ..limits(1.0) };
        let played = play_ahead(slots, &l, cost);
        prop_assert!(played.calls >= 1 && played.calls <= most);
        prop_assert!(played.calls == most || played.seconds > 0.98, "{} calls, {} s", played.calls, played.seconds);
    }
}

/// Two ranks with clocks of their own that follow the same answers: how much longer both took than the slower one by itself, in seconds.
/// `cost` is of a rank and a call.
fn held_up_seconds(limits: &Limits, cost: impl Fn(usize, u64) -> f64) -> f64 {
    let (mut clocks, mut own) = ([0.0_f64; 2], [0.0_f64; 2]);
    let (mut agreed, mut made) = (Progress::default(), Progress::default());
    let mut told: VecDeque<(Progress, f64)> = VecDeque::new();
    loop {
        let of = match next(limits, &agreed, made.made()) {
            Step::Run(calls) => {
                let seconds = [0, 1].map(|rank| (made.calls..made.calls + calls).map(|n| cost(rank, n)).sum::<f64>());
                for rank in [0, 1] {
                    clocks[rank] += seconds[rank];
                    own[rank] += seconds[rank];
                }
                let last_seconds = seconds[0].max(seconds[1]);
                made = made.and_batch(calls, last_seconds);
                let told_seconds = clocks[0].max(clocks[1]);
                told.push_back((Progress { elapsed_seconds: told_seconds, ..made }, told_seconds));
                if told.len() <= 8 {
                    continue;
                }
                told.pop_front()
            }
            Step::Agree => told.pop_front(),
            Step::Stop(_) => return clocks[0].max(clocks[1]) - own[0].max(own[1]),
        };
        let (heard, at_seconds) = of.expect("something was told");
        agreed = heard.after(&agreed);
        clocks = clocks.map(|clock| clock.max(at_seconds));
    }
}

#[test]
fn a_rank_that_is_slower_for_a_moment_holds_up_nobody() {
    // A pattern of 0.3 s through the page cache: first one rank has a pause of 13 ms, and later the other one. Both lose as much.
    let limits = limits(0.3);
    let pause = 0.7 * BATCH_SHARE * 0.3;
    for later in [12_000, 16_000, 20_000, 22_000] {
        let cost = |rank: usize, n: u64| 1e-5 + if n == [9_000, later][rank] { pause } else { 0.0 };
        let held_up = held_up_seconds(&limits, cost);
        assert!(held_up < 1e-9, "{held_up} of {pause}, {later}");
    }
    // A pause that is longer than what may be unknown does.
    let cost = |rank: usize, n: u64| 1e-5 + if n == [9_000, 22_000][rank] { 0.05 } else { 0.0 };
    assert!(held_up_seconds(&limits, cost) > 0.01);
}
