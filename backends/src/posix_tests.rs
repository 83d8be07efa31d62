use super::*;
use crate::direct::FdPair;
use crate::error::FailureCause;
use crate::testing::pattern;
use crate::{Batches, Direct, OpenMode};
use std::path::Path;

const BUFFERED: FileRoute = FileRoute::Buffered { reason: None };

#[test]
fn continues_after_short_transfers_and_signals() {
    let mut asked = Vec::new();
    let mut answers = vec![Ok(3), Err(io::ErrorKind::Interrupted.into()), Ok(5)].into_iter();
    transfer(8, &BUFFERED, |got| {
        asked.push(got);
        answers.next().unwrap()
    })
    .unwrap();
    assert_eq!(asked, [0, 3, 3]);
}

#[test]
fn nothing_takes_one_call() {
    let mut calls = 0;
    transfer(0, &BUFFERED, |_| {
        calls += 1;
        Ok(0)
    })
    .unwrap();
    assert_eq!(calls, 1);
    assert!(transfer(0, &BUFFERED, |_| Err(io::Error::from_raw_os_error(libc::EBADF))).is_err());
}

#[test]
fn end_and_error_report_the_bytes_moved() {
    let mut answers = vec![Ok(3), Ok(0)].into_iter();
    assert!(matches!(transfer(8, &BUFFERED, |_| answers.next().unwrap()), Err((3, None))));
    let mut answers = vec![Ok(3), Err(io::Error::from_raw_os_error(libc::ENOSPC))].into_iter();
    let (got, error) = transfer(8, &BUFFERED, |_| answers.next().unwrap()).unwrap_err();
    assert_eq!((got, error.unwrap().raw_os_error()), (3, Some(libc::ENOSPC)));
    let direct = FileRoute::Direct { align_bytes: 512 };
    assert!(matches!(transfer(4096, &direct, |_| Ok(1000)), Err((1000, None))));
}

#[test]
fn full_device_is_no_space() {
    let files = FdPair::open_alone(Path::new("/dev/full"), OpenMode::Update, Direct::Off).unwrap();
    let mut file = PosixFile::new(OffsetFile::single_rank(files));
    let mut buffer = TransferBuffer::new(4096, 4096).unwrap();
    let p = AccessPattern { base_bytes: 8192, ..pattern(4096, 1, 4) };
    let batch = Batch { first_call: 0, calls: 4 };
    assert!(file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap_err().text.contains("prepare"));
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    let error = file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap_err();
    assert_eq!((error.operation, error.cause, error.offset_bytes), ("pwrite", FailureCause::NoSpace, Some(8192)));
}
