//! Where ranks may store into one page: on one host always, on several only where the file system keeps their mappings
//! coherent. Elsewhere the host that writes its copy of the page last wins, and the bytes of the others are lost.

use std::fs::File;
use std::io;

use nix::sys::statfs::fstatfs;

use crate::error::Cause;
use crate::{BackendError, OpenRequest, Pattern, Result};

/// Lustre, IBM Storage Scale (GPFS), GFS2, OCFS2: locks on ranges or pages, taken by page faults too. NFS, SMB, FUSE,
/// CephFS and BeeGFS do not promise it.
const COHERENT: [u64; 4] = [0x0bd0_0bd0, 0x4750_4653, 0x0116_1970, 0x7461_636f];

/// What is known about the hosts of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    allowed: bool,
    page_bytes: u64,
}

impl Sharing {
    pub(super) fn new(file: &File, several_hosts: bool) -> io::Result<Self> {
        let fs_type = fstatfs(file)?.filesystem_type().0 as u64;
        // SAFETY: a question without pointers.
        let page_bytes = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        Ok(Self { allowed: !several_hosts || COHERENT.contains(&fs_type), page_bytes })
    }

    /// Why the pattern would lose data; None: it does not.
    pub(super) fn refuses(&self, pattern: &Pattern) -> Option<String> {
        if self.allowed || pattern.is_private(self.page_bytes) {
            return None;
        }
        Some(format!(
            "ranks on several hosts would store into the same pages of {} bytes, and this file system does not keep \
             mappings on several hosts coherent",
            self.page_bytes
        ))
    }
}

/// True if the file's ranks are on more than one host. Collective over its communicator.
pub(super) fn on_several_hosts(request: &OpenRequest<'_>) -> Result<bool> {
    if request.comm.size() == 1 {
        return Ok(false);
    }
    let node = request.comm.node().map_err(|e| {
        let text = format!("the ranks of this host cannot be found: {e}");
        BackendError::new("MPI_Comm_split_type", request.path, Cause::Io, text)
    })?;
    Ok(node.is_none_or(|node| node.size() < request.comm.size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;

    #[test]
    fn shared_pages_are_refused_on_several_hosts_only() {
        let shared = Pattern { stride_bytes: 2 * 1032, ranks: 2, rank_distance_bytes: 1032, ..pattern(1032, 1, 9) };
        let aligned = Pattern { stride_bytes: 2 * 8192, ranks: 2, rank_distance_bytes: 8192, ..pattern(8192, 1, 9) };
        let segment = Pattern { ranks: 2, rank_distance_bytes: 1 << 20, ..pattern(1032, 1, 9) };
        let lonely = Sharing { allowed: false, page_bytes: 4096 };
        assert!(lonely.refuses(&shared).unwrap().contains("several hosts"));
        for harmless in [aligned, segment, pattern(1032, 1, 9)] {
            assert_eq!(lonely.refuses(&harmless), None);
        }
        assert_eq!(Sharing { allowed: true, ..lonely }.refuses(&shared), None);
    }

    #[test]
    fn one_host_shares_on_any_file_system() {
        let file = tempfile::tempfile().unwrap();
        assert!(Sharing::new(&file, false).unwrap().allowed);
        assert!(!Sharing::new(&File::open("/proc/self/status").unwrap(), true).unwrap().allowed);
    }
}
