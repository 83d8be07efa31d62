//! BT-IO of the NAS Parallel Benchmarks, subtype `full`: collective writes of a block-tridiagonal solution through file views.
//!
//! The grid of N^3 points with five doubles each is divided into cells; of p * p ranks each has p cells on a diagonal, so that its data are many short
//! pieces of the file. Every fifth time step is appended to the file, and at the end all are read back.

use beff_trace::layout::MAX_SEGMENTS;

use super::profile_text::{CallList, ProfileText};

/// A problem size of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 12 points in each dimension.
    S,
    /// 24.
    W,
    /// 64.
    A,
    /// 102.
    B,
    /// 162.
    C,
    /// 408.
    D,
}

/// Steps from one write to the next.
const WRITE_INTERVAL: u64 = 5;
/// Layers of ghost cells at each face of a cell in memory.
const GHOSTS: u64 = 2;
/// A cell with fewer points in a dimension is refused by the benchmark.
const MIN_CELL_POINTS: u64 = 3;
/// Entries of one kind that a profile may have.
const MAX_TYPES: u64 = 1 << 20;

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::W => "W",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }

    /// Points in each dimension.
    fn points(self) -> u64 {
        match self {
            Self::S => 12,
            Self::W => 24,
            Self::A => 64,
            Self::B => 102,
            Self::C => 162,
            Self::D => 408,
        }
    }

    fn time_steps(self) -> u64 {
        match self {
            Self::S => 60,
            Self::D => 250,
            _ => 200,
        }
    }
}

/// First point and number of points of cell `index` of `cells` in a dimension: the first cells have one more if they are not equal.
fn cell(points: u64, cells: u64, index: u64) -> (u64, u64) {
    let (size, excess) = (points / cells, points % cells);
    (index * size + index.min(excess), size + u64::from(index < excess))
}

/// Coordinates of the cells of a rank, from the bottom layer upwards.
fn cells_of(rank: u64, cells: u64) -> impl Iterator<Item = [u64; 3]> {
    let (i, j) = (rank % cells, rank / cells);
    (0..cells).map(move |layer| [(i + layer) % cells, (j + cells - layer) % cells, layer])
}

/// Contiguous pieces of all datatypes: of the cells in memory and in the file, and again of the structs of both.
fn pieces(cells: u64, points: u64) -> u64 {
    4 * cells * points * points
}

/// The profile.
///
/// # Errors
/// Numbers of ranks with which the benchmark does not run, as cause and next step.
pub(super) fn profile(ranks: u64, class: Class, command: &str) -> Result<String, [String; 2]> {
    let cells = ranks.isqrt();
    let points = class.points();
    if cells * cells != ranks {
        let next = format!("Give a square number, e.g. {} or {}.", cells * cells, (cells + 1) * (cells + 1));
        return Err([format!("BT-IO divides its grid among a square number of ranks, not {ranks}"), next]);
    }
    if points / cells < MIN_CELL_POINTS {
        let most = (points / MIN_CELL_POINTS) * (points / MIN_CELL_POINTS);
        let cause = format!("class {} has {points} points in a dimension, too few for {cells} cells", class.name());
        return Err([cause, format!("Give at most {most} ranks, or a larger class.")]);
    }
    if ranks * (2 * cells + 2) + 2 > MAX_TYPES {
        return Err([
            format!("{ranks} ranks have more than {MAX_TYPES} datatypes, the limit of a profile"),
            "Give fewer ranks.".into(),
        ]);
    }
    let most = (1..=cells).rev().find(|cells| pieces(*cells, points) <= 2 * MAX_SEGMENTS as u64).unwrap_or(1);
    if most < cells {
        let cause =
            format!("class {} on {ranks} ranks has more contiguous pieces than a profile may have", class.name());
        return Err([cause, format!("Give at most {} ranks, or a smaller class.", most * most)]);
    }
    let dumps = class.time_steps() / WRITE_INTERVAL;
    let mut text = ProfileText::new(ranks, &comments(class, ranks, dumps, command));
    let double = text.datatype("DOUBLE");
    text.comment("the five values of a point");
    let element = text.datatype(&format!("contiguous, count=5, of={double}"));
    let types: Vec<[u64; 2]> = (0..ranks).map(|rank| rank_types(&mut text, (rank, cells, points), element)).collect();
    text.comment("It did not exist before: the benchmark removes an old one.");
    let file = text.file("btio.full.out");
    for (rank, [memory, view]) in (0..ranks).zip(types) {
        let own_points: u64 =
            cells_of(rank, cells).map(|at| at.map(|c| cell(points, cells, c).1).iter().product::<u64>()).sum();
        let mut calls = CallList::default();
        for (handle, mode, verb) in [(1, "create;rdwr", "write"), (2, "rdonly", "read")] {
            calls.push(format!("File_open, handle={handle}, comm=0, file={file}, mode={mode}"));
            calls.push(format!("File_set_view, handle={handle}, offset=0, etype={element}, filetype={view}"));
            for dump in 0..dumps {
                let offset = dump * own_points;
                calls.push(format!("File_{verb}_at_all, handle={handle}, offset={offset}, count=1, type={memory}"));
            }
            calls.push(format!("File_close, handle={handle}"));
        }
        text.calls(rank, &calls);
    }
    Ok(text.finish())
}

fn comments(class: Class, ranks: u64, dumps: u64, command: &str) -> Vec<String> {
    let points = class.points();
    let bytes = points.pow(3) * 40;
    vec![
        format!("BT-IO, class {}, subtype full, {ranks} ranks, made by: {command}", class.name()),
        "Source: NAS Parallel Benchmarks 3.3 (NPB3.3-MPI, BT/full_mpiio.f; NAS technical report NAS-03-002).".into(),
        format!("A grid of {points}^3 points with five doubles each, {bytes} bytes, is written {dumps} times, one after the other,"),
        "and read back. Computation and messages between the time steps are omitted.".into(),
    ]
}

/// Datatypes of a rank in memory, where cells have ghost layers, and in the file.
fn rank_types(text: &mut ProfileText, (rank, cells, points): (u64, u64, u64), element: u64) -> [u64; 2] {
    text.comment(&format!("rank {rank}: its cells in memory and in the file"));
    let largest = points / cells + 1 + 2 * GHOSTS;
    let (mut in_memory, mut in_file) = (Vec::new(), Vec::new());
    for (number, at) in cells_of(rank, cells).enumerate() {
        let parts = at.map(|c| cell(points, cells, c));
        let list = |numbers: [u64; 3]| numbers.map(|n| n.to_string()).join(";");
        let (starts, sizes) = (list(parts.map(|(first, _)| first)), list(parts.map(|(_, size)| size)));
        in_memory.push(text.datatype(&format!(
            "subarray, sizes={};{cells}, subsizes={sizes};1, starts={};{number}, order=fortran, of={element}",
            list([largest; 3]),
            list([GHOSTS; 3])
        )));
        in_file.push(text.datatype(&format!(
            "subarray, sizes={}, subsizes={sizes}, starts={starts}, order=fortran, of={element}",
            list([points; 3])
        )));
    }
    [in_memory, in_file].map(|parts| {
        let list = |number: &dyn Fn(u64) -> u64| {
            parts.iter().map(|part| number(*part).to_string()).collect::<Vec<_>>().join(";")
        };
        let (blocks, displacements, of) = (list(&|_| 1), list(&|_| 0), list(&|part| part));
        text.datatype(&format!("struct, blocks={blocks}, displacements_bytes={displacements}, of={of}"))
    })
}
