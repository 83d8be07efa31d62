//! A measurement and its end, the same for every benchmark: files removed, files written, the table printed, one exit code.

use std::time::Instant;

use beff_ffi::Comm;

use super::observer::Collector;
use super::start::Early;
use super::{complain, directory, start};
use crate::frame::error::Exit;
use crate::frame::records::{Outcome, Record, RunEnd, Warning};
use crate::frame::report::{Place, Sheet, Views};
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{NoObserver, Observer};

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

/// What goes to stdout.
pub(crate) struct Page {
    pub sheet: Sheet,
    /// Said on stderr behind it.
    pub remark: Option<String>,
}

impl From<Sheet> for Page {
    fn from(sheet: Sheet) -> Self {
        Self { sheet, remark: None }
    }
}

/// Lets `work` measure, cleans up and reports. If there is nothing to report, because `work` failed on all ranks before
/// anything was measured, all that was made for it is taken away. The exit code is rank 0's on all ranks. Collective.
///
/// # Errors
/// What `work` failed with; MPI between the ranks.
pub(crate) fn conduct<R: Views>(
    world: &Comm,
    files: Option<Files<'_>>,
    mut collector: Option<Collector<R>>,
    work: impl FnOnce(&mut dyn Observer<R::Line>) -> Result<R::Ending, Early>,
    page: impl FnOnce(&R, &R::Derived, &Place) -> Page,
) -> Result<Exit, Early> {
    let ended = match &mut collector {
        Some(collector) => work(collector),
        None => work(&mut NoObserver),
    };
    if matches!(ended, Err(Early::Everywhere(_))) {
        if let Some(files) = files {
            let _ = directory::clean_up(world, files.run_dir, false, Outcome::Failed);
        }
        if let Some(collector) = collector.take() {
            collector.discard();
        }
    }
    conclude(world, files, ended?, collector, page)
}

/// Cleans up and reports.
fn conclude<R: Views>(
    world: &Comm,
    files: Option<Files<'_>>,
    mut ending: R::Ending,
    collector: Option<Collector<R>>,
    page: impl FnOnce(&R, &R::Derived, &Place) -> Page,
) -> Result<Exit, Early> {
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
    if let Some(left) = files.filter(|_| result_first).and_then(|files| files.clean_up(world, outcome)) {
        complain(&format!("{} could not be removed: {}", left.text("path"), left.text("reason")));
    }
    Ok(start::exit_of_root(world, exit)?)
}

/// Writes the files and prints the page. For rank 0.
fn report<R: Views>(collector: Collector<R>, page: impl FnOnce(&R, &R::Derived, &Place) -> Page) -> Exit {
    let (result, outputs) = collector.finish();
    let derived = result.derived();
    let view = |suffix: &str| result.view(&derived, suffix);
    let mut remark = None;
    let sheet = |place: &Place| {
        let page = page(&result, &derived, place);
        remark = page.remark;
        page.sheet
    };
    if !start::deliver(outputs, view, sheet) {
        return Exit::Failure;
    }
    remark.iter().for_each(|remark| complain(remark));
    let exit = exit_of(&result);
    if exit == Exit::Usage {
        complain("nothing was measured: all that was asked for was refused, for the reasons among the warnings");
    }
    exit
}

/// What the result means for the exit code of the program.
pub(crate) fn exit_of<R: Record>(result: &R) -> Exit {
    match result.outcome() {
        _ if result.is_corrupt() => Exit::Corruption,
        Outcome::Interrupted => Exit::Interrupted,
        // What was asked for does not fit this machine: a script must not take it for a measurement.
        Outcome::Complete if result.errors().is_empty() && result.measured_nothing() => Exit::Usage,
        Outcome::Complete if result.errors().is_empty() => Exit::Ok,
        _ => Exit::Failure,
    }
}
