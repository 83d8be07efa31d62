//! File systems with servers: extended attributes, mount options, and tools of the file system.

use std::path::Path;

use procfs::process::MountInfo;

use super::access::Access;
use super::parameter::{FoundParameters, StorageKey};
use super::parse;
use crate::mount::mount_source;
use beff_report::units::format_size;

/// Chunk size of MooseFS, into which files are divided, and its blocks; both are fixed.
const MOOSEFS_CHUNK_BYTES: u64 = 64 << 20;
const MOOSEFS_BLOCK_BYTES: u64 = 64 << 10;

/// The file, and the file system that it is on.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) file: String,
    pub(super) fs_type: String,
    /// Mounted device or export.
    pub(super) source: String,
    /// Mount options by name.
    pub(super) options: Vec<(String, String)>,
}

impl Target {
    pub(super) fn of(file: &Path, mount: &MountInfo) -> Self {
        let options = mount.super_options.iter().chain(&mount.mount_options);
        Self {
            file: file.display().to_string(),
            fs_type: mount.fs_type.clone(),
            source: mount_source(mount).map(|source| source.display().to_string()).unwrap_or_default(),
            options: options.map(|(name, value)| (name.clone(), value.clone().unwrap_or_default())).collect(),
        }
    }

    fn option(&self, name: &str) -> Option<&str> {
        let own = self.options.iter().find(|(key, value)| key == name && !value.is_empty());
        own.map(|(_, value)| value.as_str())
    }

    fn size_option(&self, name: &str) -> Option<u64> {
        self.option(name)?.parse().ok()
    }
}

/// Adds what the file system of `target` reports.
pub(super) fn query(target: &Target, access: &Access<'_>, found: &mut FoundParameters) {
    match target.fs_type.as_str() {
        "nfs" | "nfs4" => nfs(target, found),
        "fuse.glusterfs" | "glusterfs" => gluster(target, access, found),
        "fuse.mfs" | "fuse.moosefs" => moosefs(target, access, found),
        "lustre" => lustre(target, access, found),
        "beegfs" | "beegfs_nodev" | "fhgfs" => beegfs(target, access, found),
        "gpfs" | "mmfs" => gpfs(target, access, found),
        "ceph" | "fuse.ceph" | "fuse.ceph-fuse" => ceph(access, found),
        _ => {}
    }
}

/// The client knows its transfers and the address of the server, not the file system of the server.
fn nfs(target: &Target, found: &mut FoundParameters) {
    let source = "mount options";
    if let Some(write) = target.size_option("wsize") {
        let read = target.size_option("rsize").filter(|read| *read != write);
        let read = read.map_or_else(String::new, |read| format!(", rsize {}", format_size(read)));
        found.add(StorageKey::Block, format!("wsize {}{read}", format_size(write)), Some(write), source);
    }
    let host = target.source.rsplit_once(":/").map_or("", |(host, _)| host);
    let address = target.option("addr").filter(|address| *address != host);
    let address = address.map_or_else(String::new, |address| format!(" ({address})"));
    if !host.is_empty() {
        found.add(StorageKey::Servers, format!("1: {host}{address}"), Some(1), "mount source, mount options");
    }
    let connections = target.option("nconnect").map_or_else(String::new, |number| format!(", {number} connections"));
    if let Some(protocol) = target.option("proto") {
        found.add(StorageKey::Network, format!("{protocol}{connections}"), None, source);
    }
    if let Some(version) = target.option("vers") {
        found.add(StorageKey::Version, format!("NFS {version}"), None, source);
    }
}

fn gluster(target: &Target, access: &Access<'_>, found: &mut FoundParameters) {
    let Some((server, volume)) = target.source.split_once(':') else { return };
    // A volume may be named with a slash; a subdirectory may follow.
    let volume = volume.trim_start_matches('/').split('/').next().unwrap_or_default();
    let server = server.split(',').next().unwrap_or_default();
    let remote = format!("--remote-host={server}");
    let info = access.ask(&["gluster", "--mode=script", &remote, "volume", "info", volume], found);
    if let Some(volume) = info.as_deref().and_then(parse::gluster_volume) {
        let source = "gluster volume info";
        found.add_size(StorageKey::Stripe, volume.shard_bytes, source);
        if volume.shard_bytes.is_none() && volume.data_bricks_of_file == Some(1) {
            found.add(StorageKey::Stripe, "none", None, source);
        }
        let stripes = if volume.shard_bytes.is_some() { volume.data_bricks } else { volume.data_bricks_of_file };
        found.add_count(StorageKey::Stripes, stripes, source);
        let names = volume.servers.join(", ");
        let count = volume.servers.len() as u64;
        found.add(StorageKey::Servers, format!("{count}: {names}"), Some(count), source);
        found.add(StorageKey::Redundancy, volume.redundancy, None, source);
        found.add(StorageKey::Targets, format!("{} bricks", volume.bricks), Some(volume.bricks), source);
        found.add(StorageKey::Network, volume.transport, None, source);
        found.add(StorageKey::Note, volume.options, None, source);
    }
    // For root, where the servers do not answer the tool.
    if let Some(place) = access.text_attribute("trusted.glusterfs.pathinfo").as_deref().and_then(parse::gluster_place) {
        let source = "xattr trusted.glusterfs.pathinfo";
        found.add_count(StorageKey::Stripes, place.data_bricks, source);
        found.add(StorageKey::Redundancy, place.redundancy, None, source);
    }
}

fn moosefs(target: &Target, access: &Access<'_>, found: &mut FoundParameters) {
    let source = "MooseFS: fixed";
    found.add_size(StorageKey::Block, Some(MOOSEFS_BLOCK_BYTES), source);
    found.add_size(StorageKey::Stripe, Some(MOOSEFS_CHUNK_BYTES), source);
    let class = access.ask(&["mfsgetsclass", &target.file], found);
    let class = class.as_deref().and_then(parse::moosefs_value);
    let goal = access.ask(&["mfsgetgoal", &target.file], found).as_deref().and_then(parse::moosefs_value);
    if let Some(goal) = goal {
        let copies = goal.parse::<u64>().ok();
        let text = match copies {
            Some(1) => "none, 1 copy (goal 1)".to_owned(),
            Some(copies) => format!("{copies} copies (goal {copies})"),
            None => format!("goal {goal}"),
        };
        let class = class.filter(|class| *class != goal).map_or_else(String::new, |class| format!(", class {class}"));
        found.add(StorageKey::Redundancy, text + &class, copies, "mfsgetgoal, mfsgetsclass");
    }
    if let Some((_, master)) = target.source.split_once('#') {
        found.add(StorageKey::Servers, format!("master {master}, chunk servers unknown"), None, "mount source");
    }
    let servers = access.ask(&["mfsfileinfo", &target.file], found).map(|text| parse::moosefs_servers(&text));
    if let Some(servers) = servers.filter(|servers| !servers.is_empty()) {
        // A file of one chunk does not show the others.
        found.add(StorageKey::Note, format!("first chunk on {}", servers.join(", ")), None, "mfsfileinfo");
    }
}

fn lustre(target: &Target, access: &Access<'_>, found: &mut FoundParameters) {
    let layout = match (access.attribute)("lustre.lov").as_deref().and_then(parse::lustre_attribute) {
        Some(layout) => Some((layout, "xattr lustre.lov")),
        None => {
            let text = access.ask(&["lfs", "getstripe", &target.file], found);
            text.as_deref().and_then(parse::lustre_getstripe).map(|layout| (layout, "lfs getstripe"))
        }
    };
    if let Some((layout, source)) = layout {
        found.add(StorageKey::Stripe, layout.sizes_text(), layout.one_size(), source);
        found.add(StorageKey::Stripes, layout.counts_text(), layout.one_count(), source);
        let mirrors = match layout.mirrors {
            mirrors if mirrors > 1 => format!("{mirrors} mirrors of the file"),
            _ => "none in Lustre; that of its targets unknown".to_owned(),
        };
        found.add(StorageKey::Redundancy, mirrors, None, source);
    }
    let directory = Path::new(&target.file).parent().map(|path| path.display().to_string()).unwrap_or_default();
    let targets = access.ask(&["lfs", "osts", &directory], found).map(|text| parse::lustre_targets(&text));
    if let Some(targets) = targets.filter(|targets| *targets > 0) {
        found.add(StorageKey::Targets, format!("{targets} OSTs"), Some(targets), "lfs osts");
    }
}

fn beegfs(target: &Target, access: &Access<'_>, found: &mut FoundParameters) {
    let text = access.ask(&["beegfs-ctl", "--getentryinfo", &target.file], found);
    let Some(entry) = text.as_deref().and_then(parse::beegfs_entry) else { return };
    let source = "beegfs-ctl --getentryinfo";
    found.add_size(StorageKey::Stripe, entry.chunk_bytes, source);
    found.add_count(StorageKey::Stripes, entry.targets, source);
    let mirrored = entry.kind.to_ascii_lowercase().contains("mirror");
    let redundancy = if mirrored { "2 copies (buddy mirror)" } else { "none in BeeGFS; that of its targets unknown" };
    found.add(StorageKey::Redundancy, redundancy, None, source);
}

fn gpfs(target: &Target, access: &Access<'_>, found: &mut FoundParameters) {
    let device = target.source.trim_start_matches("/dev/");
    let Some(text) = access.ask(&["mmlsfs", device, "-B", "-m", "-r", "-V"], found) else { return };
    let source = "mmlsfs";
    let value = |flag: &str| parse::mmlsfs_flag(&text, flag);
    // Files are distributed over all disks in blocks.
    let block_bytes = value("-B").and_then(|text| text.parse().ok());
    found.add_size(StorageKey::Block, block_bytes, source);
    found.add_size(StorageKey::Stripe, block_bytes, source);
    if let Some(copies) = value("-r").and_then(|text| text.parse::<u64>().ok()) {
        let text = match copies {
            1 => "none in GPFS (1 data replica); that of its disks unknown".to_owned(),
            copies => format!("{copies} data replicas"),
        };
        found.add(StorageKey::Redundancy, text, Some(copies), source);
    }
    if let Some(version) = value("-V") {
        found.add(StorageKey::Version, version, None, source);
    }
}

fn ceph(access: &Access<'_>, found: &mut FoundParameters) {
    let Some(text) = access.text_attribute("ceph.file.layout") else {
        found.problems.push("the file has no xattr ceph.file.layout".to_owned());
        return;
    };
    let source = "xattr ceph.file.layout";
    let field = |name: &str| parse::word_value(&text, name);
    let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
    found.add_size(StorageKey::Stripe, number("stripe_unit"), source);
    found.add_count(StorageKey::Stripes, number("stripe_count"), source);
    let objects = number("object_size").map(format_size).unwrap_or_default();
    let pool = field("pool").unwrap_or_default();
    found.add(StorageKey::Note, format!("objects of {objects}, pool {pool}"), None, source);
}
