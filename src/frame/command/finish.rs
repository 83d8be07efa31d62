//! The end of a measurement, the same for every benchmark: files removed, files written, the table printed, one exit code.

use std::time::Instant;

use beff_ffi::Comm;

use super::observer::Collector;
use super::{complain, directory, start};
use crate::frame::error::Exit;
use crate::frame::records::{Outcome, Record, RunEnd, Warning};
use crate::frame::report::Views;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::Observer;

/// The measured files, of a benchmark that has some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files<'a> {
    pub run_dir: &'a RunDir,
    /// Leave them in place if the run is complete.
    pub keep: bool,
}

impl Files<'_> {
    fn clean_up(&self, world: &Comm, outcome: Outcome) -> Option<Warning> {
        directory::clean_up(world, self.run_dir, self.keep, outcome)
    }
}

/// Cleans up and reports; `page` is what goes to stdout. The exit code is rank 0's on all ranks. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(crate) fn conclude<R: Views>(
    world: &Comm,
    files: Option<Files<'_>>,
    mut ending: R::Ending,
    collector: Option<Collector<R>>,
    page: impl FnOnce(&R, &R::Derived) -> String,
) -> anyhow::Result<Exit> {
    let mut worst = [*ending.rank_memory_high_water_bytes()];
    world.max_u64(&mut worst)?;
    *ending.rank_memory_high_water_bytes() = worst[0];
    let outcome = ending.outcome();
    // After a signal the launcher may kill soon: the result first, then the files, whose names are gone already.
    let result_first = outcome == Outcome::Interrupted;
    let mut left = None;
    if let Some(files) = files.filter(|_| !result_first) {
        let begin = Instant::now();
        left = files.clean_up(world, outcome);
        ending.cleaned_up(begin.elapsed().as_secs_f64());
    }
    let mut exit = Exit::Ok;
    if let Some(mut collector) = collector {
        if let Some(warning) = left {
            collector.record(R::warning_line(warning));
        }
        collector.record(R::end_line(ending));
        exit = report(collector, page);
    }
    if let Some(Warning::FilesLeft { path, reason }) =
        files.filter(|_| result_first).and_then(|files| files.clean_up(world, outcome))
    {
        complain(&format!("{path} could not be removed: {reason}"));
    }
    Ok(start::exit_of_root(world, exit)?)
}

/// Writes the files and prints the page. For rank 0.
fn report<R: Views>(collector: Collector<R>, page: impl FnOnce(&R, &R::Derived) -> String) -> Exit {
    let (result, outputs) = collector.finish();
    let derived = result.derived();
    let view = |suffix: &str| result.view(&derived, suffix);
    if start::deliver(outputs, view, || page(&result, &derived)) {
        exit_of(&result)
    } else {
        Exit::Failure
    }
}

/// What the result means for the exit code of the program.
pub(crate) fn exit_of<R: Record>(result: &R) -> Exit {
    match result.outcome() {
        _ if result.is_corrupt() => Exit::Corruption,
        Outcome::Interrupted => Exit::Interrupted,
        Outcome::Complete if result.errors().is_empty() => Exit::Ok,
        _ => Exit::Failure,
    }
}
