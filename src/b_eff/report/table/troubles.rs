//! Wrong messages in words.

use crate::b_eff::records::{CommCorruption, CommResult};
use crate::frame::report::ending::Corruption;
use crate::frame::report::text::count;
use crate::frame::units::format_size;

pub(super) fn corruption(result: &CommResult) -> Corruption<'_, CommCorruption> {
    let wrong = count(result.bytes_wrong(), "byte");
    let checked = format_size(result.bytes_checked());
    Corruption {
        title: "DATA CORRUPTION",
        amount: format!("{wrong} of {checked} compared are wrong"),
        places: &result.corruptions,
        place,
        next_step: if result.config.inject {
            "One byte was turned over on purpose: this shows that it is found."
        } else {
            "Do not trust this MPI library with this transport. Repeat with another transport or library to find out \
             whether the network, the library or the memory of a host is at fault."
        },
    }
}

fn place(c: &CommCorruption) -> String {
    format!(
        "{}, {} of {}, repetition {}, iteration {}: from rank {} to rank {} at byte {}: {} ({} wrong; first: expected \
         {:02x}, found {:02x})",
        c.pattern,
        c.method.name(),
        format_size(c.message_bytes),
        c.repetition,
        c.iteration,
        c.sender,
        c.receiver,
        c.offset_bytes,
        c.looks_like,
        count(c.bytes_wrong, "byte"),
        c.expected,
        c.found
    )
}
