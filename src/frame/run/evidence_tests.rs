use std::io::Write;

use beff_backends::{AccessKind, CallForm, FilePath, RankPartition};

use super::*;

/// Chunks of `chunk` bytes, 4 per call, of rank `rank` of `ranks`.
fn pattern(rank: u64, ranks: u64, chunk: u64, strided: bool) -> AccessPattern {
    AccessPattern {
        kind: AccessKind::Independent,
        chunk_bytes: chunk,
        chunks_per_call: 4,
        base_bytes: 1000 + rank * if strided { chunk } else { 1 << 20 },
        stride_bytes: if strided { ranks * chunk } else { chunk },
        origin_bytes: 1000,
        rank,
        ranks,
        rank_distance_bytes: if strided { chunk } else { 1 << 20 },
        partition: RankPartition::Equal,
        form: CallForm::default(),
        stream_bytes: 0,
        max_calls: 1 << 40,
        order: None,
        mix: None,
    }
}

fn file_of(bytes: usize) -> tempfile::NamedTempFile {
    // In the source directory, because /tmp may be in memory.
    let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    file.write_all(&vec![3; bytes]).unwrap();
    file.as_file().sync_all().unwrap();
    file
}

fn site() -> StorageSite {
    StorageSite::survey(&Comm::comm_self(), Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_range_of_strided_chunks_is_that_of_all_ranks() {
    let target_pattern = pattern(2, 3, 100, true);
    let target = ObservedFile { path: &FilePath::unbacked("x"), pattern: &target_pattern, calls: 5 };
    assert!(!target.has_own_range());
    assert_eq!(call_range(&target_pattern.for_rank(0), 0, 5), 1000..1000 + 5 * 4 * 300);
    let own = pattern(2, 3, 100, false);
    assert!(ObservedFile { pattern: &own, ..target }.has_own_range());
    assert_eq!(call_range(&own, 2, 5), 1000 + (2 << 20) + 800..1000 + (2 << 20) + 2000);
    assert_eq!(call_range(&own, 0, u64::MAX).end, u64::MAX, "no overflow");
}

#[test]
fn slices_cover_the_calls_and_end_with_the_file() {
    let file = file_of(100_000);
    let slices = residency_slices(file.as_file(), &pattern(0, 1, 250, false), 1 << 40);
    // 99 calls begin before the end of the file.
    assert!(slices.len() < 30 && slices.last().unwrap().end_call >= 99, "{slices:?}");
    assert!(slices.windows(2).all(|pair| pair[0].end_call < pair[1].end_call));
}

#[test]
fn residency_covers_the_calls_that_were_made() {
    let slice = |end_call, bytes| ResidencySlice { end_call, resident: Ok((bytes, ResidencySource::CacheStat)) };
    let slices = [slice(1, 10), slice(2, 0), slice(10, 80)];
    for (calls, expected) in [(0, 0), (1, 10), (2, 10), (4, 30), (10, 90), (99, 90)] {
        assert_eq!(resident_bytes_of_calls(&slices, calls), Ok(expected), "{calls}");
    }
    let unknown = [slice(1, 10), ResidencySlice { end_call: 5, resident: Err("why".into()) }];
    assert_eq!(resident_bytes_of_calls(&unknown, 1), Ok(10));
    assert_eq!(resident_bytes_of_calls(&unknown, 2), Err("why".into()));
}

#[test]
fn residency_of_a_file_is_measured_before_and_after_dropping() {
    let file = file_of(1 << 20);
    let (site, own) = (site(), Comm::comm_self());
    let contiguous = AccessPattern { base_bytes: 0, ..pattern(0, 1, 4096, false) };
    let target = ObservedFile { path: &FilePath::of(file.path()).unwrap(), pattern: &contiguous, calls: 64 };
    let look = |calls| {
        let mut watch = StorageObservation::begin(&site, &own, &target);
        watch.resume(&site);
        watch.pause(&site);
        watch.end(&site, &own, calls).unwrap()
    };
    let evidence = look(32);
    assert_eq!(evidence.devices.is_empty(), site.chain.is_err(), "{evidence:?}");
    if site.residency_unavailable.is_some() {
        assert_eq!(evidence.resident_before_bytes, None);
        assert!(evidence.residency_source.len() > 10, "{evidence:?}");
        return;
    }
    assert_eq!(evidence.range_bytes, 512 << 10);
    assert_eq!(evidence.resident_before_bytes, Some(512 << 10), "{evidence:?}");
    assert_eq!(evidence.resident_after_bytes, Some(512 << 10));
    drop_pages(&site, &own, &target, "posix").unwrap();
    let evidence = look(64);
    assert_eq!(evidence.range_bytes, 1 << 20);
    assert!(evidence.resident_before_bytes.unwrap() <= RESIDUAL_BYTES, "{evidence:?}");
}

#[test]
fn a_file_that_cannot_be_opened_is_not_known() {
    let (site, own) = (site(), Comm::comm_self());
    let contiguous = pattern(0, 1, 4096, false);
    let target = ObservedFile { path: &FilePath::unbacked("/no/such/file"), pattern: &contiguous, calls: 64 };
    assert_eq!(drop_pages(&site, &own, &target, "posix").unwrap(), None);
    let evidence = StorageObservation::begin(&site, &own, &target).end(&site, &own, 64).unwrap();
    assert_eq!((evidence.resident_before_bytes, evidence.range_bytes), (None, 0));
    assert!(
        site.residency_unavailable.is_some() || evidence.residency_source.contains("/no/such/file"),
        "{evidence:?}"
    );
}

#[test]
fn devices_of_several_hosts_are_known_if_those_of_every_host_are() {
    let device = |device: &str, read_bytes| DeviceTraffic {
        device: device.into(),
        read_bytes,
        written_bytes: 0,
        read_requests: 1,
        write_requests: 0,
    };
    let pack = |host: &str, devices: &[DeviceTraffic], unknown: Option<&str>| {
        let unknown = unknown.map(str::to_owned);
        HostTraffic { host: host.into(), devices: devices.to_vec(), unknown }
    };
    let a = || pack("a", &[device("loop0", 5), device("sda", 4)], None);
    let b = pack("b", &[device("sda", 3)], None);
    let (devices, unknown) = merge_hosts(vec![a(), b]);
    assert_eq!(devices, [device("a:loop0", 5), device("a:sda", 4), device("b:sda", 3)]);
    assert_eq!(unknown, None);
    let names: Vec<String> = merge_hosts(vec![a(), a()]).0.into_iter().map(|d| d.device).collect();
    assert_eq!(names, ["a:loop0", "a:sda", "a#2:loop0", "a#2:sda"]);
    let (devices, unknown) = merge_hosts(vec![a(), pack("b", &[], Some("network file system nfs: no local device"))]);
    assert_eq!(devices, []);
    assert_eq!(unknown.as_deref(), Some("b: network file system nfs: no local device"));
}
