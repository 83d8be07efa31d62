//! Both drivers with RWF_DONTCACHE.

use std::path::Path;

use crate::direct::FdPair;
use crate::error::FailureCause;
use crate::offset_file::OffsetFile;
use crate::posix::PosixFile;
use crate::testing::{fill_stream, pattern, scratch};
use crate::uring::UringFile;
use crate::{Batch, Batches, Direct, Direction, DriverOptions, Latency, OpenFile, OpenMode, TransferBuffer};

fn open(name: &str, path: &Path, mode: OpenMode, direct: Direct) -> Box<dyn OpenFile> {
    let options = DriverOptions { dont_cache: true, direct, ..DriverOptions::default() };
    let files = FdPair::open_alone(path, mode, &options).unwrap();
    match name {
        "posix" => Box::new(PosixFile::new(OffsetFile::single_rank(files))),
        _ => Box::new(UringFile::new(OffsetFile::single_rank(files), (&options).into()).unwrap()),
    }
}

#[test]
fn same_bytes_or_a_clear_refusal() {
    let dir = scratch();
    let all = Batch { first_call: 0, calls: 9 };
    for name in ["posix", "uring"] {
        let path = dir.path().join(name);
        let mut file = open(name, &path, OpenMode::CreateNew, Direct::Off);
        let p = pattern(40_008, 1, 9);
        let mut buffer = TransferBuffer::new(1 << 19, 1 << 16).unwrap();
        fill_stream(&mut buffer, 2);
        let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
        assert!(prepared.strategy.contains("RWF_DONTCACHE"), "{}", prepared.strategy);
        match file.write(Batches::new(all, &mut Latency::off()), &buffer) {
            Err(error) => assert!(error.text.contains("--cache drop"), "{error}"),
            Ok(_) => {
                let written = buffer.bytes().to_vec();
                file.sync().unwrap();
                assert!(std::fs::read(&path).unwrap() == written[..9 * 40_008]);
                buffer.bytes_mut().fill(0);
                file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
                file.read(Batches::new(all, &mut Latency::off()), &mut buffer).unwrap();
                assert!(buffer.bytes()[..9 * 40_008] == written[..9 * 40_008]);
            }
        }
        file.close().unwrap();
    }
}

#[test]
fn a_file_that_cannot_is_refused_with_the_way_out() {
    for name in ["posix", "uring"] {
        let mut file = open(name, Path::new("/dev/full"), OpenMode::Update, Direct::Off);
        let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
        file.prepare(&pattern(4096, 1, 1), Direction::Write, &mut buffer, &[]).unwrap();
        let error =
            file.write(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &buffer).unwrap_err();
        assert_eq!(error.cause, FailureCause::Unsupported, "{name}: {error}");
        for part in ["RWF_DONTCACHE", "Linux 6.14", "--cache drop"] {
            assert!(error.text.contains(part), "{name}: {error}");
        }
    }
}

#[test]
fn direct_transfers_ignore_it() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = open("posix", &path, OpenMode::CreateNew, Direct::Auto);
    let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
    let prepared = file.prepare(&pattern(4096, 1, 1), Direction::Write, &mut buffer, &[]).unwrap();
    assert_eq!(prepared.direct == Some(true), !prepared.strategy.contains("RWF_DONTCACHE"), "{}", prepared.strategy);
}
