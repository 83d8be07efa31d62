//! Tests that time something, or load what all share (page cache, disk, loop devices, control groups, namespaces): one at a
//! time, when all others are over. The word `alone` in their path tells the scripts and [`crate::support`].

#[path = "cluster.rs"]
mod cluster;
#[path = "costs.rs"]
mod costs;
#[path = "direct.rs"]
mod direct;
#[path = "evidence.rs"]
mod evidence;
#[path = "full_disk.rs"]
mod full_disk;
#[path = "rounds.rs"]
mod rounds;
#[path = "tuning.rs"]
mod tuning;
