//! What reads brought, compared with what must be there: the words that the profile says some call wrote, the file as it was made
//! before the pass, or zeros. Outside of every clock.

use std::collections::BTreeMap;

use beff_backends::Program;
use beff_trace::layout::Layouts;
use beff_trace::places::Access;
use beff_trace::{Content, Function};

use super::window::Read;
use crate::replay::plan::gaps::Gaps;
use crate::replay::run::source::{Sources, Words};
use beff_stamp::POISON_BYTE;

/// Compared in pieces of this many bytes.
const PIECE: usize = 64 * 1024;

/// The first wrong byte of a pass.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub function: Function,
    pub begin_ns: u64,
    pub file: Option<u32>,
    pub offset_bytes: Option<u64>,
    pub data_offset_bytes: u64,
    pub expected: u8,
    pub found: u8,
    pub expected_from: String,
    pub looks_like: String,
}

/// Compares, and counts.
#[derive(Debug)]
pub(super) struct Checker<'a> {
    layouts: &'a Layouts,
    sources: Sources,
    /// Gaps that the backend may have written into, by file.
    gaps: Option<&'a BTreeMap<u32, Gaps>>,
    expected: Vec<u8>,
    #[cfg(feature = "test-hooks")]
    inject: bool,
    pub checked_bytes: u64,
    pub unknown_bytes: u64,
    pub wrong_bytes: u64,
    pub finding: Option<Finding>,
}

/// Some bytes of a read and what they must be.
struct Part<'w> {
    /// First byte in the data of the call.
    data_at: u64,
    bytes: u64,
    content: &'w Content,
    /// Of `File`: first byte in the file.
    file_at: u64,
}

impl<'a> Checker<'a> {
    /// `gaps`: what the backend may have written into, by file, of one whose library does so.
    pub fn new(layouts: &'a Layouts, sources: Sources, gaps: Option<&'a BTreeMap<u32, Gaps>>) -> Self {
        Self {
            layouts,
            sources,
            gaps,
            expected: vec![0; PIECE],
            #[cfg(feature = "test-hooks")]
            inject: false,
            checked_bytes: 0,
            unknown_bytes: 0,
            wrong_bytes: 0,
            finding: None,
        }
    }

    /// With damage to what is compared first.
    #[cfg(feature = "test-hooks")]
    pub fn damaging(self, inject: bool) -> Self {
        Self { inject, ..self }
    }

    /// Compares a read that moved so many bytes.
    pub fn check(&mut self, program: &mut dyn Program, read: &Read, moved_bytes: u64) {
        let (below, above) = read.span;
        let begin = read.memory_at - below;
        let Ok(memory) = program.landed(begin..read.memory_at + above) else {
            // Still under way here, complete in the profile: that is told as a difference.
            self.unknown_bytes += moved_bytes;
            return;
        };
        #[cfg(feature = "test-hooks")]
        if self.inject && moved_bytes > 0 {
            self.damage(memory, read);
        }
        let mut at = 0;
        for origin in &read.from {
            let bytes = origin.bytes.min(moved_bytes - at);
            self.origin(memory, read, &Part { data_at: at, bytes, content: &origin.content, file_at: 0 });
            at += bytes;
        }
        self.unknown_bytes += moved_bytes - at;
        memory.fill(POISON_BYTE);
    }

    /// Turns one bit of the first known byte over.
    #[cfg(feature = "test-hooks")]
    fn damage(&mut self, memory: &mut [u8], read: &Read) {
        let mut at = 0;
        for origin in &read.from {
            if origin.bytes > 0 && origin.content != Content::Unknown {
                let first = self.memory_walk(read, at, 1).next();
                let place = first.and_then(|(place, _)| memory.get_mut((place + read.span.0 as i64) as usize));
                if let Some(byte) = place {
                    *byte ^= 16;
                    self.inject = false;
                    return;
                }
            }
            at += origin.bytes;
        }
    }

    fn memory_walk(&self, read: &Read, data_at: u64, bytes: u64) -> Box<dyn Iterator<Item = (i64, u64)> + 'a> {
        match read.datatype {
            Some(of) => Box::new(self.layouts.walk(of, data_at, bytes, 0).map(|e| (e.at, e.bytes))),
            None => Box::new(std::iter::once((data_at as i64, bytes))),
        }
    }

    fn origin(&mut self, memory: &[u8], read: &Read, part: &Part<'_>) {
        let access = match part.content {
            Content::Unknown => {
                self.unknown_bytes += part.bytes;
                return;
            }
            Content::Hole if self.gaps(read).is_some() => read.places.access,
            Content::Call { .. } | Content::Hole => return self.part(memory, read, part),
            Content::File => read.places.access.filter(|_| read.file.is_some()),
        };
        let Some(access) = access else {
            self.unknown_bytes += part.bytes;
            return;
        };
        let mut data_at = part.data_at;
        let own = Access { first_byte: access.first_byte + part.data_at, bytes: part.bytes, ..access };
        for extent in own.extents(self.layouts) {
            let mut file_at = u64::try_from(extent.at).unwrap_or(0);
            let end = file_at + extent.bytes;
            while file_at < end {
                let gaps = self.gaps(read).filter(|_| *part.content == Content::Hole);
                let (bytes, may_be_written) =
                    gaps.map_or((end - file_at, false), |gaps| gaps.first_part(&(file_at..end)));
                match may_be_written {
                    true => self.unknown_bytes += bytes,
                    false => self.part(memory, read, &Part { data_at, bytes, content: part.content, file_at }),
                }
                (data_at, file_at) = (data_at + bytes, file_at + bytes);
            }
        }
    }

    /// Gaps of the file of a read that the backend may have written into.
    fn gaps(&self, read: &Read) -> Option<&'a Gaps> {
        self.gaps?.get(&read.file?)
    }

    /// A part whose content follows byte by byte.
    fn part(&mut self, memory: &[u8], read: &Read, part: &Part<'_>) {
        let (words, mut position): (Option<Words>, u64) = match part.content {
            Content::Call { rank, begin_ns, memory } => {
                let address = self.sources.address(*rank, *begin_ns);
                (Some(self.sources.of_rank(*rank)), address.wrapping_add_signed(*memory))
            }
            Content::File => (read.file.map(|file| self.sources.of_file(file)), part.file_at),
            _ => (None, 0),
        };
        let mut data_at = part.data_at;
        for (at, bytes) in self.memory_walk(read, part.data_at, part.bytes) {
            let start = (at + read.span.0 as i64) as usize;
            let Some(found) = memory.get(start..start + bytes as usize) else {
                self.unknown_bytes += bytes;
                continue;
            };
            for piece in found.chunks(PIECE) {
                let mut expected = std::mem::take(&mut self.expected);
                let own = &mut expected[..piece.len()];
                match words {
                    Some(words) => words.fill(position, own),
                    None => own.fill(0),
                }
                self.checked_bytes += piece.len() as u64;
                if own != piece {
                    self.wrong(read, part, data_at, own, piece);
                }
                self.expected = expected;
                position = position.wrapping_add(piece.len() as u64);
                data_at += piece.len() as u64;
            }
        }
    }

    fn wrong(&mut self, read: &Read, part: &Part<'_>, data_at: u64, expected: &[u8], found: &[u8]) {
        let differs = |(a, b): (&u8, &u8)| a != b;
        self.wrong_bytes += expected.iter().zip(found).filter(|(a, b)| differs((a, b))).count() as u64;
        let first = expected.iter().zip(found).position(differs).unwrap_or(0);
        if self.finding.is_some() {
            return;
        }
        let data_offset_bytes = data_at + first as u64;
        let one = |access: Access| Access { first_byte: access.first_byte + data_offset_bytes, bytes: 1, ..access };
        let offset = read.places.access.and_then(|access| one(access).extents(self.layouts).next());
        self.finding = Some(Finding {
            function: read.function,
            begin_ns: read.begin_ns,
            file: read.file,
            offset_bytes: offset.and_then(|extent| u64::try_from(extent.at).ok()),
            data_offset_bytes,
            expected: expected[first],
            found: found[first],
            expected_from: match part.content {
                Content::Call { rank, begin_ns, .. } => format!("rank {rank}, call at {begin_ns} ns"),
                Content::File => "the file as it was before the first call".to_owned(),
                _ => "never written: zeros".to_owned(),
            },
            looks_like: looks_like(&expected[first..], &found[first..]),
        });
    }
}

/// What wrong bytes look like, in words.
fn looks_like(expected: &[u8], found: &[u8]) -> String {
    let some = found.len().min(8);
    if found[..some].iter().all(|byte| *byte == POISON_BYTE) {
        "never delivered: the memory still holds what was there before the read".to_owned()
    } else if found[..some].iter().all(|byte| *byte == 0) {
        "hole (zeros)".to_owned()
    } else if (expected[0] ^ found[0]).count_ones() == 1 && expected[1..some] == found[1..some] {
        "one bit flipped".to_owned()
    } else {
        "other data: of another call, or from another place".to_owned()
    }
}
