//! Order, bytes and origins of a workload written by hand, by the rules of recordings: its times determine the order.

use std::collections::HashMap;
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
use crate::{AccessForm, Function, ProfileHead, Role, Whence};

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

/// Returns a workload written by hand as text with `bytes`, `done`, `after` and `from`, which are kept where it has them. The same for a
/// recording with unknown positions at the end of a file. None for other recordings, and for more than [`MAX_DERIVED_CALLS`] calls.
///
/// # Errors
/// The first error in the text, or a temporary file that cannot be written.
pub fn derive_order(profile: &Path) -> Result<Option<Vec<u8>>, WorkloadError> {
    let (mut head, calls) = read_all_ranks(profile)?;
    if !head.is_handwritten() && !lacks_positions(profile)? {
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
        if head.is_handwritten() {
            completion.1.complete(&mut call);
        }
        ranks[rank as usize].push(call);
    }
    // Real calls need not: some collective calls do not synchronize.
    if head.is_handwritten() && !collective_calls_overlap(&head, &ranks) {
        return write_calls(&mut head, ranks).map(Some);
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

/// Writes a profile with these calls as text.
fn write_calls(head: &mut ProfileHead, ranks: Vec<Vec<Call>>) -> Result<Vec<u8>, WorkloadError> {
    for (process, calls) in head.processes.iter_mut().zip(&ranks) {
        process.calls = calls.len() as u64;
    }
    let mut writer = ProfileWriter::new(Vec::new(), false);
    writer.head(head)?;
    for (rank, calls) in (0_u32..).zip(ranks) {
        writer.begin_calls(rank, calls.len() as u64)?;
        calls.iter().try_for_each(|call| writer.call(call))?;
    }
    Ok(writer.finish()?)
}

/// True if the calls of all ranks in each blocking collective call overlap in time. Otherwise invented times do not tell the order.
fn collective_calls_overlap(head: &ProfileHead, ranks: &[Vec<Call>]) -> bool {
    let mut instances: HashMap<(Option<u32>, u32, u64), (u64, u64)> = HashMap::new();
    for calls in ranks {
        let (mut opened, mut counts) = (HashMap::new(), HashMap::new());
        for call in calls.iter().filter(|call| call.function.is_collective() && call.error.is_none()) {
            if let (Function::Open, Some(handle), Some(comm)) = (call.function, call.handle, call.comm) {
                opened.insert(handle, (call.file, comm));
            }
            let is_pending = matches!(call.function.role(), Role::Data { form, .. } if form != AccessForm::Blocking);
            let Some((file, comm)) = call.handle.and_then(|handle| opened.get(&handle)).filter(|_| !is_pending) else {
                continue;
            };
            let number: &mut u64 = counts.entry((*file, *comm)).or_default();
            let times = instances.entry((*file, *comm, *number)).or_insert((0, u64::MAX));
            *times = (times.0.max(call.begin_ns), times.1.min(call.end_ns));
            *number += 1;
        }
    }
    let is_alone = |comm: u32| head.comms.get(comm as usize).is_some_and(|ranks| ranks.len() == 1);
    instances.iter().all(|((_, comm, _), (last_begin, first_end))| last_begin <= first_end || is_alone(*comm))
}

/// True if a seek or an opening to append does not tell its position, as in recordings of earlier releases.
fn lacks_positions(profile: &Path) -> Result<bool, TextError> {
    let (_, calls) = read_all_ranks(profile)?;
    let mut lacks = false;
    for (number, call) in calls.enumerate() {
        let (_, call) = call?;
        let ends = match call.function {
            Function::Seek => call.whence == Some(Whence::End),
            Function::Open => call.amode.is_some_and(|amode| amode.has("append")),
            _ => false,
        };
        lacks |= ends && call.number.is_none() && call.error.is_none();
        if number == MAX_DERIVED_CALLS {
            return Ok(false);
        }
    }
    Ok(lacks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::read_rank;
    use crate::{DataOrigin, OriginRange};

    /// Calls of all ranks of a derived workload.
    fn derived(calls: &str) -> Vec<Vec<Call>> {
        derived_with("", calls)
    }

    fn derived_with(more: &str, calls: &str) -> Vec<Vec<Call>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("workload.csv");
        let head =
            "beff-raw profile,1\nranks, 2\ncomm, 0, 0\ncomm, 1, 1\ntype, 0, INT\ntype, 1, BYTE\nfile, 0, out.dat\n";
        std::fs::write(&path, format!("{head}{more}{calls}")).unwrap();
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
140, 150, Waitsome, requests=2
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
        let head = "beff-raw profile,1\ncommand, app\nranks, 1\ncomm, 0, 0\ntype, 0, BYTE\nfile, 0, a\n";
        std::fs::write(&path, format!("{head}calls, 0, 0\n")).unwrap();
        assert!(derive_order(&path).unwrap().is_none());
        // Unless it lacks the positions of seeks to the end.
        let calls = "calls, 0, 3
0, 1, File_open, handle=1, comm=0, file=0, mode=create;rdwr, number=-1
2, 3, File_write_at, handle=1, offset=0, count=7, type=0
4, 5, File_seek, handle=1, offset=-2, whence=end
";
        std::fs::write(&path, format!("{head}{calls}")).unwrap();
        std::fs::write(&path, derive_order(&path).unwrap().unwrap()).unwrap();
        let found: Vec<Call> = read_rank(&path, 0).unwrap().1.map(|call| call.unwrap()).collect();
        assert_eq!((found[1].bytes, found[2].number), (None, Some(5)), "its other results stay unknown");
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

    /// Parts of a collective write that overlap have no order, even if the call of one rank had ended before that of the other began.
    #[test]
    fn overlapping_parts_of_a_collective_write_are_unknown() {
        let rank = |rank: u64, write: u64| {
            format!(
                "calls, {rank}, 4
{rank}, 10, File_open, handle=1, comm=2, file=0, mode=create;rdwr
{write}, {}, File_write_all_begin, handle=1, count=10, type=1
{}, {}, File_write_all_end, handle=1
60, 70, File_read_at, handle=1, offset=0, count=10, type=1
",
                write + 1,
                write + 2,
                write + 3
            )
        };
        let ranks = derived_with("comm, 2, world\n", &format!("{}\n{}", rank(0, 20), rank(1, 30)));
        assert_eq!(ranks[0][3].from, [OriginRange { bytes: 10, origin: DataOrigin::Unknown }]);
        let alone = rank(1, 30).replace("count=10", "count=0");
        let ranks = derived_with("comm, 2, world\n", &format!("{}\n{alone}", rank(0, 20)));
        assert_eq!(ranks[0][3].from, [from(10, 0, 20)]);
    }

    /// Rank 1 opens the file when rank 0 has closed it: such times do not tell what a collective call saw.
    #[test]
    fn nothing_is_derived_from_times_that_cannot_be() {
        let rank = |rank: u64, at: u64| {
            format!(
                "calls, {rank}, 3
{at}0, {at}1, File_open, handle=1, comm=2, file=0, mode=create;rdwr
{at}2, {at}3, File_write_at_all, handle=1, offset=0, count=10, type=1
{at}4, {at}5, File_read_at_all, handle=1, offset=0, count=10, type=1
"
            )
        };
        let ranks = derived_with("comm, 2, world\n", &format!("{}\n{}", rank(0, 1), rank(1, 2)));
        let results = |calls: &[Call]| (calls[1].bytes, calls[2].bytes, calls[2].from.len(), calls[2].after.len());
        assert_eq!([results(&ranks[0]), results(&ranks[1])], [(Some(10), None, 0, 0); 2]);
    }
}
