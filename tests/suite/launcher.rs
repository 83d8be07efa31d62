//! A signal to the launcher: Open MPI's kills a second later, so there must be time to write the results.

use crate::imb_faults::{check_interrupted, long};
use crate::support::{launcher, signal, Launch, Scratch};

#[test]
fn a_signal_to_the_launcher_keeps_what_was_measured() {
    let scratch = Scratch::new();
    let running = long(Launch::new(2), &scratch);
    signal(running.pid(), "INT");
    let run = running.wait();
    // As chance has it, MPICH's hydra ends with 0 after a signal.
    assert!(run.code() != 0 || launcher().mpi == "mpich", "{run}");
    check_interrupted(&run, &scratch);
}
