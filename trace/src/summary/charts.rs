//! Who accessed what and when, as grids of bounded size.

use std::collections::BTreeMap;

use crate::access::{CallEffect, ResolvedAccess};
use crate::function::{AccessForm, Role};
use crate::layout::TypeLayouts;
use crate::{Call, Direction, ProfileHead};

/// Columns of a grid.
pub const TIME_BINS: usize = 80;
/// Maximum number of rows of a grid.
pub const MAX_ROWS: usize = 32;
/// Files whose offsets are shown, in the order of their use.
const MAX_FILES: usize = 64;

/// Sums over equal intervals of time and of a second quantity. An interval doubles when a value lies beyond the last one, so that ends
/// need not be known before.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Length of a column in ns.
    pub column_ns: u64,
    /// Length of a row.
    pub row_length: u64,
    /// Sums by row and column.
    pub cells: Vec<[u64; TIME_BINS]>,
}

impl Grid {
    fn new(column_ns: u64, row_length: u64) -> Self {
        Self { column_ns, row_length, cells: vec![[0; TIME_BINS]; MAX_ROWS] }
    }

    fn widen_columns(&mut self) {
        for row in &mut self.cells {
            let mut joined = [0; TIME_BINS];
            for (column, sum) in row.iter().enumerate() {
                joined[column / 2] += sum;
            }
            *row = joined;
        }
        self.column_ns *= 2;
    }

    fn heighten_rows(&mut self) {
        for row in 0..MAX_ROWS {
            let [first, second] = [2 * row, 2 * row + 1].map(|row| self.cells.get(row).copied());
            let mut joined = first.unwrap_or([0; TIME_BINS]);
            joined.iter_mut().zip(second.unwrap_or([0; TIME_BINS])).for_each(|(sum, other)| *sum += other);
            self.cells[row] = joined;
        }
        self.row_length = self.row_length.saturating_mul(2);
    }

    /// Adds to the cell of a time and a position.
    fn add(&mut self, ns: u64, position: u64, amount: u64) {
        while ns / self.column_ns >= TIME_BINS as u64 {
            self.widen_columns();
        }
        while position / self.row_length >= MAX_ROWS as u64 {
            self.heighten_rows();
        }
        let (row, column) = (position / self.row_length, ns / self.column_ns);
        let cell = &mut self.cells[usize::try_from(row).unwrap_or(0)][usize::try_from(column).unwrap_or(0)];
        *cell = cell.saturating_add(amount);
    }

    /// Adds a duration to the columns it covers.
    fn add_duration(&mut self, begin_ns: u64, end_ns: u64, position: u64) {
        let mut at = begin_ns;
        // The last column first, so that the width is final.
        self.add(end_ns, position, 0);
        while at < end_ns {
            let end = ((at / self.column_ns + 1) * self.column_ns).min(end_ns);
            self.add(at, position, end - at);
            at = end;
        }
    }

    /// Adds bytes of a range, evenly to the rows it covers.
    fn add_range(&mut self, ns: u64, (begin, end): (u64, u64), bytes: u64) {
        self.add(ns, end.max(begin + 1) - 1, 0);
        let mut at = begin;
        while at < end {
            let next = ((at / self.row_length + 1) * self.row_length).min(end);
            // Differences of rounded sums, so that none is lost.
            let up_to = |at: u64| u128::from(bytes) * u128::from(at - begin) / u128::from(end - begin);
            self.add(ns, at, u64::try_from(up_to(next) - up_to(at)).unwrap_or(0));
            at = next;
        }
    }

    /// Largest cell.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.cells.iter().flatten().copied().max().unwrap_or(0)
    }
}

/// Bytes read and written.
#[derive(Clone, Debug)]
pub struct AccessGrids {
    /// Read bytes.
    pub read: Grid,
    /// Written bytes.
    pub written: Grid,
}

impl AccessGrids {
    fn new(row_length: u64) -> Self {
        Self { read: Grid::new(1000, row_length), written: Grid::new(1000, row_length) }
    }

    fn of(&mut self, direction: Direction) -> &mut Grid {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.written,
        }
    }

    fn align(&mut self) {
        let column_ns = self.read.column_ns.max(self.written.column_ns);
        let row_length = self.read.row_length.max(self.written.row_length);
        for grid in [&mut self.read, &mut self.written] {
            while grid.column_ns < column_ns {
                grid.widen_columns();
            }
            while grid.row_length < row_length {
                grid.heighten_rows();
            }
        }
    }
}

/// Charts of a profile.
#[derive(Clone, Debug)]
pub struct ProfileCharts {
    /// Time in I/O calls by rank and time, in ns.
    pub io_ns: Grid,
    /// Bytes by rank and time.
    pub by_rank: AccessGrids,
    /// Bytes by offset and time, of files by path.
    pub by_offset: BTreeMap<String, AccessGrids>,
    /// The same by file number, while calls are added.
    by_file: BTreeMap<u32, AccessGrids>,
}

impl ProfileCharts {
    pub(super) fn new(ranks: usize) -> Self {
        let row = (ranks as u64).div_ceil(MAX_ROWS as u64).max(1);
        Self {
            io_ns: Grid::new(1000, row),
            by_rank: AccessGrids::new(row),
            by_offset: BTreeMap::new(),
            by_file: BTreeMap::new(),
        }
    }

    pub(super) fn call(
        &mut self,
        rank: u32,
        call: &Call,
        file: Option<u32>,
        effect: Option<(CallEffect, &TypeLayouts)>,
    ) {
        let role = call.function.role();
        if role != Role::Program {
            self.io_ns.add_duration(call.begin_ns, call.end_ns, u64::from(rank));
        }
        let Role::Data { form, direction, .. } = role else { return };
        if form == AccessForm::End || call.error.is_some() {
            return;
        }
        let access = effect.and_then(|(effect, layouts)| match effect {
            CallEffect::Access(access) => Some((access, layouts)),
            _ => None,
        });
        let bytes = access.map(|(access, _)| access.bytes).or(call.bytes).unwrap_or(0);
        self.by_rank.of(direction).add(call.begin_ns, u64::from(rank), bytes);
        if let (Some((access, layouts)), Some(file)) = (access, file) {
            self.offset(&access, layouts, file, call.begin_ns);
        }
    }

    fn offset(&mut self, access: &ResolvedAccess, layouts: &TypeLayouts, file: u32, begin_ns: u64) {
        if !self.by_file.contains_key(&file) && self.by_file.len() >= MAX_FILES {
            return;
        }
        let hull = access.hull(layouts);
        let (begin, end) = (u64::try_from(hull.start).unwrap_or(0), u64::try_from(hull.end).unwrap_or(0));
        let grids = self.by_file.entry(file).or_insert_with(|| AccessGrids::new(1));
        grids.of(access.direction).add_range(begin_ns, (begin, end), access.bytes);
    }

    /// Makes the grids of one picture equally large, and names the files.
    pub(super) fn finish(&mut self, head: &ProfileHead) {
        for (file, grids) in std::mem::take(&mut self.by_file) {
            if let Some(file) = head.files.get(file as usize) {
                self.by_offset.insert(file.path.clone(), grids);
            }
        }
        self.by_rank.align();
        self.by_offset.values_mut().for_each(AccessGrids::align);
        let mut widest = self.io_ns.column_ns.max(self.by_rank.read.column_ns);
        widest = self.by_offset.values().map(|grids| grids.read.column_ns).fold(widest, u64::max);
        let all = self
            .by_offset
            .values_mut()
            .chain([&mut self.by_rank])
            .flat_map(|grids| [&mut grids.read, &mut grids.written]);
        for grid in all.chain([&mut self.io_ns]) {
            while grid.column_ns < widest {
                grid.widen_columns();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_when_intervals_grow() {
        let mut grid = Grid::new(1000, 1);
        let mut sum = 0;
        for n in 0..1000_u64 {
            grid.add(n * n * 1000, n * 37 % 4096, n);
            sum += n;
        }
        assert_eq!(grid.cells.iter().flatten().sum::<u64>(), sum);
        assert!(grid.column_ns * TIME_BINS as u64 > 999 * 999 * 1000 && grid.row_length == 128, "{}", grid.row_length);
        let mut durations = Grid::new(1000, 1);
        durations.add_duration(500, 1_000_000, 3);
        assert_eq!(durations.cells[3].iter().sum::<u64>(), 999_500);
        assert!(durations.cells[3].iter().filter(|ns| **ns > 0).count() > TIME_BINS / 3);
        let mut range = Grid::new(1000, 1);
        range.add_range(5, (0, 3200), 6400);
        let rows: Vec<u64> = range.cells.iter().map(|row| row[0]).collect();
        assert_eq!((rows.iter().sum::<u64>(), rows[0], rows[24], rows[25]), (6400, 256, 256, 0));
        range.add_range(5, (7, 7), 0);
        range.add_range(5, (1, 3000), 1001);
        assert_eq!(range.cells.iter().map(|row| row[0]).sum::<u64>(), 7401);
    }
}
