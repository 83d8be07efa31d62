//! Who keeps the data of a file system, by its type: what an empty page cache and a count of the kernel prove follows from it.

/// Who has the data when it is in no cache of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// The memory of this host.
    Memory,
    /// Block devices, through the page cache of this host.
    Devices,
    /// Another program: a server on another host, a process behind FUSE, the host of a virtual machine. It has a cache of its own,
    /// which nobody here sees.
    Server,
    /// Not known: file systems over others (overlay), with a cache of their own (zfs), or never heard of.
    Unknown,
}

/// File systems whose data lives in memory: a benchmark of them measures memory.
pub const IN_MEMORY: [&str; 5] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs"];

/// File systems on block devices of this host, with no cache but its page cache.
const ON_DEVICES: [&str; 20] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "nilfs2", "reiserfs", "bcachefs", "vfat", "msdos", "exfat",
    "ntfs3", "hfs", "hfsplus", "udf", "ufs", "gfs2", "ocfs2",
];

/// File systems whose data comes over a network or from the host of a virtual machine. Those of FUSE have it in their name.
const CLIENTS: [&str; 32] = [
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

/// Who keeps the data of files of this type.
#[must_use]
pub fn keeper(fs_type: &str) -> Keeper {
    if IN_MEMORY.contains(&fs_type) {
        Keeper::Memory
    } else if CLIENTS.contains(&fs_type) || is_fuse(fs_type) {
        Keeper::Server
    } else if ON_DEVICES.contains(&fs_type) {
        Keeper::Devices
    } else {
        Keeper::Unknown
    }
}

/// With or without a block device below: a process answers.
fn is_fuse(fs_type: &str) -> bool {
    fs_type == "fuse" || fs_type == "fuseblk" || fs_type.starts_with("fuse.") || fs_type.starts_with("fuseblk.")
}

/// True if the kernel counts for each process all that it fetches for files of this type, however they are read: block devices, what is
/// in memory (nothing), and nfs. Others count some ways of reading or none.
#[must_use]
pub fn counts_all(fs_type: &str) -> bool {
    matches!(keeper(fs_type), Keeper::Devices | Keeper::Memory) || matches!(fs_type, "nfs" | "nfs4")
}

/// True if the device of this name (without its host) has its data in something that is not a device of this host's: in a file (loop), in
/// memory, on a server.
#[must_use]
pub fn is_no_disk(device: &str) -> bool {
    let numbered =
        |kind: &str| device.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    ["loop", "ram", "zram", "nbd", "rbd", "ublkb"].into_iter().any(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_of_a_server_is_one() {
        for fs_type in CLIENTS {
            assert_eq!(keeper(fs_type), Keeper::Server, "{fs_type}");
        }
        for fs_type in
            ["fuse", "fuseblk", "fuse.mergerfs", "fuse.glusterfs", "fuse.sshfs", "fuse.ceph", "fuse.never-heard-of"]
        {
            assert_eq!((keeper(fs_type), counts_all(fs_type)), (Keeper::Server, false), "{fs_type}");
        }
        assert!(counts_all("nfs4") && !counts_all("lustre") && !counts_all("cifs"));
    }

    #[test]
    fn what_nobody_heard_of_is_not_known() {
        for fs_type in ["", "overlay", "aufs", "zfs", "ecryptfs", "fusion", "newfs"] {
            assert_eq!((keeper(fs_type), counts_all(fs_type)), (Keeper::Unknown, false), "{fs_type}");
        }
        for fs_type in ON_DEVICES {
            assert_eq!((keeper(fs_type), counts_all(fs_type)), (Keeper::Devices, true), "{fs_type}");
        }
        assert!(IN_MEMORY.iter().all(|fs_type| keeper(fs_type) == Keeper::Memory && counts_all(fs_type)));
    }

    #[test]
    fn disks_are_told_from_what_looks_like_one() {
        assert!(["loop0", "loop17p1", "nbd3", "rbd0", "zram0", "ram1"].into_iter().all(is_no_disk));
        assert!(!["sda", "nvme0n1", "vda", "dm-0", "md127", "looped", "rambler"].into_iter().any(is_no_disk));
    }
}
