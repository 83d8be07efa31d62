//! Facts in /sys about the block device of a file system.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};
use procfs::process::MountInfo;

use super::mount::{longest_prefix_mount, mount_source};
use super::{names_in, read_number, read_trimmed};
use beff_report::units::format_size;

const MAX_DEPTH: u32 = 4;

/// Facts about the device of `mount` in one line; None without a local block device (network, memory).
pub fn describe_device(mount: &MountInfo, mounts: &[MountInfo]) -> Option<String> {
    describe_mount(Path::new("/sys/dev/block"), mount, mounts, 0)
}

fn describe_mount(sys: &Path, mount: &MountInfo, mounts: &[MountInfo], depth: u32) -> Option<String> {
    describe(sys, &device_number(mount)?, mounts, depth)
}

/// Number of the block device of a mount as in /sys/dev/block; None if it has none.
pub fn device_number(mount: &MountInfo) -> Option<String> {
    if !mount.majmin.starts_with("0:") {
        return Some(mount.majmin.clone());
    }
    // btrfs and others give their files a device number of their own (major 0): the mount source names the device.
    let metadata = fs::metadata(mount_source(mount)?).ok().filter(|metadata| metadata.file_type().is_block_device())?;
    Some(format!("{}:{}", major(metadata.rdev()), minor(metadata.rdev())))
}

/// Directory of the disk of a device: that of a partition is inside the one of its disk, which has the facts.
pub fn disk_directory(device: &Path) -> Option<PathBuf> {
    if device.join("partition").exists() {
        device.parent().map(Path::to_path_buf)
    } else {
        Some(device.to_path_buf())
    }
}

fn describe(sys: &Path, number: &str, mounts: &[MountInfo], depth: u32) -> Option<String> {
    let directory = fs::canonicalize(sys.join(number)).ok()?;
    let disk = disk_directory(&directory)?;
    let [name, disk_name] = [directory.file_name()?, disk.file_name()?].map(|name| name.to_string_lossy().into_owned());
    let title = if name == disk_name { name } else { format!("{name} on {disk_name}") };
    let mut facts = disk_facts(&disk);
    if let Some(file) = read_trimmed(disk.join("loop/backing_file")) {
        facts.push(describe_backing_file(sys, &file, mounts, depth));
    }
    Some(if facts.is_empty() { title } else { format!("{title}: {}", facts.join(", ")) })
}

fn disk_facts(disk: &Path) -> Vec<String> {
    let read = |name: &str| read_trimmed(disk.join(name));
    let model = read("device/model").or_else(|| read("dm/name"));
    // Sectors of 512 bytes on every device.
    let size = read_number::<u64>(disk.join("size")).and_then(|sectors| sectors.checked_mul(512));
    let rotational = read("queue/rotational").map(|flag| if flag == "1" { "rotational" } else { "not rotational" });
    let scheduler = read("queue/scheduler").map(|list| format!("scheduler {}", active_scheduler(&list)));
    let slaves = names_in(&disk.join("slaves"));
    let slaves = (!slaves.is_empty()).then(|| format!("on {}", slaves.join(" + ")));
    [model, size.map(format_size), rotational.map(str::to_owned), scheduler, slaves].into_iter().flatten().collect()
}

/// The active scheduler is in brackets; a list without brackets is a single name.
fn active_scheduler(list: &str) -> &str {
    list.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(list, |(name, _)| name)
}

fn describe_backing_file(sys: &Path, file: &str, mounts: &[MountInfo], depth: u32) -> String {
    let path = PathBuf::from(file);
    let under = (depth < MAX_DEPTH)
        .then(|| longest_prefix_mount(&path, mounts))
        .flatten()
        .map(|mount| match describe_mount(sys, mount, mounts, depth + 1) {
            Some(device) => format!(" on {} on {device}", mount.fs_type),
            None => format!(" on {}", mount.fs_type),
        })
        .unwrap_or_default();
    format!("file {file}{under}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use procfs::process::MountInfos;
    use procfs::FromBufRead;

    use super::*;

    fn mounts(text: &str) -> Vec<MountInfo> {
        MountInfos::from_buf_read(text.as_bytes()).unwrap().0
    }

    fn file(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A disk sda with a partition sda1, and loop0 with its image in /data.
    fn fake_sys() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let devices = root.path().join("devices");
        file(devices.join("sda/size"), "2048\n");
        file(devices.join("sda/device/model"), "FAST DISK   \n");
        file(devices.join("sda/queue/rotational"), "0\n");
        file(devices.join("sda/queue/scheduler"), "none [mq-deadline] kyber\n");
        file(devices.join("sda/sda1/partition"), "1\n");
        file(devices.join("loop0/loop/backing_file"), "/data/disk.img\n");
        file(devices.join("loop0/queue/scheduler"), "none\n");
        let numbers = root.path().join("dev/block");
        fs::create_dir_all(&numbers).unwrap();
        symlink(devices.join("sda/sda1"), numbers.join("8:1")).unwrap();
        symlink(devices.join("loop0"), numbers.join("7:0")).unwrap();
        root
    }

    #[test]
    fn a_partition_shows_its_disk_and_a_loop_device_its_file() {
        let root = fake_sys();
        let sys = root.path().join("dev/block");
        let mounts = mounts(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 7:0 / /mnt rw - xfs /dev/loop0 rw\n3 1 0:44 / /nfs rw - nfs4 host:/x rw\n",
        );
        let disk = describe_mount(&sys, &mounts[0], &mounts, 0).unwrap();
        assert!(disk.starts_with("sda1 on sda: FAST DISK, "), "{disk}");
        assert!(disk.ends_with(", not rotational, scheduler mq-deadline"), "{disk}");
        let looped = describe_mount(&sys, &mounts[1], &mounts, 0).unwrap();
        assert_eq!(looped, format!("loop0: scheduler none, file /data/disk.img on ext4 on {disk}"));
        assert_eq!(describe_mount(&sys, &mounts[2], &mounts, 0), None);
    }

    #[test]
    fn a_loop_device_on_itself_ends() {
        let root = fake_sys();
        let mounts = mounts("2 1 7:0 / / rw - xfs /dev/loop0 rw\n");
        let text = describe_mount(&root.path().join("dev/block"), &mounts[0], &mounts, 0).unwrap();
        assert_eq!(text.matches("loop0").count(), MAX_DEPTH as usize + 1);
    }
}
