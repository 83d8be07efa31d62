//! One file under a direct-I/O policy: a buffered descriptor, a second one with O_DIRECT where that is possible, and
//! the choice between them ([`Route`]). Whoever works on descriptors opens, syncs and closes them here.
//!
//! Both descriptors of a file may be used one after the other: a direct transfer first writes back and then drops the
//! cached pages of its range, and every write pattern ends with a sync of all ranks before any of them starts the
//! next one. Within one pattern all ranks decide alike, because they share chunk, stride and origin. So no page is
//! written through the cache by one rank while another writes a part of it directly, which would lose data.
//!
//! # Four routes
//!
//! Alignment is what statx(2) tells (STATX_DIOALIGN, and STATX_DIO_READ_ALIGN where the kernel has it), or a block where the kernel
//! may fall back to the page cache by itself (see `statx`); that an open with O_DIRECT succeeded proves nothing.
//!
//! 1. **Aligned**: every offset, length and address is a multiple of the sector. Straight between ring and file.
//! 2. **With edges**: not aligned, but the rank's bytes are contiguous in the file and share no sector with other ranks. See `edges`.
//!    First writes take blocks of the file system for sectors where a chunk is as long as one.
//! 3. **Two-phase**: ranks share sectors, or blocks of a new file. See `two_phase`.
//! 4. **Through the page cache**, with the reason, or not run where direct I/O is required.
//!
//! A plain read-modify-write of shared sectors would be simpler and loses the half sector of whoever wrote first. It is there as a
//! hidden value of `--collective`, so that a test can show that this is found.

use std::fs::File;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;

use nix::fcntl::OFlag;

use crate::directory::FilePath;
use crate::edges::{edge_failure, Edges, Stretch, MAX_SECTOR_BYTES};
use crate::error::Cause;
use crate::route::{direct_route, has_edges, Route};
use crate::statx::{direct_align, DirectAlign, BLOCK_MAPPED};
use crate::{
    AccessKind, BackendError, Collective, Direct, Direction, DriverOptions, InForce, OpenMode, OpenRequest, Pattern,
    Result, Ring,
};

/// What [`crate::Ring`] guarantees for windows at aligned stream positions.
const RING_ALIGN_BYTES: u64 = 4096;

/// What the options say about the way of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) direct: Direct,
    /// RWF_DONTCACHE on buffered transfers.
    pub(crate) dont_cache: bool,
    pub(crate) collective: Collective,
}

impl From<&DriverOptions> for Policy {
    fn from(options: &DriverOptions) -> Self {
        Self { direct: options.direct, dont_cache: options.dont_cache, collective: options.collective }
    }
}

impl From<Direct> for Policy {
    fn from(direct: Direct) -> Self {
        Self::from(&DriverOptions { direct, ..DriverOptions::default() })
    }
}

/// The two ways to one file.
#[derive(Debug)]
pub(crate) struct FdPair {
    pub(crate) path: PathBuf,
    pub(crate) buffered: File,
    direct: DirectFd,
    policy: Policy,
    edges: Edges,
    /// The file was made by this opening: writes find no blocks in it.
    is_new: bool,
}

/// The descriptor with O_DIRECT, or why there is none.
#[derive(Debug)]
enum DirectFd {
    NotWanted,
    Ready { file: File, align: DirectAlign },
    Impossible(String),
}

impl DirectFd {
    fn file(&self) -> Option<&File> {
        match self {
            Self::Ready { file, .. } => Some(file),
            Self::NotWanted | Self::Impossible(_) => None,
        }
    }
}

/// How whole aligned domains of a file are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Domains {
    pub(crate) direct: bool,
    pub(crate) align_bytes: u64,
    /// Why not direct, where that would have been preferred.
    pub(crate) reason: Option<String>,
}

impl FdPair {
    /// Opens the file of a request; collective over its communicator. A new file is made by rank 0 alone, and the
    /// others open it once rank 0 has told them that it exists.
    pub(crate) fn open(request: &OpenRequest<'_>, policy: Policy) -> Result<Self> {
        let agree = |made: bool| {
            request.comm.bcast_flag(made).map_err(|e| {
                let text = format!("agreement on the new file failed: {e}");
                BackendError::new("open", request.path, Cause::Io, text)
            })
        };
        Self::open_as(request.path, request.mode, policy, request.comm.rank() == 0, agree)
    }

    /// [`FdPair::open`] without a communicator: `creates` is true on rank 0, `agree` gives rank 0's value to all.
    pub(crate) fn open_as(
        path: &FilePath,
        mode: OpenMode,
        policy: impl Into<Policy>,
        creates: bool,
        agree: impl FnOnce(bool) -> Result<bool>,
    ) -> Result<Self> {
        let policy = policy.into();
        let buffered = if mode == OpenMode::CreateNew {
            create_agreed(path, creates, agree)?
        } else {
            path.open(flags(mode)).map_err(|e| BackendError::from_io("open", path, None, &e))?
        };
        let direct = match policy.direct {
            Direct::Off => DirectFd::NotWanted,
            Direct::Auto | Direct::Required => open_direct(&buffered, path, mode, policy.direct),
        };
        let edges = Edges::new().map_err(|e| BackendError::from_io("mmap (edge sectors)", path, None, &e))?;
        Ok(Self { path: path.into(), buffered, direct, policy, edges, is_new: mode == OpenMode::CreateNew })
    }

    /// [`FdPair::open_as`] for one rank alone.
    #[cfg(test)]
    pub(crate) fn open_alone(path: &std::path::Path, mode: OpenMode, policy: impl Into<Policy>) -> Result<Self> {
        let path = FilePath::of(path).map_err(|e| BackendError::from_io("open", path, None, &e))?;
        Self::open_as(&path, mode, policy, true, Ok)
    }

    /// Takes `other` for the descriptor with O_DIRECT.
    #[cfg(test)]
    pub(crate) fn force_direct_file(&mut self, other: File) {
        if let DirectFd::Ready { file, .. } = &mut self.direct {
            *file = other;
        }
    }

    /// Takes sectors of `bytes` for those of the file, as if the device had larger ones.
    #[cfg(test)]
    pub(crate) fn force_align(&mut self, bytes: u64) {
        if let DirectFd::Ready { align, .. } = &mut self.direct {
            assert!(bytes >= align.both_bytes() && bytes.is_power_of_two());
            *align = DirectAlign { offset_bytes: bytes, read_offset_bytes: bytes, block_bytes: bytes, ..*align };
        }
    }

    /// Takes the file for a new one with blocks of `bytes`.
    #[cfg(test)]
    pub(crate) fn force_block(&mut self, bytes: u64) {
        self.is_new = true;
        if let DirectFd::Ready { align, .. } = &mut self.direct {
            align.block_bytes = bytes;
        }
    }

    /// The way of a pattern in one direction. All ranks of a file come to the same answer for patterns with shared
    /// sectors, because they share chunk, stride and origin.
    ///
    /// # Errors
    /// The reason why a pattern cannot be run under [`Direct::Required`].
    pub(crate) fn route(&self, pattern: &Pattern, direction: Direction) -> std::result::Result<Route, String> {
        let reason = match &self.direct {
            DirectFd::NotWanted => return Ok(Route::Buffered { reason: None }),
            DirectFd::Ready { align, .. } => {
                match direct_route(pattern, align.bytes_of(direction), self.policy.collective) {
                    Ok(route) => return Ok(route),
                    Err(reason) => reason,
                }
            }
            DirectFd::Impossible(reason) => reason.clone(),
        };
        self.buffered_for(reason)
    }

    /// The route of a pattern that cannot be direct for this reason, which is an error where it has to be.
    fn buffered_for(&self, reason: String) -> std::result::Result<Route, String> {
        match self.policy.direct {
            Direct::Required => Err(reason),
            Direct::Auto | Direct::Off => Ok(Route::Buffered { reason: Some(reason) }),
        }
    }

    /// Why a pattern cannot be run, in either direction.
    pub(crate) fn unsupported(&self, pattern: &Pattern) -> Option<String> {
        [Direction::Write, Direction::Read].into_iter().find_map(|direction| self.route(pattern, direction).err())
    }

    /// As [`FdPair::route`] on windows of this ring, with the refusal as an error of `prepare`.
    pub(crate) fn route_or_error(&self, pattern: &Pattern, direction: Direction, ring: &Ring) -> Result<Route> {
        let route = self.route(pattern, direction).and_then(|route| self.in_memory(route, pattern, ring));
        route.map(|route| self.in_blocks(route, pattern, direction, ring)).map_err(|reason| {
            let text = format!("direct I/O is required, but {reason}; use --direct auto");
            BackendError::new("prepare", &self.path, Cause::Unsupported, text)
        })
    }

    /// The route, or another one where it needs aligned memory and the windows of the ring do not stay aligned.
    ///
    /// # Errors
    /// The reason under [`Direct::Required`].
    fn in_memory(&self, route: Route, pattern: &Pattern, ring: &Ring) -> std::result::Result<Route, String> {
        let (Route::Direct { align_bytes } | Route::DirectEdges { align_bytes }) = route else { return Ok(route) };
        if pattern.call_bytes() == 0 || pattern.stays_aligned(ring.period_bytes(), align_bytes) {
            return Ok(route);
        }
        self.buffered_for(format!("the data repeats after {} bytes, no multiple of {align_bytes}", ring.period_bytes()))
    }

    /// The route, in whole blocks of the file system where it would write parts of new ones at the edges of larger chunks: a file
    /// system fills the rest of such a block, waits for it, and lets no other write into the file meanwhile.
    fn in_blocks(&self, route: Route, pattern: &Pattern, direction: Direction, ring: &Ring) -> Route {
        let (DirectFd::Ready { align, .. }, true, Direction::Write) = (&self.direct, self.is_new, direction) else {
            return route;
        };
        let block_bytes = align.block_bytes;
        let cuts = block_bytes.is_power_of_two() && route.align_bytes().is_some_and(|bytes| bytes < block_bytes);
        if cuts && has_edges(pattern, block_bytes) && pattern.stays_aligned(ring.period_bytes(), block_bytes) {
            return Route::DirectEdges { align_bytes: block_bytes };
        }
        route
    }

    /// Refuses a pattern for this reason.
    pub(crate) fn check_form(&self, reason: Option<String>) -> Result<()> {
        reason.map_or(Ok(()), |text| Err(BackendError::new("prepare", &self.path, Cause::Unsupported, text)))
    }

    /// How whole domains of the file are moved, whatever the pattern; None if only direct transfers are wanted and there
    /// are none.
    pub(crate) fn domains(&self) -> Option<Domains> {
        match (&self.direct, self.policy.direct) {
            (DirectFd::Ready { align, .. }, _) => {
                Some(Domains { direct: true, align_bytes: self.least_domain_bytes(align), reason: None })
            }
            (DirectFd::NotWanted, _) => Some(Domains { direct: false, align_bytes: RING_ALIGN_BYTES, reason: None }),
            (DirectFd::Impossible(_), Direct::Required) => None,
            (DirectFd::Impossible(reason), _) => {
                Some(Domains { direct: false, align_bytes: RING_ALIGN_BYTES, reason: Some(reason.clone()) })
            }
        }
    }

    /// Domains end where sectors do, in a new file where its blocks do: no rank writes a part of a block that another has too.
    fn least_domain_bytes(&self, align: &DirectAlign) -> u64 {
        let is_block = align.block_bytes.is_power_of_two() && align.block_bytes <= MAX_SECTOR_BYTES;
        align.both_bytes().max(if self.is_new && is_block { align.block_bytes } else { 1 })
    }

    /// The descriptor of [`FdPair::domains`].
    pub(crate) fn of_domains(&self, direct: bool) -> &File {
        self.direct_file().filter(|_| direct).unwrap_or(&self.buffered)
    }

    /// True if the transfers of this route ask the kernel to drop their pages.
    pub(crate) fn drops_pages(&self, route: &Route) -> bool {
        self.policy.dont_cache && !route.is_direct()
    }

    /// The report of a prepared pattern: `call` and how it stands for the kind of access, then the route.
    pub(crate) fn in_force(&self, call: &str, kind: AccessKind, direction: Direction, route: &Route) -> InForce {
        let in_blocks = match (route, &self.direct) {
            (Route::DirectEdges { align_bytes }, DirectFd::Ready { align, .. }) => {
                *align_bytes > align.bytes_of(direction)
            }
            _ => false,
        };
        let told = route.in_force(call, kind, direction, if in_blocks { "blocks" } else { "sectors" });
        if !self.drops_pages(route) {
            return told;
        }
        InForce { strategy: format!("{}, pages dropped when done (RWF_DONTCACHE)", told.strategy), ..told }
    }

    /// The descriptor with O_DIRECT, if there is one.
    pub(crate) fn direct_file(&self) -> Option<&File> {
        self.direct.file()
    }

    /// The descriptor of a route.
    pub(crate) fn file(&self, route: &Route) -> &File {
        match self.direct_file() {
            Some(file) if route.is_direct() => file,
            _ => &self.buffered,
        }
    }

    /// Before a write of `stretch`: [`Edges::head`].
    pub(crate) fn write_head(&mut self, stretch: &Stretch, ring: &Ring) -> Result<bool> {
        let Some(file) = self.direct.file() else { return Ok(false) };
        self.edges.head(file, stretch, ring).map_err(|error| edge_failure(&self.path, &error))
    }

    /// After a write of `stretch`: [`Edges::carry`].
    pub(crate) fn carry_tail(&mut self, stretch: &Stretch, ring: &Ring) {
        self.edges.carry(stretch, ring);
    }

    /// Writes what [`FdPair::carry_tail`] has kept. Part of each sync; before another pattern and a close there is
    /// normally nothing left.
    pub(crate) fn flush_edges(&mut self) -> Result<()> {
        let Some(file) = self.direct.file() else { return Ok(()) };
        self.edges.flush(file).map_err(|error| edge_failure(&self.path, &error))
    }

    /// fsync(2): writes back what either descriptor has written, and its metadata; before that the last sector.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let edges = self.flush_edges();
        let synced = self.buffered.sync_all().map_err(|e| BackendError::from_io("fsync", &self.path, None, &e));
        edges.and(synced)
    }

    /// Closes both descriptors and reports what close(2) says; a dropped [`File`] would not.
    pub(crate) fn close(mut self) -> Result<()> {
        let edges = self.flush_edges();
        let direct = match self.direct {
            DirectFd::Ready { file, .. } => close_file(file),
            DirectFd::NotWanted | DirectFd::Impossible(_) => Ok(()),
        };
        let buffered = close_file(self.buffered);
        edges.and(direct.and(buffered).map_err(|e| BackendError::from_io("close", &self.path, None, &e)))
    }
}

/// Exclusive creation on one rank, then the agreement, then the open of the others. Every rank reaches the
/// agreement, so that none waits for ever.
fn create_agreed(path: &FilePath, creates: bool, agree: impl FnOnce(bool) -> Result<bool>) -> Result<File> {
    let told = |e: std::io::Error| BackendError::from_io("open", path, None, &e);
    if creates {
        let made = path.create().map_err(told);
        agree(made.is_ok())?;
        return made;
    }
    if !agree(true)? {
        let text = "rank 0 could not create the file; its own message says why";
        return Err(BackendError::new("open", path, Cause::Path, text));
    }
    path.open(flags(OpenMode::Update)).map_err(told)
}

fn flags(mode: OpenMode) -> OFlag {
    match mode {
        OpenMode::ReadOnly => OFlag::O_RDONLY,
        OpenMode::CreateNew | OpenMode::Update => OFlag::O_RDWR,
    }
}

/// Opens the second descriptor if the file system names an alignment that the ring can give.
fn open_direct(buffered: &File, path: &FilePath, mode: OpenMode, wanted: Direct) -> DirectFd {
    let align = match direct_align(buffered) {
        Ok(Some(align)) => align,
        Ok(None) => return DirectFd::Impossible(no_alignment(path.open(flags(mode) | OFlag::O_DIRECT))),
        Err(e) => return DirectFd::Impossible(format!("statx for the alignment of direct I/O failed: {e}")),
    };
    if !RING_ALIGN_BYTES.is_multiple_of(align.memory_bytes) {
        return DirectFd::Impossible(format!(
            "the file system wants memory aligned to {} bytes, the buffers are aligned to {RING_ALIGN_BYTES}",
            align.memory_bytes
        ));
    }
    if align.new_blocks_cached && wanted == Direct::Required && mode != OpenMode::ReadOnly {
        return DirectFd::Impossible(BLOCK_MAPPED.into());
    }
    match path.open(flags(mode) | OFlag::O_DIRECT) {
        Ok(file) => DirectFd::Ready { file, align },
        Err(e) => DirectFd::Impossible(format!("the open with O_DIRECT failed: {e}")),
    }
}

/// Why a file system that names no alignment is not used directly. That it takes the flag says nothing: tmpfs and btrfs
/// take it and may go through the page cache.
fn no_alignment(opened: std::io::Result<File>) -> String {
    let source = "statx STATX_DIOALIGN, Linux 6.1";
    match opened {
        Ok(_) => format!("the file system accepts O_DIRECT but gives no alignment ({source}), which proves nothing"),
        Err(e) => format!("the file system gives no alignment for direct I/O ({source}) and refuses O_DIRECT: {e}"),
    }
}

/// Closes a file and reports what close(2) says; a dropped [`File`] would not.
pub(crate) fn close_file(file: File) -> std::io::Result<()> {
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
