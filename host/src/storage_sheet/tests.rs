//! Parsers on captured text, arrays in a tree like /sys, and the sheet.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use procfs::process::{MountInfo, MountInfos};
use procfs::FromBufRead;

use super::*;

fn mount(line: &str) -> MountInfo {
    MountInfos::from_buf_read(format!("1 0 {line}\n").as_bytes()).unwrap().0.remove(0)
}

/// The sheet of a file `/m/run/file` on this mount, with these attributes and tools (by their first words).
fn queried(line: &str, attributes: &[(&str, &[u8])], tools: &[(&str, &str)]) -> FoundParameters {
    let attribute = |name: &str| attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_vec());
    let tool = |words: &[&str]| {
        let line = words.join(" ");
        let text = tools.iter().find(|(begin, _)| line.starts_with(begin)).map(|(_, text)| (*text).to_owned());
        text.ok_or_else(|| "cannot be run: No such file or directory".to_owned())
    };
    let mut found = FoundParameters::default();
    let target = network::Target::of(Path::new("/m/run/file"), &mount(line));
    network::query(&target, &Access { attribute: &attribute, tool: &tool }, &mut found);
    found
}

fn shown(found: &FoundParameters) -> Vec<String> {
    found.known.iter().map(|p| format!("{}: {}", p.key.name(), p.text())).collect()
}

fn number(found: &FoundParameters, key: StorageKey) -> Option<u64> {
    found.known.iter().find(|p| p.key == key)?.number
}

#[test]
fn nfs_tells_its_transfers_and_its_server() {
    let line = "0:44 / /m rw - nfs4 fileserver:/export rw,vers=4.2,rsize=524288,wsize=1048576,proto=tcp,nconnect=4,addr=10.0.0.7";
    let found = queried(line, &[], &[]);
    let expected = [
        "block: wsize 1 MiB, rsize 512 KiB",
        "servers: 1: fileserver (10.0.0.7)",
        "network: tcp, 4 connections",
        "version: NFS 4.2",
    ];
    assert_eq!(shown(&found), expected);
    assert_eq!(number(&found, StorageKey::Block), Some(1 << 20));
    // An address of version 6 has colons.
    let found = queried("0:44 / /m rw - nfs [fd00::7]:/export rw,wsize=65536,rsize=65536,addr=fd00::7", &[], &[]);
    assert_eq!(shown(&found), ["block: wsize 64 KiB", "servers: 1: [fd00::7] (fd00::7)"]);
}

const GLUSTER: &str =
    "\nVolume Name: beff\nType: Distribute\nVolume ID: 1a2b\nStatus: Started\nSnapshot Count: 0\nNumber of Bricks: 3\n\
    Transport-type: tcp\nBricks:\nBrick1: host1:/b/0\nBrick2: host2:/b/1\nBrick3: host1:/b/2\nOptions Reconfigured:\n\
    storage.fips-mode-rchecksum: on\nnfs.disable: on\n";

#[test]
fn gluster_tells_its_bricks() {
    let mounted = "0:44 / /m rw - fuse.glusterfs host1:/beff/sub rw,user_id=0";
    let ask =
        |text: &str| queried(mounted, &[], &[("gluster --mode=script --remote-host=host1 volume info beff", text)]);
    let expected = [
        "stripe: none",
        "stripes: 1",
        "servers: 2: host1, host2",
        "redundancy: none",
        "targets: 3 bricks",
        "network: tcp",
        "note: storage.fips-mode-rchecksum: on, nfs.disable: on",
    ];
    assert_eq!(shown(&ask(GLUSTER)), expected);
    for (kind, bricks, sharded, redundancy, stripes, targets) in [
        ("Replicate", "1 x 3 = 3", false, "3 replicas", 1, 3),
        ("Replicate", "1 x (2 + 1) = 3", false, "2 replicas, 1 arbiter", 1, 3),
        ("Distributed-Replicate", "2 x 3 = 6", false, "3 replicas", 1, 6),
        ("Distributed-Replicate", "2 x 3 = 6", true, "3 replicas", 2, 6),
        ("Disperse", "1 x (4 + 2) = 6", false, "erasure code, 4 + 2", 4, 6),
        ("Distributed-Disperse", "2 x (4 + 2) = 12", true, "erasure code, 4 + 2", 8, 12),
        ("Distribute", "3", true, "none", 3, 3),
    ] {
        let shard = if sharded { "features.shard: on\nfeatures.shard-block-size: 128MB\n" } else { "" };
        let text = GLUSTER.replace("Type: Distribute", &format!("Type: {kind}"));
        let text = text.replace("Number of Bricks: 3", &format!("Number of Bricks: {bricks}")) + shard;
        let found = ask(&text);
        assert!(shown(&found).contains(&format!("redundancy: {redundancy}")), "{kind} {bricks}: {found:?}");
        assert_eq!(number(&found, StorageKey::Stripes), Some(stripes), "{kind} {bricks} {sharded}");
        assert_eq!(number(&found, StorageKey::Targets), Some(targets), "{kind} {bricks}");
        assert_eq!(number(&found, StorageKey::Stripe), sharded.then_some(128 << 20), "{kind} {bricks}");
    }
}

#[test]
fn gluster_without_its_tool_tells_the_place_of_the_file() {
    let mounted = "0:44 / /m rw - fuse.glusterfs host1:/beff rw";
    let place: &[u8] =
        b"(<DISTRIBUTE:beff-dht> (<REPLICATE:beff-replicate-0> <POSIX(/b/0):h1:/b/0/f> <POSIX(/b/1):h2:/b/1/f>))\0";
    let found = queried(mounted, &[("trusted.glusterfs.pathinfo", place)], &[]);
    assert_eq!(shown(&found), ["stripes: 1", "redundancy: 2 replicas"]);
    assert_eq!(found.problems, ["`gluster --mode=script` cannot be run: No such file or directory"]);
    let place: &[u8] = b"(<DISTRIBUTE:beff-dht> <POSIX(/b/0):h1:/b/0/f>)";
    let found = queried(mounted, &[("trusted.glusterfs.pathinfo", place)], &[]);
    assert_eq!(shown(&found), ["stripes: 1", "redundancy: none"]);
}

#[test]
fn moosefs_tells_its_goal() {
    let mounted = "0:44 / /m rw - fuse.mfs mfs#10.77.0.1:9421 rw";
    let info = "/m/run/file:\n\tchunk 0: 0000000000000001_00000001 / (id:1 ver:1)\n\t\tcopy 1: 10.77.0.2:9422 (status:VALID)\n\
                \t\tcopy 2: 10.77.0.3:9422 (status:VALID)\n\t\tcopy 3: 10.77.0.4:9422 (status:INVALID)\n";
    let tools = [
        ("mfsgetgoal /m/run/file", "/m/run/file: 2\n"),
        ("mfsgetsclass /m/run/file", "/m/run/file: '2CP'\n"),
        ("mfsfileinfo /m/run/file", info),
    ];
    let found = queried(mounted, &[], &tools);
    let expected = [
        "block: 64 KiB",
        "stripe: 64 MiB",
        "redundancy: 2 copies (goal 2), class 2CP",
        "servers: master 10.77.0.1:9421, chunk servers unknown",
        "note: first chunk on 10.77.0.2, 10.77.0.3",
    ];
    assert_eq!(shown(&found), expected);
    // Without its tools, only what is fixed.
    let fixed = [expected[0], expected[1], expected[3]];
    assert_eq!(shown(&queried(mounted, &[], &[])), fixed);
    let one = queried(mounted, &[], &[("mfsgetgoal", "/m/a: b: 1\n"), ("mfsgetsclass", "/m/a: b: 1\n")]);
    assert_eq!(shown(&one)[2], "redundancy: none, 1 copy (goal 1)");
}

const GETSTRIPE: &str = "/m/run/file\nlmm_stripe_count:  4\nlmm_stripe_size:   1048576\nlmm_pattern:       raid0\n\
    lmm_layout_gen:    0\nlmm_stripe_offset: 2\n\tobdidx\t\t objid\t\t objid\t\t group\n\t     2\t             3\t          0x3\t             0\n\n";
const COMPOSITE: &str = "/m/run/file\n  lcm_layout_gen:    5\n  lcm_mirror_count:  2\n  lcm_entry_count:   2\n    lcme_id:             1\n\
    \x20   lcme_extent.e_start: 0\n    lcme_extent.e_end:   4194304\n      lmm_stripe_count:  1\n      lmm_stripe_size:   1048576\n\
    \x20   lcme_id:             2\n    lcme_extent.e_end:   EOF\n      lmm_stripe_count:  -1\n      lmm_stripe_size:   4194304\n";

#[test]
fn lustre_tells_its_stripes() {
    let mounted = "0:44 / /m rw - lustre 10.0.0.1@o2ib:/work rw,flock";
    let osts = "OBDS:\n0: work-OST0000_UUID ACTIVE\n1: work-OST0001_UUID ACTIVE\n";
    let found = queried(mounted, &[], &[("lfs getstripe /m/run/file", GETSTRIPE), ("lfs osts /m/run", osts)]);
    let (size, count) = (number(&found, StorageKey::Stripe), number(&found, StorageKey::Stripes));
    assert_eq!((size, count, number(&found, StorageKey::Targets)), (Some(1 << 20), Some(4), Some(2)));
    let found = queried(mounted, &[], &[("lfs getstripe", COMPOSITE)]);
    let expected = ["stripe: 1 MiB, then 4 MiB", "stripes: 1, then all targets", "redundancy: 2 mirrors of the file"];
    assert_eq!(shown(&found), expected);
    assert_eq!((number(&found, StorageKey::Stripe), number(&found, StorageKey::Stripes)), (None, None));
    // Without the tool: magic, pattern, object, stripe size, count.
    let attribute = |magic: u32, size: u32, count: u16| {
        let mut bytes = [magic, 1, 7, 0, 0, 0, size].map(u32::to_le_bytes).concat();
        bytes.extend(count.to_le_bytes());
        bytes
    };
    for (bytes, expected) in [
        (attribute(0x0BD1_0BD0, 1 << 22, 8), (Some(1 << 22), Some(8))),
        (attribute(0x0BD3_0BD0, 1 << 16, u16::MAX), (Some(1 << 16), None)),
        (attribute(0x0BD6_0BD0, 1 << 16, 3), (None, None)),
        (attribute(0x0BD3_0BD0, 1 << 16, 3)[..29].to_vec(), (None, None)),
        (Vec::new(), (None, None)),
    ] {
        let found = queried(mounted, &[("lustre.lov", &bytes)], &[]);
        assert_eq!((number(&found, StorageKey::Stripe), number(&found, StorageKey::Stripes)), expected, "{bytes:?}");
    }
}

#[test]
fn beegfs_gpfs_and_ceph_tell_their_stripes() {
    let entry = "Entry type: file\nEntryID: 0-5F9A-1\nMetadata node: meta01 [ID: 1]\nStripe pattern details:\n+ Type: Buddy Mirror\n\
                 + Chunksize: 512K\n+ Number of storage targets: desired: 4; actual: 3\n+ Storage targets:\n  + 1 @ storage01 [ID: 1]\n";
    let found =
        queried("0:44 / /m rw - beegfs beegfs_nodev rw", &[], &[("beegfs-ctl --getentryinfo /m/run/file", entry)]);
    assert_eq!(shown(&found), ["stripe: 512 KiB", "stripes: 3", "redundancy: 2 copies (buddy mirror)"]);
    let flags = "flag                value                    description\n------------------- -------- ------\n \
                 -B                 262144                   Block size (system pool)\n                    4194304                  \
                 Block size (other pools)\n -m                 2                        Default number of metadata replicas\n -r         \
                 1                        Default number of data replicas\n -V                 22.00 (5.0.4.0)          File system version\n";
    let found = queried("0:44 / /m rw - gpfs gpfs0 rw,relatime", &[], &[("mmlsfs gpfs0 -B -m -r -V", flags)]);
    let expected = [
        "block: 4 MiB",
        "stripe: 4 MiB",
        "redundancy: none in GPFS (1 data replica); that of its disks unknown",
        "version: 22.00",
    ];
    assert_eq!(shown(&found), expected);
    let layout: &[u8] = b"stripe_unit=4194304 stripe_count=2 object_size=8388608 pool=cephfs_data";
    let found = queried("0:44 / /m rw - ceph 10.0.0.1:6789:/ rw", &[("ceph.file.layout", layout)], &[]);
    assert_eq!(shown(&found), ["stripe: 4 MiB", "stripes: 2", "note: objects of 8 MiB, pool cephfs_data"]);
}

#[test]
fn what_a_tool_prints_never_breaks_the_sheet() {
    let texts = [
        "",
        "\n",
        ":",
        "Type:",
        "Type: Disperse\nNumber of Bricks: 1 x (",
        "lmm_stripe_size: x",
        "-B",
        "a x b = c",
        "+ Type: ",
    ];
    for text in texts {
        for fs in
            ["fuse.glusterfs h:/v", "fuse.mfs mfs#h:1", "lustre m:/f", "beegfs none", "gpfs g", "nfs4 x", "ceph :/"]
        {
            let tools: Vec<(&str, &str)> =
                ["gluster", "mfs", "lfs", "beegfs", "mmlsfs"].map(|tool| (tool, text)).into();
            let found = queried(&format!("0:44 / /m rw - {fs} rw"), &[("ceph.file.layout", text.as_bytes())], &tools);
            let sheet = sheet(found, &[], "x");
            assert!(sheet.iter().filter(|p| p.key.is_required()).count() == 6, "{fs} {text:?}");
        }
    }
}

struct Sys(tempfile::TempDir);

impl Sys {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path: PathBuf = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A device `name` with these files.
    fn device(self, name: &str, files: &[(&str, &str)]) -> Self {
        let own = files.iter().fold(self, |sys, (file, text)| sys.file(&format!("devices/{name}/{file}"), text));
        let class = own.0.path().join("class/block");
        fs::create_dir_all(&class).unwrap();
        fs::create_dir_all(own.0.path().join("devices").join(name)).unwrap();
        symlink(own.0.path().join("devices").join(name), class.join(name)).unwrap();
        own
    }

    fn query(&self, line: &str, levels: &[&[&str]]) -> FoundParameters {
        let levels: Vec<Vec<String>> = levels.iter().map(|l| l.iter().map(|n| (*n).to_owned()).collect()).collect();
        let mut found = FoundParameters::default();
        devices::query(self.0.path(), &mount(line), &levels, &mut found);
        found
    }
}

#[test]
fn md_tells_its_level() {
    for (level, disks, layout, degraded, redundancy, stripes) in [
        ("raid0", "4", "0", "0", "none, RAID 0 of 4 devices", 4),
        ("raid1", "2", "0", "1", "RAID 1 of 2 devices, degraded: 1 missing", 1),
        ("raid5", "4", "2", "0", "RAID 5 of 4 devices", 3),
        ("raid6", "6", "2", "0", "RAID 6 of 6 devices", 4),
        ("raid10", "4", "258", "0", "RAID 10 of 4 devices", 2),
        ("raid10", "4", "513", "0", "RAID 10 of 4 devices", 2),
        ("linear", "2", "0", "0", "none, linear of 2 devices", 1),
    ] {
        let files = [
            ("md/level", level),
            ("md/raid_disks", disks),
            ("md/chunk_size", "524288"),
            ("md/layout", layout),
            ("md/degraded", degraded),
        ];
        let sys = Sys::new().device("md0", &files).device("sda", &[]).device("sdb", &[]);
        let found = sys.query("9:0 / /m rw - ext4 /dev/md0 rw", &[&["md0"], &["sda", "sdb"]]);
        let all = shown(&found);
        assert!(all.contains(&format!("redundancy: {redundancy}")), "{all:?}");
        assert!(all.contains(&"devices: sda, sdb".to_owned()) && all.contains(&"servers: none (local)".to_owned()));
        let numbers = [StorageKey::Stripe, StorageKey::Stripes].map(|key| number(&found, key));
        let stripe = (stripes > 1).then_some(512 << 10);
        assert_eq!(numbers, [stripe, Some(stripes)], "{level} {layout}");
    }
}

/// Stripe size, stripe count and redundancy of a mapped device whose parts have these names.
fn mapped(uuid: &str, parts: &[&str], minimum: &str, optimal: &str) -> (Option<u64>, Option<u64>, String) {
    let files = [("dm/uuid", uuid), ("queue/minimum_io_size", minimum), ("queue/optimal_io_size", optimal)];
    let sys = Sys::new().device("dm-0", &files);
    let sys =
        (1..).zip(parts).fold(sys, |sys, (n, part)| sys.file(&format!("devices/dm-0/slaves/dm-{n}/dm/name"), part));
    let found = sys.query("253:0 / /m rw - xfs /dev/mapper/v-l rw", &[&["dm-0"], &["sda", "sdb"]]);
    let redundancy = found.known.iter().find(|p| p.key == StorageKey::Redundancy).unwrap().text().to_owned();
    (number(&found, StorageKey::Stripe), number(&found, StorageKey::Stripes), redundancy)
}

#[test]
fn a_logical_volume_tells_its_stripes_and_copies() {
    let lvm = |parts: &[&str], minimum: &str, optimal: &str| mapped("LVM-abc\n", parts, minimum, optimal);
    let expected = |stripe, stripes, redundancy: &str| (stripe, Some(stripes), redundancy.to_owned());
    let plain = ["crypt-a", "crypt-b"];
    let striped = expected(Some(64 << 10), 2, "none, logical volume striped over 2 devices");
    assert_eq!(lvm(&plain, "65536", "131072"), striped);
    let raid: Vec<String> = (0..5).flat_map(|n| [format!("v-l_rimage_{n}"), format!("v-l_rmeta_{n}")]).collect();
    let raid: Vec<&str> = raid.iter().map(String::as_str).collect();
    let raid6 = expected(Some(64 << 10), 3, "logical volume of 5 devices, 2 of them redundant");
    assert_eq!(lvm(&raid, "65536", "196608"), raid6);
    assert_eq!(lvm(&raid[..4], "512", "0"), expected(None, 1, "logical volume of 2 copies"));
    assert_eq!(
        lvm(&["v-l_mimage_0", "v-l_mimage_1", "v-l_mlog"], "512", "0"),
        expected(None, 1, "logical volume of 2 copies")
    );
    // Linear, multipath, encrypted and thin: the limits are those of the devices below, or of chunks of the pool.
    let none = expected(None, 1, "none visible");
    assert_eq!(lvm(&["a"], "65536", "131072"), none);
    assert_eq!(lvm(&plain, "512", "0"), none);
    assert_eq!(lvm(&["v-p_tdata", "v-p_tmeta"], "65536", "65536"), none);
    assert_eq!(lvm(&plain, "65536", "524288"), none);
    assert_eq!(mapped("mpath-3600\n", &plain, "65536", "131072"), none);
    assert_eq!(mapped("CRYPT-LUKS2-1\n", &plain, "65536", "131072"), none);
}

/// LVM on two arrays: the stripes of the upper layer, the redundancy of all.
#[test]
fn layers_are_all_named() {
    let array = [("md/level", "raid6"), ("md/raid_disks", "10"), ("md/chunk_size", "131072")];
    let volume = [("dm/uuid", "LVM-a"), ("queue/minimum_io_size", "1048576"), ("queue/optimal_io_size", "2097152")];
    let sys = Sys::new().device("md0", &array).device("dm-0", &volume);
    let sys = sys.file("devices/dm-0/slaves/md0", "").file("devices/dm-0/slaves/md1", "");
    let found = sys.query("253:0 / /m rw - xfs /dev/dm-0 rw", &[&["dm-0"], &["md0"]]);
    assert_eq!(number(&found, StorageKey::Stripe), Some(1 << 20));
    let redundancy = "redundancy: none, logical volume striped over 2 devices; RAID 6 of 10 devices";
    assert!(shown(&found).contains(&redundancy.to_owned()), "{:?}", shown(&found));
}

#[test]
fn btrfs_tells_its_profile() {
    for (profile, redundancy, stripe, stripes) in [
        ("single", "none, single (btrfs of 2 devices)", None, Some(1)),
        ("raid0", "none, RAID 0 (btrfs of 2 devices)", Some(64 << 10), Some(2)),
        ("raid1", "RAID 1, 2 copies (btrfs of 2 devices)", None, Some(1)),
        ("raid5", "RAID 5 (btrfs of 2 devices)", None, Some(1)),
    ] {
        let sys = Sys::new().device("sda", &[]).device("sdb", &[]);
        let sys =
            sys.file("fs/btrfs/features/x", "").file("fs/btrfs/u1/devices/sda", "").file("fs/btrfs/u1/devices/sdb", "");
        let sys = sys
            .file(&format!("fs/btrfs/u1/allocation/data/{profile}/used_bytes"), "1")
            .file("fs/btrfs/u1/allocation/data/flags", "1");
        let found = sys.query("0:33 / /m rw - btrfs /dev/sda rw", &[&["sda", "sdb"]]);
        assert!(shown(&found).contains(&format!("redundancy: {redundancy}")), "{:?}", shown(&found));
        assert_eq!((number(&found, StorageKey::Stripe), number(&found, StorageKey::Stripes)), (stripe, stripes));
    }
}

#[test]
fn a_plain_disk_has_one_stripe_and_an_aligned_xfs_tells_its_array() {
    let sys = Sys::new().device("sda", &[]);
    let found = sys.query("8:0 / /m rw - ext4 /dev/sda rw", &[&["sda"]]);
    let expected = ["redundancy: none visible", "stripes: 1", "stripe: none", "servers: none (local)", "devices: sda"];
    assert_eq!(shown(&found), expected);
    let found = sys.query("8:0 / /m rw - xfs /dev/sda rw,sunit=512,swidth=2048", &[&["sda"]]);
    assert_eq!([StorageKey::Stripe, StorageKey::Stripes].map(|key| number(&found, key)), [Some(256 << 10), Some(4)]);
    let found = sys.query("8:0 / /m rw - xfs /dev/sda rw,sunit=0,swidth=0", &[&["sda"]]);
    assert_eq!(number(&found, StorageKey::Stripe), None);
}

/// Files in memory have no servers and no stripes.
#[test]
fn files_in_memory_are_not_distributed() {
    let mut found = FoundParameters::default();
    found.add_page_cache("tmpfs", 8 << 30);
    assert_eq!(
        shown(&found),
        ["stripe: none", "stripes: 1", "servers: none (local)", "cache: none (files in memory)", "redundancy: none"]
    );
    assert_eq!(number(&found, StorageKey::Cache), None);
}

#[test]
fn what_is_given_precedes_what_was_queried() {
    let mut found = FoundParameters::default();
    found.add_count(StorageKey::Stripes, Some(1), "xattr x");
    found.add_size(StorageKey::Block, Some(4096), "statvfs");
    found.add_page_cache("ext4", 8 << 30);
    found.problems.push("`lfs getstripe` failed: exit status: 1".into());
    let given = [
        (StorageKey::Stripes, "4"),
        (StorageKey::Cache, "1.5G"),
        (StorageKey::Block, "4K"),
        (StorageKey::Note, "quiet"),
    ];
    let given = given.map(|(key, text)| (key, text.to_owned()));
    let text = |p: &StorageParameter| format!("{}: {} ({})", p.key.label(), p.text(), p.source);
    let sheet: Vec<String> = sheet(found, &given, "lustre").iter().map(text).collect();
    let expected = [
        "block size: 4 KiB (given)",
        "stripe size: unknown (`lfs getstripe` failed: exit status: 1)",
        "stripe count: 4 (given; queried: 1, xattr x)",
        "servers: unknown (`lfs getstripe` failed: exit status: 1)",
        "cache: 1.5 GiB (given; queried: up to 8 GiB (page cache), memory of the hosts, as far as their control groups permit)",
        "redundancy: unknown (`lfs getstripe` failed: exit status: 1)",
        "note: quiet (given)",
    ];
    assert_eq!(sheet, expected);
}

#[test]
fn given_values_are_checked() {
    let parse = |key: StorageKey, text: &str| key.parse_value(text);
    assert_eq!(parse(StorageKey::Cache, "0"), Ok(("0 B".into(), Some(0))));
    assert_eq!(parse(StorageKey::Stripes, "12"), Ok(("12".into(), Some(12))));
    assert_eq!(parse(StorageKey::Servers, "4 OSS"), Ok(("4 OSS".into(), None)));
    for (key, text) in
        [(StorageKey::Block, "0"), (StorageKey::Stripe, "x"), (StorageKey::Stripes, "0"), (StorageKey::Stripes, "-1")]
    {
        assert!(parse(key, text).is_err(), "{key:?} {text}");
    }
}

/// On the file system of the source: everything that a sheet must state is there, from /sys and system calls alone.
#[test]
fn a_file_here_has_a_sheet() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let path = directory.path().join("file");
    let file = File::create(&path).unwrap();
    let found = query(&path, &file);
    let block = found.known.iter().find(|p| p.key == StorageKey::Block).unwrap();
    assert!(block.number.is_some_and(u64::is_power_of_two), "{block:?}");
    let sheet = sheet(found, &[], "here");
    assert_eq!(sheet.iter().filter(|p| p.key.is_required()).count(), 6);
}
