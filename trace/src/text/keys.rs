//! Allowed and required keys of each function.

use crate::function::{AccessForm, Function, PointerKind, Role};
use crate::Direction;

macro_rules! keys {
    ($($name:ident $text:literal)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Key { $($name,)+ }

        impl Key {
            /// All keys, in the order in which they are written.
            pub(super) const ALL: &'static [Self] = &[$(Self::$name,)+];

            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            pub(super) fn named(name: &[u8]) -> Option<Self> {
                $(if name == $text.as_bytes() { return Some(Self::$name); })+
                None
            }
        }
    };
}

keys! {
    Thread "thread" Error "error" Handle "handle" File "file" Name "name" Offset "offset" Count "count" Type "type" Buffer "buffer" Etype "etype"
    Filetype "filetype" Comm "comm" Mode "mode" Info "info" Granted "granted" Whence "whence" Flag "flag" Number "number"
    Bytes "bytes" Request "request" Requests "requests" Done "done" Polls "polls" After "after" Met "met" From "from" To "to"
}

/// Set of keys as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeySet(u32);

impl KeySet {
    const fn from_keys(keys: &[Key]) -> Self {
        let (mut bits, mut n) = (0, 0);
        while n < keys.len() {
            bits |= 1 << keys[n] as u8;
            n += 1;
        }
        Self(bits)
    }

    const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, key: Key) -> bool {
        self.0 & (1 << key as u8) != 0
    }

    pub(super) fn insert(&mut self, key: Key) {
        self.0 |= 1 << key as u8;
    }

    /// Keys that are not in the other set.
    pub(super) fn difference(self, other: Self) -> impl Iterator<Item = Key> {
        let left = self.0 & !other.0;
        let some = if left == 0 { &[] } else { Key::ALL };
        some.iter().copied().filter(move |key| left & (1 << *key as u8) != 0)
    }

    /// First key that is not in the other set.
    pub(super) fn first_difference(self, other: Self) -> Option<Key> {
        Key::ALL.get((self.0 & !other.0).trailing_zeros() as usize).copied()
    }
}

/// The keys that a function requires unless it failed, and all that it allows.
pub(super) fn of(function: Function) -> (KeySet, KeySet) {
    use Key::{
        After, Buffer, Bytes, Comm, Count, Done, Error, Etype, File, Filetype, Flag, From, Granted, Handle, Info, Mode,
        Name, Number,
    };
    use Key::{Met, Offset, Polls, Request, Requests, Thread, To, Type, Whence};
    const ANY: KeySet = KeySet::from_keys(&[Thread, Error, After]);
    const NONE: KeySet = KeySet::from_keys(&[]);
    const HANDLE: KeySet = KeySet::from_keys(&[Handle]);
    let (needed, more) = match function.role() {
        Role::Data { form: AccessForm::End, .. } => (HANDLE, KeySet::from_keys(&[Bytes])),
        Role::Data { direction, pointer, form, .. } => {
            let needed = match pointer {
                PointerKind::Offset => KeySet::from_keys(&[Handle, Count, Type, Offset]),
                PointerKind::Individual | PointerKind::Shared => KeySet::from_keys(&[Handle, Count, Type]),
            };
            let more = match form {
                AccessForm::Blocking => KeySet::from_keys(&[Buffer, Bytes]),
                AccessForm::Nonblocking => KeySet::from_keys(&[Buffer, Request]),
                AccessForm::Begin | AccessForm::End => KeySet::from_keys(&[Buffer]),
            };
            let from = if direction == Direction::Read { KeySet::from_keys(&[From]) } else { NONE };
            (needed, more.union(from))
        }
        Role::Request => (NONE, KeySet::from_keys(&[Requests, Done, Polls, Flag, Number])),
        Role::Posix => match function {
            Function::Truncate => (KeySet::from_keys(&[File, Offset]), NONE),
            Function::Rename => (KeySet::from_keys(&[File, To]), NONE),
            Function::OpenTruncate => (KeySet::from_keys(&[File]), KeySet::from_keys(&[Mode])),
            _ => (KeySet::from_keys(&[File]), NONE),
        },
        Role::Program | Role::File { .. } => match function {
            Function::Open => {
                (KeySet::from_keys(&[Handle, Comm, File, Mode]), KeySet::from_keys(&[Info, Granted, Number]))
            }
            Function::Delete => (KeySet::from_keys(&[File]), KeySet::from_keys(&[Info])),
            Function::SetSize | Function::Preallocate => (KeySet::from_keys(&[Handle, Offset]), NONE),
            Function::GetAmode => (HANDLE, KeySet::from_keys(&[Mode, Number])),
            Function::SetInfo | Function::GetInfo => (HANDLE, KeySet::from_keys(&[Info, Granted])),
            Function::SetView => {
                (KeySet::from_keys(&[Handle, Offset, Etype, Filetype]), KeySet::from_keys(&[Name, Info, Granted]))
            }
            Function::GetView => (HANDLE, KeySet::from_keys(&[Offset, Etype, Filetype, Name, Number])),
            Function::Seek | Function::SeekShared => {
                (KeySet::from_keys(&[Handle, Offset, Whence]), KeySet::from_keys(&[Number]))
            }
            Function::GetSize | Function::GetPosition | Function::GetPositionShared | Function::GetGroup => {
                (HANDLE, KeySet::from_keys(&[Number]))
            }
            Function::GetByteOffset => (KeySet::from_keys(&[Handle, Offset]), KeySet::from_keys(&[Number])),
            Function::GetTypeExtent => (KeySet::from_keys(&[Handle, Type]), KeySet::from_keys(&[Number])),
            Function::SetAtomicity => (KeySet::from_keys(&[Handle, Flag]), NONE),
            Function::GetAtomicity => (HANDLE, KeySet::from_keys(&[Flag])),
            Function::Close | Function::Sync => (HANDLE, NONE),
            // The default error handler of files belongs to MPI_FILE_NULL, which has no handle.
            Function::SetErrhandler | Function::GetErrhandler | Function::CallErrhandler => {
                (NONE, KeySet::from_keys(&[Handle, Number]))
            }
            Function::Marker => (NONE, KeySet::from_keys(&[Name, Flag])),
            Function::RegisterDatarep => (NONE, KeySet::from_keys(&[Name])),
            _ => (NONE, KeySet::from_keys(&[Number, Flag])),
        },
    };
    let met = if function.is_collective() { KeySet::from_keys(&[Met]) } else { NONE };
    (needed, needed.union(more).union(met).union(ANY))
}
