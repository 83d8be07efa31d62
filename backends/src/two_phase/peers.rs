//! Links the ranks of a file: selects aggregators, and maps the memory of other ranks.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::Arc;

use beff_ffi::{Comm, MpiError};

use super::outcome::broadcast_lowest;
use super::process::ProcessIdentity;
use super::shared_memory::{SharedMapping, SharedMemoryAddress, SyncPoints};
use crate::{default_aggregators, ExchangeMethod, TransferBuffer};

/// Memory of other ranks up to this total is mapped with all pages; beyond, the page tables would cost more than the faults.
const MAX_PREFAULT_BYTES: u64 = 1 << 30;

/// Shared information about all ranks, for one transfer buffer.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) buffer_id: u64,
    /// The aggregators, in the order of their domains.
    pub(crate) aggregator_ranks: Vec<u64>,
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

/// Information that each rank of a host sends to the others.
struct PeerDescriptor {
    process: ProcessIdentity,
    ring: SharedMemoryAddress,
    control: SharedMemoryAddress,
}

impl PeerDescriptor {
    const WORDS: usize = 2 + 2 * SharedMemoryAddress::WORDS;

    fn to_words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[..2].copy_from_slice(&[self.process.pid, self.process.start_ticks]);
        words[2..2 + SharedMemoryAddress::WORDS].copy_from_slice(&self.ring.to_words());
        words[2 + SharedMemoryAddress::WORDS..].copy_from_slice(&self.control.to_words());
        words
    }

    fn from_words(words: &[u64]) -> Self {
        Self {
            process: ProcessIdentity { pid: words[0], start_ticks: words[1] },
            ring: SharedMemoryAddress::from_words(&words[2..]),
            control: SharedMemoryAddress::from_words(&words[2 + SharedMemoryAddress::WORDS..]),
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
        // Over several hosts, one number of each rank is all that every rank receives.
        let hosts = comm.allgather_u64(&[host_id()])?;
        let aggregator_ranks = aggregators(&hosts, wanted);
        let (period, len) = (buffer.period_bytes(), buffer.bytes().len() as u64);
        let mut largest = [period, !period, len, !len];
        comm.max_u64(&mut largest)?;
        if largest != [period, !period, len, !len] {
            return Err(LinkError::Refused("the transfer buffers of the ranks have different lengths".into()));
        }
        let link = match several_hosts(&hosts) {
            _ if exchange == ExchangeMethod::Messages => ExchangeLink::Messages { reason: None },
            Some(reason) if exchange == ExchangeMethod::SharedMemory => return Err(LinkError::Refused(reason)),
            Some(reason) => ExchangeLink::Messages { reason: Some(reason) },
            None => link_host(comm, buffer, exchange, aggregator_ranks.contains(&comm.rank()))?,
        };
        Ok(Self { buffer_id: buffer.id(), aggregator_ranks, link })
    }
}

/// Why ranks of these hosts cannot share memory; None on one host.
fn several_hosts(hosts: &[u64]) -> Option<String> {
    let hosts = hosts.iter().collect::<HashSet<_>>().len();
    (hosts > 1).then(|| format!("the ranks are on {hosts} hosts or in different PID namespaces"))
}

/// Links ranks of one host through shared memory, or by messages if this is refused and not required. Collective.
fn link_host(
    comm: &Comm,
    buffer: &TransferBuffer,
    exchange: ExchangeMethod,
    moves_data: bool,
) -> Result<ExchangeLink, LinkError> {
    let ranks = usize::try_from(comm.size()).unwrap_or(usize::MAX);
    // Must live until all ranks have opened it.
    let control = if comm.is_root() { SyncPoints::create(ranks).ok() } else { None };
    let address = |file: Option<&std::fs::File>| {
        file.and_then(|f| SharedMemoryAddress::of(f).ok()).unwrap_or(SharedMemoryAddress::NONE)
    };
    let card = PeerDescriptor {
        process: ProcessIdentity::current(),
        ring: address(buffer.shared_file()),
        control: address(control.as_ref()),
    };
    let words = comm.allgather_u64(&card.to_words())?;
    let cards: Vec<PeerDescriptor> = words.chunks(PeerDescriptor::WORDS).map(PeerDescriptor::from_words).collect();
    let mine = map_peers(&cards, usize::try_from(comm.rank()).unwrap_or(0), moves_data);
    let refused = broadcast_lowest(comm, mine.as_ref().err().map(|reason| reason.clone().into_bytes()))?;
    match refused.map(|(_, reason)| String::from_utf8_lossy(&reason).into_owned()) {
        Some(reason) if exchange == ExchangeMethod::SharedMemory => Err(LinkError::Refused(reason)),
        Some(reason) => Ok(ExchangeLink::Messages { reason: Some(reason) }),
        None => mine.map_err(LinkError::Refused),
    }
}

/// Maps the memory of the other ranks, if this rank is an aggregator, or returns why this is not possible.
fn map_peers(cards: &[PeerDescriptor], me: usize, moves_data: bool) -> Result<ExchangeLink, String> {
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

/// The aggregators: the first rank of each host before the second of any. `wanted`: their number, else [`default_aggregators`].
///
/// A counting sort by the rank's place on its host: linear in the number of ranks.
fn aggregators(hosts: &[u64], wanted: Option<u64>) -> Vec<u64> {
    let mut ranks_of: HashMap<u64, usize> = HashMap::new();
    // Ranks on each place of any host.
    let mut counts: Vec<usize> = Vec::new();
    let mut places = Vec::with_capacity(hosts.len());
    for host in hosts {
        let place = ranks_of.entry(*host).or_default();
        if *place == counts.len() {
            counts.push(0);
        }
        counts[*place] += 1;
        places.push(*place);
        *place += 1;
    }
    let most = wanted.unwrap_or_else(|| default_aggregators(hosts.len() as u64, ranks_of.len() as u64)).max(1);
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(hosts.len());
    let mut end = 0;
    let begin_of = |count: &usize| {
        end += count;
        end - count
    };
    let mut positions: Vec<usize> = counts.iter().map(begin_of).collect();
    let mut chosen = vec![0; most];
    for (place, rank) in places.into_iter().zip(0..) {
        if let Some(slot) = chosen.get_mut(positions[place]) {
            *slot = rank;
        }
        positions[place] += 1;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    /// The definition, in quadratic time.
    fn by_definition(hosts: &[u64], wanted: u64) -> Vec<u64> {
        let place = |rank: usize| hosts[..rank].iter().filter(|h| **h == hosts[rank]).count();
        let mut ranks: Vec<usize> = (0..hosts.len()).collect();
        ranks.sort_by_key(|&rank| (place(rank), rank));
        ranks.into_iter().take(wanted.max(1) as usize).map(|rank| rank as u64).collect()
    }

    proptest! {
        #[test]
        fn aggregators_are_those_of_the_definition(
            hosts in proptest::collection::vec(0_u64..7, 1..60), wanted in 0_u64..70,
        ) {
            prop_assert_eq!(aggregators(&hosts, Some(wanted)), by_definition(&hosts, wanted));
            let number = hosts.iter().collect::<HashSet<_>>().len() as u64;
            let ranks = hosts.len() as u64;
            let by_default = if number == 1 { ranks } else { number };
            prop_assert_eq!(aggregators(&hosts, None), by_definition(&hosts, by_default));
        }
    }

    #[test]
    fn aggregators_are_spread_over_hosts() {
        assert_eq!(aggregators(&[7, 7, 7, 3, 3], Some(2)), [0, 3]);
        assert_eq!(aggregators(&[7, 7, 7, 3, 3], Some(3)), [0, 3, 1]);
        assert_eq!(aggregators(&[7, 7, 7, 3, 3], Some(5)), [0, 3, 1, 4, 2]);
        assert_eq!(aggregators(&[7, 7, 7, 3, 3], None), [0, 3], "one on each host");
        assert_eq!(aggregators(&[7, 7], None), [0, 1], "all of one host");
        assert_eq!(aggregators(&[7, 7], Some(9)), [0, 1]);
        assert_eq!(aggregators(&[7, 7], Some(0)), [0]);
    }

    /// Would take hours in quadratic time.
    #[test]
    fn a_million_ranks_have_aggregators() {
        let blocks: Vec<u64> = (0..1_000_000_u64).map(|rank| rank / 128).collect();
        assert_eq!(aggregators(&blocks, None), (0..64).map(|host| host * 128).collect::<Vec<u64>>());
        let cyclic: Vec<u64> = (0..1_000_000_u64).map(|rank| rank % 7813).collect();
        assert_eq!(aggregators(&cyclic, Some(1_000_000)), (0..1_000_000).collect::<Vec<u64>>());
    }

    #[test]
    fn descriptors_are_encoded_losslessly() {
        let buffer = SharedMemoryAddress { pid: 1, fd: 2, device: 3, inode: 4, len: 5 };
        let life = ProcessIdentity { pid: 10, start_ticks: 11 };
        let card = PeerDescriptor { process: life, ring: buffer, control: SharedMemoryAddress { pid: 6, ..buffer } };
        let same = PeerDescriptor::from_words(&card.to_words());
        assert_eq!((same.process, same.ring, same.control), (life, buffer, card.control));
    }

    #[test]
    fn memory_that_is_not_shared_is_named() {
        let private = TransferBuffer::new(4096, 8).unwrap();
        assert!(private.shared_file().is_none());
        let card = || PeerDescriptor {
            process: ProcessIdentity::current(),
            ring: SharedMemoryAddress::NONE,
            control: SharedMemoryAddress::NONE,
        };
        assert!(map_peers(&[card(), card()], 0, true).unwrap_err().contains("is not shareable"));
        assert_eq!(several_hosts(&[1, 1]), None);
        assert!(several_hosts(&[1, 2, 1]).unwrap().contains("2 hosts"));
    }
}
