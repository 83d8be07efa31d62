//! A queue of io_uring: made with the best flags the kernel has, with the files and the memory of the transfers
//! registered. [`flight`] keeps operations from outliving the batch that made them.

pub(crate) mod flight;

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use io_uring::types::Fixed;
use io_uring::{opcode, squeue, Builder, IoUring};

use crate::direct::FdPair;
use crate::error::Cause;
use crate::{BackendError, Direction, Result, Ring, Submitted};

/// One operation and one registered buffer are at most 1 GiB long (io_uring_register(2)).
pub(crate) const MAX_PIECE_SHIFT: u32 = 30;
/// Entries of a submission queue at most (io_uring_setup(2)).
const MAX_DEPTH: u32 = 32768;

/// A submission and completion queue for one file.
pub(crate) struct Queue {
    pub(crate) ring: IoUring,
    depth: u32,
    flags: &'static str,
    pub(crate) piece_shift: u32,
    pub(crate) memory: Memory,
    /// Submissions were left behind that must never reach the kernel.
    pub(crate) abandoned: bool,
    /// Operations that the last [`flight::Flight`] left to the next one.
    pub(crate) in_flight: usize,
    /// Operations so far.
    pub(crate) submitted: Submitted,
}

/// Whether transfers use registered memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// None given yet.
    None,
    /// The whole memory of these rings, in pieces, one ring after the other.
    Registered { ring_ids: Vec<u64> },
    /// The kernel did not allow it; why.
    Refused { ring_ids: Vec<u64>, reason: String },
}

impl Memory {
    pub(crate) fn is_registered(&self) -> bool {
        matches!(self, Self::Registered { .. })
    }

    /// True if it was given exactly these rings, in this order, whatever came of it.
    pub(crate) fn is_of(&self, ids: &[u64]) -> bool {
        match self {
            Self::None => false,
            Self::Registered { ring_ids } | Self::Refused { ring_ids, .. } => ring_ids == ids,
        }
    }
}

type Setup = fn(&mut Builder) -> &mut Builder;

/// Flags from the newest to none; a kernel that does not know one says EINVAL.
const CHAIN: [(&str, Setup); 4] = [
    ("SINGLE_ISSUER|DEFER_TASKRUN|COOP_TASKRUN|SUBMIT_ALL", |b| {
        b.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_submit_all()
    }),
    ("SINGLE_ISSUER|COOP_TASKRUN|SUBMIT_ALL", |b| b.setup_single_issuer().setup_coop_taskrun().setup_submit_all()),
    ("COOP_TASKRUN|SUBMIT_ALL", |b| b.setup_coop_taskrun().setup_submit_all()),
    ("no setup flags", |b| b),
];

/// What is the same for all operations of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) direction: Direction,
    /// The file past the page cache, or the one through it.
    pub(crate) direct: bool,
    /// RWF_ flags of every operation.
    pub(crate) flags: i32,
}

impl Way {
    /// The operation for `len` bytes of memory and the file from `offset` on. `buffer`: number of the registered buffer that
    /// holds the memory.
    ///
    /// Whoever submits it answers for the memory.
    #[inline]
    pub(crate) fn entry(self, offset: u64, memory: *mut u8, len: u32, buffer: Option<u16>) -> squeue::Entry {
        let (file, flags) = (Fixed(if self.direct { DIRECT } else { BUFFERED }), self.flags);
        match (self.direction, buffer) {
            (Direction::Write, Some(b)) => {
                opcode::WriteFixed::new(file, memory, len, b).offset(offset).rw_flags(flags).build()
            }
            (Direction::Write, None) => opcode::Write::new(file, memory, len).offset(offset).rw_flags(flags).build(),
            (Direction::Read, Some(b)) => {
                opcode::ReadFixed::new(file, memory, len, b).offset(offset).rw_flags(flags).build()
            }
            (Direction::Read, None) => opcode::Read::new(file, memory, len).offset(offset).rw_flags(flags).build(),
        }
    }
}

/// Place of the buffered descriptor among the registered files.
const BUFFERED: u32 = 0;
/// Place of the descriptor with O_DIRECT, or of the buffered one again.
const DIRECT: u32 = 1;

impl Queue {
    /// A queue for both descriptors of a file, each under its place.
    ///
    /// # Errors
    /// As for [`Queue::new`].
    pub(crate) fn of(files: &FdPair, queue_depth: u32, piece_shift: u32) -> Result<Self> {
        let buffered = files.buffered.as_raw_fd();
        let fds = [buffered, files.direct_file().map_or(buffered, AsRawFd::as_raw_fd)];
        Self::new(queue_depth, &fds, piece_shift, &files.path)
    }

    /// Makes the queue and registers `fds` under their index.
    ///
    /// # Errors
    /// If io_uring is not available, with what to look at.
    pub(crate) fn new(queue_depth: u32, fds: &[RawFd], piece_shift: u32, path: &Path) -> Result<Self> {
        let queue = Self::without_files(queue_depth, piece_shift, path)?;
        let files = queue.ring.submitter().register_files(fds);
        files.map_err(|e| BackendError::from_io("io_uring_register (files)", path, None, &e))?;
        Ok(queue)
    }

    /// A queue for operations that name descriptors and addresses.
    ///
    /// # Errors
    /// As for [`Queue::new`].
    pub(crate) fn without_files(queue_depth: u32, piece_shift: u32, path: &Path) -> Result<Self> {
        let (ring, depth, flags) = rings(queue_depth, path)?;
        let piece_shift = piece_shift.min(MAX_PIECE_SHIFT);
        Ok(Self {
            ring,
            depth,
            flags,
            piece_shift,
            memory: Memory::None,
            abandoned: false,
            in_flight: 0,
            submitted: Submitted::default(),
        })
    }

    /// Operations in flight at most.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Registers the whole memory of `rings` in place of others'. A refusal for lack of lockable memory is not
    /// an error: transfers then name addresses, and [`Queue::describe`] says so.
    pub(crate) fn register_memory(&mut self, rings: &mut [&mut Ring], path: &Path) -> Result<()> {
        let ring_ids: Vec<u64> = rings.iter().map(|ring| ring.id()).collect();
        if self.memory.is_of(&ring_ids) {
            return Ok(());
        }
        self.unregister_memory();
        // With the slack: whole sectors may end there.
        let all = rings.iter_mut().flat_map(|ring| ring.mapped_mut().chunks_mut(1 << self.piece_shift));
        let pieces: Vec<_> =
            all.map(|piece| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() }).collect();
        // SAFETY: every iovec is a piece of the mapping of a ring. The kernel pins its pages until they are
        // unregistered, so they exist even if the ring is unmapped first, and transfers are issued only while the
        // ring of the id is borrowed.
        match unsafe { self.ring.submitter().register_buffers(&pieces) } {
            Ok(()) => self.memory = Memory::Registered { ring_ids },
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM)) => {
                let total_bytes = pieces.iter().map(|piece| piece.iov_len).sum();
                self.memory = Memory::Refused { ring_ids, reason: refusal(&error, total_bytes) };
            }
            Err(error) => return Err(BackendError::from_io("io_uring_register (buffers)", path, None, &error)),
        }
        Ok(())
    }

    /// The setup flags in force.
    pub(crate) fn flags(&self) -> &'static str {
        self.flags
    }

    /// What is in force, for the report. `memory`: what of the transfers lies in the memory that is registered.
    pub(crate) fn describe(&self, memory: &str) -> String {
        let memory = match &self.memory {
            Memory::None => "no memory given".to_owned(),
            Memory::Registered { .. } => format!("registered file, {memory}"),
            Memory::Refused { reason, .. } => {
                format!("registered file, buffers NOT registered: {reason}")
            }
        };
        format!("{memory}, {}", self.flags)
    }

    fn unregister_memory(&mut self) {
        if self.memory.is_registered() {
            // Fails only if nothing is registered.
            let _ = self.ring.submitter().unregister_buffers();
        }
        self.memory = Memory::None;
    }
}

impl Drop for Queue {
    /// Unpins memory and lets go of the files now: the kernel tears a closed ring down later, and until then locked
    /// memory counts against the limit of the next one.
    fn drop(&mut self) {
        self.unregister_memory();
        let _ = self.ring.submitter().unregister_files();
    }
}

/// The error of a queue that was given up.
pub(crate) fn abandoned(operation: &'static str, path: &Path) -> BackendError {
    let text = "the queue was given up after an earlier error: close the file and open it again";
    BackendError::new(operation, path, Cause::Io, text)
}

/// Rings with room for the depth.
fn rings(queue_depth: u32, path: &Path) -> Result<(IoUring, u32, &'static str)> {
    let depth = queue_depth.clamp(1, MAX_DEPTH);
    let (ring, flags) = build(depth).map_err(|e| unavailable(path, &e))?;
    Ok((ring, depth, flags))
}

fn build(depth: u32) -> io::Result<(IoUring, &'static str)> {
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for (flags, setup) in CHAIN {
        match setup(&mut IoUring::builder()).build(depth) {
            Ok(ring) => return Ok((ring, flags)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// The error of a system without io_uring.
fn unavailable(path: &Path, error: &io::Error) -> BackendError {
    let setting = match std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        Ok(value) => format!("kernel.io_uring_disabled is {}", value.trim()),
        Err(_) => "this kernel has no kernel.io_uring_disabled".to_owned(),
    };
    let cause = match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => Cause::Unsupported,
        _ => Cause::Io,
    };
    let hint = match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel is older than 5.1, built without io_uring, or a seccomp filter hides it",
        Some(libc::EPERM) => {
            "a seccomp filter (usual in containers) or the sysctl forbids it; `sysctl kernel.io_uring_disabled=0` allows it"
        }
        Some(libc::ENOMEM) => "the limit of locked memory is too small for the queue: raise `ulimit -l` or lower the queue depth",
        _ => "see io_uring_setup(2)",
    };
    let text = format!("io_uring is not available: {error}; {setting}; {hint}. The posix driver needs none of this");
    BackendError::new("io_uring_setup", path, cause, text)
}

/// Why memory could not be registered, with the limit and the way out.
fn refusal(error: &io::Error, total_bytes: usize) -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable memory of exactly one struct rlimit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) } == 0;
    let limit = match known {
        true if limit.rlim_cur == libc::RLIM_INFINITY => "unlimited".to_owned(),
        true => format!("{} bytes", limit.rlim_cur),
        false => "unknown".to_owned(),
    };
    let kib = total_bytes.div_ceil(1024);
    format!(
        "{error}; RLIMIT_MEMLOCK is {limit}, this rank needs {total_bytes} bytes for each open file, and the kernel counts \
         all processes of a user together. Raise it to {kib} KiB times the ranks of the host or more: `ulimit -l {kib}` \
         before mpirun, LimitMEMLOCK={kib}K in a systemd unit, or `* - memlock {kib}` in /etc/security/limits.conf"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_chain_is_known_here_or_refused_as_invalid() {
        for (flags, setup) in CHAIN {
            match setup(&mut IoUring::builder()).build(4) {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{flags}: {error}")
                }
            }
        }
    }

    #[test]
    fn missing_io_uring_names_the_setting() {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let error = unavailable(Path::new("f"), &io::Error::from_raw_os_error(errno));
            assert_eq!(error.cause, Cause::Unsupported);
            assert!(error.text.contains("kernel.io_uring_disabled"), "{error}");
        }
    }
}
