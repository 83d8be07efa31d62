//! Checkpoints: one file of all ranks (N-1) or a file per rank (N-N), with headers.

use super::profile_text::{CallList, ProfileText};

/// Files of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointLayout {
    /// One file, in which each rank has a segment.
    Shared,
    /// A file per rank.
    Separate,
}

/// Sizes of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckpointSizes {
    /// Data of a rank.
    pub(super) rank_bytes: u64,
    /// Header of a file.
    pub(super) header_bytes: u64,
    /// Data of one call.
    pub(super) call_bytes: u64,
    /// Number of checkpoints.
    pub(super) checkpoints: u64,
}

pub(super) fn profile(ranks: u64, layout: CheckpointLayout, sizes: CheckpointSizes, command: &str) -> String {
    let CheckpointSizes { rank_bytes, header_bytes, call_bytes, checkpoints } = sizes;
    let is_shared = layout == CheckpointLayout::Shared;
    let (files, writers, verb) = if is_shared {
        ("N-1: one file of all ranks, collective calls", "rank 0", "_at_all")
    } else {
        ("N-N: a file per rank, independent calls", "each rank", "_at")
    };
    let comments = [
        format!("Checkpoints, {files}, made by: {command}"),
        "Source: the usual forms of checkpoints of parallel applications; no particular program.".into(),
        format!("{checkpoints} times {writers} writes a header of {header_bytes} bytes, then each rank {rank_bytes} bytes in calls of {call_bytes}. At the end"),
        "the last checkpoint is read back, its header by every rank of the file.".into(),
    ];
    let mut text = ProfileText::new(ranks, &comments);
    if !is_shared {
        text.self_comms(ranks);
    }
    let byte = text.datatype("BYTE");
    let owners = if is_shared { 1 } else { ranks };
    for (checkpoint, owner) in (0..checkpoints).flat_map(|checkpoint| (0..owners).map(move |owner| (checkpoint, owner)))
    {
        text.file(&if is_shared {
            format!("checkpoint{checkpoint}.dat")
        } else {
            format!("checkpoint{checkpoint}.{owner}.dat")
        });
    }
    for rank in 0..ranks {
        let (comm, owner) = if is_shared { (0, 0) } else { (rank + 1, rank) };
        let begin = header_bytes + if is_shared { rank * rank_bytes } else { 0 };
        let mut calls = CallList::default();
        let transfer = |calls: &mut CallList, access: &str, handle: u64| {
            let mut at = 0;
            while at < rank_bytes {
                let (offset, count) = (begin + at, call_bytes.min(rank_bytes - at));
                calls
                    .push(format!("File_{access}{verb}, handle={handle}, offset={offset}, count={count}, type={byte}"));
                at += count;
            }
        };
        let header = |access: &str, handle: u64| {
            format!("File_{access}_at, handle={handle}, offset=0, count={header_bytes}, type={byte}")
        };
        for checkpoint in 0..checkpoints {
            let (handle, file) = (checkpoint + 1, checkpoint * owners + owner);
            calls.push(format!("File_open, handle={handle}, comm={comm}, file={file}, mode=create;wronly"));
            // The other ranks of the file wait in their first collective call.
            let step = calls.next_step();
            if header_bytes > 0 && (!is_shared || rank == 0) {
                calls.push(header("write", handle));
            }
            calls.skip_to(step + 1);
            transfer(&mut calls, "write", handle);
            calls.push(format!("File_sync, handle={handle}"));
            calls.push(format!("File_close, handle={handle}"));
        }
        let (handle, file) = (checkpoints + 1, (checkpoints - 1) * owners + owner);
        calls.push(format!("File_open, handle={handle}, comm={comm}, file={file}, mode=rdonly"));
        if header_bytes > 0 {
            calls.push(header("read", handle));
        }
        transfer(&mut calls, "read", handle);
        calls.push(format!("File_close, handle={handle}"));
        text.calls(rank, &calls);
    }
    text.finish()
}
