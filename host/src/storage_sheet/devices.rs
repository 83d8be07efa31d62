//! Arrays of local block devices: md, device mapper and btrfs, from /sys.

use std::path::Path;

use procfs::process::MountInfo;

use super::parameter::{FoundParameters, StorageKey};
use crate::device::disk_directory;
use crate::{names_in, read_number, read_trimmed};

/// Stripe unit of the striped profiles of btrfs, which is fixed.
const BTRFS_STRIPE_BYTES: u64 = 64 << 10;
const SECTOR_BYTES: u64 = 512;

/// A layer that distributes data over devices.
struct Array {
    stripe_bytes: Option<u64>,
    stripes: Option<u64>,
    redundancy: String,
    source: String,
}

/// Parameters of the devices below `mount`, whose names are in `levels` from the mounted device to the lowest.
pub(super) fn query(sys: &Path, mount: &MountInfo, levels: &[Vec<String>], found: &mut FoundParameters) {
    let top = levels.first().map(Vec::as_slice).unwrap_or_default();
    let btrfs = (mount.fs_type == "btrfs").then(|| btrfs_array(sys, top)).flatten();
    let block_devices = levels.iter().flatten().filter_map(|name| block_array(sys, name));
    let arrays: Vec<Array> = btrfs.into_iter().chain(block_devices).collect();
    let striped = arrays.iter().find(|array| array.stripes > Some(1));
    match striped.or(arrays.first()) {
        Some(array) => {
            match array.stripes {
                Some(1) => found.add(StorageKey::Stripe, "none", None, &array.source),
                _ => found.add_size(StorageKey::Stripe, array.stripe_bytes, &array.source),
            }
            found.add_count(StorageKey::Stripes, array.stripes, &array.source);
            let texts: Vec<&str> = arrays.iter().map(|array| array.redundancy.as_str()).collect();
            let sources: Vec<&str> = arrays.iter().map(|array| array.source.as_str()).collect();
            found.add(StorageKey::Redundancy, texts.join("; "), None, &sources.join("; "));
        }
        None => mounted_stripes(mount, found),
    }
    let source = "/sys/class/block";
    if !found.has(StorageKey::Redundancy) && !levels.is_empty() {
        found.add(StorageKey::Redundancy, "none visible", None, source);
    }
    if !found.has(StorageKey::Stripes) && !levels.is_empty() && arrays.is_empty() {
        found.add(StorageKey::Stripes, "1", Some(1), source);
        found.add(StorageKey::Stripe, "none", None, source);
    }
    if let Some(lowest) = levels.last() {
        found.add(StorageKey::Servers, "none (local)", Some(0), source);
        found.add(StorageKey::Devices, lowest.join(", "), None, source);
    }
}

/// Alignment to a hardware array that the file system was made with: options of xfs, in sectors.
fn mounted_stripes(mount: &MountInfo, found: &mut FoundParameters) {
    let option = |name: &str| mount.super_options.get(name)?.as_deref()?.parse::<u64>().ok();
    if let (Some(unit), Some(width)) = (option("sunit"), option("swidth")) {
        let source = "mount options sunit, swidth";
        found.add_size(StorageKey::Stripe, unit.checked_mul(SECTOR_BYTES), source);
        found.add_count(StorageKey::Stripes, width.checked_div(unit), source);
    }
}

fn block_array(sys: &Path, name: &str) -> Option<Array> {
    let disk = disk_directory(&sys.join("class/block").join(name).canonicalize().ok()?)?;
    let title = disk.file_name()?.to_string_lossy().into_owned();
    if disk.join("md").is_dir() {
        Some(md_array(&disk, &title))
    } else if disk.join("dm").is_dir() {
        mapped_array(&disk, &title)
    } else {
        None
    }
}

fn md_array(disk: &Path, name: &str) -> Array {
    let level = read_trimmed(disk.join("md/level")).unwrap_or_default();
    let devices: Option<u64> = read_number(disk.join("md/raid_disks"));
    let layout = read_number::<u64>(disk.join("md/layout")).unwrap_or(0);
    let missing = read_number::<u64>(disk.join("md/degraded")).unwrap_or(0);
    let stripes = devices.map(|devices| match level.as_str() {
        "raid4" | "raid5" => devices.saturating_sub(1),
        "raid6" => devices.saturating_sub(2),
        // Copies near and far, in the bytes of the layout.
        "raid10" => devices / ((layout & 0xff) * (layout >> 8 & 0xff)).max(1),
        "raid0" => devices,
        _ => 1,
    });
    let of = devices.map_or_else(String::new, |devices| format!(" of {devices} devices"));
    let degraded = if missing > 0 { format!(", degraded: {missing} missing") } else { String::new() };
    let none = if matches!(level.as_str(), "raid0" | "linear") { "none, " } else { "" };
    let title = level.strip_prefix("raid").map_or_else(|| level.clone(), |number| format!("RAID {number}"));
    Array {
        stripe_bytes: read_number(disk.join("md/chunk_size")),
        stripes,
        redundancy: format!("{none}{title}{of}{degraded}"),
        source: format!("/sys/block/{name}/md"),
    }
}

/// A logical volume: its limits state the stripes, the names of its parts the copies and parities. Other mappings (multipath, encryption,
/// linear volumes) pass the limits of the devices below on.
fn mapped_array(disk: &Path, name: &str) -> Option<Array> {
    read_trimmed(disk.join("dm/uuid")).filter(|uuid| uuid.starts_with("LVM-"))?;
    let limit = |file: &str| read_number::<u64>(disk.join("queue").join(file)).filter(|bytes| *bytes > 0);
    let (unit, width) = (limit("minimum_io_size"), limit("optimal_io_size"));
    let stripes =
        unit.zip(width).filter(|(unit, width)| width.is_multiple_of(*unit)).map_or(1, |(unit, width)| width / unit);
    let slaves = names_in(&disk.join("slaves"));
    // Each image of a mirror or RAID has further volumes beside it for its metadata.
    let is_image = |slave: &&String| {
        let own = read_trimmed(disk.join("slaves").join(slave).join("dm/name"));
        own.is_some_and(|name| name.contains("_rimage_") || name.contains("_mimage_"))
    };
    let images = slaves.iter().filter(is_image).count() as u64;
    let redundancy = match (images, stripes) {
        (0, stripes) if stripes > 1 && stripes == slaves.len() as u64 => {
            format!("none, logical volume striped over {stripes} devices")
        }
        (0, _) => return None,
        (images, 1) => format!("logical volume of {images} copies"),
        (images, stripes) if images > stripes => {
            format!("logical volume of {images} devices, {} of them redundant", images - stripes)
        }
        (images, _) => format!("none, logical volume striped over {images} devices"),
    };
    let stripe_bytes = unit.filter(|_| stripes > 1);
    Some(Array {
        stripe_bytes,
        stripes: Some(stripes),
        redundancy,
        source: format!("/sys/block/{name}: slaves, queue"),
    })
}

/// Profile of the data of a btrfs with these devices.
fn btrfs_array(sys: &Path, members: &[String]) -> Option<Array> {
    let all = sys.join("fs/btrfs");
    let own = |id: &String| names_in(&all.join(id).join("devices")).iter().any(|name| members.contains(name));
    let id = names_in(&all).into_iter().find(own)?;
    let data = all.join(&id).join("allocation/data");
    let profiles = names_in(&data).into_iter().filter(|name| data.join(name).is_dir());
    // While it is converted, a file system has several.
    let profiles: Vec<String> = profiles.collect();
    let devices = names_in(&all.join(&id).join("devices")).len() as u64;
    let stripes = match profiles.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["single" | "dup" | "raid1" | "raid1c3" | "raid1c4"] => Some(1),
        ["raid0"] => Some(devices),
        ["raid10"] => Some(devices / 2),
        ["raid5"] => Some(devices.saturating_sub(1)),
        ["raid6"] => Some(devices.saturating_sub(2)),
        _ => None,
    };
    let copies = |profile: &str| match profile {
        "single" => "none, single".to_owned(),
        "dup" => "2 copies on a device (dup)".to_owned(),
        "raid0" => "none, RAID 0".to_owned(),
        "raid1" => "RAID 1, 2 copies".to_owned(),
        "raid1c3" => "RAID 1, 3 copies".to_owned(),
        "raid1c4" => "RAID 1, 4 copies".to_owned(),
        other => other.replace("raid", "RAID "),
    };
    let texts: Vec<String> = profiles.iter().map(|profile| copies(profile)).collect();
    let of = if devices == 1 { "1 device".to_owned() } else { format!("{devices} devices") };
    Some(Array {
        stripe_bytes: (stripes > Some(1)).then_some(BTRFS_STRIPE_BYTES),
        stripes,
        redundancy: format!("{} (btrfs of {of})", texts.join(" and ")),
        source: "/sys/fs/btrfs, allocation/data".to_owned(),
    })
}
