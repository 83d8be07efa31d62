//! Whether MPICH sends its messages by UCX over TCP.

use std::path::Path;

/// True for an MPICH older than 4.1 whose messages UCX sends over TCP: its MPI_Finalize often hangs. `library` is the text of
/// MPI_Get_library_version.
#[must_use]
pub fn is_old_mpich_over_tcp(library: &str, several_hosts: bool) -> bool {
    let has_rdma = Path::new("/sys/class/infiniband").read_dir().is_ok_and(|mut devices| devices.next().is_some());
    let transports = std::env::var("UCX_TLS").unwrap_or_default();
    is_old_mpich_with_ucx(library) && uses_tcp(&transports, several_hosts, has_rdma)
}

fn is_old_mpich_with_ucx(library: &str) -> bool {
    let words: Vec<&str> = library.split_whitespace().collect();
    let after = |name: [&str; 2]| words.windows(3).find(|three| three[..2] == name).map(|three| three[2]);
    // The number at the beginning: a release may be 4.0rc1.
    let number = |part: &str| part.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok();
    let mut version = after(["MPICH", "Version:"]).unwrap_or_default().split('.').map_while(number);
    let (Some(major), Some(minor)) = (version.next(), version.next()) else { return false };
    after(["MPICH", "Device:"]).is_some_and(|device| device.ends_with(":ucx")) && (major, minor) < (4, 1)
}

/// `transports` is UCX_TLS: a list of what may be used, or after `^` of what may not; all, if empty.
fn uses_tcp(transports: &str, several_hosts: bool, has_rdma: bool) -> bool {
    let (is_excluding, list) = match transports.trim().strip_prefix('^') {
        Some(list) => (true, list),
        None => (false, transports),
    };
    let list: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let allows = |names: &[&str]| {
        let is_named = list.iter().any(|name| names.iter().any(|known| name.starts_with(known)));
        if is_excluding {
            !is_named
        } else {
            is_named || list.is_empty() || list.contains(&"all")
        }
    };
    let is_faster = if several_hosts {
        has_rdma && allows(&["ib", "rc", "ud", "dc"])
    } else {
        allows(&["sm", "shm", "mm", "posix", "sysv", "xpmem", "cma", "knem"])
    };
    allows(&["tcp"]) && !is_faster
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_devices() {
        let library = |version: &str, device: &str| {
            format!(
                "MPICH Version: {version} MPICH Release date: x MPICH Device: {device} MPICH configure: --x=ch4:ucx"
            )
        };
        for (version, device, expected) in [
            ("4.0.2", "ch4:ucx", true),
            ("3.4", "ch4:ucx", true),
            ("4.0rc1", "ch4:ucx", true),
            ("4.1", "ch4:ucx", false),
            ("4.1b1", "ch4:ucx", false),
            ("unreleased", "ch4:ucx", false),
            ("4.2.1", "ch4:ucx", false),
            ("5.0.2", "ch4:ucx", false),
            ("4.0.2", "ch4:ofi", false),
            ("3.3.2", "ch3:nemesis", false),
        ] {
            assert_eq!(is_old_mpich_with_ucx(&library(version, device)), expected, "{version} {device}");
        }
        assert!(!is_old_mpich_with_ucx("Open MPI v4.1.4, package: Debian OpenMPI") && !is_old_mpich_with_ucx(""));
    }

    #[test]
    fn tcp_is_used_where_nothing_faster_is_allowed() {
        for (transports, one_host, several_hosts, with_rdma) in [
            ("", false, true, false),
            ("all", false, true, false),
            ("tcp,self", true, true, true),
            ("self,tcp", true, true, true),
            (" tcp , self ", true, true, true),
            ("tcp,sm,self", false, true, true),
            ("tcp,posix,self", false, true, true),
            ("rc,tcp,sm,self", false, true, false),
            ("rc_x,sm,self", false, false, false),
            ("^sm", true, true, false),
            ("^tcp", false, false, false),
            ("^ib", false, true, true),
            ("sm,self", false, false, false),
        ] {
            let found =
                [(false, false), (true, false), (true, true)].map(|(hosts, rdma)| uses_tcp(transports, hosts, rdma));
            assert_eq!(found, [one_host, several_hosts, with_rdma], "UCX_TLS={transports}");
        }
    }
}
