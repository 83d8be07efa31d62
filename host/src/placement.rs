//! Placement of ranks and transport of their messages, as far as kernel and library report them.

use std::collections::BTreeSet;
use std::path::Path;

use procfs::process::{MMapPath, Process};

use super::{names_in, read_number, read_trimmed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbering of ranks over the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankNumbering {
    /// All ranks on one host.
    OneHost,
    /// One rank on each host.
    OneEach,
    /// Neighbouring ranks share a host until it is full.
    Sequential,
    /// Rank r is on host r modulo the number of hosts.
    RoundRobin,
    /// None of these.
    Mixed,
}

/// Transport of messages, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transport {
    /// Device in the library's version text, e.g. `ch4:ofi`; None if it names none.
    pub device: Option<String>,
    /// Components and communication libraries loaded after MPI_Init, e.g. `btl vader`, `libucp`.
    pub loaded: Vec<String>,
    /// Active network interfaces of the first host, without loopback.
    pub interfaces: Vec<String>,
}

/// Numbering of ranks, from the index of each rank's host (hosts in the order of their first rank).
#[must_use]
pub fn rank_numbering(host_of_rank: &[u64]) -> RankNumbering {
    let hosts = host_of_rank.iter().max().map_or(0, |h| h + 1);
    let ranks = host_of_rank.len() as u64;
    if hosts <= 1 {
        RankNumbering::OneHost
    } else if hosts == ranks {
        RankNumbering::OneEach
    } else if host_of_rank.is_sorted() {
        RankNumbering::Sequential
    } else if host_of_rank.iter().zip(0..).all(|(host, rank)| *host == rank % hosts) {
        RankNumbering::RoundRobin
    } else {
        RankNumbering::Mixed
    }
}

/// CPU numbers as a list with ranges, as for taskset(1): `0-3,8`.
#[must_use]
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Transport of messages after MPI_Init. `library` is the text of MPI_Get_library_version.
#[must_use]
pub fn detect_transport(library: &str) -> Transport {
    let maps = Process::myself().and_then(|process| process.maps());
    let files = maps.into_iter().flatten().filter_map(|map| match map.pathname {
        MMapPath::Path(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        _ => None,
    });
    Transport {
        device: mpich_device(library),
        loaded: communication_components(files),
        interfaces: network_interfaces(Path::new("/sys/class/net")),
    }
}

/// MPICH names its device in its version text: `MPICH Device: ch4:ofi`.
fn mpich_device(library: &str) -> Option<String> {
    let after = library.split("Device:").nth(1)?;
    after.split_whitespace().next().map(str::to_owned)
}

/// Loaded components of Open MPI and communication libraries, from file names.
fn communication_components(files: impl Iterator<Item = String>) -> Vec<String> {
    const FRAMEWORKS: [&str; 3] = ["pml", "mtl", "btl"];
    const LIBRARIES: [&str; 8] =
        ["libucp", "libuct", "libfabric", "libpsm2", "libpsm_infinipath", "libibverbs", "libxpmem", "libportals"];
    let mut found = BTreeSet::new();
    for name in files {
        if let Some(component) = name.strip_prefix("mca_").and_then(|rest| rest.strip_suffix(".so")) {
            if let Some((framework, which)) = component.split_once('_').filter(|(f, _)| FRAMEWORKS.contains(f)) {
                found.insert(format!("{framework} {which}"));
            }
        }
        found.extend(LIBRARIES.iter().filter(|l| name.starts_with(&format!("{l}.so"))).map(|l| (*l).to_owned()));
    }
    found.into_iter().collect()
}

/// Interfaces that are not down, without loopback; with their speed in Mbit/s if the driver reports it.
fn network_interfaces(directory: &Path) -> Vec<String> {
    let mut names = names_in(directory);
    names.retain(|name| {
        let state = read_trimmed(directory.join(name).join("operstate"));
        name != "lo" && state.is_some_and(|state| state == "up" || state == "unknown")
    });
    let described = |name: String| {
        // Unknown is -1, as a signed or an unsigned number.
        let speed = read_number::<i64>(directory.join(&name).join("speed"));
        let speed = speed.filter(|speed| (1..i64::from(u32::MAX)).contains(speed));
        speed.map_or_else(|| name.clone(), |speed| format!("{name} ({speed} Mbit/s)"))
    };
    names.into_iter().map(described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numberings_are_distinguished() {
        assert_eq!(rank_numbering(&[0, 0, 0]), RankNumbering::OneHost);
        assert_eq!(rank_numbering(&[0, 1, 2]), RankNumbering::OneEach);
        assert_eq!(rank_numbering(&[0, 0, 1, 1, 2, 2]), RankNumbering::Sequential);
        assert_eq!(rank_numbering(&[0, 0, 0, 1, 1]), RankNumbering::Sequential);
        assert_eq!(rank_numbering(&[0, 1, 2, 0, 1, 2]), RankNumbering::RoundRobin);
        assert_eq!(rank_numbering(&[0, 1, 0, 1, 0]), RankNumbering::RoundRobin);
        assert_eq!(rank_numbering(&[0, 1, 1, 0]), RankNumbering::Mixed);
        assert_eq!(rank_numbering(&[]), RankNumbering::OneHost);
    }

    #[test]
    fn cpus_become_ranges() {
        assert_eq!(format_cpu_list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(format_cpu_list(&[5]), "5");
        assert_eq!(format_cpu_list(&[]), "");
    }

    #[test]
    fn device_and_components_of_libraries() {
        assert_eq!(mpich_device("MPICH Version: 4.0.2 MPICH Device: ch4:ofi MPICH configure: x").unwrap(), "ch4:ofi");
        assert_eq!(mpich_device("Open MPI v4.1.4"), None);
        let files = ["mca_pml_ob1.so", "mca_btl_vader.so", "mca_coll_tuned.so", "libfabric.so.1.19.1", "libc.so.6"];
        assert_eq!(
            communication_components(files.map(str::to_owned).into_iter()),
            ["btl vader", "libfabric", "pml ob1"]
        );
    }

    #[test]
    fn this_host_has_network_interfaces() {
        assert!(!network_interfaces(Path::new("/sys/class/net")).iter().any(|name| name == "lo"));
        assert!(network_interfaces(Path::new("/nowhere")).is_empty());
    }
}
