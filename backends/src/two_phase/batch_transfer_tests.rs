use super::*;
use std::os::unix::fs::FileExt;

use crate::queue::{self, Queue, MAX_BUFFER_SHIFT};
use crate::testing::{fill_stream, pattern, stream_byte};
use crate::two_phase::pipeline::{TransferSlot, TransferTarget};
use crate::two_phase::rows::RankDistribution;
use crate::{AccessKind, AccessPattern, Direction, Latency, TransferBuffer};
use proptest::prelude::*;
use std::os::fd::AsRawFd;
use std::path::Path;

const PERIOD: u64 = 3 * 4096;

/// All aggregators of a file in one process, one after the other.
struct AggregatorFixture {
    file: File,
    pattern: AccessPattern,
    rows: ChunkRows,
    grid: DomainGrid,
    rings: Vec<TransferBuffer>,
    edges: Vec<SectorBuffer>,
    tail: Option<PartialSector>,
    blocks: TransferBuffer,
    queue: Option<Queue>,
    parts: Option<PipelineSizes>,
}

impl AggregatorFixture {
    fn new(pattern: AccessPattern, grid: DomainGrid, with_queue: bool) -> Self {
        let layout = RankDistribution::of(&pattern, grid.sector_bytes).unwrap();
        let rows = ChunkRows::new(&pattern, layout, PERIOD);
        let file = tempfile::tempfile().unwrap();
        let buffer = |seed| {
            let mut buffer = TransferBuffer::new(PERIOD, pattern.call_bytes()).unwrap();
            fill_stream(&mut buffer, seed);
            buffer
        };
        let block_bytes = grid.max_domain_bytes().next_multiple_of(4096);
        let mut blocks = TransferBuffer::new(2 * block_bytes, 0).unwrap();
        let mut buffers: Vec<TransferBuffer> = (0..rows.parts).map(buffer).collect();
        let queue = with_queue.then(|| {
            let mut queue = Queue::new(2, &[file.as_raw_fd()], MAX_BUFFER_SHIFT, Path::new("f")).unwrap();
            let registered = &mut match &mut buffers[..] {
                [own] => vec![&mut blocks, own],
                _ => vec![&mut blocks],
            };
            queue.register_memory(registered, Path::new("f")).unwrap();
            queue
        });
        Self {
            rings: buffers,
            edges: (0..grid.aggregators).map(|_| SectorBuffer::new(grid).unwrap()).collect(),
            tail: None,
            file,
            pattern,
            rows,
            grid,
            blocks,
            queue,
            parts: Some(PipelineSizes::DEFAULT),
        }
    }

    /// Runs `work` as aggregator `me`.
    fn with_transfer(&mut self, me: u64, direction: Direction, work: impl FnOnce(&mut BatchTransfer<'_>)) {
        let bases: Vec<*mut u8> = self.rings.iter_mut().map(|buffer| buffer.bytes_mut().as_mut_ptr()).collect();
        let mut slots = [TransferSlot::default(), TransferSlot::default()];
        let mut latency = Latency::on();
        let path = Path::new("f");
        let queued = queue::TransferMode { direction, direct: false, flags: 0 };
        let way = TransferTarget { file: &self.file, mode: queued, path, align: 1 };
        let count = if self.queue.is_some() { 2 } else { 1 };
        let registered = self.queue.is_some();
        let mut transfer = BatchTransfer {
            rows: self.rows,
            grid: self.grid,
            aggregator: Some(me),
            pipeline: TransferPipeline::new(way, self.queue.as_mut(), &mut slots[..count], &mut latency),
            blocks: DomainBuffers {
                base: self.blocks.bytes_mut().as_mut_ptr(),
                buffer_bytes: self.grid.max_domain_bytes().next_multiple_of(4096) as usize,
                registered,
            },
            registered: (registered && bases.len() == 1)
                .then_some(RegisteredBuffers { first: 1, buffer_shift: MAX_BUFFER_SHIFT }),
            sector_buffer: &mut self.edges[me as usize],
            file: &self.file,
            part_buffers: &bases,
            partial_sector: self.tail,
            sizes: self.parts,
            error: None,
            path,
        };
        work(&mut transfer);
        assert_eq!(transfer.error, None);
    }

    fn write(&mut self, batch: Batch) {
        let (begin, end) = self.rows.region(batch);
        self.tail = self.tail.filter(|t| t.end == begin);
        let cut = RegionPartition::new(self.grid, begin, end, self.tail.map(|t| t.holder));
        for me in 0..self.grid.aggregators {
            // SAFETY: the buffers are as long as the windows of the pattern.
            self.with_transfer(me, Direction::Write, |transfer| unsafe { transfer.write_domains(&cut) });
        }
        self.tail = cut.last_sector_holder().map(|holder| PartialSector { end, holder, dirty: true });
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
            self.with_transfer(me, Direction::Read, |transfer| unsafe {
                transfer.read_domains(batch, &mut pending, None)
            });
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.file.metadata().unwrap().len() as usize];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Expected contents of the file after `calls` calls over `before`.
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

fn test_pattern(words: u64, per_call: u64, ranks: u64, stream: u64) -> AccessPattern {
    let (chunk, stream) = (words * 8, stream * 8);
    let one = AccessPattern { kind: AccessKind::Collective, stream_bytes: stream, ..pattern(chunk, per_call, 1000) };
    if ranks == 1 {
        // The only rank of a segmented file.
        return AccessPattern { base_bytes: stream, rank_distance_bytes: 1 << 30, ..one };
    }
    let origin = stream * ranks;
    let (stride_bytes, rank_distance_bytes) = (ranks * chunk, chunk);
    AccessPattern { base_bytes: origin, origin_bytes: origin, stride_bytes, ranks, rank_distance_bytes, ..one }
}

/// Whole sectors of a segment are transferred between the file and the transfer buffer, which is registered after the domain buffers.
#[test]
fn zero_copy_transfers_use_registered_memory() {
    let grid = DomainGrid::new(512, 1 << 16, 1);
    let mut bench = AggregatorFixture::new(test_pattern(512, 1, 1, 0), grid, true);
    let batch = Batch { first_call: 0, calls: 8 };
    bench.write(batch);
    assert_eq!(bench.bytes(), bench.expected(8, &[]));
    bench.rings[0].bytes_mut().fill(0);
    bench.blocks.bytes_mut().fill(0xEE);
    bench.read(batch);
    assert_eq!(bench.rings[0].bytes()[..4096], bench.expected(8, &[])[..4096], "without a domain buffer");
    let submitted = bench.queue.as_ref().unwrap().submitted;
    assert!(submitted.registered > 0 && submitted.unregistered == 0, "{submitted:?}");
}

#[test]
fn an_operation_names_a_buffer_only_if_it_lies_in_it() {
    let own = RegisteredBuffers { first: 3, buffer_shift: 12 };
    assert_eq!(
        [own.buffer_of(0, 4096), own.buffer_of(4096, 1), own.buffer_of(8192 + 512, 512)],
        [Some(3), Some(4), Some(5)]
    );
    assert_eq!([own.buffer_of(4095, 2), own.buffer_of(0, 4097)], [None, None]);
    assert_eq!(RegisteredBuffers { first: 65_535, ..own }.buffer_of(4096, 1), None);
}

/// Small enough to divide the domains of these tests, or none.
fn pipeline_sizes() -> impl Strategy<Value = Option<PipelineSizes>> {
    let sizes = |(copied_bytes, least_straight_bytes)| PipelineSizes {
        copy_bytes: copied_bytes,
        min_zero_copy_bytes: least_straight_bytes,
    };
    proptest::option::of((1_u64..10_000, 512_u64..10_000).prop_map(sizes))
}

#[test]
fn copied_domains_are_pipelined_where_the_queue_allows() {
    let parts = Some(PipelineSizes { copy_bytes: 8192, min_zero_copy_bytes: 1024 });
    let divided = |with_queue, parts, begin, end| {
        let mut bench =
            AggregatorFixture::new(test_pattern(128, 1, 2, 0), DomainGrid::new(512, 1 << 20, 2), with_queue);
        bench.parts = parts;
        let mut ends = Vec::new();
        bench.with_transfer(0, Direction::Write, |transfer| {
            let mut piece = FileDomain { begin, end, aggregator: 0 };
            while piece.begin < piece.end {
                piece.begin = transfer.first_transfer(piece).end;
                ends.push(piece.begin);
            }
        });
        ends
    };
    assert_eq!(divided(true, parts, 100, 18_000), [8192, 18_000], "the last part would be short");
    assert_eq!(divided(true, parts, 7_000, 30_000), [16_384, 24_576, 30_000], "the first part would be short");
    assert_eq!(divided(true, parts, 6_000, 9_000), [9_000]);
    assert_eq!(divided(true, None, 0, 30_000), [30_000], "other ranks expect whole domains");
    assert_eq!(divided(false, parts, 0, 30_000), [30_000], "one at a time");
}

/// If a segment begins and ends inside sectors, the whole sectors between are transferred without a copy, and nothing else is copied.
#[test]
fn whole_sectors_between_unaligned_ends_are_not_copied() {
    let mut bench = AggregatorFixture::new(test_pattern(129, 1, 1, 0), DomainGrid::new(512, 1 << 16, 1), true);
    bench.parts = Some(PipelineSizes { copy_bytes: 1 << 16, min_zero_copy_bytes: 1024 });
    bench.write(Batch { first_call: 0, calls: 3 });
    bench.blocks.bytes_mut().fill(0xEE);
    bench.write(Batch { first_call: 3, calls: 4 });
    bench.flush();
    assert_eq!(bench.bytes(), bench.expected(7, &[]));
    // The sectors in which the second batch begins and ends were copied through a block.
    let copied = bench.blocks.bytes().iter().filter(|byte| **byte != 0xEE).count();
    assert!((1..=1024).contains(&copied), "{copied} bytes were copied");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Batches and syncs in any order leave the defined bytes, also between earlier contents.
    #[test]
    fn files_hold_what_the_patterns_say(
        words in 1_u64..300, per_call in 1_u64..3, ranks in 1_u64..4, stream in 0_u64..300, domain in 1_u64..20_000,
        aggregators in 1_u64..4, batches in proptest::collection::vec((1_u64..9, any::<bool>()), 1..6),
        old in 0_usize..60_000, with_queue in any::<bool>(), parts in pipeline_sizes(),
    ) {
        let pattern = test_pattern(words, per_call, ranks, stream);
        let grid = DomainGrid::new(512, domain, if ranks == 1 { 1 } else { aggregators });
        let mut bench = AggregatorFixture::new(pattern, grid, with_queue);
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

    /// After a read the windows contain the result of the calls in order, and other memory is unchanged.
    #[test]
    fn rings_hold_what_reads_in_order_leave(
        words in 1_u64..300, per_call in 1_u64..3, ranks in 1_u64..4, stream in 0_u64..300, domain in 1_u64..20_000,
        calls in 1_u64..30, first in 0_u64..5, with_queue in any::<bool>(), parts in pipeline_sizes(),
    ) {
        let pattern = test_pattern(words, per_call, ranks, stream);
        // Several aggregators are ordered by synchronization points, which needs several processes.
        let mut bench = AggregatorFixture::new(pattern, DomainGrid::new(512, domain, 1), with_queue);
        bench.parts = parts;
        bench.write(Batch { first_call: 0, calls: first + calls });
        bench.flush();
        // Different bytes in every period, so that the order of calls is visible.
        let mut file = bench.bytes();
        file.iter_mut().enumerate().for_each(|(i, byte)| *byte = ((i as u64 * 0x9e37_79b9) >> 13) as u8 | 1);
        bench.file.write_all_at(&file, 0).unwrap();
        bench.rings.iter_mut().for_each(|buffer| buffer.bytes_mut().fill(0));
        bench.read(Batch { first_call: first, calls });
        for part in 0..bench.rows.parts {
            let mut expected = vec![0; bench.rings[part as usize].bytes().len()];
            for call in first..first + calls {
                for chunk in call * pattern.chunks_per_call..(call + 1) * pattern.chunks_per_call {
                    let at = (pattern.for_rank(part).chunk_offset(chunk)) as usize;
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
        let mut bench = AggregatorFixture::new(test_pattern(128, 1, 2, 0), DomainGrid::new(512, 4096, 2), with_queue);
        bench.write(Batch { first_call: 0, calls: 3 });
        bench.flush();
        let batch = Batch { first_call: 0, calls: 9 };
        let mut found = None;
        let mut pending = VecDeque::new();
        bench.with_transfer(0, Direction::Read, |transfer| {
            // SAFETY: as in `write`.
            unsafe { transfer.read_domains(batch, &mut pending, None) };
            found = transfer.error.take();
        });
        assert!(pending.is_empty());
        let error = found.unwrap();
        assert_eq!(error.cause, crate::error::FailureCause::Short, "{error}");
        assert_eq!(error.offset_bytes.map(|o| o % 512), Some(0));
    }
}
