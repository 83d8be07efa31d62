//! Clock offsets between hosts. The only messages between processes: in MPI_Init and MPI_Finalize, and only if there may be several
//! hosts.

use std::ffi::{c_int, CStr};
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::monotonic_ns;
use crate::mpi::{pmpi, predefined_handles, StatusBuffer, Word};
use crate::original::Symbol;

/// Messages to each rank; the one with the shortest round trip counts.
const ROUNDS: usize = 32;

pub fn host_name() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: memory for a name and its NUL byte.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), 255) };
    crate::decode::text_until_nul(&name)
}

/// Clocks were compared in MPI_Init. All ranks agree on it and compare them again at the end, recorded or not, because the others would
/// wait forever.
static CLOCKS_COMPARED: AtomicBool = AtomicBool::new(false);

/// Offset in ns that converts this clock to that of rank 0; 0 if all ranks are on one host. Collective unless the launcher reports one
/// host.
pub fn offset_ns() -> i64 {
    begin_offset().unwrap_or(0)
}

fn begin_offset() -> Option<i64> {
    let world = predefined_handles().comm_world;
    if std::env::var_os("BEFF_PROFILE_CLOCKS").is_none() && (is_single_host_launch(world) || is_one_host(world)?) {
        return Some(0);
    }
    CLOCKS_COMPARED.store(true, Ordering::Relaxed);
    compare_clocks(world)
}

/// The offset at the end, collective if clocks were compared at the begin; `known` if this fails.
pub fn end_offset_ns(known: i64) -> i64 {
    let again = CLOCKS_COMPARED.swap(false, Ordering::Relaxed);
    again.then(|| compare_clocks(predefined_handles().comm_world)).flatten().unwrap_or(known)
}

/// Excludes this process, a fork, from collective calls.
pub fn reset_in_child() {
    CLOCKS_COMPARED.store(false, Ordering::Relaxed);
}

/// True if the launcher reports all ranks on this host. Asking the ranks would block if some run without this library.
fn is_single_host_launch(world: Word) -> bool {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let of_open_mpi = || number("OMPI_COMM_WORLD_LOCAL_SIZE");
    let here = if cfg!(open_mpi) { of_open_mpi() } else { number("MPI_LOCALNRANKS") };
    let here = here.or_else(|| if cfg!(standard_abi) { of_open_mpi() } else { None });
    let mut ranks: c_int = 0;
    pmpi!(Comm_size(world, &raw mut ranks)) == 0 && here == Some(ranks)
}

fn compare_clocks(world: Word) -> Option<i64> {
    let mut own: Word = 0;
    if pmpi!(Comm_dup(world, &raw mut own)) != 0 {
        return None;
    }
    let result = measure_offset(own);
    pmpi!(Comm_free(&raw mut own));
    result
}

fn is_one_host(world: Word) -> Option<bool> {
    let mut hasher = DefaultHasher::new();
    hasher.write(host_name().as_bytes());
    let mine = hasher.finish().to_le_bytes();
    let mut ranks: c_int = 0;
    if pmpi!(Comm_size(world, &raw mut ranks)) != 0 {
        return None;
    }
    let byte = predefined_handles().byte;
    let mut all = vec![0_u8; 8 * usize::try_from(ranks).ok()?];
    if pmpi!(Allgather(mine.as_ptr(), 8, byte, all.as_mut_ptr(), 8, byte, world)) != 0 {
        return None;
    }
    Some(all.chunks_exact(8).all(|one| one == mine))
}

/// Rank 0 replies with its time to each other rank in turn.
fn measure_offset(comm: Word) -> Option<i64> {
    let (mut rank, mut ranks): (c_int, c_int) = (0, 0);
    if pmpi!(Comm_rank(comm, &raw mut rank)) != 0 || pmpi!(Comm_size(comm, &raw mut ranks)) != 0 {
        return None;
    }
    if rank == 0 {
        for other in 1..ranks {
            for _ in 0..ROUNDS {
                receive(comm, other)?;
                send(comm, other, monotonic_ns())?;
            }
        }
        return Some(0);
    }
    let round = |_| {
        let before = monotonic_ns();
        send(comm, 0, before)?;
        let theirs = receive(comm, 0)?;
        Some([before, theirs, monotonic_ns()])
    };
    let rounds: Option<Vec<_>> = (0..ROUNDS).map(round).collect();
    Some(offset_of_shortest_ns(&rounds?))
}

/// Offset to the other clock, from rounds of local, remote and local time. The shortest round counts, with the remote time in its middle.
fn offset_of_shortest_ns(rounds: &[[u64; 3]]) -> i64 {
    let way = |round: &&[u64; 3]| round[2].saturating_sub(round[0]);
    let shortest = rounds.iter().min_by_key(way);
    shortest.map_or(0, |round| round[1] as i64 - (round[0] + way(&round) / 2) as i64)
}

fn send(comm: Word, to: c_int, value: u64) -> Option<()> {
    let bytes = value.to_le_bytes();
    (pmpi!(Send(bytes.as_ptr(), 8, predefined_handles().byte, to, 0, comm)) == 0).then_some(())
}

fn receive(comm: Word, from: c_int) -> Option<u64> {
    let mut bytes = [0_u8; 8];
    let mut status = StatusBuffer([0; 64]);
    let code = pmpi!(Recv(bytes.as_mut_ptr(), 8, predefined_handles().byte, from, 0, comm, &raw mut status));
    (code == 0).then_some(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::offset_of_shortest_ns;

    #[test]
    fn the_shortest_round_gives_the_clock_offset() {
        // Ahead by 1000: the reply is in the middle of a round of 20, and late in one of 200.
        assert_eq!(offset_of_shortest_ns(&[[100, 1290, 300], [400, 1410, 420], [500, 1520, 530]]), 1000);
        assert_eq!(offset_of_shortest_ns(&[[5000, 10, 5010]]), -4995);
        assert_eq!(offset_of_shortest_ns(&[]), 0);
    }
}
