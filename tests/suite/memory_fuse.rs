//! A file system in the memory of the test, behind FUSE: what every client of a server with a cache looks like from a rank.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

const TTL: Duration = Duration::from_secs(1);
const BLOCK_BYTES: u64 = 4096;
/// Size and free space that it tells: 4 GiB.
const BLOCKS: u64 = 1 << 20;

struct Node {
    parent: u64,
    name: OsString,
    /// None: a directory.
    data: Option<Vec<u8>>,
}

struct Memory {
    nodes: Mutex<BTreeMap<u64, Node>>,
    /// Files bypass the page cache of the client (FOPEN_DIRECT_IO).
    direct: bool,
    /// The stored byte here is not what was written, in files of this name's beginning.
    lie: Option<Lie>,
}

/// What is stored differs from what was written, once in a file, while the page cache of the client has the truth.
#[derive(Clone, Copy)]
pub struct Lie {
    /// Of the names of the files.
    pub begin: &'static str,
    /// Where one bit is turned over.
    pub offset_bytes: u64,
}

/// Mounts it at `dir` with this subtype, until what comes back is dropped; the reason if that is not possible here.
pub fn mount(dir: &Path, subtype: &str, direct: bool) -> Result<BackgroundSession, String> {
    mount_lying(dir, subtype, direct, None)
}

/// The same, with a lie.
pub fn mount_lying(dir: &Path, subtype: &str, direct: bool, lie: Option<Lie>) -> Result<BackgroundSession, String> {
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    let root = Node { parent: 1, name: OsString::new(), data: None };
    let memory = Memory { nodes: Mutex::new(BTreeMap::from([(1, root)])), direct, lie };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("memory".into()), MountOption::Subtype(subtype.into())];
    fuser::spawn_mount(memory, dir, &config).map_err(|e| e.to_string())
}

fn attr(ino: u64, node: &Node) -> FileAttr {
    let size = node.data.as_ref().map_or(0, |data| data.len() as u64);
    FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if node.data.is_some() { FileType::RegularFile } else { FileType::Directory },
        perm: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        flags: 0,
        blksize: BLOCK_BYTES as u32,
    }
}

impl Memory {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<u64, Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, parent: INodeNo, name: &OsStr, data: Option<Vec<u8>>) -> FileAttr {
        let mut nodes = self.nodes();
        let ino = nodes.keys().next_back().unwrap() + 1;
        let node = Node { parent: parent.0, name: name.to_owned(), data };
        let attr = attr(ino, &node);
        nodes.insert(ino, node);
        attr
    }

    fn remove(&self, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut nodes = self.nodes();
        let found =
            nodes.iter().find(|(ino, n)| **ino != 1 && n.parent == parent.0 && n.name == name).map(|(ino, _)| *ino);
        // Whoever has it open may go on: the name alone is taken away.
        match found.and_then(|ino| nodes.get_mut(&ino)) {
            Some(node) => {
                node.parent = 0;
                reply.ok();
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn flags(&self) -> FopenFlags {
        if self.direct {
            FopenFlags::FOPEN_DIRECT_IO
        } else if self.lie.is_some() {
            // Else each opening empties the page cache, and the lie is seen.
            FopenFlags::FOPEN_KEEP_CACHE
        } else {
            FopenFlags::empty()
        }
    }
}

impl Filesystem for Memory {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let nodes = self.nodes();
        match nodes.iter().find(|(ino, n)| **ino != 1 && n.parent == parent.0 && n.name == name) {
            Some((ino, node)) => reply.entry(&TTL, &attr(*ino, node), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.nodes().get(&ino.0) {
            Some(node) => reply.attr(&TTL, &attr(ino.0, node)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut nodes = self.nodes();
        let Some(node) = nodes.get_mut(&ino.0) else { return reply.error(Errno::ENOENT) };
        if let (Some(size), Some(data)) = (size, &mut node.data) {
            data.resize(size as usize, 0);
        }
        reply.attr(&TTL, &attr(ino.0, node));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _mode: u32, _umask: u32, reply: ReplyEntry) {
        reply.entry(&TTL, &self.make(parent, name, None), Generation(0));
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        let attr = self.make(parent, name, Some(Vec::new()));
        reply.created(&TTL, &attr, Generation(0), FileHandle(0), self.flags());
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, reply);
    }

    fn open(&self, _: &Request, _ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), self.flags());
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let nodes = self.nodes();
        let Some(data) = nodes.get(&ino.0).and_then(|n| n.data.as_ref()) else { return reply.error(Errno::EIO) };
        let begin = data.len().min(offset as usize);
        reply.data(&data[begin..data.len().min(begin + size as usize)]);
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut nodes = self.nodes();
        let Some(node) = nodes.get_mut(&ino.0) else { return reply.error(Errno::EIO) };
        let lie = self.lie.filter(|lie| node.name.to_string_lossy().starts_with(lie.begin));
        let Some(data) = &mut node.data else { return reply.error(Errno::EIO) };
        let begin = offset as usize;
        let end = begin + bytes.len();
        data.resize(data.len().max(end), 0);
        data[begin..end].copy_from_slice(bytes);
        if let Some(at) = lie.map(|lie| lie.offset_bytes as usize).filter(|at| (begin..end).contains(at)) {
            data[at] ^= 1;
        }
        reply.written(bytes.len() as u32);
    }

    fn fsync(&self, _: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &Request, _ino: INodeNo, _fh: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let nodes = self.nodes();
        let children = nodes.iter().filter(|(child, n)| **child != 1 && n.parent == ino.0);
        for (child, node) in children.filter(|(child, _)| **child > offset) {
            let kind = if node.data.is_some() { FileType::RegularFile } else { FileType::Directory };
            if reply.add(INodeNo(*child), *child, kind, &node.name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, 1 << 20, 1 << 20, BLOCK_BYTES as u32, 255, BLOCK_BYTES as u32);
    }
}
