//! Where the bytes of each pattern went, as far as the kernel tells.

use crate::b_eff_io::records::{PartitionRecord, PatternRecord, RunResult};
use crate::b_eff_io::report::layout::{chunk_label, mounted_device};
use crate::frame::records::{Access, DeviceTraffic, Evidence};
use crate::frame::report::text::{count, percent, Page};
use crate::frame::units::format_size;

/// Header of the table; the widths are those of [`pattern`].
const COLUMNS: &str =
    "  no ty chunk          asked    process   dev read  dev write  requests   avg size cached before   after how";

pub(super) fn write(page: &mut Page, result: &RunResult, backend: &str, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let is_of = |r: &&PatternRecord| {
        r.backend == backend && r.ranks == ranks && r.was_run() && r.evidence != Evidence::default()
    };
    let records: Vec<&PatternRecord> = result.patterns.iter().filter(is_of).collect();
    if records.is_empty() {
        return;
    }
    page.heading(&format!("{backend} on {}: where the bytes went", count(ranks, "rank")));
    let mut notes: Vec<String> = Vec::new();
    for access in Access::ALL {
        let of_access: Vec<&&PatternRecord> = records.iter().filter(|r| r.access == access).collect();
        if of_access.is_empty() {
            continue;
        }
        page.blank();
        page.line(format!("  {}", access.name()));
        page.line(COLUMNS);
        for r in of_access {
            pattern(page, r, &mut notes);
        }
    }
    page.blank();
    for (text, number) in notes.iter().zip(1..) {
        page.hanging(&format!("  [{number}] "), text);
    }
    page.hanging(
        "  columns: ",
        "asked: bytes the program read or wrote; process: bytes the kernel fetched or will store for the ranks \
         (/proc/self/io); dev read, dev write: bytes of the block device while the pattern ran, for whomever; requests and \
         their average size: those of the direction of the pattern; cached: share of the pattern's range of the file(s) in the page cache",
    );
}

fn pattern(page: &mut Page, r: &PatternRecord, notes: &mut Vec<String>) {
    let evidence = &r.evidence;
    let process = if r.access == Access::Read { r.storage_read_bytes } else { r.storage_written_bytes };
    let text = note(evidence);
    let number = notes.iter().position(|n| *n == text).unwrap_or_else(|| {
        notes.push(text);
        notes.len() - 1
    });
    let share = |bytes: Option<u64>| match bytes {
        Some(bytes) if evidence.range_bytes > 0 => percent(bytes as f64 / evidence.range_bytes as f64),
        _ => "-".to_owned(),
    };
    page.line(format!(
        "  {:>2} {:>2} {:<9} {:>10} {:>10} {} {:>13} {:>7} [{}]",
        r.pattern,
        r.pattern_type,
        chunk_label(r.chunk_bytes),
        format_size(r.moved_bytes),
        process.map_or_else(|| "-".to_owned(), format_size),
        traffic(mounted_device(evidence).as_ref(), r.access),
        share(evidence.resident_before_bytes),
        share(evidence.resident_after_bytes),
        number + 1
    ));
    // With several hosts there would be a line for each of them: the sum is enough here, the document has all.
    if !is_of_many_hosts(evidence) {
        for device in evidence.devices.iter().skip(1) {
            page.line(format!(
                "        {:<32.32} {}",
                format!("on {}", device.device),
                traffic(Some(device), r.access)
            ));
        }
    }
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
    let size = bytes.checked_div(requests).map_or_else(|| "-".to_owned(), average);
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
