//! Programs under the profiler: they do not see it, and every call is recorded with its arguments and the bytes it moved.

mod support;

use support::Scene;

#[test]
fn every_function_and_its_large_twin() {
    Scene::new("every.c", &[]).unwrap().check(2, &[]);
}
