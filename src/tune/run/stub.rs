//! Trials of simulated storage with a scripted clock, for tests.

use std::time::Duration;

use beff_ffi::MpiError;
use beff_stamp::mix;

use crate::frame::records::{RunOutcome, Warning};
use crate::frame::run::testing::with_script;
use crate::frame::run::trials::{TrialOutcome, TrialPart, TrialRequest, TrialRunner};
use crate::frame::trials::Setting;

/// Storage with a known ratio of each setting to the default.
pub struct StubTrials {
    /// Ratio of a setting.
    pub ratio: fn(&[(String, String)]) -> f64,
    /// Largest deviation of a rate, as a share.
    pub noise: f64,
    /// Settings that are refused, and settings with wrong data.
    pub refuses: fn(&[(String, String)]) -> bool,
    pub corrupts: fn(&[(String, String)]) -> bool,
    /// Trial at which a signal arrives.
    pub signal_at: Option<u32>,
    /// Hints that the library lists: the default ones, replaced by those that it knows.
    pub knows: &'static [&'static str],
    pub cleaned: bool,
}

impl Default for StubTrials {
    fn default() -> Self {
        Self {
            ratio: |_| 1.0,
            noise: 0.02,
            refuses: |_| false,
            corrupts: |_| false,
            signal_at: None,
            knows: &["cb_nodes", "cb_buffer_size", "romio_cb_write"],
            cleaned: false,
        }
    }
}

impl TrialRunner for StubTrials {
    fn work(&self) -> String {
        "type 0 (scatter), 32 kB, first write".into()
    }

    fn granted_hints(&mut self, hints: &[(String, String)]) -> Result<Option<Setting>, MpiError> {
        let mut all: Setting = [("cb_buffer_size", "16777216"), ("cb_nodes", "1"), ("romio_cb_write", "automatic")]
            .map(|(key, value)| (key.into(), value.into()))
            .to_vec();
        for (key, value) in hints.iter().filter(|(key, _)| self.knows.contains(&key.as_str())) {
            all.iter_mut().filter(|(known, _)| known == key).for_each(|(_, listed)| listed.clone_from(value));
        }
        Ok(Some(all))
    }

    fn measure(&mut self, trial: &TrialRequest<'_>) -> Result<Result<TrialOutcome, RunOutcome>, MpiError> {
        if self.signal_at == Some(trial.number) {
            return Ok(Err(RunOutcome::Interrupted));
        }
        // Uniform in [-1, 1].
        let deviation = mix(u64::from(trial.number)) as f64 / (u64::MAX as f64 / 2.0) - 1.0;
        let rate = 1e9 * (self.ratio)(trial.setting) * (1.0 + self.noise * deviation);
        let seconds = trial.seconds * 1e9 / rate;
        with_script(|script| script.now += Duration::from_secs_f64(0.1 + seconds));
        if (self.refuses)(trial.setting) {
            return Ok(Ok(TrialOutcome { refusal: Some("the library refuses it".into()), ..TrialOutcome::default() }));
        }
        Ok(Ok(TrialOutcome {
            bytes_per_second: rate,
            parts: vec![TrialPart { name: "type 0, 32 kB".into(), bytes: (rate * seconds) as u64, seconds }],
            words_checked: 4096,
            words_wrong: if (self.corrupts)(trial.setting) { 7 } else { 0 },
            hints_granted: self.granted_hints(trial.setting)?.unwrap_or_default(),
            ..TrialOutcome::default()
        }))
    }

    fn clean_up(&mut self, _outcome: RunOutcome) -> Option<Warning> {
        self.cleaned = true;
        None
    }
}
