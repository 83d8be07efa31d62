//! Bare loops of MPI-IO with a real library on one rank: they transfer the expected data; short transfers yield no time.

use beff_ffi::{BareCall, BareFile, BareLoop, Comm, Info, Universe};

const BYTES: usize = 100;
const CALLS: usize = 6;
const EXTENT: usize = 250;
const AT: usize = 17;

const EVERY_CALL: [BareCall; 4] = [
    BareCall { explicit: false, collective: false },
    BareCall { explicit: true, collective: false },
    BareCall { explicit: false, collective: true },
    BareCall { explicit: true, collective: true },
];

/// Expected content of the file after a loop with these windows.
fn expected_file(data: &[u8], windows: usize) -> Vec<u8> {
    let mut file = vec![0xEE; AT + CALLS * EXTENT];
    for call in 0..CALLS {
        let (to, from) = (AT + call * EXTENT, call % windows * BYTES);
        file[to..to + BYTES].copy_from_slice(&data[from..from + BYTES]);
    }
    file
}

/// MPI can be initialized once per process, so this is one test.
#[test]
fn bare_loops_move_their_data_or_report_no_time() {
    let _universe = Universe::init().unwrap();
    let own = Comm::comm_self();
    let none = Info::new(&[]).unwrap();
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bare-{}", std::process::id()));
    let data: Vec<u8> = (0..(BYTES * CALLS) as u32).map(|n| (n % 251) as u8).collect();
    for (call, windows) in EVERY_CALL.into_iter().flat_map(|call| [(call, CALLS), (call, 4), (call, 1)]) {
        // With this tile the file pointer yields the explicit offsets.
        let (displacement, part) = if call.explicit { (0, EXTENT) } else { (AT, BYTES) };
        let what = BareLoop {
            bytes: BYTES,
            windows: windows as u64,
            offset_bytes: AT as u64,
            stride_bytes: EXTENT as u64,
            calls: CALLS as u64,
        };
        std::fs::write(&path, vec![0xEE; AT + CALLS * EXTENT]).unwrap();
        let file = BareFile::open(&own, &path, false, &none).unwrap();
        // Twice: the view resets the pointer.
        for _ in 0..2 {
            file.set_view(displacement as u64, part as u64, EXTENT as u64).unwrap();
            assert!(file.write(call, &data[..windows * BYTES], &what).is_some_and(|seconds| seconds > 0.0));
        }
        file.close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), expected_file(&data, windows), "{call:?} {windows}");

        let file = BareFile::open(&own, &path, true, &none).unwrap();
        let mut back = vec![0; windows * BYTES];
        for _ in 0..2 {
            file.set_view(displacement as u64, part as u64, EXTENT as u64).unwrap();
            assert!(file.read(call, &mut back, &what).is_some_and(|seconds| seconds > 0.0));
        }
        assert_eq!(back, data[..windows * BYTES], "{call:?} {windows}");
        assert_eq!(file.read(call, &mut back, &BareLoop { calls: 0, ..what }).map(|seconds| seconds < 1.0), Some(true));
        // Beyond the end of the file: a short transfer, which yields no time.
        file.set_view(0, EXTENT as u64, EXTENT as u64).unwrap();
        let stride_bytes = BYTES as u64;
        let short = |calls| BareLoop { offset_bytes: 0, stride_bytes, calls, ..what };
        let whole = ((AT + CALLS * EXTENT) / BYTES) as u64;
        assert!(file.read(call, &mut back, &short(whole)).is_some(), "{call:?}");
        file.set_view(0, EXTENT as u64, EXTENT as u64).unwrap();
        // OMPIO's MPI_File_read_all, and all of ROMIO with a tile, report full reads in any case.
        let short = file.read(call, &mut back, &short(whole + 1));
        assert!(short.is_none() || (call.collective && !call.explicit), "{call:?}");
        // A file opened read-only cannot be written.
        assert_eq!(file.write(call, &data, &what), None, "{call:?}");
        file.close().unwrap();
    }
    std::fs::remove_file(&path).unwrap();
    // A missing file is an error for reads and created for writes; a loop may transfer 0 bytes.
    assert!(BareFile::open(&own, &path, true, &none).is_err());
    let file = BareFile::open(&own, &path, false, &none).unwrap();
    file.set_view(0, 0, 0).unwrap();
    let nothing = BareLoop { bytes: 0, windows: 1, offset_bytes: 0, stride_bytes: 0, calls: 3 };
    assert!(EVERY_CALL.iter().all(|call| file.write(*call, &[], &nothing).is_some()));
    file.close().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    std::fs::remove_file(&path).unwrap();
}
