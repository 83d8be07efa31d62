//! Where the bytes of a pattern went: traffic of the devices below the files, and what of the files is in the page cache
//! before and after. Also gets it out of there before a pattern, where that is the policy. Nothing here is inside a clock.
//!
//! The devices are those below the path, through partitions, loop devices, bind mounts, md and dm. Residency is asked by
//! cachestat(2), else mincore(2). [`crate::frame::values::source`] alone decides what is called cached.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use beff_backends::{FilePath, Pattern};
use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use crate::frame::records::{kinds, DeviceTraffic, Evidence, Warning};
use crate::frame::run::agree::{any, count, first_message};
use crate::frame::system::residency;
use crate::frame::system::residency::By;
use crate::frame::system::traffic;
use crate::frame::system::traffic::{Chain, Snapshot};
use crate::frame::system::{host, storage};

/// Share of a range that may stay in the cache without more being done about it.
const STAY_SHARE: f64 = 0.05;
/// Less than this is not worth it either.
const STAY_BYTES: u64 = 64 << 10;
/// A read ahead that is still under way keeps its pages until it ends: how often and how long to wait for that.
const DROP_TRIES: u32 = 4;
const DROP_PAUSE: Duration = Duration::from_millis(2);

/// One file of one rank, and the part of a pattern that lies in it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The file.
    pub path: &'a FilePath,
    /// What this rank does (with `--cache rank-shift`: what it reads).
    pub pattern: &'a Pattern,
    /// Calls it can make at most.
    pub calls: u64,
}

impl Target<'_> {
    /// True if every rank looks at its own range; else the first rank of each host looks at that of all ranks, whose chunks
    /// lie between each other.
    fn is_own(&self) -> bool {
        self.pattern.ranks <= 1 || self.pattern.is_contiguous()
    }
}

/// Where the ranks of a partition are, and what is below their files. Made once for each partition.
#[derive(Debug)]
pub struct Site {
    /// The ranks of the partition on this host.
    node: Comm,
    hosts: u64,
    host: String,
    chain: Result<Chain, String>,
    /// Why the page cache tells nothing.
    untold: Option<String>,
    /// Dropping all caches of the host is not possible or did not help.
    drop_all_failed: Cell<bool>,
    /// Backends for which all caches of a host were dropped.
    dropped_all_for: RefCell<Vec<String>>,
}

impl Site {
    /// Hosts of the partition.
    #[must_use]
    pub fn hosts(&self) -> u64 {
        self.hosts
    }

    /// Looks below `directory`, where the files will be. Collective over the ranks of the partition.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn survey(comm: &Comm, directory: &Path) -> Result<Self, MpiError> {
        let node = if comm.size() > 1 { comm.node()? } else { None }.unwrap_or_else(Comm::own);
        let untold = match storage::fs_type(directory) {
            Ok(fs_type) => residency::untold(&fs_type),
            Err(cause) => Some(format!("the file system is not known: {cause}")),
        };
        Ok(Self {
            hosts: count(comm, node.is_root())?,
            host: host::host_name().unwrap_or_else(|_| format!("host-of-rank-{}", comm.rank())),
            chain: traffic::chain(directory),
            untold,
            drop_all_failed: Cell::new(false),
            dropped_all_for: RefCell::default(),
            node,
        })
    }

    /// The first rank on its host.
    fn is_leader(&self) -> bool {
        self.node.is_root()
    }

    fn asks(&self, target: &Target<'_>) -> bool {
        self.is_leader() || target.is_own()
    }
}

/// Observes one pattern through one backend.
#[derive(Debug)]
pub struct Watch {
    view: Option<View>,
    traffic: Option<Vec<DeviceTraffic>>,
    last: Option<Snapshot>,
}

/// What a rank that asks for residency needs.
#[derive(Debug)]
struct View {
    pattern: Pattern,
    file: Result<File, String>,
    before: Vec<Slice>,
    /// True if this rank's range is not the one that others ask for too.
    counts_range: bool,
}

/// What was resident of the calls up to `end_call`, from the end of the slice before.
#[derive(Debug)]
struct Slice {
    end_call: u64,
    resident: Result<(u64, By), String>,
}

impl Watch {
    /// Before the first round of a pattern, after [`drop_pages`]: looks into the page cache. Not collective.
    #[must_use]
    pub fn begin(site: &Site, comm: &Comm, target: &Target<'_>) -> Self {
        let view = site.asks(target).then(|| View::new(site, target, target.is_own() || comm.is_root()));
        let traffic = match &site.chain {
            Ok(chain) if site.is_leader() => Some(chain.no_traffic()),
            _ => None,
        };
        Self { view, traffic, last: None }
    }

    /// Before each round, ahead of the barrier that begins it: reads the counters of the devices. Not collective.
    pub fn resume(&mut self, site: &Site) {
        if let (Some(_), Ok(chain)) = (&self.traffic, &site.chain) {
            self.last = Some(chain.snapshot());
        }
    }

    /// After each round, behind a collective call that ends it for all ranks. Not collective. May wait some milliseconds for
    /// requests in flight.
    pub fn pause(&mut self, site: &Site) {
        let (Some(before), Ok(chain), Some(traffic)) = (self.last.take(), &site.chain, &mut self.traffic) else {
            return;
        };
        if !traffic::add_between(&before, &chain.settled_snapshot(), traffic) {
            self.traffic = None;
        }
    }

    /// After the last round, `calls` calls of each rank in all. Collective over the partition. The devices are known on rank
    /// 0 alone, the rest on all ranks.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn end(self, site: &Site, comm: &Comm, calls: u64) -> Result<Evidence, MpiError> {
        let mine = self.view.map_or_else(|| Ok(Found::default()), |view| view.end(calls));
        let mut sums = [0_u64; 5];
        if let Ok(found) = &mine {
            sums = [found.before, found.after, found.range, 0, u64::from(found.by == Some(By::Mincore))];
        } else {
            sums[3] = 1;
        }
        comm.sum_u64(&mut sums)?;
        let [before, after, range, unknown, by_mincore] = sums;
        let mut evidence = Evidence { range_bytes: range, ..Evidence::default() };
        if unknown > 0 {
            // Equal on all ranks: the number of ranks that do not know is.
            evidence.residency_by = first_message(comm, mine.err())?.map_or_else(String::new, |(_, reason)| reason);
        } else {
            // Hosts can each hold the same page of a shared file.
            evidence.resident_before_bytes = Some(before.min(range));
            evidence.resident_after_bytes = Some(after.min(range));
            evidence.residency_by = if by_mincore > 0 { By::Mincore } else { By::CacheStat }.name().to_owned();
        }
        let here = HostTraffic::new(site, self.traffic);
        if site.hosts <= 1 {
            (evidence.devices, evidence.devices_unknown) = (here.devices, here.unknown);
        } else {
            let packed = if site.is_leader() { serde_json::to_vec(&here).unwrap_or_default() } else { Vec::new() };
            let all = comm.gather_bytes(&packed)?;
            (evidence.devices, evidence.devices_unknown) = merge(&all);
        }
        Ok(evidence)
    }
}

/// What a rank found in its range.
#[derive(Debug, Default)]
struct Found {
    before: u64,
    after: u64,
    range: u64,
    by: Option<By>,
}

impl View {
    fn new(site: &Site, target: &Target<'_>, counts_range: bool) -> Self {
        let pattern = if target.is_own() { *target.pattern } else { target.pattern.of_rank(0) };
        let file = match &site.untold {
            Some(reason) => Err(reason.clone()),
            None => open(target.path),
        };
        let before = file.as_ref().map_or_else(|_| Vec::new(), |file| slices(file, &pattern, target.calls));
        Self { pattern, file, before, counts_range }
    }

    fn end(&self, calls: u64) -> Result<Found, String> {
        let file = self.file.as_ref().map_err(Clone::clone)?;
        let range = span(&self.pattern, 0, calls);
        let before = resident_of(&self.before, calls)?;
        let (after, by) = residency::resident_bytes(file, &range)?;
        let existing = residency::existing_bytes(file, &range)?;
        Ok(Found { before, after, range: if self.counts_range { existing } else { 0 }, by: Some(by) })
    }
}

fn open(path: &FilePath) -> Result<File, String> {
    path.open_to_read().map_err(|e| format!("{} cannot be opened to look at its pages: {e}", path.display()))
}

/// The bytes of calls `begin .. end`.
fn span(pattern: &Pattern, begin: u64, end: u64) -> Range<u64> {
    let offset = |call: u64| {
        let chunk = call.saturating_mul(pattern.chunks_per_call);
        pattern.base_bytes.saturating_add(chunk.saturating_mul(pattern.stride_bytes))
    };
    offset(begin)..offset(end)
}

/// How many calls will be made is not known before: the range is looked at in slices that grow by a quarter, so that what
/// belongs to the calls that were made can be told afterwards. What lies behind the end of the file is left out.
fn slices(file: &File, pattern: &Pattern, calls: u64) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut begin = 0;
    while begin < calls {
        let end_call = (begin + (begin / 4).max(1)).min(calls);
        let range = span(pattern, begin, end_call);
        if residency::existing_bytes(file, &range).is_ok_and(|bytes| bytes == 0) {
            break;
        }
        slices.push(Slice { end_call, resident: residency::resident_bytes(file, &range) });
        begin = end_call;
    }
    slices
}

/// Bytes that were resident of the first `calls` calls; of a slice that ends later, in proportion.
fn resident_of(slices: &[Slice], calls: u64) -> Result<u64, String> {
    let (mut bytes, mut begin) = (0, 0);
    for slice in slices {
        if begin >= calls {
            break;
        }
        let (resident, _) = slice.resident.clone()?;
        let (made, all) = (slice.end_call.min(calls) - begin, slice.end_call - begin);
        bytes += (u128::from(resident) * u128::from(made) / u128::from(all)) as u64;
        begin = slice.end_call;
    }
    Ok(bytes)
}

/// What one host knows of its devices.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HostTraffic {
    host: String,
    devices: Vec<DeviceTraffic>,
    unknown: Option<String>,
}

impl HostTraffic {
    fn new(site: &Site, traffic: Option<Vec<DeviceTraffic>>) -> Self {
        let unknown = match (&site.chain, &traffic) {
            (Err(reason), _) => Some(reason.clone()),
            (Ok(chain), Some(_)) => chain.gap.clone(),
            (Ok(_), None) => Some("a device went away while it was watched".into()),
        };
        Self { host: site.host.clone(), devices: traffic.unwrap_or_default(), unknown }
    }
}

/// The devices of all hosts. Known only if every host knows its own: bytes of the others would be missing.
fn merge(gathered: &[Vec<u8>]) -> (Vec<DeviceTraffic>, Option<String>) {
    let mut devices = Vec::new();
    let mut unknown = None;
    let mut complete = true;
    let mut names: Vec<String> = Vec::new();
    for bytes in gathered.iter().filter(|bytes| !bytes.is_empty()) {
        // Written by the same program a moment ago.
        let mut of_host: HostTraffic = serde_json::from_slice(bytes).unwrap_or_default();
        // Machines that are all called localhost are not one machine.
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

/// Takes the pages of a pattern's file(s) out of the page cache of every host, as far as the kernel lets them go. To be
/// called when all data is synced, before [`Watch::begin`], which sees what stayed. Where a part of the pattern's range
/// stays and this is root, all caches of the host are dropped; the warning that says so comes once for each backend.
/// Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn drop_pages(site: &Site, comm: &Comm, target: &Target<'_>, backend: &str) -> Result<Option<Warning>, MpiError> {
    // Whoever still writes would only make new pages.
    comm.barrier()?;
    let file = open(target.path).ok();
    if site.is_leader() || target.pattern.ranks <= 1 {
        if let Some(file) = &file {
            // What did not work is seen in what stays.
            let _ = residency::drop_file(file);
        }
    }
    site.node.barrier()?;
    let stays = |tries| match &file {
        Some(file) if site.asks(target) && site.untold.is_none() => stays(file, target, tries),
        _ => false,
    };
    let mut dropped_all = false;
    if any(&site.node, stays(DROP_TRIES))? {
        let tries = site.is_leader() && !site.drop_all_failed.get();
        dropped_all = any(&site.node, tries && residency::drop_all_files().is_ok())?;
        let still = any(&site.node, stays(1))?;
        // Not again and again: it slows the whole host down.
        site.drop_all_failed.set(site.drop_all_failed.get() || still || !dropped_all);
    }
    // Every rank of a host has the host's answer.
    let dropped_all = any(comm, dropped_all)?;
    let mut told = site.dropped_all_for.borrow_mut();
    if !dropped_all || told.iter().any(|name| name == backend) {
        return Ok(None);
    }
    told.push(backend.to_owned());
    Ok(Some(kinds::ALL_CACHES_DROPPED.warning().of(backend).told(
        "the caches of the whole host were dropped, which other programs feel",
        format!(
            "{backend}: pages of the files stayed in the page cache after they were told to leave, so the cached pages of \
             all files of the host were dropped (vm.drop_caches): other programs there had to read theirs again."
        ),
    )))
}

/// True if more of the pattern's range than can be left stays in the cache.
fn stays(file: &File, target: &Target<'_>, tries: u32) -> bool {
    let pattern = if target.is_own() { *target.pattern } else { target.pattern.of_rank(0) };
    let range = span(&pattern, 0, target.calls);
    for pause in 0..tries {
        if pause > 0 {
            std::thread::sleep(DROP_PAUSE);
            let _ = residency::drop_file(file);
        }
        let (Ok((resident, _)), Ok(existing)) =
            (residency::resident_bytes(file, &range), residency::existing_bytes(file, &range))
        else {
            return false; // that it is not known will be in the evidence
        };
        if resident <= STAY_BYTES || resident as f64 <= STAY_SHARE * existing as f64 {
            return false;
        }
    }
    true
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
