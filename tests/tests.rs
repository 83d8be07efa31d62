//! Table of contents of the tests that start the program as its users do.

// Helpers of tests stand outside of `#[test]` functions, where clippy does not see that they are tests.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "suite/acceptance.rs"]
mod acceptance;
#[path = "suite/again.rs"]
mod again;
#[path = "suite/architecture.rs"]
mod architecture;
#[path = "suite/backends.rs"]
mod backends;
#[path = "suite/binding.rs"]
mod binding;
#[path = "suite/clock.rs"]
mod clock;
#[path = "suite/clock_overlap.rs"]
mod clock_overlap;
#[path = "suite/cluster.rs"]
mod cluster;
#[path = "suite/comm.rs"]
mod comm;
#[path = "suite/compare.rs"]
mod compare;
#[path = "suite/continued.rs"]
mod continued;
#[path = "suite/costs.rs"]
mod costs;
#[path = "suite/damage.rs"]
mod damage;
#[path = "suite/direct.rs"]
mod direct;
#[path = "suite/direct_checks.rs"]
mod direct_checks;
#[path = "suite/docs.rs"]
mod docs;
#[path = "suite/evidence.rs"]
mod evidence;
#[path = "suite/faults.rs"]
mod faults;
#[path = "suite/few_calls.rs"]
mod few_calls;
#[path = "suite/finalize.rs"]
mod finalize;
#[path = "suite/first_writes.rs"]
mod first_writes;
#[path = "suite/full_disk.rs"]
mod full_disk;
#[path = "suite/hidden_errors.rs"]
mod hidden_errors;
#[path = "suite/imb.rs"]
mod imb;
#[path = "suite/imb_faults.rs"]
mod imb_faults;
#[path = "suite/imb_format.rs"]
mod imb_format;
#[path = "suite/inject.rs"]
mod inject;
#[path = "suite/install.rs"]
mod install;
#[path = "suite/jobs.rs"]
mod jobs;
#[path = "suite/jobs_slurm.rs"]
mod jobs_slurm;
#[path = "suite/launcher.rs"]
mod launcher;
#[path = "suite/library_allocations.rs"]
mod library_allocations;
#[path = "suite/machine.rs"]
mod machine;
#[path = "suite/matrix.rs"]
mod matrix;
#[path = "suite/measured_again.rs"]
mod measured_again;
#[path = "suite/memory_fuse.rs"]
mod memory_fuse;
#[path = "suite/mistakes.rs"]
mod mistakes;
#[path = "suite/modules.rs"]
mod modules;
#[path = "suite/offline.rs"]
mod offline;
#[path = "suite/one_failure.rs"]
mod one_failure;
#[path = "suite/options.rs"]
mod options;
#[path = "suite/orders.rs"]
mod orders;
#[path = "suite/out_of_space.rs"]
mod out_of_space;
#[path = "suite/page.rs"]
mod page;
#[path = "suite/pairs.rs"]
mod pairs;
#[path = "../ffi/tests/ranks/patient.rs"]
mod patient;
#[path = "suite/planted.rs"]
mod planted;
#[path = "suite/preallocation.rs"]
mod preallocation;
#[path = "suite/preallocation_elsewhere.rs"]
mod preallocation_elsewhere;
#[path = "suite/probe.rs"]
mod probe;
#[path = "suite/profile.rs"]
mod profile;
#[path = "suite/profile_kept.rs"]
mod profile_kept;
#[path = "suite/profile_support.rs"]
mod profile_support;
#[path = "suite/progress.rs"]
mod progress;
#[path = "suite/queue_calibration.rs"]
mod queue_calibration;
#[path = "suite/rank_memory.rs"]
mod rank_memory;
#[path = "suite/removal.rs"]
mod removal;
#[path = "suite/repeat.rs"]
mod repeat;
#[path = "suite/replay.rs"]
mod replay;
#[path = "suite/replay_collectives.rs"]
mod replay_collectives;
#[path = "suite/replay_command.rs"]
mod replay_command;
#[path = "suite/replay_race.rs"]
mod replay_race;
#[path = "suite/replay_reuse.rs"]
mod replay_reuse;
#[path = "suite/replay_stuck.rs"]
mod replay_stuck;
#[path = "suite/replay_what_if.rs"]
mod replay_what_if;
#[path = "suite/replay_workloads.rs"]
mod replay_workloads;
#[path = "suite/reused.rs"]
mod reused;
#[path = "suite/round_trip.rs"]
mod round_trip;
#[path = "suite/rounds.rs"]
mod rounds;
#[path = "suite/run_directory.rs"]
mod run_directory;
#[path = "suite/schedule.rs"]
mod schedule;
#[path = "suite/signals.rs"]
mod signals;
#[path = "suite/space.rs"]
mod space;
#[path = "suite/start.rs"]
mod start;
#[path = "suite/storage_sheet.rs"]
mod storage_sheet;
#[path = "suite/support.rs"]
mod support;
#[path = "suite/time_left.rs"]
mod time_left;
#[path = "suite/time_limit.rs"]
mod time_limit;
#[path = "suite/tune.rs"]
mod tune;
#[path = "suite/two_phase.rs"]
mod two_phase;
#[path = "suite/unable.rs"]
mod unable;
#[path = "suite/usage.rs"]
mod usage;
#[path = "suite/variants.rs"]
mod variants;
#[path = "suite/workloads.rs"]
mod workloads;
