//! Where the bytes of each pattern went, as far as the kernel tells, and what the calibration of the queue tried.

use crate::b_eff_io::records::{DepthTrial, PatternRecord, QueueCalibration, RunResult};
use crate::frame::records::{Access, DeviceTraffic, Evidence};
use crate::frame::report::marks::Notes;
use crate::frame::report::model::{Block, Section};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, figure, percent};
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::words::{or_none, NONE};

use super::layout::{chunk_label, mounted_device};
use super::shown::Shown;

const HEAD: [&str; 12] = [
    "no",
    "ty",
    "chunk",
    "asked",
    "process",
    "device\nread",
    "device\nwrite",
    "requests",
    "average\nsize",
    "cached\nbefore",
    "\nafter",
    "how",
];

/// Columns of the name of a device.
const DEVICE: usize = 12;

/// None where nothing is known.
pub(super) fn section(shown: &Shown, backend: &str) -> Option<Section> {
    let mut notes = Notes::default();
    let mut blocks = Vec::new();
    for access in Access::ALL {
        let records = shown.spot(backend, access).records(&shown.result);
        let known = records.filter(|r| r.was_run() && r.evidence != Evidence::default());
        let rows: Vec<Vec<String>> = known.flat_map(|r| rows(r, &mut notes)).collect();
        if !rows.is_empty() {
            blocks.push(Block::Table(Table::new(access.name(), 3, HEAD).with(rows)));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::List(notes.texts()));
    let title = format!("{backend} on {}: where the bytes went", count(shown.ranks, "rank"));
    let note = "asked: bytes the program read or wrote; process: bytes the kernel fetched or will store for the ranks (/proc/self/io); device: \
                bytes of the block device while the pattern ran, for whomever; requests and their average size: those of the direction of the \
                pattern; cached: share of the pattern's range of the file(s) in the page cache.";
    Section::of("evidence", title, note, blocks)
}

/// The pattern, and a row for each device below the one that is mounted.
fn rows(r: &PatternRecord, notes: &mut Notes) -> Vec<Vec<String>> {
    let evidence = &r.evidence;
    let process = match r.access {
        Access::Read => r.storage_read_bytes,
        Access::Write | Access::Rewrite => r.storage_written_bytes,
    };
    let names = [format!("{:>2}", r.pattern), r.pattern_type.to_string(), chunk_label(r.chunk_bytes)];
    let bytes = [format_size(r.moved_bytes), or_none(process.map(format_size))];
    let cached = [share(r, evidence.resident_before_bytes), share(r, evidence.resident_after_bytes)];
    let device = traffic(mounted_device(evidence).as_ref(), r.access);
    let how = notes.number(note(evidence));
    let mut rows: Vec<Vec<String>> =
        vec![names.into_iter().chain(bytes).chain(device).chain(cached).chain([how]).collect()];
    // With several hosts there would be a row for each of them: the sum is enough here, the document has all.
    let below = if is_of_many_hosts(evidence) { &[] } else { evidence.devices.get(1..).unwrap_or_default() };
    for device in below {
        let name = [String::new(), String::new(), format!("on {:.DEVICE$}", device.device)];
        let none = [String::new(), String::new()];
        rows.push(name.into_iter().chain(none).chain(traffic(Some(device), r.access)).collect());
    }
    rows
}

/// Of the range of a pattern.
fn share(r: &PatternRecord, bytes: Option<u64>) -> String {
    let range_bytes = r.evidence.range_bytes;
    or_none(bytes.filter(|_| range_bytes > 0).map(|bytes| percent(bytes as f64 / range_bytes as f64)))
}

fn is_of_many_hosts(evidence: &Evidence) -> bool {
    evidence.devices.iter().any(|device| device.device.contains(':'))
}

/// Bytes read and written, requests of the direction, their average size.
fn traffic(device: Option<&DeviceTraffic>, access: Access) -> [String; 4] {
    let Some(d) = device else { return [NONE; 4].map(str::to_owned) };
    let (bytes, requests) = match access {
        Access::Read => (d.read_bytes, d.read_requests),
        Access::Write | Access::Rewrite => (d.written_bytes, d.write_requests),
    };
    let size = or_none(bytes.checked_div(requests).map(average));
    [format_size(d.read_bytes), format_size(d.written_bytes), requests.to_string(), size]
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

/// What the calibration of the queue tried; None where there was none.
pub(super) fn queue(result: &RunResult) -> Option<Section> {
    let row = |t: &QueueCalibration| {
        let chosen = format!("{}/{}{}", t.depth, t.wait_for, mark(t.operation_bytes));
        [t.backend.clone(), t.access.name().to_owned(), chunk_label(t.chunk_bytes), chosen, trials(t)]
    };
    let head = ["backend", "access", "chunk", "chosen", "tried"];
    let table = Table::new("", 3, head).with_words().with(result.queue_calibrations.iter().map(row));
    let note = "Depth / completions waited for at once: MB/s of what was tried; * is the choice. A row holds for chunks of its size and larger \
                ones, up to the next. c and a size: a chunk is moved by operations of this size, several in flight.";
    let blocks = if table.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    Section::of("queue", "Queue depth by calibration", note, blocks)
}

fn trials(t: &QueueCalibration) -> String {
    let trial = |d: &DepthTrial| {
        let rate = mb_per_second(d.bytes, d.seconds).map_or_else(|| "-".to_owned(), figure);
        let is_chosen = (d.depth, d.wait_for, d.operation_bytes) == (t.depth, t.wait_for, t.operation_bytes);
        let chosen = if is_chosen { "*" } else { "" };
        format!("{}/{}{}:{rate}{chosen}", d.depth, d.wait_for, mark(d.operation_bytes))
    };
    t.trials.iter().map(trial).collect::<Vec<_>>().join("  ")
}

/// `c1MB` of chunks that are moved by operations of 1 MB; nothing of whole ones.
fn mark(operation_bytes: Option<u64>) -> String {
    operation_bytes.map_or_else(String::new, |bytes| format!("c{}", chunk_label(bytes).replace(' ', "")))
}
