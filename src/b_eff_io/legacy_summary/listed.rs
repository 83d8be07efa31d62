//! Values of a summary for the list of `report --system`.

use super::parse::{LegacyPartition, LegacySummary};
use crate::frame::report::library::short_name;
use crate::frame::report::system_list::{ListedStatus, ListedValue, ReleaseEntry};
use crate::frame::values::MPI_IO;

/// Time of three partitions together, as the program was used, minutes.
const THREE_PARTITIONS_MINUTES: f64 = 30.0;

/// One for each partition. A summary that this program wrote names the backend and the MPI library; others used
/// `other_backend`.
pub(super) fn listed(summary: &LegacySummary, other_backend: &str) -> Vec<ListedValue> {
    let backend =
        summary.revision.rsplit_once("backend ").map_or(other_backend, |(_, rest)| rest.trim_end_matches(')'));
    let remark = |name: &str| summary.text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name));
    let option = |name: &str| summary.command.split_once(name).map(|(_, rest)| rest);
    let time_seconds = option("T=").and_then(|rest| rest.split([',', ' ']).next()?.parse().ok());
    let hints = option(" -i ").and_then(|rest| rest.split([',', ' ']).next()).unwrap_or_default();
    let ours = summary.revision.contains("measured by beff-raw");
    let program = if ours { "beff-raw (summary)" } else { "b_eff_io of its own program" };
    let of = |partition: &LegacyPartition| ListedValue {
        file: String::new(),
        program: program.to_owned(),
        started: summary.date.clone(),
        system: remark("System: ")
            .map_or_else(|| format!("{} of {}", summary.fact("system name"), summary.fact("hostname")), str::to_owned),
        hosts: summary.fact("hostname").to_owned(),
        backend: backend.to_owned(),
        is_mpi_io: backend == MPI_IO,
        ranks: partition.ranks,
        ranks_per_host: None,
        time_seconds,
        mpi: remark("MPI library: ").map(short_name).unwrap_or_default(),
        hints: hints.to_owned(),
        values: vec![ReleaseEntry {
            release: "2.1",
            mb_per_second: partition.b_eff_io_mb_per_second,
            status: status(summary),
            is_own_definition: true,
        }],
    };
    summary.partitions.iter().map(of).collect()
}

/// Validity is printed once, behind the last partition.
fn status(summary: &LegacySummary) -> ListedStatus {
    let Some(last) = summary.partitions.last() else { return ListedStatus::Unknown };
    let minutes: f64 =
        summary.partitions.iter().filter_map(|p| p.scheduled.split(' ').next()?.parse::<f64>().ok()).sum();
    let unmet = || last.criteria.iter().filter(|text| text.contains("NOT reached"));
    let is_only_short = !last.criteria.is_empty() && unmet().all(|text| text.starts_with("criterion 1"));
    match last.valid {
        Some(true) => ListedStatus::Valid,
        Some(false) if summary.partitions.len() == 3 && minutes >= THREE_PARTITIONS_MINUTES && is_only_short => {
            ListedStatus::ThreePartitions
        }
        Some(false) => ListedStatus::NotValid,
        None => ListedStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;
    use crate::b_eff_io::report::{fixtures, sum};
    use crate::b_eff_io::values::derive;
    use crate::frame::report::{LoadedReport, ResultReport};

    const TEXT: &str =
        "b_eff_io.c, Revision 2.1 from Dec. 12, 2001\n\n-N  4 T=1800, MT=1024 MBytes -i list.info, -rewrite\n\
        \x20      system name : Linux\n       hostname    : node17\n\nDate of measurement: Tue Nov 23 18:30:30 2004\n";

    /// A summary with these partitions, each of 10 minutes and of 100 MB/s for each rank.
    fn summary(partitions: &[u64], criteria: &str) -> LegacySummary {
        let table = |ranks: &u64| {
            let value = 100 * ranks;
            format!(
                "{ranks:4} PEs      total-write     1.0 1.0 1.0 1.0 1.0\nb_eff_io of these measurements = {value}.000 MB/s on {ranks} processes \
                 with 256 MByte/PE and scheduled time=10.0 min\n"
            )
        };
        let tables: String = partitions.iter().map(table).collect();
        parse(&format!("{TEXT}{tables}\n{criteria}")).unwrap()
    }

    #[test]
    fn a_summary_of_the_program_is_listed() {
        let short = "NOT VALID for comparison\n  criterion 1: scheduled time 10.0 min >= 30 min -- NOT reached\n  criterion 2: shared -- ";
        let of = |partitions: &[u64], criteria: &str| listed(&summary(partitions, criteria), MPI_IO);
        let all = of(&[1, 2, 4], &format!("{short}reached\n"));
        assert_eq!(
            all.iter().map(|v| (v.ranks, v.values[0].mb_per_second)).collect::<Vec<_>>(),
            [1, 2, 4].map(|n| (n, Some(100.0 * n as f64)))
        );
        let first = &all[0];
        assert_eq!(
            (first.time_seconds, first.hints.as_str(), first.system.as_str()),
            (Some(1800.0), "list.info", "Linux of node17")
        );
        assert!(first.is_mpi_io && first.mpi.is_empty() && first.values[0].release == "2.1");
        let status = |partitions: &[u64], criteria: &str| of(partitions, criteria)[0].values[0].status;
        assert_eq!(status(&[1, 2, 4], &format!("{short}reached\n")), ListedStatus::ThreePartitions);
        assert_eq!(status(&[1, 2, 4], &format!("{short}NOT reached\n")), ListedStatus::NotValid);
        assert_eq!(status(&[2, 4], &format!("{short}reached\n")), ListedStatus::NotValid, "20 minutes");
        assert_eq!(status(&[4], "VALID for comparison\n"), ListedStatus::Valid);
        assert_eq!(status(&[4], ""), ListedStatus::Unknown);
    }

    /// The summary of a result is listed as the result is.
    #[test]
    fn our_own_summary_names_system_backend_and_library() {
        let result = fixtures::complete();
        let derived = derive(&result);
        let own = ResultReport::new(result.clone()).listed();
        for backend in ["mpiio", "posix"] {
            let all = listed(&parse(&sum::summary(&result, &derived, backend)).unwrap(), MPI_IO);
            let expected: Vec<&ListedValue> = own.iter().filter(|v| v.backend == backend).collect();
            assert_eq!(all.len(), expected.len());
            for (summary, document) in all.iter().zip(expected) {
                let of = |v: &ListedValue| {
                    (v.system.clone(), v.backend.clone(), v.is_mpi_io, v.ranks, v.time_seconds, v.mpi.clone())
                };
                assert_eq!(of(summary), of(document));
                let value =
                    |v: &ListedValue| v.values.iter().find(|e| e.release == "2.1").unwrap().mb_per_second.unwrap();
                assert!((value(summary) - value(document)).abs() < 0.0006);
            }
        }
    }
}
