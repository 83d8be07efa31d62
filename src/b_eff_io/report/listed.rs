//! Values of a run for the list of `report --system`.

use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{Derived, PartitionValue, Validity};
use crate::frame::records::MachineRecord;
use crate::frame::report::csv::RunColumns;
use crate::frame::report::facts::hints_text;
use crate::frame::report::library::short_name;
use crate::frame::report::system_list::{ListedStatus, ListedValue, ReleaseEntry};
use crate::frame::system::backing_store::{backing_store, BackingStore};
use crate::frame::values::{MPI_IO, NULL_BACKEND};

use super::values::{value, RELEASES};

/// Time of the three partitions of the program of release 2.1 together, as it was used.
pub const THREE_PARTITIONS_SECONDS: f64 = 1800.0;

/// One for each partition and backend that moves data.
pub(super) fn listed(result: &RunResult, derived: &Derived) -> Vec<ListedValue> {
    let of_partition = |p: &PartitionValue| listed_partition(result, derived, p);
    derived.partitions.iter().filter(|p| p.backend != NULL_BACKEND).map(of_partition).collect()
}

fn listed_partition(result: &RunResult, derived: &Derived, partition: &PartitionValue) -> ListedValue {
    let (config, machine) = (&result.config, &result.manifest.machine);
    let entry = |release: Release| ReleaseEntry {
        release: release.name(),
        mb_per_second: value(&partition.values, release),
        status: status(result, derived, &partition.backend, release),
        is_own_definition: release == config.release,
    };
    let hints: Vec<(&str, &str)> = config.hints.iter().map(|rule| (rule.key.as_str(), rule.value.as_str())).collect();
    ListedValue {
        file: String::new(),
        program: format!("beff-raw {}", machine.program_version),
        started: machine.started_utc.clone(),
        system: system(result),
        hosts: RunColumns::new(machine, None, "").host().to_owned(),
        backend: partition.backend.clone(),
        is_mpi_io: partition.backend == MPI_IO,
        ranks: partition.ranks,
        ranks_per_host: ranks_per_host(machine, partition.ranks),
        time_seconds: Some(config.time_seconds),
        mpi: short_name(&machine.mpi_library),
        hints: if hints.is_empty() { String::new() } else { hints_text(hints) },
        values: RELEASES.map(entry).into(),
    }
}

/// The file system; that of a local device with its host, because names of devices are the same on all.
pub(super) fn system(result: &RunResult) -> String {
    let storage = &result.manifest.storage;
    let host = result.manifest.machine.hosts.first().map(|host| host.name.as_str());
    match (backing_store(&storage.fs_type), host) {
        (BackingStore::Server, _) | (_, None) => format!("{} on {}", storage.fs_type, storage.source),
        (_, Some(host)) => format!("{} on {} of {host}", storage.fs_type, storage.source),
    }
}

/// Most ranks of the partition on one host; None if the places of the ranks are not recorded.
fn ranks_per_host(machine: &MachineRecord, ranks: u64) -> Option<u64> {
    match (&machine.binding, machine.hosts.as_slice()) {
        (Some(binding), _) => {
            binding.hosts.iter().map(|h| h.ranks.iter().filter(|r| r.rank < ranks).count() as u64).max()
        }
        (None, [_]) => Some(ranks),
        (None, hosts) if ranks == machine.ranks => hosts.iter().map(|h| h.ranks).max(),
        (None, _) => None,
    }
}

fn status(result: &RunResult, derived: &Derived, backend: &str, release: Release) -> ListedStatus {
    let is_it = |v: &&Validity| v.backend == backend && v.release == release;
    let Some(validity) = derived.validity.iter().find(is_it) else { return ListedStatus::Unknown };
    let config = &result.config;
    let is_used_form = release == Release::R2_1
        && config.release == Release::R2_1
        && result.partitions.len() == 3
        && config.time_seconds >= THREE_PARTITIONS_SECONDS;
    let is_only_short = || validity.criteria.iter().all(|c| c.met || c.lack().starts_with("too short"));
    match validity.valid {
        true => ListedStatus::Valid,
        false if is_used_form && is_only_short() => ListedStatus::ThreePartitions,
        false => ListedStatus::NotValid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

    #[test]
    fn every_partition_of_every_backend_is_listed() {
        let result = fixtures::complete();
        let derived = derive(&result);
        let all = listed(&result, &derived);
        let places: Vec<(&str, u64)> = all.iter().map(|v| (v.backend.as_str(), v.ranks)).collect();
        assert_eq!(places, [("mpiio", 2), ("mpiio", 4), ("posix", 2), ("posix", 4)]);
        for (v, p) in all.iter().zip(&derived.partitions) {
            let values: Vec<Option<f64>> = v.values.iter().map(|e| e.mb_per_second).collect();
            assert_eq!(values, [p.values.release_0_5, p.values.release_1, p.values.release_2_1]);
            assert_eq!((v.is_mpi_io, v.time_seconds), (v.backend == "mpiio", Some(900.0)));
            assert_eq!(v.values.iter().filter(|e| e.is_own_definition).map(|e| e.release).collect::<Vec<_>>(), ["1"]);
        }
        assert_eq!(all[0].ranks_per_host, Some(2), "all ranks of the small partition are on one host");
        assert_eq!(all[0].system, "xfs on /dev/vdb1 of node01");
    }

    /// Three partitions in half an hour are accepted, if nothing else is wrong.
    #[test]
    fn three_partitions_in_half_an_hour_are_a_form_of_release_2_1() {
        let status_of = |partitions: usize, seconds: f64, change: fn(&mut RunResult)| {
            let mut result = crate::b_eff_io::values::run_of_release(Release::R2_1);
            result.config.time_seconds = seconds;
            result.partitions.iter_mut().for_each(|p| p.time_seconds = seconds / 3.0);
            result.partitions.truncate(partitions);
            change(&mut result);
            let derived = derive(&result);
            let all = listed(&result, &derived);
            let last = all.last().unwrap();
            last.values.iter().map(|e| e.status).collect::<Vec<_>>()
        };
        use ListedStatus::{NotValid, ThreePartitions, Valid};
        let whole = |_: &mut RunResult| {};
        assert_eq!(status_of(3, 5400.0, whole)[2], Valid);
        assert_eq!(status_of(3, 1800.0, whole)[2], ThreePartitions);
        assert_eq!(status_of(3, 1799.0, whole)[2], NotValid);
        assert_eq!(status_of(2, 1800.0, whole)[2], NotValid);
        assert_eq!(status_of(3, 1800.0, |result| result.config.shared_pointer = false)[2], NotValid);
        assert_eq!(status_of(3, 1800.0, |result| result.config.release = Release::R1)[2], NotValid);
    }
}
