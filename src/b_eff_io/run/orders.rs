//! Rewrites and reads of the data of the first measurement in other orders, beside the definition: before repetitions, which may leave less data in
//! the files. Each chunk is accessed at most once: a second pass would find what the first one has left in the page cache.

use beff_ffi::MpiError;

use crate::b_eff_io::plan::orders;
use crate::b_eff_io::run::context::TypeContext;
use crate::b_eff_io::run::repetitions::adopt_root_state;
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::type_run::run_type;

/// Measures all orders on one partition. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_orders(run: &mut RunState<'_>, place: TypeContext<'_>) -> Result<(), MpiError> {
    let units = orders::units(run.config);
    if !units.is_empty() {
        adopt_root_state(run, place.comm)?;
    }
    for unit in units {
        if run.stop.is_some() {
            break;
        }
        let (access, pattern_type) = (unit.access, unit.pattern_type);
        run_type(run, TypeContext { access, pattern_type, order: Some(unit), ..place })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "orders_tests.rs"]
mod tests;
