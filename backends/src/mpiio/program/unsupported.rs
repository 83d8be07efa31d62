//! Calls that cannot be replayed through MPI-IO, and why.

use beff_ffi::replay::requests::has_get_status_of_many;
use beff_ffi::replay::DataFunction;
use beff_trace::{Call, Function, Role};

/// Data representations that every library has to accept.
const STANDARD_REPRESENTATIONS: [&str; 3] = ["native", "internal", "external32"];

/// Why a call cannot be replayed, None if it can.
pub(super) fn unsupported_reason(call: &Call) -> Option<&'static str> {
    match (call.function, call.function.role()) {
        (Function::RegisterDatarep, _) => Some("conversion functions of a data representation are not in a profile"),
        (Function::SetView, _) if has_user_representation(call) => {
            Some("a user-defined data representation: its conversion functions are not in a profile")
        }
        (Function::RequestGetStatusAny | Function::RequestGetStatusAll | Function::RequestGetStatusSome, _)
            if !has_get_status_of_many() =>
        {
            Some("this MPI library has no such function (new in MPI-4.1)")
        }
        (function, Role::Data { .. })
            if DataFunction::new(function, call.large_count, call.count.unwrap_or(0)).is_none() =>
        {
            Some("the count does not fit an int, and this MPI library has no functions with large counts (MPI-4.0)")
        }
        _ => None,
    }
}

/// True for a successful view in a user-defined representation.
fn has_user_representation(call: &Call) -> bool {
    call.error.is_none() && call.name.as_deref().is_some_and(|name| !STANDARD_REPRESENTATIONS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_calls_have_a_reason() {
        let call = |function| Call::new(function, 0, 1);
        let later = [Function::RequestGetStatusAny, Function::RequestGetStatusAll, Function::RequestGetStatusSome];
        for function in Function::all() {
            let able = unsupported_reason(&call(function)).is_none();
            let expected = match function {
                Function::RegisterDatarep => false,
                _ if later.contains(&function) => has_get_status_of_many(),
                _ => true,
            };
            assert_eq!(able, expected, "{function:?}");
        }
        let view = |name: &str| Call { name: Some(name.into()), ..call(Function::SetView) };
        assert_eq!(unsupported_reason(&view("external32")), None);
        assert!(unsupported_reason(&view("mine")).is_some_and(|reason| reason.contains("representation")));
        // As unknown in the replay as in the recording.
        let refused = Call { error: beff_trace::ErrorClass::from_name("MPI_ERR_UNSUPPORTED_DATAREP"), ..view("mine") };
        assert_eq!(unsupported_reason(&refused), None);
        let beyond = Call { large_count: true, count: Some(1 << 40), ..call(Function::WriteAt) };
        assert_eq!(
            unsupported_reason(&beyond).is_none(),
            DataFunction::new(Function::WriteAt, true, 1 << 40).is_some()
        );
    }
}
