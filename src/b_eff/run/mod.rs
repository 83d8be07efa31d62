//! Measurement of b_eff: for each pattern and size, timed loops of messages by each method; the data is compared outside the
//! timed loops. The order of the loops is shown in [`crate::b_eff`].

mod bare;
mod budget;
mod check;
pub mod comm_run;
mod layout;
mod message_buffers;
mod pattern;
mod pilot;
mod received_data;
mod repetitions;
#[cfg(test)]
mod run_tests;

pub use comm_run::CommRun;
pub use layout::BufferLayout;
pub use pattern::PatternError;

use crate::b_eff::records::MessageMethod;
use beff_ffi::ExchangeCall;

fn ffi_method(method: MessageMethod) -> ExchangeCall {
    match method {
        MessageMethod::Sendrecv => ExchangeCall::Sendrecv,
        MessageMethod::Alltoallv => ExchangeCall::Alltoallv,
        MessageMethod::Nonblocking => ExchangeCall::Nonblocking,
        MessageMethod::PingPong => ExchangeCall::PingPong,
    }
}
