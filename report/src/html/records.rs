//! Records inside a page: the compressed document as a download link.

use std::io::{self, Write};

/// Output a tenth smaller than at the default level, at the speed at which the document is written.
const LEVEL: i32 = 6;
/// Maximum size of the compressed records of one page; larger ones are not included.
pub const MAX_BYTES: usize = 3 << 20;

struct CappedWriter {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for CappedWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + buffer.len() > self.most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more records than a page may have"));
        }
        self.bytes.extend_from_slice(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses the output of `write`; None if it exceeds `most` bytes or cannot be written. Stops at the first error.
pub fn compressed(most: usize, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Option<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(CappedWriter { bytes: Vec::new(), most }, LEVEL).ok()?;
    encoder.include_checksum(true).ok()?;
    let mut buffered = io::BufWriter::with_capacity(1 << 16, &mut encoder);
    write(&mut buffered).and_then(|()| buffered.flush()).ok()?;
    drop(buffered);
    encoder.finish().ok().map(|capped| capped.bytes)
}

/// Encodes bytes in base64.
pub fn base64(bytes: &[u8], out: &mut String) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.reserve(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|place| u32::from(group.get(place).copied().unwrap_or(0)));
        let all = (a << 16) | (b << 8) | c;
        for place in 0..4_u32 {
            let letter = LETTERS[(all >> (18 - 6 * place)) as usize & 63];
            out.push(if place as usize <= group.len() { char::from(letter) } else { '=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_standard() {
        for (bytes, letters) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            let mut out = String::new();
            base64(bytes.as_bytes(), &mut out);
            assert_eq!(out, letters);
        }
    }

    #[test]
    fn records_round_trip_or_exceed_the_limit() {
        let text = "{\"a\": 1}\n".repeat(1000);
        let bytes = compressed(MAX_BYTES, |out| out.write_all(text.as_bytes())).unwrap();
        assert!(bytes.len() < text.len() / 10);
        assert_eq!(zstd::decode_all(bytes.as_slice()).unwrap(), text.as_bytes());
        // The limit is exact, and no bytes are lost at the end.
        let most = |most| compressed(most, |out| out.write_all(text.as_bytes()));
        assert_eq!(most(bytes.len()), Some(bytes.clone()));
        assert_eq!(most(bytes.len() - 1), None);
        // Endless output is aborted.
        let mut word = 1_u64;
        let endless = compressed(1 << 16, |out| loop {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            out.write_all(&word.to_le_bytes())?;
        });
        assert_eq!(endless, None);
    }
}
