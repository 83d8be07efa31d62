//! Wrong data in words.

use crate::frame::report::ending::Corruption;
use crate::frame::report::text::count;
use crate::frame::units::format_size;
use crate::imb_io::records::{ImbCorruption, ImbResult};
use crate::imb_io::report::blocks::{mode, ranks};
use crate::imb_io::values::ImbDerived;

pub(super) fn corruption<'a>(result: &'a ImbResult, derived: &ImbDerived) -> Corruption<'a, ImbCorruption> {
    let (wrong, checked) = (derived.verdict.bytes_wrong, derived.verdict.bytes_checked);
    Corruption {
        title: "WRONG DATA",
        amount: format!("{wrong} of {} compared are wrong", count(checked, "byte")),
        places: &result.corruptions,
        place,
        next_step: if result.config.inject {
            "One bit was turned over on purpose: this shows that it is found."
        } else {
            "If the file system is full, free space: some MPI libraries report success there. Else do not trust this \
             storage with this backend. Repeat with another backend and on another file system to find out whether the \
             storage, the MPI library or the memory of a host is at fault."
        },
    }
}

fn place(c: &ImbCorruption) -> String {
    let repetition = c.repetition.map_or_else(String::new, |n| format!(", repetition {n}"));
    let offset = c.offset_bytes.map_or_else(String::new, |n| format!(" at byte {n}"));
    let byte = |byte: Option<u8>| byte.map_or_else(|| "not known".to_owned(), |byte| format!("{byte:02x}"));
    format!(
        "{}, {}, {}, {}, {}{repetition}: rank {} in {}{offset}: {} ({} wrong; first: expected {}, found {})",
        c.benchmark,
        c.backend,
        ranks(c.ranks),
        mode(c.mode),
        format_size(c.sample_bytes),
        c.rank,
        c.file,
        c.looks_like,
        count(c.bytes_wrong, "byte"),
        byte(c.expected),
        byte(c.found)
    )
}
