//! How sure a measured number is: 95 % intervals of numbers that were measured repeatedly, of ratios of rates that were measured in turns, and
//! of a mean of many cells of which each was measured a few times. Pure functions of numbers.
#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod repeated;
pub mod repeats;
pub mod simulated;
pub mod student;
