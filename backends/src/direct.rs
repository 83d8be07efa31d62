//! One file under a direct-I/O policy: a buffered descriptor, a second one with O_DIRECT where that is possible, and
//! the choice between them for a pattern.
//!
//! Both descriptors of a file may be used one after the other: a direct transfer first writes back and then drops the
//! cached pages of its range, and every write pattern ends with a sync of all ranks before any of them starts the
//! next one. Within one pattern all ranks decide alike, because they share chunk, stride and origin. So no page is
//! written through the cache by one rank while another writes a part of it directly, which would lose data.

use std::fs::{File, OpenOptions};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Cause;
use crate::statx::direct_align;
use crate::{AccessKind, BackendError, Direct, InForce, OpenMode, OpenRequest, Pattern, Result};

/// What [`crate::Ring`] guarantees for windows at aligned stream positions.
const RING_ALIGN_BYTES: u64 = 4096;

/// The two ways to one file.
#[derive(Debug)]
pub(crate) struct FdPair {
    pub(crate) path: PathBuf,
    pub(crate) buffered: File,
    direct: DirectFd,
    policy: Direct,
}

/// The descriptor with O_DIRECT, or why there is none.
#[derive(Debug)]
enum DirectFd {
    NotWanted,
    Ready { file: File, align_bytes: u64 },
    Impossible(String),
}

/// How whole aligned domains of a file are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domains {
    pub(crate) direct: bool,
    pub(crate) align_bytes: u64,
    /// Why not direct, where that would have been preferred.
    pub(crate) reason: Option<String>,
}

/// How the transfers of one pattern go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Through the page cache; the reason where direct I/O would have been preferred.
    Buffered { reason: Option<String> },
    /// O_DIRECT; every offset, length and address is a multiple of `align_bytes`.
    Direct { align_bytes: u64 },
}

impl Route {
    /// True if a transfer that stopped after `moved_bytes` can go on from there: a direct one can only from an
    /// aligned place, and stops elsewhere only at the end of the file.
    #[inline]
    pub(crate) fn can_continue(&self, moved_bytes: u64) -> bool {
        match self {
            Self::Buffered { .. } => true,
            Self::Direct { align_bytes } => moved_bytes % align_bytes == 0,
        }
    }
}

impl FdPair {
    /// Opens the file of a request; collective over its communicator. A new file is made by rank 0 alone, and the
    /// others open it once rank 0 has told them that it exists.
    pub(crate) fn open(request: &OpenRequest<'_>, policy: Direct) -> Result<Self> {
        let agree = |made: bool| {
            request.comm.bcast_flag(made).map_err(|e| {
                let text = format!("agreement on the new file failed: {e}");
                failure("open", request.path, Cause::Io, text)
            })
        };
        Self::open_as(request.path, request.mode, policy, request.comm.rank() == 0, agree)
    }

    /// [`FdPair::open`] without a communicator: `creates` is true on rank 0, `agree` gives rank 0's value to all.
    pub(crate) fn open_as(
        path: &Path,
        mode: OpenMode,
        policy: Direct,
        creates: bool,
        agree: impl FnOnce(bool) -> Result<bool>,
    ) -> Result<Self> {
        let buffered = if mode == OpenMode::CreateNew {
            create_agreed(path, creates, agree)?
        } else {
            options(mode).open(path).map_err(|e| BackendError::from_io("open", path, None, &e))?
        };
        let direct = match policy {
            Direct::Off => DirectFd::NotWanted,
            Direct::Auto | Direct::Required => open_direct(&buffered, path, mode),
        };
        Ok(Self { path: path.into(), buffered, direct, policy })
    }

    /// [`FdPair::open_as`] for one rank alone.
    #[cfg(test)]
    pub(crate) fn open_alone(path: &Path, mode: OpenMode, policy: Direct) -> Result<Self> {
        Self::open_as(path, mode, policy, true, Ok)
    }

    /// The way of a pattern.
    ///
    /// # Errors
    /// The reason why a pattern cannot be run under [`Direct::Required`].
    pub(crate) fn route(&self, pattern: &Pattern) -> std::result::Result<Route, String> {
        let reason = match &self.direct {
            DirectFd::NotWanted => return Ok(Route::Buffered { reason: None }),
            DirectFd::Ready { align_bytes, .. } => match misaligned(pattern, *align_bytes) {
                None => return Ok(Route::Direct { align_bytes: *align_bytes }),
                Some(reason) => reason,
            },
            DirectFd::Impossible(reason) => reason.clone(),
        };
        match self.policy {
            Direct::Required => Err(reason),
            Direct::Auto | Direct::Off => Ok(Route::Buffered { reason: Some(reason) }),
        }
    }

    /// As [`FdPair::route`], with the refusal as an error of `prepare`.
    pub(crate) fn route_or_error(&self, pattern: &Pattern) -> Result<Route> {
        self.route(pattern).map_err(|reason| {
            let text = format!("direct I/O is required, but {reason}; use --direct auto");
            failure("prepare", &self.path, Cause::Unsupported, text)
        })
    }

    /// How whole domains of the file are moved, whatever the pattern; None if only direct transfers are wanted and there
    /// are none.
    pub(crate) fn domains(&self) -> Option<Domains> {
        match (&self.direct, self.policy) {
            (DirectFd::Ready { align_bytes, .. }, _) => {
                Some(Domains { direct: true, align_bytes: *align_bytes, reason: None })
            }
            (DirectFd::NotWanted, _) => Some(Domains { direct: false, align_bytes: RING_ALIGN_BYTES, reason: None }),
            (DirectFd::Impossible(_), Direct::Required) => None,
            (DirectFd::Impossible(reason), _) => {
                Some(Domains { direct: false, align_bytes: RING_ALIGN_BYTES, reason: Some(reason.clone()) })
            }
        }
    }

    /// The descriptor of [`FdPair::domains`].
    pub(crate) fn of_domains(&self, direct: bool) -> &File {
        self.direct_file().filter(|_| direct).unwrap_or(&self.buffered)
    }

    /// The descriptor with O_DIRECT, if there is one.
    pub(crate) fn direct_file(&self) -> Option<&File> {
        match &self.direct {
            DirectFd::Ready { file, .. } => Some(file),
            DirectFd::NotWanted | DirectFd::Impossible(_) => None,
        }
    }

    /// The descriptor of a route.
    pub(crate) fn file(&self, route: &Route) -> &File {
        match route {
            Route::Direct { .. } => self.direct_file().unwrap_or(&self.buffered),
            Route::Buffered { .. } => &self.buffered,
        }
    }

    /// fsync(2): writes back what either descriptor has written, and its metadata.
    pub(crate) fn sync(&self) -> Result<()> {
        self.buffered.sync_all().map_err(|e| BackendError::from_io("fsync", &self.path, None, &e))
    }

    /// Closes both descriptors and reports what close(2) says; a dropped [`File`] would not.
    pub(crate) fn close(self) -> Result<()> {
        let direct = match self.direct {
            DirectFd::Ready { file, .. } => close_file(file),
            DirectFd::NotWanted | DirectFd::Impossible(_) => Ok(()),
        };
        let buffered = close_file(self.buffered);
        direct.and(buffered).map_err(|e| BackendError::from_io("close", &self.path, None, &e))
    }
}

/// The report of a prepared pattern: `call` and how it stands for the kind of access, then the route.
pub(crate) fn in_force(call: &str, kind: AccessKind, route: &Route) -> InForce {
    let kind = match kind {
        AccessKind::Independent => "",
        AccessKind::Collective => " at the same offsets (no collective call)",
        AccessKind::SharedOrdered => " at the offsets of the rank order (no shared pointer, no collective call)",
    };
    let (direct, how) = match route {
        Route::Direct { align_bytes } => (true, format!("O_DIRECT, aligned to {align_bytes}")),
        Route::Buffered { reason: None } => (false, "buffered".to_owned()),
        Route::Buffered { reason: Some(reason) } => (false, format!("buffered, not direct: {reason}")),
    };
    InForce { strategy: format!("{call}{kind}, {how}"), direct: Some(direct) }
}

/// A batch before its pattern.
pub(crate) fn not_prepared(operation: &'static str, path: &Path) -> BackendError {
    failure(operation, path, Cause::Unsupported, "no pattern is prepared: call prepare() first".into())
}

/// An error without an offset.
pub(crate) fn failure(operation: &'static str, path: &Path, cause: Cause, text: String) -> BackendError {
    BackendError { operation, path: path.into(), offset_bytes: None, expected_got_bytes: None, cause, text }
}

/// Why a pattern cannot be issued directly with this alignment.
fn misaligned(pattern: &Pattern, align_bytes: u64) -> Option<String> {
    if pattern.is_aligned(align_bytes) {
        return None;
    }
    let parts = [
        ("chunk", pattern.chunk_bytes),
        ("stride", pattern.stride_bytes),
        ("first offset", pattern.base_bytes),
        ("position in memory", pattern.stream_bytes),
    ];
    let wrong = parts.iter().filter(|(_, value)| value % align_bytes != 0);
    let wrong: Vec<_> = wrong.map(|(name, value)| format!("{name} {value}")).collect();
    Some(format!("{} is no multiple of {align_bytes}", wrong.join(" and ")))
}

/// Exclusive creation on one rank, then the agreement, then the open of the others. Every rank reaches the
/// agreement, so that none waits for ever.
fn create_agreed(path: &Path, creates: bool, agree: impl FnOnce(bool) -> Result<bool>) -> Result<File> {
    let open = |options: &OpenOptions| options.open(path).map_err(|e| BackendError::from_io("open", path, None, &e));
    if creates {
        let made = open(options(OpenMode::CreateNew).create_new(true));
        agree(made.is_ok())?;
        return made;
    }
    if !agree(true)? {
        let text = "rank 0 could not create the file; its own message says why".into();
        return Err(failure("open", path, Cause::Path, text));
    }
    open(&options(OpenMode::Update))
}

fn options(mode: OpenMode) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(mode != OpenMode::ReadOnly);
    options
}

/// Opens the second descriptor if the file system names an alignment that the ring can give.
fn open_direct(buffered: &File, path: &Path, mode: OpenMode) -> DirectFd {
    let align = match direct_align(buffered) {
        Ok(Some(align)) => align,
        Ok(None) => {
            let text = "the file system gives no alignment for direct I/O (statx STATX_DIOALIGN, Linux 6.1)";
            return DirectFd::Impossible(text.into());
        }
        Err(e) => return DirectFd::Impossible(format!("statx for the alignment of direct I/O failed: {e}")),
    };
    if RING_ALIGN_BYTES % align.memory_bytes != 0 {
        return DirectFd::Impossible(format!(
            "the file system wants memory aligned to {} bytes, the buffers are aligned to {RING_ALIGN_BYTES}",
            align.memory_bytes
        ));
    }
    match options(mode).custom_flags(libc::O_DIRECT).open(path) {
        Ok(file) => DirectFd::Ready { file, align_bytes: align.both_bytes() },
        Err(e) => DirectFd::Impossible(format!("the open with O_DIRECT failed: {e}")),
    }
}

fn close_file(file: File) -> std::io::Result<()> {
    // SAFETY: `into_raw_fd` hands over the only ownership of an open descriptor, and it is used nowhere after.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    // On Linux the descriptor is gone also when a signal came in between (close(2)).
    if error.kind() == std::io::ErrorKind::Interrupted {
        Ok(())
    } else {
        Err(error)
    }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
