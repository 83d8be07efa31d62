//! Damage on purpose, to prove that the verification finds it. Only with the hidden option --inject.

use std::io;
use std::os::unix::fs::FileExt;

use crate::b_eff_io::config::Inject;
use crate::b_eff_io::run::files::{TypeFile, Written};
use crate::b_eff_io::run::verify::Data;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::stamp::{Generation, Stream};

/// Damages the last call of the last pattern of `file` that can show it, in the data of its last rank.
///
/// # Errors
/// What opening or writing reports, and damage that would be none: data of another rank where there is one rank, stale
/// data where nothing was rewritten.
pub fn damage(run_dir: &RunDir, file: &TypeFile, how: Inject, data: &Data) -> io::Result<()> {
    let rank = file.ranks - 1;
    let calls = |w: &Written| if how == Inject::Stale { w.rewritten_calls } else { w.calls };
    let Some(written) = file.written.iter().rev().find(|w| calls(w) > 0) else {
        return Err(io::Error::other("nothing in this file can be damaged in this way"));
    };
    if how == Inject::OtherRank && file.ranks == 1 {
        return Err(io::Error::other("there is no other rank whose data could be put there"));
    }
    let call = calls(written) - 1;
    let p = file.pattern(written, rank, written.calls).map_err(io::Error::other)?;
    let chunk = call * p.chunks_per_call;
    let (offset, position) = (p.chunk_offset(chunk), p.stream_position(call));
    let target = run_dir.file(&file.name(rank)).open_to_update()?;
    let mut bytes = vec![0_u8; usize::try_from(p.chunk_bytes.min(1 << 20)).map_err(io::Error::other)?];
    let lay_out = |bytes: &mut [u8], generation, rank| {
        let stream = Stream::new(data.seed, generation, rank, data.period_bytes);
        for (n, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&stream.word(position + 8 * n as u64).to_le_bytes());
        }
    };
    match how {
        Inject::Flip => {
            target.read_exact_at(&mut bytes, offset)?;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
        }
        Inject::OtherRank => lay_out(&mut bytes, written.generation(call), (rank + 1) % file.ranks),
        Inject::Stale => lay_out(&mut bytes, Generation::First, rank),
        Inject::Hole => {}
    }
    target.write_all_at(&bytes, offset)?;
    target.sync_all()
}
