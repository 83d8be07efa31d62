//! Control groups of this process: version 1, version 2 and both at once (hybrid), see cgroups(7).

use std::path::{Path, PathBuf};

use procfs::process::{MountInfo, Process};
use procfs::ProcessCGroup;

use super::mount::mount_point;

/// Version of a control group hierarchy, which determines its file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// One hierarchy per controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// The groups of one hierarchy that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupHierarchy {
    /// Version, which determines the file names.
    pub version: CgroupVersion,
    /// The group of this process, then its parents up to the mount point. Limits of all of them apply.
    pub directories: Vec<PathBuf>,
}

/// All hierarchies in which `controller` may limit this process. A hybrid system lists both versions, of which only one has the files of
/// the controller. Empty without control groups.
#[must_use]
pub fn hierarchies(controller: &str) -> Vec<CgroupHierarchy> {
    let Ok(process) = Process::myself() else { return Vec::new() };
    let (Ok(groups), Ok(mounts)) = (process.cgroups(), process.mountinfo()) else { return Vec::new() };
    find_hierarchies(controller, &groups.0, &mounts.0)
}

fn find_hierarchies(controller: &str, groups: &[ProcessCGroup], mounts: &[MountInfo]) -> Vec<CgroupHierarchy> {
    let mut found = Vec::new();
    for group in groups {
        let version = if group.hierarchy == 0 { CgroupVersion::V2 } else { CgroupVersion::V1 };
        if version == CgroupVersion::V1 && !group.controllers.iter().any(|c| c == controller) {
            continue;
        }
        let mounted = mounts.iter().filter(|mount| match version {
            CgroupVersion::V2 => mount.fs_type == "cgroup2",
            CgroupVersion::V1 => mount.fs_type == "cgroup" && mount.super_options.contains_key(controller),
        });
        let mut directories = mounted.filter_map(|mount| group_directories(mount, &group.pathname));
        if let Some(directories) = directories.next() {
            found.push(CgroupHierarchy { version, directories });
        }
    }
    found
}

/// Directories of group `pathname` and its parents below `mount`; None if the mount does not show them.
fn group_directories(mount: &MountInfo, pathname: &str) -> Option<Vec<PathBuf>> {
    let top = mount_point(mount);
    let below = match Path::new(pathname).strip_prefix(&mount.root) {
        Ok(below) => below,
        // Mounted from outside our cgroup namespace: the mount point is a parent whose child has no name here.
        Err(_) if mount.root.split('/').all(|part| part.is_empty() || part == "..") => Path::new(""),
        Err(_) => return None,
    };
    if below.components().any(|part| part.as_os_str() == "..") {
        return None; // the process is outside the namespace of this mount
    }
    Some(below.ancestors().map(|part| if part.as_os_str().is_empty() { top.clone() } else { top.join(part) }).collect())
}

#[cfg(test)]
mod tests {
    use procfs::process::MountInfos;
    use procfs::{FromBufRead, ProcessCGroups};

    use super::*;

    fn run(controller: &str, groups: &str, mounts: &str) -> Vec<(CgroupVersion, Vec<String>)> {
        let groups = ProcessCGroups::from_buf_read(groups.as_bytes()).unwrap();
        let mounts = MountInfos::from_buf_read(mounts.as_bytes()).unwrap();
        find_hierarchies(controller, &groups.0, &mounts.0)
            .into_iter()
            .map(|h| (h.version, h.directories.iter().map(|d| d.display().to_string()).collect()))
            .collect()
    }

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    #[test]
    fn unified_walks_up() {
        let found = run(
            "memory",
            "0::/user.slice/job_7/step_0\n",
            "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let directories = strings(&[
            "/sys/fs/cgroup/user.slice/job_7/step_0",
            "/sys/fs/cgroup/user.slice/job_7",
            "/sys/fs/cgroup/user.slice",
            "/sys/fs/cgroup",
        ]);
        assert_eq!(found, vec![(CgroupVersion::V2, directories)]);
    }

    #[test]
    fn hybrid_lists_both() {
        let found = run(
            "memory",
            "9:name=systemd:/\n4:memory:/slurm/uid_1\n2:cpu,cpuacct:/\n0::/\n",
            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        let memory = ["/sys/fs/cgroup/memory/slurm/uid_1", "/sys/fs/cgroup/memory/slurm", "/sys/fs/cgroup/memory"];
        assert_eq!(
            found,
            vec![(CgroupVersion::V1, strings(&memory)), (CgroupVersion::V2, strings(&["/sys/fs/cgroup/unified"]))]
        );
    }

    #[test]
    fn a_container_sees_its_own_group_as_mount_root() {
        let mount = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = run("memory", "4:memory:/docker/abc/sub\n", mount);
        assert_eq!(found[0].1, strings(&["/sys/fs/cgroup/memory/sub", "/sys/fs/cgroup/memory"]));
        assert!(run("memory", "4:memory:/elsewhere\n", mount).is_empty());
    }

    #[test]
    fn groups_outside_the_namespace_are_not_mistaken() {
        let outside = "31 23 0:28 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(run("memory", "0::/\n", outside)[0].1, strings(&["/sys/fs/cgroup"]));
        let inside = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert!(run("memory", "0::/../other\n", inside).is_empty());
    }
}
