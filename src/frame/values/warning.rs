//! Warnings derived from records common to all benchmarks, and helpers for their texts.

use crate::frame::records::{kinds, HostRecord, MachineRecord, MemoryBallooning, StorageRecord, Warning, WarningKind};
use crate::frame::system::storage::is_in_memory;
use crate::frame::units::{count, format_seconds};
use crate::frame::words::{and_more, clause};

/// Real time beyond this multiple of the scheduled or allowed time is an overrun.
const OVERRUN_FACTOR: f64 = 1.1;

/// Ratio of first to second touch above which memory ballooning affects all numbers through the page cache...
const SLOW_FIRST_TOUCH_RATIO: f64 = 2.0;

/// ...and rank of the warning otherwise.
const MINOR_BALLOONING_RANK: u8 = 43;

pub(crate) fn is_overrun(real_seconds: f64, allowed_seconds: f64) -> bool {
    real_seconds > OVERRUN_FACTOR * allowed_seconds
}

/// Merges recorded and derived warnings: one of a kind per backend, each with its text.
pub(crate) fn merge_warnings(recorded: &[Warning], derived: Vec<Warning>, own: &[WarningKind]) -> Vec<Warning> {
    for warning in &derived {
        let misfits = kinds::find_kind(own, &warning.kind).map(|kind| kind.mismatches(warning));
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
    all.into_iter().map(|warning| with_default_text(warning, own)).collect()
}

/// Adds default texts to warnings of older versions, which recorded none.
fn with_default_text(warning: Warning, own: &[WarningKind]) -> Warning {
    if !warning.cause.is_empty() {
        return warning;
    }
    let bare = warning.raw_text();
    match kinds::find_kind(own, &warning.kind) {
        Some(kind) => {
            let cause = format!("{} ({}).", clause(kind.meaning.trim()), clause(&bare));
            warning.with_text(bare, cause).with_next_step(kind.next_step)
        }
        None => {
            let cause = format!("{}.", clause(&bare));
            warning.with_text(bare, cause).with_next_step("This kind of warning is unknown to this version.")
        }
    }
}

/// Number of items and the first one; None if there are none.
pub(crate) fn count_and_first<T>(items: impl IntoIterator<Item = T>) -> Option<(u64, T)> {
    let mut items = items.into_iter();
    let first = items.next()?;
    Some((1 + items.count() as u64, first))
}

/// The item with the largest value, the first of several.
pub(crate) fn largest<'a, T>(items: &[&'a T], value: impl Fn(&T) -> f64) -> Option<&'a T> {
    items.iter().copied().reduce(|best, item| if value(item) > value(best) { item } else { best })
}

/// Warnings about the hosts and, for benchmarks with files, the file system.
pub(crate) fn machine_warnings(
    machine: &MachineRecord,
    storage: Option<&StorageRecord>,
) -> impl Iterator<Item = Warning> {
    oversubscribed(machine).into_iter().chain(storage.and_then(memory_file_system))
}

fn oversubscribed(machine: &MachineRecord) -> Option<Warning> {
    let crowded: Vec<&HostRecord> = machine.hosts.iter().filter(|h| h.ranks > h.cores).collect();
    let worst = largest(&crowded, |h| h.ranks as f64 / h.cores.max(1) as f64)?;
    let (hosts, host) = (crowded.len() as u64, &worst.name);
    let (ranks, cores) = (count(worst.ranks, "rank"), count(worst.cores, "core"));
    let warning = kinds::OVERSUBSCRIBED.warning().with_figure("hosts", hosts).with_figure("host", host);
    Some(warning.with_figure("ranks", worst.ranks).with_figure("cores", worst.cores).with_text(
        format!("{ranks} on {cores} of {host}: they wait for each other"),
        format!(
            "{ranks} on {cores} of host {host}{}: they wait for each other during measurements.",
            and_more(hosts, "host")
        ),
    ))
}

/// Warning for benchmarks whose data passes the page cache.
pub(crate) fn memory_ballooning(machine: &MachineRecord) -> Option<Warning> {
    let ballooning: Vec<(&HostRecord, &MemoryBallooning)> =
        machine.hosts.iter().filter_map(|h| Some((h, h.memory_ballooning.as_ref()?))).collect();
    let (host, worst) = largest(&ballooning.iter().collect::<Vec<_>>(), |(_, t)| t.first_touch_ratio())?;
    let (hosts, host) = (ballooning.len() as u64, &host.name);
    let MemoryBallooning { mechanism: by, first_touch_ns, touch_again_ns, .. } = worst;
    let is_slow = *first_touch_ns > SLOW_FIRST_TOUCH_RATIO * touch_again_ns;
    let warning = kinds::MEMORY_BALLOONING
        .warning()
        .with_figure("hosts", hosts)
        .with_figure("host", host)
        .with_figure("mechanism", by);
    let warning = warning.with_figure("first_touch_ns", first_touch_ns).with_figure("touch_again_ns", touch_again_ns).with_text(
        "memory ballooning: the hypervisor reclaims page-cache memory, and speeds through it vary",
        format!(
            "Host {host}{} is a virtual machine whose hypervisor reclaims free memory ({by}). It must provide memory for the page \
             cache again during measurements. The first touch of a page took {:.1} us at the start, and {:.1} us when the same \
             amount was allocated again at once; larger amounts can take longer.",
            and_more(hosts, "host"),
            first_touch_ns / 1e3,
            touch_again_ns / 1e3
        ),
    );
    Some(Warning { rank: (!is_slow).then_some(MINOR_BALLOONING_RANK), ..warning })
}

fn memory_file_system(storage: &StorageRecord) -> Option<Warning> {
    let fs_type = &storage.fs_type;
    is_in_memory(fs_type).then(|| {
        kinds::MEMORY_FILE_SYSTEM.warning().with_figure("fs_type", fs_type).with_text(
            format!("the files are on {fs_type}, in memory: the storage was not measured"),
            format!(
                "The files are on {fs_type}, a file system in memory: these numbers are memory bandwidth, not storage."
            ),
        )
    })
}

/// Warns of planned measurements (`noun`s, counted in `figure`) that were refused, with the first reason.
pub(crate) fn not_run_warning<'a>(
    kind: &WarningKind,
    backend: &str,
    (noun, figure): (&str, &str),
    reasons: impl Iterator<Item = &'a str>,
) -> Option<Warning> {
    let (number, reason) = count_and_first(reasons)?;
    let text = format!("{} not run: {}", count(number, noun), clause(reason));
    let cause = format!("{backend}: {text}.");
    Some(
        kind.warning()
            .for_backend(backend)
            .with_figure(figure, number)
            .with_figure("reason", reason)
            .with_text(text.clone(), cause),
    )
}

/// Warns of a run that exceeded its time limit; `cause` creates the cause from the elapsed time.
pub(crate) fn overrun_warning(
    kind: &WarningKind,
    real_seconds: f64,
    (limit_seconds, expected_seconds): (f64, f64),
    cause: impl Fn(&str) -> String,
) -> Option<Warning> {
    if !is_overrun(real_seconds, limit_seconds) {
        return None;
    }
    let [real, limit] = [real_seconds, limit_seconds].map(format_seconds);
    let warning =
        kind.warning().with_figure("limit_seconds", limit_seconds).with_figure("expected_seconds", expected_seconds);
    let summary = format!("took {real}, {limit} were allowed");
    Some(warning.with_figure("real_seconds", real_seconds).with_text(summary, cause(&real)))
}

#[cfg(test)]
pub(crate) fn warning_text(warning: &Warning) -> String {
    format!("{}\n  {}\n  -> {}\n", warning.summary, warning.cause, warning.next_step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture::{host, machine};

    #[test]
    fn the_host_with_the_slowest_first_touch_is_named() {
        let ballooning = |first_touch_ns: f64| {
            Some(MemoryBallooning {
                mechanism: "balloon".into(),
                touched_bytes: 1,
                first_touch_ns,
                touch_again_ns: 100.0,
            })
        };
        let mut hosts = vec![host("a", 1), host("b", 1), host("c", 1)];
        assert_eq!(memory_ballooning(&machine(hosts.clone(), &[])), None);
        (hosts[0].memory_ballooning, hosts[2].memory_ballooning) = (ballooning(100.0), ballooning(600.0));
        let figures = |hosts: &[HostRecord]| {
            let warning = memory_ballooning(&machine(hosts.to_vec(), &[])).unwrap();
            (warning.number("hosts"), warning.text("host").to_owned(), warning.number("first_touch_ns"), warning.rank)
        };
        assert_eq!(figures(&hosts), (Some(2.0), "c".into(), Some(600.0), None));
        hosts[2].memory_ballooning = ballooning(200.0);
        assert_eq!(figures(&hosts), (Some(2.0), "c".into(), Some(200.0), Some(43)), "below the threshold");
    }

    #[test]
    fn there_is_one_warning_of_a_kind_per_backend_and_it_has_text() {
        let old = |backend: &str| {
            let text = format!(r#"{{"kind":"hint_not_granted","backend":"{backend}","key":"a"}}"#);
            serde_json::from_str::<Warning>(&text).unwrap()
        };
        let new = |hints: u64| {
            let hint = kinds::HINT_NOT_GRANTED
                .warning()
                .for_backend("mpiio")
                .with_figure("hints", hints)
                .with_figure("key", "a");
            hint.with_figure("requested", "1").with_figure("granted", "2").with_text("not taken", "It was not taken.")
        };
        let later = Warning { kind: "later_kind".into(), ..new(3) };
        let found =
            merge_warnings(&[old("mpiio"), old("mpiio"), old("posix"), later.clone()], vec![new(1), new(2)], &[]);
        let words = "hint not granted: backend posix, key a";
        let kind = kinds::HINT_NOT_GRANTED;
        let cause = format!("{} ({words}).", clause(kind.meaning.trim()));
        let posix = old("posix").with_text(words, cause).with_next_step(kind.next_step);
        assert_eq!(found, [new(1), posix, later], "warnings with text replace those without");
    }
}
