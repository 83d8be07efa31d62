//! Where ranks run, and the way their messages take, as far as kernel and library tell.

use std::collections::BTreeSet;
use std::path::Path;

use procfs::process::{MMapPath, Process};

use super::{names_in, read_number, read_trimmed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How ranks are numbered over the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Numbering {
    /// All on one host.
    OneHost,
    /// One rank on each host: nothing to choose.
    OneEach,
    /// Neighbouring ranks share a host until it is full.
    Sequential,
    /// Rank r is on host r modulo their number.
    RoundRobin,
    /// Neither.
    Mixed,
}

/// What is known of the way messages take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transport {
    /// What the library's version text says, e.g. `ch4:ofi`; None: nothing.
    pub device: Option<String>,
    /// Components and communication libraries loaded after the start, e.g. `btl vader`, `libucp`.
    pub loaded: Vec<String>,
    /// Network interfaces of the first host that are up, loopback left out.
    pub interfaces: Vec<String>,
}

/// How ranks are numbered, from the index of each rank's host (hosts counted in the order of their first rank).
#[must_use]
pub fn numbering(host_of_rank: &[u64]) -> Numbering {
    let hosts = host_of_rank.iter().max().map_or(0, |h| h + 1);
    let ranks = host_of_rank.len() as u64;
    if hosts <= 1 {
        Numbering::OneHost
    } else if hosts == ranks {
        Numbering::OneEach
    } else if host_of_rank.is_sorted() {
        Numbering::Sequential
    } else if host_of_rank.iter().zip(0..).all(|(host, rank)| *host == rank % hosts) {
        Numbering::RoundRobin
    } else {
        Numbering::Mixed
    }
}

/// CPU numbers as a list with ranges, as taskset(1) takes it: `0-3,8`.
#[must_use]
pub fn cpu_list(cpus: &[u32]) -> String {
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

/// What is known of the way of messages once MPI runs. `library` is the text of MPI_Get_library_version.
#[must_use]
pub fn transport(library: &str) -> Transport {
    let maps = Process::myself().and_then(|process| process.maps());
    let files = maps.into_iter().flatten().filter_map(|map| match map.pathname {
        MMapPath::Path(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        _ => None,
    });
    Transport {
        device: device(library),
        loaded: components(files),
        interfaces: interfaces(Path::new("/sys/class/net")),
    }
}

/// MPICH names its device in its version text: `MPICH Device: ch4:ofi`.
fn device(library: &str) -> Option<String> {
    let after = library.split("Device:").nth(1)?;
    after.split_whitespace().next().map(str::to_owned)
}

/// Loaded components of Open MPI and communication libraries, from file names.
fn components(files: impl Iterator<Item = String>) -> Vec<String> {
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

/// Interfaces that are not down, without the loopback; with their speed in Mbit/s where the driver tells it.
fn interfaces(directory: &Path) -> Vec<String> {
    let mut names = names_in(directory);
    names.retain(|name| {
        let state = read_trimmed(directory.join(name).join("operstate"));
        name != "lo" && state.is_some_and(|state| state == "up" || state == "unknown")
    });
    let described = |name: String| {
        // What a driver does not know is -1, as a signed or an unsigned number.
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
    fn numberings_are_told_apart() {
        assert_eq!(numbering(&[0, 0, 0]), Numbering::OneHost);
        assert_eq!(numbering(&[0, 1, 2]), Numbering::OneEach);
        assert_eq!(numbering(&[0, 0, 1, 1, 2, 2]), Numbering::Sequential);
        assert_eq!(numbering(&[0, 0, 0, 1, 1]), Numbering::Sequential);
        assert_eq!(numbering(&[0, 1, 2, 0, 1, 2]), Numbering::RoundRobin);
        assert_eq!(numbering(&[0, 1, 0, 1, 0]), Numbering::RoundRobin);
        assert_eq!(numbering(&[0, 1, 1, 0]), Numbering::Mixed);
        assert_eq!(numbering(&[]), Numbering::OneHost);
    }

    #[test]
    fn cpus_become_ranges() {
        assert_eq!(cpu_list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(cpu_list(&[5]), "5");
        assert_eq!(cpu_list(&[]), "");
    }

    #[test]
    fn libraries_tell_their_device_and_components() {
        assert_eq!(device("MPICH Version: 4.0.2 MPICH Device: ch4:ofi MPICH configure: x").unwrap(), "ch4:ofi");
        assert_eq!(device("Open MPI v4.1.4"), None);
        let files = ["mca_pml_ob1.so", "mca_btl_vader.so", "mca_coll_tuned.so", "libfabric.so.1.19.1", "libc.so.6"];
        assert_eq!(components(files.map(str::to_owned).into_iter()), ["btl vader", "libfabric", "pml ob1"]);
    }

    #[test]
    fn this_machine_answers() {
        assert!(!interfaces(Path::new("/sys/class/net")).iter().any(|name| name == "lo"));
        assert!(interfaces(Path::new("/nowhere")).is_empty());
    }
}
