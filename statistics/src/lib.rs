//! Confidence intervals (95 %) of repeated measurements, of ratios of rates measured in turns, and of a mean of many cells with few
//! measurements each. Pure functions.
#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod mean;
pub mod repetitions;
pub mod simulation;
pub mod student;
