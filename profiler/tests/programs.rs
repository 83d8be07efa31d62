//! Programs under the profiler: they do not see it, and every call is recorded with its arguments and the bytes it moved.

mod support;

use support::Scene;

#[test]
fn every_function_and_its_large_twin() {
    Scene::new("every.c", &[]).unwrap().check(2, &[]);
}

#[test]
fn every_constructor_of_types_nested() {
    Scene::new("types.c", &[]).unwrap().check(2, &[]);
}

#[test]
fn requests_completed_in_any_order() {
    Scene::new("requests.c", &[]).unwrap().check(2, &[]);
}
