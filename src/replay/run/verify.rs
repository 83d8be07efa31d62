//! Comparison of read data with the expected data: the words written by some call according to the profile, the initial file, or zeros.
//! Outside the timed region.

use std::collections::BTreeMap;

use beff_backends::ReplayProgram;
use beff_trace::access::ResolvedAccess;
use beff_trace::layout::TypeLayouts;
use beff_trace::{DataOrigin, Function};

use super::call_window::ReadToVerify;
use crate::replay::plan::sieving_gaps::SievingGaps;
use crate::replay::run::write_source::WriteSources;
use beff_stamp::{StampStream, POISON_BYTE};

const COMPARE_BYTES: usize = 64 * 1024;

/// First wrong byte of a repetition.
#[derive(Clone, Debug)]
pub(super) struct CorruptRead {
    pub function: Function,
    pub begin_ns: u64,
    pub file: Option<u32>,
    pub offset_bytes: Option<u64>,
    pub data_offset_bytes: u64,
    pub expected: u8,
    pub actual: u8,
    pub expected_from: String,
    pub diagnosis: String,
}

#[derive(Debug)]
pub(super) struct ReadVerifier<'a> {
    layouts: &'a TypeLayouts,
    sources: WriteSources,
    /// Gaps that the backend may have overwritten, by file; None for backends without MPI.
    sieving_gaps: Option<&'a BTreeMap<u32, SievingGaps>>,
    expected: Vec<u8>,
    #[cfg(feature = "test-hooks")]
    inject: bool,
    pub checked_bytes: u64,
    pub unknown_bytes: u64,
    pub wrong_bytes: u64,
    pub corruption: Option<CorruptRead>,
}

/// A part of a read and its expected content.
struct OriginPart<'w> {
    /// First byte in the data of the call.
    data_at: u64,
    bytes: u64,
    content: &'w DataOrigin,
    /// For `File`: first byte in the file.
    file_at: u64,
}

impl<'a> ReadVerifier<'a> {
    /// `gaps`: those that the backend may have overwritten, by file; None if its library never does.
    pub fn new(
        layouts: &'a TypeLayouts,
        sources: WriteSources,
        sieving_gaps: Option<&'a BTreeMap<u32, SievingGaps>>,
    ) -> Self {
        Self {
            layouts,
            sources,
            sieving_gaps,
            expected: vec![0; COMPARE_BYTES],
            #[cfg(feature = "test-hooks")]
            inject: false,
            checked_bytes: 0,
            unknown_bytes: 0,
            wrong_bytes: 0,
            corruption: None,
        }
    }

    /// Injects a fault into the first compared bytes.
    #[cfg(feature = "test-hooks")]
    pub fn with_injection(self, inject: bool) -> Self {
        Self { inject, ..self }
    }

    /// Compares a read that transferred this number of bytes.
    pub fn verify(&mut self, program: &mut dyn ReplayProgram, read: &ReadToVerify, moved_bytes: u64) {
        let (below, above) = read.span;
        let begin = read.memory_at - below;
        if self.sieving_gaps.is_some() && read.datatype.is_some_and(|of| self.layouts.moved_bytes(of) > 0) {
            self.unknown_bytes += moved_bytes;
            return;
        }
        let Ok(memory) = program.landing_range(begin..read.memory_at + above) else {
            // Still in flight here, complete in the profile: reported as a difference.
            self.unknown_bytes += moved_bytes;
            return;
        };
        #[cfg(feature = "test-hooks")]
        if self.inject && moved_bytes > 0 {
            self.inject_fault(memory, read);
        }
        let mut at = 0;
        for origin in &read.from {
            let bytes = origin.bytes.min(moved_bytes - at);
            self.verify_origin(memory, read, &OriginPart { data_at: at, bytes, content: &origin.origin, file_at: 0 });
            at += bytes;
        }
        self.unknown_bytes += moved_bytes - at;
        memory.fill(POISON_BYTE);
    }

    /// Inverts one bit of the first known byte.
    #[cfg(feature = "test-hooks")]
    fn inject_fault(&mut self, memory: &mut [u8], read: &ReadToVerify) {
        let mut at = 0;
        for origin in &read.from {
            if origin.bytes > 0 && origin.origin != DataOrigin::Unknown {
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

    fn memory_walk(&self, read: &ReadToVerify, data_at: u64, bytes: u64) -> Box<dyn Iterator<Item = (i64, u64)> + 'a> {
        match read.datatype {
            Some(of) => Box::new(self.layouts.byte_ranges(of, data_at, bytes, 0).map(|e| (e.at, e.bytes))),
            None => Box::new(std::iter::once((data_at as i64, bytes))),
        }
    }

    fn verify_origin(&mut self, memory: &[u8], read: &ReadToVerify, part: &OriginPart<'_>) {
        let access = match part.content {
            DataOrigin::Unknown => {
                self.unknown_bytes += part.bytes;
                return;
            }
            DataOrigin::Hole if self.gaps_of(read).is_some() => read.location.access,
            DataOrigin::Call { .. } | DataOrigin::Hole => return self.verify_part(memory, read, part),
            DataOrigin::File => read.location.access.filter(|_| read.file.is_some()),
        };
        let Some(access) = access else {
            self.unknown_bytes += part.bytes;
            return;
        };
        let mut data_at = part.data_at;
        let own = ResolvedAccess { first_byte: access.first_byte + part.data_at, bytes: part.bytes, ..access };
        for extent in own.file_ranges(self.layouts) {
            let mut file_at = u64::try_from(extent.at).unwrap_or(0);
            let end = file_at + extent.bytes;
            while file_at < end {
                let gaps = self.gaps_of(read).filter(|_| *part.content == DataOrigin::Hole);
                let (bytes, may_be_written) =
                    gaps.map_or((end - file_at, false), |gaps| gaps.leading_part(&(file_at..end)));
                match may_be_written {
                    true => self.unknown_bytes += bytes,
                    false => {
                        self.verify_part(memory, read, &OriginPart { data_at, bytes, content: part.content, file_at })
                    }
                }
                (data_at, file_at) = (data_at + bytes, file_at + bytes);
            }
        }
    }

    fn gaps_of(&self, read: &ReadToVerify) -> Option<&'a SievingGaps> {
        self.sieving_gaps?.get(&read.file?)
    }

    /// Compares a part with byte-wise known content.
    fn verify_part(&mut self, memory: &[u8], read: &ReadToVerify, part: &OriginPart<'_>) {
        let (words, mut position): (Option<StampStream>, u64) = match part.content {
            DataOrigin::Call { rank, begin_ns, memory } => {
                let address = self.sources.address(*rank, *begin_ns);
                (Some(self.sources.rank_words(*rank)), address.wrapping_add_signed(*memory))
            }
            DataOrigin::File => (read.file.map(|file| self.sources.file_words(file)), part.file_at),
            _ => (None, 0),
        };
        let mut data_at = part.data_at;
        for (at, bytes) in self.memory_walk(read, part.data_at, part.bytes) {
            let start = (at + read.span.0 as i64) as usize;
            let Some(found) = memory.get(start..start + bytes as usize) else {
                self.unknown_bytes += bytes;
                continue;
            };
            for piece in found.chunks(COMPARE_BYTES) {
                let mut expected = std::mem::take(&mut self.expected);
                let own = &mut expected[..piece.len()];
                match words {
                    Some(words) => words.fill_from(position, own),
                    None => own.fill(0),
                }
                self.checked_bytes += piece.len() as u64;
                if own != piece {
                    self.record_mismatch(read, part, data_at, own, piece);
                }
                self.expected = expected;
                position = position.wrapping_add(piece.len() as u64);
                data_at += piece.len() as u64;
            }
        }
    }

    fn record_mismatch(
        &mut self,
        read: &ReadToVerify,
        part: &OriginPart<'_>,
        data_at: u64,
        expected: &[u8],
        found: &[u8],
    ) {
        let differs = |(a, b): (&u8, &u8)| a != b;
        self.wrong_bytes += expected.iter().zip(found).filter(|(a, b)| differs((a, b))).count() as u64;
        let first = expected.iter().zip(found).position(differs).unwrap_or(0);
        if self.corruption.is_some() {
            return;
        }
        let data_offset_bytes = data_at + first as u64;
        let one = |access: ResolvedAccess| ResolvedAccess {
            first_byte: access.first_byte + data_offset_bytes,
            bytes: 1,
            ..access
        };
        let offset = read.location.access.and_then(|access| one(access).file_ranges(self.layouts).next());
        self.corruption = Some(CorruptRead {
            function: read.function,
            begin_ns: read.begin_ns,
            file: read.file,
            offset_bytes: offset.and_then(|extent| u64::try_from(extent.at).ok()),
            data_offset_bytes,
            expected: expected[first],
            actual: found[first],
            expected_from: match part.content {
                DataOrigin::Call { rank, begin_ns, .. } => format!("rank {rank}, call at {begin_ns} ns"),
                DataOrigin::File => "the initial file before the first call".to_owned(),
                _ => "never written: zeros".to_owned(),
            },
            diagnosis: diagnose(&expected[first..], &found[first..]),
        });
    }
}

fn diagnose(expected: &[u8], found: &[u8]) -> String {
    let some = found.len().min(8);
    if found[..some].iter().all(|byte| *byte == POISON_BYTE) {
        "never delivered: the memory is unchanged by the read".to_owned()
    } else if (expected[0] ^ found[0]).count_ones() == 1 && expected[1..some] == found[1..some] {
        "one bit flipped".to_owned()
    } else if found[..some].iter().all(|byte| *byte == 0) {
        "hole (zeros)".to_owned()
    } else {
        "other data: of another call or another offset".to_owned()
    }
}
