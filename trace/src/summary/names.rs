//! Display names of functions.

use crate::Function;

pub(super) fn function_name(function: Function, large: bool) -> String {
    if function == Function::Marker {
        return "markers of HDF5".to_owned();
    }
    format!("{}{}", function.full_name(), if large { "_c" } else { "" })
}
