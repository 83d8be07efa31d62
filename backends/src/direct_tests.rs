use super::*;
use crate::statx::direct_align;
use crate::testing::{pattern, scratch};
use crate::RankPartition;

#[test]
fn creation_is_exclusive_and_agreed() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut reported = None;
    FdPair::open_as(&FilePath::of(&path).unwrap(), OpenMode::CreateNew, Direct::Off, true, |created| {
        reported = Some(created);
        Ok(created)
    })
    .unwrap();
    assert_eq!(reported, Some(true));
    std::fs::write(&path, b"precious").unwrap();
    let error = FdPair::open_as(&FilePath::of(&path).unwrap(), OpenMode::CreateNew, Direct::Off, true, |created| {
        reported = Some(created);
        Ok(created)
    })
    .unwrap_err();
    assert_eq!(reported, Some(false), "the other ranks are informed before rank 0 returns");
    assert_eq!((error.operation, error.cause), ("open", FailureCause::Path));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn other_ranks_follow_rank_0() {
    let dir = scratch();
    let path = dir.path().join("f");
    let other = |answer| {
        FdPair::open_as(&FilePath::of(&path).unwrap(), OpenMode::CreateNew, Direct::Auto, false, move |_| answer)
    };
    let error = other(Ok(false)).unwrap_err();
    assert!(error.to_string().contains("rank 0 could not create"), "{error}");
    assert!(!path.exists(), "only rank 0 creates");
    let lost = BackendError::new("open", &path, FailureCause::Io, "MPI lost");
    assert_eq!(other(Err(lost.clone())).unwrap_err(), lost);
    let first = FdPair::open_alone(&path, OpenMode::CreateNew, Direct::Auto).unwrap();
    other(Ok(true)).unwrap().close().unwrap();
    first.close().unwrap();
}

#[test]
fn modes_need_the_file_and_give_the_rights() {
    let dir = scratch();
    let path = dir.path().join("f");
    for mode in [OpenMode::Update, OpenMode::ReadOnly] {
        let error = FdPair::open_alone(&path, mode, Direct::Off).unwrap_err();
        assert_eq!(error.cause, FailureCause::Path);
        assert!(!path.exists());
    }
    std::fs::write(&path, b"12345678").unwrap();
    use std::os::unix::fs::FileExt;
    let mut file = FdPair::open_alone(&path, OpenMode::ReadOnly, Direct::Auto).unwrap();
    assert!(file.buffered.write_at(b"x", 0).is_err());
    assert!(file.direct_file().is_none_or(|f| f.write_at(b"x", 0).is_err()));
    file.sync().unwrap();
    file.close().unwrap();
}

#[test]
fn policy_decides_and_names_the_reason() {
    let dir = scratch();
    let path = dir.path().join("f");
    FdPair::open_alone(&path, OpenMode::CreateNew, Direct::Off).unwrap();
    let align = direct_align(&File::open(&path).unwrap()).unwrap();
    let odd = AccessPattern { stride_bytes: 4096, ..pattern(1032, 1, 4) };
    let open = |policy| FdPair::open_alone(&path, OpenMode::Update, policy).unwrap();
    assert_eq!(open(Direct::Off).route(&odd, Direction::Write), Ok(FileRoute::Buffered { reason: None }));
    let reason = open(Direct::Required).route(&odd, Direction::Write).unwrap_err();
    assert_eq!(
        open(Direct::Auto).route(&odd, Direction::Write),
        Ok(FileRoute::Buffered { reason: Some(reason.clone()) })
    );
    let even = pattern(1 << 20, 1, 4);
    match align {
        Some(align) => {
            let align_bytes = align.common_bytes();
            assert_eq!(
                reason,
                format!("chunk 1032 is not a multiple of {align_bytes}, and the chunks are not contiguous")
            );
            assert_eq!(open(Direct::Required).route(&even, Direction::Read), Ok(FileRoute::Direct { align_bytes }));
            assert_eq!(open(Direct::Auto).route(&even, Direction::Read), Ok(FileRoute::Direct { align_bytes }));
        }
        None => {
            assert!(reason.contains("reports no alignment"), "{reason}");
            assert_eq!(open(Direct::Required).route(&even, Direction::Read), Err(reason));
        }
    }
    let error = open(Direct::Required)
        .route_or_error(&odd, Direction::Write, &TransferBuffer::new(4096, 4096).unwrap())
        .unwrap_err();
    assert_eq!(error.cause, FailureCause::Unsupported);
    assert!(error.text.contains("--direct auto"), "{error}");
}

#[test]
fn an_unproven_bypass_is_named_and_not_called_direct() {
    let dir = scratch();
    let options = |is_proven, direct| DriverOptions {
        direct,
        direct_trial: Some(DirectTrial {
            overrides_statx: true,
            align: Ok(crate::TrialAlign { offset_bytes: 4096, memory_bytes: 4096, is_proven }),
        }),
        ..DriverOptions::default()
    };
    for (name, is_proven) in [("a", true), ("b", false)] {
        let options = options(is_proven, Direct::Required);
        let files = FdPair::open_alone(&dir.path().join(name), OpenMode::CreateNew, &options).unwrap();
        if files.direct_file().is_none() {
            return println!("SKIPPED: no direct I/O here");
        }
        let route = files.route(&pattern(8192, 1, 4), Direction::Write).unwrap();
        assert_eq!(route, FileRoute::Direct { align_bytes: 4096 });
        let used = files.in_force("pwrite", AccessKind::Independent, Direction::Write, &route);
        assert_eq!(used.strategy.contains("bypass of the page cache unproven"), !is_proven, "{used:?}");
        assert_eq!(options.proven_direct(used.direct), is_proven.then_some(true));
        assert_eq!(options.proven_direct(Some(false)), Some(false));
    }
}

#[test]
fn unequal_parts_odd_periods_and_nothing() {
    let dir = scratch();
    let path = dir.path().join("f");
    FdPair::open_alone(&path, OpenMode::CreateNew, Direct::Off).unwrap();
    if direct_align(&File::open(&path).unwrap()).unwrap().is_none() {
        println!("SKIPPED: no direct I/O here");
        return;
    }
    let auto = FdPair::open_alone(&path, OpenMode::Update, Direct::Auto).unwrap();
    let required = FdPair::open_alone(&path, OpenMode::Update, Direct::Required).unwrap();
    let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
    // Aligned, but the parts of the other ranks need not be.
    for chunk in [0, 4096] {
        let unequal =
            AccessPattern { ranks: 3, partition: RankPartition::Unequal, stride_bytes: 12288, ..pattern(chunk, 1, 4) };
        assert!(!unequal.is_private(4096));
        let route = auto.route_or_error(&unequal, Direction::Write, &buffer).unwrap();
        assert!(matches!(route, FileRoute::Buffered { reason: Some(why) } if why.contains("different lengths")));
        assert!(required.unsupported(&unequal).unwrap().contains("different lengths"));
    }
    // With one rank all sectors are its own.
    let alone = AccessPattern { partition: RankPartition::Unequal, ..pattern(1032, 1, 4) };
    assert!(matches!(auto.route(&alone, Direction::Write), Ok(FileRoute::DirectEdges { .. })));
    let nothing = AccessPattern { base_bytes: 7, ..pattern(0, 1, 4) };
    assert!(required.route_or_error(&nothing, Direction::Read, &buffer).unwrap().is_direct());

    // Windows that wrap at no multiple of a sector are not aligned; windows that never wrap are.
    buffer.set_period_bytes(4 * 4096 + 1);
    for (p, calls, direct) in
        [(pattern(4096, 1, 4), 4, true), (pattern(4096, 1, 4), 5, false), (alone, 15, true), (alone, 16, false)]
    {
        let p = AccessPattern { max_calls: calls, ..p };
        let route = auto.route_or_error(&p, Direction::Read, &buffer).unwrap();
        assert_eq!(route.is_direct(), direct, "{p:?}");
        assert_eq!(required.route_or_error(&p, Direction::Read, &buffer).is_ok(), direct);
    }
}

#[test]
fn no_alignment_means_no_direct() {
    let null = std::path::Path::new("/dev/null");
    let refused = FdPair::open_alone(null, OpenMode::Update, Direct::Required).unwrap();
    assert!(refused.route(&pattern(4096, 1, 1), Direction::Write).unwrap_err().contains("reports no alignment"));
    let auto = FdPair::open_alone(null, OpenMode::Update, Direct::Auto).unwrap();
    let route = auto.route(&pattern(4096, 1, 1), Direction::Write).unwrap();
    let prepared = route.strategy("pwrite", AccessKind::Collective, Direction::Write, "sectors");
    assert_eq!(prepared.direct, Some(false));
    assert!(prepared
        .strategy
        .starts_with("pwrite at the same offsets (no collective call), buffered, not direct: the"));
}

/// Whole blocks where a chunk is at least as long as one, the file is new and the blocks belong to this rank alone; else sectors.
#[test]
fn first_writes_cut_no_blocks() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut files = FdPair::open_alone(&path, OpenMode::CreateNew, Direct::Auto).unwrap();
    if direct_align(&File::open(&path).unwrap()).unwrap().is_none_or(|align| align.common_bytes() > 512) {
        println!("SKIPPED: no direct I/O in sectors of 512 bytes here");
        return;
    }
    files.force_align(512);
    let mut buffer = TransferBuffer::new(1 << 16, 1 << 16).unwrap();
    let ways = |files: &FdPair, p: &AccessPattern, buffer: &TransferBuffer| {
        [Direction::Write, Direction::Read].map(|direction| files.route_or_error(p, direction, buffer).unwrap())
    };
    let (edges, direct) =
        (|align_bytes| FileRoute::DirectEdges { align_bytes }, |align_bytes| FileRoute::Direct { align_bytes });
    let behind = AccessPattern { base_bytes: 1024, stream_bytes: 1024, ..pattern(1 << 15, 1, 4) };
    let unlike = AccessPattern { base_bytes: 4096 + 512, stream_bytes: 0, ..pattern(4104, 1, 4) };
    let shared = AccessPattern { ranks: 2, rank_distance_bytes: 4096 + 512, ..pattern(4608, 1, 1) };
    for (p, sectors, writes) in [
        (pattern(4104, 1, 4), edges(512), edges(4096)),
        (pattern(32776, 2, 4), edges(512), edges(4096)),
        (behind, direct(512), edges(4096)),
        (pattern(1032, 1, 4), edges(512), edges(512)),
        (pattern(8192, 1, 4), direct(512), direct(512)),
        (pattern(1024, 1, 4), direct(512), direct(512)),
        (unlike, edges(512), edges(512)),
        (shared, direct(512), direct(512)),
    ] {
        assert_eq!(ways(&files, &p, &buffer), [sectors.clone(), sectors.clone()], "blocks as large as sectors: {p:?}");
        let mut other = FdPair::open_alone(&path, OpenMode::Update, Direct::Auto).unwrap();
        other.force_align(512);
        other.force_block(4096);
        assert_eq!(ways(&other, &p, &buffer), [writes, sectors.clone()], "{p:?}");
        let old = FdPair::open_alone(&path, OpenMode::Update, Direct::Auto).unwrap();
        assert_eq!(ways(&old, &p, &buffer)[0], sectors, "a file with allocated blocks: {p:?}");
    }
    // A period that is no multiple of the block.
    buffer.set_period_bytes(4096 * 3 + 512);
    files.force_block(4096);
    assert_eq!(ways(&files, &pattern(4104, 1, 9), &buffer)[0], edges(512));
}
