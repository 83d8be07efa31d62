//! Evidence of where the bytes of a pattern went: traffic of the devices below the files, and page-cache residency of the files before
//! and after. Also drops pages before a pattern, if the policy says so. Nothing here is inside a clock.
//!
//! The devices are those below the path, through partitions, loop devices, bind mounts, md and dm. Residency is queried by cachestat(2),
//! else mincore(2). [`crate::frame::values::read_source`] alone decides what is called cached.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use beff_backends::{AccessPattern, FilePath};
use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use crate::frame::records::{kinds, DeviceTraffic, Evidence, Warning};
use crate::frame::run::agree::{any_rank, collect, count_ranks, first_message};
use crate::frame::system::residency;
use crate::frame::system::residency::ResidencySource;
use crate::frame::system::traffic;
use crate::frame::system::traffic::{DeviceChain, TrafficSnapshot};
use crate::frame::system::{host, storage};

/// Share of a range that may stay in the cache without further action.
const RESIDUAL_SHARE: f64 = 0.05;
/// Fewer bytes than this may stay too.
const RESIDUAL_BYTES: u64 = 64 << 10;
/// Read-ahead in flight keeps its pages until it completes: number of attempts, and pause between them.
const DROP_TRIES: u32 = 4;
const DROP_PAUSE: Duration = Duration::from_millis(2);

/// One file of one rank, and the range of a pattern in it.
#[derive(Clone, Copy, Debug)]
pub struct ObservedFile<'a> {
    /// The file.
    pub path: &'a FilePath,
    /// Pattern of this rank (with `--cache rank-shift`: that of its reads).
    pub pattern: &'a AccessPattern,
    /// Maximum number of calls.
    pub calls: u64,
}

impl ObservedFile<'_> {
    /// True if every rank examines its own range; else the first rank of each host examines the range of all ranks, whose chunks
    /// interleave.
    fn has_own_range(&self) -> bool {
        self.pattern.ranks <= 1 || self.pattern.is_contiguous()
    }
}

/// Hosts of the ranks of a partition, and the devices below their files. Created once for each partition.
#[derive(Debug)]
pub struct StorageSite {
    /// The ranks of the partition on this host.
    node: Comm,
    hosts: u64,
    host: String,
    chain: Result<DeviceChain, String>,
    residency_unavailable: Option<String>,
    /// True if dropping all caches of the host is not possible or did not help.
    drop_all_failed: Cell<bool>,
    /// Backends for which all caches of a host were dropped.
    dropped_all_for: RefCell<Vec<String>>,
}

impl StorageSite {
    /// Hosts of the partition.
    #[must_use]
    pub fn hosts(&self) -> u64 {
        self.hosts
    }

    /// Surveys the storage of `directory`, where the files will be. Collective over the ranks of the partition.
    ///
    /// # Errors
    /// MPI errors.
    pub fn survey(comm: &Comm, directory: &Path) -> Result<Self, MpiError> {
        let node = if comm.size() > 1 { comm.node()? } else { None }.unwrap_or_else(Comm::comm_self);
        let untold = match storage::fs_type(directory) {
            Ok(fs_type) => residency::unavailable_reason(&fs_type),
            Err(cause) => Some(format!("the file system is not known: {cause}")),
        };
        Ok(Self {
            hosts: count_ranks(comm, node.is_root())?,
            host: host::host_name().unwrap_or_else(|_| format!("host-of-rank-{}", comm.rank())),
            chain: traffic::find_device_chain(directory),
            residency_unavailable: untold,
            drop_all_failed: Cell::new(false),
            dropped_all_for: RefCell::default(),
            node,
        })
    }

    /// True on the first rank of its host.
    fn is_leader(&self) -> bool {
        self.node.is_root()
    }

    fn queries_residency(&self, target: &ObservedFile<'_>) -> bool {
        self.is_leader() || target.has_own_range()
    }
}

/// Observes one pattern through one backend.
#[derive(Debug)]
pub struct StorageObservation {
    residency: Option<ResidencyProbe>,
    traffic: Option<Vec<DeviceTraffic>>,
    last: Option<TrafficSnapshot>,
}

#[derive(Debug)]
struct ResidencyProbe {
    pattern: AccessPattern,
    file: Result<File, String>,
    before: Vec<ResidencySlice>,
    /// True if no other rank queries the same range.
    counts_range: bool,
}

/// Residency of the calls up to `end_call`, from the end of the previous slice.
#[derive(Debug)]
struct ResidencySlice {
    end_call: u64,
    resident: Result<(u64, ResidencySource), String>,
}

impl StorageObservation {
    /// Queries the page cache, before the first round of a pattern and after [`drop_pages`]. Not collective.
    #[must_use]
    pub fn begin(site: &StorageSite, comm: &Comm, target: &ObservedFile<'_>) -> Self {
        let residency = site
            .queries_residency(target)
            .then(|| ResidencyProbe::new(site, target, target.has_own_range() || comm.is_root()));
        let traffic = match &site.chain {
            Ok(chain) if site.is_leader() => Some(chain.zero_traffic()),
            _ => None,
        };
        Self { residency, traffic, last: None }
    }

    /// Reads the counters of the devices before each round, ahead of its barrier. Not collective.
    pub fn resume(&mut self, site: &StorageSite) {
        if let (Some(_), Ok(chain)) = (&self.traffic, &site.chain) {
            self.last = Some(chain.snapshot());
        }
    }

    /// Reads the counters after each round and the collective call that ends it. Not collective. May wait some milliseconds for requests
    /// in flight.
    pub fn pause(&mut self, site: &StorageSite) {
        let (Some(before), Ok(chain), Some(traffic)) = (self.last.take(), &site.chain, &mut self.traffic) else {
            return;
        };
        if !traffic::add_difference(&before, &chain.settled_snapshot(), traffic) {
            self.traffic = None;
        }
    }

    /// Ends the observation after the last round, with `calls` calls of each rank. Collective over the partition. Devices are known on
    /// rank 0 only, the rest on all ranks.
    ///
    /// # Errors
    /// MPI errors.
    pub fn end(self, site: &StorageSite, comm: &Comm, calls: u64) -> Result<Evidence, MpiError> {
        let mine = self.residency.map_or_else(|| Ok(RankResidency::default()), |view| view.end(calls));
        let mut sums = [0_u64; 5];
        if let Ok(found) = &mine {
            sums = [found.before, found.after, found.range, 0, u64::from(found.by == Some(ResidencySource::Mincore))];
        } else {
            sums[3] = 1;
        }
        comm.sum_u64(&mut sums)?;
        let [before, after, range, unknown, by_mincore] = sums;
        let mut evidence = Evidence { range_bytes: range, ..Evidence::default() };
        if unknown > 0 {
            // The number of ranks without residency is equal on all ranks.
            evidence.residency_source = first_message(comm, mine.err())?.map_or_else(String::new, |(_, reason)| reason);
        } else {
            // Several hosts can hold the same page of a shared file.
            evidence.resident_before_bytes = Some(before.min(range));
            evidence.resident_after_bytes = Some(after.min(range));
            evidence.residency_source =
                if by_mincore > 0 { ResidencySource::Mincore } else { ResidencySource::CacheStat }.name().to_owned();
        }
        let here = HostTraffic::new(site, self.traffic);
        if site.hosts <= 1 {
            (evidence.devices, evidence.devices_unknown) = (here.devices, here.unknown);
        } else {
            let mine = if site.is_leader() { vec![here] } else { Vec::new() };
            (evidence.devices, evidence.devices_unknown) = merge_hosts(collect(comm, mine)?);
        }
        Ok(evidence)
    }
}

#[derive(Debug, Default)]
struct RankResidency {
    before: u64,
    after: u64,
    range: u64,
    by: Option<ResidencySource>,
}

impl ResidencyProbe {
    fn new(site: &StorageSite, target: &ObservedFile<'_>, counts_range: bool) -> Self {
        let pattern = if target.has_own_range() { *target.pattern } else { target.pattern.for_rank(0) };
        let file = match &site.residency_unavailable {
            Some(reason) => Err(reason.clone()),
            None => open(target.path),
        };
        let before = file.as_ref().map_or_else(|_| Vec::new(), |file| residency_slices(file, &pattern, target.calls));
        Self { pattern, file, before, counts_range }
    }

    fn end(&self, calls: u64) -> Result<RankResidency, String> {
        let file = self.file.as_ref().map_err(Clone::clone)?;
        let range = call_range(&self.pattern, 0, calls);
        let before = resident_bytes_of_calls(&self.before, calls)?;
        let (after, by) = residency::resident_bytes(file, &range)?;
        let existing = residency::existing_bytes(file, &range)?;
        Ok(RankResidency { before, after, range: if self.counts_range { existing } else { 0 }, by: Some(by) })
    }
}

fn open(path: &FilePath) -> Result<File, String> {
    path.open_to_read().map_err(|e| format!("{} cannot be opened to query its pages: {e}", path.display()))
}

/// Byte range of calls `begin .. end`.
fn call_range(pattern: &AccessPattern, begin: u64, end: u64) -> Range<u64> {
    let offset = |call: u64| {
        let chunk = call.saturating_mul(pattern.chunks_per_call);
        pattern.base_bytes.saturating_add(chunk.saturating_mul(pattern.stride_bytes))
    };
    offset(begin)..offset(end)
}

/// The number of calls is not known in advance: the range is queried in slices that grow by a quarter, so that residency of the calls
/// that were made can be derived afterwards. Slices beyond the end of the file are omitted.
fn residency_slices(file: &File, pattern: &AccessPattern, calls: u64) -> Vec<ResidencySlice> {
    let mut slices = Vec::new();
    let mut begin = 0;
    while begin < calls {
        let end_call = (begin + (begin / 4).max(1)).min(calls);
        let range = call_range(pattern, begin, end_call);
        if residency::existing_bytes(file, &range).is_ok_and(|bytes| bytes == 0) {
            break;
        }
        slices.push(ResidencySlice { end_call, resident: residency::resident_bytes(file, &range) });
        begin = end_call;
    }
    slices
}

/// Resident bytes of the first `calls` calls; a slice that ends later counts in proportion.
fn resident_bytes_of_calls(slices: &[ResidencySlice], calls: u64) -> Result<u64, String> {
    let (mut bytes, mut begin) = (0, 0);
    for slice in slices {
        if begin >= calls {
            break;
        }
        let (resident, _) = slice.resident.clone()?;
        let (issued, all) = (slice.end_call.min(calls) - begin, slice.end_call - begin);
        bytes += (u128::from(resident) * u128::from(issued) / u128::from(all)) as u64;
        begin = slice.end_call;
    }
    Ok(bytes)
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct HostTraffic {
    host: String,
    devices: Vec<DeviceTraffic>,
    unknown: Option<String>,
}

impl HostTraffic {
    fn new(site: &StorageSite, traffic: Option<Vec<DeviceTraffic>>) -> Self {
        let unknown = match (&site.chain, &traffic) {
            (Err(reason), _) => Some(reason.clone()),
            (Ok(chain), Some(_)) => chain.incomplete_reason.clone(),
            (Ok(_), None) => Some("a device was removed while it was observed".into()),
        };
        Self { host: site.host.clone(), devices: traffic.unwrap_or_default(), unknown }
    }
}

/// Devices of all hosts. Known only if every host knows its own: bytes of the others would be missing.
fn merge_hosts(hosts: Vec<HostTraffic>) -> (Vec<DeviceTraffic>, Option<String>) {
    let mut devices = Vec::new();
    let mut unknown = None;
    let mut complete = true;
    let mut names: Vec<String> = Vec::new();
    for mut of_host in hosts {
        // Several hosts may be called localhost.
        let namesakes = names.iter().filter(|name| **name == of_host.host).count();
        names.push(of_host.host.clone());
        if namesakes > 0 {
            of_host.host = format!("{}#{}", of_host.host, namesakes + 1);
        }
        complete &= !of_host.devices.is_empty();
        if let Some(reason) = of_host.unknown {
            unknown.get_or_insert(format!("{}: {reason}", of_host.host));
        }
        let named = |t: DeviceTraffic| DeviceTraffic { device: format!("{}:{}", of_host.host, t.device), ..t };
        devices.extend(of_host.devices.into_iter().map(named));
    }
    if complete {
        (devices, unknown)
    } else {
        (Vec::new(), unknown)
    }
}

/// Drops the pages of a pattern's files from the page cache of every host, as far as the kernel allows. Called when all data is synced,
/// before [`StorageObservation::begin`], which queries what stayed. If a part of the pattern's range stays and the process is root, all caches of the
/// host are dropped, with one warning for each backend. Collective over the partition.
///
/// # Errors
/// MPI errors.
pub fn drop_pages(
    site: &StorageSite,
    comm: &Comm,
    target: &ObservedFile<'_>,
    backend: &str,
) -> Result<Option<Warning>, MpiError> {
    // Ranks that still write would add pages.
    comm.barrier()?;
    let file = open(target.path).ok();
    if site.is_leader() || target.pattern.ranks <= 1 {
        if let Some(file) = &file {
            // A failure shows in the residency.
            let _ = residency::drop_file_pages(file);
        }
    }
    site.node.barrier()?;
    let stays = |tries| match &file {
        Some(file) if site.queries_residency(target) && site.residency_unavailable.is_none() => {
            exceeds_residual(file, target, tries)
        }
        _ => false,
    };
    let mut dropped_all = false;
    if any_rank(&site.node, stays(DROP_TRIES))? {
        let tries = site.is_leader() && !site.drop_all_failed.get();
        dropped_all = any_rank(&site.node, tries && residency::drop_all_pages().is_ok())?;
        let still = any_rank(&site.node, stays(1))?;
        // Not repeated without effect: it slows down the whole host.
        site.drop_all_failed.set(site.drop_all_failed.get() || still || !dropped_all);
    }
    // Ranks of one host agree; this is over all hosts.
    let dropped_all = if site.hosts <= 1 { dropped_all } else { any_rank(comm, dropped_all)? };
    let mut reported = site.dropped_all_for.borrow_mut();
    if !dropped_all || reported.iter().any(|name| name == backend) {
        return Ok(None);
    }
    reported.push(backend.to_owned());
    Ok(Some(kinds::ALL_CACHES_DROPPED.warning().for_backend(backend).with_text(
        "the caches of the whole host were dropped, which affects other programs",
        format!(
            "{backend}: pages of the files stayed in the page cache after POSIX_FADV_DONTNEED, so the cached pages of \
             all files of the host were dropped (vm.drop_caches): other programs there had to read theirs again."
        ),
    )))
}

/// True if more of the pattern's range stays in the cache than is tolerated.
fn exceeds_residual(file: &File, target: &ObservedFile<'_>, tries: u32) -> bool {
    let pattern = if target.has_own_range() { *target.pattern } else { target.pattern.for_rank(0) };
    let range = call_range(&pattern, 0, target.calls);
    for pause in 0..tries {
        if pause > 0 {
            std::thread::sleep(DROP_PAUSE);
            let _ = residency::drop_file_pages(file);
        }
        let (Ok((resident, _)), Ok(existing)) =
            (residency::resident_bytes(file, &range), residency::existing_bytes(file, &range))
        else {
            return false; // recorded as unknown in the evidence
        };
        if resident <= RESIDUAL_BYTES || resident as f64 <= RESIDUAL_SHARE * existing as f64 {
            return false;
        }
    }
    true
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
