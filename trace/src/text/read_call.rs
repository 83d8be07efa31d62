//! A line into a call.

use super::error::{shown, TextError};
use super::fields::{index, list, signed, small, text, unsigned, Field, Fields};
use super::keys::{self, Key, Set};
use crate::{After, Amode, Call, Completion, Content, ErrorClass, Function, Origin, Whence};

/// How long the dictionaries are that calls refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub ranks: usize,
    pub comms: usize,
    pub types: usize,
    pub infos: usize,
    pub files: usize,
}

/// Makes calls of lines.
pub(super) struct CallParser {
    bounds: Bounds,
    /// Names that were met; a profile has few.
    names: Vec<(Vec<u8>, Named)>,
}

/// What a name stands for: the function, by its twin with large counts or not, the keys that it needs and may have.
#[derive(Clone, Copy)]
struct Named {
    function: Function,
    large: bool,
    needed: Set,
    allowed: Set,
}

type Result<T> = std::result::Result<T, TextError>;

impl CallParser {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, names: Vec::new() }
    }

    /// The call of a line.
    pub(super) fn call(&mut self, line: &[u8]) -> Result<Call> {
        let mut fields = Fields::of(line);
        let begin_ns = time(&mut fields, "begin")?;
        let end_ns = time(&mut fields, "end")?;
        let field = fields.need("function", "a call is BEGIN_NS,END_NS,FUNCTION,key=value,...")?;
        let Named { function, large, needed, allowed } = self.function(&field)?;
        if end_ns < begin_ns {
            let next = "times are in ns since the first event of all processes; the first two fields are begin and end";
            return Err(TextError::new("it ends before it begins", next).field(2, "end"));
        }
        let mut call = Call::new(function, begin_ns, end_ns);
        call.large = large;
        let mut have = Set::default();
        while let Some(field) = fields.next() {
            let field = field?;
            if let Some((name, value)) = field.plain_pair() {
                self.keyed(&mut call, (needed, allowed), &mut have, (name, value), field.number)?;
            } else {
                let (name, value) = field.need_pair()?;
                self.keyed(&mut call, (needed, allowed), &mut have, (&name, &value), field.number)?;
            }
        }
        if call.error.is_none() {
            if let Some(key) = needed.first_beyond(have) {
                let next = format!(
                    "{} needs {}, unless it failed (error=...); {}=? is for what is not known",
                    function.name(),
                    names(needed),
                    key.name()
                );
                return Err(TextError::new(format!("{}= is missing", key.name()), next));
            }
        }
        Ok(call)
    }

    /// One `key=value`.
    #[inline]
    fn keyed(
        &self,
        call: &mut Call,
        keys: (Set, Set),
        have: &mut Set,
        pair: (&[u8], &[u8]),
        number: usize,
    ) -> Result<()> {
        let (name, value) = pair;
        let (needed, allowed) = keys;
        let function = call.function;
        let Some(key) = Key::named(name) else {
            return Err(unknown_key(name, function, allowed).field(number, ""));
        };
        if !allowed.has(key) {
            let next = format!("{} may have {}", function.name(), names(allowed));
            let what = format!("{} has no such key", function.name());
            return Err(TextError::new(what, next).field(number, key.name()));
        }
        if have.has(key) {
            return Err(TextError::new("the key is there twice", "remove one of them").field(number, key.name()));
        }
        have.insert(key);
        // The recording did not know it.
        if value == b"?" && needed.has(key) {
            return Ok(());
        }
        self.set(call, key, value).map_err(|e| e.field(number, key.name()))
    }

    fn function(&mut self, field: &Field<'_>) -> Result<Named> {
        let name = field.bytes()?;
        if let Some(found) = self.names.iter().find(|known| known.0 == *name) {
            return Ok(found.1);
        }
        let found = std::str::from_utf8(&name).ok().and_then(Function::named);
        let (function, large) = found.ok_or_else(|| {
            let next = "write the name of the standard, such as File_write_at or File_write_at_c, with or without MPI_";
            TextError::new(format!("{} is no function that is recorded", shown(&name)), next)
                .field(field.number, "function")
        })?;
        let (needed, allowed) = keys::of(function);
        let found = Named { function, large, needed, allowed };
        self.names.push((name.into_owned(), found));
        Ok(found)
    }

    fn set(&self, call: &mut Call, key: Key, value: &[u8]) -> Result<()> {
        let bounds = &self.bounds;
        match key {
            Key::Thread => call.thread = small(value)?,
            Key::Error => call.error = Some(error_class(value)?),
            Key::Handle => call.handle = Some(handle(value)?),
            Key::File => call.file = Some(index(value, bounds.files, "file")?),
            Key::Name => call.name = Some(text(value.into())?),
            Key::Offset => call.offset = Some(signed(value)?),
            Key::Count => call.count = Some(signed(value)?),
            Key::Type => call.datatype = Some(index(value, bounds.types, "type")?),
            Key::Buffer => call.buffer = Some(signed(value)?),
            Key::Etype => call.etype = Some(index(value, bounds.types, "type")?),
            Key::Filetype => call.filetype = Some(index(value, bounds.types, "type")?),
            Key::Comm => call.comm = Some(index(value, bounds.comms, "comm")?),
            Key::Mode => call.amode = Some(amode(value)?),
            Key::Info => call.info = Some(index(value, bounds.infos, "info")?),
            Key::Granted => call.granted = Some(index(value, bounds.infos, "info")?),
            Key::Whence => call.whence = Some(whence(value)?),
            Key::Flag => call.flag = Some(flag(value)?),
            Key::Number => call.number = Some(signed(value)?),
            Key::Bytes => call.bytes = Some(unsigned(value)?),
            Key::Request => call.request = Some(unsigned(value)?),
            Key::Requests => call.requests = list(value).map(unsigned).collect::<Result<_>>()?,
            Key::Done => call.completions = list(value).map(completion).collect::<Result<_>>()?,
            Key::Polls => call.polls = unsigned(value)?,
            Key::After => call.after = list(value).map(|part| after(part, bounds.ranks)).collect::<Result<_>>()?,
            Key::Met => call.met_ns = Some(unsigned(value)?),
            Key::From => call.from = list(value).map(|part| origin(part, bounds.ranks)).collect::<Result<_>>()?,
        }
        Ok(())
    }
}

fn time(fields: &mut Fields<'_>, name: &str) -> Result<u64> {
    let field = fields.need(name, "a call is BEGIN_NS,END_NS,FUNCTION,key=value,...")?;
    unsigned(&field.bytes()?).map_err(|e| e.field(field.number, name))
}

/// The keys of a set.
pub(super) fn names(set: Set) -> String {
    let names: Vec<_> = Key::ALL.iter().filter(|key| set.has(**key)).map(|key| key.name()).collect();
    names.join(", ")
}

fn unknown_key(name: &[u8], function: Function, allowed: Set) -> TextError {
    TextError::new(format!("{} is no key", shown(name)), format!("{} may have {}", function.name(), names(allowed)))
}

fn handle(value: &[u8]) -> Result<u32> {
    match small(value)? {
        0 => Err(TextError::new("there is no handle 0", "the first file that a rank opens is 1")),
        handle => Ok(handle),
    }
}

fn error_class(value: &[u8]) -> Result<ErrorClass> {
    let name = std::str::from_utf8(value).ok();
    name.and_then(ErrorClass::named).ok_or_else(|| {
        TextError::new(
            format!("{} is no error class", shown(value)),
            "write its name, such as MPI_ERR_IO or MPI_ERR_OTHER",
        )
    })
}

fn amode(value: &[u8]) -> Result<Amode> {
    let mut mode = 0;
    for part in list(value).filter(|part| *part != b"none") {
        let bit = Amode::NAMES.iter().position(|name| name.as_bytes() == part).ok_or_else(|| {
            TextError::new(
                format!("{} is no mode", shown(part)),
                format!("write some of {} with ';' between", Amode::NAMES.join(" ")),
            )
        })?;
        mode |= 1 << bit;
    }
    Ok(Amode(mode))
}

fn whence(value: &[u8]) -> Result<Whence> {
    let name = std::str::from_utf8(value).ok();
    name.and_then(Whence::named)
        .ok_or_else(|| TextError::new(format!("{} is no place to seek from", shown(value)), "write set, cur or end"))
}

fn flag(value: &[u8]) -> Result<bool> {
    match value {
        b"0" | b"false" => Ok(false),
        b"1" | b"true" => Ok(true),
        _ => Err(TextError::new(format!("{} is neither 0 nor 1", shown(value)), "write 0 or 1")),
    }
}

/// Splits at the first separator.
fn split(part: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = part.iter().position(|&b| b == separator)?;
    Some((part[..at].trim_ascii(), part[at + 1..].trim_ascii()))
}

/// `REQUEST`, `REQUEST:BYTES`, `REQUEST:BYTES:ERROR` or `REQUEST::ERROR`.
fn completion(part: &[u8]) -> Result<Completion> {
    let (request, rest) = split(part, b':').unwrap_or((part, b""));
    let (bytes, error) = split(rest, b':').map_or((rest, None), |(bytes, error)| (bytes, Some(error)));
    Ok(Completion {
        request: unsigned(request)?,
        bytes: if bytes.is_empty() { None } else { Some(unsigned(bytes)?) },
        error: error.map(error_class).transpose()?,
    })
}

fn rank(value: &[u8], ranks: usize) -> Result<u32> {
    let rank = small(value)?;
    if (rank as usize) < ranks {
        return Ok(rank);
    }
    Err(TextError::new(format!("there is no rank {rank}: the profile has {ranks}"), "correct the rank, or 'ranks,N'"))
}

fn after(part: &[u8], ranks: usize) -> Result<After> {
    let (who, begin) = split(part, b'@').ok_or_else(|| {
        TextError::new(
            format!("{} is not RANK@BEGIN", shown(part)),
            "write rank and begin of a call of another rank, as in after=0@1200",
        )
    })?;
    Ok(After { rank: rank(who, ranks)?, begin_ns: unsigned(begin)? })
}

/// `BYTES@RANK:BEGIN+MEMORY`, `BYTES@file`, `BYTES@hole` or `BYTES@?`.
fn origin(part: &[u8], ranks: usize) -> Result<Origin> {
    let wrong = || {
        let next = "write BYTES@RANK:BEGIN+MEMORY, BYTES@file, BYTES@hole or BYTES@?";
        TextError::new(format!("{} is no origin of data", shown(part)), next)
    };
    let (bytes, content) = split(part, b'@').ok_or_else(wrong)?;
    let bytes = unsigned(bytes)?;
    let content = match content {
        b"file" => Content::File,
        b"hole" => Content::Hole,
        b"?" => Content::Unknown,
        call => {
            let (who, place) = split(call, b':').ok_or_else(wrong)?;
            let sign = place.iter().position(|&b| b == b'+' || b == b'-').ok_or_else(wrong)?;
            let memory = place[sign..].strip_prefix(b"+").unwrap_or(&place[sign..]);
            Content::Call { rank: rank(who, ranks)?, begin_ns: unsigned(&place[..sign])?, memory: signed(memory)? }
        }
    };
    Ok(Origin { bytes, content })
}
