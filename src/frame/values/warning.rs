//! Warnings that follow from what every benchmark records, and what warnings of one kind are told by.

use crate::frame::records::{HostRecord, Machine, StorageRecord, TakenBack, Warning};
use crate::frame::system::storage::is_in_memory;

/// Real time beyond this multiple of the schedule or of the time allowed is an overrun.
const OVERRUN: f64 = 1.1;

pub(crate) fn is_overrun(real_seconds: f64, allowed_seconds: f64) -> bool {
    real_seconds > OVERRUN * allowed_seconds
}

/// The run may have recorded what follows from the records as well.
pub(crate) fn without_repetition<W: PartialEq>(found: Vec<W>) -> Vec<W> {
    let mut once: Vec<W> = Vec::with_capacity(found.len());
    for warning in found {
        if !once.contains(&warning) {
            once.push(warning);
        }
    }
    once
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
    Some(Warning::Oversubscribed {
        hosts: crowded.len() as u64,
        host: worst.name.clone(),
        ranks: worst.ranks,
        cores: worst.cores,
    })
}

/// Where data goes through the page cache.
pub(crate) fn memory_taken_back(machine: &Machine) -> Option<Warning> {
    let taken: Vec<(&HostRecord, &TakenBack)> =
        machine.hosts.iter().filter_map(|h| Some((h, h.memory_taken_back.as_ref()?))).collect();
    let (host, worst) = largest(&taken.iter().collect::<Vec<_>>(), |(_, t)| t.ratio())?;
    Some(Warning::MemoryTakenBack {
        hosts: taken.len() as u64,
        host: host.name.clone(),
        by: worst.by.clone(),
        first_touch_ns: worst.first_touch_ns,
        touch_again_ns: worst.touch_again_ns,
    })
}

fn memory_file_system(storage: &StorageRecord) -> Option<Warning> {
    let fs_type = &storage.fs_type;
    is_in_memory(fs_type).then(|| Warning::MemoryFileSystem { fs_type: fs_type.clone() })
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
        let expected = Warning::MemoryTakenBack {
            hosts: 2,
            host: "c".into(),
            by: "balloon".into(),
            first_touch_ns: 600.0,
            touch_again_ns: 100.0,
        };
        assert_eq!(memory_taken_back(&machine(hosts, &[])), Some(expected));
    }
}
