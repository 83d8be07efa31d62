//! A profile that is replayed: everything but its calls, and what its calls are together.

use std::collections::BTreeMap;
use std::path::Path;

use beff_trace::layout::TypeLayouts;
use beff_trace::text::read_head;
use beff_trace::{Function, ProfileHead};

use super::config::ReplayConfig;
use super::plan::call_change::CallChange;
use super::plan::memory_relocation::MemoryRelocation;
use super::records::{FileFacts, ProfileFacts, RecordingEnd};
use super::run::call_source::CallSource;
use super::run::derived_calls::DerivedCalls;
use super::run::execution::ScanInput;
use super::run::scan::{ReplaySupport, ScanTotals};
use super::run::what_if;
use crate::frame::error::UsageError;
use crate::frame::report::text::count;

/// The profile without its calls.
pub(super) struct OpenProfile {
    pub(super) head: ProfileHead,
    pub(super) layouts: TypeLayouts,
    pub(super) relocation: MemoryRelocation,
    /// The calls of a workload written by hand, completed by their order.
    pub(super) derived: Option<DerivedCalls>,
}

/// The text of a workload written by hand, completed by what follows from the order of its calls; None for a recording.
pub(super) fn derive_order(config: &ReplayConfig) -> Result<Option<String>, UsageError> {
    let text = beff_trace::workload::derive_order(&config.profile).map_err(|e| profile_error(e.to_string()))?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

pub(super) fn store_derived(text: Option<&str>) -> Result<Option<DerivedCalls>, UsageError> {
    let stored = text.map(|text| DerivedCalls::store(text.as_bytes())).transpose();
    stored.map_err(|e| {
        UsageError::new(
            format!("the calls of the workload cannot be stored in a temporary file: {e}"),
            "Set TMPDIR to a directory with free space.",
        )
    })
}

impl OpenProfile {
    pub(super) fn open(config: &ReplayConfig) -> Result<Self, UsageError> {
        // Opening a pipe would block until a writer opens it, and all ranks read the profile several times. A missing file is reported
        // below.
        if config.profile.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            return Err(UsageError::new(
                format!("{} is a pipe or a device; every rank reads a profile several times", config.profile.display()),
                "Write it to a file first.",
            ));
        }
        let mut head = read_head(&config.profile).map_err(|e| {
            let (all, next) = (e.to_string(), e.next_step());
            let what = all.strip_suffix(next).unwrap_or(&all).trim_end_matches("; ").to_owned();
            UsageError::new(what, format!("{next}. No file was created, nothing was measured."))
        })?;
        let layouts = |head: &ProfileHead| {
            TypeLayouts::for_library(&head.types, &head.library).map_err(|e| {
                let next =
                    "Correct that `type` line, or those it refers to. No file was created, nothing was measured.";
                UsageError::new(format!("{}: {e}", config.profile.display()), next)
            })
        };
        let recorded = layouts(&head)?;
        let relocation = MemoryRelocation::add_types(&mut head.types, &recorded);
        let layouts = if relocation.is_empty() { recorded } else { layouts(&head)? };
        Ok(Self { head, layouts, relocation, derived: None })
    }

    pub(super) fn scan_input<'a>(
        &'a self,
        config: &'a ReplayConfig,
        refusals: &'a [ReplaySupport],
        cold_bytes: u64,
        change: Option<&'a CallChange>,
    ) -> ScanInput<'a> {
        let (source, verify) = (CallSource { path: self.calls_path(config), change }, config.verify);
        let Self { head, layouts, relocation, .. } = self;
        ScanInput { source, head, layouts, relocation, support: refusals, cold_bytes, verify }
    }

    /// The change of the calls that the configuration requests.
    pub(super) fn plan_change(&self, config: &ReplayConfig) -> Result<Option<CallChange>, UsageError> {
        let plan = |change| what_if::plan_change(change, self.calls_path(config), (&self.head, &self.layouts));
        Ok(config.what_if.as_ref().map(plan).transpose()?.flatten())
    }

    /// The file of the calls.
    pub(super) fn calls_path<'a>(&'a self, config: &'a ReplayConfig) -> &'a Path {
        self.derived.as_ref().map_or(&config.profile, DerivedCalls::path)
    }

    /// Hints of the first recorded opening of the lowest rank that has one; empty if none has.
    pub(super) fn first_open_hints(&self, config: &ReplayConfig) -> Result<Vec<(String, String)>, UsageError> {
        let source = CallSource { path: self.calls_path(config), change: None };
        for rank in 0..self.head.processes.len() as u32 {
            let (_, calls) = source.read_rank(rank).map_err(|what| self.error(config, &what))?;
            for call in calls {
                let call = call.map_err(|e| self.error(config, &e.to_string()))?;
                if call.function == Function::Open {
                    let info = call.info.and_then(|info| self.head.infos.get(info as usize));
                    return Ok(info.cloned().unwrap_or_default());
                }
            }
        }
        Ok(Vec::new())
    }

    /// An error in the calls, under the name of the profile.
    pub(super) fn error(&self, config: &ReplayConfig, what: &str) -> UsageError {
        let [read, named] = [self.calls_path(config), &config.profile].map(|path| path.display().to_string());
        profile_error(what.replace(&read, &named))
    }

    pub(super) fn facts(&self, ranks: &[&ScanTotals]) -> ProfileFacts {
        let head = &self.head;
        let mut ended: BTreeMap<&str, u64> = BTreeMap::new();
        let mut hosts: Vec<&str> = Vec::new();
        for process in &head.processes {
            *ended.entry(process.end.name()).or_default() += 1;
            hosts.push(&process.host);
        }
        hosts.sort_unstable();
        hosts.dedup();
        let storage = |which: usize| {
            let mut each = head.processes.iter().map(|p| Some(p.storage_bytes?[which]));
            each.try_fold(0, |sum: u64, bytes| Some(sum.saturating_add(bytes?)))
        };
        let sum = |value: fn(&ScanTotals) -> u64| ranks.iter().map(|sums| value(sums)).sum::<u64>();
        let spans = || ranks.iter().filter_map(|sums| sums.span_ns);
        let first = spans().map(|[first, _]| first).min().unwrap_or(0);
        let last = spans().map(|[_, last]| last).max().unwrap_or(0);
        let file = |f: &beff_trace::OpenedFile| FileFacts {
            path: f.path.clone(),
            size_bytes: f.size_bytes,
            fs_type: f.fs_type.clone(),
        };
        ProfileFacts {
            library: head.library.lines().next().unwrap_or_default().to_owned(),
            command: head.command.clone(),
            started_unix_ns: head.started_unix_ns,
            cost_ns: head.cost_ns,
            processes: head.processes.len() as u64,
            hosts: hosts.len() as u64,
            ended: ended.into_iter().map(|(end, processes)| RecordingEnd { end: end.to_owned(), processes }).collect(),
            threads: ranks.iter().map(|sums| sums.threads).max().unwrap_or(0),
            files: head.files.iter().map(file).collect(),
            calls: sum(|s| s.calls),
            data_calls: sum(|s| s.data_calls),
            read_bytes: sum(|s| s.read_bytes),
            written_bytes: sum(|s| s.written_bytes),
            span_seconds: last.saturating_sub(first) as f64 * 1e-9,
            storage_read_bytes: storage(0),
            storage_written_bytes: storage(1),
            calls_discarded: sum(|s| s.calls_discarded),
            orderings: sum(|s| s.orderings),
            orderings_lost: sum(|s| s.orderings_lost),
        }
    }
}

pub(super) fn profile_error(what: String) -> UsageError {
    UsageError::new(
        what,
        "No file was created, nothing was measured. `beff-raw profile show FILE` shows the content of a profile.",
    )
}

pub(super) fn check_ranks(ranks: u64, head: &ProfileHead) -> Result<(), UsageError> {
    let recorded = head.processes.len() as u64;
    if ranks >= recorded {
        return Ok(());
    }
    Err(UsageError::new(
        format!("{} recorded, but only {} started", count(recorded, "process"), count(ranks, "rank")),
        format!("Start as many: mpirun -n {recorded}, and the same command."),
    ))
}

pub(super) fn check_content(facts: &ProfileFacts) -> Result<(), UsageError> {
    if facts.calls > 0 {
        return Ok(());
    }
    let ends: Vec<String> =
        facts.ended.iter().map(|e| format!("{} {}", count(e.processes, "process"), e.end)).collect();
    Err(UsageError::new(
        format!(
            "the profile has no call on a file: {} in all, {} ({})",
            count(facts.calls, "call"),
            count(facts.files.len() as u64, "file"),
            ends.join(", ")
        ),
        "Record the program during its I/O; `beff-raw profile show FILE` shows the content of a profile.",
    ))
}
