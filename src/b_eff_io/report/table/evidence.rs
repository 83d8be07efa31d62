//! Where the bytes of each pattern went, as far as the kernel tells.

use crate::b_eff_io::records::{PartitionRecord, PatternRecord, RunResult};
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::{chunk_label, mounted_device, Spot};
use crate::frame::records::{Access, DeviceTraffic, Evidence};
use crate::frame::report::columns::{or_none, Columns};
use crate::frame::report::marks::Notes;
use crate::frame::report::text::{count, percent, Page};
use crate::frame::units::format_size;

/// A pattern, what the device that is mounted has moved, and the number of its note.
type Line<'a> = (&'a PatternRecord, Option<&'a DeviceTraffic>, &'a str);

pub(super) fn write(page: &mut Page, result: &RunResult, backend: &str, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let is_known = |r: &&PatternRecord| r.was_run() && r.evidence != Evidence::default();
    if !layout::patterns(result, backend, ranks).any(|r| is_known(&r)) {
        return;
    }
    page.heading(&format!("{backend} on {}: where the bytes went", count(ranks, "rank")));
    let mut notes = Notes::default();
    for access in Access::ALL {
        let mut records = Spot { backend, ranks, access }.records(result).filter(is_known).peekable();
        if records.peek().is_none() {
            continue;
        }
        page.blank();
        page.line(format!("  {}", access.name()));
        page.line(columns().headings());
        records.for_each(|r| pattern(page, r, &mut notes));
    }
    notes.write(page);
    page.hanging(
        "  columns: ",
        "asked: bytes the program read or wrote; process: bytes the kernel fetched or will store for the ranks \
         (/proc/self/io); dev read, dev write: bytes of the block device while the pattern ran, for whomever; requests and \
         their average size: those of the direction of the pattern; cached: share of the pattern's range of the file(s) in the page cache",
    );
}

fn pattern(page: &mut Page, r: &PatternRecord, notes: &mut Notes) {
    let evidence = &r.evidence;
    let (device, how) = (mounted_device(evidence), notes.number(note(evidence)));
    page.line(columns().row((r, device.as_ref(), &how)));
    // With several hosts there would be a line for each of them: the sum is enough here, the document has all.
    if !is_of_many_hosts(evidence) {
        for device in evidence.devices.iter().skip(1) {
            let name = format!("on {}", device.device);
            page.line(format!("        {name:<32.32} {}", traffic(Some(device), r.access)));
        }
    }
}

fn columns<'a>() -> Columns<'a, Line<'a>> {
    let process = |r: &PatternRecord| match r.access {
        Access::Read => r.storage_read_bytes,
        Access::Write | Access::Rewrite => r.storage_written_bytes,
    };
    Columns::<Line<'_>>::new()
        .right("no", 2, |(r, ..)| r.pattern)
        .right("ty", 3, |(r, ..)| r.pattern_type)
        .gap(1)
        .left("chunk", 9, |(r, ..)| chunk_label(r.chunk_bytes))
        .right("asked", 11, |(r, ..)| format_size(r.moved_bytes))
        .right("process", 11, move |(r, ..)| or_none(process(r).map(format_size)))
        .gap(1)
        .left("  dev read  dev write  requests   avg size", 0, |(r, device, _)| traffic(device, r.access))
        .right("cached before", 14, |(r, ..)| share(r, r.evidence.resident_before_bytes))
        .right("after", 8, |(r, ..)| share(r, r.evidence.resident_after_bytes))
        .gap(1)
        .left("how", 0, |(.., note)| note)
}

/// Of the range of a pattern.
fn share(r: &PatternRecord, bytes: Option<u64>) -> String {
    let range_bytes = r.evidence.range_bytes;
    or_none(bytes.filter(|_| range_bytes > 0).map(|bytes| percent(bytes as f64 / range_bytes as f64)))
}

fn is_of_many_hosts(evidence: &Evidence) -> bool {
    evidence.devices.iter().any(|device| device.device.contains(':'))
}

/// Four columns: bytes read and written, requests of the direction, their average size.
fn traffic(device: Option<&DeviceTraffic>, access: Access) -> String {
    let Some(d) = device else {
        return format!("{:>10} {:>10} {:>9} {:>10}", "-", "-", "-", "-");
    };
    let (bytes, requests) = match access {
        Access::Read => (d.read_bytes, d.read_requests),
        Access::Write | Access::Rewrite => (d.written_bytes, d.write_requests),
    };
    let size = or_none(bytes.checked_div(requests).map(average));
    format!("{:>10} {:>10} {requests:>9} {size:>10}", format_size(d.read_bytes), format_size(d.written_bytes))
}

/// Averages are never round: one decimal from 1 KiB on.
fn average(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    match bytes as f64 {
        b if b < KIB => format!("{bytes} B"),
        b if b < KIB * KIB => format!("{:.1} KiB", b / KIB),
        b => format!("{:.1} MiB", b / KIB / KIB),
    }
}

/// Which device, and how the page cache was looked at.
fn note(evidence: &Evidence) -> String {
    let known = match mounted_device(evidence) {
        Some(_) if is_of_many_hosts(evidence) => "device: the sum over the hosts".to_owned(),
        Some(device) => format!("device {}", device.device),
        None => "device not known".to_owned(),
    };
    let device = match &evidence.devices_unknown {
        Some(reason) => format!("{known}: {reason}"),
        None => known,
    };
    match evidence.residency_by.as_str() {
        "" => device,
        by => format!("{device}; page cache: {by}"),
    }
}
