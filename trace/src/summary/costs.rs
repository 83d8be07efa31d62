//! Descriptions of the largest costs.

use std::collections::BTreeMap;

use super::advice;
use super::collect::{FunctionTotals, ProfileTotals};
use super::findings::{findings, sentence, FindingContext};
use super::layer::Layer;
use super::model::{IoCost, PatternCounts, SizeDistribution};
use super::names::function_name;
use super::sizes::SizeCounter;
use super::units::{bytes, count, percent, plural, ratio, seconds};
use crate::function::{AccessForm, Direction, Function, PointerKind, Role};
use crate::ProfileHead;

/// Data accesses below this size are dominated by the cost of the call.
const SMALL_BYTES: u64 = 64 << 10;
/// Data accesses from this size on are limited by the storage.
const LARGE_BYTES: u64 = 1 << 20;
const MAX_COSTS: usize = 6;
const MAX_FINDINGS: usize = 4;
/// Functions below this share of the time are not listed beside findings.
const MIN_FUNCTION_SHARE: f64 = 0.02;

/// Source of the descriptions.
pub(super) struct CostContext<'a> {
    pub head: &'a ProfileHead,
    pub totals: &'a ProfileTotals,
    pub layers: &'a BTreeMap<u32, Layer>,
}

/// A function on all its files.
struct FunctionCost<'a> {
    function: Function,
    large: bool,
    rows: Vec<&'a FunctionTotals>,
    ns: u64,
    explained_ns: f64,
}

/// Returns the largest costs, none without I/O.
pub(super) fn largest_costs(
    rows: &[FunctionTotals],
    around: &CostContext<'_>,
    of: Option<&FindingContext<'_>>,
) -> Vec<IoCost> {
    let mut found = of.map(findings).unwrap_or_default();
    found.costs.truncate(MAX_FINDINGS);
    for cost in &mut found.costs {
        cost.what = sentence(cost);
    }
    let mut functions: BTreeMap<(Function, bool), FunctionCost<'_>> = BTreeMap::new();
    for (number, row) in (0_u32..).zip(rows) {
        if row.ns == 0 || row.key.function.role() == Role::Program {
            continue;
        }
        let (function, large) = (row.key.function, row.key.large);
        let new = FunctionCost { function, large, rows: Vec::new(), ns: 0, explained_ns: 0.0 };
        let cost = functions.entry((function, large)).or_insert(new);
        cost.rows.push(row);
        cost.ns = cost.ns.saturating_add(row.ns);
        cost.explained_ns += found.explained_ns.get(&number).copied().unwrap_or(0.0);
    }
    let mut functions: Vec<FunctionCost<'_>> = functions.into_values().collect();
    functions.sort_by_key(|cost| std::cmp::Reverse(cost.ns));
    // What a finding explains is not repeated, nor are functions that hardly matter beside it.
    let is_open = |cost: &FunctionCost<'_>| {
        let is_small = ratio(cost.ns, around.totals.io_ns) < MIN_FUNCTION_SHARE;
        found.costs.is_empty() || (!is_small && cost.explained_ns < 0.75 * ratio(cost.ns, 1))
    };
    let rest: Vec<IoCost> = functions
        .into_iter()
        .filter(is_open)
        .take(MAX_COSTS - found.costs.len())
        .map(|cost| describe(&cost, around))
        .collect();
    found.costs.extend(rest);
    found.costs
}

fn describe(cost: &FunctionCost<'_>, around: &CostContext<'_>) -> IoCost {
    let mut rows = cost.rows.clone();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    let main = rows[0];
    let path = |row: &FunctionTotals| {
        let file = around.head.files.get(row.key.file? as usize)?;
        Some(file.path.clone())
    };
    let files = rows.iter().filter(|row| row.key.file.is_some()).count() as u64;
    let function = function_name(cost.function, cost.large);
    let share = ratio(cost.ns, around.totals.io_ns);
    let (ranks, slowest) = around.totals.function_ranks.get(&(cost.function, cost.large)).copied().unwrap_or_default();
    let who = match ranks {
        1 => format!("rank {}", slowest.rank),
        ranks => format!("{} ranks", count(ranks)),
    };
    let mut sizes = SizeCounter::default();
    rows.iter().for_each(|row| sizes.merge(&row.size_counter));
    let on = match (files, path(main)) {
        (_, None) => String::new(),
        (0 | 1, Some(path)) => format!(" on {path}"),
        (files, Some(path)) => {
            format!(" on {} files, {} of it on {path}", count(files), percent(ratio(main.ns, cost.ns)))
        }
    };
    let calls = rows.iter().map(|row| row.calls).sum();
    let mut what = format!(
        "{who} spent {} of the I/O time ({}) in {} of {function}{}{on}",
        percent(share),
        seconds(ratio(cost.ns, 1_000_000_000)),
        plural(calls, "call", "calls"),
        sizes.sizes().as_ref().map_or_else(String::new, size_text),
    );
    if ranks > 1 && slowest.ns / 3 > cost.ns / ranks / 2 {
        what.push_str(&format!("; {} of that is rank {}", percent(ratio(slowest.ns, cost.ns)), slowest.rank));
    }
    let failed: u64 = rows.iter().flat_map(|row| row.errors.values()).sum();
    if let Some((class, _)) = rows.iter().flat_map(|row| &row.errors).max_by_key(|(_, n)| **n) {
        what.push_str(&format!("; {} with {class}", plural(failed, "call failed", "calls failed")));
    }
    let pattern = rows.iter().fold(PatternCounts::default(), |mut sum, row| {
        if let Some(state) = row.key.file.and_then(|file| around.totals.files.get(&file)) {
            sum.add(if row.key.function.direction() == Some(Direction::Read) { state.reads } else { state.writes });
        }
        sum
    });
    let layer = main.key.file.and_then(|file| around.layers.get(&file)).copied().unwrap_or_default();
    let shape = CallShape {
        calls,
        ranks,
        files,
        layer,
        median_bytes: sizes.sizes().map_or(0, |sizes| sizes.median_bytes),
        pattern,
    };
    IoCost {
        kind: "function",
        is_certain: true,
        seconds: ratio(cost.ns, 1_000_000_000),
        share,
        bytes: rows.iter().fold(0, |sum, row| sum.saturating_add(row.bytes)),
        next: advice(cost.function, &shape),
        function: Some(function),
        file: path(main),
        files,
        what,
    }
}

fn size_text(sizes: &SizeDistribution) -> String {
    if sizes.min_bytes == sizes.max_bytes {
        return format!(" of {}", bytes(sizes.min_bytes));
    }
    let [min, max, median] = [sizes.min_bytes, sizes.max_bytes, sizes.median_bytes].map(bytes);
    format!(" of {min} to {max} (half of them up to {median})")
}

/// Calls of a function, for the advice.
struct CallShape {
    calls: u64,
    ranks: u64,
    files: u64,
    layer: Layer,
    median_bytes: u64,
    pattern: PatternCounts,
}

fn advice(function: Function, shape: &CallShape) -> String {
    match function.role() {
        Role::Data { form: AccessForm::End, .. } => {
            "wait for the rest of a split collective access; more work between begin and end would overlap more of it"
                .to_owned()
        }
        Role::Data { direction, pointer, collective, .. } => {
            data_advice(function, shape, (direction, pointer, collective))
        }
        Role::Request => {
            "wait for nonblocking accesses; more work between their begin and this call would overlap more of it"
                .to_owned()
        }
        Role::File { .. } | Role::Program | Role::Posix => file_advice(function, shape).to_owned(),
    }
}

fn data_advice(
    function: Function,
    shape: &CallShape,
    (direction, pointer, collective): (Direction, PointerKind, bool),
) -> String {
    let verb = if direction == Direction::Read { "reads" } else { "writes" };
    let together = match shape.layer {
        Layer::Direct => collective_equivalent(function).to_owned(),
        layer => format!("in {}: {}", layer.name(), advice::independent(layer)),
    };
    let pattern = shape.pattern;
    let scattered = pattern.strided + pattern.random > pattern.sequential;
    if pointer == PointerKind::Shared {
        return format!("{verb} at the shared file pointer, which ranks lock in turn; explicit offsets (MPI_Exscan of the sizes, then {together}) would help");
    }
    if shape.calls <= 4 * shape.ranks.max(1) && shape.median_bytes < LARGE_BYTES {
        return format!("few {verb}; their time is that of the storage, or of waiting for it, not of the pattern");
    }
    let small = shape.median_bytes < SMALL_BYTES;
    let large = shape.median_bytes >= LARGE_BYTES;
    match (collective, small, scattered) {
        (false, true, true) => {
            format!("small, scattered, independent {verb}; collective ones ({together}), or larger blocks, would help")
        }
        (false, true, false) => {
            format!("small independent {verb}; larger blocks, or collective {verb} ({together}), would help")
        }
        (false, false, true) => {
            format!("noncontiguous independent {verb}; collective ones ({together}) would let the library reorder them")
        }
        (false, false, false) if !large => {
            format!("sequential independent {verb} of medium size; larger blocks may help")
        }
        (false, false, false) => format!("large sequential {verb}, limited by the storage; compare with beff-raw run"),
        (true, true, _) => {
            format!("small collective {verb}: each call waits for all ranks; more data in a call would help")
        }
        (true, false, _) if !large => {
            format!("collective {verb} of medium size; more data in a call would need fewer of them")
        }
        (true, false, _) => {
            format!("large collective {verb}, limited by storage and data exchange; try other numbers of aggregators and buffer sizes (hints cb_nodes, cb_buffer_size)")
        }
    }
}

/// The collective, blocking variant with explicit offsets or individual pointers.
fn collective_equivalent(function: Function) -> &'static str {
    match function.role() {
        Role::Data { direction: Direction::Read, pointer: PointerKind::Individual, .. } => "MPI_File_read_all",
        Role::Data { direction: Direction::Write, pointer: PointerKind::Individual, .. } => "MPI_File_write_all",
        Role::Data { direction: Direction::Read, .. } => "MPI_File_read_at_all",
        _ => "MPI_File_write_at_all",
    }
}

fn file_advice(function: Function, shape: &CallShape) -> &'static str {
    let once = shape.calls <= shape.ranks.max(1);
    match function {
        Function::Open => advice::open(shape.files, shape.layer),
        Function::Close if once => "closing the file; it waits for the slowest rank and for data buffered by the library",
        Function::Close => "closing files; it waits for the slowest rank and for data buffered by the library; fewer opens and closes would help",
        Function::Sync if shape.layer == Layer::Hdf5 => "wait until data is on the storage, for H5Fflush; flushing less often would help if the program can afford to lose data",
        Function::Sync => "wait until data is on the storage; fewer syncs, or none before close, would help if the program can afford to lose data",
        Function::SetView => advice::set_view(shape.layer),
        Function::SetSize | Function::Preallocate if once => "allocating space, once",
        Function::SetSize | Function::Preallocate => "allocating space; once at the begin is enough",
        Function::GetSize => "querying the file size; the program can keep track of it",
        Function::SetAtomicity => "atomic mode makes all accesses wait for each other",
        _ => "no data is moved; fewer calls would help",
    }
}
