//! The clocks of several hosts. Messages go between the processes only here: in MPI_Init and MPI_Finalize, and only if there may be
//! more than one host.

use std::ffi::{c_int, CStr};
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::monotonic_ns;
use crate::mpi::{constants, pmpi, Status, Word};
use crate::original::Symbol;

/// Messages to each rank; that with the shortest way counts.
const ROUNDS: usize = 32;

/// Name of this host.
pub fn name() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: room for a name and its end.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), 255) };
    crate::decode::text(&name)
}

/// Clocks were compared when MPI began. All ranks agree on it, and they do it again at the end whether they are recorded or not:
/// the others would wait for ever.
static COMPARED: AtomicBool = AtomicBool::new(false);

/// What is added to this clock to have that of rank 0, in ns; 0 if all ranks are on one host. Collective unless the launcher says
/// that they are.
pub fn offset_ns() -> i64 {
    offset().unwrap_or(0)
}

fn offset() -> Option<i64> {
    let world = constants().comm_world;
    if std::env::var_os("BEFF_PROFILE_CLOCKS").is_none() && (launched_here(world) || one_host(world)?) {
        return Some(0);
    }
    COMPARED.store(true, Ordering::Relaxed);
    compare(world)
}

/// The offset at the end, collective if the clocks were compared at the begin. `known`: that of the begin, kept if this attempt fails.
pub fn offset_again_ns(known: i64) -> i64 {
    let again = COMPARED.swap(false, Ordering::Relaxed);
    again.then(|| compare(constants().comm_world)).flatten().unwrap_or(known)
}

/// This process is a fork: it has no part in what is collective.
pub fn forget() {
    COMPARED.store(false, Ordering::Relaxed);
}

/// True if the launcher has told that all ranks are on this host. Asking them would wait for ranks that run without this library.
fn launched_here(world: Word) -> bool {
    let name = if cfg!(open_mpi) { "OMPI_COMM_WORLD_LOCAL_SIZE" } else { "MPI_LOCALNRANKS" };
    let here = std::env::var(name).ok().and_then(|value| value.parse().ok());
    let mut ranks: c_int = 0;
    pmpi!(Comm_size(world, &raw mut ranks)) == 0 && here == Some(ranks)
}

fn compare(world: Word) -> Option<i64> {
    let mut own: Word = 0;
    if pmpi!(Comm_dup(world, &raw mut own)) != 0 {
        return None;
    }
    let result = measure(own);
    pmpi!(Comm_free(&raw mut own));
    result
}

/// True if all ranks are on one host: every one compares its name with that of the next rank.
fn one_host(world: Word) -> Option<bool> {
    let mut hasher = DefaultHasher::new();
    hasher.write(name().as_bytes());
    let mine = hasher.finish().to_le_bytes();
    let mut ranks: c_int = 0;
    if pmpi!(Comm_size(world, &raw mut ranks)) != 0 {
        return None;
    }
    let byte = constants().byte;
    let mut all = vec![0_u8; 8 * usize::try_from(ranks).ok()?];
    if pmpi!(Allgather(mine.as_ptr(), 8, byte, all.as_mut_ptr(), 8, byte, world)) != 0 {
        return None;
    }
    Some(all.chunks_exact(8).all(|one| one == mine))
}

/// Rank 0 answers its time to each other rank in turn.
fn measure(comm: Word) -> Option<i64> {
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
    Some(nearest_ns(&rounds?))
}

/// What is added to this clock to have the other one, from rounds of own time before, the other's time and own time behind. The shortest
/// round counts, and the other is taken to have answered in its middle.
fn nearest_ns(rounds: &[[u64; 3]]) -> i64 {
    let way = |round: &&[u64; 3]| round[2].saturating_sub(round[0]);
    let shortest = rounds.iter().min_by_key(way);
    shortest.map_or(0, |round| round[1] as i64 - (round[0] + way(&round) / 2) as i64)
}

fn send(comm: Word, to: c_int, value: u64) -> Option<()> {
    let bytes = value.to_le_bytes();
    (pmpi!(Send(bytes.as_ptr(), 8, constants().byte, to, 0, comm)) == 0).then_some(())
}

fn receive(comm: Word, from: c_int) -> Option<u64> {
    let mut bytes = [0_u8; 8];
    let mut status = Status([0; 64]);
    let code = pmpi!(Recv(bytes.as_mut_ptr(), 8, constants().byte, from, 0, comm, &raw mut status));
    (code == 0).then_some(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::nearest_ns;

    #[test]
    fn the_shortest_round_tells_the_distance_of_the_clocks() {
        // Ahead by 1000: answered in the middle of a round of 20, and late in one of 200.
        assert_eq!(nearest_ns(&[[100, 1290, 300], [400, 1410, 420], [500, 1520, 530]]), 1000);
        assert_eq!(nearest_ns(&[[5000, 10, 5010]]), -4995);
        assert_eq!(nearest_ns(&[]), 0);
    }
}
