//! Our loops beside bare ones in C, in turns, in the same process, on the same file and from the same windows: what this
//! program costs. Without syncs; the files stay in the page cache.

use std::path::Path;

use beff_backends::{Batch, Direction, FilePath, OpenFile, OpenMode, OpenRequest, Pattern};
use beff_ffi::bare_file::{BareCall, BareFile, BareLoop};
use beff_ffi::{Comm, Info, MpiError};

use super::check::{received, reread};
use super::contents::share;
use super::data::Data;
use super::job::Backend;
use super::shape::Shape;
use super::timed::{Syncs, Task, Way};
use super::{contents, timed, Bench};
use crate::frame::records::ErrorRecord;
use crate::frame::run::agree;
use crate::frame::run::named;
use crate::frame::run::turns::{Side, Turns};
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::catalogue::default_list;
use crate::imb_io::plan::{Benchmark, Group, Pointer, Style, Transfer};
use crate::imb_io::records::{BarePair, ImbBareRecord};

/// Benchmarks that are compared: every blocking call with a place of its own in the common file, 12 of them.
fn compared() -> impl Iterator<Item = (&'static Benchmark, &'static Transfer)> {
    let with_transfer = default_list().iter().filter_map(|benchmark| Some((benchmark, benchmark.transfer()?)));
    with_transfer.filter(|(_, transfer)| {
        transfer.style == Style::Blocking && matches!(transfer.pointer, Pointer::Indv | Pointer::Expl)
    })
}

/// With these samples.
const SIZES_BYTES: [u64; 4] = [4 << 10, 64 << 10, 1 << 20, 4 << 20];
/// Bytes of a file at most: windows and pages that both kinds of loops use again and again.
const FILE_BYTES: u64 = 32 << 20;
/// What a loop is to take.
const LOOP_SECONDS: f64 = 0.01;
/// Time of one comparison, about.
const SHARE_SECONDS: f64 = 0.6;
const TURNS: Turns = Turns { share_seconds: SHARE_SECONDS, pairs: [7, 101] };
/// Calls of a loop at most.
const CALLS: u64 = 1000;

/// Bytes for the windows, if there is something to compare.
pub(super) fn memory_bytes(config: &ImbConfig) -> u64 {
    if config.bare {
        FILE_BYTES
    } else {
        0
    }
}

/// Time of all comparisons, about.
pub(super) fn expected_seconds(config: &ImbConfig) -> f64 {
    if config.bare {
        (compared().count() * SIZES_BYTES.len()) as f64 * SHARE_SECONDS
    } else {
        0.0
    }
}

/// Both loops of one benchmark and size.
struct Sides<'a> {
    comm: &'a Comm,
    shape: Shape,
    pattern: Pattern,
    data: Data,
    ours: Box<dyn OpenFile>,
    bare: BareFile,
}

/// How the comparison ended.
pub(super) enum Compared {
    /// With all its records, complete on rank 0; or with those before a signal.
    Records(Vec<ImbBareRecord>, bool),
    /// With an error.
    Failed(ErrorRecord),
}

/// Compares all of them through the MPI-IO of the run, P and C on all ranks, S on the first. Collective over the world.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn compare(world: &Comm, bench: &mut Bench<'_>, backends: &[Backend]) -> Result<Compared, MpiError> {
    let mut records = Vec::new();
    let Some(backend) = backends.iter().find(|backend| backend.name == "mpiio") else {
        return Ok(Compared::Records(records, false));
    };
    let own = Comm::own();
    for (number, (benchmark, transfer)) in compared().enumerate() {
        let alone = transfer.group == Group::Single;
        let comm = if alone { &own } else { world };
        let rows = ((number * SIZES_BYTES.len()) as u64..).zip(SIZES_BYTES);
        let made: Text<Vec<_>> = if alone && !world.is_root() {
            Ok(Vec::new())
        } else {
            rows.map(|(row, bytes)| one(comm, bench, backend, (benchmark, transfer), (bytes, row))).collect()
        };
        // The others wait for the first rank.
        world.idle_barrier()?;
        let raised = agree::any(world, bench.interrupt.raised())?;
        match agree::all(world, made)? {
            Ok(made) => records.extend(made),
            Err((rank, message)) => {
                return Ok(Compared::Failed(ErrorRecord {
                    during: format!("{} beside a bare loop", benchmark.name),
                    rank,
                    ranks_affected: 1,
                    message,
                    next_step: "Repeat without --bare; the rows are not touched by this.".into(),
                    no_space: false,
                }))
            }
        }
        if raised {
            return Ok(Compared::Records(records, true));
        }
    }
    Ok(Compared::Records(records, false))
}

/// What went wrong on this rank, or on all.
type Text<T> = Result<T, String>;

/// The same on every rank: the first text of those that have one.
fn agreed<T>(comm: &Comm, mine: Text<T>) -> Text<T> {
    agree::all(comm, mine).map_err(text)?.map_err(|(_, text)| text)
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// One benchmark and size, on all ranks of `comm`; the error is the same on all of them.
fn one(
    comm: &Comm,
    bench: &mut Bench<'_>,
    backend: &Backend,
    (benchmark, transfer): (&Benchmark, &Transfer),
    (sample_bytes, row): (u64, u64),
) -> Text<ImbBareRecord> {
    let steps = (FILE_BYTES / sample_bytes).min(CALLS);
    let path = bench.run_dir.file(&Path::new(&backend.name).join(format!("bare{row:02}.dat")));
    let shape =
        Shape::new(*transfer, sample_bytes, steps, (comm.rank(), comm.size()), bench.config.buffers).map_err(text)?;
    let pattern = shape.pattern().map_err(text)?;
    let data = shape.data(bench.config.seed, u64::MAX - row, 0);
    // Reads and writes alike find a file of full length.
    agreed(comm, contents::fill(comm, &shape, &path, |at, bytes| data.fill(at, bytes)).map_err(text))?;
    let hints = &bench.config.hints;
    let request = OpenRequest { path: &path, mode: OpenMode::Update, comm, hints };
    agreed(comm, named::check(&backend.name, &path).map_err(text))?;
    let ours = agreed(comm, backend.driver.open(&request).map_err(text))?;
    let info = Info::new(hints).map_err(text)?;
    let bare = agreed(comm, BareFile::open(comm, &path, false, &info).map_err(text))?;
    agreed(comm, named::check(&backend.name, &path).map_err(text))?;
    let mut sides = Sides { comm, shape, pattern, data, ours, bare };
    let record = sides.pairs(bench, &path, benchmark.name);
    let Sides { ours, bare, .. } = sides;
    let closed = bare.close().map_err(text);
    let closed = closed.and(ours.close().map_err(text));
    remove(comm, &path);
    agreed(comm, closed)?;
    record
}

fn remove(comm: &Comm, path: &FilePath) {
    if comm.is_root() {
        // What stays goes with the directory.
        let _ = path.remove();
    }
}

impl Sides<'_> {
    fn pairs(&mut self, bench: &mut Bench<'_>, path: &FilePath, name: &str) -> Text<ImbBareRecord> {
        contents::lay_out(&mut bench.ring, &self.shape, &self.data);
        let steps = self.shape.steps;
        let calls = |one: f64| ((LOOP_SECONDS / one) as u64).clamp(steps.min(8), steps);
        let (repetitions, pairs) = TURNS.take(steps, calls, |order, steps| {
            let mut sides = [Ok(0.0), Ok(0.0)];
            for side in order {
                sides[side as usize] = match side {
                    Side::Ours => self.ours(bench, steps),
                    Side::Bare => self.bare(bench, steps),
                };
            }
            self.slowest(sides)
        })?;
        let record = ImbBareRecord {
            benchmark: name.to_owned(),
            ranks: self.comm.size(),
            sample_bytes: self.shape.sample_bytes,
            repetitions,
            pairs: pairs
                .into_iter()
                .map(|[ours_seconds, bare_seconds]| BarePair { ours_seconds, bare_seconds })
                .collect(),
        };
        self.check(bench, path)?;
        Ok(record)
    }

    /// The slowest rank of both sides, or the error of any.
    fn slowest(&self, [ours, bare]: [Text<f64>; 2]) -> Text<[f64; 2]> {
        let mine = ours.and_then(|ours| bare.map(|bare| [ours, bare]));
        let mut all = [0.0, 0.0, f64::from(u8::from(mine.is_err()))];
        if let Ok(seconds) = &mine {
            all[..2].copy_from_slice(seconds);
        }
        self.comm.max_f64(&mut all).map_err(text)?;
        if all[2] > 0.0 {
            return agreed(self.comm, mine);
        }
        Ok([all[0], all[1]])
    }

    /// All ranks make all calls, whatever fails on one of them.
    fn ours(&mut self, bench: &mut Bench<'_>, steps: u64) -> Text<f64> {
        let direction = self.shape.transfer.direction;
        let prepared = self.ours.prepare(&self.pattern, direction, &mut bench.ring, &[]);
        agreed(self.comm, prepared.map_err(text))?;
        let task = Task {
            kind: self.pattern.kind,
            direction,
            syncs: Syncs::None,
            calls: Batch { first_call: 0, calls: steps },
            all_calls: steps,
            pending: 1,
            one_by_one: false,
            way: Way::Blocking,
        };
        let timed = timed::run(self.ours.as_mut(), self.comm, &mut bench.ring, &task, &mut bench.laps);
        let timed = timed.map_err(text)?;
        timed.error.map_or(Ok(timed.seconds), |e| Err(text(e)))
    }

    fn bare(&mut self, bench: &mut Bench<'_>, steps: u64) -> Text<f64> {
        let explicit = self.shape.transfer.pointer == Pointer::Expl;
        let call = BareCall { explicit, collective: self.shape.transfer.group == Group::Collective };
        let (part, step_bytes) = (self.shape.part, self.shape.step_bytes());
        let what = BareLoop {
            bytes: part.length_bytes as usize,
            windows: self.shape.windows,
            offset_bytes: part.offset_bytes,
            stride_bytes: step_bytes,
            calls: steps,
        };
        let view = if explicit {
            self.bare.view(0, 0, step_bytes)
        } else {
            self.bare.view(part.offset_bytes, part.length_bytes, step_bytes)
        };
        agreed(self.comm, view.map_err(text))?;
        self.comm.bare_barrier().map_err(text)?;
        self.comm.bare_barrier().map_err(text)?;
        let seconds = match self.shape.transfer.direction {
            Direction::Write => self.bare.write(call, bench.ring.bytes(), &what),
            Direction::Read => self.bare.read(call, bench.ring.bytes_mut(), &what),
        };
        seconds.ok_or_else(|| "a call of the bare loop failed, or its last transfer was short".into())
    }

    /// Both loops once more: what is read comes into poisoned windows, what is written into a file of other bytes.
    fn check(&mut self, bench: &mut Bench<'_>, path: &FilePath) -> Text<()> {
        let writes = self.shape.transfer.direction == Direction::Write;
        if !writes {
            self.shape = self.shape.apart();
        }
        let range = share(self.shape.file_bytes, self.shape.rank, self.shape.ranks);
        let mut wrong = [0];
        for side in 0..2 {
            if writes {
                agreed(self.comm, contents::wipe(path, range.clone()).map_err(text))?;
            } else {
                contents::lay_out(&mut bench.ring, &self.shape, &self.data);
            }
            let steps = self.shape.steps;
            let made = if side == 0 { self.ours(bench, steps) } else { self.bare(bench, steps) };
            agreed(self.comm, made)?;
            let checked = if writes {
                // The files stay in the page cache.
                let source = contents::Source { path, drops: false };
                agreed(self.comm, reread(&self.shape, &self.data, source, range.clone()).map_err(text))?
            } else {
                let calls = Batch { first_call: 0, calls: self.shape.steps };
                received(self.comm, &self.shape, &self.data, &bench.ring, calls).map_err(text)?
            };
            wrong[0] += checked.bytes_wrong;
        }
        self.comm.sum_u64(&mut wrong).map_err(text)?;
        match wrong[0] {
            0 => Ok(()),
            wrong => Err(format!("{wrong} bytes were not those that the loops should have moved")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_calls_at_own_places_are_compared() {
        let names: Vec<_> = compared().map(|(benchmark, _)| benchmark.name).collect();
        let of =
            |group: &str| ["Write_Indv", "Read_Indv", "Write_Expl", "Read_Expl"].map(|end| format!("{group}_{end}"));
        assert_eq!(names, ["S", "P", "C"].map(of).concat());
    }
}
