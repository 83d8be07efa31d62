//! What follows from the calls of a profile alone: their classes and sums, what is left out, where collective calls meet, where
//! data lies in memory.

pub mod class;
pub mod cold;
pub mod gaps;
pub mod hot;
pub mod image;
pub mod landing;
pub mod ledger;
pub mod left_out;
pub mod matching;
pub mod meeting;
pub mod names;
pub mod ready;

pub use class::CallClass;
pub use ledger::{Both, Ledger, Tally};
