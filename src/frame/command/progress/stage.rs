//! Parts of one stage taken together.

use crate::frame::run::{Moved, Standing};
use crate::frame::units::mb_per_second;

/// A stage that is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stage {
    /// What it was.
    pub name: String,
    /// Real time, with all that is outside the clock.
    pub took_seconds: f64,
    /// What was moved, by whom.
    pub moved: Vec<Moved>,
}

impl Stage {
    /// Who moved how much in a second, in 1e6 bytes; nobody who moved nothing.
    pub(super) fn rates(&self) -> impl Iterator<Item = (&str, f64)> {
        self.moved.iter().filter_map(|of| Some((of.who.as_str(), mb_per_second(of.bytes, of.seconds)?)))
    }

    fn add(&mut self, moved: &Moved) {
        match self.moved.iter_mut().find(|of| of.who == moved.who) {
            Some(of) => {
                of.bytes = of.bytes.saturating_add(moved.bytes);
                of.seconds += moved.seconds;
            }
            None => self.moved.push(moved.clone()),
        }
    }
}

/// The stage under way.
#[derive(Debug, Default)]
pub(super) struct Stages {
    now: Option<(Stage, f64)>,
}

impl Stages {
    /// A part begins `elapsed_seconds` after the run; the stage that is over with it, if one is.
    pub(super) fn part(&mut self, standing: &Standing, elapsed_seconds: f64) -> Option<Stage> {
        if let Some((stage, _)) = &mut self.now {
            standing.last.iter().for_each(|moved| stage.add(moved));
        }
        if self.now.as_ref().is_some_and(|(stage, _)| stage.name == standing.stage) {
            return None;
        }
        let next = Stage { name: standing.stage.clone(), ..Stage::default() };
        let (stage, begin_seconds) = self.now.replace((next, elapsed_seconds))?;
        Some(Stage { took_seconds: elapsed_seconds - begin_seconds, ..stage })
    }
}
