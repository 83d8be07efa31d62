//! Files that the user names: read whole, but never more of them than can be meant. A name may lead to a device without an end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::system::memory::usable_node_memory_bytes;
use super::units::{count, format_size};

/// Texts that a person writes: hints, sizes, names.
pub const MOST_TEXT_BYTES: u64 = 1 << 20;
/// Results that may be read on any machine, and of what is no file with a length: some thousand times those of a usual run.
pub const MOST_RESULT_BYTES: u64 = 256 << 20;
/// A result is held whole while its records are made: of the memory it may have one part in so many.
const PARTS_OF_MEMORY: u64 = 8;
/// What a value of JSON takes in memory at most, while it is read: a list grows by doubling, its elements have up to 32 bytes each.
const BYTES_OF_A_VALUE: u64 = 64;
/// Of the memory, what the values of a result may take: one part in so many.
const PARTS_FOR_VALUES: u64 = 2;

/// The bytes of a file.
///
/// # Errors
/// What the kernel says; [`io::ErrorKind::FileTooLarge`] if there are more than `most_bytes`, of which nothing more is read.
pub fn bytes(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    whole(File::open(path)?, most_bytes, "")
}

/// The bytes of a result: as many as the memory of this machine allows, at least [`MOST_RESULT_BYTES`]. A file that would take much more
/// memory than it has bytes, as no run writes it, is refused too.
///
/// # Errors
/// Those of [`bytes`]; [`io::ErrorKind::OutOfMemory`] for a file of too many values.
pub fn result(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let memory_bytes = usable_node_memory_bytes().unwrap_or(0);
    let most_bytes = most_result_bytes(memory_bytes, file.metadata()?.is_file());
    let why = if most_bytes > MOST_RESULT_BYTES { ", an eighth of the memory here" } else { "" };
    let bytes = whole(file, most_bytes, why)?;
    check_values(&bytes, memory_bytes)?;
    Ok(bytes)
}

/// Bytes that a result may have.
fn most_result_bytes(memory_bytes: u64, has_length: bool) -> u64 {
    let of_memory = if has_length { memory_bytes / PARTS_OF_MEMORY } else { 0 };
    of_memory.max(MOST_RESULT_BYTES)
}

fn whole(file: File, most_bytes: u64, why: &str) -> io::Result<Vec<u8>> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let too_large = || {
        Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {}{why}", format_size(most_bytes))))
    };
    if length > most_bytes {
        return too_large();
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // The file may have grown.
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most_bytes {
        return Ok(bytes);
    }
    too_large()
}

/// Refuses what would fill the memory: `[0,0,0,...` has a value for every two bytes, a record of a run one for twelve. Commas, colons and
/// brackets in strings count too, so it is never too few. Memory that is not known (0) allows what [`MOST_RESULT_BYTES`] of a run need.
fn check_values(bytes: &[u8], memory_bytes: u64) -> io::Result<()> {
    let begins = |byte: u8| u8::from(matches!(byte, b',' | b':' | b'[' | b'{'));
    // So many at a time fit into a byte.
    let values: u64 = bytes.chunks(255).map(|part| u64::from(part.iter().map(|b| begins(*b)).sum::<u8>())).sum();
    let needed = values.saturating_mul(BYTES_OF_A_VALUE);
    let allowed = (memory_bytes / PARTS_FOR_VALUES).max(MOST_RESULT_BYTES);
    if needed <= allowed {
        return Ok(());
    }
    let cause = format!(
        "it holds {}, which may need {} of memory; {} of it may be used here",
        count(values, "value"),
        format_size(needed),
        format_size(allowed)
    );
    Err(io::Error::new(io::ErrorKind::OutOfMemory, cause))
}

/// The same as [`bytes`], of a text of at most [`MOST_TEXT_BYTES`].
///
/// # Errors
/// Those of [`bytes`]; [`io::ErrorKind::InvalidData`] for what is not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path, MOST_TEXT_BYTES)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_to_its_limit_and_no_further() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "größe").unwrap();
        assert_eq!(text(&path).unwrap(), "größe");
        assert_eq!(bytes(&path, 7).unwrap().len(), 7);
        let error = bytes(&path, 6).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::FileTooLarge, "it has more than 6 B"));
        let endless = text(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(endless, "it has more than 1 MiB");
        std::fs::write(&path, [0xFF]).unwrap();
        assert_eq!(text(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(result(&path).unwrap(), [0xFF]);
    }

    /// A hole of a terabyte takes nothing on the disk, and would fill the memory.
    #[test]
    fn a_result_that_the_memory_has_no_room_for_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = result(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let endless = result(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(endless, "it has more than 256 MiB");
    }

    #[test]
    fn the_limit_follows_the_memory() {
        assert_eq!(most_result_bytes(0, true), MOST_RESULT_BYTES);
        assert_eq!(most_result_bytes(1 << 30, true), MOST_RESULT_BYTES);
        assert_eq!(most_result_bytes(64 << 30, true), 8 << 30);
        assert_eq!(
            most_result_bytes(64 << 30, false),
            MOST_RESULT_BYTES,
            "a pipe or a device has no end that is known"
        );
    }

    #[test]
    fn what_has_too_many_values_for_the_memory_is_refused() {
        let zeros = |values: usize| [b"[".to_vec(), b"0,".repeat(values), b"0]".to_vec()].concat();
        // 4 Mi values are 256 MiB.
        check_values(&zeros((4 << 20) - 1), 0).unwrap();
        let error = check_values(&zeros(4 << 20), 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().starts_with("it holds 4194305 values, which may need 256.0 MiB"), "{error}");
        check_values(&zeros(4 << 20), 1 << 30).unwrap();
        // 255 of them side by side are counted as 255.
        check_values(&b"[".repeat(4 << 20), 0).unwrap();
        check_values(&b"[".repeat((4 << 20) + 1), 0).unwrap_err();
    }
}
