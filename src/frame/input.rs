//! Files that the user names: read whole, but never more of them than can be meant. A name may lead to a device without an end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::units::format_size;

/// Texts that a person writes: hints, sizes, names.
pub const MOST_TEXT_BYTES: u64 = 1 << 20;
/// Results: some thousand times those of a usual run.
pub const MOST_RESULT_BYTES: u64 = 256 << 20;

/// The bytes of a file.
///
/// # Errors
/// What the kernel says; [`io::ErrorKind::FileTooLarge`] if there are more than `most_bytes`, of which nothing more is read.
pub fn bytes(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most_bytes {
        return Ok(bytes);
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {}", format_size(most_bytes))))
}

/// The same, of a text of at most [`MOST_TEXT_BYTES`].
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
    }
}
