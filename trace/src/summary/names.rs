//! Names of functions as people know them.

use crate::Function;

/// The name in the standard.
pub(super) fn function_name(function: Function, large: bool) -> String {
    format!("MPI_{}{}", function.name(), if large { "_c" } else { "" })
}
