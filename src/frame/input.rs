//! Files that the user names, read up to a limit: a name may lead to a device without an end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::error::UsageError;
use super::system::memory::usable_node_memory_bytes;
use super::units::{count, format_size};

/// Limit of texts that a person writes: hints, sizes, names.
pub const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Limit of results on any machine, and of files without a length: some thousand times that of a usual run.
pub const DEFAULT_MAX_RESULT_BYTES: u64 = 256 << 20;
/// A result is held in memory while its records are parsed: divisor of the memory that it may occupy.
const RESULT_MEMORY_DIVISOR: u64 = 8;
/// Maximum memory of a JSON value while it is parsed: a list grows by doubling, its elements have up to 32 bytes each.
const MAX_BYTES_PER_VALUE: u64 = 64;
/// Divisor of the memory that the values of a result may occupy.
const VALUE_MEMORY_DIVISOR: u64 = 2;

/// Reads a file.
///
/// # Errors
/// Errors of the kernel; [`io::ErrorKind::FileTooLarge`] for more than `most_bytes`, which are not read.
pub fn bytes(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    read_limited(File::open(path)?, most_bytes, "")
}

/// Reads a result, up to a limit by the memory of this machine, at least [`DEFAULT_MAX_RESULT_BYTES`]. A file that needs much more memory than
/// it has bytes, unlike those of a run, is refused too.
///
/// # Errors
/// Those of [`bytes`]; [`io::ErrorKind::OutOfMemory`] for too many values.
pub fn read_result(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let memory_bytes = usable_node_memory_bytes().unwrap_or(0);
    let most_bytes = max_result_bytes(memory_bytes, file.metadata()?.is_file());
    let why = if most_bytes > DEFAULT_MAX_RESULT_BYTES { ", an eighth of the memory here" } else { "" };
    let bytes = read_limited(file, most_bytes, why)?;
    check_value_count(&bytes, memory_bytes)?;
    Ok(bytes)
}

fn max_result_bytes(memory_bytes: u64, has_length: bool) -> u64 {
    let of_memory = if has_length { memory_bytes / RESULT_MEMORY_DIVISOR } else { 0 };
    of_memory.max(DEFAULT_MAX_RESULT_BYTES)
}

fn read_limited(file: File, most_bytes: u64, why: &str) -> io::Result<Vec<u8>> {
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

/// Refuses files that would fill the memory: `[0,0,0,...` has a value for every two bytes, a record of a run one for twelve. Commas,
/// colons and brackets in strings count too, so the estimate is never too low. Unknown memory (0) allows [`DEFAULT_MAX_RESULT_BYTES`].
fn check_value_count(bytes: &[u8], memory_bytes: u64) -> io::Result<()> {
    let begins = |byte: u8| u8::from(matches!(byte, b',' | b':' | b'[' | b'{'));
    // At most 255 fit into a byte.
    let values: u64 = bytes.chunks(255).map(|part| u64::from(part.iter().map(|b| begins(*b)).sum::<u8>())).sum();
    let needed = values.saturating_mul(MAX_BYTES_PER_VALUE);
    let allowed = (memory_bytes / VALUE_MEMORY_DIVISOR).max(DEFAULT_MAX_RESULT_BYTES);
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

/// Reads a text of at most [`MAX_TEXT_BYTES`].
///
/// # Errors
/// Those of [`bytes`]; [`io::ErrorKind::InvalidData`] if not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path, MAX_TEXT_BYTES)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the text of `--require`.
///
/// # Errors
/// A file that cannot be read, is too long or is no text.
pub fn requirements_text(path: &Path) -> Result<String, UsageError> {
    let refused =
        |error| UsageError::new(format!("--require {}: cannot be read: {error}", path.display()), "Name a text file.");
    read_text(path).map_err(refused)
}

/// Error for a line of `--require`.
#[must_use]
pub fn requirements_error(path: &Path, cause: &str) -> UsageError {
    UsageError::new(
        format!("--require {}: {cause}", path.display()),
        "docs/acceptance.md has all forms of a line; # begins a comment.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_to_its_limit_and_no_further() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "größe").unwrap();
        assert_eq!(read_text(&path).unwrap(), "größe");
        assert_eq!(bytes(&path, 7).unwrap().len(), 7);
        let error = bytes(&path, 6).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::FileTooLarge, "it has more than 6 B"));
        let endless = read_text(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(endless, "it has more than 1 MiB");
        std::fs::write(&path, [0xFF]).unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_result(&path).unwrap(), [0xFF]);
    }

    /// A sparse file of a terabyte uses no space on the disk, and would fill the memory.
    #[test]
    fn a_result_larger_than_the_memory_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read_result(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let endless = read_result(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(endless, "it has more than 256 MiB");
    }

    #[test]
    fn the_limit_follows_the_memory() {
        assert_eq!(max_result_bytes(0, true), DEFAULT_MAX_RESULT_BYTES);
        assert_eq!(max_result_bytes(1 << 30, true), DEFAULT_MAX_RESULT_BYTES);
        assert_eq!(max_result_bytes(64 << 30, true), 8 << 30);
        assert_eq!(
            max_result_bytes(64 << 30, false),
            DEFAULT_MAX_RESULT_BYTES,
            "the length of a pipe or a device is unknown"
        );
    }

    #[test]
    fn what_has_too_many_values_for_the_memory_is_refused() {
        let zeros = |values: usize| [b"[".to_vec(), b"0,".repeat(values), b"0]".to_vec()].concat();
        // 4 Mi values are 256 MiB.
        check_value_count(&zeros((4 << 20) - 1), 0).unwrap();
        let error = check_value_count(&zeros(4 << 20), 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().starts_with("it holds 4194305 values, which may need 256.0 MiB"), "{error}");
        check_value_count(&zeros(4 << 20), 1 << 30).unwrap();
        // 255 in a row are counted as 255.
        check_value_count(&b"[".repeat(4 << 20), 0).unwrap();
        check_value_count(&b"[".repeat((4 << 20) + 1), 0).unwrap_err();
    }
}
