//! Display names of functions.

use crate::Function;

pub(super) fn function_name(function: Function, large: bool) -> String {
    format!("{}{}", function.full_name(), if large { "_c" } else { "" })
}
