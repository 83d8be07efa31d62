//! Decides before the run whether a change of the calls (`--what-if`) is safe, and which calls it concerns.

use std::path::Path;

use beff_trace::layout::TypeLayouts;
use beff_trace::overwritten::{OverwriteFinder, OverwrittenWrites};
use beff_trace::text::read_all_ranks;
use beff_trace::{Call, ProfileHead, RecordingStatus};

use crate::frame::error::UsageError;
use crate::frame::units::count;
use crate::replay::config::WhatIf;
use crate::replay::plan::call_change::{CallChange, OmittedWritesBuilder};
use crate::replay::plan::collective_change::CollectiveFormCheck;

/// The change of the calls of this profile; None if the calls stay as they are.
///
/// # Errors
/// Why the change is not safe, or has no effect. An error in the profile.
pub fn plan_change(
    change: &WhatIf,
    profile: &Path,
    (head, layouts): (&ProfileHead, &TypeLayouts),
) -> Result<Option<CallChange>, UsageError> {
    match change {
        WhatIf::Hints(_) => Ok(None),
        WhatIf::FillNever => omitted_writes(profile, head, layouts).map(Some),
        WhatIf::Collective => collective_accesses(profile, head).map(Some),
    }
}

/// Calls `visit` with each call of all ranks.
fn visit_calls(profile: &Path, mut visit: impl FnMut(u32, &Call) -> Result<(), UsageError>) -> Result<(), UsageError> {
    let error = |e: beff_trace::text::TextError| UsageError::new(e.to_string(), "Nothing was measured.");
    let (_, mut calls) = read_all_ranks(profile).map_err(error)?;
    calls.try_for_each(|call| call.map_err(error).and_then(|(rank, call)| visit(rank, &call)))
}

fn omitted_writes(profile: &Path, head: &ProfileHead, layouts: &TypeLayouts) -> Result<CallChange, UsageError> {
    let is_cut = |end: RecordingStatus| !matches!(end, RecordingStatus::Complete | RecordingStatus::Aborted);
    if let Some(rank) = head.processes.iter().position(|process| is_cut(process.end)) {
        return Err(UsageError::new(
            format!(
                "--what-if fill-never is not safe: the recording of rank {rank} is not complete, and calls that are not recorded may \
                 have read the data"
            ),
            "Record the program until it ends.",
        ));
    }
    let mut finder = OverwriteFinder::new(layouts);
    visit_calls(profile, |rank, call| {
        finder
            .add(rank, call)
            .map_err(|e| UsageError::new(format!("--what-if fill-never: {e}"), "Record a shorter run of the program."))
    })?;
    let found = finder.finish();
    let mut builder = OmittedWritesBuilder::new(&found.calls, layouts, &head.comms);
    visit_calls(profile, |rank, call| {
        builder.add(rank, call);
        Ok(())
    })?;
    let omitted = builder.finish(head.processes.len());
    if omitted.writes == 0 {
        return Err(nothing_to_omit(&found));
    }
    Ok(CallChange::OmitWrites(omitted))
}

fn collective_accesses(profile: &Path, head: &ProfileHead) -> Result<CallChange, UsageError> {
    let mut check = CollectiveFormCheck::new(&head.comms, &head.files, head.processes.len());
    visit_calls(profile, |rank, call| {
        check.add(rank, call);
        Ok(())
    })?;
    let (calls, shared) = check.finish().map_err(|why| {
        UsageError::new(
            format!("--what-if collective is refused: {why}"),
            "`beff-raw profile show FILE` shows which accesses are independent, and what else costs time.",
        )
    })?;
    Ok(CallChange::Collective { shared, calls })
}

fn nothing_to_omit(found: &OverwrittenWrites) -> UsageError {
    let reasons = [
        (found.calls.len() as u64, "at the file pointer in a collective call that other ranks need"),
        (found.partly, "only in part"),
        (found.used, "after a read, or after a call that depends on the size of the file"),
        (found.unordered, "without a known order of the two writes"),
        (found.pending, "completely, but they are nonblocking or split"),
    ];
    let kept = reasons.iter().filter(|(writes, _)| *writes > 0);
    let kept: Vec<String> = kept.map(|(writes, why)| format!("{} {why}", count(*writes, "write"))).collect();
    let why = match kept.is_empty() {
        true => "the program overwrites none of its writes".to_owned(),
        false => {
            format!("no write is overwritten completely before anything reads it. Overwritten are {}", kept.join(", "))
        }
    };
    UsageError::new(
        format!("--what-if fill-never changes nothing: {why}"),
        "`beff-raw profile show FILE` shows what costs most.",
    )
}
