//! Order, bytes and origins of a workload written by hand, by the rules of recordings: its times determine the order.

use std::io;
use std::path::Path;
use std::vec;

use super::files::TrackingLimits;
use super::rank::CallSource;
use super::spool::Spool;
use super::sweep::Sweep;
use super::MergeOptions;
use crate::call::Call;
use crate::layout::TypeLayouts;
use crate::text::{read_all_ranks, ProfileWriter, TextError};
use crate::workload::ResultCompletion;

/// Maximum number of calls of a workload whose order is derived: they are held in memory.
pub const MAX_DERIVED_CALLS: usize = 1 << 20;

/// Why the order of a workload cannot be derived.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// An error in the text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A temporary file cannot be written.
    #[error("the order of the workload cannot be derived, because a temporary file cannot be written: {0}")]
    Io(#[from] io::Error),
}

struct GivenCalls(vec::IntoIter<Call>);

impl CallSource for GivenCalls {
    fn next(&mut self) -> Option<Box<Call>> {
        self.0.next().map(Box::new)
    }

    fn is_truncated(&self) -> bool {
        false
    }
}

/// Returns a workload written by hand as text with `bytes`, `done`, `after` and `from`, which are kept where it has them. None for a
/// recording, which has them all, and for more than [`MAX_DERIVED_CALLS`] calls.
///
/// # Errors
/// The first error in the text, or a temporary file that cannot be written.
pub fn derive_order(profile: &Path) -> Result<Option<Vec<u8>>, WorkloadError> {
    let (mut head, calls) = read_all_ranks(profile)?;
    if !head.is_handwritten() {
        return Ok(None);
    }
    let (layouts, _) = TypeLayouts::for_library_lenient(&head.types, &head.library);
    let mut ranks: Vec<Vec<Call>> = vec![Vec::new(); head.processes.len()];
    let mut completion = (0, ResultCompletion::new(&layouts, false));
    for (number, call) in calls.enumerate() {
        let (rank, mut call) = call?;
        if number == MAX_DERIVED_CALLS {
            return Ok(None);
        }
        if completion.0 != rank {
            completion = (rank, ResultCompletion::new(&layouts, false));
        }
        completion.1.complete(&mut call);
        ranks[rank as usize].push(call);
    }
    for (process, calls) in head.processes.iter_mut().zip(&ranks) {
        process.calls = calls.len() as u64;
    }
    let options = MergeOptions::default();
    let limits =
        TrackingLimits { history_ranges: options.max_history_ranges, written_ranges: options.max_written_ranges };
    let sizes = head.files.iter().map(|file| Some(file.size_bytes.unwrap_or(0))).collect();
    let sources = (0_u32..).zip(ranks).map(|(rank, calls)| (rank, GivenCalls(calls.into_iter()))).collect();
    let mut spool = Spool::new(&std::env::temp_dir(), head.processes.len())?;
    let mut sweep = Sweep::with_files((sizes, &head.comms), &layouts, sources, &mut spool, limits);
    sweep.is_handwritten = true;
    sweep.run()?;
    let mut writer = ProfileWriter::new(Vec::new(), false);
    writer.head(&head)?;
    for index in 0..head.processes.len() {
        writer.begin_calls(index as u32, spool.calls(index))?;
        writer.copy_calls(&mut spool.lines(index)?)?;
    }
    Ok(Some(writer.finish()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::read_rank;
    use crate::{DataOrigin, OriginRange};

    /// Calls of all ranks of a derived workload.
    fn derived(calls: &str) -> Vec<Vec<Call>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("workload.csv");
        let head =
            "beff-raw profile,1\nranks, 2\ncomm, 0, 0\ncomm, 1, 1\ntype, 0, INT\ntype, 1, BYTE\nfile, 0, out.dat\n";
        std::fs::write(&path, format!("{head}{calls}")).unwrap();
        let text = derive_order(&path).unwrap().unwrap();
        std::fs::write(&path, text).unwrap();
        (0..2).map(|rank| read_rank(&path, rank).unwrap().1.map(|call| call.unwrap()).collect()).collect()
    }

    fn from(bytes: u64, rank: u32, begin_ns: u64) -> OriginRange {
        OriginRange { bytes, origin: DataOrigin::Call { rank, begin_ns, memory: 0 } }
    }

    #[test]
    fn every_form_of_access_has_its_bytes_and_reads_their_origin() {
        let ranks = derived(
            "calls, 0, 13
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
20, 30, File_write_at_all, handle=1, offset=0, count=4, type=0
40, 50, File_iwrite_at, handle=1, offset=16, count=2, type=0, request=1
60, 70, Wait, requests=1
80, 90, File_write_at_all_begin, handle=1, offset=24, count=1, type=0
100, 110, File_write_at_all_end, handle=1
120, 130, File_iread_at, handle=1, offset=16, count=2, type=0, request=2
140, 150, Waitall, requests=2
152, 154, File_read_at_all_begin, handle=1, offset=0, count=1, type=0
156, 158, File_read_at_all_end, handle=1
160, 170, File_read_at, handle=1, offset=0, count=7, type=0
180, 190, File_read_at, handle=1, offset=24, count=2, type=0
200, 210, File_close, handle=1

calls, 1, 3
0, 10, File_open, handle=1, comm=1, file=0, mode=create;rdwr
122, 132, File_read_at, handle=1, offset=0, count=16, type=1
200, 210, File_close, handle=1
",
        );
        let bytes: Vec<_> = ranks[0].iter().map(|call| call.bytes).collect();
        assert_eq!(
            bytes,
            [None, Some(16), None, None, None, Some(4), None, None, None, Some(4), Some(28), None, None],
            "the last read ends where the file does"
        );
        let done = |call: &Call| call.completions.iter().map(|c| (c.request, c.bytes)).collect::<Vec<_>>();
        assert_eq!((done(&ranks[0][3]), done(&ranks[0][7])), (vec![(1, Some(8))], vec![(2, Some(8))]));
        assert_eq!(ranks[0][6].from, [from(8, 0, 40)]);
        assert_eq!(ranks[0][10].from, [from(16, 0, 20), from(8, 0, 40), from(4, 0, 80)]);
        assert_eq!((&ranks[1][1].from, ranks[1][1].bytes), (&vec![from(16, 0, 20)], Some(16)));
        assert_eq!(ranks[1][1].after.len(), 1, "its data is written by another rank");
    }

    #[test]
    fn what_is_given_stays() {
        let ranks = derived(
            "calls, 0, 4
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
20, 30, File_write_at, handle=1, offset=0, count=4, type=1, bytes=3
40, 50, File_read_at, handle=1, offset=0, count=4, type=1, bytes=2, from=2@?
60, 70, File_close, handle=1, met=5

calls, 1, 2
0, 10, File_open, handle=1, comm=1, file=0, mode=create;rdwr
60, 70, File_close, handle=1
",
        );
        assert_eq!((ranks[0][1].bytes, ranks[0][2].bytes), (Some(3), Some(2)));
        assert_eq!(ranks[0][2].from, [OriginRange { bytes: 2, origin: DataOrigin::Unknown }]);
        assert_eq!((ranks[0][3].since_barrier_ns, ranks[1][1].since_barrier_ns), (Some(5), None));
    }

    #[test]
    fn a_recording_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.csv");
        std::fs::write(&path, "beff-raw profile,1\ncommand, app\nranks, 1\ncalls, 0, 0\n").unwrap();
        assert!(derive_order(&path).unwrap().is_none());
    }

    #[test]
    fn content_after_a_failed_or_short_write_is_unknown() {
        let origins = |write: &str| {
            let ranks = derived(&format!(
                "calls, 0, 5
0, 10, File_open, handle=1, comm=0, file=0, mode=create;rdwr
20, 30, File_write_at, handle=1, offset=0, count=100, type=1
40, 50, {write}
60, 70, File_read_at, handle=1, offset=0, count=100, type=1
80, 90, File_close, handle=1

calls, 1, 2
0, 10, File_open, handle=1, comm=1, file=0, mode=create;rdwr
60, 70, File_close, handle=1
"
            ));
            ranks[0][3].from.iter().map(|part| (part.bytes, part.origin != DataOrigin::Unknown)).collect::<Vec<_>>()
        };
        let around = [(40, true), (20, false), (40, true)];
        assert_eq!(origins("File_write_at, handle=1, offset=40, count=20, type=1, error=MPI_ERR_NO_SPACE"), around);
        let short = origins("File_write_at, handle=1, offset=30, count=30, type=1, bytes=10");
        assert_eq!(short, [(30, true), (10, true), (20, false), (40, true)]);
    }
}
