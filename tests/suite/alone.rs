//! Tests that time something, or look at what all share (page cache, devices, control groups, network): one at a time, when
//! all others are over. The word `alone` in their path tells the scripts and [`crate::support`].

#[path = "binding.rs"]
mod binding;
#[path = "cluster.rs"]
mod cluster;
#[path = "costs.rs"]
mod costs;
#[path = "direct.rs"]
mod direct;
#[path = "evidence.rs"]
mod evidence;
#[path = "first_writes.rs"]
mod first_writes;
#[path = "launcher.rs"]
mod launcher;
#[path = "machine.rs"]
mod machine;
#[path = "clock_overlap.rs"]
mod overlap;
#[path = "rank_memory.rs"]
mod rank_memory;
#[path = "rounds.rs"]
mod rounds;
#[path = "time_left.rs"]
mod time_left;
#[path = "tuning.rs"]
mod tuning;
