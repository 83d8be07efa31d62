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

/// The bindings of Fortran end in `MPI_` or `PMPI_` functions of C, as they like.
fn fortran(options: &[&str]) {
    let mut all = vec!["-cpp", "-ffree-line-length-none", "-w"];
    all.extend_from_slice(options);
    if let Some(scene) = Scene::new("bindings.f90", &all) {
        scene.check(2, &[]);
    }
}

#[test]
fn fortran_by_mpif_h() {
    fortran(&[]);
}

#[test]
fn fortran_by_the_module_mpi() {
    fortran(&["-DMODULE_MPI"]);
}

#[test]
fn fortran_by_mpi_f08() {
    fortran(&["-DF08"]);
}
