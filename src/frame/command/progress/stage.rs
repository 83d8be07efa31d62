//! Combines the parts of a stage.

use crate::frame::run::{ProgressReport, TransferVolume};
use crate::frame::units::mb_per_second;

/// A completed stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stage {
    pub name: String,
    /// Real time, including that outside the clock.
    pub took_seconds: f64,
    /// Bytes moved, by source.
    pub moved: Vec<TransferVolume>,
}

impl Stage {
    /// Rates of the sources in 1e6 bytes per second; those without time are omitted.
    pub(super) fn rates(&self) -> impl Iterator<Item = (&str, f64)> {
        self.moved.iter().filter_map(|of| Some((of.who.as_str(), mb_per_second(of.bytes, of.seconds)?)))
    }

    fn add(&mut self, moved: &TransferVolume) {
        match self.moved.iter_mut().find(|of| of.who == moved.who) {
            Some(of) => {
                of.bytes = of.bytes.saturating_add(moved.bytes);
                of.seconds += moved.seconds;
            }
            None => self.moved.push(moved.clone()),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct StageTracker {
    current: Option<(Stage, f64)>,
}

impl StageTracker {
    /// Begins a part `elapsed_seconds` after the run; returns the stage that ends with it, if any.
    pub(super) fn part(&mut self, standing: &ProgressReport, elapsed_seconds: f64) -> Option<Stage> {
        if let Some((stage, _)) = &mut self.current {
            standing.transferred.iter().for_each(|moved| stage.add(moved));
        }
        if self.current.as_ref().is_some_and(|(stage, _)| stage.name == standing.stage) {
            return None;
        }
        let next = Stage { name: standing.stage.clone(), ..Stage::default() };
        let (stage, begin_seconds) = self.current.replace((next, elapsed_seconds))?;
        Some(Stage { took_seconds: elapsed_seconds - begin_seconds, ..stage })
    }
}
