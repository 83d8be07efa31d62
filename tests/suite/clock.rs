//! Every time that is recorded, under planted time: what each call takes is given beforehand and told by rank and call, so a
//! recorded interval has one right value. What is expected follows from the calls that were made, not from an order of them.

#[path = "clock_comm.rs"]
mod comm;
#[path = "clock_imb.rs"]
pub mod imb;
#[path = "clock_io.rs"]
mod io;
#[path = "clock_kernel.rs"]
mod kernel;
