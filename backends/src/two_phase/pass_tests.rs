use super::*;
use std::os::unix::fs::FileExt;

use crate::queue::{self, Queue, MAX_PIECE_SHIFT};
use crate::testing::{fill, pattern, stream_byte};
use crate::two_phase::lane::{Slot, Way};
use crate::two_phase::rows::Layout;
use crate::{AccessKind, Direction, Latency, Pattern, Ring};
use proptest::prelude::*;
use std::os::fd::AsRawFd;
use std::path::Path;

const PERIOD: u64 = 3 * 4096;

/// All aggregators of a file in one process, one after the other.
struct Bench {
    file: File,
    pattern: Pattern,
    rows: Rows,
    grid: Grid,
    rings: Vec<Ring>,
    edges: Vec<Edge>,
    tail: Option<Tail>,
    blocks: Ring,
    queue: Option<Queue>,
    parts: Option<PartSizes>,
}

impl Bench {
    fn new(pattern: Pattern, grid: Grid, with_queue: bool) -> Self {
        let layout = Layout::of(&pattern, grid.align).unwrap();
        let rows = Rows::new(&pattern, layout, PERIOD);
        let file = tempfile::tempfile().unwrap();
        let ring = |seed| {
            let mut ring = Ring::new(PERIOD, pattern.call_bytes()).unwrap();
            fill(&mut ring, seed);
            ring
        };
        let block_bytes = grid.most_piece_bytes().next_multiple_of(4096);
        let mut blocks = Ring::new(2 * block_bytes, 0).unwrap();
        let mut rings: Vec<Ring> = (0..rows.parts).map(ring).collect();
        let queue = with_queue.then(|| {
            let mut queue = Queue::new(2, &[file.as_raw_fd()], MAX_PIECE_SHIFT, Path::new("f")).unwrap();
            let registered = &mut match &mut rings[..] {
                [own] => vec![&mut blocks, own],
                _ => vec![&mut blocks],
            };
            queue.register_memory(registered, Path::new("f")).unwrap();
            queue
        });
        Self {
            rings,
            edges: (0..grid.aggregators).map(|_| Edge::new(grid).unwrap()).collect(),
            tail: None,
            file,
            pattern,
            rows,
            grid,
            blocks,
            queue,
            parts: Some(PartSizes::USUAL),
        }
    }

    /// Runs `work` as aggregator `me`.
    fn with_pass(&mut self, me: u64, direction: Direction, work: impl FnOnce(&mut Pass<'_>)) {
        let bases: Vec<*mut u8> = self.rings.iter_mut().map(|ring| ring.bytes_mut().as_mut_ptr()).collect();
        let mut slots = [Slot::default(), Slot::default()];
        let mut latency = Latency::on();
        let path = Path::new("f");
        let queued = queue::Way { direction, direct: false, flags: 0 };
        let way = Way { file: &self.file, queued, path, align: 1 };
        let count = if self.queue.is_some() { 2 } else { 1 };
        let registered = self.queue.is_some();
        let mut pass = Pass {
            rows: self.rows,
            grid: self.grid,
            me: Some(me),
            lane: Lane::new(way, self.queue.as_mut(), &mut slots[..count], &mut latency),
            blocks: Blocks {
                base: self.blocks.bytes_mut().as_mut_ptr(),
                bytes: self.grid.most_piece_bytes().next_multiple_of(4096) as usize,
                registered,
            },
            own: (registered && bases.len() == 1).then_some(Own { first: 1, piece_shift: MAX_PIECE_SHIFT }),
            edge: &mut self.edges[me as usize],
            file: &self.file,
            bases: &bases,
            tail: self.tail,
            parts: self.parts,
            error: None,
            path,
        };
        work(&mut pass);
        assert_eq!(pass.error, None);
    }

    fn write(&mut self, batch: Batch) {
        let (begin, end) = self.rows.region(batch);
        self.tail = self.tail.filter(|t| t.end == begin);
        let cut = Cut::new(self.grid, begin, end, self.tail.map(|t| t.holder));
        for me in 0..self.grid.aggregators {
            // SAFETY: the rings are as long as the pattern's windows.
            self.with_pass(me, Direction::Write, |pass| unsafe { pass.write_pieces(&cut) });
        }
        self.tail = cut.last_holder().map(|holder| Tail { end, holder, dirty: true });
    }

    fn flush(&mut self) {
        if let Some(tail) = self.tail {
            self.edges[tail.holder as usize].flush(&self.file, tail.end, true).unwrap();
        }
    }

    fn read(&mut self, batch: Batch) {
        let mut pending = VecDeque::new();
        for me in 0..self.grid.aggregators {
            // SAFETY: as in `write`.
            self.with_pass(me, Direction::Read, |pass| unsafe { pass.read_pieces(batch, &mut pending, None) });
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.file.metadata().unwrap().len() as usize];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// What the file must hold after `calls` calls, over `before`.
    fn expected(&self, calls: u64, before: &[u8]) -> Vec<u8> {
        let (begin, end) = self.rows.region(Batch { first_call: 0, calls });
        let mut bytes = before.to_vec();
        bytes.resize(bytes.len().max(end as usize), 0);
        for offset in begin..end {
            let chunk = (offset - self.rows.origin) / self.rows.chunk;
            let (row, part) = (chunk / self.rows.parts, chunk % self.rows.parts);
            let position =
                self.pattern.stream_bytes + row * self.rows.chunk + (offset - self.rows.origin) % self.rows.chunk;
            bytes[offset as usize] = stream_byte(part, position, PERIOD);
        }
        bytes
    }
}

fn some_pattern(words: u64, per_call: u64, ranks: u64, stream: u64) -> Pattern {
    let (chunk, stream) = (words * 8, stream * 8);
    let one = Pattern { kind: AccessKind::Collective, stream_bytes: stream, ..pattern(chunk, per_call, 1000) };
    if ranks == 1 {
        // The only rank of a segmented file.
        return Pattern { base_bytes: stream, rank_distance_bytes: 1 << 30, ..one };
    }
    let origin = stream * ranks;
    let (stride_bytes, rank_distance_bytes) = (ranks * chunk, chunk);
    Pattern { base_bytes: origin, origin_bytes: origin, stride_bytes, ranks, rank_distance_bytes, ..one }
}

/// Whole sectors of a segment move between the file and the ring itself, which is registered behind the domains.
#[test]
fn what_moves_straight_is_in_registered_memory() {
    let grid = Grid::new(512, 1 << 16, 1);
    let mut bench = Bench::new(some_pattern(512, 1, 1, 0), grid, true);
    let batch = Batch { first_call: 0, calls: 8 };
    bench.write(batch);
    assert_eq!(bench.bytes(), bench.expected(8, &[]));
    bench.rings[0].bytes_mut().fill(0);
    bench.blocks.bytes_mut().fill(0xEE);
    bench.read(batch);
    assert_eq!(bench.rings[0].bytes()[..4096], bench.expected(8, &[])[..4096], "by way of no domain");
    let submitted = bench.queue.as_ref().unwrap().submitted;
    assert!(submitted.registered > 0 && submitted.plain == 0, "{submitted:?}");
}

#[test]
fn an_operation_names_a_buffer_only_if_it_lies_in_it() {
    let own = Own { first: 3, piece_shift: 12 };
    assert_eq!([own.buffer(0, 4096), own.buffer(4096, 1), own.buffer(8192 + 512, 512)], [Some(3), Some(4), Some(5)]);
    assert_eq!([own.buffer(4095, 2), own.buffer(0, 4097)], [None, None]);
    assert_eq!(Own { first: 65_535, ..own }.buffer(4096, 1), None);
}

/// Small enough to divide the pieces of these tests, or none.
fn some_parts() -> impl Strategy<Value = Option<PartSizes>> {
    let sizes = |(copied_bytes, least_straight_bytes)| PartSizes { copied_bytes, least_straight_bytes };
    proptest::option::of((1_u64..10_000, 512_u64..10_000).prop_map(sizes))
}

#[test]
fn what_is_copied_moves_in_parts_where_several_can_be_under_way() {
    let parts = Some(PartSizes { copied_bytes: 8192, least_straight_bytes: 1024 });
    let divided = |with_queue, parts, begin, end| {
        let mut bench = Bench::new(some_pattern(128, 1, 2, 0), Grid::new(512, 1 << 20, 2), with_queue);
        bench.parts = parts;
        let mut ends = Vec::new();
        bench.with_pass(0, Direction::Write, |pass| {
            let mut piece = Piece { begin, end, owner: 0 };
            while piece.begin < piece.end {
                piece.begin = pass.first_part(piece).end;
                ends.push(piece.begin);
            }
        });
        ends
    };
    assert_eq!(divided(true, parts, 100, 18_000), [8192, 18_000], "the last part would be short");
    assert_eq!(divided(true, parts, 7_000, 30_000), [16_384, 24_576, 30_000], "the first part would be short");
    assert_eq!(divided(true, parts, 6_000, 9_000), [9_000]);
    assert_eq!(divided(true, None, 0, 30_000), [30_000], "others count on whole pieces");
    assert_eq!(divided(false, parts, 0, 30_000), [30_000], "one at a time");
}

/// Of a segment that begins and ends inside of sectors, the whole ones between move straight, and nothing else of it is copied.
#[test]
fn whole_sectors_between_unaligned_ends_move_straight() {
    let mut bench = Bench::new(some_pattern(129, 1, 1, 0), Grid::new(512, 1 << 16, 1), true);
    bench.parts = Some(PartSizes { copied_bytes: 1 << 16, least_straight_bytes: 1024 });
    bench.write(Batch { first_call: 0, calls: 3 });
    bench.blocks.bytes_mut().fill(0xEE);
    bench.write(Batch { first_call: 3, calls: 4 });
    bench.flush();
    assert_eq!(bench.bytes(), bench.expected(7, &[]));
    // The sector in which the second batch begins, and the one in which it ends, went by way of a block.
    let copied = bench.blocks.bytes().iter().filter(|byte| **byte != 0xEE).count();
    assert!((1..=1024).contains(&copied), "{copied} bytes were copied");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Batches and syncs in any order leave the bytes of the definition, also between what was there before.
    #[test]
    fn files_hold_what_the_patterns_say(
        words in 1_u64..300, per_call in 1_u64..3, ranks in 1_u64..4, stream in 0_u64..300, domain in 1_u64..20_000,
        aggregators in 1_u64..4, batches in proptest::collection::vec((1_u64..9, any::<bool>()), 1..6),
        old in 0_usize..60_000, with_queue in any::<bool>(), parts in some_parts(),
    ) {
        let pattern = some_pattern(words, per_call, ranks, stream);
        let grid = Grid::new(512, domain, if ranks == 1 { 1 } else { aggregators });
        let mut bench = Bench::new(pattern, grid, with_queue);
        bench.parts = parts;
        bench.file.write_all_at(&vec![0xEE; old], 0).unwrap();
        let mut calls = 0;
        for &(more, sync) in &batches {
            bench.write(Batch { first_call: calls, calls: more });
            calls += more;
            if sync {
                bench.flush();
                prop_assert_eq!(bench.bytes(), bench.expected(calls, &vec![0xEE; old]));
            }
        }
        bench.flush();
        let expected = bench.expected(calls, &vec![0xEE; old]);
        prop_assert_eq!(bench.bytes(), expected);
    }

    /// After a read the windows hold what calls in their order would have left, and nothing else is touched.
    #[test]
    fn rings_hold_what_reads_in_order_leave(
        words in 1_u64..300, per_call in 1_u64..3, ranks in 1_u64..4, stream in 0_u64..300, domain in 1_u64..20_000,
        calls in 1_u64..30, first in 0_u64..5, with_queue in any::<bool>(), parts in some_parts(),
    ) {
        let pattern = some_pattern(words, per_call, ranks, stream);
        // Several aggregators are kept in order by the points they reach together, which one process alone cannot do.
        let mut bench = Bench::new(pattern, Grid::new(512, domain, 1), with_queue);
        bench.parts = parts;
        bench.write(Batch { first_call: 0, calls: first + calls });
        bench.flush();
        // Other bytes in every period, so that the order of calls can be seen.
        let mut file = bench.bytes();
        file.iter_mut().enumerate().for_each(|(i, byte)| *byte = ((i as u64 * 0x9e37_79b9) >> 13) as u8 | 1);
        bench.file.write_all_at(&file, 0).unwrap();
        bench.rings.iter_mut().for_each(|ring| ring.bytes_mut().fill(0));
        bench.read(Batch { first_call: first, calls });
        for part in 0..bench.rows.parts {
            let mut expected = vec![0; bench.rings[part as usize].bytes().len()];
            for call in first..first + calls {
                for chunk in call * pattern.chunks_per_call..(call + 1) * pattern.chunks_per_call {
                    let at = (pattern.of_rank(part).chunk_offset(chunk)) as usize;
                    let index = bench.rings[0].index(pattern.stream_position(call))
                        + (chunk % pattern.chunks_per_call * pattern.chunk_bytes) as usize;
                    let len = pattern.chunk_bytes as usize;
                    expected[index..index + len].copy_from_slice(&file[at..at + len]);
                }
            }
            let differ = bench.rings[part as usize].bytes().iter().zip(&expected).position(|(a, b)| a != b);
            prop_assert_eq!(differ, None, "part {}", part);
        }
    }
}

#[test]
fn the_end_of_the_file_inside_a_batch_is_a_short_transfer() {
    for with_queue in [false, true] {
        let mut bench = Bench::new(some_pattern(128, 1, 2, 0), Grid::new(512, 4096, 2), with_queue);
        bench.write(Batch { first_call: 0, calls: 3 });
        bench.flush();
        let batch = Batch { first_call: 0, calls: 9 };
        let mut found = None;
        let mut pending = VecDeque::new();
        bench.with_pass(0, Direction::Read, |pass| {
            // SAFETY: as in `write`.
            unsafe { pass.read_pieces(batch, &mut pending, None) };
            found = pass.error.take();
        });
        assert!(pending.is_empty());
        let error = found.unwrap();
        assert_eq!(error.cause, crate::error::Cause::Short, "{error}");
        assert_eq!(error.offset_bytes.map(|o| o % 512), Some(0));
    }
}
