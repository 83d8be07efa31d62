//! ior-easy and ior-hard of IO500.

use super::profile_text::{CallList, ProfileText};

/// Transfer of ior-hard.
const HARD_BYTES: u64 = 47_008;
/// Transfer of ior-easy.
const EASY_BYTES: u64 = 2 << 20;

/// ior-easy: `bytes` of each rank in a file of its own, sequentially.
pub(super) fn easy(ranks: u64, bytes: u64, shift: u64, command: &str) -> String {
    let transfers = bytes.div_ceil(EASY_BYTES);
    let comments = [
        format!("ior-easy, {ranks} ranks, made by: {command}"),
        format!("Source: IO500 (IOR -t 2m -b {bytes} -F -e -C), with a fixed size in place of the time limit of 300 s."),
        format!("Each rank writes {bytes} bytes in transfers of 2 MiB to its own file, then reads the file of the rank {shift} behind."),
    ];
    let mut text = ProfileText::new(ranks, &comments);
    text.self_comms(ranks);
    let byte = text.datatype("BYTE");
    (0..ranks).for_each(|rank| {
        text.file(&format!("ior_file_easy.{rank:08}"));
    });
    let reader = |rank: u64| (rank + shift) % ranks;
    // The files of other ranks have their own communicators: a read by one rank needs no other.
    let place = |rank: u64, number: u64| (rank, number * EASY_BYTES, EASY_BYTES.min(bytes - number * EASY_BYTES));
    write_and_read(&mut text, ranks, transfers, byte, |rank| (rank + 1, rank), (&place, &reader));
    text.finish()
}

/// ior-hard: `segments` transfers of each rank to one file, in turns.
pub(super) fn hard(ranks: u64, segments: u64, shift: u64, command: &str) -> String {
    let comments = [
        format!("ior-hard, {ranks} ranks, made by: {command}"),
        format!("Source: IO500 (IOR -t {HARD_BYTES} -b {HARD_BYTES} -s {segments} -e -C), with a fixed number of segments in place of the time limit"),
        format!("of 300 s. In each segment every rank writes {HARD_BYTES} bytes, one behind the other; then each rank reads what the rank {shift} behind has written."),
    ];
    let mut text = ProfileText::new(ranks, &comments);
    let byte = text.datatype("BYTE");
    text.file("ior_file_hard");
    let reader = |rank: u64| (rank + shift) % ranks;
    let place = |rank: u64, number: u64| (0, (number * ranks + rank) * HARD_BYTES, HARD_BYTES);
    write_and_read(&mut text, ranks, segments, byte, |_| (0, 0), (&place, &reader));
    text.finish()
}

/// File, offset and bytes of a transfer of a rank.
type Place<'a> = &'a dyn Fn(u64, u64) -> (u64, u64, u64);

/// Each rank writes its transfers, syncs and closes; then it reads those of the rank that `reader` names. `own` is its communicator and file.
fn write_and_read(
    text: &mut ProfileText,
    ranks: u64,
    transfers: u64,
    byte: u64,
    own: impl Fn(u64) -> (u64, u64),
    (place, reader): (Place<'_>, &dyn Fn(u64) -> u64),
) {
    for rank in 0..ranks {
        let (comm, file) = own(rank);
        let mut calls = CallList::default();
        calls.push(format!("File_open, handle=1, comm={comm}, file={file}, mode=create;wronly"));
        for number in 0..transfers {
            let (_, offset, count) = place(rank, number);
            calls.push(format!("File_write_at, handle=1, offset={offset}, count={count}, type={byte}"));
        }
        calls.push("File_sync, handle=1");
        calls.push("File_close, handle=1");
        let other = reader(rank);
        let (file, ..) = place(other, 0);
        calls.push(format!("File_open, handle=2, comm={comm}, file={file}, mode=rdonly"));
        for number in 0..transfers {
            let (_, offset, count) = place(other, number);
            calls.push(format!("File_read_at, handle=2, offset={offset}, count={count}, type={byte}"));
        }
        calls.push("File_close, handle=2");
        text.calls(rank, &calls);
    }
}
