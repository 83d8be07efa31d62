//! Confidence intervals (95 %) of repeated measurements, of ratios of rates measured in turns, and of a mean of many cells with few
//! measurements each; changes in a series of runs; tails of the binomial distribution. Pure functions.
#![forbid(unsafe_code)]

pub mod binomial;
pub mod bootstrap;
pub mod mean;
pub mod repetitions;
pub mod run_rules;
pub mod simulation;
pub mod step;
pub mod student;
