//! Descriptions of the largest costs.

use super::collect::FunctionTotals;
use super::model::{IoCost, PatternCounts};
use super::names::function_name;
use super::units::{bytes, count, percent, ratio, seconds};
use crate::function::{AccessForm, Direction, Function, PointerKind, Role};

/// Data accesses below this size are dominated by the cost of the call.
const SMALL_BYTES: u64 = 64 << 10;
const MAX_COSTS: usize = 5;

/// Context of a description besides the row.
pub(super) struct CostContext<'a> {
    pub io_ns: u64,
    /// Path of the file of a row.
    pub path: &'a dyn Fn(&FunctionTotals) -> Option<String>,
    /// Pattern of the file of a row in the direction of its function.
    pub pattern: &'a dyn Fn(&FunctionTotals) -> PatternCounts,
}

/// Returns the largest costs, none without I/O.
pub(super) fn largest_costs(rows: &[FunctionTotals], around: &CostContext<'_>) -> Vec<IoCost> {
    let mut rows: Vec<&FunctionTotals> =
        rows.iter().filter(|row| row.ns > 0 && row.key.function.role() != Role::Program).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    rows.into_iter().take(MAX_COSTS).map(|row| cost(row, around)).collect()
}

fn cost(row: &FunctionTotals, around: &CostContext<'_>) -> IoCost {
    let file = (around.path)(row);
    let function = function_name(row.key.function, row.key.large);
    let share = ratio(row.ns, around.io_ns);
    let who = match row.ranks {
        1 => format!("rank {}", row.slowest.rank),
        ranks => format!("{} ranks", count(ranks)),
    };
    let size = row.size_counter.sizes().map(|sizes| {
        if sizes.min_bytes == sizes.max_bytes {
            format!(" of {}", bytes(sizes.min_bytes))
        } else {
            format!(
                " of {} to {} (half of them up to {})",
                bytes(sizes.min_bytes),
                bytes(sizes.max_bytes),
                bytes(sizes.median_bytes)
            )
        }
    });
    let on = file.as_ref().map(|path| format!(" on {path}"));
    let calls = if row.calls == 1 { "1 call".to_owned() } else { format!("{} calls", count(row.calls)) };
    let mut what = format!(
        "{who} spent {} of the I/O time ({}) in {calls} of {function}{}{}",
        percent(share),
        seconds(ratio(row.ns, 1_000_000_000)),
        size.unwrap_or_default(),
        on.unwrap_or_default()
    );
    if row.ranks > 1 && row.slowest.ns / 3 > row.ns / row.ranks / 2 {
        what.push_str(&format!("; {} of that is rank {}", percent(ratio(row.slowest.ns, row.ns)), row.slowest.rank));
    }
    let next = advice(row, (around.pattern)(row));
    IoCost { seconds: ratio(row.ns, 1_000_000_000), share, function, file, what, next }
}

fn advice(row: &FunctionTotals, pattern: PatternCounts) -> String {
    match row.key.function.role() {
        Role::Data { form: AccessForm::End, .. } => {
            "wait for the rest of a split collective access; more work between begin and end would overlap more of it"
                .to_owned()
        }
        Role::Data { direction, pointer, collective, .. } => {
            data_advice(row, pattern, (direction, pointer, collective))
        }
        Role::Request => {
            "wait for nonblocking accesses; more work between their begin and this call would overlap more of it"
                .to_owned()
        }
        Role::File { .. } | Role::Program => file_advice(row.key.function).to_owned(),
    }
}

fn data_advice(
    row: &FunctionTotals,
    pattern: PatternCounts,
    (direction, pointer, collective): (Direction, PointerKind, bool),
) -> String {
    let verb = if direction == Direction::Read { "reads" } else { "writes" };
    let together = collective_equivalent(row.key.function);
    let small = row.size_counter.sizes().is_some_and(|sizes| sizes.median_bytes < SMALL_BYTES);
    let scattered = pattern.strided + pattern.random > pattern.sequential;
    if pointer == PointerKind::Shared {
        return format!("{verb} at the shared file pointer, which ranks lock in turn; explicit offsets (MPI_Exscan of the sizes, then {together}) would help");
    }
    match (collective, small, scattered) {
        (false, true, true) => format!("small, scattered, independent {verb}; collective ones ({together}) with a file view, or larger blocks, would help"),
        (false, true, false) => format!("small independent {verb}; larger blocks, or collective {verb} ({together}), would help"),
        (false, false, true) => format!("noncontiguous independent {verb}; collective ones ({together}) would let the library reorder them"),
        (false, false, false) => format!("large sequential {verb}, limited by the storage; compare with beff-raw run"),
        (true, true, _) => format!("small collective {verb}: each call waits for all ranks; more data in a call would help"),
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

fn file_advice(function: Function) -> &'static str {
    match function {
        Function::Open => "opening files; fewer files, or one file that stays open, would help, as would a smaller communicator for small files",
        Function::Close => "closing files; it waits for the slowest rank and for data buffered by the library; fewer opens and closes would help",
        Function::Sync => "wait until data is on the storage; fewer syncs, or none before close, would help if the program can afford to lose data",
        Function::SetView => "setting views; a view that is set once, or one type for all steps, would help",
        Function::SetSize | Function::Preallocate => "allocating space; once at the begin is enough",
        Function::GetSize => "querying the file size; the program can keep track of it",
        Function::SetAtomicity => "atomic mode makes all accesses wait for each other",
        _ => "no data is moved; fewer calls would help",
    }
}
