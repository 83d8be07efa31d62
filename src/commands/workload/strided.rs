//! The strided workload of PRIOmark.

use super::profile_text::{CallList, ProfileText};

/// The profile: each rank has every `ranks`-th block of `block_bytes`; first through a view, `blocks` per rank in calls of `per_call` blocks, then by
/// explicit offsets in the second half of the file.
pub(super) fn profile(ranks: u64, (block_bytes, blocks, per_call): (u64, u64, u64), command: &str) -> String {
    let comments = [
        format!("Strided access, {ranks} ranks, made by: {command}"),
        "Source: the strided access of PRIOmark, a benchmark of parallel I/O.".into(),
        format!("Each rank has every {ranks}. block of {block_bytes} bytes, {blocks} in each half of the file: in the first half by collective calls of"),
        format!("{per_call} blocks through a view, in the second by calls of one block with explicit offsets. All is written, then read back."),
    ];
    let mut text = ProfileText::new(ranks, &comments);
    let byte = text.datatype("BYTE");
    text.comment("A block, and a block followed by those of the other ranks.");
    let block = text.datatype(&format!("contiguous, count={block_bytes}, of={byte}"));
    let row_bytes = block_bytes * ranks;
    let row = text.datatype(&format!("resized, lower_bound=0, extent={row_bytes}, of={block}"));
    let file = text.file("strided.dat");
    for rank in 0..ranks {
        let mut calls = CallList::default();
        let begin = rank * block_bytes;
        calls.push(format!("File_open, handle=1, comm=0, file={file}, mode=create;rdwr"));
        calls.push(format!("File_set_view, handle=1, offset={begin}, etype={byte}, filetype={row}"));
        for verb in ["write", "read"] {
            let mut left = blocks;
            while left > 0 {
                let count = left.min(per_call);
                calls.push(format!("File_{verb}_all, handle=1, count={count}, type={block}"));
                left -= count;
            }
            if verb == "write" {
                calls.push("File_seek, handle=1, offset=0, whence=set");
            }
        }
        calls.push(format!("File_set_view, handle=1, offset=0, etype={byte}, filetype={byte}"));
        for verb in ["write", "read"] {
            for number in blocks..2 * blocks {
                let offset = begin + number * row_bytes;
                calls.push(format!("File_{verb}_at, handle=1, offset={offset}, count={block_bytes}, type={byte}"));
            }
            if verb == "write" {
                calls.push("File_sync, handle=1");
            }
        }
        calls.push("File_close, handle=1");
        text.calls(rank, &calls);
    }
    text.finish()
}
