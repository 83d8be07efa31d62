//! Files of a run: names below the run directory, and contents.

use std::path::{Path, PathBuf};

use beff_backends::{AccessOrder, AccessPattern, Direction, OrderKind, ReadWriteMix};

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::layout::{rank_pattern, RankLayout};
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::PlanError;
use crate::frame::rank_directories::rank_file_name;
use beff_stamp::{mix, Generation};

/// What one pattern has written to a file.
#[derive(Clone, Debug)]
pub struct WrittenPattern {
    /// The pattern with its actual sizes (also of fill-ups).
    pub spec: PatternSpec,
    /// Bytes of each rank's stream before this pattern.
    pub stream_bytes: u64,
    /// Calls of the write that created the file.
    pub calls: u64,
    /// Generation of that write.
    pub first_generation: Generation,
    /// Rewrites since: the latest first.
    pub rewrites: Vec<Rewrite>,
}

/// What was rewritten.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    /// Number of chunks of each rank.
    chunks: u64,
    generation: Generation,
    /// They are the first ones of this order, without those that it reads; None: of the pattern.
    order: Option<RankOrders>,
}

/// The orders of all ranks in one pattern.
#[derive(Clone, Copy, Debug)]
pub struct RankOrders {
    /// Kind.
    pub kind: OrderKind,
    /// Seed of the pattern.
    pub seed: u64,
    /// True if all ranks have the same: their chunks alternate, and a collective call accesses one range of the file.
    pub is_common: bool,
    /// Calls that read, while the others write.
    pub mix: Option<ReadWriteMix>,
}

impl RankOrders {
    /// Seed of `rank`.
    #[must_use]
    pub fn seed_of(&self, rank: u64) -> u64 {
        if self.is_common {
            self.seed
        } else {
            mix(self.seed ^ rank)
        }
    }

    /// True if the call at `position` writes.
    fn writes(&self, position: u64) -> bool {
        self.mix.is_none_or(|mix| mix.direction(position) == Direction::Write)
    }
}

impl WrittenPattern {
    /// A pattern without calls.
    #[must_use]
    pub fn empty(spec: PatternSpec, stream_bytes: u64, first_generation: Generation) -> Self {
        Self { spec, stream_bytes, calls: 0, first_generation, rewrites: Vec::new() }
    }

    /// Chunks of a call.
    #[must_use]
    pub fn chunks_per_call(&self) -> u64 {
        self.spec.call_bytes.checked_div(self.spec.chunk_bytes).unwrap_or(0)
    }

    /// Chunks of each rank.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.calls * self.chunks_per_call()
    }

    /// Notes that the first `calls` calls are rewritten.
    pub fn rewrite(&mut self, calls: u64, generation: Generation) {
        self.add(Rewrite { chunks: calls * self.chunks_per_call(), generation, order: None });
    }

    /// Notes that the first `chunks` chunks of an order are rewritten, or with a mix those that it writes.
    pub fn rewrite_in_order(&mut self, order: RankOrders, chunks: u64, generation: Generation) {
        let is_complete = chunks >= self.chunks() && order.mix.is_none();
        self.add(Rewrite { chunks, generation, order: (!is_complete).then_some(order) });
    }

    fn add(&mut self, rewrite: Rewrite) {
        if rewrite.order.is_none() {
            self.rewrites.retain(|before| before.chunks > rewrite.chunks || before.order.is_some());
            if rewrite.chunks >= self.chunks() {
                self.rewrites.clear();
            }
        }
        if rewrite.chunks > 0 {
            self.rewrites.insert(0, rewrite);
        }
    }

    /// Generation that chunk `chunk` of `rank` holds now.
    #[must_use]
    pub fn generation(&self, rank: u64, chunk: u64) -> Generation {
        let position =
            |order: RankOrders| AccessOrder::new(order.kind, self.chunks(), order.seed_of(rank)).position(chunk);
        let is_rewritten = |rewrite: &&Rewrite| match rewrite.order {
            None => chunk < rewrite.chunks,
            Some(order) => {
                let position = position(order);
                position < rewrite.chunks && order.writes(position)
            }
        };
        self.rewrites.iter().find(is_rewritten).map_or(self.first_generation, |rewrite| rewrite.generation)
    }

    /// Number of calls from the first one on that are rewritten in any generation.
    #[must_use]
    pub fn rewritten_calls(&self) -> u64 {
        let of_pattern = self.rewrites.iter().filter(|rewrite| rewrite.order.is_none());
        let chunks = of_pattern.map(|rewrite| rewrite.chunks).max().unwrap_or(0);
        chunks.checked_div(self.chunks_per_call()).unwrap_or(0)
    }

    /// The first chunk after `chunk` that may have another generation.
    #[must_use]
    pub fn generation_end(&self, chunk: u64) -> u64 {
        if self.rewrites.iter().any(|rewrite| rewrite.order.is_some()) {
            return chunk + 1;
        }
        self.rewrites.iter().map(|rewrite| rewrite.chunks).find(|end| chunk < *end).unwrap_or(self.chunks())
    }
}

/// The file of one type, partition and backend (for type 2: the files of all ranks).
#[derive(Clone, Debug)]
pub struct TypeFile {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// Segment of one rank, types 3 and 4.
    pub segment_bytes: Option<u64>,
    /// Type 1 through the shared pointer.
    pub shared_pointer: bool,
    /// The patterns in order; empty before the first write.
    pub written: Vec<WrittenPattern>,
    /// Contents before the file is written anew.
    pub previous: Vec<WrittenPattern>,
}

impl TypeFile {
    /// True with one file per rank.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.pattern_type.has_private_files()
    }

    /// BACKEND/NAME of [`crate::frame::run::run_dir::RunDir::file`], for types with private files that of this rank's.
    #[must_use]
    pub fn name(&self, rank: u64) -> PathBuf {
        file_name(&self.backend, self.ranks, self.pattern_type, rank)
    }

    /// Layout of `rank` in the file.
    #[must_use]
    pub fn rank_layout(&self, rank: u64) -> RankLayout {
        RankLayout { ranks: self.ranks, rank, shared_pointer: self.shared_pointer, segment_bytes: self.segment_bytes }
    }

    /// The pattern `written` for `rank`, with `max_calls` calls.
    ///
    /// # Errors
    /// Offsets beyond the largest file offset.
    pub fn pattern(&self, written: &WrittenPattern, rank: u64, max_calls: u64) -> Result<AccessPattern, PlanError> {
        rank_pattern(&self.rank_layout(rank), &written.spec, written.stream_bytes, max_calls)
    }

    /// All chunks of the pattern `written` for `rank`, in its order.
    ///
    /// # Errors
    /// Offsets beyond the largest file offset.
    pub fn ordered_pattern(
        &self,
        written: &WrittenPattern,
        rank: u64,
        orders: RankOrders,
    ) -> Result<AccessPattern, PlanError> {
        let ordered = self.pattern(written, rank, written.calls)?.in_order(orders.kind, orders.seed_of(rank));
        Ok(orders.mix.map_or(ordered, |mix| ordered.with_mix(mix)))
    }
}

/// BACKEND/NAME of the file of a type, for types with private files that of `rank`.
#[must_use]
pub fn file_name(backend: &str, ranks: u64, pattern_type: PatternType, rank: u64) -> PathBuf {
    let stem = format!("n{ranks}-type{pattern_type}-{}", pattern_type.name());
    let directory = Path::new(backend);
    if pattern_type.has_private_files() {
        directory.join(rank_file_name(&stem, rank))
    } else {
        directory.join(format!("{stem}.dat"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;

    proptest! {
        /// After any rewrites, in any orders, each chunk of each rank holds its latest generation.
        #[test]
        fn each_chunk_holds_its_last_generation(
            writings in proptest::collection::vec(
                (0_u64..12, 0_u64..400, proptest::option::of((any::<bool>(), 0_u8..100))), 0..8,
            ),
        ) {
            // 32 chunks per call.
            let mut written = WrittenPattern::empty(patterns(2 << 20)[4], 0, Generation::First);
            written.calls = 10;
            let chunks = written.chunks();
            let mut truth = [[Generation::First; 320]; 3];
            for (n, (calls, ordered, how)) in writings.iter().enumerate() {
                let (calls, ordered, generation) = ((*calls).min(10), (*ordered).min(chunks), Generation::Later(n as u32 + 1));
                let Some((is_common, read_percent)) = *how else {
                    written.rewrite(calls, generation);
                    truth.iter_mut().for_each(|truth| truth[..calls as usize * 32].fill(generation));
                    continue;
                };
                let orders = RankOrders {
                    kind: OrderKind::Random,
                    seed: n as u64,
                    is_common,
                    mix: (read_percent > 0).then(|| ReadWriteMix::new(read_percent)),
                };
                written.rewrite_in_order(orders, ordered, generation);
                for (rank, truth) in (0..).zip(&mut truth) {
                    let order = AccessOrder::new(orders.kind, chunks, orders.seed_of(rank));
                    let is_write = |position: &u64| {
                        (position + 1) * u64::from(read_percent) / 100 == position * u64::from(read_percent) / 100
                    };
                    (0..ordered).filter(is_write).for_each(|position| truth[order.at(position) as usize] = generation);
                }
            }
            for (rank, truth) in (0..).zip(&truth) {
                for chunk in 0..chunks {
                    let generation = truth[chunk as usize];
                    prop_assert_eq!(written.generation(rank, chunk), generation);
                    let next = written.generation_end(chunk);
                    prop_assert!(next > chunk && truth[chunk as usize..next as usize].iter().all(|g| *g == generation));
                }
            }
            let is_sequential = writings.iter().all(|(_, _, how)| how.is_none());
            let most = writings.iter().map(|(calls, _, _)| *calls).max().unwrap_or(0).min(10);
            prop_assert!(!is_sequential || written.rewritten_calls() == most);
        }
    }
}
