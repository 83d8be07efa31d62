//! `beff-raw plan`: what a run would do, for any number of ranks, without MPI.

use super::cli::PlanArgs;
use crate::b_eff_io::plan::memory as plan_memory;
use crate::b_eff_io::plan::preview::{preview, PreviewInput};
use crate::b_eff_io::plan::run::writing_backends;
use crate::b_eff_io::report::plan_table;
use crate::frame::command::{caches_of_rank, known_backends, memory_of_rank, publish_json_once, publish_once};
use crate::frame::error::{Exit, UsageError};
use crate::frame::system::storage;

/// Runs the command.
///
/// # Errors
/// A plan that cannot be made, with what to change.
pub fn run(args: &PlanArgs) -> anyhow::Result<Exit> {
    let config = args.config(&known_backends())?;
    let writing = writing_backends(&config);
    // The machine of the plan is often not this one, so its free space counts only if the user says so.
    let limit_bytes = match args.measure.space.filter(|_| writing > 0) {
        None => None,
        Some(limit) => Some(limit.bytes(storage::free_bytes(&config.path).map_err(|e| {
            UsageError::new(format!("--path {}: {e}", config.path.display()), "Name an existing directory.")
        })?)),
    };
    let (ranks_of_host, cache_share_bytes) = caches_of_rank(args.ranks)?;
    let input = PreviewInput {
        ranks: args.ranks,
        release: config.release,
        partitions: config.partitions.clone(),
        time_seconds: config.time_seconds,
        types: config.types.clone(),
        full_rewrite: config.full_rewrite,
        shared_pointer: config.shared_pointer,
        memory_per_rank_bytes: memory_of_rank(config.memory_per_process_bytes, args.ranks)?,
        limit_bytes,
        backends: writing,
        segment_multiple_bytes: config.segment_multiple_bytes,
        ranks_of_host,
        cache_share_bytes,
        domain_bytes: plan_memory::domain_bytes(&config, args.ranks),
        shares_memory: plan_memory::shares_memory(&config, args.ranks),
        maps_files: plan_memory::maps_files(&config),
        rate_bytes_per_second: args.rate as f64,
    };
    let plan = preview(&input).map_err(|e| UsageError::new(e.to_string(), "Change the options it names."))?;
    if args.json {
        publish_json_once(&plan)?;
    } else {
        publish_once(plan_table::text(&plan).as_bytes())?;
    }
    Ok(Exit::Ok)
}
