//! Evidence of where the bytes of each pattern went, as far as the kernel reports it, and the trials of the queue calibration.

use crate::b_eff_io::records::{DepthTrial, PatternRecord, QueueCalibration, RunResult};
use crate::frame::records::{AccessMethod, DeviceTraffic, Evidence};
use crate::frame::report::marks::Footnotes;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, figure, percent};
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::words::{or_hyphen, NO_VALUE};

use super::layout::{chunk_label, mounted_device};
use super::partition_view::PartitionView;

const HEAD: [&str; 12] = [
    "no",
    "ty",
    "chunk",
    "bytes",
    "process",
    "device\nread",
    "device\nwrite",
    "requests",
    "average\nsize",
    "cached\nbefore",
    "\nafter",
    "how",
];

const DEVICE_COLUMNS: usize = 12;

/// None without evidence.
pub(super) fn section(shown: &PartitionView, backend: &str) -> Option<ReportSection> {
    let mut notes = Footnotes::default();
    let mut blocks = Vec::new();
    for access in AccessMethod::ALL {
        let records = shown.selector(backend, access).records(&shown.result);
        let known = records.filter(|r| r.was_run() && r.evidence != Evidence::default());
        let rows: Vec<Vec<String>> = known.flat_map(|r| rows(r, &mut notes)).collect();
        if !rows.is_empty() {
            blocks.push(ReportBlock::Table(Table::new(access.name(), 3, HEAD).with_rows(rows)));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    blocks.push(ReportBlock::List(notes.texts()));
    let title = format!("{backend} on {}: where the bytes went", count(shown.ranks, "rank"));
    let note = "bytes: read or written by the program; process: bytes the kernel fetched or will store for the ranks (/proc/self/io); \
                device: bytes of the block device while the pattern ran, for all processes; requests and their average size: those of the \
                direction of the pattern; cached: share of the pattern's range of the file(s) in the page cache.";
    ReportSection::of("evidence", title, note, blocks)
}

/// Rows of a pattern and of each device below the mounted one.
fn rows(r: &PatternRecord, notes: &mut Footnotes) -> Vec<Vec<String>> {
    let evidence = &r.evidence;
    let process = match r.access {
        AccessMethod::Read => r.storage_read_bytes,
        AccessMethod::Write | AccessMethod::Rewrite => r.storage_written_bytes,
    };
    let names = [format!("{:>2}", r.pattern), r.pattern_type.to_string(), chunk_label(r.chunk_bytes)];
    let bytes = [format_size(r.moved_bytes), or_hyphen(process.map(format_size))];
    let cached = [resident_share(r, evidence.resident_before_bytes), resident_share(r, evidence.resident_after_bytes)];
    let device = traffic(mounted_device(evidence).as_ref(), r.access);
    let how = notes.number(evidence_note(evidence));
    let mut rows: Vec<Vec<String>> =
        vec![names.into_iter().chain(bytes).chain(device).chain(cached).chain([how]).collect()];
    // With several hosts only the sum is listed; the document has all devices.
    let below = if is_of_many_hosts(evidence) { &[] } else { evidence.devices.get(1..).unwrap_or_default() };
    for device in below {
        let name = [String::new(), String::new(), format!("on {:.DEVICE_COLUMNS$}", device.device)];
        let none = [String::new(), String::new()];
        rows.push(name.into_iter().chain(none).chain(traffic(Some(device), r.access)).collect());
    }
    rows
}

fn resident_share(r: &PatternRecord, bytes: Option<u64>) -> String {
    let range_bytes = r.evidence.range_bytes;
    or_hyphen(bytes.filter(|_| range_bytes > 0).map(|bytes| percent(bytes as f64 / range_bytes as f64)))
}

fn is_of_many_hosts(evidence: &Evidence) -> bool {
    evidence.devices.iter().any(|device| device.device.contains(':'))
}

/// Bytes read and written, requests in the direction of the pattern, their average size.
fn traffic(device: Option<&DeviceTraffic>, access: AccessMethod) -> [String; 4] {
    let Some(d) = device else { return [NO_VALUE; 4].map(str::to_owned) };
    let (bytes, requests) = match access {
        AccessMethod::Read => (d.read_bytes, d.read_requests),
        AccessMethod::Write | AccessMethod::Rewrite => (d.written_bytes, d.write_requests),
    };
    let size = or_hyphen(bytes.checked_div(requests).map(format_average));
    [format_size(d.read_bytes), format_size(d.written_bytes), requests.to_string(), size]
}

/// Averages have one decimal from 1 KiB on.
fn format_average(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    match bytes as f64 {
        b if b < KIB => format!("{bytes} B"),
        b if b < KIB * KIB => format!("{:.1} KiB", b / KIB),
        b => format!("{:.1} MiB", b / KIB / KIB),
    }
}

fn evidence_note(evidence: &Evidence) -> String {
    let known = match mounted_device(evidence) {
        Some(_) if is_of_many_hosts(evidence) => "device: sum over the hosts".to_owned(),
        Some(device) => format!("device {}", device.device),
        None => "device unknown".to_owned(),
    };
    let device = match &evidence.devices_unknown {
        Some(reason) => format!("{known}: {reason}"),
        None => known,
    };
    match evidence.residency_source.as_str() {
        "" => device,
        by => format!("{device}; page cache: {by}"),
    }
}

pub(super) fn queue_section(result: &RunResult) -> Option<ReportSection> {
    let row = |t: &QueueCalibration| {
        let chosen = format!("{}/{}{}", t.depth, t.wait_for, operation_mark(t.operation_bytes));
        [t.backend.clone(), t.access.name().to_owned(), chunk_label(t.chunk_bytes), chosen, trials(t)]
    };
    let head = ["backend", "access", "chunk", "chosen", "trials"];
    let table = Table::new("", 3, head).with_words().with_rows(result.queue_calibrations.iter().map(row));
    let note = "Depth / completions awaited at once: MB/s of each trial; * marks the choice. A row applies to chunks of its size and \
                larger ones, up to the next. c and a size: chunks are split into operations of this size, several in flight.";
    let blocks = if table.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    ReportSection::of("queue", "Queue depth by calibration", note, blocks)
}

fn trials(t: &QueueCalibration) -> String {
    let trial = |d: &DepthTrial| {
        let rate = mb_per_second(d.bytes, d.seconds).map_or_else(|| "-".to_owned(), figure);
        let is_chosen = (d.depth, d.wait_for, d.operation_bytes) == (t.depth, t.wait_for, t.operation_bytes);
        let chosen = if is_chosen { "*" } else { "" };
        format!("{}/{}{}:{rate}{chosen}", d.depth, d.wait_for, operation_mark(d.operation_bytes))
    };
    t.trials.iter().map(trial).collect::<Vec<_>>().join("  ")
}

/// `c1MB` for chunks split into operations of 1 MB; empty for whole chunks.
fn operation_mark(operation_bytes: Option<u64>) -> String {
    operation_bytes.map_or_else(String::new, |bytes| format!("c{}", chunk_label(bytes).replace(' ', "")))
}
