//! One file under a direct-I/O policy: a buffered descriptor, a second one with O_DIRECT where possible, and the choice between
//! them ([`FileRoute`]). Drivers with descriptors open, sync and close them here.
//!
//! Both descriptors may be used in turn: a direct transfer first writes back and drops the cached pages of its range, and every
//! write pattern ends with a sync of all ranks before the next starts. Within one pattern all ranks choose one route, sharing chunk,
//! stride and origin: no page is written through the cache by one rank while another writes a part of it directly, which would lose
//! data.
//!
//! # Four routes
//!
//! Alignment is that of statx(2) (STATX_DIOALIGN, and STATX_DIO_READ_ALIGN where supported), else that of a trial
//! ([`crate::DirectTrial`]), or a block where the kernel may fall back to the page cache (see `statx`); a successful open with O_DIRECT
//! proves nothing.
//!
//! 1. **Aligned**: every offset, length and address is a multiple of the sector. Transferred directly between buffer and file.
//! 2. **With edges**: not aligned, but the rank's bytes are contiguous and share no sector with other ranks. See `edges`. First
//!    writes use file-system blocks instead of sectors if a chunk is at least as long.
//! 3. **Two-phase**: ranks share sectors, or blocks of a new file. See `two_phase`.
//! 4. **Through the page cache**, with the reason, or not run where direct I/O is required.
//!
//! A read-modify-write of shared sectors would be simpler, and loses the part of the rank that wrote first. It is a hidden value of
//! `--collective`, so that a test can show that the loss is detected.

use std::fs::File;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;

use nix::fcntl::OFlag;

use crate::directory::FilePath;
use crate::edges::{edge_error, BatchSpan, EdgeSectors, MAX_SECTOR_BYTES};
use crate::error::FailureCause;
use crate::route::{direct_route, has_whole_blocks, FileRoute};
use crate::statx::{usable_align, DirectAlign};
use crate::{
    AccessKind, AccessPattern, BackendError, Collective, Direct, DirectTrial, Direction, DriverOptions, OpenMode,
    OpenRequest, Result, TransferBuffer, TransferStrategy,
};

/// Alignment that [`crate::TransferBuffer`] guarantees for windows at aligned stream positions.
const BUFFER_ALIGN_BYTES: u64 = 4096;

/// Of the strategy of transfers with O_DIRECT that may use the page cache after all.
pub(crate) const UNPROVEN: &str = ", accepted, bypass of the page cache unproven";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransferPolicy {
    pub(crate) direct: Direct,
    pub(crate) trial: Option<DirectTrial>,
    /// RWF_DONTCACHE on buffered transfers.
    pub(crate) dont_cache: bool,
    pub(crate) collective: Collective,
}

impl From<&DriverOptions> for TransferPolicy {
    fn from(options: &DriverOptions) -> Self {
        Self {
            direct: options.direct,
            trial: options.direct_trial.clone(),
            dont_cache: options.dont_cache,
            collective: options.collective,
        }
    }
}

impl From<Direct> for TransferPolicy {
    fn from(direct: Direct) -> Self {
        Self::from(&DriverOptions { direct, ..DriverOptions::default() })
    }
}

#[derive(Debug)]
pub(crate) struct FdPair {
    pub(crate) path: PathBuf,
    pub(crate) buffered: File,
    direct: DirectFd,
    policy: TransferPolicy,
    edges: EdgeSectors,
    /// Created by this open: writes find no blocks in it.
    is_new: bool,
}

/// The descriptor with O_DIRECT, or why there is none.
#[derive(Debug)]
enum DirectFd {
    Disabled,
    Open { file: File, align: DirectAlign },
    Unavailable(String),
}

impl DirectFd {
    fn file(&self) -> Option<&File> {
        match self {
            Self::Open { file, .. } => Some(file),
            Self::Disabled | Self::Unavailable(_) => None,
        }
    }
}

/// How whole aligned domains of a file are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DomainPath {
    pub(crate) is_direct: bool,
    pub(crate) align_bytes: u64,
    /// Why not direct, if that was preferred.
    pub(crate) reason: Option<String>,
}

impl FdPair {
    /// Opens the file of a request; collective over its communicator. Rank 0 creates a new file, the other ranks open it
    /// afterwards.
    pub(crate) fn open(request: &OpenRequest<'_>, policy: TransferPolicy) -> Result<Self> {
        let agree = |created: bool| {
            request.comm.bcast_flag(created).map_err(|e| {
                let text = format!("agreement on the new file failed: {e}");
                BackendError::new("open", request.path, FailureCause::Io, text)
            })
        };
        Self::open_as(request.path, request.mode, policy, request.comm.rank() == 0, agree)
    }

    /// [`FdPair::open`] without a communicator: `creates` is true on rank 0, `agree` broadcasts its value.
    pub(crate) fn open_as(
        path: &FilePath,
        mode: OpenMode,
        policy: impl Into<TransferPolicy>,
        creates: bool,
        agree: impl FnOnce(bool) -> Result<bool>,
    ) -> Result<Self> {
        let policy = policy.into();
        let buffered = if mode == OpenMode::CreateNew {
            create_exclusive(path, creates, agree)?
        } else {
            path.open(open_flags(mode)).map_err(|e| BackendError::from_io("open", path, None, &e))?
        };
        let direct = match policy.direct {
            Direct::Off => DirectFd::Disabled,
            Direct::Auto | Direct::Required => open_direct(&buffered, path, mode, &policy),
        };
        let edges = EdgeSectors::new().map_err(|e| BackendError::from_io("mmap (edge sectors)", path, None, &e))?;
        Ok(Self { path: path.into(), buffered, direct, policy, edges, is_new: mode == OpenMode::CreateNew })
    }

    /// [`FdPair::open_as`] for one rank alone.
    #[cfg(test)]
    pub(crate) fn open_alone(
        path: &std::path::Path,
        mode: OpenMode,
        policy: impl Into<TransferPolicy>,
    ) -> Result<Self> {
        let path = FilePath::of(path).map_err(|e| BackendError::from_io("open", path, None, &e))?;
        Self::open_as(&path, mode, policy, true, Ok)
    }

    /// Replaces the descriptor with O_DIRECT by `other`.
    #[cfg(test)]
    pub(crate) fn force_direct_file(&mut self, other: File) {
        if let DirectFd::Open { file, .. } = &mut self.direct {
            *file = other;
        }
    }

    /// Pretends that the device has sectors of `bytes`.
    #[cfg(test)]
    pub(crate) fn force_align(&mut self, bytes: u64) {
        if let DirectFd::Open { align, .. } = &mut self.direct {
            assert!(bytes >= align.common_bytes() && bytes.is_power_of_two());
            *align = DirectAlign { offset_bytes: bytes, read_offset_bytes: bytes, block_bytes: bytes, ..*align };
        }
    }

    /// Pretends that the file is new, with blocks of `bytes`.
    #[cfg(test)]
    pub(crate) fn force_block(&mut self, bytes: u64) {
        self.is_new = true;
        if let DirectFd::Open { align, .. } = &mut self.direct {
            align.block_bytes = bytes;
        }
    }

    /// The route of a pattern in one direction, the same on all ranks for patterns with shared sectors.
    ///
    /// # Errors
    /// The reason why a pattern cannot be run under [`Direct::Required`].
    pub(crate) fn route(
        &self,
        pattern: &AccessPattern,
        direction: Direction,
    ) -> std::result::Result<FileRoute, String> {
        let reason = match &self.direct {
            DirectFd::Disabled => return Ok(FileRoute::Buffered { reason: None }),
            DirectFd::Open { align, .. } => {
                match direct_route(pattern, align.direction_bytes(direction), self.policy.collective) {
                    Ok(route) => return Ok(route),
                    Err(reason) => reason,
                }
            }
            DirectFd::Unavailable(reason) => reason.clone(),
        };
        self.buffered_or_refused(reason)
    }

    /// The buffered route, or the reason as an error if direct I/O is required.
    fn buffered_or_refused(&self, reason: String) -> std::result::Result<FileRoute, String> {
        match self.policy.direct {
            Direct::Required => Err(reason),
            Direct::Auto | Direct::Off => Ok(FileRoute::Buffered { reason: Some(reason) }),
        }
    }

    /// Why a pattern cannot be run, in either direction.
    pub(crate) fn unsupported(&self, pattern: &AccessPattern) -> Option<String> {
        [Direction::Write, Direction::Read].into_iter().find_map(|direction| self.route(pattern, direction).err())
    }

    /// As [`FdPair::route`] on windows of this buffer; a refusal is an error of `prepare`.
    pub(crate) fn route_or_error(
        &self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &TransferBuffer,
    ) -> Result<FileRoute> {
        let route =
            self.route(pattern, direction).and_then(|route| self.match_buffer_alignment(route, pattern, buffer));
        route.map(|route| self.match_block_size(route, pattern, direction, buffer)).map_err(|reason| {
            let text = format!("direct I/O is required, but {reason}; use --direct auto");
            BackendError::new("prepare", &self.path, FailureCause::Unsupported, text)
        })
    }

    /// The route, or a buffered one if windows of the buffer do not stay aligned as it requires.
    ///
    /// # Errors
    /// The reason under [`Direct::Required`].
    fn match_buffer_alignment(
        &self,
        route: FileRoute,
        pattern: &AccessPattern,
        buffer: &TransferBuffer,
    ) -> std::result::Result<FileRoute, String> {
        let (FileRoute::Direct { align_bytes } | FileRoute::DirectEdges { align_bytes }) = route else {
            return Ok(route);
        };
        if pattern.call_bytes() == 0 || pattern.has_aligned_windows(buffer.period_bytes(), align_bytes) {
            return Ok(route);
        }
        self.buffered_or_refused(format!(
            "the data repeats after {} bytes, no multiple of {align_bytes}",
            buffer.period_bytes()
        ))
    }

    /// The route, in whole file-system blocks where edges of larger chunks would be parts of new ones: a file system fills the rest
    /// of such a block, waits for it, and blocks all other writes to the file meanwhile.
    fn match_block_size(
        &self,
        route: FileRoute,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &TransferBuffer,
    ) -> FileRoute {
        let (DirectFd::Open { align, .. }, true, Direction::Write) = (&self.direct, self.is_new, direction) else {
            return route;
        };
        let block_bytes = align.block_bytes;
        let cuts = block_bytes.is_power_of_two() && route.align_bytes().is_some_and(|bytes| bytes < block_bytes);
        if cuts
            && has_whole_blocks(pattern, block_bytes)
            && pattern.has_aligned_windows(buffer.period_bytes(), block_bytes)
        {
            return FileRoute::DirectEdges { align_bytes: block_bytes };
        }
        route
    }

    pub(crate) fn check_supported(&self, reason: Option<String>) -> Result<()> {
        reason.map_or(Ok(()), |text| Err(BackendError::new("prepare", &self.path, FailureCause::Unsupported, text)))
    }

    /// How domains of the file are moved, for any pattern; None if direct I/O is required and not available.
    pub(crate) fn domain_path(&self) -> Option<DomainPath> {
        match (&self.direct, self.policy.direct) {
            (DirectFd::Open { align, .. }, _) => {
                Some(DomainPath { is_direct: true, align_bytes: self.domain_align_bytes(align), reason: None })
            }
            (DirectFd::Disabled, _) => {
                Some(DomainPath { is_direct: false, align_bytes: BUFFER_ALIGN_BYTES, reason: None })
            }
            (DirectFd::Unavailable(_), Direct::Required) => None,
            (DirectFd::Unavailable(reason), _) => {
                Some(DomainPath { is_direct: false, align_bytes: BUFFER_ALIGN_BYTES, reason: Some(reason.clone()) })
            }
        }
    }

    /// Domains end at sector boundaries, in a new file at block boundaries: no block is written by two ranks.
    fn domain_align_bytes(&self, align: &DirectAlign) -> u64 {
        let is_block = align.block_bytes.is_power_of_two() && align.block_bytes <= MAX_SECTOR_BYTES;
        align.common_bytes().max(if self.is_new && is_block { align.block_bytes } else { 1 })
    }

    pub(crate) fn domain_file(&self, direct: bool) -> &File {
        self.direct_file().filter(|_| direct).unwrap_or(&self.buffered)
    }

    /// True if the transfers of this route request that the kernel drops their pages.
    pub(crate) fn drops_pages(&self, route: &FileRoute) -> bool {
        self.policy.dont_cache && !route.is_direct()
    }

    /// For the report: `call` and its relation to the kind of access, then the route.
    pub(crate) fn in_force(
        &self,
        call: &str,
        kind: AccessKind,
        direction: Direction,
        route: &FileRoute,
    ) -> TransferStrategy {
        let in_blocks = match (route, &self.direct) {
            (FileRoute::DirectEdges { align_bytes }, DirectFd::Open { align, .. }) => {
                *align_bytes > align.direction_bytes(direction)
            }
            _ => false,
        };
        let mut base = route.strategy(call, kind, direction, if in_blocks { "blocks" } else { "sectors" });
        if route.is_direct() && self.is_bypass_unproven() {
            base.strategy.push_str(UNPROVEN);
        }
        if !self.drops_pages(route) {
            return base;
        }
        TransferStrategy { strategy: format!("{}, pages dropped when done (RWF_DONTCACHE)", base.strategy), ..base }
    }

    /// True if direct transfers of this file may use the page cache after all.
    pub(crate) fn is_bypass_unproven(&self) -> bool {
        matches!(&self.direct, DirectFd::Open { align, .. } if !align.is_proven)
    }

    pub(crate) fn direct_file(&self) -> Option<&File> {
        self.direct.file()
    }

    pub(crate) fn file(&self, route: &FileRoute) -> &File {
        match self.direct_file() {
            Some(file) if route.is_direct() => file,
            _ => &self.buffered,
        }
    }

    /// Before a write of `stretch`: [`EdgeSectors::write_head`].
    pub(crate) fn write_head(&mut self, stretch: &BatchSpan, buffer: &TransferBuffer) -> Result<bool> {
        let Some(file) = self.direct.file() else { return Ok(false) };
        self.edges.write_head(file, stretch, buffer).map_err(|error| edge_error(&self.path, &error))
    }

    /// After a write of `stretch`: [`EdgeSectors::carry`].
    pub(crate) fn carry_tail(&mut self, stretch: &BatchSpan, buffer: &TransferBuffer) {
        self.edges.carry(stretch, buffer);
    }

    /// Writes the sector kept by [`FdPair::carry_tail`]. Part of each sync; normally nothing remains for another pattern or a
    /// close.
    pub(crate) fn flush_edges(&mut self) -> Result<()> {
        let Some(file) = self.direct.file() else { return Ok(()) };
        self.edges.flush(file).map_err(|error| edge_error(&self.path, &error))
    }

    /// fsync(2) after a write of the last sector, for both descriptors.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let edges = self.flush_edges();
        let synced = self.buffered.sync_all().map_err(|e| BackendError::from_io("fsync", &self.path, None, &e));
        edges.and(synced)
    }

    /// Closes both descriptors and reports errors of close(2), which a dropped [`File`] ignores.
    pub(crate) fn close(mut self) -> Result<()> {
        let edges = self.flush_edges();
        let direct = match self.direct {
            DirectFd::Open { file, .. } => close_file(file),
            DirectFd::Disabled | DirectFd::Unavailable(_) => Ok(()),
        };
        let buffered = close_file(self.buffered);
        edges.and(direct.and(buffered).map_err(|e| BackendError::from_io("close", &self.path, None, &e)))
    }
}

/// Exclusive creation on one rank, agreement, open on the others. Every rank reaches the agreement, so that none waits forever.
fn create_exclusive(path: &FilePath, creates: bool, agree: impl FnOnce(bool) -> Result<bool>) -> Result<File> {
    let open_error = |e: std::io::Error| BackendError::from_io("open", path, None, &e);
    if creates {
        let created = path.create().map_err(open_error);
        agree(created.is_ok())?;
        return created;
    }
    if !agree(true)? {
        let text = "rank 0 could not create the file; see its message";
        return Err(BackendError::new("open", path, FailureCause::Path, text));
    }
    path.open(open_flags(OpenMode::Update)).map_err(open_error)
}

fn open_flags(mode: OpenMode) -> OFlag {
    match mode {
        OpenMode::ReadOnly => OFlag::O_RDONLY,
        OpenMode::CreateNew | OpenMode::Update => OFlag::O_RDWR,
    }
}

/// Opens the second descriptor if there is an alignment that the buffer satisfies.
fn open_direct(buffered: &File, path: &FilePath, mode: OpenMode, policy: &TransferPolicy) -> DirectFd {
    let is_written = mode != OpenMode::ReadOnly;
    let align = match usable_align(buffered, policy.direct, is_written, policy.trial.as_ref(), BUFFER_ALIGN_BYTES) {
        Ok(align) => align,
        Err(reason) => return DirectFd::Unavailable(reason),
    };
    match path.open(open_flags(mode) | OFlag::O_DIRECT) {
        Ok(file) => DirectFd::Open { file, align },
        Err(e) => DirectFd::Unavailable(format!("the open with O_DIRECT failed: {e}")),
    }
}

/// Closes a file and reports errors of close(2), which a dropped [`File`] ignores.
pub(crate) fn close_file(file: File) -> std::io::Result<()> {
    // SAFETY: `into_raw_fd` transfers the only ownership of an open descriptor, which is not used afterwards.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    // On Linux the descriptor is released even if a signal interrupts the call (close(2)).
    if error.kind() == std::io::ErrorKind::Interrupted {
        Ok(())
    } else {
        Err(error)
    }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
