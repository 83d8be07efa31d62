//! Programs under the profiler: it does not affect them, and every call is recorded with its arguments and transferred bytes.

mod support;

use support::TestProgram;

#[test]
fn every_function_and_its_large_twin() {
    TestProgram::new("every.c", &[]).unwrap().check(2, &[]);
}

#[test]
fn every_constructor_of_types_nested() {
    TestProgram::new("types.c", &[]).unwrap().check(2, &[]);
}

#[test]
fn requests_completed_in_any_order() {
    TestProgram::new("requests.c", &[]).unwrap().check(2, &[]);
}

/// The Fortran bindings call `MPI_` or `PMPI_` functions of C.
fn fortran(options: &[&str]) {
    let mut all = vec!["-cpp", "-ffree-line-length-none", "-w"];
    all.extend_from_slice(options);
    if let Some(scene) = TestProgram::new("bindings.f90", &all) {
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
