use super::super::outlook::EndedBy;
use super::super::Obstacle;
use super::*;
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::units::MIB;
use std::time::Instant;

fn input(ranks: u64) -> PreviewInput {
    PreviewInput {
        ranks,
        release: Release::R2_1,
        strict: false,
        partitions: Partitions::SmallMediumAll,
        time_seconds: 5400.0,
        limit_seconds: None,
        types: PatternType::ALL.to_vec(),
        full_rewrite: false,
        orders: Vec::new(),
        mix: None,
        shared_pointer: true,
        memory_per_rank_bytes: 4 << 30,
        limit_bytes: Some(300 << 40),
        backends: 1,
        contestants: Vec::new(),
        variants: Vec::new(),
        segment_multiple_bytes: MIB,
        files_per_directory: 10_000,
        ranks_of_host: 16,
        cache_share_bytes: 32 * MIB,
        domain_bytes: 24 * MIB,
        shares_memory: true,
        maps_files: true,
        reused_reads: None,
        rate_bytes_per_second: 2e9,
    }
}

fn assert_consistent(p: &Preview) {
    for partition in &p.partitions {
        let files: u64 = partition.files.iter().map(|f| f.files * f.file_bytes).sum();
        assert_eq!(files, partition.first_write_bytes);
        for file in partition.files.iter().filter(|f| f.pattern_type >= PatternType::Segmented) {
            assert_eq!(file.segment_bytes.unwrap() * partition.ranks, file.file_bytes);
        }
        if let Some(space) = partition.space_bytes {
            assert!(partition.first_write_bytes <= space);
        }
    }
    let bytes: u64 = p.partitions.iter().map(|q| q.first_write_bytes).sum();
    assert_eq!(p.total_bytes, bytes * p.input.backends);
}

#[test]
fn an_ordinary_run() {
    let p = preview(&input(32)).unwrap();
    assert_consistent(&p);
    assert_eq!(p.partitions.iter().map(|q| q.ranks).collect::<Vec<_>>(), [4, 16, 32]);
    assert!((p.scheduled_seconds - 5400.0).abs() < 1e-6);
    let first = &p.partitions[0];
    assert_eq!((first.m_part_bytes, first.patterns.len()), (32 * MIB, 43));
    // Tn = 1800 s, 4 of 150 units, 2e9 bytes/s, 4 ranks with 32 MiB each: 715.25 calls.
    assert_eq!(first.patterns[1].scheduled_seconds, [48.0; 3]);
    let write = first.patterns[1].outlook[0].unwrap();
    assert_eq!((first.patterns[1].calls, write.ended_by), (715, EndedBy::Time));
    assert_eq!(p.period_bytes, 14747 * 4096);
    // 57.6 MiB, 32 MiB, and the accessible bytes beyond them, in whole huge pages.
    assert_eq!(p.rank_memory_bytes, (90 + 48 + 24) * MIB);
    assert_eq!((p.neighbours_memory_bytes, p.file_memory_bytes), (0, 256 * MIB), "several hosts");
    let one_host = preview(&PreviewInput { ranks_of_host: 4, ..input(4) }).unwrap();
    assert_eq!(one_host.neighbours_memory_bytes, 3 * 90 * MIB);
}

#[test]
fn little_space_ends_patterns() {
    let p = preview(&PreviewInput { limit_bytes: Some(1 << 30), ..input(2) }).unwrap();
    assert_consistent(&p);
    assert!(p.total_bytes <= 1 << 30);
    assert_eq!(p.partitions[1].patterns[4].outlook[0].unwrap().ended_by, EndedBy::Space);
    assert!(p.partitions[1].m_part_bytes <= 32 * MIB);
}

#[test]
fn ten_million_ranks_at_once() {
    let started = Instant::now();
    for limit_bytes in [None, Some(300 << 50)] {
        let p = preview(&PreviewInput { limit_bytes, ..input(10_000_000) }).unwrap();
        assert_consistent(&p);
        assert_eq!(p.partitions.last().unwrap().ranks, 10_000_000);
        assert_eq!(p.partitions.last().unwrap().files[2].files, 10_000_000);
    }
    assert!(started.elapsed().as_secs_f64() < 1.0);
}

#[test]
fn what_cannot_run_is_an_error() {
    let huge = PreviewInput {
        release: Release::R1,
        full_rewrite: true,
        memory_per_rank_bytes: 1 << 60,
        limit_bytes: None,
        ..input(10_000_000)
    };
    let error = preview(&huge).unwrap_err();
    assert!(matches!(error, PlanError::Specific(Obstacle::Overflow { pattern: 1, .. })), "{error}");
    // Each rank's file is possible, but not their sum.
    let separate = PreviewInput { types: vec![PatternType::Separate], memory_per_rank_bytes: 1 << 57, ..huge };
    let error = preview(&separate).unwrap_err();
    assert!(error.to_string().contains("together"), "{error}");
    assert!(matches!(
        preview(&PreviewInput { limit_bytes: Some(300 * MIB), ..input(1000) }),
        Err(PlanError::Specific(Obstacle::NoSpace { .. }))
    ));
    assert!(matches!(
        preview(&PreviewInput { types: vec![PatternType::SegmentedCollective], ..input(4) }),
        Err(PlanError::Specific(Obstacle::NoReference { pattern_type: PatternType::SegmentedCollective }))
    ));
    assert!(preview(&PreviewInput { rate_bytes_per_second: f64::NAN, ..input(4) }).is_err());
    assert!(preview(&PreviewInput { partitions: Partitions::List(vec![5]), ..input(4) }).is_err());
}

#[test]
fn it_serializes() {
    let p = preview(&input(3)).unwrap();
    let text = serde_json::to_string(&p).unwrap();
    assert_eq!(serde_json::from_str::<Preview>(&text).unwrap(), p);
}
