//! Transfers through real MPI, as a world of one: counts too large for a C integer are carried by derived datatypes. The
//! limit is lowered here, so that kilobytes show what gigabytes would do.

use std::path::PathBuf;

use beff_ffi::{Access, Comm, Element, FileType, Info, MpiFile, Open, TransferType, Universe};

const DOUBLE: Element = Element::Double;

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
}

/// MPI starts once in a process, so everything is one test.
#[test]
fn derived_datatypes_stand_for_large_counts() {
    let _universe = Universe::init().unwrap();
    let own = Comm::own();
    let data: Vec<u8> = (0..80_000_u32).map(|n| (n % 251) as u8).collect();
    // Below, at and above the limit; whole blocks, a rest, and more blocks than the limit.
    for (bytes, max_count) in [(800, 1000), (8000, 1000), (8008, 1000), (16_000, 1000), (79_992, 1000), (80_000, 70)] {
        let path = scratch("large-counts");
        let what = TransferType::new(DOUBLE, bytes, Some(max_count)).unwrap();
        let none = Info::new(&[]).unwrap();
        let file = MpiFile::open(&own, &path, Open::CreateNew, false, &none).unwrap();
        file.set_view(24, &FileType::strided(DOUBLE, 8, 8).unwrap(), &none).unwrap();
        assert_eq!(file.write(Access::Pointer, 0, &data[..bytes as usize], &what).unwrap(), bytes);
        file.sync().unwrap();
        assert_eq!(file.size_bytes().unwrap(), 24 + bytes);

        file.set_view(24, &FileType::strided(DOUBLE, 8, 8).unwrap(), &none).unwrap();
        let mut back = vec![0; bytes as usize];
        assert_eq!(file.read(Access::Pointer, 0, &mut back, &what).unwrap(), bytes);
        assert_eq!(back, data[..bytes as usize]);
        // The end of the file: what was moved is counted in doubles, not in whole transfers.
        file.set_view(24 + bytes - 16, &FileType::strided(DOUBLE, 8, 8).unwrap(), &none).unwrap();
        assert_eq!(file.read(Access::Pointer, 0, &mut back, &what).unwrap(), 16.min(bytes));
        file.close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[24..], data[..bytes as usize]);
        std::fs::remove_file(&path).unwrap();
    }

    // A strided view leaves the gaps alone. (Only what was written before: the standard does not say what a gap of a
    // new file holds, and one library puts old memory there.)
    let path = scratch("strided");
    let none = Info::new(&[]).unwrap();
    std::fs::write(&path, [0xEE; 400]).unwrap();
    let file = MpiFile::open(&own, &path, Open::Update, false, &none).unwrap();
    file.set_view(8, &FileType::strided(DOUBLE, 16, 48).unwrap(), &none).unwrap();
    assert_eq!(
        file.write(Access::PointerAll, 0, &data[..64], &TransferType::new(DOUBLE, 64, None).unwrap()).unwrap(),
        64
    );
    file.close().unwrap();
    let content = std::fs::read(&path).unwrap();
    for (n, chunk) in data[..64].chunks(16).enumerate() {
        assert_eq!(content[8 + 48 * n..8 + 48 * n + 16], *chunk);
        assert!(content[8 + 48 * n + 16..].iter().take(32).all(|b| *b == 0xEE));
    }

    // Opening what exists fails with class and text, and leaves it alone.
    let error = MpiFile::open(&own, &path, Open::CreateNew, false, &none).unwrap_err();
    assert!(error.class.starts_with("MPI_ERR_"), "{error}");
    assert!(!error.text.is_empty());
    std::fs::remove_file(&path).unwrap();
}
