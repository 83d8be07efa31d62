//! `beff-raw plan`: the plan of a run for any number of ranks, without MPI.

use std::path::Path;

use serde::Serialize;

use super::cli::{PlanArgs, PlannedRate};
use crate::b_eff_io::config::{Config, SpaceLimit};
use crate::b_eff_io::plan::acceptance::{planned_requirements, PlannedRequirement};
use crate::b_eff_io::plan::cache_yardstick::{forecast, CacheForecast, PlannedCache};
use crate::b_eff_io::plan::communication::{CommunicationCounts, PhaseCommunication};
use crate::b_eff_io::plan::memory as plan_memory;
use crate::b_eff_io::plan::preview::{preview, Preview, PreviewInput};
use crate::b_eff_io::plan::run::writing_backends;
use crate::b_eff_io::plan::space_forecast::{self, SpaceForecast};
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::{acceptance_plan, plan_communication, plan_table, MeasuredRates};
use crate::frame::backends;
use crate::frame::command::{
    backend_capabilities, planned_cache_share, planned_memory_per_rank, publish_json_once, publish_once, time_limit,
};
use crate::frame::config::{DirectPolicy, TimeLimit};
use crate::frame::error::{Exit, UsageError};
use crate::frame::input;
use crate::frame::records::StorageKey;
use crate::frame::report::journal::read_journal;
use crate::frame::report::parse;
use crate::frame::result_directory::ResultDirectory;
use crate::frame::system::storage;
use crate::frame::units::format_size;

/// Every line of a journal begins with its kind.
const JOURNAL_BEGIN: &[u8] = b"{\"record\":";

/// Runs the command.
///
/// # Errors
/// The cause if there is no plan, and what to change.
pub fn run(args: &PlanArgs) -> anyhow::Result<Exit> {
    let config = args.config(&backend_capabilities())?;
    let writing = writing_backends(&config);
    let space = match writing {
        0 => PlannedSpace { limit_bytes: None, basis: "nothing is written".into() },
        _ => planned_space(&config, args.measure.space.is_some())?,
    };
    let (ranks_of_host, cache_share_bytes) = planned_cache_share(args.ranks)?;
    let host = PlannedHost {
        ranks: ranks_of_host,
        cache_share_bytes,
        memory_per_rank_bytes: planned_memory_per_rank(config.memory_per_process_bytes, args.ranks)?,
    };
    let rates = match &args.rate {
        PlannedRate::Assumed(rate) => MeasuredRates { all: *rate as f64, accesses: [*rate as f64; 3] },
        PlannedRate::Measured(path) => measured_rates(path)?,
    };
    let input = PreviewInput {
        limit_bytes: space.limit_bytes,
        rate_bytes_per_second: rates.all,
        limit_seconds: limit_seconds(config.time_limit)?,
        ..preview_input(&config, args.ranks, &host)
    };
    let plan = preview(&input).map_err(|e| UsageError::new(e.to_string(), "Change the options it names."))?;
    // A smaller memory of the ranks leaves that of their hosts to the page cache.
    let host_bytes_per_rank = planned_memory_per_rank(None, args.ranks)?.max(host.memory_per_rank_bytes);
    let cache_yardsticks = forecast(&input, planned_cache(&config, host_bytes_per_rank), rates.accesses)
        .map_err(|e| UsageError::new(e.to_string(), "Change the options it names."))?;
    let space_forecast = space_forecast::forecast(&input, &plan)
        .map_err(|e| UsageError::new(e.to_string(), "Change the options it names."))?;
    let communication = CommunicationCounts::of_plan(&plan, &config).phases();
    let requirements = planned_requirements(&config, &plan, &cache_yardsticks);
    if args.json {
        publish_json_once(&PlanDocument {
            plan: &plan,
            space_basis: &space.basis,
            space_forecast: space_forecast.as_ref(),
            cache_yardsticks: &cache_yardsticks,
            communication: &communication,
            requirements: &requirements,
        })?;
    } else {
        let text = plan_table::text(&plan, &space.basis, space_forecast.as_ref())
            + &plan_table::cache_text(&cache_yardsticks)
            + &plan_communication::text(&communication)
            + &acceptance_plan::text(&requirements, &plan);
        publish_once(text.as_bytes())?;
    }
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct PlanDocument<'a> {
    #[serde(flatten)]
    plan: &'a Preview,
    /// Origin of the limit of the space.
    space_basis: &'a str,
    /// What ends no pattern for lack of space; null: none does.
    space_forecast: Option<&'a SpaceForecast>,
    /// Twenty times the cache of the file system, by partition and access method.
    cache_yardsticks: &'a [CacheForecast],
    /// Collective calls and bytes beside the data transfers, by phase.
    communication: &'a [PhaseCommunication],
    /// Requirements of `--require`, and what prevents a verdict on them.
    requirements: &'a [PlannedRequirement],
}

struct PlannedSpace {
    limit_bytes: Option<u64>,
    basis: String,
}

/// As a run derives it. A directory that does not exist here, on another machine, has no limit unless one is given.
fn planned_space(config: &Config, is_given: bool) -> Result<PlannedSpace, UsageError> {
    let path = config.path.display();
    let percent = match config.space_limit {
        SpaceLimit::Bytes(bytes) => return Ok(PlannedSpace { limit_bytes: Some(bytes), basis: "--space".into() }),
        SpaceLimit::Percent(percent) => percent,
    };
    let unknown = match storage::storage_record(&config.path) {
        Ok(storage) if !storage::is_space_unknown(&storage) => {
            let free = storage.free_bytes;
            return Ok(PlannedSpace {
                limit_bytes: Some(config.space_limit.bytes(free)),
                basis: format!("{percent} % of {} free under {path}", format_size(free)),
            });
        }
        Ok(storage) => format!("{} under {path} does not report its free space", storage.fs_type),
        Err(e) => e.to_string(),
    };
    if is_given {
        return Err(UsageError::new(unknown, "Name an existing directory with --path, or give --space in bytes."));
    }
    Ok(PlannedSpace { limit_bytes: None, basis: format!("{unknown}; give --space in bytes") })
}

fn planned_cache(config: &Config, host_bytes_per_rank: u64) -> PlannedCache {
    let given = config.storage.iter().find(|(key, _)| *key == StorageKey::Cache);
    PlannedCache {
        given_bytes: given.and_then(|(key, text)| key.parse_value(text).ok()?.1),
        host_bytes_per_rank,
        may_be_direct: config.backends.iter().all(|name| {
            DirectPolicy::first_direct(std::slice::from_ref(name), |name| config.direct_of(name)).is_some()
        }),
    }
}

/// Rates of a run of b_eff_io.
fn measured_rates(path: &Path) -> Result<MeasuredRates, UsageError> {
    let refused = |cause: String| {
        let next_step =
            "Name the result (PREFIX.json or PREFIX.jsonl) of a run of b_eff_io, or give a bandwidth, e.g. --rate 1G.";
        UsageError::new(format!("--rate {}: {cause}", path.display()), next_step)
    };
    let newest = if path.is_dir() { Some(ResultDirectory::newest_of(path)?) } else { None };
    let bytes = input::read_result(newest.as_deref().unwrap_or(path)).map_err(|e| refused(e.to_string()))?;
    let result: RunResult = match bytes.starts_with(JOURNAL_BEGIN) {
        true => read_journal(&bytes).map_err(|e| refused(e.to_string()))?,
        false => parse(&bytes).map_err(|e| refused(e.to_string()))?,
    };
    MeasuredRates::of(&result)
        .ok_or_else(|| refused("it has no complete write, rewrite and read of a partition".into()))
}

/// Time limit of the run; None: no limit.
fn limit_seconds(requested: Option<TimeLimit>) -> Result<Option<f64>, UsageError> {
    match requested {
        None => Ok(None),
        Some(TimeLimit::Seconds(seconds)) => Ok(Some(seconds)),
        Some(TimeLimit::Auto) => Ok(time_limit::ask_scheduler()?.0),
    }
}

struct PlannedHost {
    ranks: u64,
    cache_share_bytes: u64,
    memory_per_rank_bytes: u64,
}

fn preview_input(config: &Config, ranks: u64, host: &PlannedHost) -> PreviewInput {
    let writes = |name: &&String| !config.variants.is_empty() && backends::supports(name, |row| row.uses_space);
    PreviewInput {
        ranks,
        release: config.release,
        strict: config.strict,
        partitions: config.partitions.clone(),
        time_seconds: config.time_seconds,
        limit_seconds: None,
        types: config.types.clone(),
        full_rewrite: config.full_rewrite,
        orders: config.orders.clone(),
        mix: config.mix,
        shared_pointer: config.shared_pointer,
        memory_per_rank_bytes: host.memory_per_rank_bytes,
        limit_bytes: None,
        backends: writing_backends(config),
        contestants: config.backends.iter().filter(writes).cloned().collect(),
        variants: config.variants.clone(),
        segment_multiple_bytes: config.segment_multiple_bytes,
        ranks_of_host: host.ranks,
        cache_share_bytes: host.cache_share_bytes,
        files_per_directory: config.files_per_directory,
        domain_bytes: plan_memory::domain_bytes(config, ranks),
        shares_memory: plan_memory::shares_memory(config, ranks),
        maps_files: plan_memory::maps_files(config),
        reused_reads: plan_memory::reused_reads(config),
        rate_bytes_per_second: 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::memory::RankMemory;
    use crate::b_eff_io::plan::run::{Facts, RunPlan};
    use crate::frame::benchmark::options_from_words;

    /// Run and plan derive the same memory from the same options.
    #[test]
    fn the_plan_and_the_run_take_the_same_memory() {
        let mut seen = Vec::new();
        for options in [
            "",
            "--direct off",
            "--collective independent",
            "--collective two-phase --domain 16M",
            "--set exchange=messages",
            "--buffers reused",
            "--buffers reused --depth 1",
            "--backend posix,mmap --direct auto",
            "--types 2,4",
            "--partitions 1,2",
        ] {
            let words = format!("--ranks 4 --memory-per-process 2G --backend uring {options}");
            let words: Vec<&str> = words.split_whitespace().collect();
            // The last occurrence of an option counts.
            let words = if options.contains("--backend") { [&words[..4], &words[6..]].concat() } else { words };
            let config = options_from_words::<PlanArgs>(words).config(&backend_capabilities()).unwrap();
            let host = PlannedHost { ranks: 4, cache_share_bytes: 16 << 20, memory_per_rank_bytes: 2 << 30 };
            let plan = preview(&preview_input(&config, 4, &host)).unwrap();
            let facts = Facts {
                ranks: 4,
                ranks_of_first_host: 4,
                memory_per_rank_bytes: 2 << 30,
                cache_share_bytes: host.cache_share_bytes,
                limit_bytes: None,
                writing_backends: 1,
            };
            let planned = RankMemory {
                own_bytes: plan.rank_memory_bytes,
                neighbours_bytes: plan.neighbours_memory_bytes,
                file_bytes: plan.file_memory_bytes,
            };
            assert_eq!(planned, RunPlan::new(&config, &facts).unwrap().rank_memory, "{options}");
            seen.push(planned.resident_bytes());
        }
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() >= 5, "the options make no difference: {seen:?}");
    }
}
