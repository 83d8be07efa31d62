//! Which keys the line of a function has, and which it needs.

use crate::function::{Form, Function, Pointer, Role};
use crate::Direction;

macro_rules! keys {
    ($($name:ident $text:literal)+) => {
        /// A key of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Key { $($name,)+ }

        impl Key {
            /// All of them, in the order in which they are written.
            pub(super) const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// As it is written.
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The key of a name.
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
    Bytes "bytes" Request "request" Requests "requests" Done "done" Polls "polls" After "after" Met "met" From "from"
}

/// A set of keys, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(u32);

impl Set {
    const fn of(keys: &[Key]) -> Self {
        let (mut bits, mut n) = (0, 0);
        while n < keys.len() {
            bits |= 1 << keys[n] as u8;
            n += 1;
        }
        Self(bits)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if the key is in it.
    pub(super) fn has(self, key: Key) -> bool {
        self.0 & (1 << key as u8) != 0
    }

    /// Puts a key in.
    pub(super) fn insert(&mut self, key: Key) {
        self.0 |= 1 << key as u8;
    }

    /// Those of them that are not in the other set.
    pub(super) fn beyond(self, other: Self) -> impl Iterator<Item = Key> {
        let left = self.0 & !other.0;
        let some = if left == 0 { &[] } else { Key::ALL };
        some.iter().copied().filter(move |key| left & (1 << *key as u8) != 0)
    }

    /// The first key that is not in the other set.
    pub(super) fn first_beyond(self, other: Self) -> Option<Key> {
        Key::ALL.get((self.0 & !other.0).trailing_zeros() as usize).copied()
    }
}

/// The keys that a function needs unless it failed, and all that it may have.
pub(super) fn of(function: Function) -> (Set, Set) {
    use Key::{
        After, Buffer, Bytes, Comm, Count, Done, Error, Etype, File, Filetype, Flag, From, Granted, Handle, Info, Mode,
        Name, Number,
    };
    use Key::{Met, Offset, Polls, Request, Requests, Thread, Type, Whence};
    const ANY: Set = Set::of(&[Thread, Error, After]);
    const NONE: Set = Set::of(&[]);
    const HANDLE: Set = Set::of(&[Handle]);
    let (needed, more) = match function.role() {
        Role::Data { form: Form::End, .. } => (HANDLE, Set::of(&[Bytes])),
        Role::Data { direction, pointer, form, .. } => {
            let needed = match pointer {
                Pointer::Offset => Set::of(&[Handle, Count, Type, Offset]),
                Pointer::Individual | Pointer::Shared => Set::of(&[Handle, Count, Type]),
            };
            let more = match form {
                Form::Blocking => Set::of(&[Buffer, Bytes]),
                Form::Nonblocking => Set::of(&[Buffer, Request]),
                Form::Begin | Form::End => Set::of(&[Buffer]),
            };
            let from = if direction == Direction::Read { Set::of(&[From]) } else { NONE };
            (needed, more.and(from))
        }
        Role::Request => (NONE, Set::of(&[Requests, Done, Polls, Flag, Number])),
        Role::Program | Role::File { .. } => match function {
            Function::Open => (Set::of(&[Handle, Comm, File, Mode]), Set::of(&[Info, Granted, Number])),
            Function::Delete => (Set::of(&[File]), Set::of(&[Info])),
            Function::SetSize | Function::Preallocate => (Set::of(&[Handle, Offset]), NONE),
            Function::GetAmode => (HANDLE, Set::of(&[Mode, Number])),
            Function::SetInfo | Function::GetInfo => (HANDLE, Set::of(&[Info, Granted])),
            Function::SetView => (Set::of(&[Handle, Offset, Etype, Filetype]), Set::of(&[Name, Info, Granted])),
            Function::GetView => (HANDLE, Set::of(&[Offset, Etype, Filetype, Name, Number])),
            Function::Seek | Function::SeekShared => (Set::of(&[Handle, Offset, Whence]), NONE),
            Function::GetSize | Function::GetPosition | Function::GetPositionShared | Function::GetGroup => {
                (HANDLE, Set::of(&[Number]))
            }
            Function::GetByteOffset => (Set::of(&[Handle, Offset]), Set::of(&[Number])),
            Function::GetTypeExtent => (Set::of(&[Handle, Type]), Set::of(&[Number])),
            Function::SetAtomicity => (Set::of(&[Handle, Flag]), NONE),
            Function::GetAtomicity => (HANDLE, Set::of(&[Flag])),
            Function::Close | Function::Sync => (HANDLE, NONE),
            // The default handler of all files belongs to MPI_FILE_NULL, which has no handle.
            Function::SetErrhandler | Function::GetErrhandler | Function::CallErrhandler => {
                (NONE, Set::of(&[Handle, Number]))
            }
            Function::RegisterDatarep => (NONE, Set::of(&[Name])),
            _ => (NONE, Set::of(&[Number, Flag])),
        },
    };
    let met = if function.is_collective() { Set::of(&[Met]) } else { NONE };
    (needed, needed.and(more).and(met).and(ANY))
}
