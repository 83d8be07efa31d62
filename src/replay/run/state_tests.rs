//! Replays of programs whose results depend on names, sizes and the shared file pointer, on several ranks (`ranks_tests`).

use super::ranks_tests::{assert_repetition, replay_profile};
use crate::replay::config::Pace;

/// A profile of ranks that have the communicators 0 (world) and 1 + n (rank n alone).
fn profile(files: &[&str], ranks: &[&[&str]]) -> String {
    let mut text = format!("beff-raw profile,1\nranks,{}\ncomm,0,world\n", ranks.len());
    (0..ranks.len()).for_each(|rank| text += &format!("comm,{},{rank}\n", rank + 1));
    text += "type,0,BYTE\n";
    files.iter().enumerate().for_each(|(n, file)| text += &format!("file,{n},{file}\n"));
    for (rank, calls) in ranks.iter().enumerate() {
        text += &format!("calls,{rank},{}\n", calls.len());
        calls.iter().for_each(|call| text += &format!("{call}\n"));
    }
    text
}

/// Rank 0 asks for the pointer between the begin of its access and its completion, after an access of rank 1 that follows that begin.
#[test]
fn a_nonblocking_access_has_moved_the_shared_pointer_when_it_returns() {
    let open = "0,5,File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1";
    let close = "900,905,File_close,handle=1";
    let of_0 = [
        open,
        "10,12,File_iwrite_shared,handle=1,count=4,type=0,request=1",
        "50,52,File_get_position_shared,handle=1,number=12,after=1@20",
        "60,62,Wait,requests=1,done=1:4",
        close,
    ];
    let of_1 = [open, "20,22,File_write_shared,handle=1,count=4,type=0,bytes=4,after=0@10", close];
    let (seen, _) = replay_profile(&profile(&["x"], &[&of_0, &of_1]), 2, &["mpiio"], Pace::Fast);
    assert_repetition(&seen.passes[0], 8, [0; 3]);
    assert!(seen.passes[0].waits <= 2 && seen.others.is_empty(), "{:?}", seen.others);
}
