//! The ranks of a file as each other's partners: who moves data, and how memory is reached.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::Arc;

use beff_ffi::{Comm, MpiError};

use super::life::Life;
use super::outcome::of_lowest;
use super::shared::{Address, Control, Mapping};
use crate::{Exchange, Ring};

/// Memory of others up to this size is mapped at once; above, page tables of all of it would cost more than the faults.
const AT_ONCE_BYTES: u64 = 1 << 30;

/// What all ranks know of each other, for one ring.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) ring_id: u64,
    /// Which host each rank is on, as numbers that are equal for equal hosts.
    pub(crate) hosts: Vec<u64>,
    pub(crate) link: Link,
}

/// How data goes from rank to rank.
#[derive(Debug)]
pub(crate) enum Link {
    /// Through each other's memory: the ring of every rank but this one (on aggregators), and the counters.
    Shared { rings: Vec<Option<Arc<Mapping>>>, control: Control },
    /// By messages; why not through memory, if that would have been preferred.
    Messages { reason: Option<String> },
}

/// Why the ranks could not be linked.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// MPI failed between them.
    Mpi(MpiError),
    /// Equal on all ranks.
    Refused(String),
}

impl From<MpiError> for LinkError {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

/// What a rank tells the others.
struct Card {
    life: Life,
    host: u64,
    period: u64,
    len: u64,
    ring: Address,
    control: Address,
}

impl Card {
    const WORDS: usize = 5 + 2 * Address::WORDS;

    fn to_words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[..3].copy_from_slice(&[self.host, self.period, self.len]);
        words[3..5].copy_from_slice(&[self.life.pid, self.life.began]);
        words[5..5 + Address::WORDS].copy_from_slice(&self.ring.to_words());
        words[5 + Address::WORDS..].copy_from_slice(&self.control.to_words());
        words
    }

    fn from_words(words: &[u64]) -> Self {
        Self {
            host: words[0],
            period: words[1],
            len: words[2],
            life: Life { pid: words[3], began: words[4] },
            ring: Address::from_words(&words[5..]),
            control: Address::from_words(&words[5 + Address::WORDS..]),
        }
    }
}

impl Peers {
    /// Links the ranks of `comm` over their rings; `wanted` of them will move data. Collective.
    pub(crate) fn connect(
        comm: &Comm,
        ring: &Ring,
        exchange: Exchange,
        wanted: Option<u64>,
    ) -> Result<Self, LinkError> {
        let ranks = usize::try_from(comm.size()).unwrap_or(usize::MAX);
        // Lives until everybody has opened it.
        let control = if comm.is_root() { Control::create(ranks).ok() } else { None };
        let address = |file: Option<&std::fs::File>| file.and_then(|f| Address::of(f).ok()).unwrap_or(Address::NONE);
        let card = Card {
            life: Life::own(),
            host: this_host(),
            period: ring.period_bytes(),
            len: ring.bytes().len() as u64,
            ring: address(ring.shared_file()),
            control: address(control.as_ref()),
        };
        let words = comm.allgather_u64(&card.to_words())?;
        let cards: Vec<Card> = words.chunks(Card::WORDS).map(Card::from_words).collect();
        if cards.iter().any(|c| (c.period, c.len) != (card.period, card.len)) {
            return Err(LinkError::Refused("the ranks have transfer memory of different lengths".into()));
        }
        let hosts: Vec<u64> = cards.iter().map(|c| c.host).collect();
        if exchange == Exchange::Messages {
            return Ok(Self { ring_id: ring.id(), hosts, link: Link::Messages { reason: None } });
        }
        let moves_data = aggregators(&hosts, wanted).contains(&comm.rank());
        let mine = share(&cards, usize::try_from(comm.rank()).unwrap_or(0), moves_data);
        let refused = of_lowest(comm, mine.as_ref().err().map(|reason| reason.clone().into_bytes()))?;
        let link = match refused.map(|(_, reason)| String::from_utf8_lossy(&reason).into_owned()) {
            Some(reason) if exchange == Exchange::SharedMemory => return Err(LinkError::Refused(reason)),
            Some(reason) => Link::Messages { reason: Some(reason) },
            None => mine.map_err(LinkError::Refused)?,
        };
        Ok(Self { ring_id: ring.id(), hosts, link })
    }
}

/// Maps what the others have, if this rank moves data, or says why that cannot be.
fn share(cards: &[Card], me: usize, moves_data: bool) -> Result<Link, String> {
    let mut hosts: Vec<u64> = cards.iter().map(|c| c.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() > 1 {
        return Err(format!("the ranks are on {} hosts or in other name spaces", hosts.len()));
    }
    if let Some(rank) = cards.iter().position(|c| c.ring == Address::NONE) {
        return Err(format!("the transfer memory of rank {rank} was not made to be shared"));
    }
    let wrong = |rank: usize| move |e: io::Error| format!("rank {me} cannot map the memory of rank {rank}: {e}");
    let lives = cards.iter().map(|card| card.life).collect();
    let control = Control::join(&cards[0].control, me, lives).map_err(wrong(0))?;
    let at_once = cards.iter().map(|c| c.ring.len).sum::<u64>() <= AT_ONCE_BYTES;
    let map = |(rank, card): (usize, &Card)| {
        if rank == me || !moves_data {
            return Ok(None);
        }
        Mapping::at(&card.ring, at_once).map(Some).map_err(wrong(rank))
    };
    let rings = cards.iter().enumerate().map(map).collect::<Result<_, _>>()?;
    Ok(Link::Shared { rings, control })
}

/// A number for the running kernel and the name space of process ids: equal where /proc shows the same processes.
fn this_host() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default().hash(&mut hasher);
    std::fs::read_link("/proc/self/ns/pid").ok().hash(&mut hasher);
    hasher.finish()
}

/// The ranks that move data: the first of each host before the second of any.
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
    fn cards_survive_the_journey() {
        let ring = Address { pid: 1, fd: 2, device: 3, inode: 4, len: 5 };
        let life = Life { pid: 10, began: 11 };
        let card = Card { life, host: 9, period: 8, len: 7, ring, control: Address { pid: 6, ..ring } };
        let same = Card::from_words(&card.to_words());
        assert_eq!(same.life, life);
        assert_eq!((same.host, same.period, same.len, same.ring, same.control), (9, 8, 7, ring, card.control));
    }

    #[test]
    fn memory_that_is_not_shared_is_named() {
        let private = Ring::new(4096, 8).unwrap();
        assert!(private.shared_file().is_none());
        let card =
            |host| Card { life: Life::own(), host, period: 1, len: 1, ring: Address::NONE, control: Address::NONE };
        assert!(share(&[card(1), card(1)], 0, true).unwrap_err().contains("not made to be shared"));
        assert!(share(&[card(1), card(2)], 0, true).unwrap_err().contains("2 hosts"));
    }
}
