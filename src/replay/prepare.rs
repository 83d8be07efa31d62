//! Preparation of a replay before any file is created: the calls of this rank and their needs.

use std::path::Path;
use std::time::Duration;

use beff_backends::driver;
use beff_ffi::collective_timeout::exit_process;
use beff_ffi::Comm;
use beff_trace::ProfileHead;

use super::abort::report_abort;
use super::config::ReplayConfig;
use super::open_profile::{check_content, check_ranks, derive_order, profile_error, store_derived, OpenProfile};
use super::plan::cache_cold::cache_cold_bytes;
use super::plan::call_change::CallChange;
use super::plan::omission::merge_by_function;
use super::records::{BackendOmissions, ProfileFacts};
use super::run::call_source::CallSource;
use super::run::execution::{replay_support, ExecutionContext, ReplayVariant};
use super::run::scan::{RankScan, ScanTotals};
use crate::frame::command::print_diagnostic;
use crate::frame::command::start::{self, CommandError};
use crate::frame::error::UsageError;
use crate::frame::records::StorageRecord;
use crate::frame::run::agree;
use crate::frame::run::availability::SkippedBackend;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::system::survey::Survey;
use crate::frame::units::format_size;

pub(super) fn combine_totals(ranks: impl IntoIterator<Item = ScanTotals>) -> ScanTotals {
    let mut all = ScanTotals::default();
    for rank in ranks {
        all.calls += rank.calls;
        all.written_bytes = all.written_bytes.max(rank.written_bytes);
        all.below_bytes = all.below_bytes.max(rank.below_bytes);
        all.above_bytes = all.above_bytes.max(rank.above_bytes);
        all.landing_bytes = all.landing_bytes.max(rank.landing_bytes);
        all.placed_bytes = all.placed_bytes.max(rank.placed_bytes);
        all.strewn_bytes = all.strewn_bytes.max(rank.strewn_bytes);
        for (file, extents) in rank.extents {
            all.extents.entry(file).or_default().merge(&extents);
        }
        for (file, gaps) in rank.gaps {
            all.gaps.entry(file).or_default().merge(&gaps);
        }
        all.omissions.resize(all.omissions.len().max(rank.omissions.len()), Vec::new());
        all.omissions.iter_mut().zip(rank.omissions).for_each(|(all, own)| all.extend(own));
    }
    all.omissions = all.omissions.into_iter().map(merge_by_function).collect();
    all
}

pub(super) fn storing_backends(config: &ReplayConfig) -> u64 {
    let stores = |name: &&String| driver(config.backend_of(name)).is_some_and(|row| row.uses_space);
    config.backends.iter().filter(stores).count() as u64
}

/// Totals of the calls, and of the changed ones.
pub(super) struct VariantTotals {
    pub(super) unchanged: ScanTotals,
    pub(super) changed: Option<ScanTotals>,
}

impl VariantTotals {
    fn of<'a>(&'a self, config: &ReplayConfig, name: &str) -> &'a ScanTotals {
        self.changed.as_ref().filter(|_| config.change_of(name).is_some()).unwrap_or(&self.unchanged)
    }

    fn all(&self) -> impl Iterator<Item = &ScanTotals> {
        [&self.unchanged].into_iter().chain(&self.changed)
    }

    pub(super) fn omissions_by_backend(&self, config: &ReplayConfig) -> Vec<BackendOmissions> {
        let omitted = |(n, name): (usize, &String)| {
            let omitted = self.of(config, name).omissions.get(n).cloned().unwrap_or_default();
            BackendOmissions { backend: name.clone(), omitted }
        };
        config.backends.iter().enumerate().map(omitted).collect()
    }

    pub(super) fn required_space_bytes(&self, config: &ReplayConfig, head: &ProfileHead) -> u64 {
        self.all().map(|sums| required_space_bytes(config, head, sums)).max().unwrap_or(0)
    }

    pub(super) fn data_bytes(&self, config: &ReplayConfig, cold_bytes: u64) -> Result<u64, UsageError> {
        self.all().try_fold(0, |most, sums| Ok(data_bytes(config, sums, cold_bytes)?.max(most)))
    }
}

fn required_space_bytes(config: &ReplayConfig, head: &ProfileHead, sums: &ScanTotals) -> u64 {
    let of_file = |(n, file): (usize, &beff_trace::OpenedFile)| {
        let initial_bytes = file.size_bytes.unwrap_or(0);
        sums.extents.get(&(n as u32)).map_or(initial_bytes, |extents| extents.required_bytes(initial_bytes))
    };
    let one = head.files.iter().enumerate().map(of_file).fold(0, u64::saturating_add);
    let storing = storing_backends(config);
    one.saturating_mul(if config.keep_files { storing } else { storing.min(1) })
}

fn data_bytes(config: &ReplayConfig, sums: &ScanTotals, cold_bytes: u64) -> Result<u64, UsageError> {
    let sources = sums.sources(config.seed, cold_bytes);
    let bytes =
        sources.and_then(|sources| sources.bytes().checked_add(sums.landing_bytes.saturating_add(sums.placed_bytes)));
    let profile = config.profile.display();
    bytes.ok_or_else(|| profile_error(format!("{profile}: the data of a call needs more memory than can be counted")))
}

/// The calls of this rank, and the changed ones.
pub(super) struct PreparedCalls {
    scan: Option<RankScan>,
    pub(super) change: Option<CallChange>,
    changed_scan: Option<RankScan>,
    pub(super) sums: VariantTotals,
}

impl PreparedCalls {
    /// Both; None for a rank without calls.
    fn variants<'a>(&'a self, path: &'a Path) -> Option<(ReplayVariant<'a>, Option<ReplayVariant<'a>>)> {
        let variant = |change, scan, combined_totals| {
            let source = CallSource { path, change };
            ReplayVariant { source, scan, combined_totals }
        };
        let changed = self.changed_scan.as_ref().zip(self.sums.changed.as_ref());
        let changed = changed.map(|(scan, sums)| variant(self.change.as_ref(), scan, sums));
        Some((variant(None, self.scan.as_ref()?, &self.sums.unchanged), changed))
    }
}

/// Results of the preparation, equal on all ranks except for the calls of each.
pub(super) struct RunPreparation {
    pub(super) profile: OpenProfile,
    pub(super) storage: StorageRecord,
    /// The recorded ranks; None on all others.
    pub(super) active: Option<Comm>,
    pub(super) calls: PreparedCalls,
    pub(super) facts: ProfileFacts,
    cold_bytes: u64,
    pub(super) data_bytes: u64,
    pub(super) space_bytes: u64,
}

impl RunPreparation {
    /// What replays the calls of this rank; None for a rank without calls.
    pub(super) fn context<'a>(
        &'a self,
        config: &'a ReplayConfig,
        (run_dir, not_run): (&'a RunDir, &'a [SkippedBackend]),
        interrupt: &'a Interrupt,
    ) -> Option<ExecutionContext<'a>> {
        let (unchanged, changed) = self.calls.variants(self.profile.calls_path(config))?;
        Some(ExecutionContext {
            comm: self.active.as_ref()?,
            config,
            unchanged,
            changed,
            head: &self.profile.head,
            layouts: &self.profile.layouts,
            relocation: &self.profile.relocation,
            cold_bytes: self.cold_bytes,
            run_dir,
            not_run,
            fs_type: &self.storage.fs_type,
            span: Duration::try_from_secs_f64(self.facts.span_seconds).unwrap_or_default(),
            interrupt,
            print: print_diagnostic,
            terminate: |stuck, run_dir| exit_process(report_abort(stuck, run_dir)),
        })
    }
}

/// Reads the profile and determines the needs of its calls. Collective.
pub(super) fn prepare_run(
    world: &Comm,
    config: &ReplayConfig,
    survey: &Survey,
) -> Result<RunPreparation, CommandError> {
    let mut profile = start::collective_step(world, "profile", || {
        let profile = OpenProfile::open(config)?;
        check_ranks(world.size(), &profile.head)?;
        Ok(profile)
    })?;
    let derived = start::broadcast_from_root(world, "order", || derive_order(config))?;
    profile.derived = start::collective_step(world, "derived calls", || Ok(store_derived(derived.as_deref())?))?;
    let storage = start::survey_storage(world, &config.path)?;
    let refusals = replay_support(config);
    let cold_bytes = cache_cold_bytes(survey.cache_share_bytes, survey.memory_per_rank_bytes);
    let active = world.prefix(profile.head.processes.len() as u64)?;
    let scan = |change| {
        let input = profile.scan_input(config, &refusals, cold_bytes, change);
        let looked = match &active {
            Some(comm) => input.scan_collectively(comm)?.map(Some),
            None => Ok(None),
        };
        // All recorded ranks have the same result; the other ranks receive it here.
        let scan =
            start::collective_step(world, "calls", || Ok(looked.map_err(|(_, what)| profile.error(config, &what))?))?;
        let own = scan.iter().map(|scan| scan.totals.clone()).collect();
        Ok::<_, CommandError>((scan, agree::collect::<ScanTotals>(world, own)?))
    };
    let (own_scan, all) = scan(None)?;
    let (facts, unchanged) = start::broadcast_from_root(world, "sums", || {
        let facts = profile.facts(&all.iter().collect::<Vec<_>>());
        check_content(&facts)?;
        Ok((facts, combine_totals(all)))
    })?;
    let change = start::broadcast_from_root(world, "change", || profile.plan_change(config))?;
    let (changed_scan, changed) = match &change {
        Some(change) => {
            let (scan, all) = scan(Some(change))?;
            (scan, Some(start::broadcast_from_root(world, "changed sums", || Ok(combine_totals(all)))?))
        }
        None => (None, None),
    };
    let sums = VariantTotals { unchanged, changed };
    let (data_bytes, space_bytes) = start::collective_step(world, "plan", || {
        let data_bytes = sums.data_bytes(config, cold_bytes)?;
        let space_bytes = sums.required_space_bytes(config, &profile.head);
        check_memory(data_bytes, survey)?;
        check_space(space_bytes, config, &storage)?;
        Ok((data_bytes, space_bytes))
    })?;
    Ok(RunPreparation {
        profile,
        storage,
        active,
        calls: PreparedCalls { scan: own_scan, change, changed_scan, sums },
        facts,
        cold_bytes,
        data_bytes,
        space_bytes,
    })
}

/// Refuses data that needs more than three quarters of the memory of a rank. Equal on all ranks.
fn check_memory(needed: u64, survey: &Survey) -> Result<(), UsageError> {
    let has = survey.memory_per_rank_bytes;
    if needed <= has - has / 4 {
        return Ok(());
    }
    Err(UsageError::new(
        format!("the largest calls need {} for data in a rank, which has {}", format_size(needed), format_size(has)),
        "Start fewer ranks on a node, or correct the counts in the profile.",
    ))
}

fn check_space(needed: u64, config: &ReplayConfig, storage: &StorageRecord) -> Result<(), UsageError> {
    if needed <= storage.free_bytes {
        return Ok(());
    }
    let kept = if config.keep_files { " or omit --keep-files" } else { "" };
    Err(UsageError::new(
        format!(
            "the files of the profile need up to {}; only {} are free under {}",
            format_size(needed),
            format_size(storage.free_bytes),
            storage.path
        ),
        format!("Choose another --path with enough space{kept}."),
    ))
}
