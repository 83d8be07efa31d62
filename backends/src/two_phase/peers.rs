//! Links the ranks of a file: selects aggregators, and maps the memory of other ranks.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::Arc;

use beff_ffi::{Comm, MpiError};

use super::outcome::broadcast_lowest;
use super::process::ProcessIdentity;
use super::shared_memory::{SharedMapping, SharedMemoryAddress, SyncPoints};
use crate::{ExchangeMethod, TransferBuffer};

/// Memory of other ranks up to this total is mapped with all pages; beyond, the page tables would cost more than the faults.
const MAX_PREFAULT_BYTES: u64 = 1 << 30;

/// Shared information about all ranks, for one transfer buffer.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) buffer_id: u64,
    /// Host of each rank, as numbers that are equal for equal hosts.
    pub(crate) hosts: Vec<u64>,
    pub(crate) link: ExchangeLink,
}

#[derive(Debug)]
pub(crate) enum ExchangeLink {
    /// Through shared memory: the buffers of all other ranks (on aggregators), and the counters.
    Shared { rings: Vec<Option<Arc<SharedMapping>>>, control: SyncPoints },
    /// By messages, with the reason if shared memory would have been preferred.
    Messages { reason: Option<String> },
}

/// Why the ranks could not be linked.
#[derive(Debug)]
pub(crate) enum LinkError {
    Mpi(MpiError),
    /// Refused, with the same reason on all ranks.
    Refused(String),
}

impl From<MpiError> for LinkError {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

/// Information that each rank sends to the others.
struct PeerDescriptor {
    process: ProcessIdentity,
    host: u64,
    period: u64,
    len: u64,
    ring: SharedMemoryAddress,
    control: SharedMemoryAddress,
}

impl PeerDescriptor {
    const WORDS: usize = 5 + 2 * SharedMemoryAddress::WORDS;

    fn to_words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[..3].copy_from_slice(&[self.host, self.period, self.len]);
        words[3..5].copy_from_slice(&[self.process.pid, self.process.start_ticks]);
        words[5..5 + SharedMemoryAddress::WORDS].copy_from_slice(&self.ring.to_words());
        words[5 + SharedMemoryAddress::WORDS..].copy_from_slice(&self.control.to_words());
        words
    }

    fn from_words(words: &[u64]) -> Self {
        Self {
            host: words[0],
            period: words[1],
            len: words[2],
            process: ProcessIdentity { pid: words[3], start_ticks: words[4] },
            ring: SharedMemoryAddress::from_words(&words[5..]),
            control: SharedMemoryAddress::from_words(&words[5 + SharedMemoryAddress::WORDS..]),
        }
    }
}

impl Peers {
    /// Links the ranks of `comm` and their transfer buffers; `wanted`: number of aggregators. Collective.
    pub(crate) fn connect(
        comm: &Comm,
        buffer: &TransferBuffer,
        exchange: ExchangeMethod,
        wanted: Option<u64>,
    ) -> Result<Self, LinkError> {
        let ranks = usize::try_from(comm.size()).unwrap_or(usize::MAX);
        // Must live until all ranks have opened it.
        let control = if comm.is_root() { SyncPoints::create(ranks).ok() } else { None };
        let address = |file: Option<&std::fs::File>| {
            file.and_then(|f| SharedMemoryAddress::of(f).ok()).unwrap_or(SharedMemoryAddress::NONE)
        };
        let card = PeerDescriptor {
            process: ProcessIdentity::current(),
            host: host_id(),
            period: buffer.period_bytes(),
            len: buffer.bytes().len() as u64,
            ring: address(buffer.shared_file()),
            control: address(control.as_ref()),
        };
        let words = comm.allgather_u64(&card.to_words())?;
        let cards: Vec<PeerDescriptor> = words.chunks(PeerDescriptor::WORDS).map(PeerDescriptor::from_words).collect();
        if cards.iter().any(|c| (c.period, c.len) != (card.period, card.len)) {
            return Err(LinkError::Refused("the transfer buffers of the ranks have different lengths".into()));
        }
        let hosts: Vec<u64> = cards.iter().map(|c| c.host).collect();
        if exchange == ExchangeMethod::Messages {
            return Ok(Self { buffer_id: buffer.id(), hosts, link: ExchangeLink::Messages { reason: None } });
        }
        let moves_data = aggregators(&hosts, wanted).contains(&comm.rank());
        let mine = map_peers(&cards, usize::try_from(comm.rank()).unwrap_or(0), moves_data);
        let refused = broadcast_lowest(comm, mine.as_ref().err().map(|reason| reason.clone().into_bytes()))?;
        let link = match refused.map(|(_, reason)| String::from_utf8_lossy(&reason).into_owned()) {
            Some(reason) if exchange == ExchangeMethod::SharedMemory => return Err(LinkError::Refused(reason)),
            Some(reason) => ExchangeLink::Messages { reason: Some(reason) },
            None => mine.map_err(LinkError::Refused)?,
        };
        Ok(Self { buffer_id: buffer.id(), hosts, link })
    }
}

/// Maps the memory of the other ranks, if this rank is an aggregator, or returns why this is not possible.
fn map_peers(cards: &[PeerDescriptor], me: usize, moves_data: bool) -> Result<ExchangeLink, String> {
    let mut hosts: Vec<u64> = cards.iter().map(|c| c.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() > 1 {
        return Err(format!("the ranks are on {} hosts or in different PID namespaces", hosts.len()));
    }
    if let Some(rank) = cards.iter().position(|c| c.ring == SharedMemoryAddress::NONE) {
        return Err(format!("the transfer buffer of rank {rank} is not shareable"));
    }
    let wrong = |rank: usize| move |e: io::Error| format!("rank {me} cannot map the memory of rank {rank}: {e}");
    let lives = cards.iter().map(|card| card.process).collect();
    let control = SyncPoints::join(&cards[0].control, me, lives).map_err(wrong(0))?;
    let at_once = cards.iter().map(|c| c.ring.len).sum::<u64>() <= MAX_PREFAULT_BYTES;
    let map = |(rank, card): (usize, &PeerDescriptor)| {
        if rank == me || !moves_data {
            return Ok(None);
        }
        SharedMapping::at(&card.ring, at_once).map(Some).map_err(wrong(rank))
    };
    let buffers = cards.iter().enumerate().map(map).collect::<Result<_, _>>()?;
    Ok(ExchangeLink::Shared { rings: buffers, control })
}

/// A hash of the running kernel and the PID namespace: equal if /proc shows the same processes.
fn host_id() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default().hash(&mut hasher);
    std::fs::read_link("/proc/self/ns/pid").ok().hash(&mut hasher);
    hasher.finish()
}

/// The aggregators: the first rank of each host before the second of any.
pub(crate) fn aggregators(hosts: &[u64], wanted: Option<u64>) -> Vec<u64> {
    let place = |rank: usize| hosts[..rank].iter().filter(|h| **h == hosts[rank]).count();
    let mut ranks: Vec<usize> = (0..hosts.len()).collect();
    ranks.sort_by_key(|&rank| (place(rank), rank));
    let most = wanted.map_or(hosts.len(), |w| usize::try_from(w).unwrap_or(usize::MAX)).max(1);
    ranks.into_iter().take(most).map(|rank| rank as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregators_are_spread_over_hosts() {
        assert_eq!(aggregators(&[7, 7, 7, 3, 3], Some(2)), [0, 3]);
        assert_eq!(aggregators(&[7, 7, 7, 3, 3], Some(3)), [0, 3, 1]);
        assert_eq!(aggregators(&[7, 7, 7, 3, 3], None), [0, 3, 1, 4, 2]);
        assert_eq!(aggregators(&[7, 7], Some(9)), [0, 1]);
        assert_eq!(aggregators(&[7, 7], Some(0)), [0]);
    }

    #[test]
    fn descriptors_are_encoded_losslessly() {
        let buffer = SharedMemoryAddress { pid: 1, fd: 2, device: 3, inode: 4, len: 5 };
        let life = ProcessIdentity { pid: 10, start_ticks: 11 };
        let card = PeerDescriptor {
            process: life,
            host: 9,
            period: 8,
            len: 7,
            ring: buffer,
            control: SharedMemoryAddress { pid: 6, ..buffer },
        };
        let same = PeerDescriptor::from_words(&card.to_words());
        assert_eq!(same.process, life);
        assert_eq!((same.host, same.period, same.len, same.ring, same.control), (9, 8, 7, buffer, card.control));
    }

    #[test]
    fn memory_that_is_not_shared_is_named() {
        let private = TransferBuffer::new(4096, 8).unwrap();
        assert!(private.shared_file().is_none());
        let card = |host| PeerDescriptor {
            process: ProcessIdentity::current(),
            host,
            period: 1,
            len: 1,
            ring: SharedMemoryAddress::NONE,
            control: SharedMemoryAddress::NONE,
        };
        assert!(map_peers(&[card(1), card(1)], 0, true).unwrap_err().contains("is not shareable"));
        assert!(map_peers(&[card(1), card(2)], 0, true).unwrap_err().contains("2 hosts"));
    }
}
