//! What the bytes of a file are at the moment: written by which call, from where in its memory.

use std::collections::BTreeMap;

use crate::call::{Content, Origin};
use crate::layout::Extent;

/// Pieces of a file of which the writer is known; with more, the oldest become unknown.
pub(super) const MOST_PIECES: usize = 8 << 20;

/// Pieces of which one read can say where they came from; the rest is unknown.
pub(super) const MOST_ORIGINS: usize = 4096;

/// A write that is not known to have ended.
pub(super) const OPEN_NS: u64 = u64::MAX;

/// A call that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) rank: u32,
    pub(super) begin_ns: u64,
    /// When it had ended; [`OPEN_NS`]: not known yet.
    pub(super) until_ns: u64,
}

/// `memory` of bytes that were written by nobody in particular.
const NOBODY: i64 = i64::MIN;

/// 32 bytes: there are millions of them.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: i64,
    /// Where the first byte was in the writer's memory, or [`NOBODY`].
    memory: i64,
    begin_ns: u64,
    rank: u32,
    took: Took,
}

/// How long a write took: in ns up to 2 s, above in units of 1024 ns, rounded up; u32::MAX: not known, or more than half an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Took(u32);

const COARSE: u32 = 1 << 31;

impl Took {
    fn new(ns: u64) -> Self {
        match u32::try_from(ns) {
            Ok(ns) if ns < COARSE => Self(ns),
            _ => Self(
                u32::try_from(ns.div_ceil(1024))
                    .ok()
                    .filter(|units| *units < COARSE - 1)
                    .map_or(u32::MAX, |units| units | COARSE),
            ),
        }
    }

    fn ns(self) -> Option<u64> {
        match self.0 {
            u32::MAX => None,
            ns if ns < COARSE => Some(ns.into()),
            units => Some(u64::from(units & !COARSE) * 1024),
        }
    }
}

impl Piece {
    fn new(end: i64, memory: i64, writer: Writer) -> Self {
        let took = if writer.until_ns == OPEN_NS { u64::MAX } else { writer.until_ns.saturating_sub(writer.begin_ns) };
        Self { end, memory, begin_ns: writer.begin_ns, rank: writer.rank, took: Took::new(took) }
    }

    fn until_ns(&self) -> u64 {
        self.took.ns().map_or(OPEN_NS, |ns| self.begin_ns.saturating_add(ns))
    }

    fn writer(&self) -> Writer {
        Writer { rank: self.rank, begin_ns: self.begin_ns, until_ns: self.until_ns() }
    }

    /// The part of it between two places.
    fn part(mut self, own_start: i64, start: i64, end: i64) -> Self {
        if self.memory != NOBODY {
            self.memory += start - own_start;
        }
        self.end = end;
        self
    }
}

/// The content of a file.
#[derive(Debug)]
pub(super) struct Contents {
    pieces: BTreeMap<i64, Piece>,
    most_pieces: usize,
    /// Size before the first opening; None: not known.
    base_bytes: Option<u64>,
    /// Parts that came without a call: the file was longer at a later opening than all calls had made it.
    grown: Vec<(i64, i64)>,
    /// Accesses to unknown places that are under way.
    pub(super) strays: u64,
    /// When the last of them had ended.
    pub(super) strayed_ns: Option<u64>,
    /// How often old pieces were given up.
    pub(super) forgotten: u64,
}

impl Contents {
    pub(super) fn new(base_bytes: Option<u64>, most_pieces: usize) -> Self {
        Self {
            pieces: BTreeMap::new(),
            most_pieces,
            base_bytes,
            grown: Vec::new(),
            strays: 0,
            strayed_ns: None,
            forgotten: 0,
        }
    }

    /// The file has this size before an opening. What is longer than all calls made it was written by other means than MPI-IO.
    pub(super) fn found(&mut self, size_bytes: u64) {
        let size = i64::try_from(size_bytes).unwrap_or(i64::MAX);
        let base = self.base_bytes.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let written = self.pieces.last_key_value().map_or(0, |(_, piece)| piece.end);
        let known = self.grown.last().map_or(0, |part| part.1).max(base).max(written);
        // Pieces that were given up may have been the last.
        if size > known && self.forgotten == 0 && self.base_bytes.is_some() {
            self.grown.push((known, size));
        } else if size > known {
            self.base_bytes = None;
        }
    }

    /// A write begins: its bytes in the file, and where the first of them is in memory (None: unknown).
    pub(super) fn write(&mut self, extent: Extent, memory: Option<i64>, writer: Writer) {
        let (start, end) = (extent.at, extent.at.saturating_add_unsigned(extent.bytes));
        let new = Piece::new(end, memory.unwrap_or(NOBODY), writer);
        if self.pieces.range(..end).next_back().is_none_or(|(_, before)| before.end <= start) {
            self.put(start, new);
            return self.limit();
        }
        self.cut(start);
        self.cut(end);
        let mut clash: Vec<(i64, Piece)> = Vec::new();
        let mut under = 0;
        for (begin, piece) in self.pieces.range(start..end) {
            under += 1;
            if piece.until_ns() >= writer.begin_ns {
                clash.push((*begin, *piece));
            }
        }
        if under == 1 && clash.is_empty() {
            if let Some(piece) = self.pieces.get_mut(&start) {
                // The usual case of overwriting in place.
                *piece = new;
                return;
            }
        }
        if under > 0 {
            let old: Vec<i64> = self.pieces.range(start..end).map(|(begin, _)| *begin).collect();
            for begin in old {
                self.pieces.remove(&begin);
            }
        }
        let mut at = start;
        for (begin, piece) in clash {
            if begin > at {
                self.put(at, new.part(start, at, begin));
            }
            // Two writes at the same time: either may be what stays.
            let until_ns = piece.until_ns().max(writer.until_ns);
            self.put(begin, Piece::new(piece.end, NOBODY, Writer { until_ns, ..writer }));
            at = piece.end;
        }
        if at < end {
            self.put(at, new.part(start, at, end));
        }
        self.limit();
    }

    fn limit(&mut self) {
        if self.pieces.len() > self.most_pieces {
            self.forget();
        }
    }

    /// Adds a piece where there is none; joins it with the one before if that goes on in it.
    fn put(&mut self, start: i64, piece: Piece) {
        if let Some((begin, before)) = self.pieces.range_mut(..start).next_back() {
            let goes_on = match (before.memory, piece.memory) {
                (NOBODY, NOBODY) => true,
                (NOBODY, _) | (_, NOBODY) => false,
                (one, other) => one.checked_add(start - *begin) == Some(other),
            };
            if before.end == start && before.writer() == piece.writer() && goes_on {
                before.end = piece.end;
                return;
            }
        }
        self.pieces.insert(start, piece);
    }

    fn cut(&mut self, at: i64) {
        let Some((begin, piece)) = self.pieces.range_mut(..at).next_back() else { return };
        if piece.end > at {
            let behind = piece.part(*begin, at, piece.end);
            piece.end = at;
            self.pieces.insert(at, behind);
        }
    }

    /// A write has ended that began without its end being known.
    pub(super) fn ended(&mut self, extents: impl Iterator<Item = Extent>, rank: u32, begin_ns: u64, until_ns: u64) {
        for extent in extents {
            let end = extent.at.saturating_add_unsigned(extent.bytes);
            let from = self.pieces.range(..=extent.at).next_back().map_or(extent.at, |(begin, _)| *begin);
            for (_, piece) in self.pieces.range_mut(from..end) {
                if piece.memory != NOBODY && piece.rank == rank && piece.begin_ns == begin_ns {
                    *piece = Piece::new(piece.end, piece.memory, Writer { rank, begin_ns, until_ns });
                }
            }
        }
    }

    /// The file is deleted, cut off, or treated in another way that leaves nothing known behind a place.
    pub(super) fn lose(&mut self, from: i64, writer: Writer) {
        if let Ok(bytes) = u64::try_from(i64::MAX - from) {
            self.write(Extent { at: from, bytes }, None, writer);
        }
    }

    /// Gives up the older three quarters of the pieces: those that follow each other become one.
    fn forget(&mut self) {
        self.forgotten += 1;
        let mut begins: Vec<u64> = self.pieces.values().map(|piece| piece.begin_ns).collect();
        let at = begins.len() / 4 * 3;
        let (_, limit, _) = begins.select_nth_unstable(at);
        let limit = *limit;
        let mut kept: Vec<(i64, Piece)> = Vec::new();
        for (start, mut piece) in std::mem::take(&mut self.pieces) {
            if piece.begin_ns < limit {
                piece.memory = NOBODY;
                if let Some((_, before)) = kept.last_mut().filter(|(_, before)| before.memory == NOBODY) {
                    let until_ns = before.until_ns().max(piece.until_ns());
                    let begin_ns = before.begin_ns.max(piece.begin_ns);
                    *before = Piece::new(piece.end, NOBODY, Writer { until_ns, begin_ns, ..before.writer() });
                    continue;
                }
            }
            kept.push((start, piece));
        }
        self.pieces = kept.into_iter().collect();
    }

    /// Where the bytes of a read come from that began then and has ended by now.
    pub(super) fn origins(&self, extents: impl Iterator<Item = Extent>, read_begin_ns: u64, bytes: u64) -> Vec<Origin> {
        let mut list = Vec::new();
        let strayed = self.strays > 0 || self.strayed_ns.is_some_and(|ns| ns >= read_begin_ns);
        if !strayed {
            for extent in extents {
                self.origins_of(extent, read_begin_ns, &mut list);
                if list.len() > MOST_ORIGINS {
                    list.truncate(MOST_ORIGINS - 1);
                    break;
                }
            }
        }
        let known: u64 = list.iter().map(|origin| origin.bytes).sum();
        add(&mut list, bytes.saturating_sub(known), Content::Unknown);
        list
    }

    fn origins_of(&self, extent: Extent, read_begin_ns: u64, list: &mut Vec<Origin>) {
        let (start, end) = (extent.at, extent.at.saturating_add_unsigned(extent.bytes));
        let from = self.pieces.range(..=start).next_back().map_or(start, |(begin, _)| *begin);
        let mut at = start;
        for (begin, piece) in self.pieces.range(from..end) {
            if piece.end <= at {
                continue;
            }
            if *begin > at {
                self.base(at, *begin, list);
                at = *begin;
            }
            let stop = piece.end.min(end);
            let is_sure = piece.memory != NOBODY
                && piece.until_ns() < read_begin_ns
                && self.strayed_ns.is_none_or(|ns| ns < piece.begin_ns);
            let content = if is_sure {
                Content::Call { rank: piece.rank, begin_ns: piece.begin_ns, memory: piece.memory + (at - begin) }
            } else {
                Content::Unknown
            };
            add(list, (stop - at) as u64, content);
            at = stop;
            if list.len() > MOST_ORIGINS {
                return;
            }
        }
        if at < end {
            self.base(at, end, list);
        }
    }

    /// What was there before anything was written.
    fn base(&self, start: i64, end: i64, list: &mut Vec<Origin>) {
        let size = self.base_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        match size.filter(|_| self.strayed_ns.is_none()) {
            None => add(list, (end - start) as u64, Content::Unknown),
            Some(size) => {
                let middle = size.clamp(start, end);
                add(list, (middle - start) as u64, Content::File);
                let mut at = middle;
                for (from, to) in &self.grown {
                    let (from, to) = ((*from).clamp(at, end), (*to).clamp(at, end));
                    add(list, (from - at) as u64, Content::Hole);
                    add(list, (to - from) as u64, Content::File);
                    at = to;
                }
                add(list, (end - at) as u64, Content::Hole);
            }
        }
    }
}

/// Adds bytes to a list of origins; joins what goes on.
fn add(list: &mut Vec<Origin>, bytes: u64, content: Content) {
    if bytes == 0 {
        return;
    }
    if let Some(last) = list.last_mut() {
        let goes_on = match (last.content, content) {
            (Content::Call { rank, begin_ns, memory }, Content::Call { rank: r, begin_ns: b, memory: m }) => {
                (rank, begin_ns) == (r, b) && memory.checked_add_unsigned(last.bytes) == Some(m)
            }
            (one, other) => one == other,
        };
        if goes_on {
            last.bytes += bytes;
            return;
        }
    }
    list.push(Origin { bytes, content });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_without_a_call_is_of_the_file() {
        let mut contents = Contents::new(Some(100), 1000);
        let writer = Writer { rank: 0, begin_ns: 5, until_ns: 6 };
        contents.write(Extent { at: 150, bytes: 50 }, Some(0), writer);
        // As long as the calls made it: nothing came. The hole stays one.
        contents.found(200);
        let list = |contents: &Contents, bytes| contents.origins([Extent { at: 0, bytes }].into_iter(), 10, bytes);
        let of = |bytes, content| Origin { bytes, content };
        let call = Content::Call { rank: 0, begin_ns: 5, memory: 0 };
        assert_eq!(list(&contents, 200), [of(100, Content::File), of(50, Content::Hole), of(50, call)]);
        contents.found(300);
        contents.found(300);
        let grown = [
            of(100, Content::File),
            of(50, Content::Hole),
            of(50, call),
            of(100, Content::File),
            of(20, Content::Hole),
        ];
        assert_eq!(list(&contents, 320), grown);
        // A size that was not known before cannot be compared.
        let mut unknown = Contents::new(None, 1000);
        unknown.found(50);
        assert_eq!(list(&unknown, 60), [of(60, Content::Unknown)]);
    }
}
