use std::os::unix::fs::symlink;

use procfs::process::MountInfos;
use procfs::FromBufRead;

use super::*;

/// A /sys with block devices, created device by device.
struct FakeSys(tempfile::TempDir);

impl FakeSys {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["dev/block", "class/block", "devices"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        Self(root)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.path().join("devices").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A device at `place` below devices/, with `reads` sectors read so far.
    fn device(&self, place: &str, number: &str, reads: u64) {
        let directory = self.path().join("devices").join(place);
        fs::create_dir_all(&directory).unwrap();
        let name = directory.file_name().unwrap();
        symlink(&directory, self.path().join("dev/block").join(number)).unwrap();
        symlink(&directory, self.path().join("class/block").join(name)).unwrap();
        self.count(place, reads, 0);
    }

    fn count(&self, place: &str, reads: u64, in_flight: u64) {
        self.file(
            &format!("{place}/stat"),
            &format!("  7 1 {reads} 5 9 2 {} 4 {in_flight} 3 3 0 0 0 0 0 0\n", 2 * reads),
        );
    }

    fn slaves(&self, place: &str, names: &[&str]) {
        for name in names {
            self.file(&format!("{place}/slaves/{name}"), "");
        }
    }

    fn chain(&self, mounts: &str) -> Result<DeviceChain, String> {
        let mounts = MountInfos::from_buf_read(mounts.as_bytes()).unwrap().0;
        build_chain(&SystemRoots { sys: self.path(), mounts: &mounts }, mounts.last().unwrap())
    }

    fn levels(&self, mounts: &str) -> Vec<Vec<String>> {
        self.chain(mounts).unwrap().levels
    }
}

const ROOT_MOUNT: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n";

#[test]
fn a_partition_counts_for_itself_and_a_bind_mount_is_its_file_system() {
    let sys = FakeSys::new();
    sys.device("sda", "8:0", 100);
    sys.file("sda/sda1/partition", "1\n");
    sys.device("sda/sda1", "8:1", 10);
    assert_eq!(sys.levels(ROOT_MOUNT), [["sda1"]]);
    assert_eq!(sys.levels("1 0 8:1 /home/data /scratch rw - ext4 /dev/sda1 rw\n"), [["sda1"]]);
}

#[test]
fn a_loop_device_leads_to_the_disk_of_its_file_and_its_partition_too() {
    let sys = FakeSys::new();
    sys.device("sda", "8:0", 100);
    sys.device("loop3", "7:3", 10);
    sys.file("loop3/loop/backing_file", "/images/disk one.img\n");
    sys.file("loop3/loop3p1/partition", "1\n");
    sys.device("loop3/loop3p1", "259:0", 10);
    let mounts = "1 0 0:9 / / rw - nfs4 host:/x rw\n2 1 8:0 / /images rw - xfs /dev/sda rw\n";
    assert_eq!(sys.levels(&format!("{mounts}3 1 7:3 / /mnt rw - ext4 /dev/loop3 rw\n")), [["loop3"], ["sda"]]);
    assert_eq!(sys.levels(&format!("{mounts}3 1 259:0 / /mnt rw - ext4 /dev/loop3p1 rw\n")), [["loop3p1"], ["sda"]]);
    sys.device("loop4", "7:4", 10);
    sys.file("loop4/loop/backing_file", "/mnt/inner.img\n");
    let nested = format!("{mounts}3 1 7:3 / /mnt rw - ext4 /dev/loop3 rw\n4 3 7:4 / /deep rw - ext4 /dev/loop4 rw\n");
    assert_eq!(sys.levels(&nested), [["loop4"], ["loop3"], ["sda"]]);
}

#[test]
fn a_loop_device_on_itself_ends() {
    let sys = FakeSys::new();
    sys.device("loop0", "7:0", 10);
    sys.file("loop0/loop/backing_file", "/x.img\n");
    assert_eq!(sys.levels("1 0 7:0 / / rw - ext4 /dev/loop0 rw\n"), [["loop0"]]);
}

#[test]
fn array_members_are_one_level_at_any_depth() {
    let sys = FakeSys::new();
    sys.device("sda", "8:0", 100);
    sys.file("sda/sda2/partition", "2\n");
    sys.device("sda/sda2", "8:2", 30);
    sys.device("sdb", "8:16", 7);
    sys.device("loop0", "7:0", 10);
    sys.file("loop0/loop/backing_file", "/data/member.img\n");
    sys.device("md0", "9:0", 10);
    sys.slaves("md0", &["loop0", "sda2"]);
    sys.device("dm-0", "253:0", 10);
    sys.slaves("dm-0", &["md0"]);
    let mounts = "1 0 8:16 / /data rw - xfs /dev/sdb rw\n2 1 253:0 / /vol rw - xfs /dev/mapper/vol rw\n";
    let chain = sys.chain(mounts).unwrap();
    assert_eq!(chain.levels, [vec!["dm-0"], vec!["md0"], vec!["loop0", "sda2"], vec!["sda2", "sdb"]]);
    assert_eq!(chain.incomplete_reason, None);
    let before = chain.snapshot();
    sys.count("sdb", 17, 0);
    sys.count("sda/sda2", 33, 0);
    let mut traffic = chain.zero_traffic();
    assert!(add_difference(&before, &chain.snapshot(), &mut traffic));
    assert!(add_difference(&before, &chain.snapshot(), &mut traffic));
    assert_eq!(traffic[0].read_bytes, 0);
    let bottom = &traffic[3];
    assert_eq!((bottom.device.as_str(), bottom.read_bytes, bottom.written_bytes), ("sda2+sdb", 26 * 512, 52 * 512));
}

#[test]
fn file_systems_without_device_have_a_reason() {
    let sys = FakeSys::new();
    let reason = |line: &str| sys.chain(line).unwrap_err();
    assert_eq!(reason("1 0 0:9 / / rw - nfs4 host:/x rw\n"), "nfs4 is the client of a server: no local device");
    assert_eq!(reason("1 0 0:9 / / rw - lustre mgs:/x rw\n"), "lustre is the client of a server: no local device");
    let mergerfs = "1 0 0:9 / / rw - fuse.mergerfs a:b rw\n";
    assert_eq!(reason(mergerfs), "fuse.mergerfs is the client of a server: no local device");
    assert_eq!(reason("1 0 0:9 / / rw - overlay overlay rw\n"), "overlay: the device below is not visible");
    assert_eq!(reason("1 0 0:9 / / rw - zfs pool/set rw\n"), "zfs: the device below is not visible");
    assert_eq!(reason("1 0 0:9 / / rw - tmpfs none rw\n"), "tmpfs lives in memory");
    assert!(reason(ROOT_MOUNT).contains("8:1"));
}

#[test]
fn a_backing_file_without_device_leaves_a_named_gap() {
    let sys = FakeSys::new();
    sys.device("loop0", "7:0", 10);
    sys.file("loop0/loop/backing_file", "/x.img\n");
    let chain = sys.chain("1 0 0:9 / / rw - tmpfs none rw\n2 1 7:0 / /m rw - ext4 /dev/loop0 rw\n").unwrap();
    assert_eq!(chain.levels, [["loop0"]]);
    assert_eq!(chain.incomplete_reason.as_deref(), Some("below loop0: tmpfs lives in memory"));
}

#[test]
fn devices_without_counters_are_skipped() {
    let sys = FakeSys::new();
    sys.device("nvme0n1", "259:0", 10);
    sys.file("nvme0n1/stat", "0 0 0 0 0 0 0 0 0 0 0\n");
    let mount = "1 0 259:0 / / rw - xfs /dev/nvme0n1 rw\n";
    assert!(sys.chain(mount).unwrap_err().contains("nvme0n1 does not count"));
    sys.count("nvme0n1", 4, 0);
    assert_eq!(sys.levels(mount), [["nvme0n1"]]);
    sys.file("nvme0n1/queue/iostats", "0\n");
    assert!(sys.chain(mount).unwrap_err().contains("iostats"));
    // Only the level without counters is skipped.
    sys.device("dm-0", "253:0", 10);
    sys.slaves("dm-0", &["nvme0n1"]);
    let chain = sys.chain("1 0 253:0 / / rw - xfs /dev/mapper/v rw\n").unwrap();
    assert_eq!(chain.levels, [["dm-0"]]);
    assert!(chain.incomplete_reason.unwrap().contains("iostats"));
}

#[test]
fn a_device_that_is_gone_makes_the_traffic_unknown() {
    let sys = FakeSys::new();
    sys.device("sda", "8:1", 10);
    let chain = sys.chain(ROOT_MOUNT).unwrap();
    let before = chain.snapshot();
    fs::remove_file(sys.path().join("devices/sda/stat")).unwrap();
    assert!(!add_difference(&before, &chain.snapshot(), &mut chain.zero_traffic()));
}

#[test]
fn settling_waits_a_limited_time_for_requests_in_flight() {
    let sys = FakeSys::new();
    sys.device("sda", "8:1", 10);
    let chain = sys.chain(ROOT_MOUNT).unwrap();
    assert_eq!(chain.settled_snapshot(), chain.snapshot());
    sys.count("sda", 10, 1);
    let begin = Instant::now();
    let _ = chain.settled_snapshot();
    assert!(begin.elapsed() >= SETTLE_TIMEOUT);
}

#[test]
fn this_host_has_a_device_chain() {
    match find_device_chain(Path::new(".")) {
        Ok(chain) => {
            assert!(chain.snapshot().0.is_some(), "{chain:?}");
            assert!(chain.zero_traffic().iter().all(|t| !t.device.is_empty()));
        }
        Err(reason) => assert!(reason.len() > 5, "{reason}"),
    }
}
