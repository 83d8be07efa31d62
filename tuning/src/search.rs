//! The search: the next trial, from the trials so far.

use std::collections::VecDeque;

use crate::candidates::{combinations, round_order, round_trials, singles, without_each};
use crate::confirmation::{self, MIN_PAIRS};
use crate::effects::{pair_differences, smallest_provable, EffectRatio, Effects, Sample};
use crate::pace::{pilot_work_seconds, Pace, COMBINATION_END, ELIMINATION_END, NOISE_END, SINGLE_END};
use crate::trial::{Factor, Phase, PlannedTrial, Setting, Trial};

/// Pairs of the default against itself.
const NOISE_PAIRS: u32 = 8;
/// Fewest of them, where one trial takes a large part of the budget.
const MIN_NOISE_PAIRS: u32 = 3;
/// Rounds of the single values.
const SINGLE_ROUNDS: u32 = 3;
/// Most rounds of one step of the combinations and the elimination.
const MAX_ROUNDS: u32 = 8;
/// Trials of the shortest search: three pilots, the noise, one candidate, the confirmation.
const MIN_TRIALS: u32 = 3 + 2 * MIN_NOISE_PAIRS + 3 + 2 * MIN_PAIRS;
/// Work of the first trial as a share of its time, at least.
const FIRST_TRIAL_SHARE: f64 = 0.3;
/// A key whose loss is below this many standard errors is dropped from the best setting.
const LEAST_LOSS: f64 = 3.0;
/// Share of the budget for the other work.
const OTHERS_SHARE: f64 = 0.06;

/// What is searched, and in which time.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPlan {
    /// Keys and values.
    pub factors: Vec<Factor>,
    /// Wall-clock time from the begin of the budget to the last trial.
    pub budget_seconds: f64,
    /// The best setting is also measured with other work.
    pub has_others: bool,
}

/// Trials whose time two pairs of other work may take: they have pilots of their own.
const OTHER_TRIALS: f64 = 8.0;

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// The best is faster than the default, and the interval of the ratio excludes 1.
    Recommended,
    /// The interval of the confirmation contains 1.
    NotConfirmed,
    /// No candidate can exceed the smallest ratio that the budget can prove.
    NoCandidate,
    /// The time was too short for a confirmation.
    TooShort,
    /// The default itself was not measured.
    DefaultFailed,
}

/// A key of the best setting, and the ratio of the best setting to it without the key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyEffect {
    /// Key and value.
    pub pair: (String, String),
    /// Ratio with and without it.
    pub ratio: EffectRatio,
    /// True if it was dropped, because it has no effect.
    pub is_dropped: bool,
}

#[derive(Clone, Debug)]
enum Stage {
    Pilot,
    Noise,
    Single { candidates: Vec<Setting>, round: u32, rounds: u32 },
    Combination { candidates: Vec<Setting>, round: u32, rounds_left: u32 },
    Elimination { best: Setting, round: u32 },
    Confirmation { best: Setting, round: u32 },
    Others,
    Ended(SearchEnd),
}

/// A search. Deterministic: it depends on the plan and the trials alone.
#[derive(Clone, Debug)]
pub struct Search {
    plan: SearchPlan,
    trials: Vec<Trial>,
    queue: VecDeque<PlannedTrial>,
    stage: Stage,
    noise_work_seconds: f64,
    work_seconds: f64,
    /// Effects of single values and combinations.
    effects: Effects,
    disqualified: Vec<Setting>,
    untried: Vec<Setting>,
    key_effects: Vec<KeyEffect>,
    best: Option<Setting>,
}

impl Search {
    /// Begins a search.
    #[must_use]
    pub fn new(plan: SearchPlan) -> Self {
        let [seconds, ..] = pilot_work_seconds(plan.budget_seconds);
        let pilot = PlannedTrial { phase: Phase::Pilot, round: 0, setting: Setting::new(), seconds };
        Self {
            plan,
            trials: Vec::new(),
            queue: [pilot].into(),
            stage: Stage::Pilot,
            noise_work_seconds: seconds,
            work_seconds: seconds,
            effects: Effects::default(),
            disqualified: Vec::new(),
            untried: Vec::new(),
            key_effects: Vec::new(),
            best: None,
        }
    }

    /// The search after these trials. Trials that this plan would not have made end the repetition; their number is returned.
    #[must_use]
    pub fn resume(plan: SearchPlan, trials: &[Trial]) -> (Self, usize) {
        let mut search = Self::new(plan);
        for (used, trial) in trials.iter().enumerate() {
            match search.next_trial() {
                Some(planned) if planned == trial.planned => search.add(trial.clone()),
                _ => return (search, used),
            }
        }
        (search, trials.len())
    }

    /// The next trial; None at the end. It stays the next one until its result is added.
    pub fn next_trial(&mut self) -> Option<PlannedTrial> {
        while self.queue.is_empty() && !matches!(self.stage, Stage::Ended(_)) {
            self.stage = self.advance();
        }
        self.queue.front().cloned()
    }

    /// Adds the result of the next trial.
    pub fn add(&mut self, trial: Trial) {
        self.queue.pop_front();
        let setting = trial.planned.setting.clone();
        if trial.log_rate().is_none() {
            if setting.is_empty() {
                self.queue.clear();
                self.stage = Stage::Ended(SearchEnd::DefaultFailed);
            } else {
                self.queue.retain(|planned| planned.setting != setting);
                self.disqualified.push(setting);
            }
        }
        self.trials.push(trial);
    }

    /// Why it ended; None while it continues.
    #[must_use]
    pub fn end(&self) -> Option<SearchEnd> {
        match self.stage {
            Stage::Ended(end) if self.queue.is_empty() => Some(end),
            _ => None,
        }
    }

    /// The trials.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The best setting found, confirmed or not.
    #[must_use]
    pub fn best(&self) -> Option<&Setting> {
        self.best.as_ref()
    }

    /// Candidates for which the time was too short.
    #[must_use]
    pub fn untried(&self) -> &[Setting] {
        &self.untried
    }

    /// Effects of the keys of the best combination.
    #[must_use]
    pub fn key_effects(&self) -> &[KeyEffect] {
        &self.key_effects
    }

    /// Scatter of pairs of the default.
    #[must_use]
    pub fn noise(&self) -> Sample {
        let own: Vec<&Trial> = self.of_phase(Phase::Noise).collect();
        Sample::of(&pair_differences(&own, &[]))
    }

    /// The smallest ratio that the budget can prove; None before the noise is known.
    #[must_use]
    pub fn smallest_provable_ratio(&self) -> Option<f64> {
        let pace = Pace::of(&self.trials)?;
        let share = 1.0 - self.others_share() - ELIMINATION_END;
        let pairs = share * self.plan.budget_seconds / (2.0 * pace.wall_seconds(self.noise_work_seconds));
        Some(smallest_provable(self.noise().deviation()?, (pairs as u32).max(MIN_PAIRS) / 2 * 2))
    }

    /// The shortest budget of a search, by the trials so far; None without trials.
    #[must_use]
    pub fn shortest_budget_seconds(&self) -> Option<f64> {
        let wall_seconds = Pace::of(&self.trials)?.least_wall_seconds();
        Some(f64::from(MIN_TRIALS) * wall_seconds / (1.0 - self.others_share()))
    }

    /// Ratios of all candidates, the fastest first.
    #[must_use]
    pub fn ratios(&self, phase: Phase) -> Vec<(Setting, EffectRatio)> {
        let effects = Effects::of(self.of_phase(phase), &[]);
        let noise = self.noise();
        let with_ratio = |(setting, _): (&Setting, f64)| Some((setting.clone(), effects.ratio(setting, noise)?));
        effects.ranking().into_iter().filter_map(with_ratio).collect()
    }

    /// Ratio of the best to the default in the confirmation.
    #[must_use]
    pub fn confirmed_ratio(&self) -> Option<EffectRatio> {
        confirmation::ratio(&self.trials, Phase::Confirmation)
    }

    fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.planned.phase == phase)
    }

    fn elapsed_seconds(&self) -> f64 {
        self.trials.last().map_or(0.0, |trial| trial.end_seconds)
    }

    fn others_share(&self) -> f64 {
        if self.plan.has_others {
            OTHERS_SHARE
        } else {
            0.0
        }
    }

    /// Time until this share of the budget, and until the last moment for a confirmation.
    fn left_seconds(&self, share: f64) -> f64 {
        let confirmation_seconds = Pace::of(&self.trials)
            .map_or(0.0, |pace| f64::from(2 * MIN_PAIRS) * pace.wall_seconds(self.noise_work_seconds));
        let last_seconds = (1.0 - self.others_share()) * self.plan.budget_seconds - confirmation_seconds;
        ((share * self.plan.budget_seconds).min(last_seconds) - self.elapsed_seconds()).max(0.0)
    }

    fn is_possible(&self, setting: &Setting) -> bool {
        let has_all = |wrong: &Setting| wrong.iter().all(|pair| setting.contains(pair));
        !self.disqualified.iter().any(has_all)
    }

    fn queue_round(&mut self, phase: Phase, round: u32, candidates: &[Setting], base: &Setting) {
        let seconds = self.work_seconds;
        let planned = |setting| PlannedTrial { phase, round, setting, seconds };
        self.queue.extend(round_order(candidates, base, round).into_iter().map(planned));
    }

    /// Plans the next trials, and returns the stage they belong to.
    fn advance(&mut self) -> Stage {
        let Some(pace) = Pace::of(&self.trials) else { return Stage::Ended(SearchEnd::DefaultFailed) };
        match self.stage.clone() {
            Stage::Pilot => self.next_pilot(pace),
            Stage::Noise => self.begin_singles(pace),
            Stage::Single { candidates, round, rounds } => self.next_singles(pace, candidates, round, rounds),
            Stage::Combination { candidates, round, rounds_left } => {
                self.next_combinations(pace, candidates, round, rounds_left)
            }
            Stage::Elimination { best, round } => self.next_elimination(pace, best, round),
            Stage::Confirmation { best, round } => self.next_confirmation(pace, best, round),
            Stage::Others => Stage::Ended(SearchEnd::Recommended),
            Stage::Ended(end) => Stage::Ended(end),
        }
    }

    /// The next pilot, as long as the budget can suffice; then the noise.
    fn next_pilot(&mut self, pace: Pace) -> Stage {
        // The first trial may contain as much preparation as work.
        let share = if self.trials.len() == 1 { FIRST_TRIAL_SHARE } else { 1.0 };
        let needed_seconds = share * f64::from(MIN_TRIALS) * pace.least_wall_seconds();
        if needed_seconds > (1.0 - self.others_share()) * self.plan.budget_seconds {
            return Stage::Ended(SearchEnd::TooShort);
        }
        if let Some(seconds) = pilot_work_seconds(self.plan.budget_seconds).get(self.trials.len()) {
            let round = self.trials.len() as u32;
            let pilot = PlannedTrial { phase: Phase::Pilot, round, setting: Setting::new(), seconds: *seconds };
            self.queue.push_back(pilot);
            return Stage::Pilot;
        }
        self.begin_noise(pace)
    }

    fn begin_noise(&mut self, pace: Pace) -> Stage {
        let seconds = self.left_seconds(NOISE_END);
        let shortest = pace.least_wall_seconds();
        let pairs = ((seconds / shortest / 2.0) as u32).clamp(MIN_NOISE_PAIRS, NOISE_PAIRS);
        self.noise_work_seconds = pace.work_seconds(seconds, 2 * pairs);
        let seconds = self.noise_work_seconds;
        for round in 0..pairs {
            let planned = PlannedTrial { phase: Phase::Noise, round, setting: Setting::new(), seconds };
            self.queue.extend([planned.clone(), planned]);
        }
        Stage::Noise
    }

    fn begin_singles(&mut self, pace: Pace) -> Stage {
        let mut candidates = singles(&self.plan.factors);
        if candidates.is_empty() {
            return Stage::Ended(SearchEnd::NoCandidate);
        }
        let seconds = self.left_seconds(SINGLE_END);
        let fits = |candidates: usize, rounds: u32| {
            f64::from(round_trials(candidates) * rounds) * pace.least_wall_seconds() <= seconds
        };
        // Where trials are long, the noise has taken more than its share.
        let fits = |candidates, rounds| fits(candidates, rounds) || (candidates == 1 && rounds == 1);
        while !fits(candidates.len(), 1) {
            self.untried.extend(candidates.pop());
        }
        let rounds = (1..=SINGLE_ROUNDS).rev().find(|rounds| fits(candidates.len(), *rounds)).unwrap_or(1);
        self.work_seconds =
            pace.work_seconds(seconds, round_trials(candidates.len()) * rounds).min(self.noise_work_seconds);
        self.queue_round(Phase::Single, 0, &candidates, &Setting::new());
        Stage::Single { candidates, round: 0, rounds }
    }

    fn next_singles(&mut self, pace: Pace, mut candidates: Vec<Setting>, round: u32, rounds: u32) -> Stage {
        candidates.retain(|setting| self.is_possible(setting));
        if round + 1 < rounds && self.fits_round(Phase::Single, candidates.len(), SINGLE_END) {
            self.queue_round(Phase::Single, round + 1, &candidates, &Setting::new());
            return Stage::Single { candidates, round: round + 1, rounds };
        }
        self.effects = Effects::of(self.of_phase(Phase::Single), &[]);
        self.begin_combinations(pace, &candidates)
    }

    /// True if a round with these candidates fits into the time until this share of the budget; slow candidates may take it a little longer.
    fn fits_round(&self, phase: Phase, candidates: usize, share: f64) -> bool {
        let last = self.of_phase(phase).last().map(|trial| trial.planned.round);
        let own = self.of_phase(phase).filter(|trial| Some(trial.planned.round) == last);
        let (count, seconds) = own.fold((0, 0.0), |(n, sum), trial| (n + 1, sum + trial.wall_seconds()));
        let expected_seconds = seconds / f64::from(count.max(1)) * f64::from(round_trials(candidates));
        expected_seconds <= 1.2 * self.left_seconds(share)
    }

    /// Single values that are not proven to be slower take part in combinations, whatever their own effect: two keys may have one only
    /// together.
    fn begin_combinations(&mut self, pace: Pace, measured: &[Setting]) -> Stage {
        let noise = self.noise();
        let is_harmless = |setting: &&Setting| {
            self.effects.ratio(setting, noise).is_some_and(|ratio| ratio.high.is_none_or(|high| high >= 1.0))
        };
        let mut kept: Vec<Setting> = measured.iter().filter(is_harmless).cloned().collect();
        let mean = |setting: &[(String, String)]| self.effects.mean(setting).unwrap_or(0.0);
        kept.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
        let promising: Vec<Setting> =
            self.ratios(Phase::Single).into_iter().filter(|(_, r)| r.low > 1.0).map(|(setting, _)| setting).collect();
        let mut combined = combinations(&kept, &promising);
        let sum = |setting: &Setting| setting.iter().map(|pair| mean(std::slice::from_ref(pair))).sum::<f64>();
        combined.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
        // The first step has half of the time: the others have half of the candidates each.
        let seconds = self.left_seconds(COMBINATION_END) / 2.0;
        let wall_seconds = pace.least_wall_seconds();
        while !combined.is_empty() && f64::from(round_trials(combined.len() + kept.len())) * wall_seconds > seconds {
            self.untried.extend(combined.pop());
        }
        let best_single = kept.first().filter(|best| mean(best) > 0.0).cloned();
        if f64::from(round_trials(kept.len())) * wall_seconds > seconds {
            // No time for a second look.
            return match best_single {
                Some(best) => self.begin_elimination(pace, best, 0),
                None => Stage::Ended(SearchEnd::NoCandidate),
            };
        }
        let candidates: Vec<Setting> = kept.into_iter().chain(combined).filter(|s| self.is_possible(s)).collect();
        if candidates.is_empty() {
            return Stage::Ended(SearchEnd::NoCandidate);
        }
        let trials = round_trials(candidates.len());
        self.work_seconds = pace.work_seconds(seconds, trials).min(self.noise_work_seconds);
        self.queue_combinations(pace, candidates, 0)
    }

    fn queue_combinations(&mut self, pace: Pace, candidates: Vec<Setting>, round: u32) -> Stage {
        let steps = (usize::BITS - (candidates.len() - 1).leading_zeros()).max(1);
        let seconds = self.left_seconds(COMBINATION_END) / f64::from(steps);
        let round_seconds = f64::from(round_trials(candidates.len())) * pace.wall_seconds(self.work_seconds);
        let rounds = ((seconds / round_seconds) as u32).clamp(1, MAX_ROUNDS);
        self.queue_round(Phase::Combination, round, &candidates, &Setting::new());
        Stage::Combination { candidates, round, rounds_left: rounds - 1 }
    }

    fn next_combinations(&mut self, pace: Pace, mut candidates: Vec<Setting>, round: u32, rounds_left: u32) -> Stage {
        candidates.retain(|setting| self.is_possible(setting));
        if rounds_left > 0 && self.fits_round(Phase::Combination, candidates.len(), COMBINATION_END) {
            self.queue_round(Phase::Combination, round + 1, &candidates, &Setting::new());
            return Stage::Combination { candidates, round: round + 1, rounds_left: rounds_left - 1 };
        }
        let mut effects = Effects::of(self.of_phase(Phase::Single), &[]);
        effects.add(Effects::of(self.of_phase(Phase::Combination), &[]));
        self.effects = effects;
        let mean = |setting: &Setting| self.effects.mean(setting).unwrap_or(f64::NEG_INFINITY);
        candidates.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
        let noise = self.noise();
        let provable = self.smallest_provable_ratio().unwrap_or(1.0);
        let can_exceed = |setting: &Setting| {
            self.effects.ratio(setting, noise).is_some_and(|ratio| ratio.high.is_none_or(|high| high > provable))
        };
        if !candidates.iter().any(can_exceed) || mean(&candidates[0]) <= 0.0 {
            return Stage::Ended(SearchEnd::NoCandidate);
        }
        candidates.truncate(candidates.len().div_ceil(2));
        if candidates.len() > 1 && self.fits_round(Phase::Combination, candidates.len(), COMBINATION_END) {
            return self.queue_combinations(pace, candidates, round + 1);
        }
        let best = candidates.swap_remove(0);
        self.begin_elimination(pace, best, 0)
    }

    fn begin_elimination(&mut self, pace: Pace, best: Setting, round: u32) -> Stage {
        self.best = Some(best.clone());
        if best.len() < 2 {
            return self.next_confirmation(pace, best, 0);
        }
        let candidates: Vec<Setting> = without_each(&best);
        let trials = round_trials(candidates.len());
        let round_seconds = f64::from(trials) * pace.wall_seconds(self.work_seconds);
        // Two in each turn: with one, the order would matter.
        let rounds = ((self.left_seconds(ELIMINATION_END) / round_seconds) as u32).min(MAX_ROUNDS) / 2 * 2;
        if rounds == 0 {
            return self.next_confirmation(pace, best, 0);
        }
        for round in round..round + rounds {
            self.queue_round(Phase::Elimination, round, &candidates, &best);
        }
        Stage::Elimination { best, round: round + rounds }
    }

    /// Drops the key that has least effect, if it has none beyond its standard error, and tries again with the others: of two keys that
    /// replace each other, neither has an effect, but one must stay.
    fn next_elimination(&mut self, pace: Pace, best: Setting, round: u32) -> Stage {
        let shorter = without_each(&best);
        let own = |trial: &&Trial| trial.planned.setting == best || shorter.contains(&trial.planned.setting);
        let effects = Effects::of(self.of_phase(Phase::Elimination).filter(own), &best);
        let noise = self.noise();
        let mut all = self.effects.clone();
        all.add(effects.clone());
        let (scatter, _) = all.scatter(noise);
        self.key_effects.retain(|known| known.is_dropped);
        let mut least: Option<(usize, f64)> = None;
        for (place, (pair, without)) in best.iter().zip(&shorter).enumerate() {
            let Some(ratio) = effects.ratio(without, noise) else { continue };
            let loss = -ratio.ratio.ln();
            let ratio = EffectRatio {
                ratio: 1.0 / ratio.ratio,
                low: ratio.high.map_or(0.0, |high| 1.0 / high),
                high: (ratio.low > 0.0).then(|| 1.0 / ratio.low),
                count: ratio.count,
            };
            let standard_error = scatter / f64::from(ratio.count).sqrt();
            if loss < LEAST_LOSS * standard_error && least.is_none_or(|(_, smallest)| loss < smallest) {
                least = Some((place, loss));
            }
            self.key_effects.push(KeyEffect { pair: pair.clone(), ratio, is_dropped: false });
        }
        let Some((place, _)) = least else { return self.next_confirmation(pace, best, 0) };
        let dropped = best[place].clone();
        self.key_effects.iter_mut().filter(|effect| effect.pair == dropped).for_each(|effect| effect.is_dropped = true);
        self.begin_elimination(pace, shorter[place].clone(), round)
    }

    fn next_confirmation(&mut self, pace: Pace, best: Setting, round: u32) -> Stage {
        let end_seconds = (1.0 - self.others_share()) * self.plan.budget_seconds;
        let expected_seconds = 2.0 * pace.wall_seconds(self.noise_work_seconds);
        let is_possible = self.is_possible(&best);
        if is_possible
            && confirmation::fits_another(&self.trials, self.elapsed_seconds(), end_seconds, expected_seconds)
        {
            self.queue.extend(confirmation::pair(&best, round, self.noise_work_seconds, Phase::Confirmation));
            return Stage::Confirmation { best, round: round + 1 };
        }
        let Some(ratio) = self.confirmed_ratio().filter(|ratio| is_possible && ratio.count >= MIN_PAIRS) else {
            return Stage::Ended(if is_possible { SearchEnd::TooShort } else { SearchEnd::NotConfirmed });
        };
        if ratio.low <= 1.0 {
            return Stage::Ended(SearchEnd::NotConfirmed);
        }
        let left_seconds = self.plan.budget_seconds - self.elapsed_seconds();
        if self.plan.has_others && OTHER_TRIALS * pace.least_wall_seconds() <= left_seconds {
            // How long other work takes is the estimate of the runner alone.
            let seconds = pace.measurable_seconds(left_seconds, OTHER_TRIALS as u32);
            self.queue.extend((0..2).flat_map(|round| confirmation::pair(&best, round, seconds, Phase::Others)));
            return Stage::Others;
        }
        Stage::Ended(SearchEnd::Recommended)
    }
}
