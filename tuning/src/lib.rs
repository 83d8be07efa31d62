//! Search for the settings that make a work fast: plans trials from those completed so far, and derives effects with confidence intervals.
//! Pure functions: the same trials lead to the same next trial, so that an interrupted search continues from its records.
//!
//! ```text
//! pilot        default, twice                               -> time of a trial
//! noise        default against itself, in turns             -> smallest ratio that the budget can prove
//! single       each value of each key, one at a time        -> effects; values that slow down are dropped
//! combination  the others combined, halving the candidates  -> the best
//! elimination  the best without each of its keys            -> keys without effect are dropped
//! confirmation the best against the default                 -> the only ratio that is reported
//! ```
//!
//! Trials use new files each, so that the scatter of a ratio contains the place of the files. The default is measured again after every few
//! candidates, and a candidate is compared with the default before and after it: drift of the storage cancels out.
#![forbid(unsafe_code)]

pub mod candidates;
pub mod confirmation;
pub mod effects;
pub mod pace;
pub mod search;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod simulation;
pub mod trial;
