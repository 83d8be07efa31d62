//! Warnings that follow from what every benchmark records, and what warnings of one kind are told by.

use crate::frame::records::{HostRecord, Machine, StorageRecord, Warning};
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

fn memory_file_system(storage: &StorageRecord) -> Option<Warning> {
    let fs_type = &storage.fs_type;
    is_in_memory(fs_type).then(|| Warning::MemoryFileSystem { fs_type: fs_type.clone() })
}
