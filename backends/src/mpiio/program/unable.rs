//! What cannot be replayed through MPI-IO, and why.

use beff_ffi::replay::requests::has_get_status_of_several;
use beff_ffi::replay::DataFunction;
use beff_trace::{Call, Function, Role};

/// Representations of data that every library has to know, at least by name.
const OF_THE_STANDARD: [&str; 3] = ["native", "internal", "external32"];

/// Why a call cannot be replayed, None if it can.
pub(super) fn unable(call: &Call) -> Option<&'static str> {
    match (call.function, call.function.role()) {
        (Function::RegisterDatarep, _) => Some("the functions that convert a data representation are not in a profile"),
        (Function::SetView, _) if of_the_program(call) => {
            Some("a data representation of the program: the functions that convert it are not in a profile")
        }
        (Function::RequestGetStatusAny | Function::RequestGetStatusAll | Function::RequestGetStatusSome, _)
            if !has_get_status_of_several() =>
        {
            Some("this MPI library has no such function (it came with MPI-4.1)")
        }
        (function, Role::Data { .. }) if DataFunction::of(function, call.large, call.count.unwrap_or(0)).is_none() => {
            Some("the count does not fit an int, and this MPI library has no functions with large counts (MPI-4.0)")
        }
        _ => None,
    }
}

/// A view that was set, in a representation that the program had registered.
fn of_the_program(call: &Call) -> bool {
    call.error.is_none() && call.name.as_deref().is_some_and(|name| !OF_THE_STANDARD.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_replayed_has_a_reason() {
        let call = |function| Call::new(function, 0, 1);
        let later = [Function::RequestGetStatusAny, Function::RequestGetStatusAll, Function::RequestGetStatusSome];
        for function in Function::all() {
            let able = unable(&call(function)).is_none();
            let expected = match function {
                Function::RegisterDatarep => false,
                _ if later.contains(&function) => has_get_status_of_several(),
                _ => true,
            };
            assert_eq!(able, expected, "{function:?}");
        }
        let view = |name: &str| Call { name: Some(name.into()), ..call(Function::SetView) };
        assert_eq!(unable(&view("external32")), None);
        assert!(unable(&view("mine")).is_some_and(|reason| reason.contains("representation")));
        // As unknown here as it was there.
        let refused = Call { error: beff_trace::ErrorClass::named("MPI_ERR_UNSUPPORTED_DATAREP"), ..view("mine") };
        assert_eq!(unable(&refused), None);
        let beyond = Call { large: true, count: Some(1 << 40), ..call(Function::WriteAt) };
        assert_eq!(unable(&beyond).is_none(), DataFunction::of(Function::WriteAt, true, 1 << 40).is_some());
    }
}
