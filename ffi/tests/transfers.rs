//! Derived datatypes for counts beyond a C integer, with a real library on one rank. The limit is lowered, so that kilobytes suffice.

use std::path::PathBuf;

use beff_ffi::{AccessMode, Comm, DataAccess, Element, FileType, Info, MpiFile, TransferType, Universe};

const DOUBLE: Element = Element::Double;

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
}

/// MPI can be initialized once per process, so this is one test.
#[test]
fn derived_datatypes_stand_for_large_counts() {
    let _universe = Universe::init().unwrap();
    let own = Comm::comm_self();
    let data: Vec<u8> = (0..80_000_u32).map(|n| (n % 251) as u8).collect();
    // Below, at and above the limit; whole blocks, a remainder, and more blocks than the limit.
    for (bytes, max_count) in [(800, 1000), (8000, 1000), (8008, 1000), (16_000, 1000), (79_992, 1000), (80_000, 70)] {
        let path = scratch("large-counts");
        let what = TransferType::new(DOUBLE, bytes, Some(max_count)).unwrap();
        let none = Info::new(&[]).unwrap();
        let file = MpiFile::open(&own, &path, AccessMode::CreateNew, false, &none).unwrap();
        file.set_view(24, &FileType::strided(DOUBLE, 8, 8).unwrap(), &none).unwrap();
        assert_eq!(file.write(DataAccess::Pointer, 0, &data[..bytes as usize], &what).unwrap(), bytes);
        file.sync().unwrap();
        assert_eq!(file.size_bytes().unwrap(), 24 + bytes);

        file.set_view(24, &FileType::strided(DOUBLE, 8, 8).unwrap(), &none).unwrap();
        let mut back = vec![0; bytes as usize];
        assert_eq!(file.read(DataAccess::Pointer, 0, &mut back, &what).unwrap(), bytes);
        assert_eq!(back, data[..bytes as usize]);
        // At the end of the file the transferred bytes are counted in doubles, not in whole transfers.
        file.set_view(24 + bytes - 16, &FileType::strided(DOUBLE, 8, 8).unwrap(), &none).unwrap();
        assert_eq!(file.read(DataAccess::Pointer, 0, &mut back, &what).unwrap(), 16.min(bytes));
        file.close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[24..], data[..bytes as usize]);
        std::fs::remove_file(&path).unwrap();
    }

    // A strided view does not change the gaps. (Tested with existing data only: the standard does not define the gaps of a new file, and
    // one library writes stale memory there.)
    let path = scratch("strided");
    let none = Info::new(&[]).unwrap();
    std::fs::write(&path, [0xEE; 400]).unwrap();
    let file = MpiFile::open(&own, &path, AccessMode::Update, false, &none).unwrap();
    file.set_view(8, &FileType::strided(DOUBLE, 16, 48).unwrap(), &none).unwrap();
    assert_eq!(
        file.write(DataAccess::PointerAll, 0, &data[..64], &TransferType::new(DOUBLE, 64, None).unwrap()).unwrap(),
        64
    );
    file.close().unwrap();
    let content = std::fs::read(&path).unwrap();
    for (n, chunk) in data[..64].chunks(16).enumerate() {
        assert_eq!(content[8 + 48 * n..8 + 48 * n + 16], *chunk);
        assert!(content[8 + 48 * n + 16..].iter().take(32).all(|b| *b == 0xEE));
    }

    // Creating an existing file fails with class and text, and does not change it.
    let error = MpiFile::open(&own, &path, AccessMode::CreateNew, false, &none).unwrap_err();
    assert!(error.class.starts_with("MPI_ERR_"), "{error}");
    assert!(!error.text.is_empty());
    std::fs::remove_file(&path).unwrap();
}
