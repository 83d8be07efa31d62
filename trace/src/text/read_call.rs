//! Parses a line into a call.

use super::error::{quoted, TextError};
use super::fields::{index, list, signed, text, unsigned, unsigned32, LineField, LineFields};
use super::keys::{self, Key, KeySet};
use crate::{Amode, Call, CallId, Completion, DataOrigin, ErrorClass, Function, OriginRange, Whence};

/// Lengths of the dictionaries that calls refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DictionarySizes {
    pub ranks: usize,
    pub comms: usize,
    pub types: usize,
    pub infos: usize,
    pub files: usize,
}

pub(super) struct CallParser {
    sizes: DictionarySizes,
    /// Known names; a profile has few.
    known_functions: Vec<(Vec<u8>, FunctionKeys)>,
}

/// Meaning of a name: the function, whether it is the large-count variant, its required and allowed keys.
#[derive(Clone, Copy)]
struct FunctionKeys {
    function: Function,
    large_count: bool,
    needed: KeySet,
    allowed: KeySet,
}

type Result<T> = std::result::Result<T, TextError>;

impl CallParser {
    pub(super) fn new(sizes: DictionarySizes) -> Self {
        Self { sizes, known_functions: Vec::new() }
    }

    pub(super) fn parse_line(&mut self, line: &[u8]) -> Result<Call> {
        let mut fields = LineFields::new(line);
        let begin_ns = time(&mut fields, "begin")?;
        let end_ns = time(&mut fields, "end")?;
        let field = fields.required("function", "a call is BEGIN_NS,END_NS,FUNCTION,key=value,...")?;
        let FunctionKeys { function, large_count: large, needed, allowed } = self.parse_function(&field)?;
        if end_ns < begin_ns {
            let next = "times are in ns since the first event of all processes; the first two fields are begin and end";
            return Err(TextError::new("it ends before it begins", next).with_field(2, "end"));
        }
        let mut call = Call::new(function, begin_ns, end_ns);
        call.large_count = large;
        let mut have = KeySet::default();
        while let Some(field) = fields.next() {
            let field = field?;
            if let Some((name, value)) = field.plain_pair() {
                self.parse_pair(&mut call, (needed, allowed), &mut have, (name, value), field.number)?;
            } else {
                let (name, value) = field.required_pair()?;
                self.parse_pair(&mut call, (needed, allowed), &mut have, (&name, &value), field.number)?;
            }
        }
        if call.error.is_none() {
            if let Some(key) = needed.first_difference(have) {
                let next = format!(
                    "{} requires {}, unless it failed (error=...); write {}=? if unknown",
                    function.name(),
                    key_names(needed),
                    key.name()
                );
                return Err(TextError::new(format!("{}= is missing", key.name()), next));
            }
        }
        Ok(call)
    }

    #[inline]
    fn parse_pair(
        &self,
        call: &mut Call,
        keys: (KeySet, KeySet),
        have: &mut KeySet,
        pair: (&[u8], &[u8]),
        number: usize,
    ) -> Result<()> {
        let (name, value) = pair;
        let (needed, allowed) = keys;
        let function = call.function;
        let Some(key) = Key::named(name) else {
            return Err(unknown_key(name, function, allowed).with_field(number, ""));
        };
        if !allowed.has(key) {
            let next = format!("{} may have {}", function.name(), key_names(allowed));
            let what = format!("{} has no such key", function.name());
            return Err(TextError::new(what, next).with_field(number, key.name()));
        }
        if have.has(key) {
            return Err(TextError::new("duplicate key", "remove one of them").with_field(number, key.name()));
        }
        have.insert(key);
        // Not known to the recording.
        if value == b"?" && needed.has(key) {
            return Ok(());
        }
        self.set_key(call, key, value).map_err(|e| e.with_field(number, key.name()))
    }

    fn parse_function(&mut self, field: &LineField<'_>) -> Result<FunctionKeys> {
        let name = field.bytes()?;
        if let Some(found) = self.known_functions.iter().find(|known| known.0 == *name) {
            return Ok(found.1);
        }
        let found = std::str::from_utf8(&name).ok().and_then(Function::from_name);
        let (function, large) = found.ok_or_else(|| {
            let next = "write the name of the standard, such as File_write_at or File_write_at_c, with or without MPI_";
            TextError::new(format!("{} is not a recorded function", quoted(&name)), next)
                .with_field(field.number, "function")
        })?;
        let (needed, allowed) = keys::of(function);
        let found = FunctionKeys { function, large_count: large, needed, allowed };
        self.known_functions.push((name.into_owned(), found));
        Ok(found)
    }

    fn set_key(&self, call: &mut Call, key: Key, value: &[u8]) -> Result<()> {
        let bounds = &self.sizes;
        match key {
            Key::Thread => call.thread = unsigned32(value)?,
            Key::Error => call.error = Some(error_class(value)?),
            Key::Handle => call.handle = Some(handle(value)?),
            Key::File => call.file = Some(index(value, bounds.files, "file")?),
            // The default of views, which has no name in a call.
            Key::Name if value == b"native" && call.function != Function::RegisterDatarep => {}
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
            Key::Met => call.since_barrier_ns = Some(unsigned(value)?),
            Key::To => call.target = Some(index(value, bounds.files, "file")?),
            Key::From => call.from = list(value).map(|part| origin(part, bounds.ranks)).collect::<Result<_>>()?,
        }
        Ok(())
    }
}

fn time(fields: &mut LineFields<'_>, name: &str) -> Result<u64> {
    let field = fields.required(name, "a call is BEGIN_NS,END_NS,FUNCTION,key=value,...")?;
    unsigned(&field.bytes()?).map_err(|e| e.with_field(field.number, name))
}

pub(super) fn key_names(set: KeySet) -> String {
    let names: Vec<_> = Key::ALL.iter().filter(|key| set.has(**key)).map(|key| key.name()).collect();
    names.join(", ")
}

fn unknown_key(name: &[u8], function: Function, allowed: KeySet) -> TextError {
    TextError::new(
        format!("{} is not a key", quoted(name)),
        format!("{} may have {}", function.name(), key_names(allowed)),
    )
}

fn handle(value: &[u8]) -> Result<u32> {
    match unsigned32(value)? {
        0 => Err(TextError::new("there is no handle 0", "the first file that a rank opens is 1")),
        handle => Ok(handle),
    }
}

fn error_class(value: &[u8]) -> Result<ErrorClass> {
    let name = std::str::from_utf8(value).ok();
    name.and_then(ErrorClass::from_name).ok_or_else(|| {
        TextError::new(
            format!("{} is not an error class", quoted(value)),
            "write its name, such as MPI_ERR_IO or MPI_ERR_OTHER",
        )
    })
}

fn amode(value: &[u8]) -> Result<Amode> {
    let mut mode = 0;
    for part in list(value).filter(|part| *part != b"none") {
        let bit = Amode::NAMES.iter().position(|name| name.as_bytes() == part).ok_or_else(|| {
            TextError::new(
                format!("{} is not a mode", quoted(part)),
                format!("write some of {} separated by ';'", Amode::NAMES.join(" ")),
            )
        })?;
        mode |= 1 << bit;
    }
    Ok(Amode(mode))
}

fn whence(value: &[u8]) -> Result<Whence> {
    let name = std::str::from_utf8(value).ok();
    name.and_then(Whence::from_name)
        .ok_or_else(|| TextError::new(format!("{} is not a whence", quoted(value)), "write set, cur or end"))
}

fn flag(value: &[u8]) -> Result<bool> {
    match value {
        b"0" | b"false" => Ok(false),
        b"1" | b"true" => Ok(true),
        _ => Err(TextError::new(format!("{} is neither 0 nor 1", quoted(value)), "write 0 or 1")),
    }
}

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
    let rank = unsigned32(value)?;
    if (rank as usize) < ranks {
        return Ok(rank);
    }
    Err(TextError::new(format!("there is no rank {rank}: the profile has {ranks}"), "correct the rank, or 'ranks,N'"))
}

fn after(part: &[u8], ranks: usize) -> Result<CallId> {
    let (who, begin) = split(part, b'@').ok_or_else(|| {
        TextError::new(
            format!("{} is not RANK@BEGIN", quoted(part)),
            "write rank and begin of a call of another rank, as in after=0@1200",
        )
    })?;
    Ok(CallId { rank: rank(who, ranks)?, begin_ns: unsigned(begin)? })
}

/// `BYTES@RANK:BEGIN+MEMORY`, `BYTES@file`, `BYTES@hole` or `BYTES@?`.
fn origin(part: &[u8], ranks: usize) -> Result<OriginRange> {
    let wrong = || {
        let next = "write BYTES@RANK:BEGIN+MEMORY, BYTES@file, BYTES@hole or BYTES@?";
        TextError::new(format!("{} is not an origin of data", quoted(part)), next)
    };
    let (bytes, content) = split(part, b'@').ok_or_else(wrong)?;
    let bytes = unsigned(bytes)?;
    let content = match content {
        b"file" => DataOrigin::File,
        b"hole" => DataOrigin::Hole,
        b"?" => DataOrigin::Unknown,
        call => {
            let (who, place) = split(call, b':').ok_or_else(wrong)?;
            let sign = place.iter().position(|&b| b == b'+' || b == b'-').ok_or_else(wrong)?;
            let memory = place[sign..].strip_prefix(b"+").unwrap_or(&place[sign..]);
            DataOrigin::Call { rank: rank(who, ranks)?, begin_ns: unsigned(&place[..sign])?, memory: signed(memory)? }
        }
    };
    Ok(OriginRange { bytes, origin: content })
}
