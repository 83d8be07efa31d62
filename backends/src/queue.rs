//! A queue of io_uring with the best setup flags of the kernel, and with registered files and memory. [`in_flight`] ensures that no
//! operation outlives its batch.

pub(crate) mod in_flight;

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use io_uring::types::Fixed;
use io_uring::{opcode, squeue, Builder, IoUring};

use crate::direct::FdPair;
use crate::error::FailureCause;
use crate::{BackendError, Direction, Result, SubmissionStatistics, TransferBuffer};

/// Maximum length of one operation and of one registered buffer: 1 GiB (io_uring_register(2)).
pub(crate) const MAX_BUFFER_SHIFT: u32 = 30;
/// Maximum number of entries of a submission queue (io_uring_setup(2)).
const MAX_DEPTH: u32 = 32768;

/// A submission and completion queue for one file.
pub(crate) struct Queue {
    pub(crate) ring: IoUring,
    depth: u32,
    flags: &'static str,
    pub(crate) buffer_shift: u32,
    pub(crate) registration: BufferRegistration,
    /// The queue contains submissions that must never reach the kernel.
    pub(crate) abandoned: bool,
    /// Operations in flight between two [`in_flight::InFlightOperations`].
    pub(crate) in_flight: usize,
    /// Submitted operations.
    pub(crate) submitted: SubmissionStatistics,
}

/// State of the registered memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BufferRegistration {
    /// None requested.
    None,
    /// All memory of these transfer buffers, in order, divided into registered buffers.
    Registered { buffer_ids: Vec<u64> },
    /// Refused by the kernel, with the reason.
    Refused { buffer_ids: Vec<u64>, reason: String },
}

impl BufferRegistration {
    pub(crate) fn is_registered(&self) -> bool {
        matches!(self, Self::Registered { .. })
    }

    /// True if the registration of exactly these buffers, in this order, was tried.
    pub(crate) fn covers(&self, ids: &[u64]) -> bool {
        match self {
            Self::None => false,
            Self::Registered { buffer_ids } | Self::Refused { buffer_ids, .. } => buffer_ids == ids,
        }
    }
}

type SetupFlags = fn(&mut Builder) -> &mut Builder;

/// Setup flags from the newest to none; a kernel returns EINVAL for unknown flags.
const SETUP_FLAGS: [(&str, SetupFlags); 4] = [
    ("SINGLE_ISSUER|DEFER_TASKRUN|COOP_TASKRUN|SUBMIT_ALL", |b| {
        b.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_submit_all()
    }),
    ("SINGLE_ISSUER|COOP_TASKRUN|SUBMIT_ALL", |b| b.setup_single_issuer().setup_coop_taskrun().setup_submit_all()),
    ("COOP_TASKRUN|SUBMIT_ALL", |b| b.setup_coop_taskrun().setup_submit_all()),
    ("no setup flags", |b| b),
];

/// Parameters of all operations of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferMode {
    pub(crate) direction: Direction,
    /// The file with O_DIRECT, or the buffered one.
    pub(crate) direct: bool,
    /// RWF_ flags of every operation.
    pub(crate) flags: i32,
}

impl TransferMode {
    /// An operation for `len` bytes of memory and the file from `offset` on. `buffer`: number of the registered buffer that contains the
    /// memory.
    ///
    /// The caller that submits it guarantees the memory.
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

/// Index of the buffered descriptor among the registered files.
const BUFFERED: u32 = 0;
/// Index of the descriptor with O_DIRECT, or a duplicate of the buffered one.
const DIRECT: u32 = 1;

impl Queue {
    /// A queue for both descriptors of a file, registered under their index.
    pub(crate) fn for_files(files: &FdPair, queue_depth: u32, piece_shift: u32) -> Result<Self> {
        let buffered = files.buffered.as_raw_fd();
        let fds = [buffered, files.direct_file().map_or(buffered, AsRawFd::as_raw_fd)];
        Self::new(queue_depth, &fds, piece_shift, &files.path)
    }

    /// Creates the queue and registers `fds` under their index.
    ///
    /// # Errors
    /// If io_uring is not available, with its settings.
    pub(crate) fn new(queue_depth: u32, fds: &[RawFd], piece_shift: u32, path: &Path) -> Result<Self> {
        let queue = Self::without_files(queue_depth, piece_shift, path)?;
        let files = queue.ring.submitter().register_files(fds);
        files.map_err(|e| BackendError::from_io("io_uring_register (files)", path, None, &e))?;
        Ok(queue)
    }

    /// A queue for operations with unregistered descriptors and addresses.
    pub(crate) fn without_files(queue_depth: u32, piece_shift: u32, path: &Path) -> Result<Self> {
        let (buffer, depth, flags) = build_rings(queue_depth, path)?;
        let piece_shift = piece_shift.min(MAX_BUFFER_SHIFT);
        Ok(Self {
            ring: buffer,
            depth,
            flags,
            buffer_shift: piece_shift,
            registration: BufferRegistration::None,
            abandoned: false,
            in_flight: 0,
            submitted: SubmissionStatistics::default(),
        })
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Registers all memory of `rings` instead of the previous buffers. A refusal for lack of lockable memory is not an error: transfers
    /// then use addresses, and [`Queue::describe`] reports it.
    pub(crate) fn register_memory(&mut self, buffers: &mut [&mut TransferBuffer], path: &Path) -> Result<()> {
        let buffer_ids: Vec<u64> = buffers.iter().map(|buffer| buffer.id()).collect();
        if self.registration.covers(&buffer_ids) {
            return Ok(());
        }
        self.unregister_memory();
        // Including the slack, in which whole sectors may end.
        let all = buffers.iter_mut().flat_map(|buffer| buffer.mapped_mut().chunks_mut(1 << self.buffer_shift));
        let pieces: Vec<_> =
            all.map(|piece| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() }).collect();
        // SAFETY: every iovec is a part of the mapping of a transfer buffer. The kernel pins its pages until they are unregistered, so
        // they exist even if the buffer is unmapped first, and transfers are issued only while the buffer of the id is borrowed.
        match unsafe { self.ring.submitter().register_buffers(&pieces) } {
            Ok(()) => self.registration = BufferRegistration::Registered { buffer_ids },
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM)) => {
                let total_bytes = pieces.iter().map(|piece| piece.iov_len).sum();
                self.registration =
                    BufferRegistration::Refused { buffer_ids, reason: registration_refusal(&error, total_bytes) };
            }
            Err(error) => return Err(BackendError::from_io("io_uring_register (buffers)", path, None, &error)),
        }
        Ok(())
    }

    pub(crate) fn flags(&self) -> &'static str {
        self.flags
    }

    /// Description for the report. `memory`: which transfers use registered memory.
    pub(crate) fn describe(&self, memory: &str) -> String {
        let memory = match &self.registration {
            BufferRegistration::None => "no buffers registered".to_owned(),
            BufferRegistration::Registered { .. } => format!("registered file, {memory}"),
            BufferRegistration::Refused { reason, .. } => {
                format!("registered file, buffers NOT registered: {reason}")
            }
        };
        format!("{memory}, {}", self.flags)
    }

    fn unregister_memory(&mut self) {
        if self.registration.is_registered() {
            // Fails only if nothing is registered.
            let _ = self.ring.submitter().unregister_buffers();
        }
        self.registration = BufferRegistration::None;
    }
}

impl Drop for Queue {
    /// Unpins memory and releases the files now: the kernel destroys a closed ring later, and until then locked memory counts against the
    /// limit of the next one.
    fn drop(&mut self) {
        self.unregister_memory();
        let _ = self.ring.submitter().unregister_files();
    }
}

pub(crate) fn abandoned_error(operation: &'static str, path: &Path) -> BackendError {
    let text = "the queue was abandoned after an earlier error: close the file and reopen it";
    BackendError::new(operation, path, FailureCause::Io, text)
}

fn build_rings(queue_depth: u32, path: &Path) -> Result<(IoUring, u32, &'static str)> {
    let depth = queue_depth.clamp(1, MAX_DEPTH);
    let (ring, flags) = build(depth).map_err(|e| unavailable_error(path, &e))?;
    Ok((ring, depth, flags))
}

fn build(depth: u32) -> io::Result<(IoUring, &'static str)> {
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for (flags, setup) in SETUP_FLAGS {
        match setup(&mut IoUring::builder()).build(depth) {
            Ok(ring) => return Ok((ring, flags)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

fn unavailable_error(path: &Path, error: &io::Error) -> BackendError {
    let setting = match std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        Ok(value) => format!("kernel.io_uring_disabled is {}", value.trim()),
        Err(_) => "this kernel has no kernel.io_uring_disabled".to_owned(),
    };
    let cause = match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => FailureCause::Unsupported,
        _ => FailureCause::Io,
    };
    let hint = match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel is older than 5.1, built without io_uring, or a seccomp filter hides it",
        Some(libc::EPERM) => {
            "a seccomp filter (usual in containers) or the sysctl forbids it; `sysctl kernel.io_uring_disabled=0` allows it"
        }
        Some(libc::ENOMEM) => "the limit of locked memory is too small for the queue: raise `ulimit -l` or lower the queue depth",
        _ => "see io_uring_setup(2)",
    };
    let text =
        format!("io_uring is not available: {error}; {setting}; {hint}. The posix driver does not need io_uring");
    BackendError::new("io_uring_setup", path, cause, text)
}

/// Why memory could not be registered, with the limit and remedies.
fn registration_refusal(error: &io::Error, total_bytes: usize) -> String {
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
    fn all_setup_flags_are_known_or_refused_as_invalid() {
        for (flags, setup) in SETUP_FLAGS {
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
            let error = unavailable_error(Path::new("f"), &io::Error::from_raw_os_error(errno));
            assert_eq!(error.cause, FailureCause::Unsupported);
            assert!(error.text.contains("kernel.io_uring_disabled"), "{error}");
        }
    }
}
