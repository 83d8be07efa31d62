//! Warnings that follow from what every benchmark records.

use crate::frame::records::{HostRecord, Machine, StorageRecord, Warning};
use crate::frame::system::storage::is_in_memory;

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

pub(crate) fn oversubscribed(machine: &Machine) -> Option<Warning> {
    let crowded: Vec<&HostRecord> = machine.hosts.iter().filter(|h| h.ranks > h.cores).collect();
    let per_core = |h: &HostRecord| h.ranks as f64 / h.cores.max(1) as f64;
    let worst = largest(&crowded, |h| per_core(h))?;
    Some(Warning::Oversubscribed {
        hosts: crowded.len() as u64,
        host: worst.name.clone(),
        ranks: worst.ranks,
        cores: worst.cores,
    })
}

/// The first of those with the largest value.
pub(crate) fn largest<'a, T>(items: &[&'a T], value: impl Fn(&T) -> f64) -> Option<&'a T> {
    items.iter().copied().reduce(|best, item| if value(item) > value(best) { item } else { best })
}

pub(crate) fn memory_file_system(storage: &StorageRecord) -> Option<Warning> {
    let fs_type = &storage.fs_type;
    is_in_memory(fs_type).then(|| Warning::MemoryFileSystem { fs_type: fs_type.clone() })
}
