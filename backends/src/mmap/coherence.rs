//! Ranks on one host may store into the same page; on several hosts only where the file system keeps their mappings coherent.
//! Elsewhere the host that writes its copy of the page last wins, and the bytes of the others are lost.

use std::fs::File;
use std::io;

use nix::sys::statfs::fstatfs;

use crate::error::FailureCause;
use crate::{AccessPattern, BackendError, OpenRequest, Result};

/// Lustre, IBM Storage Scale (GPFS), GFS2, OCFS2: locks on ranges or pages, acquired by page faults too. NFS, SMB, FUSE, CephFS and
/// BeeGFS do not guarantee it.
const COHERENT_FILE_SYSTEMS: [u64; 4] = [0x0bd0_0bd0, 0x4750_4653, 0x0116_1970, 0x7461_636f];

#[derive(Clone, Copy, Debug)]
pub(super) struct MappingCoherence {
    is_coherent: bool,
    page_bytes: u64,
}

impl MappingCoherence {
    pub(super) fn new(file: &File, several_hosts: bool) -> io::Result<Self> {
        let fs_type = fstatfs(file)?.filesystem_type().0 as u64;
        // SAFETY: a query without pointers.
        let page_bytes = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        Ok(Self { is_coherent: !several_hosts || COHERENT_FILE_SYSTEMS.contains(&fs_type), page_bytes })
    }

    /// Why the pattern would lose data, if it would.
    pub(super) fn unsupported_reason(&self, pattern: &AccessPattern) -> Option<String> {
        if self.is_coherent || pattern.is_private(self.page_bytes) {
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
pub(super) fn spans_hosts(request: &OpenRequest<'_>) -> Result<bool> {
    if request.comm.size() == 1 {
        return Ok(false);
    }
    let node = request.comm.node().map_err(|e| {
        let text = format!("the ranks of this host cannot be determined: {e}");
        BackendError::new("MPI_Comm_split_type", request.path, FailureCause::Io, text)
    })?;
    Ok(node.is_none_or(|node| node.size() < request.comm.size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;

    #[test]
    fn shared_pages_are_refused_on_several_hosts_only() {
        let shared =
            AccessPattern { stride_bytes: 2 * 1032, ranks: 2, rank_distance_bytes: 1032, ..pattern(1032, 1, 9) };
        let aligned =
            AccessPattern { stride_bytes: 2 * 8192, ranks: 2, rank_distance_bytes: 8192, ..pattern(8192, 1, 9) };
        let segment = AccessPattern { ranks: 2, rank_distance_bytes: 1 << 20, ..pattern(1032, 1, 9) };
        let lonely = MappingCoherence { is_coherent: false, page_bytes: 4096 };
        assert!(lonely.unsupported_reason(&shared).unwrap().contains("several hosts"));
        for harmless in [aligned, segment, pattern(1032, 1, 9)] {
            assert_eq!(lonely.unsupported_reason(&harmless), None);
        }
        assert_eq!(MappingCoherence { is_coherent: true, ..lonely }.unsupported_reason(&shared), None);
    }

    #[test]
    fn one_host_shares_on_any_file_system() {
        let file = tempfile::tempfile().unwrap();
        assert!(MappingCoherence::new(&file, false).unwrap().is_coherent);
        assert!(!MappingCoherence::new(&File::open("/proc/self/status").unwrap(), true).unwrap().is_coherent);
    }
}
