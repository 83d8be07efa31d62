//! Head of the report, and the set-up.

use beff_tuning::trial::setting_text;

use crate::frame::report::common;
use crate::frame::report::machine;
use crate::frame::report::model::{labelled_texts, ReportHead, ReportSection};
use crate::frame::units::format_seconds;
use crate::tune::records::TuneResult;
use crate::tune::report::comparable;

pub(super) fn head(result: &TuneResult, common: ReportHead) -> ReportHead {
    let setup = &result.setup;
    let own = [("work", Some(setup.work.clone())), ("backend", Some(result.config.trials.backend.clone()))];
    ReportHead {
        about: vec![format!("{}, {}", result.config.trials.backend, setup.work)],
        requested_time: format!("a budget of {}", format_seconds(result.config.budget_seconds)),
        facts: machine::head_facts(&setup.machine, Some(&setup.mpi_io_layer))
            .into_iter()
            .chain(machine::storage_head_facts(&setup.storage))
            .chain(labelled_texts(own))
            .collect(),
        ..common
    }
}

pub(super) fn set_up(result: &TuneResult) -> ReportSection {
    let setup = &result.setup;
    let hints = (!setup.default_hints.is_empty()).then(|| setting_text(&setup.default_hints));
    let own = labelled_texts([("hints of the default", hints)]);
    common::set_up(&setup.machine, Some(&setup.storage), &comparable::tune_facts(result), own)
}
