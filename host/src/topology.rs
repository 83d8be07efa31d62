//! Which hardware threads, cores, packages and memories the CPUs of this host are.

use std::collections::BTreeMap;
use std::path::Path;

use super::host::cpu_numbers;
use super::{names_in, read_number, read_trimmed};

/// Where a CPU (hardware thread) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuPlace {
    /// Socket; -1: not known.
    pub package: i64,
    /// Node of memory (NUMA); -1: not known.
    pub node: i64,
    /// Lowest number among the hardware threads of its core, which is the core's name here.
    pub core: u32,
}

/// Places of CPUs by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology(pub BTreeMap<u32, CpuPlace>);

impl Topology {
    /// Of these CPUs, from /sys/devices/system/cpu. What the kernel does not tell makes a CPU a core of its own.
    #[must_use]
    pub fn of_this_host(cpus: impl IntoIterator<Item = u32>) -> Self {
        Self::below(Path::new("/sys/devices/system/cpu"), cpus)
    }

    fn below(directory: &Path, cpus: impl IntoIterator<Item = u32>) -> Self {
        let place = |cpu: u32| {
            let own = directory.join(format!("cpu{cpu}"));
            let node = names_in(&own).into_iter().find_map(|name| name.strip_prefix("node")?.parse().ok());
            CpuPlace {
                package: read_number(own.join("topology/physical_package_id")).unwrap_or(-1),
                node: node.unwrap_or(-1),
                core: core(&own).unwrap_or(cpu),
            }
        };
        Self(cpus.into_iter().map(|cpu| (cpu, place(cpu))).collect())
    }

    /// Where this CPU is; one that was not looked at is a core of its own, of nobody's package.
    #[must_use]
    pub fn place(&self, cpu: u32) -> CpuPlace {
        self.0.get(&cpu).copied().unwrap_or(CpuPlace { package: -1, node: -1, core: cpu })
    }
}

/// The core of a CPU, by its directory.
fn core(own: &Path) -> Option<u32> {
    cpu_numbers(&read_trimmed(own.join("topology/thread_siblings_list"))?)?.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_read() {
        let root = tempfile::tempdir().unwrap();
        for cpu in 0..4_u32 {
            let own = root.path().join(format!("cpu{cpu}"));
            std::fs::create_dir_all(own.join("topology")).unwrap();
            std::fs::create_dir(own.join(format!("node{}", cpu % 2))).unwrap();
            let siblings = format!("{},{}\n", cpu % 2, cpu % 2 + 2);
            std::fs::write(own.join("topology/thread_siblings_list"), siblings).unwrap();
            std::fs::write(own.join("topology/physical_package_id"), "0\n").unwrap();
        }
        let topology = Topology::below(root.path(), [0, 3, 7]);
        assert_eq!(topology.place(0), CpuPlace { package: 0, node: 0, core: 0 });
        assert_eq!(topology.place(3), CpuPlace { package: 0, node: 1, core: 1 });
        let unknown = CpuPlace { package: -1, node: -1, core: 7 };
        assert_eq!((topology.place(7), topology.0.len()), (unknown, 3));
    }

    #[test]
    fn this_machine_answers() {
        let cpus = crate::host::allowed_cpus().unwrap();
        assert_eq!(Topology::of_this_host(cpus.iter().copied()).0.len(), cpus.len());
    }
}
