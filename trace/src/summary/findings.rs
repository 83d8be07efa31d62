//! Causes of costs that the positions, orders and times of the accesses show.

use std::collections::BTreeMap;

use super::advice;
use super::analysis::{AnalysisTotals, FileUse, GroupReuse, METADATA_BYTES};
use super::collect::FunctionTotals;
use super::layer::Layer;
use super::model::IoCost;
use super::names::function_name;
use super::reuse::{Amount, Reuse};
use super::units::{bytes, count, percent, plural, ratio, seconds};
use crate::ProfileHead;

/// Markers of the creation of a dataset.
const CREATE: &str = "H5Dcreate";
/// Costs below this share of the time are not reported.
const MIN_SHARE: f64 = 0.02;
/// Bytes moved in vain are reported from this share of all bytes on, whatever their time.
const MIN_BYTES_SHARE: f64 = 0.1;
/// Accesses up to this mean size gain by collective buffering.
const SMALL_BYTES: u64 = 1 << 20;

/// Source of the findings.
pub(super) struct FindingContext<'a> {
    pub head: &'a ProfileHead,
    pub rows: &'a [FunctionTotals],
    pub analysis: &'a AnalysisTotals,
    pub layers: &'a BTreeMap<u32, Layer>,
    pub io_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// A finding and the parts of the rows that it explains.
#[derive(Default)]
pub(super) struct Findings {
    pub costs: Vec<IoCost>,
    /// Explained time by row.
    pub explained_ns: BTreeMap<u32, f64>,
}

/// A sum over files and functions.
#[derive(Default)]
struct Sum {
    amount: Amount,
    files: BTreeMap<u32, Amount>,
    functions: BTreeMap<String, f64>,
    /// Calls of HDF5 with their bytes.
    marks: BTreeMap<u32, u64>,
    unmarked_bytes: u64,
}

impl Sum {
    fn add(&mut self, row: &FunctionTotals, mark: Option<u32>, amount: Amount) {
        if amount.bytes == 0 {
            return;
        }
        self.amount.add(amount);
        match mark {
            Some(mark) => *self.marks.entry(mark).or_default() += amount.bytes,
            None => self.unmarked_bytes += amount.bytes,
        }
        if let Some(file) = row.key.file {
            self.files.entry(file).or_default().add(amount);
        }
        *self.functions.entry(function_name(row.key.function, row.key.large)).or_default() += amount.ns;
    }

    /// The file with most bytes.
    fn main_file(&self) -> Option<u32> {
        self.files.iter().max_by_key(|(_, amount)| amount.bytes).map(|(file, _)| *file)
    }
}

/// All findings that matter, those that move bytes in vain first, then by time.
pub(super) fn findings(of: &FindingContext<'_>) -> Findings {
    let mut found = Findings::default();
    of.reuse(&mut found);
    for (file, state) in &of.analysis.files {
        found.costs.extend([of.metadata(*file, state), of.crossing(*file, state)].into_iter().flatten());
        if let Some(cost) = of.independent(*file, state) {
            found.costs.push(cost);
            for (number, row) in (0_u32..).zip(of.rows) {
                if row.key.file == Some(*file)
                    && row.key.function.direction().is_some()
                    && !row.key.function.is_collective()
                {
                    #[allow(clippy::cast_precision_loss)] // a share of time
                    found.explained_ns.insert(number, row.ns as f64);
                }
            }
        }
    }
    found.costs.extend(of.waiting());
    found.costs.extend(of.one_rank());
    found.costs = join_files(std::mem::take(&mut found.costs), of.io_ns);
    let is_vain = |cost: &IoCost| {
        let all = if cost.kind.starts_with("read") { of.read_bytes } else { of.written_bytes };
        matches!(cost.kind, "fill_values" | "overwritten" | "discarded" | "read_then_written" | "read_again")
            && ratio(cost.bytes, all) >= MIN_BYTES_SHARE
    };
    found.costs.retain(|cost| cost.share >= MIN_SHARE || is_vain(cost));
    found.costs.sort_by(|a, b| is_vain(b).cmp(&is_vain(a)).then(b.seconds.total_cmp(&a.seconds)));
    found
}

/// Joins the costs of one kind on several files: the largest is described.
fn join_files(costs: Vec<IoCost>, io_ns: u64) -> Vec<IoCost> {
    let mut joined: Vec<IoCost> = Vec::new();
    let mut costs = costs;
    costs.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    for cost in costs {
        match joined.iter_mut().find(|known| known.kind == cost.kind) {
            Some(known) => {
                known.seconds += cost.seconds;
                known.bytes = known.bytes.saturating_add(cost.bytes);
                known.files += cost.files;
            }
            None => joined.push(cost),
        }
    }
    for cost in &mut joined {
        cost.share = (cost.seconds * 1e9 / ratio(io_ns.max(1), 1)).min(1.0);
    }
    joined
}

impl FindingContext<'_> {
    fn layer(&self, file: Option<u32>) -> Layer {
        file.and_then(|file| self.layers.get(&file)).copied().unwrap_or_default()
    }

    fn path(&self, file: u32) -> String {
        self.head.files.get(file as usize).map_or_else(String::new, |file| file.path.clone())
    }

    fn reuse(&self, found: &mut Findings) {
        let mut sums: [Sum; 5] = Default::default();
        for GroupReuse { row: number, mark, reuse } in &self.analysis.reuse {
            let Some(row) = self.rows.get(*number as usize) else { continue };
            // The library initializes datasets when they are created. Later overwrites are those of the program.
            let has_blocks = row.size_counter.sizes().is_some_and(|sizes| sizes.max_bytes > METADATA_BYTES);
            let is_new = mark
                .and_then(|mark| self.analysis.marks.get(mark as usize))
                .is_some_and(|name| name.starts_with(CREATE));
            let is_fill = is_new
                || (mark.is_none() && has_blocks && matches!(self.layer(row.key.file), Layer::Hdf5 | Layer::NetCdf));
            let Reuse { overwritten_first, overwritten_again, discarded, read_then_written, read_again } = *reuse;
            sums[usize::from(!is_fill)].add(row, *mark, overwritten_first);
            sums[1].add(row, *mark, overwritten_again);
            sums[2].add(row, *mark, discarded);
            sums[3].add(row, *mark, read_then_written);
            sums[4].add(row, *mark, read_again);
            *found.explained_ns.entry(*number).or_default() +=
                overwritten_first.ns + overwritten_again.ns + discarded.ns;
        }
        let kinds = ["fill_values", "overwritten", "discarded", "read_then_written", "read_again"];
        for (kind, sum) in kinds.into_iter().zip(&sums).filter(|(_, sum)| sum.amount.bytes > 0) {
            found.costs.push(self.reuse_cost(kind, sum));
        }
    }

    fn reuse_cost(&self, kind: &'static str, sum: &Sum) -> IoCost {
        let file = sum.main_file();
        let layer = self.layer(file);
        let is_read = kind.starts_with("read");
        let all = if is_read { self.read_bytes } else { self.written_bytes };
        let (amount, files) =
            (bytes(sum.amount.bytes), sum.files.values().filter(|amount| amount.bytes > 0).count() as u64);
        let amount = if self.analysis.is_sampled { format!("about {amount}") } else { amount };
        let share = percent(ratio(sum.amount.bytes.min(all), all));
        let place = file.map_or_else(String::new, |file| self.place(file, files)) + &self.datasets(sum);
        let moved = if is_read { "read" } else { "written" };
        let of_all = format!("{amount} ({share} of the {moved} bytes)");
        let (what, next) = match kind {
            "fill_values" => (
                format!(
                    "fill values: {} wrote {of_all}{place}, and the program overwrote them before anything read them",
                    layer.name()
                ),
                advice::fill_values(layer),
            ),
            "overwritten" => {
                (format!("{of_all} were overwritten{place} before anything read them"), advice::overwritten(layer))
            }
            "discarded" => (
                format!(
                    "{of_all} were written{place} and removed with the file or its end; the program read none of them"
                ),
                advice::discarded(),
            ),
            "read_then_written" => (
                format!("{of_all} were read{place} by a rank that then wrote them (read-modify-write)"),
                advice::read_then_written(layer),
            ),
            _ => (
                format!("{of_all} had been read{place} before, by the same or another rank"),
                advice::read_again(layer),
            ),
        };
        let function = sum.functions.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, _)| name.clone());
        IoCost {
            is_certain: (kind != "fill_values" || self.is_created(sum))
                && !self.analysis.is_sampled
                && !self.has_unknown(sum),
            function,
            bytes: sum.amount.bytes,
            files,
            ..self.cost(kind, sum.amount.ns, file, what, next)
        }
    }

    /// True if all was written while datasets were created. Otherwise that the bytes are fill values is inferred.
    fn is_created(&self, sum: &Sum) -> bool {
        let is_create =
            |mark: &u32| self.analysis.marks.get(*mark as usize).is_some_and(|name| name.starts_with(CREATE));
        sum.unmarked_bytes == 0 && sum.marks.keys().all(is_create)
    }

    /// Datasets by the bytes concerned.
    fn datasets(&self, sum: &Sum) -> String {
        let mut bytes_of: BTreeMap<&str, u64> = BTreeMap::new();
        for (mark, bytes) in &sum.marks {
            let name = self.analysis.marks.get(*mark as usize).filter(|name| name.starts_with("H5D"));
            if let Some((_, name)) = name.and_then(|name| name.split_once(' ')) {
                *bytes_of.entry(name).or_default() += bytes;
            }
        }
        let mut names: Vec<(&str, u64)> = bytes_of.into_iter().collect();
        names.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        match names.as_slice() {
            [] => String::new(),
            [(one, _)] => format!(", dataset {one}"),
            [(one, _), (two, _)] => format!(", datasets {one} and {two}"),
            [(one, _), (two, _), rest @ ..] => format!(", datasets {one}, {two} and {} more", count(rest.len() as u64)),
        }
    }

    /// True if accesses to one of the files are at unknown positions.
    fn has_unknown(&self, sum: &Sum) -> bool {
        sum.files.keys().any(|file| self.analysis.files.get(file).is_some_and(|file| file.unknown_bytes > 0))
    }

    fn place(&self, file: u32, files: u64) -> String {
        match files {
            0 | 1 => format!(" in {}", self.path(file)),
            _ => format!(" in {} files, most in {}", count(files), self.path(file)),
        }
    }

    /// A cost; the share of the time is appended to the description.
    fn cost(&self, kind: &'static str, ns: f64, file: Option<u32>, what: String, next: impl Into<String>) -> IoCost {
        let share = (ns / ratio(self.io_ns.max(1), 1)).min(1.0);
        IoCost {
            kind,
            is_certain: true,
            seconds: ns / 1e9,
            share,
            bytes: 0,
            function: None,
            file: file.map(|file| self.path(file)),
            files: u64::from(file.is_some()),
            what,
            next: next.into(),
        }
    }

    fn metadata(&self, file: u32, state: &FileUse) -> Option<IoCost> {
        let (part, all) = (state.at_begin, state.all);
        if part.calls < 16
            || all.bytes < 1 << 20
            || part.bytes.saturating_mul(10) > all.bytes
            || part.calls == all.calls
        {
            return None;
        }
        // Data of such a size everywhere in the file is no header.
        if all.bytes / all.calls <= METADATA_BYTES && part.calls * 4 < all.calls {
            return None;
        }
        let what = format!(
            "{} of up to {} at the begin of {}, probably metadata",
            plural(part.calls, "access", "accesses"),
            bytes(METADATA_BYTES),
            self.path(file)
        );
        let cost = self.cost("metadata", as_ns(part.ns), Some(file), what, advice::metadata(self.layer(Some(file))));
        Some(IoCost { bytes: part.bytes, is_certain: false, ..cost })
    }

    fn crossing(&self, file: u32, state: &FileUse) -> Option<IoCost> {
        let (part, stripe) = (state.crossing, state.stripe_bytes?);
        if state.opened_by < 2 || part.calls.saturating_mul(10) < state.all.calls || part.calls < 2 {
            return None;
        }
        let what = format!(
            "{} of the accesses to {} ({}) cross stripes of {}, and ranks compete for their locks",
            percent(ratio(part.calls, state.all.calls)),
            self.path(file),
            count(part.calls),
            bytes(stripe)
        );
        let next = advice::crossing(self.layer(Some(file)), &stripe.to_string());
        let cost = self.cost("crossing", as_ns(part.ns), Some(file), what, next);
        Some(IoCost { bytes: part.bytes, is_certain: state.is_stripe_known, ..cost })
    }

    fn independent(&self, file: u32, state: &FileUse) -> Option<IoCost> {
        let part = state.independent;
        if state.opened_by < 2 || state.independent_ranks < 2 || part.calls < 2 * state.independent_ranks {
            return None;
        }
        let mean = part.bytes / part.calls;
        // Those of one rank have no counterparts on the others.
        if mean >= SMALL_BYTES || state.most_independent_calls.saturating_mul(10) > part.calls.saturating_mul(9) {
            return None;
        }
        let ns = part.ns.saturating_sub(state.at_begin.ns);
        let what = format!(
            "{} ranks made {} independent accesses of {} on average to {}, {} of its bytes",
            count(state.independent_ranks),
            count(part.calls),
            bytes(mean),
            self.path(file),
            percent(ratio(part.bytes, state.all.bytes))
        );
        let cost = self.cost("independent", as_ns(ns), Some(file), what, advice::independent(self.layer(Some(file))));
        Some(IoCost { bytes: part.bytes, is_certain: false, ..cost })
    }

    fn waiting(&self) -> Option<IoCost> {
        let waits = &self.analysis.waits;
        let (rank, ns) = waits.last_rank.filter(|_| waits.ns > 0)?;
        let what = format!(
            "ranks waited in collective calls for the last one to begin, {} of the time for rank {rank}",
            percent(ratio(ns, waits.ns))
        );
        let layer =
            self.layer(self.analysis.files.iter().max_by_key(|(_, file)| file.all.bytes).map(|(file, _)| *file));
        let cost = self.cost("waiting", as_ns(waits.ns), None, what, advice::waiting(layer));
        Some(IoCost { is_certain: !waits.is_sampled, ..cost })
    }

    /// One rank moves the data: of a file that several opened, or of the whole program.
    fn one_rank(&self) -> Vec<IoCost> {
        let moves_all = |part: u64, all: u64, ranks: usize| {
            let limit = if ranks < 4 { 95 } else { 90 };
            ranks > 1 && part >= 1 << 20 && u128::from(part) * 100 >= u128::from(all) * limit
        };
        let ranks = self.head.processes.len();
        let (rank, moved) = self.analysis.busiest;
        let all = self.analysis.files.values().fold(0_u64, |sum, file| sum.saturating_add(file.all.bytes));
        let verb = |ns: f64, file: Option<u32>, what: String| {
            let next = advice::one_rank(self.layer(file.or(self.analysis.files.keys().next().copied())));
            IoCost { is_certain: false, ..self.cost("one_rank", ns, file, what, next) }
        };
        if moves_all(moved, all, ranks) {
            let of_rank =
                self.analysis.files.values().filter(|file| file.busiest.0 == rank).map(|file| file.busiest.1.ns);
            let what = format!(
                "rank {rank} moved {} of all bytes ({} ranks)",
                percent(ratio(moved, all)),
                count(ranks as u64)
            );
            return vec![IoCost { bytes: moved, ..verb(as_ns(of_rank.fold(0, u64::saturating_add)), None, what) }];
        }
        let files = self.analysis.files.iter();
        files
            .filter(|(_, state)| moves_all(state.busiest.1.bytes, state.all.bytes, state.opened_by))
            .map(|(file, state)| {
                let (rank, part) = state.busiest;
                let share = percent(ratio(part.bytes, state.all.bytes));
                let what = format!(
                    "rank {rank} moved {share} of the bytes of {}, which {} ranks opened",
                    self.path(*file),
                    state.opened_by
                );
                IoCost { bytes: part.bytes, ..verb(as_ns(part.ns), Some(*file), what) }
            })
            .collect()
    }
}

#[allow(clippy::cast_precision_loss)] // a share of time
fn as_ns(ns: u64) -> f64 {
    ns as f64
}

/// The cost in a sentence.
pub(super) fn sentence(cost: &IoCost) -> String {
    let others = if cost.files > 1 && !cost.what.contains(" files, most in ") {
        format!(", and {} alike", plural(cost.files - 1, "file", "files"))
    } else {
        String::new()
    };
    let inferred = if cost.is_certain { "" } else { "; inferred" };
    format!("{}{others} ({} of the I/O time, {}{inferred})", cost.what, percent(cost.share), seconds(cost.seconds))
}
