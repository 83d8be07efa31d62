//! `beff-raw plan`: the plan of a run for any number of ranks, without MPI.

use super::cli::PlanArgs;
use crate::b_eff_io::config::Config;
use crate::b_eff_io::plan::memory as plan_memory;
use crate::b_eff_io::plan::preview::{preview, PreviewInput};
use crate::b_eff_io::plan::run::writing_backends;
use crate::b_eff_io::report::plan_table;
use crate::frame::command::{
    backend_capabilities, planned_cache_share, planned_memory_per_rank, publish_json_once, publish_once, time_limit,
};
use crate::frame::config::TimeLimit;
use crate::frame::error::{Exit, UsageError};
use crate::frame::system::storage;

/// Runs the command.
///
/// # Errors
/// The cause if there is no plan, and what to change.
pub fn run(args: &PlanArgs) -> anyhow::Result<Exit> {
    let config = args.config(&backend_capabilities())?;
    let writing = writing_backends(&config);
    // The plan is often for another machine, so the local free space counts only if the user requests it.
    let limit_bytes = match args.measure.space.filter(|_| writing > 0) {
        None => None,
        Some(limit) => Some(limit.bytes(storage::free_bytes(&config.path).map_err(|e| {
            UsageError::new(format!("--path {}: {e}", config.path.display()), "Name an existing directory.")
        })?)),
    };
    let (ranks_of_host, cache_share_bytes) = planned_cache_share(args.ranks)?;
    let host = PlannedHost {
        ranks: ranks_of_host,
        cache_share_bytes,
        memory_per_rank_bytes: planned_memory_per_rank(config.memory_per_process_bytes, args.ranks)?,
    };
    let input = PreviewInput {
        limit_bytes,
        rate_bytes_per_second: args.rate as f64,
        limit_seconds: limit_seconds(config.time_limit)?,
        ..preview_input(&config, args.ranks, &host)
    };
    let plan = preview(&input).map_err(|e| UsageError::new(e.to_string(), "Change the options it names."))?;
    if args.json {
        publish_json_once(&plan)?;
    } else {
        publish_once(plan_table::text(&plan).as_bytes())?;
    }
    Ok(Exit::Ok)
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
    PreviewInput {
        ranks,
        release: config.release,
        partitions: config.partitions.clone(),
        time_seconds: config.time_seconds,
        limit_seconds: None,
        types: config.types.clone(),
        full_rewrite: config.full_rewrite,
        shared_pointer: config.shared_pointer,
        memory_per_rank_bytes: host.memory_per_rank_bytes,
        limit_bytes: None,
        backends: writing_backends(config),
        segment_multiple_bytes: config.segment_multiple_bytes,
        ranks_of_host: host.ranks,
        cache_share_bytes: host.cache_share_bytes,
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
