//! Whether memory that is walked through in turns comes from memory or from a cache, measured: [`ColdRecord`].

use std::hint::black_box;

use beff_backends::flush::{flush, LINE_BYTES};
use beff_ffi::{Comm, MpiError};

use crate::frame::records::{cold, ColdRecord};
use crate::frame::run::agree::gather;
use crate::frame::run::clock::Instant;

/// Pieces that are looked at on the way through the memory, at most.
const PIECES: usize = 16;
/// Bytes of a piece: within the second level of most processors, and long enough for the clock.
const PIECE_BYTES: usize = 256 << 10;
/// Lines of a piece: a power of two.
const LINES: usize = PIECE_BYTES / LINE_BYTES;

/// What one rank has seen.
type Seen = Option<[f64; 3]>;

/// Looks at `memory`, all of what calls go through in turns, in a second lap after one that touches each line. Collective; all ranks
/// walk at once, as in a pattern: who writes its memory last before would find it where the others find theirs no more.
///
/// # Errors
/// MPI between the ranks.
pub fn measure(comm: &Comm, memory: &[u8], cache_share_bytes: u64) -> Result<ColdRecord, MpiError> {
    comm.barrier()?;
    let begin = Instant::now();
    touch(memory);
    let mine = walk(memory);
    comm.barrier()?;
    let seconds = begin.elapsed().as_secs_f64();
    let memory_bytes = memory.len() as u64;
    let all: Vec<Seen> = gather(comm, &mine)?;
    Ok(ColdRecord { cache_share_bytes, memory_bytes, seconds, ..warmest(&all, pieces_of(memory.len())) })
}

fn pieces_of(bytes: usize) -> usize {
    (bytes / (2 * PIECE_BYTES)).min(PIECES)
}

/// The rank with the least from memory.
fn warmest(all: &[Seen], pieces: usize) -> ColdRecord {
    let known = all.iter().zip(0..).filter_map(|(seen, rank)| seen.map(|times| (times, rank)));
    let told = known.filter_map(|(times, rank)| cold::from_memory(times).map(|share| (share, times, rank)));
    let Some((_, [found_ns, flushed_ns, cached_ns], rank)) = told.min_by(|a, b| a.0.total_cmp(&b.0)) else {
        let why = match all.iter().flatten().next() {
            _ if pieces == 0 => "the memory is too short to look at".to_owned(),
            None => "this program cannot empty the caches of this processor".to_owned(),
            Some([_, flushed, cached]) => {
                format!(
                    "loads from memory ({flushed:.1} ns) and from a cache ({cached:.1} ns) cannot be told apart here"
                )
            }
        };
        return ColdRecord { not_known: Some(why), ..ColdRecord::default() };
    };
    ColdRecord { rank, lines: (pieces * LINES) as u64, found_ns, flushed_ns, cached_ns, ..ColdRecord::default() }
}

/// One lap. Medians over the pieces of the time of a load: as found, flushed, cached.
fn walk(memory: &[u8]) -> Seen {
    let mut times = [const { Vec::new() }; 3];
    let pieces = pieces_of(memory.len());
    if pieces == 0 {
        return None;
    }
    for stretch in memory.chunks(memory.len().div_ceil(pieces)) {
        // The last one may be shorter.
        if stretch.len() < PIECE_BYTES {
            break;
        }
        let (piece, rest) = stretch.split_at(PIECE_BYTES);
        times[0].push(load_ns(piece));
        if !flush(piece) {
            return None;
        }
        times[1].push(load_ns(piece));
        times[2].push(load_ns(piece));
        touch(rest);
    }
    Some(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

/// Loads each line.
fn touch(memory: &[u8]) {
    black_box(memory.iter().step_by(LINE_BYTES).fold(0_u8, |sum, byte| sum ^ byte));
}

/// Time of one load of each line of a piece, in an order without a pattern; each address needs the load before.
fn load_ns(piece: &[u8]) -> f64 {
    // The compiler must not know that this is 0.
    let zero = black_box(0_usize);
    let mut line = 0;
    let begin = Instant::now();
    for _ in 0..LINES {
        let loaded = usize::from(piece[line * LINE_BYTES]);
        // A full cycle modulo a power of two: the factor is 1 modulo 4, the summand odd (Hull and Dobell 1962).
        line = (line * 1_664_525 + 1_013_904_223 + (loaded & zero)) % LINES;
    }
    let seconds = begin.elapsed().as_secs_f64();
    black_box(line);
    seconds * 1e9 / LINES as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_loaded_once() {
        let (mut line, mut seen) = (0_usize, vec![false; LINES]);
        for _ in 0..LINES {
            assert!(!std::mem::replace(&mut seen[line], true));
            line = (line * 1_664_525 + 1_013_904_223) % LINES;
        }
        assert_eq!(line, 0);
    }

    #[test]
    fn the_warmest_rank_is_told() {
        let all = [Some([90.0, 100.0, 5.0]), None, Some([40.0, 110.0, 5.0]), Some([6.0, 6.0, 5.0])];
        let record = warmest(&all, 16);
        assert_eq!((record.rank, record.found_ns, record.lines), (2, 40.0, 16 * 4096));
        let why = |all: &[Seen], pieces| warmest(all, pieces).not_known.unwrap();
        assert!(why(&[None], 16).contains("cannot empty the caches"));
        assert!(why(&[None], 0).contains("too short"));
        assert!(why(&[Some([6.0, 6.0, 5.0])], 3).contains("6.0 ns"));
    }

    #[test]
    fn memory_that_is_short_is_not_walked() {
        assert_eq!(walk(&[0; 1000]), None);
        assert_eq!(walk(&vec![0; 3 << 20]).is_some(), cfg!(target_arch = "x86_64"));
    }

    /// One of some looks at half a megabyte that `prepare` left somewhere. A look that tells nothing is none.
    fn any_look(prepare: impl Fn(&mut [u8], u8), is: impl Fn(f64) -> bool) -> bool {
        let mut memory = vec![0_u8; 2 * PIECE_BYTES];
        (0..50).any(|round| {
            prepare(&mut memory, round);
            walk(&memory).and_then(cold::from_memory).is_some_and(&is)
        })
    }

    /// Half a megabyte that was just written lies in the second level of most processors, which no other program shares: whoever looks at
    /// other memory than was written, or flushes it before, finds it cold each time.
    #[test]
    fn memory_that_was_just_written_is_found_warm_and_flushed_memory_cold() {
        if cfg!(not(target_arch = "x86_64")) {
            println!("skipped: this program cannot empty the caches of this processor");
            return;
        }
        assert!(any_look(|memory, round| memory.fill(round), |share| share < 0.5));
        let flushed = |memory: &mut [u8], round| {
            memory.fill(round);
            assert!(flush(memory));
        };
        assert!(any_look(flushed, |share| share > 0.5));
    }
}
