//! Text of the warnings that every benchmark knows: the cause, with figures, and the next step.

use super::binding;
use super::brief::Brief;
use super::text::{count, percent};
use crate::frame::records::{Access, Warning};

/// New memory that costs so many times as much as memory that was just used spoils what goes through the page cache.
const SLOW_TOUCH: f64 = 2.0;

/// Cause and next step, each a few plain sentences.
#[must_use]
pub fn text(warning: &Warning) -> (String, String) {
    (cause(warning), next_step(warning))
}

fn cause(warning: &Warning) -> String {
    match warning {
        Warning::Oversubscribed { hosts, host, ranks, cores } => format!(
            "{} on {} of host {host}{}: they wait for each other's turn inside the clock.",
            count(*ranks, "rank"),
            count(*cores, "core"),
            others(*hosts, "host")
        ),
        Warning::NotBound { ranks, rank, cpus, host, state } => {
            let which = if *ranks == 1 { String::new() } else { format!(" ({} in all)", count(*ranks, "rank")) };
            format!(
                "Rank {rank}{which} is not bound to a core: it may run on CPUs {cpus} of host {host}, and the kernel may move \
                 it inside the clock{}.",
                state.as_ref().map_or_else(String::new, binding::because)
            )
        }
        Warning::MachineShared { noun, marked, of, steal_share, others_share, waited_share, worst, worst_share } => {
            let [steal, others, waited] = [*steal_share, *others_share, *waited_share].map(percent);
            format!(
                "Others had more than 5 % of the machine during {marked} of {}, most ({}) during {worst}. Over all of them the \
                 hypervisor took {steal} of the ranks' CPUs (steal), other programs used {others}, and ranks that were ready \
                 waited {waited} of the time for a CPU.",
                count(*of, noun),
                percent(*worst_share)
            )
        }
        Warning::HintNotGranted { backend, hints, key, requested, granted } => {
            let granted = granted.as_ref().map_or("the library does not list it".into(), |v| format!("{v} is in force"));
            format!("{backend}: hint {key} = {requested} was asked for, {granted}{}.", others(*hints, "hint"))
        }
        Warning::AllCachesDropped { backend } => format!(
            "{backend}: pages of the files stayed in the page cache after they were told to leave, so the cached pages of \
             all files of the host were dropped (vm.drop_caches): other programs there had to read theirs again."
        ),
        Warning::MemoryFileSystem { fs_type } => format!(
            "The files are on {fs_type}, a file system in memory: these numbers are memory bandwidth, not storage."
        ),
        Warning::MemoryTakenBack { hosts, host, by, first_touch_ns, touch_again_ns } => format!(
            "Host {host}{} is a virtual machine, and its own host takes free memory back ({by}). Memory that the page cache uses \
             again has to be given once more, inside the clock. A page of new memory cost {:.1} us at the start, and {:.1} us when \
             as much was taken again at once; larger amounts can cost more.",
            others(*hosts, "host"),
            first_touch_ns / 1e3,
            touch_again_ns / 1e3
        ),
        Warning::StorageChanged { access, start_mb_per_second, end_mb_per_second, ratio, interval } => format!(
            "The storage changed under the run: a short probe of rank 0 alone, past the page cache, saw {} {start_mb_per_second:.0} MB/s before it and \
             {end_mb_per_second:.0} MB/s after it, {ratio:.2} times as much [{:.2}, {:.2}].",
            match access {
                Access::Read => "reads of",
                _ => "rewrites of",
            },
            interval[0],
            interval[1]
        ),
        Warning::FilesLeft { path, reason } => {
            format!("The run directory {path} could not be removed: {}.", clause(reason))
        }
        Warning::JournalBroken { path, reason } => {
            format!("The journal {path} could not be written to its end: {}. These results come from memory.", clause(reason))
        }
        Warning::JournalTorn { line, bytes } => format!(
            "The journal ends inside line {line} ({bytes} bytes of it are there): the run was killed while it wrote."
        ),
    }
}

/// The same in a few words, with its place among others: below 10 what spoils all numbers.
#[must_use]
pub fn brief(warning: &Warning) -> Brief {
    match warning {
        Warning::MemoryFileSystem { fs_type } => {
            Brief::new(1, format!("the files are on {fs_type}, in memory: these are no numbers of storage"))
        }
        Warning::Oversubscribed { ranks, cores, host, .. } => Brief::new(
            2,
            format!("{} on {} of {host}: they wait for each other", count(*ranks, "rank"), count(*cores, "core")),
        ),
        Warning::NotBound { ranks, .. } => Brief::new(30, format!("{} not bound to a core", count(*ranks, "rank"))),
        Warning::JournalBroken { path, .. } => Brief::new(3, format!("the journal {path} is not whole")),
        Warning::JournalTorn { .. } => {
            Brief::new(4, "the journal ends inside a line: the run was killed while it wrote")
        }
        Warning::MachineShared { noun, marked, of, worst_share, .. } => Brief::new(
            40,
            format!(
                "the machine was shared during {marked} of {}: others had up to {} of it",
                count(*of, noun),
                percent(*worst_share)
            ),
        ),
        Warning::StorageChanged { access, ratio, .. } => Brief::new(
            5,
            format!(
                "the storage changed under the run: {} at its end {ratio:.2} times as fast as at its start",
                access.name()
            ),
        ),
        Warning::MemoryTakenBack { first_touch_ns, touch_again_ns, .. } => {
            let is_slow = *first_touch_ns > SLOW_TOUCH * touch_again_ns;
            Brief::new(
                if is_slow { 6 } else { 43 },
                "the page cache uses memory that a hypervisor takes back: speeds through it go up and down",
            )
        }
        Warning::HintNotGranted { backend, key, requested, .. } => {
            Brief::new(41, format!("the library did not take the hint {key} = {requested}")).about(backend)
        }
        Warning::FilesLeft { path, .. } => Brief::new(42, format!("files are left: look into {path}")),
        Warning::AllCachesDropped { backend } => {
            Brief::new(70, "the caches of the whole host were dropped, which other programs feel").about(backend)
        }
    }
}

/// Behind the worst case of `all`: how many more there are.
pub(crate) fn others(all: u64, noun: &str) -> String {
    match all {
        0 | 1 => String::new(),
        more => format!(" (and {} more)", count(more - 1, noun)),
    }
}

/// A reason as part of a sentence that brings its own full stop.
pub(crate) fn clause(reason: &str) -> &str {
    reason.trim_end().trim_end_matches('.')
}

fn next_step(warning: &Warning) -> String {
    let fixed = match warning {
        Warning::Oversubscribed { .. } => "Start no more ranks per host than it has cores, or use more hosts.",
        Warning::NotBound { state, .. } => binding::remedy(state.as_ref()),
        Warning::MachineShared { .. } => {
            "Repeat it on hosts that nobody else uses. Numbers with mark b are those of a smaller machine."
        }
        Warning::HintNotGranted { .. } => "Check its spelling, and whether this MPI library and file system know it.",
        Warning::AllCachesDropped { .. } => {
            "On a machine that others use, take --cache keep or --direct required, or do not run as root."
        }
        Warning::MemoryFileSystem { .. } => "Give --path a directory on the storage that is to be measured.",
        Warning::MemoryTakenBack { .. } => {
            "Take --direct required with posix or uring, compare several runs, or ask for a machine without free page reporting."
        }
        Warning::StorageChanged { .. } => {
            "Numbers of its begin and its end do not belong together. Repeat it when nobody else uses the storage, and compare several runs."
        }
        Warning::FilesLeft { path, .. } => return format!("Look into {path}, and remove by hand what nobody needs."),
        Warning::JournalBroken { .. } => {
            "Free space where --out writes; use the .json of this run, not its journal, which ends early."
        }
        Warning::JournalTorn { .. } => {
            "The record of that line is lost, all earlier ones are kept. Repeat the run for a complete result."
        }
    };
    fixed.to_owned()
}
