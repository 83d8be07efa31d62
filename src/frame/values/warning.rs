//! Warnings that follow from what every benchmark records, and what warnings of one kind are told by.

use crate::frame::records::{kinds, HostRecord, Kind, Machine, StorageRecord, TakenBack, Warning};
use crate::frame::system::storage::is_in_memory;
use crate::frame::units::{count, format_seconds};
use crate::frame::words::{clause, others};

/// Real time beyond this multiple of the schedule or of the time allowed is an overrun.
const OVERRUN: f64 = 1.1;

/// New memory that costs so many times as much as memory that was just used spoils what goes through the page cache...
const SLOW_TOUCH: f64 = 2.0;

/// ...and is not that important otherwise.
const RANK_OF_QUICK_TOUCH: u8 = 43;

pub(crate) fn is_overrun(real_seconds: f64, allowed_seconds: f64) -> bool {
    real_seconds > OVERRUN * allowed_seconds
}

/// What the run recorded, then what follows from the records: one of a kind for each backend, and each with its words.
pub(crate) fn all(recorded: &[Warning], derived: Vec<Warning>, own: &[Kind]) -> Vec<Warning> {
    for warning in &derived {
        let misfits = kinds::find(own, &warning.kind).map(|kind| kind.misfits(warning));
        debug_assert_eq!(misfits, Some(Vec::new()), "{warning:?}");
    }
    let mut all: Vec<Warning> = Vec::new();
    for warning in recorded.iter().cloned().chain(derived) {
        match all.iter_mut().find(|known| known.kind == warning.kind && known.backend == warning.backend) {
            Some(known) if known.cause.is_empty() => *known = warning,
            Some(_) => {}
            None => all.push(warning),
        }
    }
    all.into_iter().map(|warning| in_words(warning, own)).collect()
}

/// Older versions recorded no words.
fn in_words(warning: Warning, own: &[Kind]) -> Warning {
    if !warning.cause.is_empty() {
        return warning;
    }
    let bare = warning.bare();
    match kinds::find(own, &warning.kind) {
        Some(kind) => {
            let cause = format!("{} ({}).", clause(kind.meaning.trim()), clause(&bare));
            warning.told(bare, cause).next(kind.next_step)
        }
        None => {
            let cause = format!("{}.", clause(&bare));
            warning.told(bare, cause).next("This version does not know it.")
        }
    }
}

/// How many there are, and the first of them; None if there is none to warn of.
pub(crate) fn number_and_first<T>(items: impl IntoIterator<Item = T>) -> Option<(u64, T)> {
    let mut items = items.into_iter();
    let first = items.next()?;
    Some((1 + items.count() as u64, first))
}

/// The first of those with the largest value.
pub(crate) fn largest<'a, T>(items: &[&'a T], value: impl Fn(&T) -> f64) -> Option<&'a T> {
    items.iter().copied().reduce(|best, item| if value(item) > value(best) { item } else { best })
}

/// What the hosts, and the file system of benchmarks that have one, must be warned of.
pub(crate) fn of_machine(machine: &Machine, storage: Option<&StorageRecord>) -> impl Iterator<Item = Warning> {
    oversubscribed(machine).into_iter().chain(storage.and_then(memory_file_system))
}

fn oversubscribed(machine: &Machine) -> Option<Warning> {
    let crowded: Vec<&HostRecord> = machine.hosts.iter().filter(|h| h.ranks > h.cores).collect();
    let worst = largest(&crowded, |h| h.ranks as f64 / h.cores.max(1) as f64)?;
    let (hosts, host) = (crowded.len() as u64, &worst.name);
    let (ranks, cores) = (count(worst.ranks, "rank"), count(worst.cores, "core"));
    let warning = kinds::OVERSUBSCRIBED.warning().figure("hosts", hosts).figure("host", host);
    Some(warning.figure("ranks", worst.ranks).figure("cores", worst.cores).told(
        format!("{ranks} on {cores} of {host}: they wait for each other"),
        format!(
            "{ranks} on {cores} of host {host}{}: they wait for each other's turn inside the clock.",
            others(hosts, "host")
        ),
    ))
}

/// Where data goes through the page cache.
pub(crate) fn memory_taken_back(machine: &Machine) -> Option<Warning> {
    let taken: Vec<(&HostRecord, &TakenBack)> =
        machine.hosts.iter().filter_map(|h| Some((h, h.memory_taken_back.as_ref()?))).collect();
    let (host, worst) = largest(&taken.iter().collect::<Vec<_>>(), |(_, t)| t.ratio())?;
    let (hosts, host) = (taken.len() as u64, &host.name);
    let TakenBack { by, first_touch_ns, touch_again_ns, .. } = worst;
    let is_slow = *first_touch_ns > SLOW_TOUCH * touch_again_ns;
    let warning = kinds::MEMORY_TAKEN_BACK.warning().figure("hosts", hosts).figure("host", host).figure("by", by);
    let warning = warning.figure("first_touch_ns", first_touch_ns).figure("touch_again_ns", touch_again_ns).told(
        "the page cache uses memory that a hypervisor takes back: speeds through it go up and down",
        format!(
            "Host {host}{} is a virtual machine, and its own host takes free memory back ({by}). Memory that the page cache uses \
             again has to be given once more, inside the clock. A page of new memory cost {:.1} us at the start, and {:.1} us when \
             as much was taken again at once; larger amounts can cost more.",
            others(hosts, "host"),
            first_touch_ns / 1e3,
            touch_again_ns / 1e3
        ),
    );
    Some(Warning { rank: (!is_slow).then_some(RANK_OF_QUICK_TOUCH), ..warning })
}

fn memory_file_system(storage: &StorageRecord) -> Option<Warning> {
    let fs_type = &storage.fs_type;
    is_in_memory(fs_type).then(|| {
        kinds::MEMORY_FILE_SYSTEM.warning().figure("fs_type", fs_type).told(
            format!("the files are on {fs_type}, in memory: these are no numbers of storage"),
            format!(
                "The files are on {fs_type}, a file system in memory: these numbers are memory bandwidth, not storage."
            ),
        )
    })
}

/// Some of what was planned was refused, with the first reason: `noun`s, which are counted in `figure`.
pub(crate) fn not_run<'a>(
    kind: &Kind,
    backend: &str,
    (noun, figure): (&str, &str),
    reasons: impl Iterator<Item = &'a str>,
) -> Option<Warning> {
    let (number, reason) = number_and_first(reasons)?;
    let text = format!("{} not run: {}", count(number, noun), clause(reason));
    let cause = format!("{backend}: {text}.");
    Some(kind.warning().of(backend).figure(figure, number).figure("reason", reason).told(text.clone(), cause))
}

/// The run took much longer than it may; what it took, in words, becomes the cause.
pub(crate) fn overrun(
    kind: &Kind,
    real_seconds: f64,
    (limit_seconds, expected_seconds): (f64, f64),
    cause: impl Fn(&str) -> String,
) -> Option<Warning> {
    if !is_overrun(real_seconds, limit_seconds) {
        return None;
    }
    let [real, limit] = [real_seconds, limit_seconds].map(format_seconds);
    let warning = kind.warning().figure("limit_seconds", limit_seconds).figure("expected_seconds", expected_seconds);
    let summary = format!("took {real}, {limit} were allowed");
    Some(warning.figure("real_seconds", real_seconds).told(summary, cause(&real)))
}

/// For tests: all its words.
#[cfg(test)]
pub(crate) fn shown(warning: &Warning) -> String {
    format!("{}\n  {}\n  -> {}\n", warning.summary, warning.cause, warning.next_step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture::{host, machine};

    #[test]
    fn the_host_that_gives_memory_back_slowest_is_named() {
        let taken = |first_touch_ns: f64| {
            Some(TakenBack { by: "balloon".into(), touched_bytes: 1, first_touch_ns, touch_again_ns: 100.0 })
        };
        let mut hosts = vec![host("a", 1), host("b", 1), host("c", 1)];
        assert_eq!(memory_taken_back(&machine(hosts.clone(), &[])), None);
        (hosts[0].memory_taken_back, hosts[2].memory_taken_back) = (taken(100.0), taken(600.0));
        let figures = |hosts: &[HostRecord]| {
            let warning = memory_taken_back(&machine(hosts.to_vec(), &[])).unwrap();
            (warning.number("hosts"), warning.text("host").to_owned(), warning.number("first_touch_ns"), warning.rank)
        };
        assert_eq!(figures(&hosts), (Some(2.0), "c".into(), Some(600.0), None));
        hosts[2].memory_taken_back = taken(200.0);
        assert_eq!(figures(&hosts), (Some(2.0), "c".into(), Some(200.0), Some(43)), "that is not slow");
    }

    #[test]
    fn there_is_one_of_a_kind_for_each_backend_and_it_has_words() {
        let old = |backend: &str| {
            let text = format!(r#"{{"kind":"hint_not_granted","backend":"{backend}","key":"a"}}"#);
            serde_json::from_str::<Warning>(&text).unwrap()
        };
        let new = |hints: u64| {
            let hint = kinds::HINT_NOT_GRANTED.warning().of("mpiio").figure("hints", hints).figure("key", "a");
            hint.figure("requested", "1").figure("granted", "2").told("not taken", "It was not taken.")
        };
        let later = Warning { kind: "later_kind".into(), ..new(3) };
        let found = all(&[old("mpiio"), old("mpiio"), old("posix"), later.clone()], vec![new(1), new(2)], &[]);
        let words = "hint not granted: backend posix, key a";
        let kind = kinds::HINT_NOT_GRANTED;
        let cause = format!("{} ({words}).", clause(kind.meaning.trim()));
        let posix = old("posix").told(words, cause).next(kind.next_step);
        assert_eq!(found, [new(1), posix, later], "what has words comes before what has none");
    }
}
