//! The largest costs in plain words.

use super::collect::Row;
use super::model::{Cost, Pattern};
use super::names::function_name;
use super::units::{bytes, count, percent, ratio, seconds};
use crate::function::{Direction, Form, Function, Pointer, Role};

/// Data accesses below this pay more for the call than for the data.
const SMALL_BYTES: u64 = 64 << 10;
const MOST: usize = 5;

/// What the words need besides the row.
pub(super) struct Around<'a> {
    /// I/O time of all ranks.
    pub io_ns: u64,
    /// Path of the file of a row.
    pub path: &'a dyn Fn(&Row) -> Option<String>,
    /// How the file of a row is accessed in the direction of its function.
    pub pattern: &'a dyn Fn(&Row) -> Pattern,
}

/// The largest costs, none without I/O.
pub(super) fn costs(rows: &[Row], around: &Around<'_>) -> Vec<Cost> {
    let mut rows: Vec<&Row> =
        rows.iter().filter(|row| row.ns > 0 && row.key.function.role() != Role::Program).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    rows.into_iter().take(MOST).map(|row| cost(row, around)).collect()
}

fn cost(row: &Row, around: &Around<'_>) -> Cost {
    let file = (around.path)(row);
    let function = function_name(row.key.function, row.key.large);
    let share = ratio(row.ns, around.io_ns);
    let who = match row.ranks {
        1 => format!("rank {}", row.slowest.rank),
        ranks => format!("{} ranks", count(ranks)),
    };
    let size = row.sizes.sizes().map(|sizes| {
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
    Cost { seconds: ratio(row.ns, 1_000_000_000), share, function, file, what, next }
}

fn advice(row: &Row, pattern: Pattern) -> String {
    match row.key.function.role() {
        Role::Data { form: Form::End, .. } => {
            "the rest of a split collective access, waited for; more work between begin and end would hide more of it"
                .to_owned()
        }
        Role::Data { direction, pointer, collective, .. } => {
            data_advice(row, pattern, (direction, pointer, collective))
        }
        Role::Request => {
            "waiting for nonblocking accesses; more work between their begin and this call would hide more of it"
                .to_owned()
        }
        Role::File { .. } | Role::Program => file_advice(row.key.function).to_owned(),
    }
}

fn data_advice(row: &Row, pattern: Pattern, (direction, pointer, collective): (Direction, Pointer, bool)) -> String {
    let verb = if direction == Direction::Read { "reads" } else { "writes" };
    let together = collective_twin(row.key.function);
    let small = row.sizes.sizes().is_some_and(|sizes| sizes.median_bytes < SMALL_BYTES);
    let scattered = pattern.strided + pattern.random > pattern.sequential;
    if pointer == Pointer::Shared {
        return format!("{verb} at the shared pointer, which all ranks lock in turn; offsets of their own (MPI_Exscan of the sizes, then {together}) would help");
    }
    match (collective, small, scattered) {
        (false, true, true) => format!("small, scattered, independent {verb}; collective ones ({together}) with a file view, or larger blocks, would help"),
        (false, true, false) => format!("small independent {verb}; larger blocks, or collective {verb} ({together}), would help"),
        (false, false, true) => format!("independent {verb} that jump in the file; collective ones ({together}) would let the library put them in order"),
        (false, false, false) => format!("large {verb} one behind the other: this is the speed of the storage; compare with beff-raw run"),
        (true, true, _) => format!("small collective {verb}: each call waits for all ranks; more data in a call would help"),
        (true, false, _) => {
            format!("large collective {verb}: the speed of storage and exchange; try other numbers of aggregators and sizes of buffers (hints cb_nodes, cb_buffer_size)")
        }
    }
}

/// The collective, blocking access with offsets or pointers of the rank.
fn collective_twin(function: Function) -> &'static str {
    match function.role() {
        Role::Data { direction: Direction::Read, pointer: Pointer::Individual, .. } => "MPI_File_read_all",
        Role::Data { direction: Direction::Write, pointer: Pointer::Individual, .. } => "MPI_File_write_all",
        Role::Data { direction: Direction::Read, .. } => "MPI_File_read_at_all",
        _ => "MPI_File_write_at_all",
    }
}

fn file_advice(function: Function) -> &'static str {
    match function {
        Function::Open => "opening; fewer files, or one file that stays open, would help; so does a smaller communicator for small files",
        Function::Close => "closing: it waits for the slowest rank and for data that the library kept back; fewer opens and closes would help",
        Function::Sync => "waiting until data is on the storage; fewer syncs, or none before close, would help if the program can lose that much",
        Function::SetView => "setting views; a view that is set once, or one type for all steps, would help",
        Function::SetSize | Function::Preallocate => "making room; once at the begin is enough",
        Function::GetSize => "asking the file system for the size; the program can count it itself",
        Function::SetAtomicity => "atomic mode makes all accesses wait for each other",
        _ => "no data moves here; fewer calls would help",
    }
}
