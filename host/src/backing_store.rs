//! Backing store of a file system, by its type. It determines what an empty page cache and a counter of the kernel prove.

/// Location of data that is in no cache of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackingStore {
    /// Memory of this host.
    Memory,
    /// Block devices, through the page cache of this host.
    Devices,
    /// Another program: a server on another host, a process behind FUSE, the host of a virtual machine. It has a cache of its own, which
    /// is not visible here.
    Server,
    /// Unknown: stacked file systems (overlay), those with a cache of their own (zfs), and unknown types.
    Unknown,
}

/// File systems in memory: a benchmark of them measures memory.
pub const MEMORY_FILE_SYSTEMS: [&str; 5] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs"];

/// File systems on local block devices without a cache besides the page cache.
const DEVICE_FILE_SYSTEMS: [&str; 20] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "nilfs2", "reiserfs", "bcachefs", "vfat", "msdos", "exfat",
    "ntfs3", "hfs", "hfsplus", "udf", "ufs", "gfs2", "ocfs2",
];

/// File systems of a network or of the host of a virtual machine. Those of FUSE are recognized by name.
const CLIENT_FILE_SYSTEMS: [&str; 32] = [
    "nfs",
    "nfs4",
    "lustre",
    "lustre_tgt",
    "gpfs",
    "mmfs",
    "cifs",
    "smb3",
    "smbfs",
    "ceph",
    "glusterfs",
    "beegfs",
    "beegfs_nodev",
    "fhgfs",
    "pvfs2",
    "orangefs",
    "9p",
    "virtiofs",
    "afs",
    "wekafs",
    "panfs",
    "pfs",
    "dvs",
    "iofs",
    "coda",
    "ncpfs",
    "quobyte",
    "vboxsf",
    "vmhgfs",
    "prl_fs",
    "drvfs",
    "daos",
];

/// Backing store of files of this type.
#[must_use]
pub fn backing_store(fs_type: &str) -> BackingStore {
    if MEMORY_FILE_SYSTEMS.contains(&fs_type) {
        BackingStore::Memory
    } else if CLIENT_FILE_SYSTEMS.contains(&fs_type) || is_fuse(fs_type) {
        BackingStore::Server
    } else if DEVICE_FILE_SYSTEMS.contains(&fs_type) {
        BackingStore::Devices
    } else {
        BackingStore::Unknown
    }
}

/// A process serves the data, with or without a block device below.
#[must_use]
pub fn is_fuse(fs_type: &str) -> bool {
    fs_type == "fuse" || fs_type == "fuseblk" || fs_type.starts_with("fuse.") || fs_type.starts_with("fuseblk.")
}

/// True if the kernel counts, for each process, all data fetched for files of this type by any kind of read: block devices, memory
/// (nothing is fetched), and nfs. Others count some kinds or none.
#[must_use]
pub fn has_complete_read_count(fs_type: &str) -> bool {
    matches!(backing_store(fs_type), BackingStore::Devices | BackingStore::Memory) || matches!(fs_type, "nfs" | "nfs4")
}

/// True if the device of this name (without its host) has its data elsewhere than on a local device: in a file (loop), in memory, on a
/// server.
#[must_use]
pub fn is_virtual_device(device: &str) -> bool {
    let numbered =
        |kind: &str| device.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    ["loop", "ram", "zram", "nbd", "rbd", "ublkb"].into_iter().any(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_backed_by_servers() {
        for fs_type in CLIENT_FILE_SYSTEMS {
            assert_eq!(backing_store(fs_type), BackingStore::Server, "{fs_type}");
        }
        for fs_type in
            ["fuse", "fuseblk", "fuse.mergerfs", "fuse.glusterfs", "fuse.sshfs", "fuse.ceph", "fuse.never-heard-of"]
        {
            assert_eq!(
                (backing_store(fs_type), has_complete_read_count(fs_type)),
                (BackingStore::Server, false),
                "{fs_type}"
            );
        }
        assert!(
            has_complete_read_count("nfs4") && !has_complete_read_count("lustre") && !has_complete_read_count("cifs")
        );
    }

    #[test]
    fn other_file_systems_are_unknown() {
        for fs_type in ["", "overlay", "aufs", "zfs", "ecryptfs", "fusion", "newfs"] {
            assert_eq!(
                (backing_store(fs_type), has_complete_read_count(fs_type)),
                (BackingStore::Unknown, false),
                "{fs_type}"
            );
        }
        for fs_type in DEVICE_FILE_SYSTEMS {
            assert_eq!(
                (backing_store(fs_type), has_complete_read_count(fs_type)),
                (BackingStore::Devices, true),
                "{fs_type}"
            );
        }
        assert!(MEMORY_FILE_SYSTEMS
            .iter()
            .all(|fs_type| backing_store(fs_type) == BackingStore::Memory && has_complete_read_count(fs_type)));
    }

    #[test]
    fn disks_are_distinguished_from_virtual_devices() {
        assert!(["loop0", "loop17p1", "nbd3", "rbd0", "zram0", "ram1"].into_iter().all(is_virtual_device));
        assert!(!["sda", "nvme0n1", "vda", "dm-0", "md127", "looped", "rambler"].into_iter().any(is_virtual_device));
    }
}
