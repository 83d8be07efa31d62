//! Hardware threads, cores, packages and NUMA nodes of this host.

use std::collections::BTreeMap;
use std::path::Path;

use super::host::parse_cpu_list;
use super::{names_in, read_number, read_trimmed};

/// Location of a CPU (hardware thread).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuLocation {
    /// Socket; -1 if unknown.
    pub package: i64,
    /// NUMA node; -1 if unknown.
    pub node: i64,
    /// Lowest number among the hardware threads of its core, which identifies the core.
    pub core: u32,
}

/// Locations of CPUs by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology(pub BTreeMap<u32, CpuLocation>);

impl Topology {
    /// Reads the locations of these CPUs from /sys/devices/system/cpu. A CPU without information is a core of its own.
    #[must_use]
    pub fn of_this_host(cpus: impl IntoIterator<Item = u32>) -> Self {
        Self::read_from(Path::new("/sys/devices/system/cpu"), cpus)
    }

    fn read_from(directory: &Path, cpus: impl IntoIterator<Item = u32>) -> Self {
        let place = |cpu: u32| {
            let own = directory.join(format!("cpu{cpu}"));
            let node = names_in(&own).into_iter().find_map(|name| name.strip_prefix("node")?.parse().ok());
            CpuLocation {
                package: read_number(own.join("topology/physical_package_id")).unwrap_or(-1),
                node: node.unwrap_or(-1),
                core: core_of(&own).unwrap_or(cpu),
            }
        };
        Self(cpus.into_iter().map(|cpu| (cpu, place(cpu))).collect())
    }

    /// Location of this CPU; one that was not read is a core of its own, of an unknown package.
    #[must_use]
    pub fn location(&self, cpu: u32) -> CpuLocation {
        self.0.get(&cpu).copied().unwrap_or(CpuLocation { package: -1, node: -1, core: cpu })
    }
}

fn core_of(own: &Path) -> Option<u32> {
    parse_cpu_list(&read_trimmed(own.join("topology/thread_siblings_list"))?)?.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topology_is_read_from_sys() {
        let root = tempfile::tempdir().unwrap();
        for cpu in 0..4_u32 {
            let own = root.path().join(format!("cpu{cpu}"));
            std::fs::create_dir_all(own.join("topology")).unwrap();
            std::fs::create_dir(own.join(format!("node{}", cpu % 2))).unwrap();
            let siblings = format!("{},{}\n", cpu % 2, cpu % 2 + 2);
            std::fs::write(own.join("topology/thread_siblings_list"), siblings).unwrap();
            std::fs::write(own.join("topology/physical_package_id"), "0\n").unwrap();
        }
        let topology = Topology::read_from(root.path(), [0, 3, 7]);
        assert_eq!(topology.location(0), CpuLocation { package: 0, node: 0, core: 0 });
        assert_eq!(topology.location(3), CpuLocation { package: 0, node: 1, core: 1 });
        let unknown = CpuLocation { package: -1, node: -1, core: 7 };
        assert_eq!((topology.location(7), topology.0.len()), (unknown, 3));
    }

    #[test]
    fn this_host_has_a_topology() {
        let cpus = crate::host::allowed_cpus().unwrap();
        assert_eq!(Topology::of_this_host(cpus.iter().copied()).0.len(), cpus.len());
    }
}
