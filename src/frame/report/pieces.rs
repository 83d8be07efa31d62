//! Reads the longest list of a large document by several threads. The writer puts each of its elements on a line of its own
//! (`elements.rs`), so the list can be cut at ends of lines. A document of another form is read as a whole.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use memchr::{memchr, memmem};
use serde::de::DeserializeOwned;

/// Below this a single thread is done before others have begun.
const LEAST_BYTES: usize = 8 << 20;
/// Of one piece, about.
const PIECE_BYTES: usize = 2 << 20;
/// More threads wait for memory.
const MOST_THREADS: usize = 16;

/// Puts the elements of a piece behind those that the result has, with room for so many that are still to come.
type Append<R> = Box<dyn FnOnce(&mut R, usize) + Send>;

/// What was read of a piece.
pub struct Made<R> {
    elements: usize,
    append: Append<R>,
}

impl<R> Made<R> {
    /// So many elements, and what puts them behind those that the result has: the number it is given are still to come, these included.
    pub fn new(elements: usize, append: impl FnOnce(&mut R, usize) + Send + 'static) -> Self {
        Self { elements, append: Box::new(append) }
    }
}

/// The list of a document that grows with the run.
#[derive(Debug)]
pub struct LongList<R> {
    /// Its name, at the outer level of the document.
    pub name: &'static str,
    /// True if the result has nothing in this list.
    pub is_empty: fn(&R) -> bool,
    /// Reads one piece.
    pub read: fn(&Piece<'_>) -> Option<Made<R>>,
}

/// Lines of the list.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    bytes: &'a [u8],
    is_last: bool,
}

impl Piece<'_> {
    /// The elements; None: they are not one on each line, with commas between them, or no such elements.
    pub fn elements<T: DeserializeOwned>(&self) -> Option<Vec<T>> {
        let (mut rest, mut found) = (Some(self.bytes), Vec::new());
        while let Some(bytes) = rest {
            let (line, others) = match memchr(b'\n', bytes) {
                Some(end) => (&bytes[..end], Some(&bytes[end + 1..])),
                None => (bytes, None),
            };
            rest = others;
            let line = line.trim_ascii();
            let line = match line.strip_suffix(b",") {
                Some(line) if !(self.is_last && rest.is_none()) => line,
                None if self.is_last && rest.is_none() => line,
                _ => return None,
            };
            found.push(serde_json::from_slice(line).ok()?);
        }
        Some(found)
    }
}

/// The lines of a list at the outer level, without the end of the last one. None: there is no such list, or it is short.
fn lines_of(bytes: &[u8], name: &str) -> Option<Range<usize>> {
    let begins = format!("\n  \"{name}\": [\n");
    // No text of JSON has an end of line in it.
    let begin = memmem::find(bytes, begins.as_bytes())? + begins.len();
    let end = begin + memmem::find(&bytes[begin..], b"\n  ]")?;
    (end - begin >= LEAST_BYTES).then_some(begin..end)
}

/// Cuts behind ends of lines.
fn cut(bytes: &[u8]) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while rest.len() > PIECE_BYTES {
        let Some(end) = memchr(b'\n', &rest[PIECE_BYTES..]) else { break };
        let (piece, others) = rest.split_at(PIECE_BYTES + end);
        pieces.push(Piece { bytes: piece, is_last: false });
        rest = &others[1..];
    }
    pieces.push(Piece { bytes: rest, is_last: true });
    pieces
}

/// The document; None: it is short or of another form, or something is wrong with it, which reading it as a whole will tell.
pub(super) fn read<R: DeserializeOwned>(bytes: &[u8], list: &LongList<R>) -> Option<R> {
    let lines = lines_of(bytes, list.name)?;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let pieces = cut(&bytes[lines.clone()]);
    let next = AtomicUsize::new(0);
    let made: Vec<Mutex<Option<Made<R>>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((piece, made)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| pieces.get(n).zip(made.get(n)))
        {
            let Some(read) = (list.read)(piece) else {
                // The others need not go on.
                next.store(pieces.len(), Ordering::Relaxed);
                break;
            };
            if let Ok(mut made) = made.lock() {
                *made = Some(read);
            }
        }
    };
    let mut result: R = thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        let rest = [&bytes[..lines.start], &bytes[lines.end..]].concat();
        let result = serde_json::from_slice(&rest).ok();
        if result.is_none() {
            next.store(pieces.len(), Ordering::Relaxed);
        }
        work();
        result
    })?;
    // A list of this name somewhere else.
    if !(list.is_empty)(&result) {
        return None;
    }
    let made: Option<Vec<_>> = made.into_iter().map(|made| made.into_inner().ok()?).collect();
    let made = made?;
    let mut left: usize = made.iter().map(|made| made.elements).sum();
    for Made { elements, append } in made {
        append(&mut result, left);
        left -= elements;
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    struct Numbers {
        many: Vec<(u64, String)>,
        more: Vec<u64>,
    }

    const LIST: LongList<Numbers> = LongList {
        name: "many",
        is_empty: |numbers| numbers.many.is_empty(),
        read: |piece| {
            let mut many = piece.elements()?;
            let count = many.len();
            Some(Made::new(count, move |numbers: &mut Numbers, _| numbers.many.append(&mut many)))
        },
    };

    fn document(elements: usize) -> String {
        let text = "x".repeat(1000);
        let lines: Vec<String> = (0..elements).map(|n| format!("    [{n},\"{text}\\n  ]\"]")).collect();
        format!("{{\n  \"many\": [\n{}\n  ],\n  \"more\": [\n    1,\n    2\n  ]\n}}\n", lines.join(",\n"))
    }

    #[test]
    fn a_long_list_is_read_in_pieces_and_a_short_one_is_not() {
        let text = document(10_000);
        let whole: Numbers = serde_json::from_str(&text).unwrap();
        assert_eq!((whole.many.len(), whole.more.len()), (10_000, 2));
        assert!(cut(&text.as_bytes()[lines_of(text.as_bytes(), "many").unwrap()]).len() > 3);
        assert_eq!(read(text.as_bytes(), &LIST), Some(whole));
        assert_eq!(read(document(100).as_bytes(), &LIST), None);
        assert_eq!(lines_of(text.as_bytes(), "none"), None);
    }

    /// What is wrong is wrong in pieces too; the whole is asked where.
    #[test]
    fn damage_is_left_to_who_reads_the_whole() {
        let text = document(10_000);
        let places: Vec<usize> = [0, 3333, 9999].iter().map(|n| text.find(&format!("[{n},")).unwrap()).collect();
        for at in places {
            for (from, to) in [("[", "{"), ("\"", ""), ("x", "\n"), ("\"],", "\"]"), ("\"],", "\"],,")] {
                let Some(place) = text[at..].find(from) else { continue };
                let mut damaged = text.clone();
                damaged.replace_range(at + place..at + place + from.len(), to);
                assert_eq!(read(damaged.as_bytes(), &LIST), None, "{at}: {from} {to}");
                assert!(serde_json::from_str::<Numbers>(&damaged).is_err(), "{at}: {from} {to}");
            }
        }
        let ends = text.rfind("\"]\n  ],").unwrap();
        for to in ["\"],\n  ],", "\"]\n  ]", "\"]\n  ],,"] {
            let mut damaged = text.clone();
            damaged.replace_range(ends..ends + 7, to);
            assert_eq!(read(damaged.as_bytes(), &LIST), None, "{to}");
            assert!(serde_json::from_str::<Numbers>(&damaged).is_err(), "{to}");
        }
        assert_eq!(read(&text.as_bytes()[..text.len() - 3], &LIST), None);
        let twice = text.replacen("\"more\"", "\"many\"", 1);
        assert_eq!(read(twice.as_bytes(), &LIST), None);
    }
}
