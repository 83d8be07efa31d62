//! Where reads land. The area is used in a round, so that what was read stays there for a while and is compared between the calls.
//! Memory of pending requests is not given away. Survey and run use the same arithmetic, so the run fits what the survey saw.
//!
//! Where nothing is compared, memory is laid out as the program had it, also that of writes: what is used again, or a part of it, has the
//! place it had, and what was not used before lies behind the one before it. All begins at the place in a page where the program had it.

use std::collections::BTreeMap;

/// Places are aligned to this, as far as the program did so: direct I/O asks for it.
pub const ALIGN_BYTES: u64 = 4096;
/// Where nothing is compared, those below [`ALIGN_BYTES`] lie as close as programs have them: on multiples of the power of two in their
/// size, at least of this. Nothing in them can need more for direct I/O.
const LEAST_ALIGN_BYTES: u64 = 64;
/// Buffers that have a place at once.
const MOST_BUFFERS: usize = 1 << 16;

/// How far an address is behind a page. What is compared is in words, so it keeps to them.
#[must_use]
pub fn misaligned(address: i64) -> u64 {
    address.rem_euclid(ALIGN_BYTES as i64) as u64 / 8 * 8
}

/// The page of an address.
#[must_use]
pub fn page_of(address: i64) -> i64 {
    address.wrapping_sub(address.rem_euclid(ALIGN_BYTES as i64))
}

/// Stretches of memory of the program, by their begins.
#[derive(Clone, Debug, Default)]
struct Buffers {
    /// End, and place of the begin.
    known: BTreeMap<i64, (i64, u64)>,
    /// Of the stretch that was used last: begin, end, and where that end is here, if nothing else came there since.
    last: Option<(i64, i64, u64)>,
}

impl Buffers {
    /// Where memory lies that has a place.
    fn find(&self, begin: i64, end: i64) -> Option<u64> {
        let (first, (last, at)) = self.known.range(..=begin).next_back()?;
        (end <= *last).then(|| at + begin.abs_diff(*first))
    }
}

/// Places of the landing area that are in use.
#[derive(Clone, Debug)]
pub struct Landing {
    /// As far as the round goes.
    round_bytes: u64,
    next: u64,
    /// Memory of the program that has a place since the round began. None: memory is not laid out by buffers.
    buffers: Option<Buffers>,
    /// Begin and end of what pending requests hold.
    held: BTreeMap<u64, u64>,
    high_water: u64,
    /// What all accesses so far would take, each behind the one before.
    asked_bytes: u64,
}

/// Where a read lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Begin of its memory.
    pub at: u64,
    /// The round begins again: what was read before must have been compared.
    pub wrapped: bool,
}

impl Landing {
    /// An area whose round is about this long.
    #[must_use]
    pub fn new(round_bytes: u64) -> Self {
        Self { round_bytes, next: 0, buffers: None, held: BTreeMap::new(), high_water: 0, asked_bytes: 0 }
    }

    /// One that is laid out by buffers.
    #[must_use]
    pub fn by_buffers(round_bytes: u64) -> Self {
        Self { buffers: Some(Buffers::default()), ..Self::new(round_bytes) }
    }

    /// That of reads, which are compared or not.
    #[must_use]
    pub fn of_reads(round_bytes: u64, compared: bool) -> Self {
        if compared {
            Self::new(round_bytes)
        } else {
            Self::by_buffers(round_bytes)
        }
    }

    /// Memory for an access whose memory begins at this address in the program; `hold`: until it is released. None: beyond what can be
    /// counted.
    pub fn take(&mut self, address: Option<i64>, bytes: u64, hold: bool) -> Option<Place> {
        let align = self.align(bytes);
        self.asked_bytes = self.asked_bytes.saturating_add(bytes).saturating_add(3 * align);
        // Memory of a pending request is given to nobody else.
        let stretch = address.filter(|_| !hold).and_then(|begin| Some((begin, begin.checked_add_unsigned(bytes)?)));
        if let Some(at) = stretch.and_then(|(begin, end)| self.again_or_behind(begin, end, bytes)) {
            return Some(Place { at, wrapped: false });
        }
        let place = self.fresh(bytes, align, address.map_or(0, misaligned) % align, hold)?;
        if let Some(buffers) = &mut self.buffers {
            if place.wrapped || buffers.known.len() >= MOST_BUFFERS {
                buffers.known.clear();
            }
            buffers.last = stretch.map(|(begin, end)| (begin, end, place.at + bytes));
            buffers.known.extend(stretch.map(|(begin, end)| (begin, (end, place.at))));
        }
        Some(place)
    }

    /// The place of memory that was used, or of what the program has right behind what was used last.
    fn again_or_behind(&mut self, begin: i64, end: i64, bytes: u64) -> Option<u64> {
        let buffers = self.buffers.as_mut()?;
        if let Some(at) = buffers.find(begin, end) {
            return Some(at);
        }
        let (first, _, at) = buffers.last.filter(|(_, last, _)| *last == begin)?;
        let ends_at = at.checked_add(bytes).filter(|end| *end <= self.round_bytes)?;
        if self.held.iter().any(|(from, to)| *from < ends_at && at < *to) {
            return None;
        }
        buffers.known.get_mut(&first)?.0 = end;
        buffers.last = Some((first, end, ends_at));
        self.next = self.next.max(ends_at);
        self.high_water = self.high_water.max(ends_at);
        Some(at)
    }

    fn align(&self, bytes: u64) -> u64 {
        if self.buffers.is_some() && (1..ALIGN_BYTES).contains(&bytes) {
            (1 << bytes.trailing_zeros()).max(LEAST_ALIGN_BYTES)
        } else {
            ALIGN_BYTES
        }
    }

    /// The next memory of the round, `misaligned` bytes behind a multiple of `align`.
    fn fresh(&mut self, bytes: u64, align: u64, misaligned: u64, hold: bool) -> Option<Place> {
        let bytes = bytes.max(1).checked_add(misaligned)?.checked_next_multiple_of(align)?;
        self.next = self.next.checked_next_multiple_of(align)?;
        let mut wrapped = false;
        if self.next > 0 && self.next.checked_add(bytes)? > self.round_bytes {
            (self.next, wrapped) = (0, true);
        }
        // Past everything that is held and in the way.
        let mut at = self.next;
        for (begin, end) in &self.held {
            if *begin < at.checked_add(bytes)? && at < *end {
                at = end.checked_next_multiple_of(align)?;
            }
        }
        let end = at.checked_add(bytes)?;
        let at = at + misaligned;
        if hold {
            self.held.insert(at, end);
        }
        self.next = end;
        self.high_water = self.high_water.max(end);
        Some(Place { at, wrapped })
    }

    /// The read at this place is over.
    pub fn release(&mut self, at: u64) {
        self.held.remove(&at);
    }

    /// Bytes that these accesses use, and any part of them: a backend that leaves some out goes round elsewhere, and has other
    /// places for buffers. Where requests are pending over the end of a round a part can need more; that is refused when it is made ready.
    #[must_use]
    pub fn high_water_bytes(&self) -> u64 {
        self.high_water.max(self.asked_bytes.min(self.round_bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_round_begins_again_when_it_is_full() {
        let mut landing = Landing::new(3 * ALIGN_BYTES);
        let places: Vec<_> = (0..5).filter_map(|_| landing.take(None, 100, false)).collect();
        assert_eq!(places.iter().map(|p| p.at / ALIGN_BYTES).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
        assert_eq!(places.iter().map(|p| p.wrapped).collect::<Vec<_>>(), [false, false, false, true, false]);
        assert_eq!(landing.take(None, u64::MAX, false), None);
    }

    #[test]
    fn memory_keeps_its_place_and_new_memory_lies_behind() {
        let mut landing = Landing::by_buffers(1 << 20);
        let mut at = |address, bytes| landing.take(Some(address), bytes, false).unwrap().at;
        assert_eq!([at(0, 1024), at(9216, 1024), at(20480, 1032), at(-9216, 1032)], [0, 1024, 2048, 3136]);
        assert_eq!([at(9216, 1024), at(0, 100), at(9316, 100)], [1024, 0, 1124], "used again, or a part of it");
        assert_eq!(at(0, 8192), 8192, "longer now: another place");
        assert_eq!(at(9216, 1024), 1024);
        assert_eq!(at(1 << 40, (1 << 20) - 4096), 0, "a new round");
        assert_ne!(at(9216, 1024), 1024, "which knows nothing of the one before");
    }

    /// A ring of which each lap begins elsewhere.
    #[test]
    fn a_ring_is_a_ring() {
        let mut landing = Landing::by_buffers(1 << 20);
        let mut lap = |begins: [i64; 3]| begins.map(|at| landing.take(Some(at), 3000, false).unwrap().at);
        assert_eq!(lap([16, 3016, 6016]), [16, 3016, 6016]);
        assert_eq!(lap([1516, 4516, 16]), [1516, 4516, 16]);
    }

    #[test]
    fn memory_begins_where_it_did_in_its_page() {
        let mut landing = Landing::by_buffers(1 << 20);
        let mut at = |address, bytes| landing.take(Some(address), bytes, false).unwrap().at % ALIGN_BYTES;
        assert_eq!([at(16, 65536), at(-4000, 65536), at(100_003, 65536)], [16, 96, 1696]);
        let mut compared = Landing::new(1 << 20);
        assert_eq!(compared.take(Some(4096 + 528), 4096, false).unwrap().at, 528);
        assert_eq!((page_of(-1), page_of(4097), misaligned(-1)), (-4096, 4096, 4088));
    }

    #[test]
    fn memory_of_a_pending_request_is_nobody_elses() {
        let mut landing = Landing::by_buffers(1 << 20);
        let pending = landing.take(Some(1), 4096, true).unwrap().at;
        let same_buffer = landing.take(Some(1), 4096, false).unwrap().at;
        assert_ne!(pending, same_buffer);
        assert_ne!(landing.take(Some(1), 4096, true).unwrap().at, same_buffer, "a blocking one may be under way again");
    }

    #[test]
    fn a_buffer_whose_longest_read_is_left_out_finds_room() {
        let (mut survey, mut run) = (Landing::by_buffers(1 << 20), Landing::by_buffers(1 << 20));
        for (bytes, is_replayed) in [(8192, false), (100, true), (8192, true)] {
            survey.take(Some(1), bytes, false);
            if is_replayed {
                run.take(Some(1), bytes, false);
            }
        }
        assert!(run.high_water <= survey.high_water_bytes(), "in the survey all three share the first place");
    }

    proptest! {
        #[test]
        fn a_part_of_the_accesses_fits_where_all_do(
            all in proptest::collection::vec((1_u64..40_000, any::<bool>(), -40_i64..40), 1..40),
            by_buffers: bool,
            direct: bool,
            round_pages in 1_u64..200
        ) {
            let new = || if by_buffers { Landing::by_buffers(round_pages * ALIGN_BYTES) } else { Landing::new(round_pages * ALIGN_BYTES) };
            let (mut survey, mut run) = (new(), new());
            for (bytes, is_replayed, buffer) in all {
                survey.take(Some(1000 * buffer), bytes, false);
                if is_replayed {
                    run.take(Some(if direct { page_of(1000 * buffer) } else { 1000 * buffer }), bytes, false);
                }
            }
            prop_assert!(run.high_water <= survey.high_water_bytes());
        }

        #[test]
        fn pending_reads_never_share_memory(steps in proptest::collection::vec((1_u64..40_000, any::<bool>(), -9_i64..90), 1..80), by_buffers: bool) {
            let bytes = 8 * ALIGN_BYTES;
            let mut landing = if by_buffers { Landing::by_buffers(bytes) } else { Landing::new(bytes) };
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (n, (bytes, hold, buffer)) in steps.into_iter().enumerate() {
                let place = landing.take(Some(1000 * buffer), bytes, hold).unwrap();
                for (at, end) in &held {
                    prop_assert!(place.at + bytes <= *at || *end <= place.at);
                }
                if hold {
                    held.push((place.at, place.at + bytes));
                }
                if n % 3 == 2 && !held.is_empty() {
                    landing.release(held.remove(0).0);
                }
                prop_assert!(place.at + bytes <= landing.high_water_bytes());
            }
        }
    }
}
